"""Kills `tine mcp` at random moments and checks that no answered call is lost.

    kills.py SEED ROUNDS TINE

The script records every answer. Calls are sent concurrently, so some are pending when the process
dies; the next process receives them again with their idempotency keys. Afterwards every turn must be
stored once, in order, and the store must verify. TINE_STORE names the store.
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
    """A `tine mcp` process and its answers."""

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
        assert self.wait(asked), "the server did not start"
        self.write({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def listen(self):
        for line in io.BufferedReader(self.process.stdout):
            # The last line may be incomplete.
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
        """Returns the answer, or None if the process died without one."""
        with self.news:
            self.news.wait_for(lambda: id in self.answers or self.ended, timeout=60)
            return self.answers.get(id)


class Conversation:
    """A conversation whose turns are stored one after the other."""

    def __init__(self, name):
        self.name, self.answered, self.asked = name, [], None

    def ask(self, host):
        turn = f"{len(self.answered):06}"
        self.asked = host.send("tools/call", {"name": "store_conversation_turn", "arguments": {
            "conversation_id": self.name, "turn_id": turn, "role": "user",
            "content": f"{self.name} says {turn}", "idempotency_key": f"{self.name}-{turn}"}})

    def receive(self, host):
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
    interrupted = 0
    for _ in range(ROUNDS):
        host = Host()
        end = threading.Timer(chance.uniform(0, 0.08), host.process.kill)
        end.start()
        going = chance.sample(conversations, AT_ONCE)
        while going:
            for conversation in going:
                conversation.ask(host)
            heard = [conversation for conversation in going if conversation.receive(host)]
            interrupted += len(going) - len(heard)
            going = heard
        end.cancel()
        host.process.kill()
        host.process.wait()
        host.process.stdin.close()
    for conversation in conversations:
        stored, answered = said(conversation.name), conversation.answered
        count = len(answered)
        lost = [text for text in answered if text not in stored]
        assert stored[:count] == answered, f"{conversation.name}: {count} answered, lost {lost}"
        # One call may have been stored without an answer.
        assert len(stored) <= count + 1, f"{conversation.name}: unexpected turns {stored[count:]}"
    tine("verify")
    answered = sum(len(it.answered) for it in conversations)
    assert answered and interrupted, f"{answered} answered, {interrupted} interrupted: the test exercised nothing"
    print(f"{ROUNDS} kills, seed {SEED}: {answered} turns answered, {interrupted} calls interrupted, 0 lost")


began = time.monotonic()
main()
print(f"{time.monotonic() - began:.0f} s")
