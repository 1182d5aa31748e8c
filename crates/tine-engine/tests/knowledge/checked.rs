//! Verification checks knowledge record by record, and a repair derives the indexes again.

use std::sync::Arc;

use tine_core::{Digest, ProjectId};
use tine_engine::{Interpret, Separate, StoreTurn};
use tine_store::{Family, MemoryStore, PromptRecord, Record, RecordQuery, Verdict, WriteFamilies};

use super::{fact, transfer};
use crate::world::{World, for_each_store, user};

/// Something of every kind, and what leads to it.
fn everything(world: &World) {
    transfer::fill(world);
    let made = world.facts(vec![
        fact("person", r#"{"name":"Sam","role":"cook"}"#),
        fact("person", r#"{"name":"Sam","role":"pilot"}"#),
    ]);
    let observations = vec![made.entities[1].observation];
    let apart = Separate { entity: made.entities[0].entity, observations, into: None };
    world.engine.separate_entity(&world.call, apart).expect("two");
    let mut waits = StoreTurn::new("chat", "2", user("I need to call Bob."));
    waits.interpret = Interpret::Queue;
    world.engine.store_turn(&world.call, waits).expect("a turn");
}

fn first(world: &World, family: Family) -> Option<Record> {
    let mut found = None;
    let mut look = |records: &dyn tine_store::Read| {
        let all = records.records(&ProjectId::default(), &RecordQuery::all(family), 1)?;
        found = all.into_iter().next();
        Ok(())
    };
    world.engine.store().read(&mut look).expect("a look");
    found
}

/// Writes past every rule.
fn force(
    world: &World,
    write: impl Fn(&mut dyn tine_store::Write, &ProjectId) -> tine_store::Result<()> + Send + 'static,
) {
    let job = move |records: &mut dyn tine_store::Write| {
        write(records, &ProjectId::default())?;
        Ok(Verdict::Commit)
    };
    world.engine.store().write(Box::new(job)).expect("a write");
}

fn problems(world: &World) -> Vec<String> {
    let found = world.engine.verify().expect("a check").problems;
    found.into_iter().map(|it| format!("{}: {}", it.record, it.why)).collect()
}

#[test]
fn verify_reports_every_missing_record_that_others_need() {
    for_each_store(|world| {
        everything(world);
        world.verified();
        for family in [Family::Entity, Family::ObservationMove, Family::Observation, Family::Source]
        {
            let record = first(world, family).expect("a record");
            let key = record.key().clone();
            force(world, move |records, project| records.delete_record(project, &key));
            let found = problems(world);
            force(world, move |records, project| records.insert_record(project, &record));
            assert!(!found.is_empty(), "a missing {family:?}");
        }
        world.verified();
    });
}

#[test]
fn a_prompt_that_was_changed_is_named() {
    for_each_store(|world| {
        everything(world);
        let digest = Digest::of(b"What is said?");
        let put = |text: &str| {
            let prompt = PromptRecord { digest, text: text.to_owned() };
            force(world, move |records, project| records.put(project, &prompt));
        };
        put("What is said?");
        world.verified();
        put("What is hidden?");
        assert!(problems(world)[0].contains("its hash does not match"), "{:?}", problems(world));
    });
}

#[test]
fn a_repair_derives_the_indexes_again() {
    for_each_store(|world| {
        everything(world);
        let repaired = World::over(Arc::new(MemoryStore::new()), None);
        let mut left_out = Vec::new();
        let mut keep = |lost| {
            left_out.push(lost);
            Ok(())
        };
        let damaged = world.engine.store();
        repaired.engine.repair(&world.call, damaged, &[], &mut keep).expect("a repair");
        assert_eq!(left_out.len(), 0, "{left_out:?}");
        repaired.verified();
        let queue = repaired.engine.interpretation_queue(&world.call).expect("a queue");
        assert_eq!(queue.queued, 1, "the queue is whole again");
    });
}
