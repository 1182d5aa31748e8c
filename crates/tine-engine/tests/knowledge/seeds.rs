//! What the two documents that this part grew from ask for, and no other test says by itself.
//! The table in `mod.rs` tells which line is shown where.

use tine_core::facts::envelope;
use tine_core::{Json, Role};
use tine_engine::{
    Interpret, NewSource, Outcome, Page, Reinterpret, RelationshipQuery, RunQuery, RunStatus,
    StoreTurn,
};

use super::runs::{bytes, keep, source, turn_envelope};
use crate::world::{bot, for_each_store, user};

#[test]
fn an_envelope_with_its_key_again_is_the_same_source_turn_and_run() {
    for_each_store(|world| {
        let call = world.call.clone().with_key("conversation-chat-t1");
        let store = || {
            let request = turn_envelope("t1", "I need to call Maria Lopez tomorrow.");
            world.engine.store_source(&call, request).expect("an envelope")
        };
        let (first, again) = (store(), store());
        assert!(!first.replayed && again.replayed);
        assert_eq!(again.source, first.source);
        let run = |stored: &tine_engine::StoredSource| {
            stored.interpretation.as_ref().map(|run| (run.id, run.observations.clone()))
        };
        assert_eq!(run(&again), run(&first));
        let turn = |stored: &tine_engine::StoredSource| {
            stored.turn.as_ref().map(|turn| (turn.turn.id, turn.observation))
        };
        assert_eq!(turn(&again), turn(&first));
        let slot = first.turn.as_ref().expect("a turn").entity;
        assert_eq!(world.versions(slot).len(), 1);
        let sources = world.engine.sources(&world.call, Page::default()).expect("a list");
        let runs = world.engine.interpretations(&world.call, RunQuery::default(), Page::default());
        assert_eq!((sources.items.len(), runs.expect("a list").items.len()), (1, 1));
        world.verified();
    });
}

#[test]
fn an_envelope_with_another_key_is_the_same_source_and_another_version_and_run() {
    for_each_store(|world| {
        let store = |key: &str| {
            let call = world.call.clone().with_key(key);
            let request = turn_envelope("t1", "I live in Lisbon.");
            world.engine.store_source(&call, request).expect("an envelope")
        };
        let (first, second) = (store("one"), store("two"));
        assert_eq!((first.outcome, second.outcome), (Outcome::Created, Outcome::Reused));
        assert_eq!(first.source.id, second.source.id);
        let (first, second) = (first.turn.expect("a turn"), second.turn.expect("a turn"));
        assert_eq!((first.turn.id, first.entity), (second.turn.id, second.entity));
        assert_eq!(world.versions(first.entity).len(), 2);
        let runs = world.engine.interpretations(&world.call, RunQuery::default(), Page::default());
        assert_eq!(runs.expect("a list").items.len(), 2);
        world.verified();
    });
}

#[test]
fn both_mime_types_of_the_envelope_mean_the_same() {
    for_each_store(|world| {
        let photo = keep(world, source("image/png", "pixels")).source.id;
        let body = format!(
            r#"{{"content":"look","conversation_id":"chat","turn_id":"1",
                "attachment_source_ids":["{photo}"],"mood":"kept as it is"}}"#
        );
        for (mime, turn_id) in [(envelope::MIME, "1"), (envelope::NEOTOMA_MIME, "2")] {
            let body = body.replace(r#""turn_id":"1""#, &format!(r#""turn_id":"{turn_id}""#));
            let kept = keep(world, source(mime, body.clone()));
            assert_eq!(bytes(world, kept.source.id), body.as_bytes(), "not a byte is changed");
            let turn = kept.turn.expect("a turn");
            assert_eq!((turn.slot.role, turn.slot.turn_id.as_str()), (Role::User, turn_id));
            assert_eq!(world.field(turn.entity, "content"), Json::from("look"));
            let query = RelationshipQuery::of(turn.entity);
            let related = world.engine.relationships(&world.call, query, Page::default());
            let related = related.expect("relationships").items;
            let types: Vec<&str> = related.iter().map(|one| one.relation.as_str()).collect();
            assert_eq!(types, ["PART_OF", "EMBEDS"]);
        }
        assert_eq!(
            world.path(&tine_core::ConversationId::from_stored("chat"), "main"),
            "look look"
        );
    });
}

#[test]
fn reading_again_adds_observations_and_leaves_the_old_ones_as_they_were() {
    for_each_store(|world| {
        let kept = keep(world, turn_envelope("t1", "I need to renew my passport by 2025-02-01."));
        let first = kept.interpretation.expect("a run");
        let values = |ids: &[tine_core::ObservationId]| -> Vec<_> {
            let one = |id: &tine_core::ObservationId| {
                let found = world.observed(id.entity);
                found.into_iter().find(|it| it.observation.id == *id).expect("an observation")
            };
            ids.iter().map(one).collect()
        };
        let before = values(&first.observations);
        let request =
            Reinterpret { sources: vec![kept.source.id], wait: true, ..Reinterpret::default() };
        let second = world.engine.reinterpret(&world.call, request).expect("a run").remove(0);
        assert_eq!(second.status, RunStatus::Completed);
        assert_eq!(second.observations.len(), first.observations.len());
        assert!(second.observations.iter().all(|id| !first.observations.contains(id)));
        assert_eq!(values(&first.observations), before);
        for one in values(&second.observations) {
            assert_eq!(one.observation.interpretation, Some(second.id));
            assert_eq!(one.observation.source, Some(kept.source.id));
        }
        world.verified();
    });
}

#[test]
fn structured_stores_are_not_interpreted_and_unstructured_ones_can_be() {
    for_each_store(|world| {
        let stored = world.store("chat", "1", user("I live in Lisbon."));
        assert!(stored.interpretation.is_none() && stored.source.is_none());
        let document = source("text/plain", "I live in Lisbon.");
        let kept = keep(world, NewSource { interpret: Interpret::Queue, ..document });
        assert_eq!(kept.interpretation.map(|run| run.status), Some(RunStatus::Queued));
    });
}

#[test]
fn turns_are_restored_with_varying_keys_and_without_branches() {
    for_each_store(|world| {
        let mut stores = 0;
        let mut send = |turn: &str, message: tine_core::Message| {
            stores += 1;
            let key = format!("conversation-chat-{turn}-{}", 1_700_000_000_000_u64 + stores);
            let call = world.call.clone().with_key(key);
            let request = StoreTurn::new("chat", turn, message);
            world.engine.store_turn(&call, request).expect("a turn")
        };
        let asked = send("1", user("a"));
        send("1", bot("b"));
        let first = send("2", user("c"));
        // Branch from the first question; the rest follows.
        send("1", user("a2"));
        send("1", bot("b2"));
        let second = send("2", user("c2"));
        assert_eq!(second.entity, first.entity, "one logical turn is one entity");
        assert_eq!(world.versions(first.entity), ["c", "c2"], "both branches are its history");
        assert_eq!(world.field(first.entity, "content"), Json::from("c2"), "the last is the state");
        assert_eq!(world.tree(&asked.conversation), "a(b(c)) a2(b2(c2))", "and nothing is lost");
        world.verified();
    });
}

#[test]
fn a_snapshot_is_the_last_store_whatever_its_branch() {
    for_each_store(|world| {
        let on = |branch: &str, text: &str| {
            let branch = Some(branch.to_owned());
            let request = StoreTurn { branch, ..StoreTurn::new("chat", "1", user(text)) };
            world.engine.store_turn(&world.call, request).expect("a turn")
        };
        let slot = on("main", "a").entity;
        for (branch, text) in [("left", "b"), ("right", "c"), ("left", "b"), ("main", "a")] {
            assert_eq!(on(branch, text).entity, slot);
            assert_eq!(world.field(slot, "content"), Json::from(text));
        }
        assert_eq!(world.versions(slot), ["a", "b", "c", "b", "a"]);
    });
}
