//! What the contract promises across its parts: erasure, transfer, and logs that build on one
//! another.

use std::sync::Arc;

use tine_core::Json;
use tine_engine::{Page, Purge, PurgeTarget};
use tine_store::{Family, MemoryStore, RecordKey, RecordQuery};

use super::runs::{keep, turn_envelope};
use crate::world::{World, user};

fn purge(world: &World, target: PurgeTarget) {
    let asked = Purge { target: target.clone(), confirm: None };
    let confirm = world.engine.purge(&world.call, asked).expect("a plan").confirm;
    world.engine.purge(&world.call, Purge { target, confirm }).expect("an erasure");
}

/// Where in what was learned a word is still found.
fn holders(world: &World, word: &str) -> Vec<String> {
    let mut found = Vec::new();
    let project = &world.call.project;
    let read = world.engine.store().read(&mut |records| {
        for family in Family::all() {
            for record in records.records(project, &RecordQuery::all(family), 1_000)? {
                if record.text().contains(word) {
                    found.push(format!("{family:?} {}", record.text()));
                }
                if let RecordKey::Source(id) = record.key() {
                    let piece = records.piece(project, id, 0)?.unwrap_or_default();
                    if String::from_utf8_lossy(&piece).contains(word) {
                        found.push(format!("bytes of {id}"));
                    }
                }
            }
        }
        Ok(())
    });
    read.expect("entries that can be read");
    found
}

/// §5: content leaves every source, observation, raw model output and log entry.
#[test]
fn a_purge_erases_what_was_learned_from_a_turn() {
    for whole in [false, true] {
        let world = World::over(Arc::new(MemoryStore::new()), None);
        let text = "I need to call Persephone Nightingale tomorrow.";
        let kept = keep(&world, turn_envelope("t1", text));
        assert!(!holders(&world, "Persephone").is_empty());
        let turn = kept.turn.expect("a turn");
        purge(
            &world,
            match whole {
                true => PurgeTarget::Conversation(turn.conversation.clone()),
                false => PurgeTarget::Turn(world.turn(turn.turn.id)),
            },
        );
        assert_eq!(holders(&world, "Persephone"), Vec::<String>::new());
        world.verified();
    }
}

/// §10: an export from one store imports into another; §6: slots hold what the tree holds.
#[test]
fn slots_and_their_versions_come_with_an_import() {
    let world = World::over(Arc::new(MemoryStore::new()), None);
    let stored = world.store("chat", "1", user("a"));
    world.store("chat", "1", user("b"));
    let fresh = World::over(Arc::new(MemoryStore::new()), None);
    let records = world.export();
    fresh.engine.import(None, &mut records.into_iter().map(Ok)).expect("an import");
    fresh.verified();
    assert_eq!(fresh.tree(&stored.conversation), "a b");
    assert_eq!(fresh.versions(stored.entity), ["a", "b"]);
    assert_eq!(fresh.field(stored.entity, "content"), Json::from("b"));
    assert_eq!(fresh.store("chat", "1", user("a")).turn.id, stored.turn.id);
}

/// §5: undo refuses when a later operation builds on the one to be undone.
#[test]
fn a_turn_that_a_fact_names_cannot_be_undone() {
    let world = World::over(Arc::new(MemoryStore::new()), None);
    world.store("chat", "1", user("a"));
    let stored = world.store("chat", "2", user("b"));
    let mut fact = super::fact("note", r#"{"text":"b was said"}"#);
    fact.turn = Some(stored.turn.id.into());
    world.facts(vec![fact]);
    let undone = world.engine.undo(&world.call, &stored.conversation, None);
    assert!(undone.is_err(), "{undone:?}");
    let page = world.engine.operations(&world.call, &stored.conversation, Page::default());
    assert!(page.expect("a log").items.iter().all(|one| !one.undone));
}
