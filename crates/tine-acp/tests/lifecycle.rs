//! Sessions: creating, loading, listing, closing, deleting.

use serde_json::{Value, json};
use tine_core::Message;
use tine_engine::{Append, NewConversation};

use crate::model_endpoint::stalled;
use crate::test_client::{CWD, Client, TestStore, question};

fn listed(client: &mut Client, params: Value) -> Vec<Value> {
    let mut found = Vec::new();
    let mut params = params;
    loop {
        let page = client.ask("session/list", params.clone());
        found.extend(page["sessions"].as_array().expect("sessions").iter().cloned());
        match page.get("nextCursor") {
            Some(cursor) => params["cursor"] = cursor.clone(),
            None => return found,
        }
    }
}

fn ids(sessions: &[Value]) -> Vec<&str> {
    sessions.iter().map(|it| it["sessionId"].as_str().expect("an id")).collect()
}

#[test]
fn initialize_reports_the_capabilities() {
    let store = TestStore::new();
    let mut client = store.client();
    let hello = client.ask("initialize", json!({ "protocolVersion": 1 }));
    let can = &hello["agentCapabilities"];
    assert_eq!(can["loadSession"], true);
    let sessions = &can["sessionCapabilities"];
    for name in ["list", "resume", "close", "delete"] {
        assert_eq!(sessions[name], json!({}), "{name}");
    }
    assert_eq!(sessions["fork"]["atMessageId"], true);
    assert_eq!(sessions["fork"]["_meta"]["atMessageId"], true);
    assert_eq!(hello["agentInfo"]["name"], "tine");
}

#[test]
fn a_load_replays_the_session_before_responding_and_a_resume_does_not() {
    let store = TestStore::new();
    let mut client = store.client();
    let session = client.new_session();
    let said = [client.prompt(&session, "one"), client.prompt(&session, "two")];
    let mut other = store.client();
    let replayed = other.replay(&session);
    let mut whole = Vec::new();
    for (exchange, text) in said.iter().zip(["one", "two"]) {
        whole.push(("user_message_chunk".to_owned(), exchange.user.clone(), text.to_owned()));
        whole.push(("agent_message_chunk".to_owned(), exchange.agent.clone(), text.to_owned()));
    }
    assert_eq!(replayed, whole);
    let mut third = store.client();
    let error = third.refused("session/prompt", question(&session, "not open"));
    assert_eq!(error["code"], -32002);
    third.ask("session/resume", json!({ "sessionId": session, "cwd": CWD }));
    assert!(third.updates(&session).is_empty());
    assert_eq!(third.prompt(&session, "three").text, "three");
}

#[test]
fn sessions_are_listed_by_folder_with_titles_and_the_last_active_first() {
    let store = TestStore::new();
    let mut client = store.client();
    let first = client.new_session();
    let elsewhere = client.ask("session/new", json!({ "cwd": "/other", "mcpServers": [] }));
    let elsewhere = elsewhere["sessionId"].as_str().expect("an id").to_owned();
    let last = client.prompt(&first, "a question\nof two lines");
    let asked = client.prompt(&elsewhere, "Where to in March?");
    let fork = json!({ "sessionId": elsewhere, "cwd": "/third", "messageId": asked.agent });
    let forked = client.ask("session/fork", fork);
    let forked = forked["sessionId"].as_str().expect("an id").to_owned();

    let all = listed(&mut client, json!({}));
    assert_eq!(ids(&all), [&forked, &elsewhere, &first]);
    let of = |session: &str| all.iter().find(|it| it["sessionId"] == session).expect("listed");
    assert_eq!(of(&first)["title"], "a question of two lines");
    assert_eq!(of(&elsewhere)["title"], "Where to in March?");
    assert_eq!(of(&forked)["title"], "Where to in March? (fork-1)");
    assert_eq!(of(&forked)["cwd"], "/third");
    let conversation = store.branch(&first).conversation;
    let told = store.turn(&conversation, &last.agent).created_at.to_string();
    assert_eq!(of(&first)["updatedAt"], told);

    for (cwd, session) in [(CWD, &first), ("/other", &elsewhere), ("/third", &forked)] {
        assert_eq!(ids(&listed(&mut client, json!({ "cwd": cwd }))), [session], "{cwd}");
    }
    assert!(listed(&mut client, json!({ "cwd": "/nowhere" })).is_empty());
}

#[test]
fn a_long_list_is_paged_and_has_each_session_once() {
    let store = TestStore::new();
    let mut client = store.client();
    let mut made: Vec<String> = (0..120).map(|_| client.new_session()).collect();
    let first = client.ask("session/list", json!({}));
    assert_eq!(first["sessions"].as_array().expect("sessions").len(), 50);
    let all = listed(&mut client, json!({}));
    let mut found: Vec<String> = ids(&all).into_iter().map(str::to_owned).collect();
    found.sort();
    made.sort();
    assert_eq!(found, made);
}

#[test]
fn a_conversation_from_elsewhere_is_listed_once_its_folder_is_known_and_can_always_be_loaded() {
    let store = TestStore::new();
    let mut client = store.client();
    let make = |id: &str, message: Message| {
        let new = NewConversation::named(id).expect("a sound id");
        let talk = store.engine.create_conversation(&store.call, new).expect("a conversation").id;
        let done = store.engine.append(&store.call, Append::to(talk, vec![message]));
        done.expect("a turn").branch.id.to_string()
    };
    let plain = make("plain", Message::text(tine_core::Role::User, "from elsewhere"));
    let mut told = Message::text(tine_core::Role::User, "imported");
    let info = br#"{"workspace":{"cwd":"/imported"}}"#;
    told.metadata.source_info = Some(tine_core::json::parse(info, 8).expect("sound JSON"));
    let imported = make("imported", told);
    assert_eq!(ids(&listed(&mut client, json!({}))), [&imported]);
    assert_eq!(client.replay(&plain).len(), 1);
    assert_eq!(client.prompt(&plain, "go on").text, "go on");
    // Now its last turn records a folder.
    assert_eq!(ids(&listed(&mut client, json!({ "cwd": CWD }))), [&plain]);
}

#[test]
fn closing_cancels_the_prompt_and_a_closed_session_can_be_reopened() {
    let store = TestStore::new();
    let mut client = store.client_of(stalled());
    let session = client.new_session();
    let prompt = client.send("session/prompt", question(&session, "Go on"));
    client.await_update("agent_message_chunk");
    let close = client.send("session/close", json!({ "sessionId": session }));
    let mut answers = Vec::new();
    while answers.len() < 2 {
        let message = client.next_message();
        if message.get("id").is_some() {
            answers.push(message);
        }
    }
    let of = |id: u64| answers.iter().find(|answer| answer["id"] == id).expect("an answer");
    assert_eq!(of(prompt)["result"]["stopReason"], "cancelled");
    assert_eq!(of(close)["result"], json!({}));
    let error = client.refused("session/prompt", question(&session, "closed"));
    assert_eq!(error["code"], -32002);
    client.ask("session/close", json!({ "sessionId": session }));
    let mut other = store.client();
    other.ask("session/resume", json!({ "sessionId": session, "cwd": CWD }));
    other.prompt(&session, "open again");
}

#[test]
fn deleting_a_session_keeps_its_turns_and_is_idempotent() {
    let store = TestStore::new();
    let mut client = store.client();
    let session = client.new_session();
    let said = client.prompt(&session, "keep me");
    let conversation = store.branch(&session).conversation;
    for _ in 0..2 {
        assert_eq!(client.ask("session/delete", json!({ "sessionId": session })), json!({}));
    }
    for unknown in ["01890000-0000-7000-8000-000000000000", "nonsense"] {
        assert_eq!(client.ask("session/delete", json!({ "sessionId": unknown })), json!({}));
    }
    assert!(listed(&mut client, json!({})).is_empty());
    let load = json!({ "sessionId": session, "cwd": CWD, "mcpServers": [] });
    let error = client.refused("session/load", load);
    assert_eq!((&error["code"], &error["data"]["sessionId"]), (&json!(-32002), &json!(session)));
    store.turn(&conversation, &said.agent);
    let tails = store.engine.tails(&store.call, &conversation).expect("tails");
    assert_eq!(tails[0].leaf.to_string(), said.agent);
    store.verify();
}

#[test]
fn offered_mcp_servers_are_declined_with_a_note() {
    let store = TestStore::new();
    let mut client = store.client();
    let servers = json!([{ "name": "x", "command": "/bin/x", "args": [], "env": [] }]);
    let made = client.ask("session/new", json!({ "cwd": CWD, "mcpServers": servers }));
    let note = made["_meta"]["tine"]["mcpServers"].as_str().expect("a note");
    assert!(note.contains("no MCP servers"), "{note}");
    let session = made["sessionId"].as_str().expect("an id");
    client.prompt(session, "hello");
}

#[test]
fn a_page_skips_sessions_of_other_folders() {
    let store = TestStore::new();
    let mut client = store.client();
    let wanted = client.new_session();
    for _ in 0..120 {
        client.ask("session/new", json!({ "cwd": "/other", "mcpServers": [] }));
    }
    let page = client.ask("session/list", json!({ "cwd": CWD }));
    assert_eq!(ids(page["sessions"].as_array().expect("sessions")), [wanted]);
    assert_eq!(page.get("nextCursor"), None, "there is nothing behind it");
    assert_eq!(listed(&mut client, json!({})).len(), 121);
}
