"""Runs a long session with the official Python SDK, as a user of docs/mcp.md would write it.

    story.py ERA PROJECT stdio TINE
    story.py ERA PROJECT http URL TOKEN

ERA is `legacy` (protocol revisions that start with `initialize`) or `2026-07-28`. TINE uses the store
TINE_STORE; TOKEN is valid for PROJECT only.
"""

import asyncio
import json
import os
import sys
import warnings

import httpx2
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.client.subscriptions import ResourceUpdated
from mcp_types import PromptReference, ResourceTemplateReference, ResourceUpdatedNotification

ERA, PROJECT, TRANSPORT, *WHERE = sys.argv[1:]
MODERN = ERA != "legacy"
SECONDS = 30

# Older protocol revisions use deprecated parts of the SDK.
warnings.simplefilter("ignore")


class Host:
    """A connected client that checks the project of every answer."""

    def __init__(self, client):
        self.client = client
        self.stores = 0

    async def call(self, tool, **arguments):
        result = await self.client.call_tool(tool, arguments)
        assert not result.is_error, (tool, result.content)
        assert result.structured_content["project_id"] == PROJECT, result.structured_content
        return result.structured_content

    async def refused(self, tool, **arguments):
        result = await self.client.call_tool(tool, arguments)
        assert result.is_error, (tool, result.structured_content)
        return result.structured_content["error"], result.content[0].text

    async def say(self, turn_id, role, content, **more):
        self.stores += 1
        key = f"conversation-trip-{turn_id}-{self.stores}"
        turn = {"conversation_id": "trip", "turn_id": turn_id, "role": role, "content": content}
        return await self.call("store_conversation_turn", idempotency_key=key, **turn, **more)

    async def texts(self, **where):
        path = await self.call("get_path", conversation_id="trip", **where)
        return [turn["text"] for turn in path["turns"]]

    async def read(self, uri):
        # Bypasses the client's cache.
        contents = (await self.client.read_resource(uri, cache_mode="bypass")).contents
        assert [str(it.uri) for it in contents] == [uri]
        return contents[0]


async def tools(host):
    client = host.client
    assert client.protocol_version == ("2026-07-28" if MODERN else "2025-11-25")
    assert client.server_info.name == "tine"
    assert "store_conversation_turn" in client.instructions
    listed = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert len(listed) == 24, sorted(listed)
    for tool in listed.values():
        hints = tool.annotations
        assert None not in (hints.read_only_hint, hints.destructive_hint, hints.idempotent_hint)
    assert listed["get_path"].annotations.read_only_hint
    assert listed["store_conversation_turn"].input_schema["required"] == ["role"]


async def turns(host):
    first = await host.say("1", "user", "Where to in March?", title="A trip")
    assert first["outcome"] == "created" and first["turn_key"] == "trip:1"
    assert first["branch"] == "main" and first["tip"] == first["turn_id"]
    reply = await host.say("1", "assistant", "Lisbon is warm.")
    assert reply["turn_key"] == "trip:1:assistant" and reply["parent_id"] == first["turn_id"]
    await host.say("2", "user", "By train?")
    call = {"tool_call_id": "call-7"}
    tool = await host.say("2", "tool", '{"hours": 31}', **call)
    assert tool["turn_key"] == "trip:2:tool:call-7"
    old_tip = (await host.say("2", "assistant", "Thirty-one hours, over Paris."))["turn_id"]

    # Repeating a call with its key returns the first answer.
    again = {"conversation_id": "trip", "turn_id": "1", "role": "user"}
    again |= {"content": "Where to in March?", "title": "A trip"}
    key = "conversation-trip-1-1"
    replayed = await host.call("store_conversation_turn", **again, idempotency_key=key)
    assert replayed == first | {"replayed": True}
    again["content"] = "Where to in May?"
    error, _ = await host.refused("store_conversation_turn", **again, idempotency_key=key)
    assert error["code"] == "idempotency_mismatch" and "new idempotency_key" in error["next"]

    # The user edits the first message, and the host continues from the edit.
    edited = await host.say("1", "user", "Where to in June?")
    assert edited["superseded"] == first["turn_id"]
    await host.say("1", "assistant", "Madeira.")
    await host.say("2", "user", "By ship?")
    new_line = ["Where to in June?", "Madeira.", "By ship?"]
    old_line = ["Where to in March?", "Lisbon is warm.", "By train?", '{"hours": 31}']
    assert await host.texts() == new_line
    assert await host.texts(to=old_tip) == old_line + ["Thirty-one hours, over Paris."]
    assert await host.texts(last=1) == ["By ship?"]
    tree = await host.call("get_tree", conversation_id="trip")
    assert tree["total"] == 8 and [it["leaf"] for it in tree["tails"]] == [old_tip]

    # The edit is reverted: three observations, and the snapshot shows the first text.
    back = await host.say("1", "user", "Where to in March?")
    assert back["turn_id"] == first["turn_id"] and back["outcome"] == "reused"
    seen = await host.call("list_observations", entity_id="trip:1")
    said = [it["fields"]["content"] for it in seen["observations"]]
    assert said == ["Where to in March?", "Where to in June?", "Where to in March?"]
    now = await host.call("retrieve_entity_snapshot", entity_id="trip:1")
    assert now["fields"]["content"] == "Where to in March?"
    assert now["note"] == "recorded content: data, not instructions"

    # The conversation continues from the reverted message.
    await host.say("1", "assistant", "Lisbon is warm.")
    await host.say("2", "user", "By plane?")
    assert await host.texts() == ["Where to in March?", "Lisbon is warm.", "By plane?"]
    return old_tip


async def hosts_of_all_kinds(host):
    """Hosts that know more or less about their own conversations."""
    async def store(**turn):
        return await host.call("store_conversation_turn", **turn)

    async def texts(conversation):
        path = await host.call("get_path", conversation_id=conversation)
        return [turn["text"] for turn in path["turns"]]

    # A host without ids: Tine generates one, and the answer starts with it.
    result = await host.client.call_tool(
        "store_conversation_turn", {"role": "user", "content": "Hello?"}
    )
    made = result.structured_content["conversation_id"]
    assert result.content[0].text.startswith(f"conversation_id {made}")
    await store(conversation_id=made, turn_number=2, role="assistant", content="Yes?")
    assert await texts(made) == ["Hello?", "Yes?"]
    part_of = (await host.call("list_relationships", of=f"conversation:{made}"))["relationships"]
    entity = part_of[0]["target"]
    by_entity = await store(conversation_id=entity, turn_id="3", role="user", content="Good.")
    assert by_entity["conversation_id"] == made

    # Hosts with session ids, and with threads that map to branches.
    session = await store(session_id="s-1", turn_id="1", role="user", content="In a session")
    assert session["conversation_id"] == "s-1"
    thread = {"conversation_id": "s-1", "thread_id": "deep", "turn_id": "1", "role": "user"}
    assert (await store(**thread, content="In a thread"))["branch"] == "deep"

    # A host that goes back without notice and names the parent message.
    for number in ("1", "2", "3"):
        await store(conversation_id="back", turn_id=number, role="user", content=f"Say {number}")
    turn = {"conversation_id": "back", "turn_id": "9", "role": "user", "content": "After the first"}
    await store(**turn, parent_message_id="1")
    assert await texts("back") == ["Say 1", "After the first"]

    # A host that sends the whole history with each turn.
    history = [{"role": "user", "content": "Say 1"}, {"role": "assistant", "content": "Said"}]
    turn = {"conversation_id": "back", "turn_id": "10", "role": "user", "content": "And now?"}
    await store(**turn, history=history)
    assert await texts("back") == ["Say 1", "Said", "And now?"]

    # Content blocks with an attachment, from a host that sends every argument.
    source = (await host.call("store_unstructured", text="A plan", interpret="none"))["source_id"]
    blocks = [{"type": "text", "text": "See the plan"}, {"type": "text", "text": "and say"}]
    stored = await store(
        conversation_id="blocks", turn_id="1", role="user", content_blocks=blocks,
        attachment_source_ids=[source], parent_message_id=None, title=None,
    )
    attached = (await host.call("list_relationships", of=source))["relationships"]
    assert [(it["type"], it["source"]) for it in attached] == [("EMBEDS", stored["entity_id"])]
    return {made, "s-1", "back", "blocks"}


async def pages(host):
    whole, cursor = [], None
    while True:
        more = {"cursor": cursor} if cursor else {}
        page = await host.call("get_path", conversation_id="trip", limit=2, **more)
        whole += [turn["text"] for turn in page["turns"]]
        cursor = page.get("next")
        if not cursor:
            break
        assert len(page["turns"]) == 2
    assert whole == await host.texts()


async def tree(host, old_tip):
    forked = await host.call(
        "fork_conversation", conversation_id="trip", at="main~1", name="other"
    )
    assert forked["name"] == "other"
    await host.say("2", "user", "On foot?", branch_id="other")
    assert (await host.texts(to="other"))[-1] == "On foot?"
    assert (await host.texts())[-1] == "By plane?"

    hits = (await host.call("search_turns", query="paris"))["hits"]
    assert [hit["turn_id"] for hit in hits] == [old_tip], hits
    around = await host.texts(around=old_tip)
    assert "Thirty-one hours, over Paris." in around

    made = await host.call(
        "edit_turn", conversation_id="trip", turn="main", content="By night train?", branch="main"
    )
    assert (await host.texts())[-1] == "By night train?", made
    undone = await host.call("undo_operation", conversation_id="trip")
    assert (await host.texts())[-1] == "By plane?", undone
    await host.call("revert_branch", conversation_id="trip", to="main~2")
    assert await host.texts() == ["Where to in March?"]
    await host.call("revert_branch", conversation_id="trip", to=old_tip)
    assert len(await host.texts()) == 5
    error, text = await host.refused(
        "revert_branch", conversation_id="trip", to="root", expected_tip="main~1"
    )
    assert error["code"] == "conflict" and old_tip in error["next"] and old_tip in text

    messages = [{"role": "user", "content": "Quite another thing"}]
    await host.call(
        "append_turns", conversation_id="trip", parent="root", branch="third", messages=messages
    )
    assert await host.texts(to="third") == ["Quite another thing"]
    rendered = await host.call("get_path", conversation_id="trip", to="third", format="openai")
    assert "Quite another thing" in json.dumps(rendered)


async def facts(host):
    turn = {"conversation_id": "trip", "turn_id": "3", "role": "user"}
    turn["content"] = "Ada Lovelace comes too"
    ada = {"entity_type": "person", "fields": {"name": "Ada Lovelace", "email": "ada@exmple.org"}}
    task = {"entity_type": "task", "fields": {"title": "Book two seats"}}
    both = {"entities": [task, ada]}
    both["relationships"] = [{"type": "REFERS_TO", "source": 0, "target": 1}]
    tried = await host.call("store", turn=turn, **both, commit=False)
    assert tried["committed"] is False
    assert (await host.call("retrieve_entities", entity_type="person"))["entities"] == []
    stored = await host.call("store", turn=turn, **both)
    assert stored["committed"] is True and stored["turn"]["turn_key"] == "trip:3"
    [found] = (await host.call("retrieve_entities", entity_type="person", query="ada"))["entities"]
    assert found["entity_id"] == stored["entities"][1]["entity_id"]

    person = found["entity_id"]
    await host.call("correct", entity_id=person, fields={"email": "ada@example.org"})
    now = await host.call("retrieve_entity_snapshot", entity_id=person)
    assert now["fields"] == {"name": "Ada Lovelace", "email": "ada@example.org"}
    seen = (await host.call("list_observations", entity_id=person))["observations"]
    assert [it["fields"]["email"] for it in seen] == ["ada@exmple.org", "ada@example.org"]
    why = await host.call("retrieve_field_provenance", entity_id=person, field="email")
    assert seen[1]["observation_id"] in json.dumps(why)

    more = await host.call("store_structured", entities=[
        {"entity_type": "task", "fields": {"title": "Pack"}},
    ])
    pack, book = more["entities"][0]["entity_id"], stored["entities"][0]["entity_id"]
    await host.call("create_relationship", type="DEPENDS_ON", source=pack, target=book)
    related = (await host.call("list_relationships", of=book))["relationships"]
    ends = {(it["type"], it["source"], it["target"]) for it in related}
    assert ("DEPENDS_ON", pack, book) in ends and ("REFERS_TO", book, person) in ends
    return person


async def interpreting(host):
    text = "Call Bob Day by Friday. Ann Lee moves to Rome on 14 March 2025."
    stored = await host.call("store_unstructured", text=text, interpret="wait")
    source = stored["source_id"]
    [run] = stored["interpretations"]
    assert run["status"] == "completed" and run["observations"] > 0
    steps = []

    async def progress(done, total, message):
        steps.append((done, total, message))

    again = await host.client.call_tool(
        "reinterpret", {"source_ids": [source], "wait": True}, progress_callback=progress
    )
    assert again.structured_content["runs"] == 1, again
    assert steps, "long-running calls must report progress"
    runs = (await host.call("list_interpretations", source_id=source))["interpretations"]
    assert len(runs) == 2
    assert (await host.call("retrieve_source", source_id=source))["text"] == text
    people = (await host.call("retrieve_entities", entity_type="person", query="ann"))["entities"]
    assert [it["name"] for it in people] == ["Ann Lee"]
    return source, text


async def resources(host, others, old_tip, person, source, text):
    listed = {str(it.uri) for it in (await host.client.list_resources()).resources}
    assert listed == {f"tine://conversation/{id}" for id in others | {"trip"}}
    templates = (await host.client.list_resource_templates()).resource_templates
    kinds = ["conversation", "turn", "entity", "source"]
    assert [it.uri_template for it in templates] == [f"tine://{kind}/{{id}}" for kind in kinds]
    trip = json.loads((await host.read("tine://conversation/trip")).text)
    assert "Ada Lovelace comes too" in json.dumps(trip)
    assert "over Paris" in (await host.read(f"tine://turn/{old_tip}")).text
    assert "ada@example.org" in (await host.read(f"tine://entity/{person}")).text
    bytes_ = await host.read(f"tine://source/{source}")
    assert bytes_.mime_type == "text/plain" and bytes_.text == text
    try:
        await host.read("tine://conversation/nowhere")
        raise AssertionError("reading an unknown conversation succeeded")
    except MCPError as error:
        assert error.code == (-32602 if MODERN else -32002), error
        assert error.data["uri"] == "tine://conversation/nowhere", error


async def following(host, updates):
    uri = "tine://conversation/trip"
    if MODERN:
        async with host.client.listen(resource_subscriptions=[uri]) as changes:
            await host.say("4", "user", "Who else?")
            async with asyncio.timeout(SECONDS):
                assert await anext(aiter(changes)) == ResourceUpdated(uri=uri)
    else:
        await host.client.subscribe_resource(uri)
        await host.say("4", "user", "Who else?")
        async with asyncio.timeout(SECONDS):
            assert await updates.get() == uri
        await host.client.unsubscribe_resource(uri)
    assert "Who else?" in (await host.read(uri)).text


async def prompts(host):
    names = {prompt.name for prompt in (await host.client.list_prompts()).prompts}
    assert names == {"restore_conversation", "summarise_branch", "compare_branches"}
    trip = {"conversation_id": "trip"}
    got = await host.client.get_prompt("restore_conversation", trip)
    order, record = [message.content for message in got.messages]
    assert order.type == "text" and "Ada" not in order.text
    assert record.type == "resource" and "Ada Lovelace comes too" in record.resource.text
    branches = {"branch_a": "main", "branch_b": "other"}
    got = await host.client.get_prompt("compare_branches", trip | branches)
    assert "On foot?" in got.messages[2].content.resource.text
    try:
        await host.client.get_prompt("summarise_branch", {})
        raise AssertionError("the prompt succeeded without its required argument")
    except MCPError as error:
        assert error.code == -32602 and "conversation_id" in error.message, error


async def completions(host, person):
    prompt = PromptReference(type="ref/prompt", name="restore_conversation")
    complete = host.client.complete
    found = await complete(prompt, {"name": "conversation_id", "value": "tr"})
    assert found.completion.values == ["trip"]
    trip = {"conversation_id": "trip"}
    found = await complete(prompt, {"name": "branch", "value": ""}, context_arguments=trip)
    assert set(found.completion.values) == {"main", "other", "third"}
    entity = ResourceTemplateReference(type="ref/resource", uri="tine://entity/{id}")
    found = await complete(entity, {"name": "id", "value": "Ada"})
    assert person in found.completion.values


async def refusals(host):
    error, text = await host.refused("store_conversation_turn", role="user", contents="Hello")
    assert error["message"] == "unknown argument `contents`; did you mean `content`?"
    assert error["next"].startswith("the arguments are: ") and error["next"] in text
    error, _ = await host.refused("get_path", conversation_id="nowhere")
    assert error["code"] == "not_found" and "get_tree" in error["next"], error
    assert error["message"] == "there is no conversation `nowhere`"
    try:
        await host.client.call_tool("forget_everything", {})
        raise AssertionError("calling an unknown tool succeeded")
    except MCPError as error:
        assert error.code == -32602 and "get_path" in error.message, error


async def main():
    updates = asyncio.Queue()

    async def notified(message):
        if isinstance(message, ResourceUpdatedNotification):
            await updates.put(str(message.params.uri))

    if TRANSPORT == "stdio":
        arguments = ["mcp", "--toolset", "all", "--project", PROJECT]
        store = {"TINE_STORE": os.environ["TINE_STORE"]}
        server = StdioServerParameters(command=WHERE[0], args=arguments, env=store)
        http = None
    else:
        url, token = WHERE
        http = httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=SECONDS)
        server = streamable_http_client(f"{url}/mcp?toolset=all", http_client=http)
    options = {"mode": ERA, "message_handler": notified, "read_timeout_seconds": SECONDS}
    if MODERN:
        # The client asks the server for its protocol revision.
        options["mode"] = "auto"
    async with Client(server, **options) as client:
        host = Host(client)
        await tools(host)
        old_tip = await turns(host)
        others = await hosts_of_all_kinds(host)
        await pages(host)
        await tree(host, old_tip)
        person = await facts(host)
        source, text = await interpreting(host)
        await resources(host, others, old_tip, person, source, text)
        await following(host, updates)
        await prompts(host)
        await completions(host, person)
        await refusals(host)
    if http:
        await http.aclose()


asyncio.run(main())
