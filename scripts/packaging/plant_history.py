"""Plants the history of three programs in a home folder, as a new user would have it:
`plant_history.py HOME`. Prints the first question of each conversation."""

import json
import pathlib
import sys
import zipfile

home = pathlib.Path(sys.argv[1])
FOLDER = "/home/ada/bakery"


def lines(path, records):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in records))


def claude_code(session, question, answer, day):
    common = {
        "isSidechain": False, "userType": "external", "cwd": FOLDER, "sessionId": session,
        "version": "2.1.4", "gitBranch": "main"}
    reply = {
        "id": f"msg_{session[:8]}", "type": "message", "role": "assistant", "model": "claude-opus-4-6",
        "content": [{"type": "text", "text": answer}], "usage": {"input_tokens": 900, "output_tokens": 40}}
    lines(home / f".claude/projects/-home-ada-bakery/{session}.jsonl", [
        {**common, "parentUuid": None, "uuid": f"{session}-1", "timestamp": f"{day}T10:00:01.000Z",
         "type": "user", "message": {"role": "user", "content": question}},
        {**common, "parentUuid": f"{session}-1", "uuid": f"{session}-2", "timestamp": f"{day}T10:00:09.000Z",
         "type": "assistant", "message": reply}])
    return question


def codex(session, question, answer, day):
    def said(role, kind, text):
        return {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}

    time = f"{day}T09:00:00Z"
    lines(home / f".codex/sessions/{day.replace('-', '/')}/rollout-{day}T09-00-00-{session}.jsonl", [
        {"timestamp": time, "type": "session_meta", "payload": {
            "id": session, "timestamp": time, "cwd": FOLDER, "originator": "codex_cli",
            "cli_version": "0.150.0", "model_provider": "openai"}},
        {"timestamp": time, "type": "turn_context", "payload": {"cwd": FOLDER, "model": "gpt-5-codex"}},
        {"timestamp": time, "type": "response_item", "payload": said("user", "input_text", question)},
        {"timestamp": time, "type": "response_item", "payload": said("assistant", "output_text", answer)}])
    return question


def chatgpt(title, question, answer):
    def node(name, parent, children, role=None, text=None, time=None):
        message = role and {
            "id": name, "author": {"role": role}, "create_time": time, "weight": 1.0, "recipient": "all",
            "content": {"content_type": "text", "parts": [text]}, "metadata": {}}
        return {"id": name, "parent": parent, "children": children, "message": message}

    conversation = {
        "id": "c-0001", "conversation_id": "c-0001", "title": title, "current_node": "a1",
        "create_time": 1767000000.0, "update_time": 1767000009.0,
        "mapping": {
            "root": node("root", None, ["q1"]),
            "q1": node("q1", "root", ["a1"], "user", question, 1767000001.0),
            "a1": node("a1", "q1", [], "assistant", answer, 1767000009.0)}}
    path = home / "Downloads/chatgpt-export.zip"
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("conversations.json", json.dumps([conversation]))
        archive.writestr("user.json", json.dumps({"id": "user-1"}))
    return question


print(claude_code("5e550001-0000-4000-8000-000000000001", "Why does the oven timer drift?",
                  "It counts loop iterations instead of reading the clock.", "2026-01-05"))
print(claude_code("5e550002-0000-4000-8000-000000000002", "Add a test for rye dough",
                  "I added one that weighs flour and water.", "2026-01-06"))
print(codex("0aaa0000-0000-7000-8000-00000000000a", "Rename the kneading module",
            "Renamed, and all imports follow.", "2026-02-03"))
print(chatgpt("Sourdough starter", "How long does a sourdough starter keep in the fridge?", "About a week unfed."))
