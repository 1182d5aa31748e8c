"""Kills `tine mcp` at any moment, and looks for what was answered: kills.py SEED ROUNDS TINE

What was answered is noted here, outside. Calls are sent without waiting for one another, so that
some are under way when the process ends; the next process gets these again with their keys.
Afterwards everything is there once, in order, and verifies. TINE_STORE names the store.
"""

import io
import itertools
import json
import random
import subprocess
import sys
import threading
import time

SEED, ROUNDS, TINE = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
CONVERSATIONS = 4
AT_ONCE = 3
IDS = itertools.count(1)


class Host:
    """`tine mcp` and what it has answered."""

    def __init__(self):
        command = [TINE, "mcp", "--log", "error"]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "bufsize": 0}
        self.process = subprocess.Popen(command, **pipes)
        self.answers = {}
        self.news = threading.Condition()
        self.ended = False
        threading.Thread(target=self.listen, daemon=True).start()
        asked = self.send("initialize", {
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "kills", "version": "1"}})
        assert self.wait(asked), "it does not start"
        self.write({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def listen(self):
        for line in io.BufferedReader(self.process.stdout):
            # The last line may be cut off.
            if line.endswith(b"\n"):
                answer = json.loads(line)
                with self.news:
                    self.answers[answer.get("id")] = answer
                    self.news.notify_all()
        with self.news:
            self.ended = True
            self.news.notify_all()

    def write(self, message):
        try:
            self.process.stdin.write(json.dumps(message).encode() + b"\n")
        except BrokenPipeError:
            pass

    def send(self, method, params):
        id = next(IDS)
        self.write({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
        return id

    def wait(self, id):
        """The answer, or nothing if there will be none."""
        with self.news:
            self.news.wait_for(lambda: id in self.answers or self.ended, timeout=60)
            return self.answers.get(id)


class Conversation:
    """What is to be said in one, one turn after the other."""

    def __init__(self, name):
        self.name, self.answered, self.asked = name, [], None

    def ask(self, host):
        turn = f"{len(self.answered):06}"
        self.asked = host.send("tools/call", {"name": "store_conversation_turn", "arguments": {
            "conversation_id": self.name, "turn_id": turn, "role": "user",
            "content": f"{self.name} says {turn}", "idempotency_key": f"{self.name}-{turn}"}})

    def hear(self, host):
        answer = host.wait(self.asked)
        if answer is None:
            return False
        done = answer["result"]
        assert not done.get("isError"), done
        self.answered.append(f"{self.name} says {len(self.answered):06}")
        return True


def tine(*arguments):
    done = subprocess.run([TINE, *arguments], capture_output=True, text=True, check=True)
    return done.stdout


def said(name):
    lines = tine("path", "--conversation", name, "--format", "tine")
    return [json.loads(line)["content"][0]["text"] for line in lines.splitlines()]


def main():
    chance = random.Random(SEED)
    conversations = [Conversation(f"c{nth}") for nth in range(CONVERSATIONS)]
    cut_off = 0
    for _ in range(ROUNDS):
        host = Host()
        end = threading.Timer(chance.uniform(0, 0.08), host.process.kill)
        end.start()
        going = chance.sample(conversations, AT_ONCE)
        while going:
            for conversation in going:
                conversation.ask(host)
            heard = [conversation for conversation in going if conversation.hear(host)]
            cut_off += len(going) - len(heard)
            going = heard
        end.cancel()
        host.process.kill()
        host.process.wait()
        host.process.stdin.close()
    for conversation in conversations:
        there, told = said(conversation.name), conversation.answered
        # One call may have been stored and not been answered.
        lost = [text for text in told if text not in there]
        assert there[:len(told)] == told, f"{conversation.name}: {len(told)} answered, lost {lost}"
        assert len(there) <= len(told) + 1, f"{conversation.name}: {there[len(told):]} are too many"
    tine("verify")
    answered = sum(len(it.answered) for it in conversations)
    assert answered and cut_off, f"{answered} answered, {cut_off} cut off: nothing was tried"
    print(f"{ROUNDS} kills, seed {SEED}: {answered} turns answered, {cut_off} calls cut off, 0 lost")


began = time.monotonic()
main()
print(f"{time.monotonic() - began:.0f} s")
