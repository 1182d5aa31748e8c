"""Tests the recorder on a temporarily full disk: full_disk.py TINE STORE LAYER AGENT...

LAYER is the compiled `rig/shim/faults.c`, which simulates a full disk while a certain file exists.
The client must be notified at once, unstored content must not be acknowledged, and when space is
available again, everything shown to the client must be stored under the ids it was shown with.
"""

import os
import signal
import subprocess
import sys

from agent_process import AgentProcess, Refused
from kills import children, shown

TINE, STORE, LAYER, *AGENT = sys.argv[1:]
CWD = os.getcwd()
FULL = STORE + ".full"
LAYERED = {"LD_PRELOAD": LAYER, "TINE_STORE": STORE, "TINE_RIG_ROOT": STORE, "TINE_RIG_FULL": FULL}


def fill():
    open(FULL, "w").close()


def empty():
    os.remove(FULL)


class Editor(AgentProcess):
    """A client that fills the disk on the next permission request if `fills` is set."""

    fills = False

    def __init__(self):
        os.environ.update(LAYERED)
        try:
            super().__init__([TINE, "acp", "--log", "error", "--", *AGENT, "tools"], 60)
        finally:
            del os.environ["LD_PRELOAD"]
        self.ask("initialize", {"protocolVersion": 1})
        params = {"cwd": CWD, "mcpServers": []}
        self.session = self.ask("session/new", params)["sessionId"]

    def _answer(self, request):
        if self.fills:
            fill()
        super()._answer(request)

    def send_prompt(self, text):
        prompt = [{"type": "text", "text": text}]
        return self.send("session/prompt", {"sessionId": self.session, "prompt": prompt})

    def prompt(self, text):
        return self.wait(self.send_prompt(text))

    def replay(self):
        since = self.mark()
        params = {"sessionId": self.session, "cwd": CWD, "mcpServers": []}
        self.ask("session/load", params)
        return dict(shown(self.seen(self.session, since)))

    def notices(self, since):
        meta = [it.get("_meta", {}).get("tine", {}) for it in self.seen(self.session, since)]
        return [it["unrecorded"] for it in meta if "unrecorded" in it]


def refused(act):
    """Returns the error of `act`, which must report the full disk."""
    try:
        act()
    except Refused as error:
        assert "disk is full" in str(error), error
        return error
    raise AssertionError("a request was acknowledged on a full disk")


def a_question(editor):
    """A question that cannot be stored is refused and never reaches the agent."""
    fill()
    refused(lambda: editor.prompt("unheard"))
    refused(lambda: editor.ask("session/new", {"cwd": CWD, "mcpServers": []}))
    empty()
    since = editor.mark()
    editor.prompt("context?")
    assert "unheard" not in str(editor.seen(editor.session, since))


def in_the_middle(editor):
    """The client is notified when storing fails; everything is stored when space is available again."""
    since, editor.fills = editor.mark(), True
    refused(lambda: editor.prompt("tool"))
    editor.fills = False
    assert editor.notices(since) == [True], editor.notices(since)
    wanted = shown(editor.seen(editor.session, since))
    assert "Done." in str(wanted), "the agent's output must be shown although it is not stored"
    named = {"sessionId": editor.session, "cwd": CWD}
    refused(editor.replay)
    refused(lambda: editor.ask("session/fork", {**named, "mcpServers": []}))
    refused(lambda: editor.ask("session/close", named))
    refused(lambda: editor.prompt("again"))
    empty()
    held = editor.replay()
    assert editor.notices(since)[:2] == [True, False], editor.notices(since)
    for key, text in wanted:
        assert held.get(key) == text, f"{key} is {str(held.get(key))[:80]!r}, expected {text[:80]!r}"
    editor.prompt("and on")


def at_the_end(editor):
    """Output left unstored when the agent exited is stored when space is available again."""
    since = editor.mark()
    sent = editor.send_prompt("word " * 2000)
    spoken = lambda update: update["sessionUpdate"] == "agent_message_chunk"
    assert editor.await_update(editor.session, since, spoken, 60)
    fill()
    os.kill(children(editor.process.pid)[0], signal.SIGKILL)
    try:
        editor.wait(sent)
        raise AssertionError("the prompt was answered")
    except Refused as error:
        assert "disk is full" in str(error) and "kept" not in str(error), error
    refused(editor.replay)
    wanted = shown(editor.seen(editor.session, since))
    empty()
    held = editor.replay()
    for key, text in wanted:
        assert held.get(key) == text, f"{key} is {str(held.get(key))[:80]!r}, expected {text[:80]!r}"
    editor.prompt("and on")


editor = Editor()
for story in (a_question, in_the_middle, at_the_end):
    story(editor)
    print(f"  {story.__doc__}")
editor.end()
branches = subprocess.run([TINE, "--store", STORE, "branch"], capture_output=True, text=True, check=True)
assert len(branches.stdout.splitlines()) == 1, f"the session was split into several branches:\n{branches.stdout}"
