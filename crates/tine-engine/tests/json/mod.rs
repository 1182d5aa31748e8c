//! Every answer goes through its JSON and comes back as the engine gave it.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on stops here")]

mod commits;
mod turns;

use std::fmt::Debug;
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tine_core::{ConversationId, Json, Limits, Message, Name, Reference, Role, json};
use tine_engine::{
    Append, BranchView, Call, Correct, Delete, DeleteMode, Derive, Edit, End, Engine, EntityQuery,
    FeedEntry, FeedFilter, Fork, ForkPoint, Interpret, MetadataPatch, MoveBranch, NewConversation,
    NewFact, NewRelationship, NewSource, Page, PathQuery, Purge, PurgeTarget, Reinterpret,
    RelationshipQuery, RunPair, SplitTurn, StoreFacts, StoreTurn, StoredFactsAnswer,
    StoredSourceAnswer, StoredTurnAnswer, TopologyQuery, TurnRef, WindowQuery,
};
use tine_store::{FeedPosition, MemoryStore};

/// Writes an answer and reads it again.
fn check<T: Serialize + DeserializeOwned + PartialEq + Debug>(answer: &T) {
    let text = serde_json::to_string(answer).unwrap();
    let read: T = serde_json::from_str(&text).unwrap();
    assert_eq!(read, *answer, "{text}");
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
fn every_answer_is_read_back_equal_from_its_json() {
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
    check(&appended);

    let fork =
        Fork { conversation: Some(trip.clone()), point: ForkPoint::At(at("main~1")), name: None };
    check(&engine.fork(&call, fork).unwrap());
    let body = Message::text(Role::User, "And in winter?").body;
    let edit = Edit { turn: named("main"), body, branch: None, reuse: true };
    check(&engine.edit(&call, edit).unwrap());
    let split = SplitTurn { turn: named("main"), offset: 7 };
    check(&engine.split(&call, split).unwrap());
    let name = Name::new("autumn", &Limits::default()).unwrap();
    check(&engine.set_bookmark(&call, name, named("main")).unwrap());
    let patch = MetadataPatch { title: Some(Some("Then".to_owned())), ..MetadataPatch::default() };
    check(&engine.patch_metadata(&call, named("main"), patch).unwrap());
    let back = MoveBranch {
        conversation: trip.clone(),
        branch: "main".to_owned(),
        to: Some(at("main~2")),
        expected_tip: None,
    };
    check(&engine.revert(&call, back).unwrap());
    for tail in engine.tails(&call, &trip).unwrap() {
        check(&tail);
    }
    let delete =
        Delete { turn: named("main"), mode: DeleteMode::Cascade, force: false, dry_run: false };
    check(&engine.delete(&call, delete).unwrap());
    let include_deleted =
        TopologyQuery { include_deleted: true, ..TopologyQuery::of(trip.clone()) };
    check(&engine.topology(&call, include_deleted).unwrap());
    check(&engine.undo(&call, &trip, None).unwrap());
    check(&engine.path(&call, PathQuery::of(trip.clone()).to(at("autumn"))).unwrap());
    let window = WindowQuery { turn: named("autumn"), branch: None, before: 2, after: 1 };
    check(&engine.window(&call, window).unwrap());
    check(&engine.stats(&call, Some(&trip)).unwrap());
    for conversation in [Some(&trip), None] {
        let usage = engine.usage(&call, conversation).unwrap();
        assert_eq!(usage.total.cost_nanos, 123_456_700);
        check(&usage);
    }
    check(&engine.verify().unwrap());
    for project in engine.projects().unwrap() {
        check(&project);
    }

    let target = PurgeTarget::Turn(named("autumn"));
    let plan = engine.purge(&call, Purge { target: target.clone(), confirm: None }).unwrap();
    check(&plan);
    check(&engine.purge(&call, Purge { target, confirm: plan.confirm }).unwrap());
    check(&engine.turn(&call, named("autumn")).unwrap());

    for operation in engine.operations(&call, &trip, Page::default()).unwrap().items {
        check(&operation);
    }
    let (entries, _) = engine.feed(FeedPosition(0), &FeedFilter::default(), 1_000).unwrap();
    for entry in entries {
        let text = serde_json::to_string(&entry).unwrap();
        assert_eq!(FeedEntry::from_json(&text).unwrap(), entry);
    }

    let derive = Derive {
        conversation: trip.clone(),
        id: None,
        system_prompt: None,
        config: None,
        at: Some(at("main")),
    };
    let derived = engine.derive(&call, derive).unwrap();
    check(&derived);
    let plain =
        engine.create_conversation(&call, NewConversation::named("plain").unwrap()).unwrap();
    for conversation in [made, plain] {
        check(&conversation);
    }
}

/// An interpreter that finds what its words say, so that runs over one source differ.
struct Parrot(&'static str, &'static str);

impl tine_analysis::Interpreter for Parrot {
    fn about(&self) -> tine_analysis::InterpreterInfo {
        tine_analysis::InterpreterInfo {
            name: self.0.to_owned(),
            version: "1".to_owned(),
            kind: tine_analysis::InterpreterKind::Model,
            provider: Some("nobody".to_owned()),
            model: Some("parrot".to_owned()),
            parameters: parse(r#"{"temperature":0.1,"big":9007199254740993}"#),
            seed: Some(7),
        }
    }

    fn interpret(
        &self,
        material: &tine_analysis::Material<'_>,
        account: &mut tine_analysis::Account,
    ) -> Result<Vec<tine_analysis::Finding>, tine_analysis::InterpreterFailure> {
        account.prompt = Some("Say it again.".to_owned());
        account.request = Some(vec![0xff, 0]);
        account.response = Some(self.1.as_bytes().to_vec());
        account.notes = vec!["a note".to_owned()];
        self.replay(material, Some(self.1.as_bytes()))
    }

    fn replay(
        &self,
        _: &tine_analysis::Material<'_>,
        response: Option<&[u8]>,
    ) -> Result<Vec<tine_analysis::Finding>, tine_analysis::InterpreterFailure> {
        let Json::Array(found) = parse(std::str::from_utf8(response.unwrap()).unwrap()) else {
            panic!("a list")
        };
        let one = |json: Json| tine_analysis::Finding {
            entity_type: "person".to_owned(),
            fields: json.as_object().unwrap().clone(),
            span: Some(0..3),
        };
        Ok(found.into_iter().map(one).collect())
    }
}

#[test]
fn every_answer_about_knowledge_is_read_back_equal_from_its_json() {
    let interpreters = tine_engine::Interpreters::rules()
        .with(Arc::new(Parrot("one", r#"[{"name":"Ann","a":1},{"name":"Bob"},{"name":"Eve"}]"#)))
        .with(Arc::new(Parrot("two", r#"[{"name":"Ann","a":2},{"name":"Cid"},{"name":"Eve"}]"#)));
    let engine = Engine::new(MemoryStore::new()).with_interpreters(interpreters);
    let call = Call::by("somebody");
    let object = |text: &str| parse(text).as_object().unwrap().clone();

    let source = |mime_type: &str, text: &str, interpreter: &str| NewSource {
        content: Arc::new(text.as_bytes().to_vec()),
        mime_type: mime_type.to_owned(),
        original_filename: Some("a.txt".to_owned()),
        interpret: Interpret::Wait,
        interpreter: Some(interpreter.to_owned()),
    };
    let plain = engine.store_source(&call, source("text/plain", "Ann", "one")).unwrap();
    let envelope = r#"{"content":"Ann called.","conversation_id":"chat","turn_id":"0"}"#;
    let envelope = source(tine_core::facts::envelope::MIME, envelope, "rules");
    let enveloped = engine.store_source(&call, envelope).unwrap();
    for stored in [&plain, &enveloped] {
        let answer = StoredSourceAnswer::new(stored.clone(), true);
        let text = serde_json::to_string(&answer).unwrap();
        let read: StoredSourceAnswer = serde_json::from_str(&text).unwrap();
        assert_eq!(read.into_stored(stored.interpretation.clone()).unwrap(), *stored);
        check(&stored.source);
    }
    let run = plain.interpretation.clone().unwrap();
    assert!(run.detail.get("request").is_some() && run.error.is_none(), "{run:?}");
    check(&run);
    let failed = engine.store_source(
        &call,
        NewSource { content: Arc::new(vec![0xff]), ..source("text/plain", "", "rules") },
    );
    let failed = failed.unwrap().interpretation.unwrap();
    check(&failed);
    check(&engine.retry_interpretation(&call, failed.id).unwrap());
    check(&engine.interpretation_queue(&call).unwrap());
    let again = Reinterpret {
        sources: vec![plain.source.id],
        interpreter: Some("two".to_owned()),
        wait: true,
        ..Reinterpret::default()
    };
    let after = engine.reinterpret(&call, again).unwrap()[0].id;
    let compared =
        engine.compare_interpretations(&call, RunPair { before: run.id, after }).unwrap();
    assert_eq!((compared.gained.len(), compared.lost.len(), compared.same), (1, 1, 1));
    assert_eq!(compared.changed.len(), 1);
    check(&compared);

    for text in ["A", "B", "A"] {
        let said = Message {
            tool_call_id: Some("call: é".to_owned()),
            ..Message::text(Role::Tool, text)
        };
        let request = StoreTurn {
            attachments: vec![plain.source.id],
            interpret: Interpret::Queue,
            ..StoreTurn::new("chat", "turn: 1", said)
        };
        let stored = engine.store_turn(&call, request).unwrap();
        let answer = StoredTurnAnswer::new(stored.clone(), true);
        let text = serde_json::to_string(&answer).unwrap();
        let read: StoredTurnAnswer = serde_json::from_str(&text).unwrap();
        assert_eq!(read.into_stored(stored.interpretation.clone()).unwrap(), stored);
    }
    let deleted = Delete {
        turn: TurnRef::within(ConversationId::new("chat", &Limits::default()).unwrap(), at("main")),
        mode: DeleteMode::Cascade,
        force: true,
        dry_run: false,
    };
    engine.delete(&call, deleted).unwrap();

    let fact = NewFact {
        span: Some((0, 3)),
        priority: Some(-9_007_199_254_740_993),
        specificity: Some(2),
        ..NewFact::of("person", object(r#"{"name":"Ann","n":12345678901234567890123}"#))
    };
    let dated = NewFact::of("event", object(r#"{"title":"Move","date":"2025-03-14"}"#));
    let facts = StoreFacts {
        entities: vec![fact, dated],
        relationships: vec![NewRelationship {
            relation: "REFERS_TO".to_owned(),
            source: End::InCall(1),
            target: End::InCall(0),
            metadata: parse(r#"{"n":9007199254740993}"#),
        }],
        source: Some(plain.source.id),
        agent: parse(r#"{"name":"me"}"#),
    };
    let stored = engine.store_facts(&call, facts).unwrap();
    let answer = StoredFactsAnswer::from(stored.clone());
    let read: StoredFactsAnswer =
        serde_json::from_str(&serde_json::to_string(&answer).unwrap()).unwrap();
    assert_eq!(read.into_stored().unwrap(), stored);
    let ann = stored.entities[0].entity;
    let correct = Correct { entity: ann, fields: object(r#"{"a":null}"#), observed_at: None };
    check(&engine.correct(&call, correct).unwrap());
    engine.set_entity_deleted(&call, ann, true).unwrap();
    let query = EntityQuery { deleted: true, ..EntityQuery::default() };
    let entities = engine.entities(&call, query, Page::default()).unwrap().items;
    assert!(entities.len() > 6, "{}", entities.len());
    for entity in entities {
        check(&entity);
        for one in engine.observations(&call, entity.id, Page::default()).unwrap().items {
            check(&one);
        }
        for field in engine.field_provenance(&call, entity.id, None).unwrap() {
            check(&field);
        }
    }
    for entry in engine.timeline(&call, None, None, Page::default()).unwrap().items {
        check(&entry);
    }
    let related = engine.relationships(&call, RelationshipQuery::default(), Page::default());
    for relationship in related.unwrap().items {
        check(&relationship);
    }
    for schema in engine.schemas(&call).unwrap() {
        check(&schema);
    }
}

#[test]
fn an_answer_with_an_id_of_another_form_is_unreadable() {
    let branch = r#"{"conversation_id":"trip","branch_id":"none","name":"main","tip":null,
        "tip_hash":null,"forked_from":null,"created_at":"2024-01-15T10:30:00Z","version":1}"#;
    let error = serde_json::from_str::<BranchView>(branch).unwrap_err();
    assert!(error.to_string().contains("`none`"), "{error}");
}
