//! The client asks over HTTP what an engine beside the server answers itself: both say the same.

use std::fmt::Debug;
use std::sync::Arc;

use tine_api::Result;
use tine_client::Client;
use tine_core::facts::{Schema, envelope};
use tine_core::json::{self, Json, Object};
use tine_core::{ConversationId, Digest, ErrorKind, Limits, Message, Reference, Role, SourceId};
use tine_engine::{
    AsOf, Call, Correct, Direction, End, Engine, EntityQuery, Interpret, Knowledge, Merge, NewFact,
    NewRelationship, NewSchema, NewSource, Operations, Page, Reinterpret, RelationshipQuery,
    RunPair, RunQuery, Separate, StoreFacts, StoreTurn, Versions,
};
use tine_server::Options;

use crate::harness::Served;

/// Operations that run on an engine here and on one behind a server.
pub trait Everything: Operations + Knowledge + Versions {}

impl<T: Operations + Knowledge + Versions> Everything for T {}

pub struct Both {
    pub served: Served,
    pub client: Client,
    pub engine: Engine,
    pub call: Call,
}

impl Both {
    pub fn new() -> Self {
        let served = Served::with(Options { interprets: false, ..Options::default() });
        let client = Client::new(&format!("http://{}", served.address)).expect("an address");
        let engine = served.beside();
        Both { served, client, engine, call: Call::by("somebody") }
    }

    /// Asks both the same question.
    #[track_caller]
    pub fn agree<T: PartialEq + Debug>(
        &self,
        ask: impl Fn(&dyn Everything, &Call) -> Result<T>,
    ) -> T {
        let (here, there) = (ask(&self.engine, &self.call), ask(&self.client, &self.call));
        match (here, there) {
            (Ok(here), Ok(there)) => {
                assert_eq!(there, here);
                here
            }
            (here, there) => panic!("engine: {here:?}\nclient: {there:?}"),
        }
    }

    /// Asks both for something that they refuse in the same words.
    #[track_caller]
    pub fn refuse<T: Debug>(
        &self,
        kind: ErrorKind,
        ask: impl Fn(&dyn Everything, &Call) -> Result<T>,
    ) {
        let here = ask(&self.engine, &self.call).expect_err("a refusal");
        let there = ask(&self.client, &self.call).expect_err("a refusal");
        assert_eq!((there.kind(), there.to_string()), (here.kind(), here.to_string()));
        assert_eq!(there.kind(), kind);
    }

    /// Does something over the client, and asks the engine for the same again by its key. Besides
    /// that it is a repetition, both say the same.
    #[track_caller]
    pub fn done<T: PartialEq + Debug>(
        &self,
        key: &str,
        ask: impl Fn(&dyn Everything, &Call) -> Result<T>,
        first: impl Fn(T) -> T,
    ) -> T {
        let call = self.call.clone().with_key(key);
        let there = ask(&self.client, &call).expect("it is done");
        let here = ask(&self.engine, &call).expect("it is repeated");
        assert_eq!(there, first(here));
        there
    }
}

fn fields(text: &str) -> Object {
    match json::parse(text.as_bytes(), 16).expect("sound JSON") {
        Json::Object(fields) => fields,
        other => panic!("{other} is no object"),
    }
}

fn source(mime_type: &str, bytes: impl Into<Vec<u8>>, interpret: Interpret) -> NewSource {
    NewSource {
        content: Arc::new(bytes.into()),
        mime_type: mime_type.to_owned(),
        original_filename: Some("a \"name\" é.txt".to_owned()),
        interpret,
        interpreter: None,
    }
}

#[test]
fn stored_turns_are_the_same_over_a_server() {
    let both = Both::new();
    let attached =
        both.client.store_source(&both.call, source("image/png", [0, 255], Interpret::None));
    let attached = attached.expect("a source").source.id;
    let message = |text: &str| {
        let json = json::parse(text.as_bytes(), 16).expect("JSON");
        Message::from_json(json, &tine_core::Limits::default()).expect("a message")
    };
    let rich = StoreTurn {
        history: vec![Message::text(Role::User, "Hello"), Message::text(Role::Assistant, "Hi")],
        branch: Some("side".to_owned()),
        attachments: vec![attached],
        title: Some("A title".to_owned()),
        system_prompt: Some("Be brief.".to_owned()),
        interpret: Interpret::Wait,
        interpreter: Some("rules".to_owned()),
        ..StoreTurn::new(
            "chat: é",
            "turn/1",
            message(
                r#"{"role":"assistant","status":"partial","content":[{"type":"x","big":9007199254740993},
                {"type":"text","text":"Ann Lee lives in Rome."}],"created_at":"2024-01-15T10:30:00.25Z",
                "metadata":{"tags":["a"],"custom_data":[1e300]}}"#,
            ),
        )
    };
    let stored = both.done(
        " key with spaces ",
        |it, call| it.store_turn(call, rich.clone()),
        |done| tine_engine::StoredTurn { replayed: false, ..done },
    );
    assert!(stored.interpretation.is_some());
    let plain = |text: &str| StoreTurn::new("plain", "1", Message::text(Role::User, text));
    for (key, text) in [("a", "A"), ("b", "B"), ("c", "A")] {
        both.done(
            key,
            |it, call| it.store_turn(call, plain(text)),
            |done| tine_engine::StoredTurn { replayed: false, ..done },
        );
    }
    let answer = StoreTurn::new("plain", "1", Message::text(Role::Assistant, "C"));
    both.done(
        "d",
        |it, call| it.store_turn(call, answer.clone()),
        |done| tine_engine::StoredTurn { replayed: false, ..done },
    );
    let conversation = |id: &str| ConversationId::new(id, &Limits::default()).expect("an id");
    let slots = both.agree(|it, call| it.slots(call, &conversation("plain"), "1"));
    assert_eq!(slots.len(), 2, "question and answer: {slots:?}");
    assert!(both.agree(|it, call| it.slots(call, &conversation("plain"), "2")).is_empty());
    both.refuse(ErrorKind::NotFound, |it, call| it.slots(call, &conversation("none"), "1"));
    let minted = StoreTurn { conversation: None, turn_id: None, ..plain("x") };
    both.done(
        "minted",
        |it, call| it.store_turn(call, minted.clone()),
        |done| tine_engine::StoredTurn { replayed: false, ..done },
    );
    let at = |parent: &str| StoreTurn {
        parent: Some(Reference::parse(parent).expect("a reference")),
        ..plain("elsewhere")
    };
    both.refuse(ErrorKind::NotFound, |it, call| it.store_turn(call, at("nowhere")));
    let empty = StoreTurn { turn_id: Some(String::new()), ..plain("x") };
    both.refuse(ErrorKind::Invalid, |it, call| it.store_turn(call, empty.clone()));
    let nobody = StoreTurn {
        interpret: Interpret::Queue,
        interpreter: Some("nobody".to_owned()),
        ..plain("x")
    };
    both.refuse(ErrorKind::Invalid, |it, call| it.store_turn(call, nobody.clone()));
    assert!(both.served.get("/healthz").status == 200);
}

#[test]
fn sources_and_runs_are_the_same_over_a_server() {
    let both = Both::new();
    let first = |done| tine_engine::StoredSource { replayed: false, ..done };
    let large: Vec<u8> = (0..600_000_u32).map(|n| (n % 251) as u8).collect();
    for (key, kind, bytes) in [
        ("empty", "text/plain", Vec::new()),
        ("json", "application/json", b"{\"a\": 1}".to_vec()),
        ("large", "application/octet-stream", large.clone()),
    ] {
        let kept = both.done(
            key,
            |it, call| it.store_source(call, source(kind, bytes.clone(), Interpret::None)),
            first,
        );
        let mut all = Vec::new();
        for nth in 0.. {
            match both.agree(|it, call| it.source_piece(call, kept.source.id, nth)) {
                Some(piece) => all.extend(piece),
                None => break,
            }
        }
        assert!(all == bytes, "{key}");
        both.agree(|it, call| it.source(call, kept.source.id));
    }
    let body = r#"{"content":"I need to call Ann Lee on 14 March 2025.","conversation_id":"chat","turn_id":"1"}"#;
    let enveloped = both.done(
        "envelope",
        |it, call| it.store_source(call, source(envelope::MIME, body, Interpret::Wait)),
        |done| {
            let turn = done
                .turn
                .map(|turn| Box::new(tine_engine::StoredTurn { replayed: false, ..*turn }));
            tine_engine::StoredSource { replayed: false, turn, ..done }
        },
    );
    assert!(enveloped.turn.is_some());
    let run = enveloped.interpretation.expect("a run").id;
    let bare = both
        .client
        .store_source(&both.call, source(envelope::MIME, r#"{"content":"x"}"#, Interpret::Queue));
    assert_eq!(bare.expect("a source").warnings.len(), 1);
    both.agree(|it, call| it.sources(call, Page::default()));
    both.agree(|it, call| it.sources(call, Page { limit: Some(2), cursor: None }));
    both.agree(|it, call| it.interpretation(call, run));
    both.agree(|it, call| it.await_interpretation(call, run));
    both.agree(|it, call| it.interpretation_queue(call));
    let id = enveloped.source.id;
    for query in [
        RunQuery::default(),
        RunQuery { open: true, source: None },
        RunQuery { source: Some(id), open: false },
    ] {
        both.agree(|it, call| it.interpretations(call, query.clone(), Page::default()));
    }
    let again = Reinterpret { sources: vec![id], wait: true, ..Reinterpret::default() };
    let runs = both.done("again", |it, call| it.reinterpret(call, again.clone()), |runs| runs);
    let pair = RunPair { before: run, after: runs[0].id };
    both.agree(|it, call| it.compare_interpretations(call, pair));
    let broken = source("text/plain", [0xff], Interpret::Wait);
    let broken = both.client.store_source(&both.call, broken).expect("a source");
    let failed = broken.interpretation.expect("a run");
    assert!(failed.error.is_some());
    both.done("retry", |it, call| it.retry_interpretation(call, failed.id), |run| run);
    let none = SourceId::from_bytes([0; 16]);
    both.refuse(ErrorKind::NotFound, |it, call| it.source(call, none));
    both.refuse(ErrorKind::NotFound, |it, call| it.source_piece(call, none, 0));
    both.refuse(ErrorKind::NotFound, |it, call| it.prompt(call, Digest::of(b"none")));
    both.refuse(ErrorKind::Invalid, |it, call| it.reinterpret(call, Reinterpret::default()));
    both.refuse(ErrorKind::Invalid, |it, call| it.retry_interpretation(call, run));
    both.refuse(ErrorKind::Invalid, |it, call| {
        it.store_source(call, source(envelope::MIME, "none", Interpret::None))
    });
}

#[test]
fn facts_entities_relationships_and_schemas_are_the_same_over_a_server() {
    let both = Both::new();
    let turn = StoreTurn::new("chat", "1", Message::text(Role::User, "Ann leads."));
    let turn = both.client.store_turn(&both.call, turn).expect("a turn");
    let said = Reference::parse(&turn.turn.id.to_string()).expect("a reference");
    let schema = Schema::from_json(&Json::Object(fields(
        r#"{"entity_type":"recipe","description":"A dish.","identity":["name"],
            "fields":{"name":"name","parts":"list","day":"date"}}"#,
    )));
    let schema = NewSchema { schema: schema.expect("a schema") };
    both.done("schema", |it, call| it.register_schema(call, schema.clone()), |it| it);
    both.agree(|it, call| it.schemas(call));
    both.agree(|it, call| it.schema(call, "recipe", Some(1)));
    both.agree(|it, call| it.schema(call, "person", None));
    both.refuse(ErrorKind::NotFound, |it, call| it.schema(call, "recipe", Some(9)));

    let between = |relation: &str, source: End, target: End, metadata: Json| NewRelationship {
        relation: relation.to_owned(),
        source,
        target,
        metadata,
    };
    let request = StoreFacts {
        entities: vec![
            NewFact {
                observed_at: Some("2024-01-15T10:30:00Z".parse().expect("a time")),
                turn: Some(said.clone()),
                span: Some((0, 3)),
                priority: Some(-7),
                specificity: Some(3),
                ..NewFact::of(
                    "person",
                    fields(r#"{"name":"Ann Lee","shoe":12345678901234567890123}"#),
                )
            },
            NewFact::of(
                "recipe",
                fields(r#"{"name":"Pie","parts":["a","b"],"day":"2025-03-14","priority":"high"}"#),
            ),
            NewFact::of("person", fields(r#"{"name":"A. Lee","gone":null}"#)),
        ],
        relationships: vec![
            between(
                "DEPENDS_ON",
                End::InCall(1),
                End::InCall(0),
                Json::Object(fields(r#"{"n":0.1}"#)),
            ),
            between("REFERS_TO", End::Turn(said.clone()), End::InCall(0), Json::Null),
            between("REFERS_TO", End::Conversation("chat".to_owned()), End::InCall(1), Json::Null),
        ],
        source: None,
        agent: Json::Object(fields(r#"{"name":"me"}"#)),
    };
    let stored = both.done(
        "facts",
        |it, call| it.store_facts(call, request.clone()),
        |done| tine_engine::StoredFacts { replayed: false, ..done },
    );
    let (ann, pie, other) =
        (stored.entities[0].entity, stored.entities[1].entity, stored.entities[2].entity);
    both.refuse(ErrorKind::Invalid, |it, call| it.store_facts(call, StoreFacts::default()));

    let day = "2025-03-14T00:00:00Z".parse().expect("a time");
    for as_of in [AsOf::default(), AsOf { observed: Some(day), stored: Some(day) }] {
        both.agree(|it, call| it.entity(call, ann, as_of));
    }
    both.agree(|it, call| it.entity(call, turn.entity, AsOf::default()));
    for query in [
        EntityQuery::default(),
        EntityQuery { entity_type: Some("person".to_owned()), ..EntityQuery::default() },
        EntityQuery { text: Some("lee & co".to_owned()), deleted: true, entity_type: None },
    ] {
        both.agree(|it, call| it.entities(call, query.clone(), Page::default()));
    }
    both.agree(|it, call| {
        it.entities(call, EntityQuery::default(), Page { limit: Some(2), cursor: None })
    });
    both.agree(|it, call| it.observations(call, ann, Page::default()));
    both.agree(|it, call| it.field_provenance(call, ann, None));
    both.agree(|it, call| it.field_provenance(call, pie, Some("parts")));
    both.refuse(ErrorKind::NotFound, |it, call| it.field_provenance(call, pie, Some("none")));
    both.agree(|it, call| it.timeline(call, Some(day), None, Page::default()));

    let right =
        Correct { entity: ann, fields: fields(r#"{"name":"Ann B. Lee"}"#), observed_at: Some(day) };
    both.done("correct", |it, call| it.correct(call, right.clone()), |it| it);
    let merge = Merge { from: other, into: ann };
    both.done("merge", |it, call| it.merge_entities(call, merge), |it| it);
    both.agree(|it, call| it.entity(call, other, AsOf::default()));
    let apart =
        Separate { entity: ann, observations: vec![stored.entities[2].observation], into: None };
    both.done("apart", |it, call| it.separate_entity(call, apart.clone()), |it| it);
    both.done("delete", |it, call| it.set_entity_deleted(call, pie, true), |it| it);
    both.done("restore", |it, call| it.set_entity_deleted(call, pie, false), |it| it);

    let relate = between("CORRECTS", End::Entity(pie), End::Source(stored.source.id), Json::Null);
    both.done("relate", |it, call| it.create_relationship(call, relate.clone()), |it| it);
    both.agree(|it, call| it.relationships(call, RelationshipQuery::default(), Page::default()));
    for (end, direction) in [
        (End::Entity(pie), Direction::Both),
        (End::Source(stored.source.id), Direction::Incoming),
        (End::Turn(said), Direction::Outgoing),
        (End::Conversation("chat".to_owned()), Direction::Both),
    ] {
        let query = RelationshipQuery { end: Some(end), direction, relation: None };
        both.agree(|it, call| {
            it.relationships(call, query.clone(), Page { limit: Some(1), cursor: None })
        });
    }
    let typed =
        RelationshipQuery { relation: Some("CORRECTS".to_owned()), ..RelationshipQuery::default() };
    both.agree(|it, call| it.relationships(call, typed.clone(), Page::default()));
    both.done("part", |it, call| it.delete_relationship(call, relate.clone()), |it| it);
    both.refuse(ErrorKind::NotFound, |it, call| it.delete_relationship(call, relate.clone()));
    let odd = NewRelationship { relation: "LIKES".to_owned(), ..relate };
    both.refuse(ErrorKind::Invalid, |it, call| it.create_relationship(call, odd.clone()));
}
