"""Tests the recorder's features besides forking: recorded.py TINE STATE_FOLDER AGENT...

AGENT is the command that runs `sdk_agent.mjs`; TINE_STORE names an empty store. STORIES selects tests
by function name.
"""

import json
import os
import subprocess
import sys

from agent_process import AgentProcess, Refused

TINE, FOLDER, *AGENT = sys.argv[1:]
CWD = os.getcwd()
SECRET = "sk-ant-api03-" + "aB3dE5gH7jK9mN1pQ3sT5vX7zA2cD4fG6" * 2


class Editor(AgentProcess):
    """A client of a recorded agent."""

    def __init__(self, *traits, options=()):
        super().__init__([TINE, "acp", *options, "--", *AGENT, *traits], 60)
        hello = {"protocolVersion": 1, "clientInfo": {"name": "recorded", "version": "1"}}
        self.hello = self.ask("initialize", hello)

    def new(self, **more):
        return self.ask("session/new", {"cwd": CWD, "mcpServers": [], **more})["sessionId"]

    def prompt(self, session, text):
        """Sends a prompt and returns the text of the answer."""
        since = self.mark()
        prompt = [{"type": "text", "text": text}]
        ended = self.ask("session/prompt", {"sessionId": session, "prompt": prompt})
        assert ended["stopReason"] == "end_turn", ended
        said = of_kind(self.seen(session, since), "agent_message_chunk")
        return "".join(it["content"]["text"] for it in said)

    def context(self, session):
        """Returns everything that the agent was sent in its own session."""
        return json.loads(self.prompt(session, "context?"))

    def load(self, session, method="session/load"):
        since = self.mark()
        params = {"sessionId": session, "cwd": CWD, "mcpServers": []}
        answer = self.ask(method, params)
        return answer["_meta"]["tine"]["context"], self.seen(session, since)

    def fork(self, session, at=None):
        params = {"sessionId": session, "cwd": CWD, "mcpServers": []}
        if at:
            params["messageId"] = at
        answer = self.ask("session/fork", params)
        return answer["sessionId"], answer["_meta"]["tine"]["context"]

    def kill(self):
        self.process.kill()
        self.process.wait()


def of_kind(updates, kind):
    return [it for it in updates if it["sessionUpdate"] == kind]


def texts(updates):
    """Returns (speaker, text) for each message."""
    said = []
    for update in updates:
        if "messageId" not in update:
            continue
        speaker = update["sessionUpdate"].removesuffix("_chunk")
        if not said or said[-1][0] != update["messageId"]:
            said.append([update["messageId"], speaker, ""])
        said[-1][2] += update["content"]["text"]
    return [(speaker, text) for _, speaker, text in said]


def tine(*arguments):
    done = subprocess.run([TINE, *arguments], capture_output=True, text=True, check=True)
    return done.stdout


def whole_store():
    """Returns everything in the store as text."""
    listed = json.loads(tine("source", "list", "--number", "1000", "--json"))
    sources = [tine("source", "cat", it["source_id"]) for it in listed["items"]]
    return tine("export", "--all") + "".join(sources)


def seeds():
    """An agent without sessions gets the record up to the fork point, once, and nothing after it."""
    editor = Editor()
    session = editor.new()
    for word in ("alpha", "bravo", "charlie"):
        editor.prompt(session, word)
    _, said = editor.load(session)
    anchor = of_kind(said, "agent_message_chunk")[0]["messageId"]
    forked, context = editor.fork(session, anchor)
    assert context["kind"] == "seed" and context["turns"] == 2, context
    since = editor.mark()
    held = editor.context(forked)
    assert len(held) == 1 and held[0].count("<conversation-so-far>") == 1, held
    assert "alpha" in held[0] and "bravo" not in held[0] and "charlie" not in held[0], held
    thought = of_kind(editor.seen(forked, since), "agent_thought_chunk")
    assert "reconstructed" in thought[0]["content"]["text"], thought
    held = editor.context(forked)
    assert len(held) == 2 and held[1] == "context?", "the seed must be attached once"
    _, said = editor.load(forked)
    assert "conversation-so-far" not in json.dumps(texts(said)[:3]), "the seed must not appear as a message"
    listed = editor.ask("session/list", {"cwd": CWD})["sessions"]
    assert "conversation-so-far" not in json.dumps(listed)
    whole = editor.fork(session)[1]
    assert whole["kind"] == "seed" and whole["turns"] == 6, whole
    editor.end()
    editor = Editor()
    assert editor.load(session)[0]["kind"] == "seed"
    assert "charlie" in editor.context(session)[0]
    editor.end()


def native_forks():
    """The agent's own fork is used at the tip and never at an earlier message."""
    state = ["fork", "--state", os.path.join(FOLDER, "fork.json")]
    editor = Editor(*state)
    session = editor.new()
    for word in ("alpha", "bravo"):
        editor.prompt(session, word)
    tip, context = editor.fork(session)
    assert context["kind"] == "native", context
    assert editor.context(tip)[:2] == ["alpha", "alpha"], "the fork must keep the agent's own history"
    _, said = editor.load(session)
    anchor = of_kind(said, "agent_message_chunk")[0]["messageId"]
    early, context = editor.fork(session, anchor)
    assert context["kind"] == "seed", context
    assert "bravo" not in json.dumps(editor.context(early))
    editor.end()
    # The agent resumes its own session if that matches the branch exactly.
    editor = Editor(*state)
    assert editor.load(session, "session/resume") == ({"kind": "native"}, [])
    assert editor.context(session)[:4] == ["alpha", "alpha", "bravo", "bravo"]
    # The parent session has moved on, so it does not match a fork of its past.
    once, _ = editor.fork(session, anchor)
    editor.kill()
    editor = Editor(*state)
    assert editor.load(once)[0]["kind"] == "seed"
    editor.end()


def native_loads():
    """The agent's replay is hidden: the client sees the recorded one, with Tine's ids, once."""
    state = ["load", "--state", os.path.join(FOLDER, "load.json")]
    editor = Editor(*state)
    session = editor.new()
    editor.prompt(session, "alpha")
    first = texts(editor.load(session)[1])
    editor.end()
    editor = Editor(*state)
    context, said = editor.load(session)
    assert context["kind"] == "native" and texts(said) == first, (context, said)
    assert editor.prompt(session, "bravo") == "bravo"
    editor.end()


def recounts():
    """A session id that the agent reuses is not mistaken for the earlier session."""
    state = ["fork", "recount", "--state", os.path.join(FOLDER, "recount.json")]
    sessions = []
    for word in ("alpha", "bravo"):
        editor = Editor(*state)
        sessions.append(editor.new())
        editor.prompt(sessions[-1], word)
        editor.end()
    first, second = sessions
    editor = Editor(*state)
    assert editor.load(second)[0]["kind"] == "native"
    editor.end()
    editor = Editor(*state)
    assert editor.load(first)[0]["kind"] == "seed", "the id now names a different session"
    held = json.dumps(editor.context(first))
    assert "alpha" in held and "bravo" not in held, held
    editor.end()
    # Likewise if the other session was created without the recorder.
    file = os.path.join(FOLDER, "unrecorded.json")
    state = ["load", "--state", file]
    editor = Editor(*state)
    session = editor.new()
    editor.prompt(session, "alpha")
    editor.end()
    with open(file) as kept:
        ((theirs, _),) = json.load(kept)
    with open(file, "w") as kept:
        json.dump([[theirs, ["charlie", "charlie"]]], kept)
    editor = Editor(*state)
    context, said = editor.load(session)
    assert context["kind"] == "seed" and "charlie" not in json.dumps(said), (context, said)
    assert "charlie" not in json.dumps(editor.context(session))
    editor.end()


def echoes():
    """A question that the agent echoes is shown and recorded once, with and without a seed."""
    editor = Editor("echo")
    session = editor.new()
    editor.prompt(session, "alpha bravo")
    wanted = [("user_message", "alpha bravo"), ("agent_message", "alpha bravo")]
    assert texts(editor.load(session)[1]) == wanted
    forked, _ = editor.fork(session)
    since = editor.mark()
    editor.prompt(forked, "charlie")
    shown = of_kind(editor.seen(forked, since), "user_message_chunk")
    assert [it["content"]["text"] for it in shown] == ["charlie"], shown
    assert texts(editor.load(forked)[1])[2:] == [("user_message", "charlie"), ("agent_message", "charlie")]
    editor.end()


def crashes():
    """A crash in mid-turn keeps the partial answer, and the session continues with a new process."""
    editor = Editor("crash")
    session = editor.new()
    editor.prompt(session, "alpha")
    try:
        editor.prompt(session, "crash right now, please")
        raise AssertionError("the prompt was answered")
    except Refused as error:
        assert "ended" in str(error) and error.data["sessionId"] == session, error
    context, said = editor.load(session)
    assert context["kind"] == "seed", context
    assert texts(said)[-1] == ("agent_message", "crash right "), said
    assert editor.prompt(session, "bravo") == "bravo"
    editor.end()
    assert '"partial"' in tine("path", session, "--json"), "the turn must be marked as partial"


def tools():
    """Thoughts, plans, calls and results are stored as turns and blocks and replayed as such."""
    editor = Editor("tools")
    session = editor.new()
    editor.prompt(session, "tool")
    _, said = editor.load(session)
    kinds = [it["sessionUpdate"] for it in said]
    wanted = ["user_message_chunk", "agent_thought_chunk", "plan", "agent_message_chunk"]
    assert kinds == wanted + ["tool_call", "tool_call_update", "agent_message_chunk"], kinds
    assert said[1]["content"]["text"] == "I should look."
    call, result = said[4], said[5]
    assert (call["kind"], call["rawInput"]) == ("edit", {"path": "/home/me/it"}), call
    assert (result["status"], result["content"][1]["type"]) == ("completed", "diff"), result
    forked, _ = editor.fork(session, said[3]["messageId"])
    assert texts(editor.load(forked)[1])[-1][1] == "Let me look."
    turns = json.loads(tine("path", session, "--json"))["turns"]
    assert [it["role"] for it in turns] == ["user", "assistant", "assistant", "tool", "assistant"]
    for turn in turns:
        source = turn["metadata"]["source_info"]["events"]["source_id"]
        lines = tine("source", "cat", source).splitlines()
        assert all(json.loads(line)["from"] in ("agent", "client") for line in lines), lines
    editor.end()


def secrets():
    """Secrets never reach the store, whole or in chunks, nor does the environment of MCP servers."""
    editor = Editor()
    server = {"name": "s", "command": "/bin/false", "args": [], "env": [{"name": "K", "value": "hunter2-env"}]}
    session = editor.new(mcpServers=[server])
    half = len(SECRET) // 2
    # The agent repeats it in several chunks, none of which contains the whole secret.
    editor.prompt(session, f"key {SECRET} end")
    assert editor.prompt(session, "bravo") == "bravo"
    editor.end()
    stored = whole_store()
    assert SECRET not in stored and SECRET[:half] not in stored and "hunter2" not in stored
    assert "[redacted:anthropic]" in stored
    unredacted = Editor(options=["--no-redact"])
    session = unredacted.new()
    unredacted.prompt(session, "password=hunter3hunter3")
    unredacted.end()
    assert "hunter3hunter3" in whole_store()


def elsewhere():
    """Any agent can continue from any turn, including turns recorded with another agent."""
    first = Editor("tools")
    session = first.new()
    first.prompt(session, "alpha")
    _, said = first.load(session)
    first.prompt(session, "bravo")
    first.end()
    turn = said[-1]["messageId"]
    second = Editor("echo", options=["--from", turn])
    continued, other = second.new(), second.new()
    held = second.context(continued)
    assert "alpha" in held[0] and "bravo" not in held[0], held
    assert second.context(other) == ["context?"], "only the first session must continue from the turn"
    assert texts(second.load(continued)[1])[:2] == texts(said)
    listed = [it["sessionId"] for it in second.ask("session/list", {})["sessions"]]
    assert continued in listed and session not in listed, "a list must contain the sessions of one agent only"
    second.end()


def passes():
    """Unknown methods and their errors pass through, with the session ids translated."""
    editor = Editor()
    session = editor.new()
    for method in ("session/set_mode", "_own/method"):
        try:
            editor.ask(method, {"sessionId": session, "modeId": "x"})
            raise AssertionError("the agent accepted an unknown method")
        except Refused as error:
            assert error.code == -32601, error
    text = "word " * 500
    sent = editor.send("session/prompt", {"sessionId": session, "prompt": [{"type": "text", "text": text}]})
    editor.await_update(session, 0, lambda it: it["sessionUpdate"] == "agent_message_chunk", 60)
    editor.notify("session/cancel", {"sessionId": session})
    assert editor.wait(sent)["stopReason"] == "cancelled"
    editor.ask("session/close", {"sessionId": session})
    for _ in range(2):
        editor.ask("session/delete", {"sessionId": session})
    assert session not in json.dumps(editor.ask("session/list", {}))
    editor.end()


STORIES = [seeds, native_forks, native_loads, recounts, echoes, crashes, tools, secrets, elsewhere, passes]
wanted = os.environ.get("STORIES", "").split()
for story in STORIES:
    if not wanted or story.__name__ in wanted:
        story()
        print(f"  {story.__doc__.splitlines()[0]}")
