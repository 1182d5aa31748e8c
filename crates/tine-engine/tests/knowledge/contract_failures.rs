//! Six ways in which a store of turns can break its promises; none of them here.

use tine_core::json::Json;
use tine_engine::{Call, Correct, EntityQuery, Page};

use super::{fact, fields};
use crate::world::{bot, for_each_store, user};

#[test]
fn a_b_a_gives_three_observations_and_a_snapshot_that_says_a() {
    for_each_store(|world| {
        let first = world.store("chat", "t1", user("A"));
        world.store("chat", "t1", user("B"));
        let last = world.store("chat", "t1", user("A"));
        assert_eq!(first.entity, last.entity);
        assert_eq!(world.versions(first.entity), ["A", "B", "A"]);
        assert_eq!(world.field(first.entity, "content"), Json::from("A"));
        assert_eq!(world.tree(&first.conversation), "A B");
        assert_eq!(last.turn.id, first.turn.id, "the revert is the first turn again");
    });
}

#[test]
fn a_correction_outlasts_later_stores() {
    for_each_store(|world| {
        let made = world.facts(vec![fact("person", r#"{"name":"Ada","role":"clerk"}"#)]);
        let ada = made.entities[0].entity;
        let right =
            Correct { entity: ada, fields: fields(r#"{"role":"countess"}"#), observed_at: None };
        world.engine.correct(&world.call, right).expect("a correction");
        world.facts(vec![fact("person", r#"{"name":"ADA ","role":"typist"}"#)]);
        assert_eq!(world.field(ada, "role"), Json::from("countess"));
        let again =
            Correct { entity: ada, fields: fields(r#"{"role":"programmer"}"#), observed_at: None };
        world.engine.correct(&world.call, again).expect("a later correction");
        assert_eq!(world.field(ada, "role"), Json::from("programmer"));
    });
}

#[test]
fn delete_restore_delete_ends_deleted() {
    for_each_store(|world| {
        let made = world.facts(vec![fact("person", r#"{"name":"Ada"}"#)]);
        let ada = made.entities[0].entity;
        let listed = || {
            let query =
                EntityQuery { entity_type: Some("person".into()), ..EntityQuery::default() };
            world.engine.entities(&world.call, query, Page::default()).expect("a list").items.len()
        };
        for deleted in [true, false, true] {
            world.engine.set_entity_deleted(&world.call, ada, deleted).expect("a change");
            assert_eq!(listed(), usize::from(!deleted));
        }
        // Storing it again does not restore it, and the answer says so.
        let again = world.facts(vec![fact("person", r#"{"name":"Ada"}"#)]);
        assert!(again.warnings[0].contains("is deleted"), "{:?}", again.warnings);
        assert_eq!(listed(), 0);
    });
}

#[test]
fn roles_under_one_turn_id_never_overwrite_one_another() {
    for_each_store(|world| {
        let asked = world.store("chat", "t1", user("question"));
        let said = world.store("chat", "t1", bot("answer"));
        assert_ne!(asked.entity, said.entity);
        assert_eq!(world.versions(asked.entity), ["question"]);
        assert_eq!(world.versions(said.entity), ["answer"]);
        let keys = [asked, said].map(|stored| stored.slot.turn_key(&stored.conversation));
        assert_eq!(keys, ["chat:t1", "chat:t1:assistant"]);
    });
}

#[test]
fn slots_that_differ_in_case_are_two() {
    for_each_store(|world| {
        let lower = world.store("chat", "t-a", user("one"));
        let upper = world.store("chat", "T-A", user("two"));
        assert_ne!(lower.entity, upper.entity);
        assert_eq!(world.field(lower.entity, "content"), Json::from("one"));
    });
}

#[test]
fn without_a_turn_id_identity_is_never_taken_from_the_text() {
    for_each_store(|world| {
        let mut request = tine_engine::StoreTurn::new("chat", "", user("yes"));
        request.turn_id = None;
        let store = |call: &Call| {
            world.engine.store_turn(call, request.clone()).expect("a turn that is stored")
        };
        let (first, second) = (store(&world.call), store(&world.call));
        assert_ne!(first.entity, second.entity, "a minted turn id each");
        // With a key, the key is the handle.
        let third = store(&world.call.clone().with_key("k3"));
        assert_eq!(third.slot.turn_id, "k3");
        assert_eq!(world.tree(&first.conversation), "yes(yes(yes))");
    });
}
