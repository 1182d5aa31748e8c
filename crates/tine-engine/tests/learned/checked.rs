//! The check looks at what was learned entry by entry, and a repair makes look-ups again.

use std::sync::Arc;

use tine_core::{Digest, ProjectId};
use tine_engine::{Interpret, Separate, StoreTurn};
use tine_store::{Entry, EntryKind, KeyRange, MemoryStore, Verdict};

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

fn first(world: &World, kind: EntryKind) -> Option<Entry> {
    let mut found = None;
    let mut look = |records: &dyn tine_store::Read| {
        let all = records.entries(&ProjectId::default(), kind, &KeyRange::default(), 1)?;
        found = all.into_iter().next();
        Ok(())
    };
    world.engine.store().read(&mut look).expect("a look");
    found
}

/// Writes an entry past every rule, or removes it.
fn force(world: &World, kind: EntryKind, key: &[u8], text: Option<&str>) {
    let (key, text) = (key.to_vec(), text.map(str::to_owned));
    let job = move |records: &mut dyn tine_store::Write| {
        let project = ProjectId::default();
        match &text {
            Some(text) => records.put_entry(&project, kind, &key, text)?,
            None => records.delete_entry(&project, kind, &key)?,
        }
        Ok(Verdict::Commit)
    };
    world.engine.store().write(Box::new(job)).expect("a write");
}

fn problems(world: &World) -> Vec<String> {
    let found = world.engine.verify().expect("a check").problems;
    found.into_iter().map(|it| format!("{}: {}", it.record, it.why)).collect()
}

#[test]
fn no_entry_is_missing_unnoticed() {
    for_each_store(|world| {
        everything(world);
        world.verified();
        let kinds = EntryKind::ALL.into_iter().take_while(|kind| *kind != EntryKind::Commit);
        for kind in kinds {
            let Some(entry) = first(world, kind) else {
                assert!([EntryKind::Prompt, EntryKind::Schema].contains(&kind), "{kind:?}");
                continue;
            };
            force(world, kind, &entry.key, None);
            assert!(!problems(world).is_empty(), "a missing {kind:?}");
            force(world, kind, &entry.key, Some(&entry.text));
        }
        world.verified();
    });
}

#[test]
fn what_leads_nowhere_and_a_prompt_that_was_changed_are_named() {
    for_each_store(|world| {
        everything(world);
        for kind in [EntryKind::Dated, EntryKind::RunQueued, EntryKind::EntityOfType] {
            let mut key = first(world, kind).expect("an entry").key;
            key[0] ^= 1;
            force(world, kind, &key, Some(""));
            assert_eq!(problems(world).len(), 1, "{kind:?}: {:?}", problems(world));
            force(world, kind, &key, None);
        }
        let hash = Digest::of(b"What is said?");
        force(world, EntryKind::Prompt, &hash.0, Some("What is said?"));
        world.verified();
        force(world, EntryKind::Prompt, &hash.0, Some("What is hidden?"));
        assert!(problems(world)[0].contains("its hash does not fit"), "{:?}", problems(world));
    });
}

#[test]
fn a_repair_makes_what_leads_to_entries_again() {
    for_each_store(|world| {
        everything(world);
        for kind in [EntryKind::Dated, EntryKind::RunQueued, EntryKind::Slot] {
            let entry = first(world, kind).expect("an entry");
            let mut key = entry.key.clone();
            key[0] ^= 1;
            force(world, kind, &entry.key, None);
            force(world, kind, &key, Some(&entry.text));
        }
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
