//! The recorder in front of an agent that is a script.

use serde_json::{Value, json};
use tine_core::{Role, Status};
use tine_engine::TurnView;
use tine_store::Content;

use crate::client::{Client, World, question};

/// Short, so that a test can be over it.
const LINE_BYTES: usize = 10_000;

fn recorded(world: &World) -> Client {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/scripted_agent.sh");
    let mut client = world.recorded(&["sh", script], LINE_BYTES);
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
fn a_line_that_is_too_long_is_a_gap_that_is_shown_and_recorded() {
    let world = World::new();
    let mut client = recorded(&world);
    let session = client.new_session();
    client.ask("session/prompt", question(&session, "say it"));
    let gaps: Vec<Value> = client
        .updates(&session)
        .into_iter()
        .filter(|update| update.to_string().contains("bytes are left out"))
        .collect();
    assert_eq!(gaps.len(), 2, "{gaps:?}");
    assert!(gaps[0]["messageId"].is_string(), "it is part of the message: {gaps:?}");
    assert_eq!((&gaps[1]["toolCallId"], &gaps[1]["status"]), (&json!("c"), &json!("completed")));
    let turns = world.turns(&session);
    let roles: Vec<Role> = turns.iter().map(|turn| turn.role).collect();
    assert_eq!(roles, [Role::User, Role::Assistant, Role::Assistant, Role::Tool]);
    let said = blocks(&turns[1]);
    assert_eq!((&said[0]["text"], &said[2]["text"]), (&json!("before "), &json!(" behind")));
    for gap in [&said[1], &blocks(&turns[3])[0]] {
        let told = &gap["_meta"]["tine"]["gap"];
        assert!(told["bytes"].as_u64() > Some(20_000) && told["limit"] == LINE_BYTES, "{gap}");
    }
    client.end();
    world.verify();
}

#[test]
fn who_waits_for_what_was_too_long_is_told_and_goes_on() {
    let world = World::new();
    let mut client = recorded(&world);
    let session = client.new_session();
    let asked = client.prompt(&session, "ask for it");
    assert!(asked.text.ends_with("it was refused"), "{}", asked.text);
    let error = client.refused("session/prompt", question(&session, "answer it"));
    assert!(error["message"].as_str().expect("words").contains("10000 bytes"), "{error}");
    let last = world.turns(&session).pop().expect("a turn");
    assert_eq!((blocks(&last)[0]["text"].as_str(), last.status), (Some("so far"), Status::Partial));
    let much = client.refused("session/prompt", question(&session, &"y".repeat(LINE_BYTES)));
    assert!(much["message"].as_str().expect("words").contains("10000 bytes"), "{much}");
    assert!(client.prompt(&session, "ask for it").text.ends_with("it was refused"));
    client.end();
    world.verify();
}
