"""Runs the session of `story.py` with the Inspector's command line, as far as that allows.

Every call is a separate process, so only the store keeps state between them.

    inspector.py INSPECTOR ERA PROJECT stdio TINE
    inspector.py INSPECTOR ERA PROJECT http URL TOKEN

ERA is `legacy` or `modern`, as the Inspector calls them.
"""

import json
import os
import subprocess
import sys

INSPECTOR, ERA, PROJECT, TRANSPORT, *WHERE = sys.argv[1:]
TRIP = {"conversation_id": "trip"}


def command(method, *more):
    begin = ["node", INSPECTOR, "--cli", "--format", "json", "--protocol-era", ERA]
    begin += ["--method", method]
    if TRANSPORT == "stdio":
        server = ["-e", f"TINE_STORE={os.environ['TINE_STORE']}", "--", WHERE[0], "mcp"]
        server += ["--toolset", "all", "--project", PROJECT]
    else:
        url, token = WHERE
        server = ["--header", f"Authorization: Bearer {token}", "--", f"{url}/mcp?toolset=all"]
    return begin + list(more) + server


def run(method, *more):
    return subprocess.run(
        command(method, *more), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60
    )


def ask(method, *more):
    done = run(method, *more)
    assert done.returncode == 0, (method, more, done.stdout, done.stderr)
    return json.loads(done.stdout)["result"]


def call(tool, **arguments):
    result = ask("tools/call", "--tool-name", tool, "--tool-args-json", json.dumps(arguments))
    assert not result.get("isError"), (tool, result)
    assert result["structuredContent"]["project_id"] == PROJECT
    return result["structuredContent"]


def say(turn_id, role, content):
    turn = {"turn_id": turn_id, "role": role, "content": content}
    return call("store_conversation_turn", **TRIP, **turn)


def texts(**where):
    return [turn["text"] for turn in call("get_path", **TRIP, **where)["turns"]]


listed = run("tools/list", "--strict")
assert listed.returncode == 0, listed.stderr
assert "warn" not in listed.stderr.lower(), f"schemas that some hosts reject: {listed.stderr}"
assert len(json.loads(listed.stdout)["result"]["tools"]) == 24

first = say("1", "user", "Where to in March?")
old_tip = say("1", "assistant", "Lisbon is warm.")["turn_id"]
edited = say("1", "user", "Where to in June?")
assert edited["superseded"] == first["turn_id"]
say("1", "assistant", "Madeira.")
assert texts() == ["Where to in June?", "Madeira."]
assert texts(to=old_tip) == ["Where to in March?", "Lisbon is warm."]
call("fork_conversation", **TRIP, at=old_tip, name="other")
assert [hit["turn_id"] for hit in call("search_turns", query="lisbon")["hits"]] == [old_tip]
ada = {"entity_type": "person", "fields": {"name": "Ada Lovelace", "email": "ada@exmple.org"}}
person = call("store", entities=[ada])["entities"][0]["entity_id"]
call("correct", entity_id=person, fields={"email": "ada@example.org"})
now = call("retrieve_entity_snapshot", entity_id=person)
assert now["fields"]["email"] == "ada@example.org"
source = call("store_unstructured", text="Ann Lee moves to Rome.", interpret="wait")["source_id"]
assert call("reinterpret", source_ids=[source], wait=True)["runs"] == 1

uri = "tine://conversation/trip"
assert [it["uri"] for it in ask("resources/list")["resources"]] == [uri]
assert len(ask("resources/templates/list")["resourceTemplates"]) == 4
[read] = ask("resources/read", "--uri", uri)["contents"]
assert read["uri"] == uri and "Madeira." in read["text"]
[read] = ask("resources/read", "--uri", f"tine://source/{source}")["contents"]
assert read["text"] == "Ann Lee moves to Rome."
names = {prompt["name"] for prompt in ask("prompts/list")["prompts"]}
assert names == {"restore_conversation", "summarise_branch", "compare_branches"}
chosen = ["--prompt-args", "conversation_id=trip", "branch=other"]
messages = ask("prompts/get", "--prompt-name", "restore_conversation", *chosen)["messages"]
assert "Lisbon is warm." in messages[1]["content"]["resource"]["text"]

wrong = json.dumps({"role": "user", "contents": "Hello"})
refused = run("tools/call", "--tool-name", "store_conversation_turn", "--tool-args-json", wrong)
assert refused.returncode != 0
assert "did you mean `content`?" in refused.stdout + refused.stderr, (refused.stdout, refused.stderr)
assert run("tools/call", "--tool-name", "forget_everything").returncode != 0
