//! What was learned, out of one store and into another.

use std::sync::Arc;

use tine_core::{ConversationId, ProjectId};
use tine_engine::{
    BundleRecord, Call, EntityQuery, Interpret, Merge, NewSource, Page, PurgeTarget, SearchQuery,
    Separate, StoreCombined, StoreFacts, StoreTurn,
};
use tine_store::{Family, MemoryStore, Record};

use super::{fact, runs};
use crate::purge::{gone, purge};
use crate::world::{World, bot, for_each_store, user};

pub(super) fn records(world: &World, call: &Call, id: &str) -> Vec<BundleRecord> {
    let mut found = Vec::new();
    let id = ConversationId::from_stored(id);
    let mut keep = |record| {
        found.push(record);
        Ok(())
    };
    world.engine.export(call, &id, &mut keep).expect("an export");
    found
}

/// A chat with an attachment, an edit, a deletion runs over it, and facts.
pub(super) fn fill(world: &World) {
    let photo = NewSource {
        content: Arc::new(vec![7; 600_000]),
        mime_type: "image/png".to_owned(),
        original_filename: Some("photo.png".to_owned()),
        interpret: Interpret::None,
        interpreter: None,
    };
    let photo = world.engine.store_source(&world.call, photo).expect("a source").source.id;
    let mut first = StoreTurn::new("chat", "1", user("I need to call Ada Lovelace by 2025-03-01."));
    first.attachments = vec![photo];
    first.interpret = Interpret::Wait;
    world.engine.store_turn(&world.call, first).expect("a turn");
    world.store("chat", "1", bot("Noted."));
    world.store("chat", "1", bot("Noted!"));
    let made = world.facts(vec![
        fact("person", r#"{"name":"Ada","role":"countess"}"#),
        fact("person", r#"{"name":"A. Byron"}"#),
    ]);
    let merge = Merge { from: made.entities[1].entity, into: made.entities[0].entity };
    world.engine.merge_entities(&world.call, merge).expect("a merge");
    let made = world.facts(vec![
        fact("person", r#"{"name":"Grace Hopper","role":"admiral"}"#),
        fact("person", r#"{"name":"Grace Hopper","role":"actress"}"#),
    ]);
    let entity = made.entities[0].entity;
    let observations = vec![made.entities[1].observation];
    let separate = Separate { entity, observations, into: None };
    world.engine.separate_entity(&world.call, separate).expect("two");
}

fn everything(world: &World, call: &Call) -> String {
    let query = EntityQuery { deleted: true, ..EntityQuery::default() };
    let all = world.engine.entities(call, query, Page::default()).expect("entities").items;
    let lines: Vec<String> = all
        .iter()
        .map(|it| format!("{} {} {:?}", it.id, it.entity_type, it.snapshot.fields))
        .collect();
    lines.join("\n")
}

#[test]
fn a_copied_store_is_equal_to_the_byte() {
    for_each_store(|world| {
        fill(world);
        let all: Vec<BundleRecord> =
            ["chat", "~project"].iter().flat_map(|id| records(world, &world.call, id)).collect();
        let other = World::over(Arc::new(MemoryStore::new()), None);
        let mut imported = all.clone().into_iter().map(Ok);
        other.engine.import(None, &mut imported).expect("an import");
        for id in ["chat", "~project"] {
            assert_eq!(records(&other, &other.call, id), records(world, &world.call, id));
        }
        assert_eq!(everything(&other, &other.call), everything(world, &world.call));
        other.verified();
        // A second time adds nothing.
        let again = other.engine.import(None, &mut all.into_iter().map(Ok)).expect("an import");
        assert_eq!((again.conversations, again.extended, again.unchanged), (0, 0, 2));
        // Life goes on: the slots are those that came.
        let edited = other.store("chat", "1", bot("Noted?"));
        assert_eq!(other.versions(edited.entity), ["Noted.", "Noted!", "Noted?"]);
        other.verified();
    });
}

#[test]
fn in_another_project_slots_and_names_lead_to_the_imported_records() {
    for_each_store(|world| {
        fill(world);
        let all: Vec<BundleRecord> =
            ["chat", "~project"].iter().flat_map(|id| records(world, &world.call, id)).collect();
        let elsewhere = ProjectId::from_stored("elsewhere");
        let other = World::over(Arc::new(MemoryStore::new()), None);
        other.engine.import(Some(&elsewhere), &mut all.into_iter().map(Ok)).expect("an import");
        let call = other.call.clone().in_project(elsewhere);
        assert_eq!(everything(&other, &call), everything(world, &world.call));
        let other = World { call, ..other };
        let edited = other.store("chat", "1", bot("Noted?"));
        assert_eq!(other.versions(edited.entity), ["Noted.", "Noted!", "Noted?"]);
        let ada = other.facts(vec![fact("person", r#"{"name":"ADA","email":"ada@example.org"}"#)]);
        assert_eq!(other.field(ada.entities[0].entity, "role"), "countess".into());
        other.verified();
    });
}

#[test]
fn two_stores_that_know_the_same_person_agree_after_a_sync() {
    for_each_store(|world| {
        let mine = StoreTurn {
            interpret: Interpret::Wait,
            ..StoreTurn::new("mine", "1", user("I talked to Maria Lopez today."))
        };
        world.engine.store_turn(&world.call, mine).expect("a turn");
        let other = World::seeded(Arc::new(MemoryStore::new()), 77);
        let theirs = StoreTurn {
            interpret: Interpret::Wait,
            ..StoreTurn::new("theirs", "1", user("Please ask Maria Lopez for the keys."))
        };
        other.engine.store_turn(&other.call, theirs).expect("a turn");
        let imported = records(&other, &other.call, "theirs");
        world.engine.import(None, &mut imported.into_iter().map(Ok)).expect("an import");
        let query = EntityQuery { entity_type: Some("person".into()), ..EntityQuery::default() };
        let people = world.engine.entities(&world.call, query, Page::default());
        let people = people.expect("people").items;
        assert_eq!(people.len(), 1);
        assert_eq!(world.observed(people[0].id).len(), 2);
        world.verified();
    });
}

#[test]
fn a_bundle_whose_facts_were_changed_is_refused() {
    for_each_store(|world| {
        fill(world);
        let whole = records(world, &world.call, "chat");
        for at in 0..whole.len() {
            let mut changed = whole.clone();
            match &mut changed[at] {
                BundleRecord::Record(record)
                    if record.key().family() == Family::Observation
                        && record.text().contains("Ada") =>
                {
                    let text = record.text().replace("Ada", "Eve");
                    *record = Record::verbatim(record.key().clone(), text);
                }
                BundleRecord::Piece { bytes, .. } => bytes[3] ^= 1,
                _ => continue,
            }
            let other = World::over(Arc::new(MemoryStore::new()), None);
            let refused = other.engine.import(None, &mut changed.into_iter().map(Ok));
            refused.expect_err("a change that is found");
            assert!(other.engine.projects().expect("projects")[0].created_at.is_none());
        }
    });
}

#[test]
fn an_imported_purge_erases_the_content_here_too() {
    const SECRET: &str = "Quentzalia Vorobrandt";
    for_each_store(|world| {
        let other = World::seeded(Arc::new(MemoryStore::new()), 77);
        let text = format!("I need to call Dr. {SECRET} by 2031-07-19.");
        let request =
            StoreTurn { interpret: Interpret::Wait, ..StoreTurn::new("chat", "1", user(&text)) };
        let stored = other.engine.store_turn(&other.call, request).expect("a turn");
        let import_again = || {
            let imported = records(&other, &other.call, "chat");
            world.engine.import(None, &mut imported.into_iter().map(Ok)).expect("an import");
        };
        import_again();
        let search = || world.engine.search(&world.call, SearchQuery::of("vorobrandt"));
        assert_eq!(search().expect("a search").hits.len(), 1);
        purge(&other, PurgeTarget::Turn(other.turn(stored.turn.id)));
        import_again();
        for word in [SECRET, "quentzalia", "2031-07-19"] {
            gone(world, word);
        }
        let dates = world.engine.timeline(&world.call, None, None, Page::default());
        assert!(dates.expect("a timeline").items.is_empty());
        assert!(search().expect("a search").hits.is_empty());
        world.verified();
    });
}

#[test]
fn content_purged_here_stays_purged_when_an_import_has_it() {
    for_each_store(|world| {
        let other = World::seeded(Arc::new(MemoryStore::new()), 77);
        let request = StoreCombined {
            turn: Some(StoreTurn::new("chat", "1", user("See the ticket."))),
            source: Some(runs::source("text/plain", "Flight AB 123")),
            facts: Some(StoreFacts {
                entities: vec![fact("person", r#"{"name":"Ada"}"#)],
                ..StoreFacts::default()
            }),
            dry_run: false,
        };
        let done = other.engine.store_combined(&other.call, request).expect("a store");
        let import_again = || {
            let imported = records(&other, &other.call, "chat");
            world.engine.import(None, &mut imported.into_iter().map(Ok))
        };
        import_again().expect("an import");
        let (ticket, _) = done.parts.source.expect("a source");
        purge(world, PurgeTarget::Source(ticket));
        other.store("chat", "2", user("And now?"));
        assert_eq!(import_again().expect("an import").extended, 1);
        assert!(world.engine.source(&world.call, ticket).expect("what is left").purged);
        gone(world, "Flight AB 123");
        world.verified();
    });
}
