"""The recorder on a disk that is full for a while: full_disk.py TINE STORE LAYER AGENT...

LAYER is `rig/shim/faults.c`, compiled: the disk is full as long as a certain file is there. The
client must be told at once, nothing that is not on disk may be acknowledged, and once there is room
again everything that was shown is there, under the ids under which it was shown.
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
    """A client on whose machine the disk becomes full when the agent asks for leave, if it is to."""

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
        told = [it.get("_meta", {}).get("tine", {}) for it in self.seen(self.session, since)]
        return [it["unrecorded"] for it in told if "unrecorded" in it]


def refused(act):
    """The error, which must tell that the disk is full."""
    try:
        act()
    except Refused as error:
        assert "disk is full" in str(error), error
        return error
    raise AssertionError("it was acknowledged on a full disk")


def a_question(editor):
    """A question that cannot be stored is refused, and the agent never sees it."""
    fill()
    refused(lambda: editor.prompt("unheard"))
    refused(lambda: editor.ask("session/new", {"cwd": CWD, "mcpServers": []}))
    empty()
    since = editor.mark()
    editor.prompt("context?")
    assert "unheard" not in str(editor.seen(editor.session, since))


def in_the_middle(editor):
    """From where nothing can be stored the client is told so; with room again all of it is there."""
    since, editor.fills = editor.mark(), True
    refused(lambda: editor.prompt("tool"))
    editor.fills = False
    assert editor.notices(since) == [True], editor.notices(since)
    wanted = shown(editor.seen(editor.session, since))
    assert "Done." in str(wanted), "what the agent says is shown all the same"
    named = {"sessionId": editor.session, "cwd": CWD}
    refused(editor.replay)
    refused(lambda: editor.ask("session/fork", {**named, "mcpServers": []}))
    refused(lambda: editor.ask("session/close", named))
    refused(lambda: editor.prompt("again"))
    empty()
    held = editor.replay()
    assert editor.notices(since)[:2] == [True, False], editor.notices(since)
    for key, text in wanted:
        assert held.get(key) == text, f"{key} is {str(held.get(key))[:80]!r}, not {text[:80]!r}"
    editor.prompt("and on")


def at_the_end(editor):
    """What a session left unstored when its agent ended is stored once there is room."""
    since = editor.mark()
    sent = editor.send_prompt("word " * 2000)
    spoken = lambda update: update["sessionUpdate"] == "agent_message_chunk"
    assert editor.await_update(editor.session, since, spoken, 60)
    fill()
    os.kill(children(editor.process.pid)[0], signal.SIGKILL)
    try:
        editor.wait(sent)
        raise AssertionError("it was answered")
    except Refused as error:
        assert "disk is full" in str(error) and "kept" not in str(error), error
    refused(editor.replay)
    wanted = shown(editor.seen(editor.session, since))
    empty()
    held = editor.replay()
    for key, text in wanted:
        assert held.get(key) == text, f"{key} is {str(held.get(key))[:80]!r}, not {text[:80]!r}"
    editor.prompt("and on")


editor = Editor()
for story in (a_question, in_the_middle, at_the_end):
    story(editor)
    print(f"  {story.__doc__}")
editor.end()
branches = subprocess.run([TINE, "--store", STORE, "branch"], capture_output=True, text=True, check=True)
assert len(branches.stdout.splitlines()) == 1, f"the session is in pieces:\n{branches.stdout}"
