//! The tools that a model may call, with a local model endpoint.

use serde_json::{Value, json};
use tine_core::{Message, Role};
use tine_engine::{Append, EntityQuery, NewConversation, Page};
use tine_store::Content;

use crate::model_endpoint::{Then, in_turn, said};
use crate::test_client::{TestStore, question};

fn calls(wanted: &[(&str, &str, Value)]) -> Value {
    let call = |(nth, (id, name, arguments)): (usize, &(&str, &str, Value))| {
        let function = json!({ "name": name, "arguments": arguments.to_string() });
        json!({ "index": nth, "id": id, "type": "function", "function": function })
    };
    json!({ "tool_calls": wanted.iter().enumerate().map(call).collect::<Vec<_>>() })
}

fn kinds(updates: &[Value]) -> Vec<&str> {
    updates.iter().filter_map(|update| update["sessionUpdate"].as_str()).collect()
}

#[test]
fn tool_calls_of_a_model_are_shown_recorded_and_answered() {
    let store = TestStore::new();
    let talk = NewConversation::named("earlier").expect("an id");
    let talk = store.engine.create_conversation(&store.call, talk).expect("a conversation").id;
    let heron = Message::text(Role::User, "The password of the garden is heron.");
    store.engine.append(&store.call, Append::to(talk, vec![heron])).expect("an earlier turn");
    let fact =
        json!({ "facts": [{ "entity_type": "preference", "fields": { "name": "herons" } }] });
    let asks = calls(&[
        ("1", "search_turns", json!({ "query": "garden" })),
        ("2", "store_facts", fact),
        ("3", "no_such_tool", json!({})),
    ]);
    let answers = vec![vec![said("Let me see. "), asks], vec![said("It is heron.")]];
    let (model, asked) = in_turn(answers, Then::Stop("stop"));
    let mut client = store.client_of(model);
    let session = client.new_session();
    let answer = client.ask("session/prompt", question(&session, "What was it?"));
    assert_eq!(answer["stopReason"], "end_turn");

    let updates = client.updates(&session);
    let wanted = [
        "user_message_chunk",
        "session_info_update",
        "agent_message_chunk",
        "tool_call",
        "tool_call_update",
        "tool_call",
        "tool_call_update",
        "tool_call",
        "tool_call_update",
        "agent_message_chunk",
    ];
    assert_eq!(kinds(&updates), wanted);
    assert!(updates[4].to_string().contains("heron"), "{}", updates[4]);
    assert_eq!(
        (&updates[6]["status"], &updates[8]["status"]),
        (&json!("completed"), &json!("failed"))
    );

    let offered = asked.recv().expect("the first request");
    assert_eq!(offered["tools"].as_array().map(Vec::len), Some(3));
    let told = asked.recv().expect("the second request");
    let roles: Vec<&str> = told["messages"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|it| it["role"].as_str())
        .collect();
    assert_eq!(roles, ["user", "assistant", "tool", "tool", "tool"]);

    let turns = store.turns(&session);
    let roles: Vec<&str> = turns.iter().map(|turn| turn.role.as_str()).collect();
    assert_eq!(roles, ["user", "assistant", "tool", "tool", "tool", "assistant"]);
    assert_eq!(answer["_meta"]["tine"]["messageId"], turns[5].id.to_string());
    assert!(matches!(&turns[1].content, Content::Kept(body)
        if body.blocks().is_ok_and(|blocks| blocks.len() == 4)));
    let known = store.engine.entities(
        &store.call,
        EntityQuery {
            entity_type: Some("preference".to_owned()),
            text: Some("herons".to_owned()),
            deleted: false,
        },
        Page::default(),
    );
    assert_eq!(known.expect("entities").items.len(), 1);
    let replayed: Vec<String> =
        client.replay(&session).into_iter().map(|(kind, ..)| kind).collect();
    let shown: Vec<&str> = replayed.iter().map(String::as_str).collect();
    assert_eq!(shown.iter().filter(|kind| **kind == "tool_call_update").count(), 3, "{shown:?}");
    store.verify();
}

#[test]
fn a_model_that_only_calls_tools_is_made_to_answer() {
    let store = TestStore::new();
    let asks = calls(&[("1", "search_turns", json!({ "query": "x" }))]);
    let (model, asked) = in_turn(vec![vec![asks]], Then::Stop("stop"));
    let mut client = store.client_of(model);
    let session = client.new_session();
    client.ask("session/prompt", question(&session, "Well?"));
    let offered: Vec<bool> = asked.try_iter().map(|it| it.get("tools").is_some()).collect();
    assert_eq!(offered.len(), 9);
    assert!(offered[..8].iter().all(|it| *it) && !offered[8], "the last time there are none");
    store.verify();
}

#[test]
fn wrong_arguments_are_reported_to_the_model() {
    let store = TestStore::new();
    let wrong = [
        ("1", "search_turns", json!({})),
        ("2", "search_turns", json!({ "query": 7 })),
        ("3", "store_facts", json!({ "facts": [] })),
        ("4", "store_facts", json!({ "facts": [{ "entity_type": "x" }] })),
        ("5", "retrieve_entities", json!({ "entity_type": ["x"] })),
        ("6", "store_facts", json!("facts")),
    ];
    let answers = vec![vec![calls(&wrong)], vec![said("Sorry.")]];
    let (model, _asked) = in_turn(answers, Then::Stop("stop"));
    let mut client = store.client_of(model);
    let session = client.new_session();
    client.ask("session/prompt", question(&session, "Well?"));
    let updates = client.updates(&session);
    let ended = updates.iter().filter(|it| it["sessionUpdate"] == "tool_call_update");
    let statuses: Vec<&Value> = ended.map(|it| &it["status"]).collect();
    assert_eq!(statuses, vec![&json!("failed"); 6]);
    assert_eq!(store.turns(&session).len(), 9);
}
