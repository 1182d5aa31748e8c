//! Erasure reaches everything that was learned from what is erased.

use std::sync::Arc;

use tine_core::facts::envelope;
use tine_engine::{EntityQuery, Interpret, NewSource, Page, PurgeTarget, RunStatus, StoreTurn};

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
        let told = tell(world, "1");
        world.store("chat", "1", bot("Noted."));
        let run = told.interpretation.expect("a run");
        assert!(!run.observations.is_empty());
        let done = purge(world, PurgeTarget::Turn(world.turn(told.turn.id)));
        assert_eq!(done.sources, [told.source.expect("a source")]);
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
fn what_others_said_of_the_same_person_stays() {
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
fn a_purged_source_is_gone_with_all_that_was_learned_and_does_not_come_back() {
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
        assert_eq!(again.kind(), tine_core::Kind::Unsupported);
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
            title: Some(format!("About {NAME}")),
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
