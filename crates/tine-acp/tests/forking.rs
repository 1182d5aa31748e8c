//! Forks end exactly at the named message, or are refused.

use serde_json::{Value, json};
use tine_core::{Body, Limits, Message, Role, json as strict};
use tine_engine::Append;

use crate::test_client::{Client, Exchange, TestStore, fork, question};

fn texts(store: &TestStore, session: &str) -> Vec<String> {
    let said = store.turns(session).into_iter().map(|turn| match turn.content {
        tine_store::Content::Kept(body) => body.preview(100),
        tine_store::Content::Purged(_) => "erased".to_owned(),
    });
    said.collect()
}

/// Creates a session with three exchanges.
fn three_exchanges(client: &mut Client) -> (String, Vec<Exchange>) {
    let session = client.new_session();
    let said = ["one", "two", "three"].map(|text| client.prompt(&session, text));
    (session, said.into())
}

fn check_unknown(client: &mut Client, session: &str, message: &str) {
    let error = client.refused("session/fork", fork(session, Some(message)));
    assert_eq!((&error["code"], &error["data"]["messageId"]), (&json!(-32602), &json!(message)));
}

#[test]
fn a_fork_has_every_message_up_to_and_including_the_named_one() {
    let (store, whole) = (TestStore::new(), ["one", "one", "two", "two", "three", "three"]);
    let mut client = store.client();
    let (session, said) = three_exchanges(&mut client);
    assert_eq!(texts(&store, &session), whole);
    let anchors = said.iter().flat_map(|exchange| [&exchange.user, &exchange.agent]);
    for (index, anchor) in anchors.enumerate() {
        let forked = client.fork(&session, Some(anchor));
        assert_eq!(texts(&store, &forked), whole[..=index]);
        let ids: Vec<String> = client.replay(&forked).into_iter().map(|(_, id, _)| id).collect();
        assert_eq!(ids.last(), Some(anchor), "ids stay valid in forks");
    }
    let forked = client.fork(&session, None);
    assert_eq!(texts(&store, &forked), whole);
    assert_eq!(texts(&store, &session), whole, "the parent is unchanged");
    store.verify();
}

#[test]
fn a_fork_can_be_prompted_at_once_and_does_not_change_its_parent() {
    let store = TestStore::new();
    let mut client = store.client();
    let (session, said) = three_exchanges(&mut client);
    let forked = client.fork(&session, Some(&said[0].agent));
    assert_eq!(client.updates(&forked).len(), 0, "forking says nothing");
    assert_eq!(client.prompt(&forked, "other").text, "other");
    assert_eq!(texts(&store, &forked), ["one", "one", "other", "other"]);
    assert_eq!(texts(&store, &session).len(), 6);
    assert_eq!(client.prompt(&session, "four").text, "four");
    assert_eq!(texts(&store, &forked).len(), 4);
}

#[test]
fn a_fork_at_a_question_asks_no_model() {
    let store = TestStore::new();
    let mut client = store.client();
    let (session, said) = three_exchanges(&mut client);
    let forked = client.fork(&session, Some(&said[1].user));
    assert_eq!(texts(&store, &forked), ["one", "one", "two"]);
    client.prompt(&forked, "again");
    assert_eq!(texts(&store, &forked), ["one", "one", "two", "again", "again"]);
}

#[test]
fn a_fork_of_a_fork_accepts_inherited_and_own_message_ids() {
    let store = TestStore::new();
    let mut client = store.client();
    let (session, said) = three_exchanges(&mut client);
    let forked = client.fork(&session, Some(&said[1].agent));
    let own = client.prompt(&forked, "own");
    let inherited = client.fork(&forked, Some(&said[0].agent));
    assert_eq!(texts(&store, &inherited), ["one", "one"]);
    let deeper = client.fork(&forked, Some(&own.user));
    assert_eq!(texts(&store, &deeper), ["one", "one", "two", "two", "own"]);
    check_unknown(&mut client, &session, &own.user);
    check_unknown(&mut client, &inherited, &said[2].user);
}

#[test]
fn an_id_that_is_no_message_of_the_session_is_refused_and_named() {
    let store = TestStore::new();
    let mut client = store.client();
    let (session, said) = three_exchanges(&mut client);
    let elsewhere = client.new_session();
    let other = client.prompt(&elsewhere, "elsewhere");
    let upper = said[0].user.to_uppercase();
    let braced = format!("{{{}}}", said[0].user);
    let hash = store.turns(&session)[0].hash.to_string();
    let unknown = "01890000-0000-7000-8000-000000000000";
    let named: [&str; 10] =
        [unknown, "", "main", "root", "main~1", &session, &hash, &upper, &braced, &other.user];
    let branches = store.branch(&session).conversation;
    for message in named {
        check_unknown(&mut client, &session, message);
    }
    let left = store.engine.branches(&store.call, &branches).expect("branches").len();
    assert_eq!(left, 1, "a refusal forks nothing");
}

#[test]
fn fork_points_are_accepted_in_every_dialect_and_refused_if_they_conflict() {
    let store = TestStore::new();
    let mut client = store.client();
    let (session, said) = three_exchanges(&mut client);
    let (first, second) = (&said[0].agent, &said[1].agent);
    let params = |meta: Value, root: Option<&str>| {
        let mut params = fork(&session, root);
        params["_meta"] = meta;
        params
    };
    let air = json!({ "jetbrains": { "air": { "fork": { "version": 1, "messageId": first } } } });
    let metas = [json!({ "messageId": first }), json!({ "tine": { "messageId": first } }), air];
    for meta in metas {
        let forked = client.ask("session/fork", params(meta.clone(), None));
        let forked = forked["sessionId"].as_str().expect("a session's id");
        assert_eq!(texts(&store, forked), ["one", "one"], "{meta}");
        let error = client.refused("session/fork", params(meta, Some(second)));
        assert_eq!(error["code"], -32602);
    }
}

#[test]
fn an_unknown_session_cannot_be_forked() {
    let store = TestStore::new();
    let mut client = store.client();
    for session in ["01890000-0000-7000-8000-000000000000", "nonsense", ""] {
        let error = client.refused("session/fork", fork(session, None));
        assert_eq!(
            (&error["code"], &error["data"]["sessionId"]),
            (&json!(-32002), &json!(session))
        );
    }
}

#[test]
fn a_fork_of_an_empty_session_is_empty() {
    let store = TestStore::new();
    let mut client = store.client();
    let session = client.new_session();
    let forked = client.fork(&session, None);
    assert_ne!(session, forked);
    assert_eq!(client.prompt(&forked, "first").text, "first");
    assert!(store.turns(&session).is_empty());
}

#[test]
fn while_a_prompt_runs_only_recorded_messages_can_be_forked_at() {
    let store = TestStore::new();
    let mut client = store.client();
    let session = client.new_session();
    let first = client.prompt(&session, "first");
    // A long echo, which takes a while.
    let long = "word ".repeat(256);
    let prompt = client.send("session/prompt", question(&session, &long));
    let asked = client.await_update("user_message_chunk");
    let said = client.await_update("agent_message_chunk");
    let (user, agent) = (asked["messageId"].as_str(), said["messageId"].as_str());
    let (user, agent) = (user.expect("an id"), agent.expect("an id"));

    // A second client gets the same result, and its responses do not mix with the running stream.
    let mut other = store.client();
    let at_user = other.fork(&session, Some(user));
    let at_first = other.fork(&session, Some(&first.agent));
    let whole = other.fork(&session, None);
    let error = client_refuses_or_has_ended(&mut other, &session, agent, &store);
    let ended = client.answer(prompt);
    assert_eq!(ended["result"]["stopReason"], "end_turn");
    assert!(error, "an answer that is still being said was taken as an anchor");
    assert_eq!(texts(&store, &at_user).len(), 3);
    assert_eq!(texts(&store, &at_first), ["first", "first"]);
    assert!([3, 4].contains(&texts(&store, &whole).len()));
    assert_eq!(texts(&store, &session).len(), 4);
    let later = client.fork(&session, Some(agent));
    assert_eq!(texts(&store, &later).len(), 4);
}

/// Returns whether forks at the answer were refused until it was recorded.
fn client_refuses_or_has_ended(
    other: &mut Client,
    session: &str,
    agent: &str,
    store: &TestStore,
) -> bool {
    let id = other.send("session/fork", fork(session, Some(agent)));
    let answer = other.answer(id);
    answer["error"]["code"] == -32602 || store.turns(session).len() == 4
}

#[test]
fn a_fork_at_unanswered_calls_keeps_them_until_the_next_question() {
    let store = TestStore::new();
    let mut client = store.client();
    let session = client.new_session();
    client.prompt(&session, "look it up");
    let branch = store.branch(&session);
    let json = br#"[{"type":"text","text":"looking"},
        {"type":"tool-use","id":"call-1","name":"search","parameters":{"q":"x"}},
        {"type":"tool-use","id":"call-2","name":"search","parameters":{"q":"y"}}]"#;
    let limits = Limits::default();
    let content = strict::parse(json, limits.json_depth).expect("sound JSON");
    let body = Body::from_content(content, Role::Assistant, &limits).expect("sound content");
    let calls = Message { body, ..Message::text(Role::Assistant, "") };
    let messages = vec![calls, Message::tool("call-1", "found"), Message::tool("call-2", "too")];
    let done = store
        .engine
        .append(&store.call, Append::to(branch.conversation.clone(), messages))
        .expect("calls and results");
    let calling = done.turns[0].id.to_string();

    let forked = client.fork(&session, Some(&calling));
    assert_eq!(store.turns(&forked).len(), 3);
    let kinds: Vec<String> = client.replay(&forked).into_iter().map(|(kind, ..)| kind).collect();
    let shown = ["user_message_chunk", "agent_message_chunk", "agent_message_chunk"];
    assert_eq!(kinds[..3], shown);
    assert_eq!(kinds[3..], ["tool_call", "tool_call"]);

    client.ask("session/prompt", question(&forked, "go on"));
    let turns = store.turns(&forked);
    let results: Vec<Option<&str>> =
        turns[3..].iter().map(|turn| turn.tool_call_id.as_deref()).collect();
    assert_eq!(results, [Some("call-1"), Some("call-2"), None, None]);
    assert!(turns[3].metadata.custom_data.is_some(), "synthetic results are marked");
    let shown = client.updates(&forked);
    assert_eq!(shown[0]["status"], "failed");
    let first: Vec<&Value> = shown.iter().take(3).map(|it| &it["sessionUpdate"]).collect();
    assert_eq!(first, ["tool_call_update", "tool_call_update", "user_message_chunk"]);
    client.prompt(&forked, "and on");
    assert_eq!(store.turns(&forked).len(), 9, "closed calls are not closed again");
    assert_eq!(store.turns(&session).len(), 5);
}

#[test]
fn a_fork_is_available_to_later_clients() {
    let store = TestStore::new();
    let mut client = store.client();
    let (session, said) = three_exchanges(&mut client);
    let forked = client.fork(&session, Some(&said[0].agent));
    client.end();
    let mut next = store.client();
    assert_eq!(next.replay(&forked).len(), 2);
    assert_eq!(next.prompt(&forked, "on").text, "on");
}
