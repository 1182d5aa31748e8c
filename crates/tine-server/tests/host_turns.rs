//! Turns of hosts that track no branches, and facts that callers structured themselves.

use serde_json::{Value, json};
use tine_core::Limits;
use tine_server::Options;

use crate::harness::Served;

const TURN: &str = "/api/v1/store/turn";
const STORE: &str = "/api/v1/store";

fn turn(text: &str) -> Value {
    json!({"conversation_id": "chat", "turn_id": "1", "role": "user", "content": text})
}

fn with(mut body: Value, more: Value) -> Value {
    let (Value::Object(body_), Value::Object(more)) = (&mut body, more) else { panic!("objects") };
    body_.extend(more);
    body
}

#[test]
fn a_stored_turn_is_in_the_tree() {
    let served = Served::new();
    let made = served.post(TURN, turn("Hello")).expect(201);
    assert!(made.as_text().starts_with(r#"{"conversation_id":"chat","#), "{}", made.as_text());
    let told = made.json();
    assert_eq!(told["project_id"], "default");
    assert_eq!(told["outcome"], "created");
    assert_eq!(told["turn_key"], "chat:1");
    assert_eq!(told["slot"], json!({"turn_id": "1", "role": "user", "part": 0}));
    assert_eq!(told["tip"], told["turn_id"]);
    assert_eq!(told["branch"]["name"], "main");
    assert_eq!(told["replayed"], false);
    for absent in ["turn", "content", "superseded", "source_id", "interpretation", "warnings"] {
        assert_eq!(told.get(absent), None, "{absent}");
    }
    let turn = served.get(&format!("/api/v1/turns/{}", made.text("/turn_id"))).expect(200).json();
    assert_eq!(turn["turn_hash"], told["turn_hash"]);
    assert_eq!(turn["slot"]["turn_id"], "1");
    let entity = served.get(&format!("/api/v1/entities/{}", made.text("/entity_id"))).expect(200);
    assert_eq!(entity.json()["fields"]["content"], "Hello");
}

#[test]
fn a_changed_turn_becomes_another_version_of_its_slot() {
    let served = Served::new();
    let first = served.post(TURN, turn("A")).expect(201);
    let second = served.post(TURN, turn("B")).expect(201);
    assert_eq!(second.text("/superseded"), first.text("/turn_id"));
    let third = served.post(TURN, turn("A")).expect(200);
    assert_eq!(third.text("/turn_id"), first.text("/turn_id"));
    assert_eq!(third.text("/outcome"), "reused");
    let entity = third.text("/entity_id");
    let seen = served.walk(&format!("/api/v1/entities/{entity}/observations?limit=2"), "items");
    let said: Vec<_> = seen.iter().map(|one| one["fields"]["content"].clone()).collect();
    assert_eq!(said, ["A", "B", "A"]);
    assert_eq!(seen[2]["observation_id"], third.json()["observation_id"]);
}

#[test]
fn the_answer_includes_the_turn_only_on_request() {
    let served = Served::new();
    let asked = with(turn("Hello"), json!({"return_turn": true}));
    let told = served.post(TURN, asked).expect(201).json();
    assert_eq!(told["turn"]["content"][0]["text"], "Hello");
    let told = served.post(&format!("{TURN}?include=turn"), turn("Hello")).expect(200).json();
    assert_eq!(told["turn"]["content"][0]["text"], "Hello");
    served.post(&format!("{TURN}?include=everything"), turn("Hello")).refused(400, "invalid");
}

#[test]
fn hosts_can_use_aliases_for_ids_branch_and_time() {
    let served = Served::new();
    let store = |body: Value| served.post(TURN, body);
    let said = json!({"role": "user", "content": "x"});
    let by = |more: Value| store(with(said.clone(), more)).expect(201).json();
    assert_eq!(by(json!({"session_id": "s"}))["conversation_id"], "s");
    assert_eq!(by(json!({"thread_id": "t"}))["conversation_id"], "t");
    assert_eq!(by(json!({"thread_id": "t", "turn_id": 9}))["branch"]["name"], "main");
    let beside = by(json!({"conversation_id": "c", "session_id": "s", "thread_id": "side-talk"}));
    assert_eq!(beside["conversation_id"], "c");
    assert_eq!(beside["branch"]["name"], "side-talk");
    assert_eq!(by(json!({"session_id": "s2", "thread_id": "b"}))["branch"]["name"], "b");
    assert_eq!(by(json!({"conversation_id": "d", "branch_id": "b"}))["branch"]["name"], "b");
    assert_eq!(by(json!({"conversation_id": "e", "turn_number": 7}))["slot"]["turn_id"], "7");
    let text = by(json!({"conversation_id": "e", "turn_number": "8"}));
    assert_eq!(text["slot"]["turn_id"], "8");
    let both = by(json!({"conversation_id": "e", "turn_id": "9", "turn_number": 9}));
    assert_eq!(both["slot"]["turn_id"], "9");
    let again = json!({"conversation_id": "e", "turn_id": both["turn_id"], "content": "y"});
    assert_eq!(by(again)["turn_key"], "e:9", "the answer's own id of the turn");
    let minted = by(json!({}));
    assert!(minted["conversation_id"].as_str().is_some_and(|id| id.len() == 36), "{minted}");
    let timed = with(turn("x"), json!({"timestamp": "2024-01-15T10:30:00Z", "return_turn": true}));
    assert_eq!(store(timed).expect(201).json()["turn"]["created_at"], "2024-01-15T10:30:00Z");
    let by_entity = served.get("/api/v1/entities?entity_type=conversation").expect(200).json();
    let entity = by_entity["items"][0]["entity_id"].clone();
    let known = by_entity["items"][0]["conversation_id"].clone();
    assert_eq!(by(json!({"conversation_id": entity, "turn_id": "z"}))["conversation_id"], known);

    let refused = |more: Value| store(with(turn("x"), more)).refused(400, "invalid");
    refused(json!({"branch": "a", "thread_id": "b"}));
    refused(json!({"created_at": "2024-01-15T10:30:00Z", "timestamp": "2024-01-15T10:30:01Z"}));
    refused(json!({"timestamp": "yesterday"}));
    refused(json!({"turn_id": 1.5}));
    refused(json!({"turn_id": "a", "turn_number": 1}));
    refused(json!({"turn_id": ""}));
    refused(json!({"contnet": "misspelt"}));
    refused(json!({"interpret": "perhaps"}));
    refused(json!({"interpret": "wait", "interpreter": "nobody"}));
    refused(json!({"role": "tool"}));
    refused(json!({"attachment_source_ids": ["nothing"]}));
    refused(json!({"history": [{"role": "user"}]}));
    let none = json!({"attachment_source_ids": ["src_00000000000000000000000000000000"]});
    store(with(turn("x"), none)).refused(404, "not_found");
    store(json!({"conversation_id": "chat", "content": "x"})).refused(400, "invalid");
    store(json!({"conversation_id": "chat", "role": "user"})).refused(400, "invalid");
}

#[test]
fn parents_histories_tools_and_attachments_are_stored() {
    let served = Served::new();
    let file = json!({"text": "a picture", "mime_type": "text/plain", "interpret": "none"});
    let source = served.post("/api/v1/sources", file).expect(201).text("/source_id");
    let body = json!({
        "conversation_id": "chat", "turn_id": "2", "role": "assistant",
        "content": [{"type": "tool-use", "id": "call", "name": "f", "parameters": {"n": 9007199254740993_i64}}],
        "history": [{"role": "user", "content": "Hello"}],
        "title": "A chat", "system_prompt": "Be brief.", "status": "partial",
        "metadata": {"source_info": {"model": "m"}},
        "attachment_source_ids": [source], "return_turn": true,
    });
    let made = served.post(TURN, body).expect(201).json();
    assert_eq!(made["turn"]["depth"], 2);
    assert_eq!(made["turn"]["status"], "partial");
    assert_eq!(made["turn"]["metadata"]["source_info"]["model"], "m");
    let shown = served.get("/api/v1/conversations/chat").expect(200).json();
    assert_eq!((&shown["title"], &shown["system_prompt"]), (&json!("A chat"), &json!("Be brief.")));
    let entity = made["entity_id"].as_str().unwrap();
    let related = served.get(&format!("/api/v1/relationships?entity_id={entity}&type=EMBEDS"));
    assert_eq!(related.expect(200).json()["items"][0]["target_source_id"], source);
    let result = json!({
        "conversation_id": "chat", "turn_id": "2", "role": "tool", "tool_call_id": "call",
        "content": "42", "parent_message_id": "2",
    });
    let result = served.post(TURN, result).expect(201).json();
    assert_eq!(result["slot"]["tool_call_id"], "call");
    assert_eq!(result["turn_key"], "chat:2:tool:call");
    let forked = json!({
        "conversation_id": "chat", "turn_id": "9", "role": "user", "content": "Elsewhere",
        "parent": "root", "branch": "other", "return_turn": true,
    });
    assert_eq!(served.post(TURN, forked).expect(201).json()["turn"]["parent_id"], Value::Null);
}

#[test]
fn a_repeated_key_gives_the_first_answer_and_another_request_is_refused() {
    let served = Served::new();
    let keyed = served.and("idempotency-key", "k");
    let first = keyed.post(TURN, turn("A")).expect(201);
    let again = keyed.post(TURN, turn("A")).expect(200);
    assert_eq!(again.json()["replayed"], true);
    assert_eq!(again.text("/observation_id"), first.text("/observation_id"));
    keyed.post(TURN, turn("B")).refused(409, "idempotency_mismatch");
    let without = json!({"conversation_id": "chat", "role": "user", "content": "x",
        "idempotency_key": "the-turn"});
    assert_eq!(served.post(TURN, without).expect(201).text("/slot/turn_id"), "the-turn");
}

#[test]
fn a_store_can_be_conditional() {
    let served = Served::new();
    let first = served.post(TURN, turn("A")).expect(201);
    let seen = served.and("if-match", first.header("etag").expect("a tag"));
    let next = with(turn("B"), json!({"turn_id": "2"}));
    seen.post(TURN, next.clone()).expect(201);
    seen.post(TURN, with(next, json!({"turn_id": "3"}))).refused(412, "conflict");
}

#[test]
fn a_store_that_waits_returns_the_finished_run() {
    let served = Served::new();
    let asked = with(turn("I need to call Maria Lopez."), json!({"interpret": "wait"}));
    let told = served.post(TURN, asked).expect(201).json();
    assert_eq!(told["interpretation"]["status"], "completed", "{told}");
    assert!(told["interpretation"]["observations"].as_u64() > Some(0), "{told}");
    let run = told["interpretation"]["interpretation_id"].as_str().unwrap();
    let run = served.get(&format!("/api/v1/interpretations/{run}")).expect(200).json();
    assert_eq!(run["source_id"], told["source_id"]);
}

#[test]
fn the_answer_to_a_store_stays_small() {
    let served = Served::new();
    let large = with(turn(&"x".repeat(8 << 20)), json!({"interpret": "queue"}));
    assert!(served.post(TURN, large).expect(201).body.len() < 4_096);
    let text = "Ann Lee meets Bob Day in Rome on 14 March 2025. ".repeat(2_000);
    let many = with(turn(&text), json!({"turn_id": "many", "interpret": "wait"}));
    assert!(served.post(TURN, many).expect(201).body.len() < 4_096);
    for n in 0..1_000 {
        let body = json!({
            "conversation_id": "long", "turn_id": n, "content": format!("Message {n}"),
            "role": if n % 2 == 0 { "user" } else { "assistant" },
        });
        let made = served.post(TURN, body).expect(201);
        assert!(made.body.len() < 4_096, "{n}: {}", made.body.len());
    }
    // And once more, as a host that restores its chat does.
    for n in (0..1_000).step_by(50) {
        let body = json!({
            "conversation_id": "long", "turn_id": n, "content": format!("Message {n}"),
            "role": "user",
        });
        assert!(served.post(TURN, body).expect(200).body.len() < 4_096);
    }
    let stats = served.get("/api/v1/stats?conversation_id=long").expect(200).json();
    assert_eq!(stats["conversation"]["turns"], 1_000, "{stats}");
}

#[test]
fn a_redacting_server_redacts_stored_turns_and_facts() {
    let served = Served::with(Options { redact: true, ..Options::default() });
    let secret = "ghp_16C7e42F292c6912E7710c838347Ae178B4a";
    let said = with(
        turn(&format!("key: {secret}")),
        json!({
            "history": [{"role": "user", "content": format!("see {secret}")}],
        }),
    );
    let told = served.post(TURN, said).expect(201).json();
    assert_eq!(told["redacted"]["github"], 2, "{told}");
    let facts = json!({"entities": [{"entity_type": "note", "text": format!("it is {secret}")}]});
    assert_eq!(served.post(STORE, facts).expect(201).json()["redacted"]["github"], 1);
    let file = json!({"text": format!("{{\"a\": \"{secret}\"}}"), "mime_type": "application/json"});
    let kept = served.post("/api/v1/sources", file).expect(201);
    assert!(kept.json()["warnings"][0].as_str().is_some_and(|it| it.contains("secrets")));
    let raw = served.and("content-type", "text/plain");
    let kept = raw.send("POST", "/api/v1/sources", Some(format!("a {secret} b").as_bytes()));
    let content = format!("/api/v1/sources/{}/content", kept.expect(201).text("/source_id"));
    assert_eq!(served.get(&content).expect(200).as_text(), "a [redacted:github] b");
    let all = served.get("/api/v1/export").expect(200).as_text();
    assert!(!all.contains(secret));
}

#[test]
fn facts_are_stored_flat_or_with_fields_and_with_relationships() {
    let served = Served::new();
    let source = json!({"text": "Alice leads.", "mime_type": "text/plain", "interpret": "none"});
    let source = served.post("/api/v1/sources", source).expect(201).text("/source_id");
    let said = served.post(TURN, turn("Alice leads.")).expect(201).text("/turn_id");
    let body = json!({
        "entities": [
            {"entity_type": "person", "name": "Alice Chen", "priority": "high"},
            {"entity_type": "person", "fields": {"name": "Bob", "born": "1990-01-01"},
             "observed_at": "2024-01-15T10:30:00Z", "turn": said, "span": [0, 5],
             "priority": 7, "specificity": 2},
        ],
        "relationships": [
            {"type": "DEPENDS_ON", "source_index": 0, "target_index": 1, "metadata": {"n": 1}},
            {"type": "REFERS_TO", "source_turn_id": said, "target_index": 0},
            {"type": "REFERS_TO", "source_conversation_id": "chat", "target_index": 0},
            {"type": "REFERS_TO", "source_source_id": source, "target_index": 1},
        ],
        "source_id": source, "agent": {"name": "me", "model": "m"},
    });
    let made = served.post(STORE, body.clone()).expect(201).json();
    assert_eq!(made["source"]["source_id"], source);
    assert_eq!(made["entities"].as_array().map(Vec::len), Some(2));
    assert_eq!(made["entities"][0]["outcome"], "created");
    assert_eq!(made["relationships"][3]["outcome"], "created");
    assert_eq!(made["relationships"][0]["metadata"], json!({"n": 1}));
    assert!(made["interpretation_id"].as_str().is_some_and(|id| id.starts_with("int_")));
    let alice = served
        .get(&format!("/api/v1/entities/{}", made["entities"][0]["entity_id"].as_str().unwrap()));
    assert_eq!(alice.expect(200).json()["fields"]["priority"], "high");
    let bob = made["entities"][1]["entity_id"].as_str().unwrap();
    let seen = served.get(&format!("/api/v1/entities/{bob}/observations")).expect(200).json();
    assert_eq!(seen["items"][0]["priority"], 7);
    assert_eq!(seen["items"][0]["span"], json!([0, 5]));
    assert_eq!(seen["items"][0]["turn_id"], said);
    let again = served.post(STORE, body).expect(201).json();
    assert_eq!(again["entities"][0]["outcome"], "reused");
    assert_eq!(again["relationships"][0]["outcome"], "reused");
}

#[test]
fn a_file_can_be_stored_alone_or_as_the_source_of_facts() {
    let served = Served::new();
    let alone = json!({"file_content": "aGVsbG8=", "mime_type": "text/plain",
        "original_filename": "a.txt", "interpret": "none"});
    let told = served.post(STORE, alone).expect(201).json();
    assert_eq!(told["file"]["outcome"], "created");
    assert_eq!(told["interpretation_id"], Value::Null);
    assert_eq!(told["source"]["original_filename"], "a.txt");
    let keyed = served.and("idempotency-key", "both");
    let both = json!({"file_content": "QWxpY2UgaXMgaGVyZS4", "mime_type": "text/plain",
        "interpret": "wait", "entities": [{"entity_type": "person", "name": "Alice"}]});
    let told = keyed.post(STORE, both.clone()).expect(201).json();
    assert_eq!(told["source"], told["file"]["source"]);
    assert_eq!(told["file"]["interpretation"]["status"], "completed", "{told}");
    let again = keyed.post(STORE, both).expect(200).json();
    assert_eq!((&again["replayed"], &again["file"]["replayed"]), (&json!(true), &json!(true)));
    assert_eq!(again["interpretation_id"], told["interpretation_id"]);
    let read = json!({"entities": [{"entity_type": "note", "text": "Meet Carol."}],
        "interpret": "wait"});
    let told = served.post(STORE, read).expect(201).json();
    assert_eq!(told["interpretation"]["status"], "completed", "{told}");
}

#[test]
fn a_store_with_an_invalid_part_is_refused_as_a_whole() {
    let served = Served::with_limits(Limits { facts_per_store: 2, ..Limits::default() });
    let refused = |body: Value| served.post(STORE, body).refused(400, "invalid");
    let fact = json!({"entity_type": "note", "text": "x"});
    refused(json!({}));
    refused(json!({"entities": [{"text": "no type"}]}));
    refused(json!({"entities": [{"entity_type": "Note", "text": "x"}]}));
    refused(json!({"entities": [{"entity_type": "note"}]}));
    refused(json!({"entities": [{"entity_type": "note", "fields": {"a": 1}, "b": 2}]}));
    refused(json!({"entities": [{"entity_type": "note", "fields": "a"}]}));
    refused(json!({"entities": [{"entity_type": "note", "fields": {"a": 1}, "priority": "x"}]}));
    refused(json!({"entities": [{"entity_type": "note", "a": 1, "span": [1]}]}));
    refused(json!({"entities": [{"entity_type": "note", "a": 1, "observed_at": "then"}]}));
    refused(json!({"entities": [{"entity_type": "agent_message", "a": 1}]}));
    refused(json!({"entities": ["note"]}));
    refused(json!({"entities": [fact], "unknown": 1}));
    refused(json!({"file_content": "%%%", "mime_type": "text/plain"}));
    refused(json!({"file_content": "aGVsbG8="}));
    refused(json!({"entities": [fact], "mime_type": "text/plain"}));
    refused(json!({"file_content": "aGVsbG8=", "mime_type": "text/plain", "entities": [fact],
        "source_id": "src_00000000000000000000000000000000"}));
    let odd = json!({"entities": [fact],
        "relationships": [{"type": "LIKES", "source_index": 0, "target_index": 0}]});
    let why = refused(odd)["detail"].as_str().unwrap().to_owned();
    assert!(why.contains("PART_OF") && why.contains("SUPERSEDES"), "{why}");
    refused(json!({"entities": [fact], "relationships": [{"type": "EMBEDS", "source_index": 0}]}));
    refused(json!({"entities": [fact], "relationships": [
        {"type": "EMBEDS", "source_index": 0, "source_turn_id": "main", "target_index": 0}]}));
    served.post(STORE, json!({"entities": [fact, fact, fact]})).refused(413, "too_large");
    let elsewhere =
        json!({"entities": [fact], "source_id": "src_00000000000000000000000000000000"});
    served.post(STORE, elsewhere).refused(404, "not_found");
    let found = served.get("/api/v1/entities").expect(200).json();
    assert_eq!(found["items"], json!([]));
    let sources = served.get("/api/v1/sources").expect(200).json();
    assert_eq!(sources["items"], json!([]), "{sources}");
}
