//! Every route that changes something, on its way to an answer.

use serde_json::{Value, json};

use crate::harness::Served;

#[test]
fn appending_reuses_existing_turns() {
    let served = Served::new();
    let (_, answer) = served.trip();
    let list = json!({"parent": "root", "messages": [
        {"role": "user", "content": "When?"},
        {"role": "assistant", "content": "Late March"},
        {"role": "user", "content": "And where?"},
    ]});
    let made = served.post("/api/v1/conversations/trip/turns", list.clone()).expect(201).json();
    let outcomes: Vec<_> =
        made["turns"].as_array().unwrap().iter().map(|it| it["outcome"].clone()).collect();
    assert_eq!(outcomes, ["reused", "reused", "created"]);
    assert_eq!(made["turns"][1]["turn_id"], answer);
    assert_eq!(made["tip"], made["turns"][2]["turn_id"]);
    // Once more: nothing is made, and the status says so.
    served.post("/api/v1/conversations/trip/turns", list).expect(200);
}

#[test]
fn resending_a_long_history_appends_only_the_new_message() {
    let served = Served::new();
    served.post("/api/v1/conversations", json!({"conversation_id": "long"})).expect(201);
    let said = |number: usize| {
        let role = if number.is_multiple_of(2) { "user" } else { "assistant" };
        json!({"role": role, "content": format!("message {number} {}", "x".repeat(200))})
    };
    let mut messages: Vec<Value> = (0..500).map(said).collect();
    for number in 500..505 {
        messages.push(said(number));
        let body = json!({"parent": "root", "messages": messages});
        let made = served.post("/api/v1/conversations/long/turns", body).expect(201).json();
        let turns = made["turns"].as_array().unwrap();
        let created = turns.iter().filter(|it| it["outcome"] == "created").count();
        assert_eq!(created, if number == 500 { 501 } else { 1 });
    }
    let all = served.get("/api/v1/conversations/long/turns").expect(200).json();
    assert_eq!(all["turns"].as_array().map(Vec::len), Some(505));
}

#[test]
fn a_conversation_is_patched_archived_derived_and_purged() {
    let served = Served::new();
    served.trip();
    let at = "/api/v1/conversations/trip";
    let patched = served.patch(at, json!({"title": "Tokyo", "metadata": {"n": 1}})).expect(200);
    assert_eq!(patched.text("/title"), "Tokyo");
    served.post(&format!("{at}/archive"), json!({})).expect(200);
    let listed = served.get("/api/v1/conversations").expect(200).json();
    assert_eq!(listed["items"], json!([]));
    let hidden = served.get("/api/v1/conversations?archived=true").expect(200).json();
    assert_eq!(hidden["items"][0]["archived"], true);
    served.post(&format!("{at}/archive"), json!({"archived": false})).expect(200);
    let derive = json!({"system_prompt": "Be long.", "at": "main", "conversation_id": "long"});
    let derived = served.post(&format!("{at}/derive"), derive.clone()).expect(201);
    assert_eq!(derived.text("/conversation/conversation_id"), "long");
    served.post(&format!("{at}/derive"), derive).expect(200);
    // Erasing asks twice: first for the word that confirms it.
    let asked = served.post(&format!("{at}/purge"), json!({})).expect(200);
    let confirm = asked.text("/confirm");
    served.post(&format!("{at}/purge"), json!({"confirm": confirm})).expect(200);
    assert_eq!(served.get(at).expect(200).json()["purged"], true);
    assert_eq!(served.send("POST", "/api/v1/verify", None).expect(200).json()["ok"], true);
}

#[test]
fn a_turn_is_forked_edited_split_deleted_and_restored() {
    let served = Served::new();
    let (question, answer) = served.trip();
    let turn = format!("/api/v1/turns/{answer}");
    let forked = served.post(&format!("{turn}/fork"), json!({"name": "other"})).expect(201);
    assert_eq!(forked.text("/tip"), answer);
    let before = json!({"name": "before", "inclusive": false});
    let before = served.post(&format!("{turn}/fork"), before).expect(201);
    assert_eq!(before.text("/tip"), question);
    let edit = json!({"content": "Early April", "branch": "main"});
    let edited = served.post(&format!("{turn}/edit"), edit.clone()).expect(201);
    assert_eq!(edited.text("/turn/edited_from"), answer);
    served.post(&format!("{turn}/edit"), edit).expect(200);
    let split = served.post(&format!("{turn}/split"), json!({"offset": 5})).expect(200);
    assert_eq!(split.json()["left"]["content"][0]["text"], "Late ");
    let preview = served.delete(&format!("/api/v1/turns/{question}?dry_run=true")).expect(200);
    assert_eq!(preview.json()["dry_run"], true);
    served.delete(&format!("/api/v1/turns/{question}")).expect(200);
    let shown = served.get(&format!("/api/v1/turns/{question}")).expect(200);
    assert_eq!(shown.text("/presence"), "deleted");
    let latest = "/api/v1/operations/latest";
    served.post(&format!("{latest}/undo?conversation_id=trip"), json!({})).expect(200);
    let shown = served.get(&format!("/api/v1/turns/{question}")).expect(200);
    assert_eq!(shown.text("/presence"), "live");
    served.post(&format!("{latest}/redo?conversation_id=trip"), json!({})).expect(200);
}

#[test]
fn a_turn_deleted_alone_leaves_its_children_with_its_parent() {
    let served = Served::new();
    let (question, answer) = served.trip();
    served.delete(&format!("/api/v1/turns/{question}?mode=reparent")).expect(200);
    let shown = served.get(&format!("/api/v1/turns/{answer}")).expect(200).json();
    assert_eq!(shown["parent_id"], Value::Null);
    assert_eq!(shown["depth"], 2);
}

#[test]
fn a_purged_turn_keeps_its_hash() {
    let served = Served::new();
    let (question, _) = served.trip();
    let path = format!("/api/v1/turns/{question}");
    let hash = served.get(&path).expect(200).text("/turn_hash");
    let asked = served.post(&format!("{path}/purge"), json!({})).expect(200);
    let confirm = json!({"confirm": asked.text("/confirm")});
    served.post(&format!("{path}/purge"), confirm).expect(200);
    let left = served.get(&path).expect(200).json();
    assert_eq!((&left["content"], &left["turn_hash"]), (&Value::Null, &json!(hash)));
}

#[test]
fn titles_tags_and_custom_data_are_updated() {
    let served = Served::new();
    let (question, _) = served.trip();
    let path = format!("/api/v1/turns/{question}/metadata");
    let patch = json!({"title": "Q", "add_tags": ["a", "b"], "custom_data": {"x": [1]}});
    served.patch(&path, patch).expect(200);
    let patch = json!({"remove_tags": ["a"], "custom_data": null});
    let shown = served.patch(&path, patch).expect(200).json();
    assert_eq!(shown["metadata"], json!({"title": "Q", "tags": ["b"]}));
    served.patch(&path, json!({"title": "R"})).refused(409, "conflict");
    served.patch(&path, json!({"title": "R", "force": true})).expect(200);
}

#[test]
fn bookmarks_are_set_moved_and_deleted() {
    let served = Served::new();
    let (question, answer) = served.trip();
    let at = "/api/v1/bookmarks/here";
    served.put(at, json!({"turn": question})).expect(200);
    served.put(at, json!({"turn": "main", "conversation_id": "trip"})).expect(200);
    assert_eq!(served.get(at).expect(200).text("/turn_id"), answer);
    assert_eq!(served.get("/api/v1/bookmarks").expect(200).text("/items/0/name"), "here");
    assert_eq!(served.delete(at).expect(200).text("/turn_id"), answer);
    served.get(at).refused(404, "not_found");
    served.delete(at).refused(404, "not_found");
}

#[test]
fn a_name_with_a_slash_works_in_a_path() {
    let served = Served::new();
    served.post("/api/v1/conversations", json!({"conversation_id": "a/b c"})).expect(201);
    served.say("a%2Fb%20c", "hello").expect(201);
    assert_eq!(
        served.get("/api/v1/conversations/a%2Fb%20c").expect(200).text("/conversation_id"),
        "a/b c"
    );
}

#[test]
fn messages_of_providers_are_accepted_alone_and_in_lists() {
    const TURNS: &str = "/api/v1/conversations/trip/turns";
    let served = Served::new();
    served.trip();
    let calls = json!([{"id": "c1", "function": {"name": "f", "arguments": "{\"x\":1}"}}]);
    let legacy = json!({"role": "assistant", "content": null, "tool_calls": calls});
    let anthropic = json!({"role": "assistant", "content": [
        {"type": "tool_use", "id": "c1", "name": "f", "input": {"x": 1}}]});
    let canonical = json!([{"type": "tool-use", "id": "c1", "name": "f", "parameters": {"x": 1}}]);
    for message in [legacy, anthropic] {
        let told = served.post(TURNS, message.clone()).json();
        assert_eq!(told["turns"][0]["content"], canonical, "{message}");
        let told = served.post(TURNS, json!({"messages": [message]})).json();
        assert_eq!(told["turns"][0]["content"], canonical);
    }
    let results = json!({"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": "c1", "content": "Done.", "is_error": true},
        {"type": "text", "text": "Go on."}]});
    served.post(TURNS, results.clone()).refused(400, "invalid");
    let told = served.post(TURNS, json!({"messages": [results]})).expect(201).json();
    let turns = told["turns"].as_array().unwrap();
    assert_eq!(turns.len(), 2);
    assert_eq!((&turns[0]["role"], &turns[0]["tool_call_id"]), (&json!("tool"), &json!("c1")));
    assert_eq!(turns[0]["metadata"]["source_info"]["is_error"], true);
    assert_eq!(
        (&turns[1]["role"], &turns[1]["content"][0]["text"]),
        (&json!("user"), &json!("Go on."))
    );
    let refused = json!({"messages": [], "tool_calls": []});
    served.post(TURNS, refused).refused(400, "invalid");
    // Another version of a turn, too.
    let turn = told["turns"][1]["turn_id"].as_str().unwrap();
    let several = json!({"content": [{"type": "tool_result", "tool_use_id": "c1"}]});
    served.post(&format!("/api/v1/turns/{turn}/edit"), several).refused(400, "invalid");
    // What a turn may say depends on who says it.
    let called =
        json!({"content": [{"type": "tool-use", "id": "c2", "name": "f", "parameters": {}}]});
    served.post(&format!("/api/v1/turns/{turn}/edit"), called).refused(400, "invalid");
    let empty = json!({"content": ""});
    served.post(&format!("/api/v1/turns/{turn}/edit"), empty.clone()).refused(400, "invalid");
    let result = told["turns"][0]["turn_id"].as_str().unwrap();
    served.post(&format!("/api/v1/turns/{result}/edit"), empty).expect(201);
}
