//! Every answer goes through its JSON and comes back as the engine gave it.

use std::fmt::Debug;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tine_core::{Json, Limits, Message, Name, Reference, Role, json};
use tine_engine::{
    Append, Call, Delete, DeleteMode, Derive, Edit, Engine, FeedFilter, Fork, ForkPoint,
    MetadataPatch, MoveBranch, NewConversation, Page, PathQuery, Purge, PurgeTarget, SplitTurn,
    TopologyQuery, TurnRef, WindowQuery,
};
use tine_formats::view;
use tine_store::{FeedPosition, MemoryStore};

/// Writes an answer and reads it again.
fn check<V, E>(answer: &E)
where
    V: From<E> + Serialize + DeserializeOwned,
    E: TryFrom<V, Error: Debug> + Clone + PartialEq + Debug,
{
    let text = serde_json::to_string(&V::from(answer.clone())).unwrap();
    let view: V = serde_json::from_str(&text).unwrap();
    assert_eq!(E::try_from(view).unwrap(), *answer, "{text}");
}

fn parse(text: &str) -> Json {
    json::parse(text.as_bytes(), json::MAX_DEPTH).unwrap()
}

fn message(text: &str) -> Message {
    Message::from_json(parse(text), &Limits::default()).unwrap()
}

fn at(text: &str) -> Reference {
    Reference::parse(text).unwrap()
}

#[test]
fn what_the_engine_answers_is_what_a_reader_of_its_json_gets() {
    let engine = Engine::new(MemoryStore::new());
    let call = Call::by("somebody");
    let request = NewConversation {
        system_prompt: Some("Be brief.".to_owned()),
        config: parse(r#"{"seed":18446744073709551617,"t":0.1}"#),
        metadata: parse(r#"{"n":12345678901234567890123}"#),
        ..NewConversation::named("trip").unwrap()
    };
    let made = engine.create_conversation(&call, request).unwrap();
    let trip = made.id.clone();
    let named = |turn: &str| TurnRef::within(trip.clone(), at(turn));

    let messages = vec![
        message(r#"{"role":"user","content":"What's the best time to visit Tokyo?"}"#),
        message(
            r#"{"role":"assistant","status":"partial","content":[{"type":"x","big":9007199254740993},
                {"type":"tool-use","id":"a","name":"f","parameters":{}}],
                "metadata":{"source_info":{"model":"m","usage":{"input_tokens":7,"output_tokens":3},
                "cost_usd":0.1234567},"tags":["b","a"],"custom_data":[1e300]}}"#,
        ),
        message(r#"{"role":"tool","tool_call_id":"a","content":"42"}"#),
        message(r#"{"role":"user","content":"Thanks, and in autumn?"}"#),
    ];
    let mut noted = Call::by("somebody");
    noted.redacted.insert("github".to_owned(), 2);
    let appended = engine.append(&noted, Append::to(trip.clone(), messages)).unwrap();
    check::<view::Appended, _>(&appended);

    let fork =
        Fork { conversation: Some(trip.clone()), point: ForkPoint::At(at("main~1")), name: None };
    check::<view::Branch, _>(&engine.fork(&call, fork).unwrap());
    let body = Message::text(Role::User, "And in winter?").body;
    let edit = Edit { turn: named("main"), body, branch: None, reuse: true };
    check::<view::Edited, _>(&engine.edit(&call, edit).unwrap());
    let split = SplitTurn { turn: named("main"), offset: 7 };
    check::<view::SplitDone, _>(&engine.split(&call, split).unwrap());
    let name = Name::new("autumn", &Limits::default()).unwrap();
    check::<view::Bookmark, _>(&engine.set_bookmark(&call, name, named("main")).unwrap());
    let patch = MetadataPatch { title: Some(Some("Then".to_owned())), ..MetadataPatch::default() };
    check::<view::Turn, _>(&engine.patch_metadata(&call, named("main"), patch).unwrap());
    let back = MoveBranch {
        conversation: trip.clone(),
        branch: "main".to_owned(),
        to: Some(at("main~2")),
        expected_tip: None,
    };
    check::<view::Branch, _>(&engine.revert(&call, back).unwrap());
    for tail in engine.tails(&call, &trip).unwrap() {
        check::<view::Tail, _>(&tail);
    }
    let delete =
        Delete { turn: named("main"), mode: DeleteMode::Cascade, force: false, dry_run: false };
    check::<view::Deleted, _>(&engine.delete(&call, delete).unwrap());
    let include_deleted =
        TopologyQuery { include_deleted: true, ..TopologyQuery::of(trip.clone()) };
    check::<view::Topology, _>(&engine.topology(&call, include_deleted).unwrap());
    check::<view::Undone, _>(&engine.undo(&call, &trip, None).unwrap());
    check::<view::Path, _>(
        &engine.path(&call, PathQuery::of(trip.clone()).to(at("autumn"))).unwrap(),
    );
    let window = WindowQuery { turn: named("autumn"), branch: None, before: 2, after: 1 };
    check::<view::Window, _>(&engine.window(&call, window).unwrap());
    check::<view::Stats, _>(&engine.stats(&call, Some(&trip)).unwrap());
    for conversation in [Some(&trip), None] {
        let usage = engine.usage(&call, conversation).unwrap();
        assert_eq!(usage.total.cost_nanos, 123_456_700);
        check::<view::UsageTotals, _>(&usage);
    }
    check::<view::Verified, _>(&engine.verify().unwrap());
    for project in engine.projects().unwrap() {
        check::<view::Project, _>(&project);
    }

    let target = PurgeTarget::Turn(named("autumn"));
    let plan = engine.purge(&call, Purge { target: target.clone(), confirm: None }).unwrap();
    check::<view::Purged, _>(&plan);
    check::<view::Purged, _>(
        &engine.purge(&call, Purge { target, confirm: plan.confirm }).unwrap(),
    );
    check::<view::Turn, _>(&engine.turn(&call, named("autumn")).unwrap());

    for operation in engine.operations(&call, &trip, Page::default()).unwrap().items {
        check::<view::Operation, _>(&operation);
    }
    let (entries, _) = engine.feed(FeedPosition(0), &FeedFilter::default(), 1_000).unwrap();
    for entry in entries {
        let text = serde_json::to_string(&view::Event::from(entry.clone())).unwrap();
        let read = view::Event::from_text(&text).unwrap();
        assert_eq!(tine_engine::FeedEntry::try_from(read).unwrap(), entry);
    }

    let derive = Derive {
        conversation: trip.clone(),
        id: None,
        system_prompt: None,
        config: None,
        at: Some(at("main")),
    };
    let derived = engine.derive(&call, derive).unwrap();
    let text = serde_json::to_string(&view::Derived::from(derived.clone())).unwrap();
    let read: view::Derived = serde_json::from_str(&text).unwrap();
    assert_eq!(read.read(&call.project).unwrap(), derived);
    let plain =
        engine.create_conversation(&call, NewConversation::named("plain").unwrap()).unwrap();
    for conversation in [made, plain] {
        let text = serde_json::to_string(&view::Conversation::from(conversation.clone())).unwrap();
        let read: view::Conversation = serde_json::from_str(&text).unwrap();
        assert_eq!(read.read(&call.project).unwrap(), conversation);
    }
}

#[test]
fn an_answer_that_says_something_else_is_unreadable_and_the_field_is_named() {
    let branch = r#"{"conversation_id":"trip","branch_id":"none","name":"main","tip":null,
        "tip_hash":null,"forked_from":null,"created_at":"2024-01-15T10:30:00Z","version":1}"#;
    let view: view::Branch = serde_json::from_str(branch).unwrap();
    let error = tine_engine::BranchView::try_from(view).unwrap_err();
    assert_eq!(error.field, "branch_id");
    assert!(error.to_string().contains("`branch_id` cannot be read"), "{error}");
}
