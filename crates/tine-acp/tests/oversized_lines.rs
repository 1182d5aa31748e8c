//! The recorder with an agent that is a script and writes oversized lines.

use serde_json::{Value, json};
use tine_core::{Role, Status};
use tine_engine::TurnView;
use tine_store::Content;

use crate::test_client::{Client, TestStore, question};

/// A small limit, so that tests can exceed it.
const LINE_BYTES: usize = 10_000;

fn recorded(store: &TestStore) -> Client {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/scripted_agent.sh");
    let mut client = store.recorded(&["sh", script], LINE_BYTES);
    client.ask("initialize", json!({ "protocolVersion": 1 }));
    client
}

fn blocks(turn: &TurnView) -> Vec<Value> {
    let Content::Kept(body) = &turn.content else { panic!("it is kept") };
    let blocks =
        body.blocks().expect("blocks").into_iter().map(|block| {
            serde_json::from_str(&block.to_canonical()).expect("canonical JSON is JSON")
        });
    blocks.collect()
}

#[test]
fn an_oversized_line_is_shown_and_recorded_as_a_gap() {
    let store = TestStore::new();
    let mut client = recorded(&store);
    let session = client.new_session();
    client.ask("session/prompt", question(&session, "say it"));
    let gaps: Vec<Value> = client
        .updates(&session)
        .into_iter()
        .filter(|update| update.to_string().contains("bytes left out"))
        .collect();
    assert_eq!(gaps.len(), 2, "{gaps:?}");
    assert!(gaps[0]["messageId"].is_string(), "it is part of the message: {gaps:?}");
    assert_eq!((&gaps[1]["toolCallId"], &gaps[1]["status"]), (&json!("c"), &json!("completed")));
    let turns = store.turns(&session);
    let roles: Vec<Role> = turns.iter().map(|turn| turn.role).collect();
    assert_eq!(roles, [Role::User, Role::Assistant, Role::Assistant, Role::Tool]);
    let said = blocks(&turns[1]);
    assert_eq!((&said[0]["text"], &said[2]["text"]), (&json!("before "), &json!(" behind")));
    for gap in [&said[1], &blocks(&turns[3])[0]] {
        let told = &gap["_meta"]["tine"]["gap"];
        assert!(told["bytes"].as_u64() > Some(20_000) && told["limit"] == LINE_BYTES, "{gap}");
    }
    client.end();
    store.verify();
}

#[test]
fn an_oversized_request_or_response_is_answered_with_an_error() {
    let store = TestStore::new();
    let mut client = recorded(&store);
    let session = client.new_session();
    let asked = client.prompt(&session, "ask for it");
    assert!(asked.text.ends_with("it was refused"), "{}", asked.text);
    let error = client.refused("session/prompt", question(&session, "answer it"));
    assert!(error["message"].as_str().expect("words").contains("10000 bytes"), "{error}");
    let last = store.turns(&session).pop().expect("a turn");
    assert_eq!((blocks(&last)[0]["text"].as_str(), last.status), (Some("so far"), Status::Partial));
    let much = client.refused("session/prompt", question(&session, &"y".repeat(LINE_BYTES)));
    assert!(much["message"].as_str().expect("words").contains("10000 bytes"), "{much}");
    assert!(client.prompt(&session, "ask for it").text.ends_with("it was refused"));
    client.end();
    store.verify();
}
