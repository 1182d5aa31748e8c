//! Erasure reaches everything that was learned from what is erased.

use std::sync::Arc;

use tine_analysis::{
    Account, Finding, Interpreter, InterpreterFailure, InterpreterInfo, InterpreterKind, Material,
};
use tine_core::json::{Json, object};
use tine_core::{ConversationId, EntityId, ProjectId, TurnId, facts::envelope};
use tine_engine::{
    BundleRecord, Call, End, EntityQuery, Interpret, Interpreters, NewFact, NewRelationship,
    NewSource, Page, PurgeTarget, RunStatus, StoreCombined, StoreFacts, StoreTurn,
};
use tine_store::{Detail, MemoryStore};

use super::{fact, runs, transfer};
use crate::purge::{gone, purge};
use crate::world::{World, bot, for_each_store, user};

/// A made-up name that the rules take for a person.
const NAME: &str = "Quentzalia Vorobrandt";

fn tell(world: &World, turn: &str) -> tine_engine::StoredTurn {
    let text = format!("I need to call Dr. {NAME} by 2031-07-19.");
    let request =
        StoreTurn { interpret: Interpret::Wait, ..StoreTurn::new("chat", turn, user(&text)) };
    world.engine.store_turn(&world.call, request).expect("a turn")
}

#[test]
fn a_purged_turn_leaves_no_byte_in_sources_runs_observations_or_names() {
    for_each_store(|world| {
        let stored = tell(world, "1");
        world.store("chat", "1", bot("Noted."));
        let run = stored.interpretation.expect("a run");
        assert!(!run.observations.is_empty());
        let done = purge(world, PurgeTarget::Turn(world.turn(stored.turn.id)));
        assert_eq!(done.sources, [stored.source.expect("a source")]);
        assert!(done.observations > 0);
        gone(world, NAME);
        gone(world, "quentzalia");
        gone(world, "2031-07-19");
        let left = world.engine.interpretation(&world.call, run.id).expect("the run");
        assert_eq!(left.status, RunStatus::Completed);
        let all = world.engine.entities(&world.call, EntityQuery::default(), Page::default());
        let types: Vec<_> =
            all.expect("entities").items.into_iter().map(|it| it.entity_type).collect();
        assert_eq!(types, ["agent_message", "agent_message", "conversation"]);
        world.verified();
    });
}

#[test]
fn observations_by_others_of_the_same_person_stay() {
    for_each_store(|world| {
        let first = tell(world, "1");
        let second = tell(world, "2");
        purge(world, PurgeTarget::Turn(world.turn(first.turn.id)));
        let query = EntityQuery { entity_type: Some("person".into()), ..EntityQuery::default() };
        let people = world.engine.entities(&world.call, query, Page::default());
        let people = people.expect("people").items;
        assert_eq!(people[0].name.as_deref(), Some(NAME));
        assert_eq!(world.observed(people[0].id).len(), 1);
        let run = second.interpretation.expect("a run");
        assert_eq!(world.engine.interpretation(&world.call, run.id).expect("the run"), run);
        world.verified();
    });
}

#[test]
fn purging_a_source_erases_everything_derived_from_it_for_good() {
    for_each_store(|world| {
        let source = NewSource {
            content: Arc::new(format!("Minutes. Dr. {NAME} spoke.").into_bytes()),
            mime_type: "text/plain".to_owned(),
            original_filename: Some(format!("{NAME}.txt")),
            interpret: Interpret::Wait,
            interpreter: None,
        };
        let kept = world.engine.store_source(&world.call, source.clone()).expect("a source");
        purge(world, PurgeTarget::Source(kept.source.id));
        gone(world, NAME);
        gone(world, "quentzalia");
        let left = world.engine.source(&world.call, kept.source.id).expect("what is left");
        assert!(left.purged && left.content_hash == kept.source.content_hash);
        let again = world.engine.store_source(&world.call, source).expect_err("purged bytes");
        assert_eq!(again.kind(), tine_core::ErrorKind::Unsupported);
        world.verified();
    });
}

#[test]
fn a_purged_conversation_takes_its_envelopes_and_its_titles_along() {
    for_each_store(|world| {
        let body = format!(
            r#"{{"content":"Ask Dr. {NAME} again.","conversation_id":"chat","turn_id":"7"}}"#
        );
        let source = NewSource {
            content: Arc::new(body.into_bytes()),
            mime_type: envelope::MIME.to_owned(),
            original_filename: None,
            interpret: Interpret::Wait,
            interpreter: None,
        };
        let kept = world.engine.store_source(&world.call, source).expect("a source");
        let titled = StoreTurn {
            title: Some(format!("InterpreterInfo {NAME}")),
            ..StoreTurn::new("chat", "8", user("x"))
        };
        world.engine.store_turn(&world.call, titled).expect("a turn");
        let talk = kept.turn.expect("a turn").conversation;
        purge(world, PurgeTarget::Conversation(talk));
        gone(world, NAME);
        gone(world, "quentzalia");
        world.verified();
    });
}

fn purge_turn(world: &World, turn: TurnId) -> tine_engine::Purged {
    purge(world, PurgeTarget::Turn(world.turn(turn)))
}

/// The one person that is known.
fn person(world: &World) -> EntityId {
    let query = EntityQuery { entity_type: Some("person".into()), ..EntityQuery::default() };
    let people = world.engine.entities(&world.call, query, Page::default());
    people.expect("people").items[0].id
}

#[test]
fn a_log_tells_of_every_source_and_run_of_one_store() {
    for_each_store(|world| {
        let turn = StoreTurn {
            interpret: Interpret::Queue,
            ..StoreTurn::new("chat", "1", user(&format!("Ask Dr. {NAME}.")))
        };
        let request = StoreCombined {
            turn: Some(turn),
            source: Some(NewSource {
                interpret: Interpret::Queue,
                ..runs::source("text/plain", "Flight AB 123")
            }),
            facts: Some(StoreFacts {
                entities: vec![fact("person", r#"{"name":"Ada"}"#)],
                ..StoreFacts::default()
            }),
            dry_run: false,
        };
        let done = world.engine.store_combined(&world.call, request).expect("a store");
        let stored = |kind: &str| {
            let is = |it: &&BundleRecord| matches!(it, BundleRecord::Record(of) if of.key().family().as_str() == kind);
            world.export().iter().filter(is).count()
        };
        assert_eq!((stored("source"), stored("interpretation")), (2, 3));
        purge_turn(world, done.turn.expect("a turn").turn.id);
        gone(world, NAME);
        world.verified();
    });
}

#[test]
fn a_source_can_be_purged_after_its_turn_without_any_log_entry() {
    for_each_store(|world| {
        let body = format!(r#"{{"content":"Ask {NAME}.","conversation_id":"chat","turn_id":"7"}}"#);
        let other = World::over(Arc::new(MemoryStore::new()), None);
        let kept = runs::keep(&other, runs::source(envelope::MIME, body));
        let mut imported = other.export();
        for record in &mut imported {
            if let BundleRecord::Operation(operation) = record {
                operation.detail = Detail::Purged(operation.detail.digest());
            }
        }
        world.engine.import(None, &mut imported.into_iter().map(Ok)).expect("an import");
        purge_turn(world, kept.turn.expect("a turn").turn.id);
        let done = purge(world, PurgeTarget::Source(kept.source.id));
        assert_eq!(done.sources, [kept.source.id]);
        gone(world, NAME);
        world.verified();
    });
}

#[test]
fn facts_are_erased_with_the_turn_that_states_them() {
    for_each_store(|world| {
        let said = world.store("chat", "1", user("x")).turn.id;
        let facts = vec![
            NewFact {
                turn: Some(said.into()),
                ..fact("person", &format!(r#"{{"name":"{NAME}"}}"#))
            },
            fact("task", r#"{"title":"wash vorobrandt's car","due":"2031-07-19"}"#),
        ];
        let kept = world.facts(facts);
        let done = purge_turn(world, said);
        assert_eq!(done.sources, [kept.source.id]);
        for word in [NAME, "quentzalia", "vorobrandt", "2031-07-19"] {
            gone(world, word);
        }
        let dates = world.engine.timeline(&world.call, None, None, Page::default());
        assert!(dates.expect("a timeline").items.is_empty());
        world.verified();
    });
}

#[test]
fn a_name_is_forgotten_when_only_retractions_and_other_fields_are_left() {
    for_each_store(|world| {
        let first = tell(world, "1");
        let other = NewFact {
            entity: Some(person(world)),
            ..fact("person", r#"{"email":"x@example.org"}"#)
        };
        world.facts(vec![other]);
        world.engine.undo(&world.call, &first.conversation, None).expect("the run taken back");
        purge_turn(world, first.turn.id);
        gone(world, "quentzalia");
        world.verified();
    });
}

#[test]
fn a_name_is_forgotten_where_it_leads_to_what_was_brought() {
    for_each_store(|world| {
        let stored = tell(world, "1");
        let imported = transfer::records(world, &world.call, "chat");
        let elsewhere = ProjectId::from_stored("elsewhere");
        let mut imported = imported.into_iter().map(Ok);
        world.engine.import(Some(&elsewhere), &mut imported).expect("an import");
        purge_turn(world, stored.turn.id);
        let there = World {
            call: Call::by("tester").in_project(elsewhere),
            engine: world.engine.clone(),
            folder: None,
        };
        purge_turn(&there, stored.turn.id);
        gone(world, NAME);
        gone(world, "quentzalia");
        world.verified();
    });
}

/// An interpreter that repeats what it read, and fails.
struct Blabs;

impl Interpreter for Blabs {
    fn about(&self) -> InterpreterInfo {
        InterpreterInfo {
            name: "blabs".to_owned(),
            version: "1".to_owned(),
            kind: InterpreterKind::Model,
            provider: None,
            model: None,
            parameters: Json::Null,
            seed: None,
        }
    }

    fn interpret(
        &self,
        said: &Material<'_>,
        _: &mut Account,
    ) -> Result<Vec<Finding>, InterpreterFailure> {
        Err(InterpreterFailure {
            message: format!("no facts in `{}`", said.text),
            transient: false,
        })
    }

    fn replay(
        &self,
        said: &Material<'_>,
        _: Option<&[u8]>,
    ) -> Result<Vec<Finding>, InterpreterFailure> {
        self.interpret(said, &mut Account::default())
    }
}

#[test]
fn a_purged_run_keeps_neither_its_error_nor_its_agents_detail() {
    for_each_store(|world| {
        let known = Interpreters::rules().with(Arc::new(Blabs)).by_default("blabs");
        let engine = world.engine.clone().with_interpreters(known.expect("it is there"));
        let blabbing = World { engine, call: world.call.clone(), folder: None };
        let failed = tell(&blabbing, "1").turn.id;
        let unknown = fact("person", r#"{"name":"Ada","vorobrandt_years":7}"#);
        let facts = StoreFacts {
            entities: vec![NewFact { turn: Some(failed.into()), ..unknown }],
            agent: object([("note", format!("asked {NAME}").into())]),
            ..StoreFacts::default()
        };
        let call = world.call.clone().with_key("k");
        let first = world.engine.store_facts(&call, facts.clone()).expect("facts");
        let again = world.engine.store_facts(&call, facts.clone()).expect("the same again");
        assert_eq!(first.unknown_fields, ["person.vorobrandt_years"]);
        assert_eq!(again.unknown_fields, first.unknown_fields);
        purge_turn(world, failed);
        gone(world, NAME);
        gone(world, "vorobrandt");
        let after = world.engine.store_facts(&call, facts).expect("still the same");
        assert!(after.replayed && after.unknown_fields.is_empty());
        world.verified();
    });
}

#[test]
fn relationship_metadata_is_erased_with_its_ends_and_its_source() {
    for_each_store(|world| {
        let said = world.store("chat", "1", user("x")).turn.id;
        let noted = |source: End, target: End, note: &str| NewRelationship {
            relation: "REFERS_TO".to_owned(),
            source,
            target,
            metadata: object([("note", format!("{NAME} {note}").into())]),
        };
        let facts = StoreFacts {
            entities: vec![
                NewFact { turn: Some(said.into()), ..fact("person", r#"{"name":"Ada"}"#) },
                fact("person", r#"{"name":"Bob"}"#),
            ],
            relationships: vec![noted(End::InCall(0), End::InCall(1), "one")],
            ..StoreFacts::default()
        };
        let kept = world.engine.store_facts(&world.call, facts).expect("facts");
        let ada = End::Entity(kept.entities[0].entity);
        let by_hand = noted(End::Turn(said.into()), ada, "two");
        world.engine.create_relationship(&world.call, by_hand).expect("a relationship");
        purge_turn(world, said);
        gone(world, NAME);
        let log = ConversationId::from_stored("~project");
        let log = world.engine.operations(&world.call, &log, Page::default()).expect("a log");
        assert!(!format!("{:?}", log.items).contains(NAME), "the log still tells it");
        world.verified();
    });
}
