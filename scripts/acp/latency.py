"""Measures the latency that the recorder adds: latency.py TINE [CHUNKS [PAUSE_MS]] [--bound]

An agent sends chunks that carry their send time, once to a directly connected client and once
through the recorder. It then sends messages of increasing length through the recorder, as fast as it
can. TINE_STORE names the store. Prints JSON; with --bound, exceeding a documented bound is an error.
"""

import json
import os
import sys
import time

from agent_process import AgentProcess

CWD = os.getcwd()


def agent():
    """Runs the agent, which answers the prompt `N PAUSE` with N chunks."""

    def write(message):
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()

    for line in sys.stdin:
        request = json.loads(line)
        params, result = request.get("params", {}), {}
        if request["method"] == "initialize":
            result = {"protocolVersion": 1, "agentCapabilities": {}, "authMethods": []}
        elif request["method"] == "session/new":
            result = {"sessionId": "one"}
        elif request["method"] == "session/prompt":
            count, pause = params["prompt"][-1]["text"].split()
            for _ in range(int(count)):
                content = {"type": "text", "text": f"{time.monotonic_ns()} "}
                update = {"sessionUpdate": "agent_message_chunk", "content": content}
                update = {"sessionId": params["sessionId"], "update": update}
                write({"method": "session/update", "params": update})
                if float(pause):
                    time.sleep(float(pause) / 1000)
            result = {"stopReason": "end_turn"}
        if "id" in request:
            write({"id": request["id"], "result": result})


class Client(AgentProcess):
    """A client that records the delay of each chunk."""

    def __init__(self, command):
        self.delays = []
        super().__init__(command, 600)
        self.ask("initialize", {"protocolVersion": 1})
        self.session = self.ask("session/new", {"cwd": CWD, "mcpServers": []})["sessionId"]

    def _read(self):
        for line in self.process.stdout:
            now = time.monotonic_ns()
            message = json.loads(line)
            update = message.get("params", {}).get("update", {})
            if update.get("sessionUpdate") == "agent_message_chunk":
                self.delays.append((now - int(update["content"]["text"])) / 1e6)
            elif "method" not in message:
                self.answers[message["id"]].put(message)

    def stream(self, count, pause_ms):
        """Returns the delay of each chunk in milliseconds and the total time in seconds."""
        self.delays = []
        begun = time.monotonic()
        prompt = [{"type": "text", "text": f"{count} {pause_ms}"}]
        self.ask("session/prompt", {"sessionId": self.session, "prompt": prompt})
        return list(self.delays), time.monotonic() - begun


def at(delays, share):
    return sorted(delays)[min(len(delays) - 1, int(len(delays) * share))]


def main():
    bound = "--bound" in sys.argv
    tine, *more = [it for it in sys.argv[1:] if it != "--bound"]
    count = int(more[0]) if more else 2000
    pause_ms = float(more[1]) if len(more) > 1 else 2.0
    command = [sys.executable, os.path.abspath(__file__), "--agent"]
    direct = Client(command)
    recorded = Client([tine, "acp", "--log", "error", "--", *command])
    for client in (direct, recorded):
        client.stream(100, pause_ms)
    # Alternates between the two, so that other load affects both equally.
    plain, through = [], []
    for _ in range(10):
        plain += direct.stream(count // 10, pause_ms)[0]
        through += recorded.stream(count // 10, pause_ms)[0]
    figures = {"chunks": len(plain)}
    for name, share in (("median", 0.5), ("p99", 0.99)):
        figures[name] = {
            "direct_ms": round(at(plain, share), 3),
            "recorded_ms": round(at(through, share), 3),
            "added_ms": round(at(through, share) - at(plain, share), 3),
        }
    sizes = {}
    for size in (2_500, 5_000, 10_000, 20_000):
        seconds = min(recorded.stream(size, 0)[1] for _ in range(3))
        sizes[size] = {"seconds": round(seconds, 3), "us_per_chunk": round(seconds / size * 1e6, 1)}
    figures["one_message"] = sizes
    direct.end()
    recorded.end()
    print(json.dumps(figures, indent=1))
    if bound:
        assert figures["median"]["added_ms"] < 1, "the median exceeds 1 ms"
        assert figures["p99"]["added_ms"] < 5, "the p99 exceeds 5 ms"
        assert sizes[20_000]["us_per_chunk"] < 2 * sizes[2_500]["us_per_chunk"], "the time per chunk grows with the message"


if "--agent" in sys.argv:
    agent()
else:
    main()
