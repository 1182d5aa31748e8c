//! Forks end exactly on their anchor, or are refused.

use serde_json::{Value, json};
use tine_core::{Body, Limits, Message, Role, json as strict};
use tine_engine::Append;

use crate::client::{Client, Exchange, World, fork, question};

fn texts(world: &World, session: &str) -> Vec<String> {
    let said = world.turns(session).into_iter().map(|turn| match turn.content {
        tine_store::Content::Kept(body) => body.preview(100),
        tine_store::Content::Purged(_) => "erased".to_owned(),
    });
    said.collect()
}

/// A session of three exchanges.
fn talk(client: &mut Client) -> (String, Vec<Exchange>) {
    let session = client.new_session();
    let said = ["one", "two", "three"].map(|text| client.prompt(&session, text));
    (session, said.into())
}

fn check_unknown(client: &mut Client, session: &str, message: &str) {
    let error = client.refused("session/fork", fork(session, Some(message)));
    assert_eq!((&error["code"], &error["data"]["messageId"]), (&json!(-32602), &json!(message)));
}

#[test]
fn a_fork_holds_all_up_to_and_including_its_anchor() {
    let (world, whole) = (World::new(), ["one", "one", "two", "two", "three", "three"]);
    let mut client = world.client();
    let (session, said) = talk(&mut client);
    assert_eq!(texts(&world, &session), whole);
    let anchors = said.iter().flat_map(|exchange| [&exchange.user, &exchange.agent]);
    for (index, anchor) in anchors.enumerate() {
        let forked = client.fork(&session, Some(anchor));
        assert_eq!(texts(&world, &forked), whole[..=index]);
        let ids: Vec<String> = client.replay(&forked).into_iter().map(|(_, id, _)| id).collect();
        assert_eq!(ids.last(), Some(anchor), "ids stay valid in forks");
    }
    let forked = client.fork(&session, None);
    assert_eq!(texts(&world, &forked), whole);
    assert_eq!(texts(&world, &session), whole, "the parent is unchanged");
    world.verify();
}

#[test]
fn a_fork_can_be_asked_at_once_and_leaves_its_parent_alone() {
    let world = World::new();
    let mut client = world.client();
    let (session, said) = talk(&mut client);
    let forked = client.fork(&session, Some(&said[0].agent));
    assert_eq!(client.updates(&forked).len(), 0, "forking says nothing");
    assert_eq!(client.prompt(&forked, "other").text, "other");
    assert_eq!(texts(&world, &forked), ["one", "one", "other", "other"]);
    assert_eq!(texts(&world, &session).len(), 6);
    assert_eq!(client.prompt(&session, "four").text, "four");
    assert_eq!(texts(&world, &forked).len(), 4);
}

#[test]
fn a_fork_at_a_question_awaits_an_answer_and_asks_nobody() {
    let world = World::new();
    let mut client = world.client();
    let (session, said) = talk(&mut client);
    let forked = client.fork(&session, Some(&said[1].user));
    assert_eq!(texts(&world, &forked), ["one", "one", "two"]);
    client.prompt(&forked, "again");
    assert_eq!(texts(&world, &forked), ["one", "one", "two", "again", "again"]);
}

#[test]
fn a_fork_of_a_fork_takes_inherited_and_own_ids() {
    let world = World::new();
    let mut client = world.client();
    let (session, said) = talk(&mut client);
    let forked = client.fork(&session, Some(&said[1].agent));
    let own = client.prompt(&forked, "own");
    let inherited = client.fork(&forked, Some(&said[0].agent));
    assert_eq!(texts(&world, &inherited), ["one", "one"]);
    let deeper = client.fork(&forked, Some(&own.user));
    assert_eq!(texts(&world, &deeper), ["one", "one", "two", "two", "own"]);
    check_unknown(&mut client, &session, &own.user);
    check_unknown(&mut client, &inherited, &said[2].user);
}

#[test]
fn what_is_no_message_of_the_session_is_refused_by_name() {
    let world = World::new();
    let mut client = world.client();
    let (session, said) = talk(&mut client);
    let elsewhere = client.new_session();
    let other = client.prompt(&elsewhere, "elsewhere");
    let upper = said[0].user.to_uppercase();
    let braced = format!("{{{}}}", said[0].user);
    let hash = world.turns(&session)[0].hash.to_string();
    let unknown = "01890000-0000-7000-8000-000000000000";
    let named: [&str; 10] =
        [unknown, "", "main", "root", "main~1", &session, &hash, &upper, &braced, &other.user];
    let branches = world.branch(&session).conversation;
    for message in named {
        check_unknown(&mut client, &session, message);
    }
    let left = world.engine.branches(&world.call, &branches).expect("branches").len();
    assert_eq!(left, 1, "a refusal forks nothing");
}

#[test]
fn anchors_are_taken_in_every_dialect_and_refused_in_conflict() {
    let world = World::new();
    let mut client = world.client();
    let (session, said) = talk(&mut client);
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
        assert_eq!(texts(&world, forked), ["one", "one"], "{meta}");
        let error = client.refused("session/fork", params(meta, Some(second)));
        assert_eq!(error["code"], -32602);
    }
}

#[test]
fn a_session_that_is_not_there_cannot_be_forked() {
    let world = World::new();
    let mut client = world.client();
    for session in ["01890000-0000-7000-8000-000000000000", "nonsense", ""] {
        let error = client.refused("session/fork", fork(session, None));
        assert_eq!(
            (&error["code"], &error["data"]["sessionId"]),
            (&json!(-32002), &json!(session))
        );
    }
}

#[test]
fn an_empty_session_forks_into_an_empty_one() {
    let world = World::new();
    let mut client = world.client();
    let session = client.new_session();
    let forked = client.fork(&session, None);
    assert_ne!(session, forked);
    assert_eq!(client.prompt(&forked, "first").text, "first");
    assert!(world.turns(&session).is_empty());
}

#[test]
fn while_a_turn_runs_only_what_is_recorded_is_an_anchor() {
    let world = World::new();
    let mut client = world.client();
    let session = client.new_session();
    let first = client.prompt(&session, "first");
    // An echo of so many words goes on for a while.
    let long = "word ".repeat(256);
    let prompt = client.send("session/prompt", question(&session, &long));
    let asked = client.await_update("user_message_chunk");
    let said = client.await_update("agent_message_chunk");
    let (user, agent) = (asked["messageId"].as_str(), said["messageId"].as_str());
    let (user, agent) = (user.expect("an id"), agent.expect("an id"));

    // A second client sees the same; its answers do not mix with the running stream.
    let mut other = world.client();
    let at_user = other.fork(&session, Some(user));
    let at_first = other.fork(&session, Some(&first.agent));
    let whole = other.fork(&session, None);
    let error = client_refuses_or_has_ended(&mut other, &session, agent, &world);
    let ended = client.answer(prompt);
    assert_eq!(ended["result"]["stopReason"], "end_turn");
    assert!(error, "an answer that is still being said was taken as an anchor");
    assert_eq!(texts(&world, &at_user).len(), 3);
    assert_eq!(texts(&world, &at_first), ["first", "first"]);
    assert!([3, 4].contains(&texts(&world, &whole).len()));
    assert_eq!(texts(&world, &session).len(), 4);
    let later = client.fork(&session, Some(agent));
    assert_eq!(texts(&world, &later).len(), 4);
}

/// Whether forking at an answer was refused as long as it was not recorded.
fn client_refuses_or_has_ended(
    other: &mut Client,
    session: &str,
    agent: &str,
    world: &World,
) -> bool {
    let id = other.send("session/fork", fork(session, Some(agent)));
    let answer = other.answer(id);
    answer["error"]["code"] == -32602 || world.turns(session).len() == 4
}

#[test]
fn a_fork_at_open_calls_keeps_them_and_the_next_question_closes_them() {
    let world = World::new();
    let mut client = world.client();
    let session = client.new_session();
    client.prompt(&session, "look it up");
    let branch = world.branch(&session);
    let json = br#"[{"type":"text","text":"looking"},
        {"type":"tool-use","id":"call-1","name":"search","parameters":{"q":"x"}},
        {"type":"tool-use","id":"call-2","name":"search","parameters":{"q":"y"}}]"#;
    let limits = Limits::default();
    let content = strict::parse(json, limits.json_depth).expect("sound JSON");
    let body = Body::from_content(content, Role::Assistant, &limits).expect("sound content");
    let calls = Message { body, ..Message::text(Role::Assistant, "") };
    let messages = vec![calls, Message::tool("call-1", "found"), Message::tool("call-2", "too")];
    let done = world
        .engine
        .append(&world.call, Append::to(branch.conversation.clone(), messages))
        .expect("calls and results");
    let calling = done.turns[0].id.to_string();

    let forked = client.fork(&session, Some(&calling));
    assert_eq!(world.turns(&forked).len(), 3);
    let kinds: Vec<String> = client.replay(&forked).into_iter().map(|(kind, ..)| kind).collect();
    let shown = ["user_message_chunk", "agent_message_chunk", "agent_message_chunk"];
    assert_eq!(kinds[..3], shown);
    assert_eq!(kinds[3..], ["tool_call", "tool_call"]);

    client.ask("session/prompt", question(&forked, "go on"));
    let turns = world.turns(&forked);
    let results: Vec<Option<&str>> =
        turns[3..].iter().map(|turn| turn.tool_call_id.as_deref()).collect();
    assert_eq!(results, [Some("call-1"), Some("call-2"), None, None]);
    assert!(turns[3].metadata.custom_data.is_some(), "synthetic results are marked");
    let shown = client.updates(&forked);
    assert_eq!(shown[0]["status"], "failed");
    let first: Vec<&Value> = shown.iter().take(3).map(|it| &it["sessionUpdate"]).collect();
    assert_eq!(first, ["tool_call_update", "tool_call_update", "user_message_chunk"]);
    client.prompt(&forked, "and on");
    assert_eq!(world.turns(&forked).len(), 9, "closed calls are not closed again");
    assert_eq!(world.turns(&session).len(), 5);
}

#[test]
fn what_is_forked_is_there_for_whoever_comes_next() {
    let world = World::new();
    let mut client = world.client();
    let (session, said) = talk(&mut client);
    let forked = client.fork(&session, Some(&said[0].agent));
    client.end();
    let mut next = world.client();
    assert_eq!(next.replay(&forked).len(), 2);
    assert_eq!(next.prompt(&forked, "on").text, "on");
}
