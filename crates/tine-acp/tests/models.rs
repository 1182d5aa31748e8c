//! Models of a provider, at a local endpoint.

use serde_json::json;
use tine_acp::Responder;
use tine_core::{Role, Status};
use tine_llm::{Protocol, Provider, ProviderSettings};
use tine_store::Content;

use crate::model_endpoint::{Then, endpoint, said};
use crate::test_client::{TestStore, question};

#[test]
fn a_model_gets_the_whole_path_and_its_stream_is_shown_and_recorded() {
    let store = TestStore::new();
    let pieces = vec![said("Late "), said("March")];
    let (model, asked) = endpoint(pieces, Then::Stop("stop"));
    let mut client = store.client_of(model);
    let session = client.new_session();
    let first = client.prompt(&session, "When?");
    assert_eq!(
        (first.text.as_str(), &first.answer["stopReason"]),
        ("Late March", &json!("end_turn"))
    );
    client.prompt(&session, "Why?");
    asked.recv().expect("the first request");
    let request = asked.recv().expect("the second request");
    assert_eq!(
        request["messages"],
        json!([
            { "role": "user", "content": "When?" },
            { "role": "assistant", "content": "Late March" },
            { "role": "user", "content": "Why?" },
        ])
    );
    let turn = &store.turns(&session)[1];
    assert_eq!(turn.id.to_string(), first.agent);
    assert_eq!(turn.status, Status::Complete);
    let told = turn.metadata.source_info.as_ref().expect("how it came about");
    let member = |name: &str| told.get(name).and_then(tine_core::Json::as_str);
    assert_eq!((member("provider"), member("model")), (Some("local"), Some("answered")));
    let usage = tine_core::Usage::from_source_info(told).expect("what it cost");
    assert_eq!((usage.input, usage.output), (5, 7));
    // A fork sends its own path and nothing later.
    let forked = client.fork(&session, Some(&first.agent));
    client.prompt(&forked, "Where?");
    let request = asked.recv().expect("the third request");
    let messages = request["messages"].as_array().expect("messages");
    assert_eq!(messages.len(), 3);
    assert_eq!(messages[2]["content"], "Where?");
}

#[test]
fn thoughts_have_their_own_ids_and_cannot_be_forked_at() {
    let store = TestStore::new();
    let thought = |text: &str| json!({ "reasoning_content": text });
    let pieces = vec![thought("hm, "), thought("yes"), said("Ja"), said("wohl")];
    let (model, asked) = endpoint(pieces, Then::Stop("stop"));
    let mut client = store.client_of(model);
    let session = client.new_session();
    client.ask("session/prompt", question(&session, "?"));
    let updates = client.updates(&session);
    let id_of = |kind: &str| {
        let found = updates.iter().find(|update| update["sessionUpdate"] == kind);
        found.expect(kind)["messageId"].as_str().expect("an id").to_owned()
    };
    let (thought, message) = (id_of("agent_thought_chunk"), id_of("agent_message_chunk"));
    assert_ne!(thought, message);
    let error = client.refused("session/fork", crate::test_client::fork(&session, Some(&thought)));
    assert_eq!((&error["code"], &error["data"]["messageId"]), (&json!(-32602), &json!(thought)));
    let replayed = client.replay(&session);
    let shown: Vec<(&str, &str, &str)> =
        replayed[1..].iter().map(|(a, b, c)| (a.as_str(), b.as_str(), c.as_str())).collect();
    let whole = [
        ("agent_thought_chunk", thought.as_str(), "hm, yes"),
        ("agent_message_chunk", message.as_str(), "Jawohl"),
    ];
    assert_eq!(shown, whole, "a replay names thoughts as the stream did");
    let forked = client.fork(&session, Some(&message));
    assert_eq!(client.replay(&forked), replayed);
    client.prompt(&forked, "and?");
    asked.recv().expect("the first request");
    let request = asked.recv().expect("the second request");
    assert_eq!(request["messages"][1]["content"], "Jawohl", "thoughts are not sent back");
}

#[test]
fn a_cancelled_stream_is_kept_as_a_partial_turn() {
    let store = TestStore::new();
    let (model, _asked) = endpoint(vec![said("half a "), said("sen")], Then::Stall);
    let mut client = store.client_of(model);
    let session = client.new_session();
    let prompt = client.send("session/prompt", question(&session, "Go on"));
    client.await_update("agent_message_chunk");
    client.await_update("agent_message_chunk");
    client.notify("session/cancel", json!({ "sessionId": session }));
    assert_eq!(client.answer(prompt)["result"]["stopReason"], "cancelled");
    let turn = &store.turns(&session)[1];
    assert_eq!(turn.status, Status::Partial);
    let Content::Kept(body) = &turn.content else { panic!("erased") };
    assert_eq!(body.text_only().as_deref(), Some("half a sen"));
    let forked = client.fork(&session, Some(&turn.id.to_string()));
    assert_eq!(store.turns(&forked).len(), 2, "what was cut short can be forked at");
}

#[test]
fn a_fork_during_a_stream_can_end_at_the_question_but_not_at_the_answer() {
    let store = TestStore::new();
    let (model, _asked) = endpoint(vec![said("half")], Then::Stall);
    let mut client = store.client_of(model);
    let session = client.new_session();
    let prompt = client.send("session/prompt", question(&session, "Go on"));
    let asked = client.await_update("user_message_chunk");
    let answer = client.await_update("agent_message_chunk");
    let running = answer["messageId"].as_str().expect("an id");
    let error = client.refused("session/fork", crate::test_client::fork(&session, Some(running)));
    assert_eq!((&error["code"], &error["data"]["messageId"]), (&json!(-32602), &json!(running)));
    let at = client.fork(&session, asked["messageId"].as_str());
    let whole = client.fork(&session, None);
    for forked in [at, whole] {
        assert_eq!(store.turns(&forked).len(), 1, "only the question is recorded");
    }
    client.notify("session/cancel", json!({ "sessionId": session }));
    assert_eq!(client.answer(prompt)["result"]["stopReason"], "cancelled");
    client.fork(&session, Some(running));
}

#[test]
fn a_broken_stream_is_recorded_and_reported_as_an_error() {
    let store = TestStore::new();
    let (model, _asked) = endpoint(vec![said("half")], Then::Break);
    let mut client = store.client_of(model);
    let session = client.new_session();
    let error = client.refused("session/prompt", question(&session, "Go on"));
    assert_eq!(error["code"], -32603);
    assert!(error["message"].as_str().expect("a sentence").contains("was cut off"), "{error}");
    let turns = store.turns(&session);
    assert_eq!(turns[0].id.to_string(), error["data"]["userMessageId"].as_str().expect("an id"));
    assert_eq!(turns[1].status, Status::Partial);
}

#[test]
fn a_question_is_kept_if_the_model_cannot_be_reached() {
    let store = TestStore::new();
    let settings = ProviderSettings {
        base_url: Some("http://127.0.0.1:1/v1".to_owned()),
        retries: Some(0),
        ..ProviderSettings::new(Protocol::OpenAi, "nobody")
    };
    let provider = Provider::new("nobody", settings).expect("a sound provider");
    let model = tine_llm::Model::new(provider).expect("a model");
    let mut client = store.client_of(Responder::Provider(model));
    let session = client.new_session();
    let error = client.refused("session/prompt", question(&session, "Anybody?"));
    assert_eq!(error["code"], -32603);
    let turns = store.turns(&session);
    assert_eq!((turns.len(), turns[0].role), (1, Role::User));
}

#[test]
fn an_answer_that_reaches_the_token_limit_reports_it() {
    let store = TestStore::new();
    let (model, _asked) = endpoint(vec![said("and so o")], Then::Stop("length"));
    let mut client = store.client_of(model);
    let session = client.new_session();
    let exchange = client.prompt(&session, "Go on");
    assert_eq!(exchange.answer["stopReason"], "max_tokens");
    assert_eq!(store.turns(&session)[1].status, Status::Partial);
}

#[test]
fn a_refused_question_is_reverted_and_kept_as_a_tail() {
    let store = TestStore::new();
    let (model, _asked) = endpoint(vec![said("No.")], Then::Stop("content_filter"));
    let mut client = store.client_of(model);
    let session = client.new_session();
    let exchange = client.prompt(&session, "Do it");
    assert_eq!(exchange.answer["stopReason"], "refusal");
    assert!(store.turns(&session).is_empty(), "the next prompt does not hold it");
    let conversation = store.branch(&session).conversation;
    let tails = store.engine.tails(&store.call, &conversation).expect("tails");
    assert_eq!(tails[0].leaf.to_string(), exchange.agent);
}
