"""Checks how an ACP agent forks sessions at messages.

Usage: conformance.py [--timeout S] [--quiet S] [--cwd DIR] [--lenient] [--json] COMMAND...

Each check starts a new session, sends a few prompts, forks, and compares what `session/load`
replays. `must` checks follow the normative words of the proposal for `messageId` on `session/fork`;
`should` checks cover what agents that fork at messages agree on beyond it.
"""

import argparse
import json
import os
import sys
import uuid

from agent_process import AgentProcess, Gone, Refused

UNKNOWN = "01890000-0000-7000-8000-0123456789ab"
SPOKEN = {
    "user_message_chunk": "user",
    "agent_message_chunk": "agent",
    "agent_thought_chunk": "thought",
}
CHECKS = []


class Failed(Exception):
    """A check found a violation."""


class Skipped(Exception):
    """A check does not apply to this agent."""


def check(level, name):
    def enter(function):
        CHECKS.append((level, name, function))
        return function

    return enter


def expect(holds, otherwise):
    if not holds:
        raise Failed(otherwise)


class Message:
    """A message assembled from its chunks."""

    def __init__(self, speaker, number):
        self.speaker, self.id, self.text = speaker, number, ""

    def __eq__(self, other):
        return (self.speaker, self.text) == (other.speaker, other.text)

    def __repr__(self):
        return f"{self.speaker}: {self.text[:20]!r}"


def messages(updates):
    """Assembles chunks into messages; ignores tool calls and other updates."""
    found = []
    for update in updates:
        speaker = SPOKEN.get(update.get("sessionUpdate"))
        if speaker is None:
            continue
        number = update.get("messageId")
        if not found or found[-1].speaker != speaker or found[-1].id != number:
            found.append(Message(speaker, number))
        found[-1].text += (update.get("content") or {}).get("text") or ""
    return found


class Bench:
    """A connection to one agent, with the operations that the checks need."""

    def __init__(self, options):
        self.options = options
        self.agent = AgentProcess(options.command, options.timeout)
        hello = {"protocolVersion": 1, "clientInfo": {"name": "acp-conformance", "version": "1"}}
        hello["clientCapabilities"] = {"fs": {"readTextFile": False, "writeTextFile": False}}
        self.hello = self.agent.ask("initialize", hello)

    def sessions(self):
        return (self.hello.get("agentCapabilities") or {}).get("sessionCapabilities") or {}

    def new(self):
        params = {"cwd": self.options.cwd, "mcpServers": []}
        return self.agent.ask("session/new", params)["sessionId"]

    def prompt(self, session, text):
        """Sends a prompt and returns the messages that the agent streamed."""
        since = self.agent.mark()
        params = {"sessionId": session, "prompt": [{"type": "text", "text": text}]}
        ended = self.agent.ask("session/prompt", params)
        expect(ended.get("stopReason") == "end_turn", f"a prompt returned {ended}")
        return messages(self.agent.seen(session, since))

    def talk(self, exchanges=3):
        """Creates a session with a few exchanges and returns what a load replays."""
        session = self.new()
        for number in range(exchanges):
            self.prompt(session, f"Repeat this word: w{number}{uuid.uuid4().hex[:8]}")
        return session, self.replay(session)

    def replay(self, session):
        if not (self.hello.get("agentCapabilities") or {}).get("loadSession"):
            raise Skipped("the agent cannot load sessions, so the content of a fork is not visible")
        since = self.agent.mark()
        params = {"sessionId": session, "cwd": self.options.cwd, "mcpServers": []}
        self.agent.ask("session/load", params)
        return messages(self.agent.seen(session, since))

    def fork(self, session, at=None, **more):
        params = {"sessionId": session, "cwd": self.options.cwd, "mcpServers": [], **more}
        if at is not None:
            params["messageId"] = at
        return self.agent.ask("session/fork", params)["sessionId"]

    def refused(self, session, at, **more):
        """Forks, expecting an error, and returns it."""
        try:
            forked = self.fork(session, at, **more)
        except Refused as error:
            return error
        held = len(self.replay(forked))
        raise Failed(f"the fork succeeded; it contains {held} messages")


def of(said, speaker, nth):
    """Returns the nth message of a speaker and fails if it has no id."""
    found = [message for message in said if message.speaker == speaker]
    expect(len(found) > nth, f"a load replays only {len(found)} messages of the {speaker}")
    expect(found[nth].id, f"the chunks of the {speaker}'s message carry no messageId")
    return found[nth]


def through(said, message):
    """Returns all messages up to and including `message`."""
    return said[: next(i for i, it in enumerate(said) if it is message) + 1]


def same(held, wanted, what):
    if held == wanted:
        return
    if len(held) > len(wanted) and held[: len(wanted)] == wanted:
        more = len(held) - len(wanted)
        raise Failed(f"{what} contains {more} messages from after the fork point")
    raise Failed(f"{what} contains {held}, expected {wanted}")


@check("must", "capability advertised")
def capability(bench):
    fork = bench.sessions().get("fork")
    expect(isinstance(fork, dict), "sessionCapabilities.fork is not advertised")
    marked = fork.get("atMessageId") or (fork.get("_meta") or {}).get("atMessageId")
    expect(marked is True, f"fork is {fork}, without atMessageId: true")


@check("must", "chunks carry message ids")
def ids(bench):
    session = bench.new()
    streamed = bench.prompt(session, "Say hello.")
    replayed = bench.replay(session)
    for said in (streamed, replayed):
        of(said, "agent", 0)
    agent = [[it.id for it in said if it.speaker == "agent"] for said in (streamed, replayed)]
    expect(agent[0] == agent[1], "a load replays message ids that differ from the streamed ones")


@check("should", "user messages are echoed with ids")
def echo(bench):
    session = bench.new()
    streamed = of(bench.prompt(session, "Say hello."), "user", 0)
    replayed = of(bench.replay(session), "user", 0)
    expect(streamed.id == replayed.id, "a load replays a different id")


@check("must", "inclusive cut at an agent's message")
def inclusive(bench):
    session, said = bench.talk()
    for nth in range(3):
        anchor = of(said, "agent", nth)
        held = bench.replay(bench.fork(session, anchor.id))
        same(held, through(said, anchor), f"a fork at answer {nth + 1} of 3")


@check("must", "no silent full fork")
def guard(bench):
    session, said = bench.talk()
    secret = of(said, "user", 2).text
    held = bench.replay(bench.fork(session, of(said, "agent", 0).id))
    expect(secret not in " ".join(it.text for it in held), "the fork contains later messages")
    expect(len(held) < len(said), "the fork contains the whole session")


@check("must", "a malformed fork point is not taken for a missing one")
def malformed(bench):
    session, _ = bench.talk(1)
    for anchor in (7, ["x"], {"id": "x"}, True, ""):
        bench.refused(session, anchor)


@check("must", "omitted messageId forks the whole session")
def omitted(bench):
    session, said = bench.talk()
    same(bench.replay(bench.fork(session)), said, "a fork without a fork point")


@check("must", "a user's message as fork point, and no reply")
def no_reply(bench):
    session, said = bench.talk()
    anchor = of(said, "user", 1)
    since = bench.agent.mark()
    forked = bench.fork(session, anchor.id)
    def speaks(update):
        return update.get("sessionUpdate") in ("agent_message_chunk", "tool_call")
    replayed = [it for it in through(said, anchor) if it.speaker == "agent"]
    bench.agent.await_update(forked, since, lambda update: False, bench.options.quiet)
    spoken = messages(filter(speaks, bench.agent.seen(forked, since)))
    # An agent may replay messages on a fork, but must not generate any.
    expect(all(it in replayed for it in spoken), f"forking triggered a reply: {spoken}")
    same(bench.replay(forked), through(said, anchor), "a fork at a question")


@check("must", "an unknown message is refused")
def unknown(bench):
    session, _ = bench.talk(1)
    bench.refused(session, UNKNOWN)


@check("should", "an unknown message is -32602 with data.messageId")
def unknown_code(bench):
    session, _ = bench.talk(1)
    error = bench.refused(session, UNKNOWN)
    actual = (error.code, error.data.get("messageId"))
    expect(actual == (-32602, UNKNOWN), f"code and data.messageId are {actual}")


@check("must", "a message of another session is refused")
def foreign(bench):
    session, _ = bench.talk(1)
    _, said = bench.talk(1)
    bench.refused(session, of(said, "agent", 0).id)


@check("must", "a later message of the parent is refused in a fork")
def beyond(bench):
    session, said = bench.talk()
    forked = bench.fork(session, of(said, "agent", 0).id)
    bench.refused(forked, of(said, "agent", 2).id)


@check("should", "a thought as fork point is refused with -32602")
def thought(bench):
    session, said = bench.talk(1)
    thoughts = [it for it in said if it.speaker == "thought"]
    if not thoughts or not thoughts[0].id:
        raise Skipped("the agent sent no thought with an id")
    spoken = [it.id for it in said if it.speaker != "thought"]
    expect(thoughts[0].id not in spoken, "a thought shares its id with a message")
    error = bench.refused(session, thoughts[0].id)
    expect(error.code == -32602, f"the code is {error.code}")


@check("must", "a fork can be prompted at once")
def promptable(bench):
    session, said = bench.talk(2)
    anchor = of(said, "agent", 0)
    forked = bench.fork(session, anchor.id)
    bench.prompt(forked, "Something else, please.")
    held, kept = bench.replay(forked), through(said, anchor)
    expect(held[: len(kept)] == kept, "the fork lost messages that it was created with")
    expect("Something else" in held[len(kept)].text, f"the fork point is followed by {held[len(kept)]}")
    same(bench.replay(session), said, "the parent")


@check("must", "the parent is unchanged and continues")
def parent(bench):
    session, said = bench.talk(2)
    first = bench.fork(session, of(said, "agent", 0).id)
    bench.fork(session)
    bench.prompt(first, "Only in the fork.")
    same(bench.replay(session), said, "the parent")
    bench.prompt(session, "Only in the parent.")
    held = bench.replay(session)
    expect(held[: len(said)] == said, "the parent lost messages")
    fork_holds = " ".join(it.text for it in bench.replay(first))
    expect("Only in the parent" not in fork_holds, "the fork received messages of its parent")


@check("should", "a fork of a fork by an inherited id")
def inherited(bench):
    session, said = bench.talk()
    anchor = of(said, "agent", 0)
    forked = bench.fork(session, of(said, "agent", 1).id)
    bench.prompt(forked, "Deeper.")
    same(bench.replay(bench.fork(forked, anchor.id)), through(said, anchor), "a fork of a fork")


@check("must", "a fork while a turn runs")
def running(bench):
    session, said = bench.talk(1)
    since = bench.agent.mark()
    text = "Repeat all of this: " + " ".join(f"number{n}" for n in range(60))
    block = {"type": "text", "text": text}
    sent = bench.agent.send("session/prompt", {"sessionId": session, "prompt": [block]})
    begun = ("user_message_chunk", "agent_message_chunk", "agent_thought_chunk")
    bench.agent.await_update(
        session, since, lambda it: it.get("sessionUpdate") in begun, bench.options.timeout
    )
    anchor = of(said, "agent", 0)
    forked = bench.fork(session, anchor.id)
    seen = messages(bench.agent.seen(session, since))
    asked = next((it.id for it in seen if it.speaker == "user" and it.id), None)
    try:
        at_question = bench.fork(session, asked) if asked else None
    except Refused:
        at_question = None
    bench.agent.wait(sent)
    same(bench.replay(forked), said, "a fork before the running turn")
    held = bench.replay(session)
    expect(held[: len(said)] == said and len(held) > len(said), "the running turn did not complete")
    if at_question is not None:
        question = next(it for it in held if it.id == asked)
        same(bench.replay(at_question), through(held, question), "a fork at the running question")


@check("should", "conflicting fork points are refused with -32602")
def conflicting(bench):
    session, said = bench.talk(2)
    first, second = of(said, "agent", 0).id, of(said, "agent", 1).id
    error = bench.refused(session, first, _meta={"messageId": second})
    expect(error.code == -32602, f"the code is {error.code}")
    air = {"jetbrains": {"air": {"fork": {"version": 1, "messageId": second}}}}
    bench.refused(session, first, _meta=air)


@check("should", "a fork point under _meta, for clients that drop unknown fields")
def meta(bench):
    session, said = bench.talk(2)
    anchor = of(said, "agent", 0)
    air = {"jetbrains": {"air": {"fork": {"version": 1, "messageId": anchor.id}}}}
    for dialect in ({"messageId": anchor.id}, air):
        held = bench.replay(bench.fork(session, _meta=dialect))
        same(held, through(said, anchor), f"a fork by _meta.{next(iter(dialect))}")


@check("should", "an unknown session is -32002 with data.sessionId")
def unknown_session(bench):
    try:
        bench.fork(UNKNOWN)
    except Refused as error:
        actual = (error.code, error.data.get("sessionId"))
        expect(actual == (-32002, UNKNOWN), f"code and data.sessionId are {actual}")
        return
    raise Failed("forking a nonexistent session succeeded")


def run(bench, function):
    try:
        function(bench)
        return "ok", ""
    except Skipped as why:
        return "skipped", str(why)
    except Failed as why:
        return "failed", str(why)
    except Refused as error:
        return "failed", f"unexpected error: {error}"
    except Gone as error:
        return "failed", str(error)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--timeout", type=float, default=60, help="timeout of one request in seconds")
    parser.add_argument("--quiet", type=float, default=1, help="seconds to wait for a reply that must not come")
    parser.add_argument("--cwd", default=os.getcwd(), help="working directory of the sessions")
    parser.add_argument("--lenient", action="store_true", help="failed `should` checks do not fail the run")
    parser.add_argument("--json", action="store_true", help="print the results as one JSON document")
    parser.add_argument("command", nargs=argparse.REMAINDER, help="command that starts the agent")
    options = parser.parse_args()
    if options.command[:1] == ["--"]:
        options.command.pop(0)
    if not options.command:
        parser.error("expected the command that starts the agent")
    try:
        bench = Bench(options)
    except (OSError, Gone, Refused) as error:
        sys.exit(f"the agent failed to start: {error}")
    results = []
    for level, name, function in CHECKS:
        result, why = run(bench, function)
        results.append({"check": name, "level": level, "result": result, "why": why})
    bench.agent.end()
    if options.json:
        print(json.dumps(results, indent=1))
    else:
        width = max(len(it["check"]) for it in results)
        for it in results:
            line = f"{it['result']:8} {it['level']:7} {it['check']:{width}}  {it['why']}"
            print(line.rstrip())
        counts = {kind: sum(it["result"] == kind for it in results) for kind in ("ok", "failed", "skipped")}
        print(", ".join(f"{count} {kind}" for kind, count in counts.items()))
    count = ("must",) if options.lenient else ("must", "should")
    # A skipped `must` check counts as a failure.
    blind = any(it["result"] == "skipped" and it["level"] == "must" for it in results)
    failed = any(it["result"] == "failed" and it["level"] in count for it in results)
    sys.exit(1 if failed or blind else 0)


if __name__ == "__main__":
    main()
