//! Prompts: what is recorded, what is shown, and how they end.

use serde_json::{Value, json};
use tine_core::{Role, Status};
use tine_store::Content;

use crate::model_endpoint::stalled;
use crate::test_client::{CWD, TestStore, question};

#[test]
fn a_question_is_recorded_and_shown_before_it_is_answered() {
    let store = TestStore::new();
    let mut client = store.client();
    let session = client.new_session();
    let said = client.prompt(&session, "where to in March?");
    assert_eq!(said.text, "where to in March?");
    assert_eq!(said.answer["stopReason"], "end_turn");
    let turns = store.turns(&session);
    assert_eq!(turns[0].id.to_string(), said.user);
    assert_eq!(turns[1].id.to_string(), said.agent);
    assert_eq!((turns[0].role, turns[1].role), (Role::User, Role::Assistant));
    let told = turns[1].metadata.source_info.as_ref().expect("how it came about").to_canonical();
    let known = r#"{"client":{"name":"test","version":"1"},"model":"echo","provider":"tine","workspace":{"cwd":"/work"}}"#;
    assert_eq!(told, known);
}

#[test]
fn an_answer_is_streamed_in_chunks() {
    let store = TestStore::new();
    let mut client = store.client();
    let session = client.new_session();
    client.ask("session/prompt", question(&session, "one two three"));
    let updates = client.updates(&session);
    let kinds: Vec<&Value> = updates.iter().map(|update| &update["sessionUpdate"]).collect();
    let agent = "agent_message_chunk";
    assert_eq!(kinds, ["user_message_chunk", "session_info_update", agent, agent, agent]);
    client.ask("session/prompt", question(&session, "more"));
    let titles = client.updates(&session);
    assert!(titles.iter().all(|update| update["sessionUpdate"] != "session_info_update"));
}

#[test]
fn content_blocks_are_shown_and_stored_unchanged() {
    let store = TestStore::new();
    let mut client = store.client();
    let session = client.new_session();
    let blocks = json!([
        { "type": "text", "text": "read " },
        { "type": "resource_link", "name": "notes", "uri": "file:///home/me/notes.md", "size": 12 },
        { "type": "resource", "resource": { "uri": "file:///home/me/a.txt", "text": "inside" } },
        { "type": "text", "text": "please", "annotations": { "priority": 0.5 } },
    ]);
    client.ask("session/prompt", json!({ "sessionId": session, "prompt": blocks }));
    let shown: Vec<Value> = client
        .updates(&session)
        .into_iter()
        .filter(|update| update["sessionUpdate"] == "user_message_chunk")
        .map(|mut update| update["content"].take())
        .collect();
    assert_eq!(Value::Array(shown.clone()), blocks);
    client.ask("session/load", json!({ "sessionId": session, "cwd": CWD, "mcpServers": [] }));
    let replayed: Vec<Value> =
        client.updates(&session).into_iter().take(4).map(|mut it| it["content"].take()).collect();
    assert_eq!(replayed, shown);
    let Content::Kept(answer) = &store.turns(&session)[1].content else { panic!("erased") };
    let told = answer.text_only().expect("text");
    let whole =
        "read \n\n[notes](file:///home/me/notes.md)\n\n[file:///home/me/a.txt]\ninside\n\nplease";
    assert_eq!(told, whole);
}

#[test]
fn a_cancelled_answer_is_kept_as_a_partial_turn() {
    let store = TestStore::new();
    let mut client = store.client();
    let session = client.new_session();
    let long = "word ".repeat(2_000);
    let prompt = client.send("session/prompt", question(&session, &long));
    client.await_update("agent_message_chunk");
    client.notify("session/cancel", json!({ "sessionId": session }));
    let answer = client.answer(prompt);
    assert_eq!(answer["result"]["stopReason"], "cancelled");
    let turns = store.turns(&session);
    let Content::Kept(body) = &turns[1].content else { panic!("erased") };
    let shown: String = client
        .updates(&session)
        .iter()
        .filter(|update| update["sessionUpdate"] == "agent_message_chunk")
        .map(|update| update["content"]["text"].as_str().expect("text"))
        .collect();
    assert_eq!(body.text_only().as_deref(), Some(shown.as_str()), "what was shown is what is kept");
    // The echo may have ended before the cancellation arrived.
    assert_eq!(turns[1].status == Status::Partial, shown.len() < long.len());
    assert_eq!(client.prompt(&session, "next").answer["stopReason"], "end_turn");
    store.verify();
}

#[test]
fn a_cancellation_directly_after_its_prompt_cancels_it() {
    let store = TestStore::new();
    let mut client = store.client_of(stalled());
    let session = client.new_session();
    let prompt = client.send("session/prompt", question(&session, "Go on"));
    client.notify("session/cancel", json!({ "sessionId": session }));
    assert_eq!(client.answer(prompt)["result"]["stopReason"], "cancelled");
    assert_eq!(store.turns(&session)[0].role, Role::User, "the question is kept");
}

#[test]
fn each_session_runs_one_prompt_at_a_time() {
    let store = TestStore::new();
    let mut client = store.client_of(stalled());
    let sessions = [client.new_session(), client.new_session()];
    let running = sessions.each_ref().map(|session| {
        let prompt = client.send("session/prompt", question(session, "Go on"));
        client.await_update("agent_message_chunk");
        prompt
    });
    let error = client.refused("session/prompt", question(&sessions[0], "again"));
    assert_eq!(
        (&error["code"], &error["data"]["sessionId"]),
        (&json!(-32600), &json!(sessions[0]))
    );
    for (session, prompt) in sessions.iter().zip(running) {
        client.notify("session/cancel", json!({ "sessionId": session }));
        assert_eq!(client.answer(prompt)["result"]["stopReason"], "cancelled");
        assert_eq!(store.turns(session).len(), 2);
    }
}

#[test]
fn two_clients_of_one_session_lose_no_turns() {
    let store = TestStore::new();
    let mut first = store.client();
    let session = first.new_session();
    first.prompt(&session, "begin");
    let mut second = store.client();
    second.ask("session/resume", json!({ "sessionId": session, "cwd": CWD }));
    let conversation = store.branch(&session).conversation;

    let slow = first.send("session/prompt", question(&session, &"word ".repeat(64)));
    first.await_update("agent_message_chunk");
    let between = second.prompt(&session, "between");
    let answer = first.answer(slow);
    let said = &answer["result"]["_meta"]["tine"];
    let slow = said["messageId"].as_str().expect("the answer's id");
    for id in [&between.user, &between.agent, slow] {
        store.turn(&conversation, id);
    }
    let on_line: Vec<String> = store.turns(&session).iter().map(|it| it.id.to_string()).collect();
    assert!(on_line.contains(&between.agent));
    // The first answer is on the session's branch; the other one is on a new branch.
    if let Some(branch) = said["sessionId"].as_str() {
        assert!(!on_line.iter().any(|id| id == slow));
        assert_eq!(store.turns(branch).last().expect("a turn").id.to_string(), slow);
    }
    store.verify();
}

#[test]
fn a_prompt_that_runs_when_the_client_leaves_is_recorded() {
    let store = TestStore::new();
    let mut client = store.client();
    let session = client.new_session();
    client.send("session/prompt", question(&session, &"word ".repeat(2_000)));
    client.await_update("agent_message_chunk");
    client.end();
    let turns = store.turns(&session);
    assert_eq!(turns.len(), 2, "question and answer");
    store.verify();
}
