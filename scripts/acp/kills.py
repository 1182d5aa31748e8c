"""Kills the recorder or its agent and checks that nothing acknowledged is lost.

    kills.py SEED ROUNDS TINE AGENT...

A question counts as acknowledged when its id is shown; a message, call or result when something
after it is shown; everything when the prompt is answered. The script records what was shown, and a
load must replay all of it under the same ids. TINE_STORE names the store.
"""

import json
import os
import random
import signal
import sys
import time

from agent_process import AgentProcess, Gone, Refused

SEED, ROUNDS, TINE, *AGENT = sys.argv[1:] if __name__ == "__main__" else [None] * 3
CWD = os.getcwd()
CHUNKS = ("user_message_chunk", "agent_message_chunk")


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return [int(it) for it in file.read().split()]


def start():
    editor = AgentProcess([TINE, "acp", "--log", "error", "--", *AGENT, "tools"], 60)
    editor.ask("initialize", {"protocolVersion": 1})
    return editor


def shown(updates):
    """Returns messages, calls and results in order of arrival, as (key, text)."""
    seen = []
    for update in updates:
        kind = update["sessionUpdate"]
        if kind in CHUNKS:
            key, text = update["messageId"], update["content"]["text"]
        elif kind == "tool_call":
            key, text = "call " + update["toolCallId"], ""
        elif kind == "tool_call_update" and update.get("status") == "completed":
            key, text = "result " + update["toolCallId"], json.dumps(update["content"], sort_keys=True)
        else:
            continue
        if seen and seen[-1][0] == key:
            seen[-1] = (key, seen[-1][1] + text)
        else:
            seen.append((key, text))
    return seen


def acknowledged(updates, answered):
    """Returns what must be stored: everything but the last item, which may be incomplete."""
    seen = shown(updates)
    last_is_question = updates and updates[-1]["sessionUpdate"] == "user_message_chunk"
    return seen if answered or last_is_question else seen[:-1]


def replay(editor, session):
    since = editor.mark()
    editor.ask("session/load", {"sessionId": session, "cwd": CWD, "mcpServers": []})
    return dict(shown(editor.seen(session, since)))


def check(editor, session, wanted):
    held = replay(editor, session)
    for key, text in wanted:
        assert key in held, f"seed {SEED}: {key} ({text[:40]!r}) is lost"
        assert held[key] == text, f"seed {SEED}: {key} is {held[key]!r}, expected {text!r}"


def main():
    chance = random.Random(int(SEED))
    editor, wanted, session = start(), [], None
    killed = {"recorder": 0, "agent": 0}
    for round_ in range(int(ROUNDS)):
        if session is None or chance.random() < 0.3:
            params = {"cwd": CWD, "mcpServers": []}
            session, wanted = editor.ask("session/new", params)["sessionId"], []
        for _ in range(chance.randrange(2)):
            since = editor.mark()
            block = {"type": "text", "text": f"round {round_}"}
            try:
                editor.ask("session/prompt", {"sessionId": session, "prompt": [block]})
                answered = True
            except Refused:
                # The agent killed last had already answered; the recorder notices its exit only now.
                answered = False
            wanted += acknowledged(editor.seen(session, since), answered)
            if not answered:
                check(editor, session, wanted)
        since = editor.mark()
        text = chance.choice(["tool", "word " * chance.randrange(1, 60)])
        sent = editor.send(
            "session/prompt", {"sessionId": session, "prompt": [{"type": "text", "text": text}]}
        )
        time.sleep(chance.random() * 0.06)
        victim = chance.choice(list(killed))
        killed[victim] += 1
        agents = children(editor.process.pid)
        if victim == "recorder" or agents:
            os.kill(editor.process.pid if victim == "recorder" else agents[0], signal.SIGKILL)
        try:
            editor.wait(sent)
            answered = True
        except (Gone, Refused):
            answered = False
        if victim == "recorder":
            editor.process.wait()
            # Reads the rest of its output.
            with editor.changed:
                editor.changed.wait_for(lambda: editor.ended, 60)
        wanted += acknowledged(editor.seen(session, since), answered)
        if victim == "recorder":
            editor = start()
        check(editor, session, wanted)
    editor.end()
    print(f"seed {SEED}: {killed['recorder']} recorders and {killed['agent']} agents killed, nothing lost")


if __name__ == "__main__":
    main()
