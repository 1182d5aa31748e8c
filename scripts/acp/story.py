"""Runs a whole session with the official Python SDK.

    story.py AGENT...
"""

import asyncio
import os
import sys

from acp import RequestError, spawn_agent_process, text_block
from acp.schema import AgentMessageChunk, UserMessageChunk

COMMAND = sys.argv[1:]
CWD = os.getcwd()


class Listener:
    """Collects session updates."""

    def __init__(self):
        self.updates = []

    async def session_update(self, session_id, update, **_):
        self.updates.append((session_id, update))

    def on_connect(self, _):
        pass

    def said(self, session):
        """Returns the messages since the last call, as (speaker, message id, text)."""
        seen, self.updates = self.updates, []
        messages = []
        for where, update in seen:
            assert where == session, (where, session)
            if not isinstance(update, AgentMessageChunk | UserMessageChunk):
                continue
            speaker = "user" if isinstance(update, UserMessageChunk) else "agent"
            number = update.message_id
            assert number, "every chunk must have a message id"
            if not messages or messages[-1][1] != number:
                messages.append((speaker, number, ""))
            messages[-1] = (speaker, number, messages[-1][2] + update.content.text)
        return messages


async def refused(asking, code):
    try:
        await asking
    except RequestError as error:
        assert error.code == code, error
        return error
    raise AssertionError("the request succeeded")


async def story(agent, heard):
    hello = await agent.initialize(protocol_version=1)
    can = hello.agent_capabilities.session_capabilities
    assert can.fork.field_meta == {"atMessageId": True}, can.fork

    async def prompt(session, text):
        ended = await agent.prompt(session_id=session, prompt=[text_block(text)])
        assert ended.stop_reason == "end_turn", ended
        said = heard.said(session)
        assert [it[0] for it in said] == ["user", "agent"], said
        assert said[0][2] == text
        return said

    async def load(session):
        await agent.load_session(cwd=CWD, session_id=session, mcp_servers=[])
        return heard.said(session)

    session = (await agent.new_session(cwd=CWD, mcp_servers=[])).session_id
    first = await prompt(session, "Where to in March?")
    second = await prompt(session, "And in April?")

    # The SDK moves fields outside the schema to `_meta`.
    forked = await agent.fork_session(session_id=session, cwd=CWD, messageId=first[1][1])
    fork = forked.session_id
    other = await prompt(fork, "And in May?")
    assert await load(session) == first + second
    assert await load(fork) == first + other
    whole = await agent.fork_session(session_id=session, cwd=CWD)
    assert await load(whole.session_id) == first + second

    asking = agent.fork_session(session_id=session, cwd=CWD, messageId=other[0][1])
    error = await refused(asking, -32602)
    assert error.data["messageId"] == other[0][1], error.data

    sessions = {it.session_id: it for it in (await agent.list_sessions(cwd=CWD)).sessions}
    assert sessions[session].title == "Where to in March?"
    assert sessions[fork].cwd == CWD

    await agent.close_session(session_id=session)
    await refused(agent.prompt(session_id=session, prompt=[text_block("closed")]), -32002)
    await agent.resume_session(cwd=CWD, session_id=session)
    assert heard.said(session) == [], "a resume must not replay messages"
    await prompt(session, "And in June?")

    running = asyncio.create_task(
        agent.prompt(session_id=session, prompt=[text_block("word " * 500)])
    )
    while not heard.updates:
        await asyncio.sleep(0.01)
    await agent.cancel(session_id=session)
    assert (await running).stop_reason == "cancelled"

    # The SDK has no method for `session/delete` yet.
    for gone in (fork, fork, session):
        await agent._conn.send_request("session/delete", {"sessionId": gone})
    left = [it.session_id for it in (await agent.list_sessions()).sessions]
    assert session not in left and fork not in left


async def main():
    heard = Listener()
    environment = dict(os.environ)
    async with spawn_agent_process(heard, *COMMAND, env=environment) as (agent, _):
        await asyncio.wait_for(story(agent, heard), 60)


asyncio.run(main())
