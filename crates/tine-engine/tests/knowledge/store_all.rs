//! A turn, bytes and facts in one call.

use std::sync::Arc;

use tine_core::{ErrorKind, Message, Role};
use tine_engine::{
    AsOf, Call, ConversationView, Interpret, NewSource, Page, RelationshipQuery, StoreCombined,
    StoreFacts, StoreTurn,
};

use super::fact;
use crate::world::{World, for_each_store};

fn exchange(text: &str) -> StoreCombined {
    StoreCombined {
        turn: Some(StoreTurn::new("trip", "1", Message::text(Role::User, text))),
        source: Some(NewSource {
            content: Arc::new(b"Flight AB 123".to_vec()),
            mime_type: "text/plain".to_owned(),
            original_filename: Some("ticket.txt".to_owned()),
            interpret: Interpret::None,
            interpreter: None,
        }),
        facts: Some(StoreFacts {
            entities: vec![fact("person", r#"{"name":"Ada"}"#)],
            ..StoreFacts::default()
        }),
        dry_run: false,
    }
}

fn conversations(world: &World) -> Vec<ConversationView> {
    world.engine.conversations(&Call::by("tester"), true, Page::default()).expect("a list").items
}

#[test]
fn a_turn_its_bytes_and_facts_are_one_linked_operation() {
    for_each_store(|world| {
        let call = Call::by("tester").with_key("k");
        let done = world.engine.store_combined(&call, exchange("Ada flies")).expect("a store");
        let turn = done.turn.expect("a turn");
        let (source, _) = done.parts.source.expect("a source");
        assert_eq!(done.parts.facts_source, Some(source), "facts come from the bytes");
        let entity = done.parts.entities[0].entity;
        let evidence = world.engine.field_provenance(&call, entity, None).expect("provenance");
        assert_eq!(evidence[0].evidence[0].turn, Some(turn.turn.id), "and the turn said them");
        let related = RelationshipQuery::of(turn.entity);
        let related = world.engine.relationships(&call, related, Page::default()).expect("edges");
        let mut types: Vec<_> = related.items.iter().map(|it| it.relation.as_str()).collect();
        types.sort_unstable();
        assert_eq!(types, ["EMBEDS", "PART_OF", "REFERS_TO"]);
        let log = world.engine.operations(&call, &turn.conversation, Page::default());
        let log = log.expect("a log").items;
        assert_eq!(log.len(), 1);

        let again =
            world.engine.store_combined(&call, exchange("Ada flies")).expect("the same again");
        assert!(again.replayed);
        assert_eq!(again.parts, done.parts);
        let other =
            world.engine.store_combined(&call, exchange("Bob flies")).expect_err("another request");
        assert_eq!(other.kind(), ErrorKind::IdempotencyMismatch);

        let plain = Call::by("tester");
        world.engine.undo(&plain, &turn.conversation, None).expect("an undo");
        let gone = world.engine.entity(&plain, entity, AsOf::default());
        assert!(gone.is_err() || gone.is_ok_and(|it| it.snapshot.observations == 0));
        assert!(world.engine.verify().expect("a check").problems.is_empty());
    });
}

#[test]
fn a_dry_run_reports_the_result_and_stores_nothing() {
    for_each_store(|world| {
        let call = Call::by("tester").with_key("k");
        let request = StoreCombined { dry_run: true, ..exchange("Ada flies") };
        let done = world.engine.store_combined(&call, request).expect("a rehearsal");
        assert!(done.dry_run);
        assert_eq!(done.parts.entities.len(), 1);
        assert!(conversations(world).is_empty());
        let entity = world.engine.entity(&call, done.parts.entities[0].entity, AsOf::default());
        assert_eq!(entity.expect_err("nothing").kind(), ErrorKind::NotFound);
        let sources = world.engine.sources(&call, Page::default()).expect("a list");
        assert!(sources.items.is_empty());
        let kept =
            world.engine.store_combined(&call, exchange("Ada flies")).expect("the key is free");
        assert!(!kept.replayed);
    });
}

#[test]
fn one_bad_part_refuses_all() {
    for_each_store(|world| {
        let call = Call::by("tester");
        let mut request = exchange("Ada flies");
        request.facts = Some(StoreFacts {
            entities: vec![fact("task", r#"{"title":"x","due":"soon"}"#)],
            ..StoreFacts::default()
        });
        let error = world.engine.store_combined(&call, request).expect_err("a misfit");
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(conversations(world).is_empty());
        assert!(world.engine.sources(&call, Page::default()).expect("a list").items.is_empty());
        let nothing =
            world.engine.store_combined(&call, StoreCombined::default()).expect_err("nothing");
        assert_eq!(nothing.kind(), ErrorKind::Invalid);
    });
}
