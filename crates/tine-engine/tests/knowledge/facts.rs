//! Facts that callers structured, and what holds of entities.

use tine_core::ErrorKind;
use tine_core::facts::Schema;
use tine_core::json::{self, Json};
use tine_engine::{
    AsOf, Call, Correct, Delete, DeleteMode, End, EntityQuery, Merge, NewRelationship, NewSchema,
    Outcome, Page, RelationshipQuery, Separate, SplitTurn, StoreFacts,
};

use super::{fact, fields};
use crate::world::{World, for_each_store, start, user};

fn project_log() -> tine_core::ConversationId {
    tine_core::ConversationId::from_stored("~project")
}

fn schema(text: &str) -> NewSchema {
    let json = json::parse(text.as_bytes(), 16).expect("sound JSON");
    NewSchema { schema: Schema::from_json(&json).expect("a sound schema") }
}

#[test]
fn names_are_compared_folded_and_keys_byte_for_byte() {
    for_each_store(|world| {
        let made = world.facts(vec![
            fact("person", r#"{"name":"Jörg  Müller"}"#),
            fact("person", r#"{"name":"jo\u0308rg MÜLLER "}"#),
            fact("link", r#"{"url":"https://example.org/A"}"#),
            fact("link", r#"{"url":"https://example.org/a"}"#),
        ]);
        let ids: Vec<_> = made.entities.iter().map(|fact| fact.entity).collect();
        assert_eq!(ids[0], ids[1]);
        assert_ne!(ids[2], ids[3]);
        assert_eq!(made.entities[1].outcome, Outcome::Reused);
    });
}

#[test]
fn two_projects_never_share_an_entity() {
    for_each_store(|world| {
        let mine = world.facts(vec![fact("person", r#"{"name":"Ada"}"#)]);
        let other = Call::by("tester").in_project(tine_core::ProjectId::from_stored("other"));
        let request = StoreFacts {
            entities: vec![fact("person", r#"{"name":"Ada"}"#)],
            ..StoreFacts::default()
        };
        let theirs = world.engine.store_facts(&other, request).expect("facts");
        assert_ne!(mine.entities[0].entity, theirs.entities[0].entity);
        assert_ne!(mine.source.id, theirs.source.id);
        let error = world.engine.entity(&other, mine.entities[0].entity, AsOf::default());
        assert_eq!(error.expect_err("another project").kind(), ErrorKind::NotFound);
    });
}

#[test]
fn facts_that_do_not_match_their_schema_are_refused_and_leave_nothing() {
    for_each_store(|world| {
        for (wrong, word) in [
            (fact("task", r#"{"title":"x","due":"soon"}"#), "task.due takes a date"),
            (fact("Task", r#"{"title":"x"}"#), "cannot be the name of a type"),
            (fact("task", "{}"), "has no fields"),
            (fact("agent_message", r#"{"content":"x"}"#), "created by Tine"),
        ] {
            let good = fact("person", r#"{"name":"Ada"}"#);
            let request = StoreFacts { entities: vec![good, wrong], ..StoreFacts::default() };
            let error = world.engine.store_facts(&world.call, request).expect_err("a misfit");
            assert_eq!(error.kind(), ErrorKind::Invalid);
            assert!(error.to_string().contains(word), "{error}");
        }
        let all = world.engine.entities(&world.call, EntityQuery::default(), Page::default());
        assert_eq!(all.expect("a list").items.len(), 0);
        let sources = world.engine.sources(&world.call, Page::default()).expect("a list");
        assert_eq!(sources.items.len(), 0);
    });
}

#[test]
fn fields_that_a_schema_does_not_know_are_kept_shown_and_named() {
    for_each_store(|world| {
        let made = world.facts(vec![fact("person", r#"{"name":"Ada","shoe_size":37}"#)]);
        assert_eq!(made.unknown_fields, ["person.shoe_size"]);
        let ada = world.entity(made.entities[0].entity);
        assert_eq!(ada.snapshot.fields.get("shoe_size"), Some(&Json::from(37)));
        assert_eq!(ada.undeclared, ["shoe_size"]);
    });
}

#[test]
fn a_schema_change_does_not_alter_what_was_observed_before_it() {
    for_each_store(|world| {
        let first = schema(
            r#"{"entity_type":"recipe","identity":["name"],
                "fields":{"name":"name","servings":{"kind":"number","strategy":"highest_priority"}}}"#,
        );
        assert_eq!(world.engine.register_schema(&world.call, first).expect("v1").version, 1);
        let mut high = fact("recipe", r#"{"name":"soup","servings":4}"#);
        high.priority = Some(500);
        let soup = world.facts(vec![high]).entities[0].entity;
        world.facts(vec![fact("recipe", r#"{"name":"Soup","servings":2}"#)]);
        let before = world.entity(soup).snapshot;
        assert_eq!(before.fields.get("servings"), Some(&Json::from(4)));

        let second = schema(
            r#"{"entity_type":"recipe","identity":["name"],
                "fields":{"name":"name","servings":"number"}}"#,
        );
        let second = world.engine.register_schema(&world.call, second.clone()).expect("v2");
        assert_eq!(second.version, 2);
        assert_eq!(world.entity(soup).snapshot, before, "nothing was observed with it yet");
        world.facts(vec![fact("recipe", r#"{"name":"SOUP","servings":6}"#)]);
        let after = world.entity(soup).snapshot;
        assert_eq!((after.schema_version, after.fields.get("servings")), (2, Some(&Json::from(6))));
        // Registering the same again is no new version.
        let again = NewSchema { schema: second };
        assert_eq!(world.engine.register_schema(&world.call, again).expect("v2").version, 2);
    });
}

#[test]
fn as_of_reads_show_what_was_known_then() {
    for_each_store(|world| {
        let at = |text: &str| text.parse().expect("a time");
        let mut old = fact("person", r#"{"name":"Ada","role":"pupil"}"#);
        old.observed_at = Some(at("1830-01-01T00:00:00Z"));
        let mut new = fact("person", r#"{"name":"Ada","role":"countess"}"#);
        new.observed_at = Some(at("1838-01-01T00:00:00Z"));
        // What happened later came first.
        let ada = world.facts(vec![new]).entities[0].entity;
        let stored = world.entity(ada).first_seen;
        world.facts(vec![old]);
        let role = |as_of: AsOf| {
            let view = world.engine.entity(&world.call, ada, as_of).expect("an entity");
            view.snapshot.fields.get("role").cloned().unwrap_or(Json::Null)
        };
        assert_eq!(role(AsOf::default()), Json::from("countess"));
        let then = AsOf { observed: Some(at("1835-01-01T00:00:00Z")), stored: None };
        assert_eq!(role(then), Json::from("pupil"));
        let early = AsOf { observed: then.observed, stored: Some(stored) };
        assert_eq!(role(early), Json::Null, "the old fact had not come yet");
    });
}

#[test]
fn merged_entities_are_one_until_that_is_undone() {
    for_each_store(|world| {
        let made = world.facts(vec![
            fact("person", r#"{"name":"Ada Lovelace","role":"countess"}"#),
            fact("person", r#"{"name":"A. Lovelace","email":"ada@example.org"}"#),
        ]);
        let (ada, other) = (made.entities[0].entity, made.entities[1].entity);
        let before = (world.entity(ada), world.entity(other));
        let merge = Merge { from: other, into: ada };
        let one = world.engine.merge_entities(&world.call, merge).expect("a merge");
        assert_eq!(one.snapshot.fields.get("email"), Some(&Json::from("ada@example.org")));
        assert_eq!(world.entity(other).merged_from, Some(other));
        assert_eq!(world.observed(ada).len(), 2);
        // A store to the merged one reaches the one that stays.
        let later = world.facts(vec![fact("person", r#"{"name":"A. Lovelace","phone":"1"}"#)]);
        assert_eq!(world.field(ada, "phone"), Json::from("1"));
        let merge = newest(world, "merge_entities");
        world.engine.undo(&world.call, &project_log(), Some(merge)).expect("undo the merge");
        // And belongs to whom it named.
        assert_eq!(later.entities[0].entity, other);
        assert_eq!(world.field(other, "phone"), Json::from("1"));
        assert_eq!(world.field(ada, "phone"), Json::Null);
        world.engine.undo(&world.call, &project_log(), None).expect("undo the store");
        assert_eq!(world.entity(other), before.1);
        assert_eq!(world.entity(ada).snapshot.fields, before.0.snapshot.fields);
        world.verified();
    });
}

/// The newest entry of its kind in the project's log.
fn newest(world: &World, kind: &str) -> u64 {
    let log = world.engine.operations(&world.call, &project_log(), Page::default());
    let found = log.expect("a log").items.into_iter().find(|it| it.kind == kind);
    found.expect("an entry").seq
}

#[test]
fn a_merged_entity_passes_its_relationships_on() {
    for_each_store(|world| {
        let made = world.facts(vec![
            fact("person", r#"{"name":"Ada Lovelace"}"#),
            fact("person", r#"{"name":"A. Lovelace"}"#),
            fact("task", r#"{"title":"a"}"#),
        ]);
        let [ada, other, task] = [0, 1, 2].map(|at| made.entities[at].entity);
        for (source, target) in [(other, task), (task, other), (ada, task)] {
            let edge = NewRelationship {
                relation: "REFERS_TO".to_owned(),
                source: End::Entity(source),
                target: End::Entity(target),
                metadata: Json::Null,
            };
            world.engine.create_relationship(&world.call, edge).expect("a relationship");
        }
        let merge = Merge { from: other, into: ada };
        world.engine.merge_entities(&world.call, merge).expect("a merge");
        for asked in [ada, other] {
            let mut found = Vec::new();
            let mut page = Page { limit: Some(1), cursor: None };
            loop {
                let query = RelationshipQuery::of(asked);
                let listed = world.engine.relationships(&world.call, query, page);
                let listed = listed.expect("a page");
                found.extend(listed.items.into_iter().map(|it| (it.source, it.target)));
                match listed.next {
                    Some(next) => page = Page { limit: Some(1), cursor: Some(next) },
                    None => break,
                }
            }
            assert_eq!(found.len(), 3, "{found:?}");
        }
    });
}

#[test]
fn relationships_with_what_is_deleted_are_not_listed() {
    for_each_store(|world| {
        let made =
            world.facts(vec![fact("task", r#"{"title":"a"}"#), fact("task", r#"{"title":"b"}"#)]);
        let [first, second] = [0, 1].map(|at| made.entities[at].entity);
        let edge = NewRelationship {
            relation: "DEPENDS_ON".to_owned(),
            source: End::Entity(first),
            target: End::Entity(second),
            metadata: Json::Null,
        };
        world.engine.create_relationship(&world.call, edge).expect("a relationship");
        let listed = |query: RelationshipQuery| {
            let found = world.engine.relationships(&world.call, query, Page::default());
            found.expect("relationships").items.len()
        };
        world.engine.set_entity_deleted(&world.call, second, true).expect("a deletion");
        assert_eq!(listed(RelationshipQuery::of(first)), 0);
        assert_eq!(listed(RelationshipQuery::default()), 0);
        assert_eq!(listed(RelationshipQuery::of(second)), 1, "who asks for it knows of it");
        world.engine.set_entity_deleted(&world.call, second, false).expect("it is back");
        assert_eq!(listed(RelationshipQuery::of(first)), 1);
    });
}

#[test]
fn slots_of_a_conversation_that_is_not_there_are_not_found() {
    for_each_store(|world| {
        let chat = world.store("chat", "1", user("a")).conversation;
        let none = world.engine.slots(&world.call, &chat, "2").expect("a list");
        assert!(none.is_empty());
        let nowhere = tine_core::ConversationId::from_stored("nowhere");
        let error = world.engine.slots(&world.call, &nowhere, "1").expect_err("no conversation");
        assert_eq!(error.kind(), ErrorKind::NotFound);
    });
}

#[test]
fn a_merge_is_not_done_again_into_what_was_merged_the_other_way_round() {
    for_each_store(|world| {
        let made = world.facts(vec![
            fact("person", r#"{"name":"Ada"}"#),
            fact("person", r#"{"name":"Bob"}"#),
            fact("person", r#"{"name":"Eve"}"#),
        ]);
        let [ada, bob, eve] = [0, 1, 2].map(|at| made.entities[at].entity);
        let merge = |from, into| {
            world.engine.merge_entities(&world.call, Merge { from, into }).expect("a merge");
        };
        merge(ada, bob);
        let first = newest(world, "merge_entities");
        world.engine.undo(&world.call, &project_log(), Some(first)).expect("an undo");
        merge(bob, eve);
        merge(eve, ada);
        let again = world.engine.redo(&world.call, &project_log(), Some(first));
        assert_eq!(again.expect_err("a circle").kind(), ErrorKind::Protected);
        assert_eq!(world.entity(bob).id, ada);
        world.verified();
    });
}

#[test]
fn one_entity_that_is_two_is_separated_without_touching_an_observation() {
    for_each_store(|world| {
        let made = world.facts(vec![
            fact("person", r#"{"name":"Sam","role":"cook"}"#),
            fact("person", r#"{"name":"Sam","role":"pilot"}"#),
        ]);
        let sam = made.entities[0].entity;
        let kept = world.observed(sam);
        let request =
            Separate { entity: sam, observations: vec![made.entities[1].observation], into: None };
        let other = world.engine.separate_entity(&world.call, request).expect("two");
        assert_eq!(other.snapshot.fields.get("role"), Some(&Json::from("pilot")));
        assert_eq!(world.field(sam, "role"), Json::from("cook"));
        assert_eq!(world.observed(other.id)[0].observation, kept[1].observation);
        world.engine.undo(&world.call, &project_log(), None).expect("an undo");
        assert_eq!(world.field(sam, "role"), Json::from("pilot"));
        world.verified();
    });
}

#[test]
fn only_the_eight_types_of_relationship_are_taken() {
    for_each_store(|world| {
        let made =
            world.facts(vec![fact("task", r#"{"title":"a"}"#), fact("task", r#"{"title":"b"}"#)]);
        let relate = |relation: &str| NewRelationship {
            relation: relation.to_owned(),
            source: End::Entity(made.entities[0].entity),
            target: End::Entity(made.entities[1].entity),
            metadata: Json::Null,
        };
        let error = world.engine.create_relationship(&world.call, relate("discusses"));
        let error = error.expect_err("no such type");
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.to_string().contains("SUPERSEDES"), "{error}");
        for relation in tine_core::facts::Relation::ALL {
            let made = world
                .engine
                .create_relationship(&world.call, relate(relation.as_str()))
                .expect("one of the eight");
            assert_eq!(made.outcome, Some(Outcome::Created));
        }
        let again = world
            .engine
            .create_relationship(&world.call, relate("DEPENDS_ON"))
            .expect("the same again");
        assert_eq!(again.outcome, Some(Outcome::Reused));
        let query = RelationshipQuery::of(made.entities[1].entity);
        let found = world.engine.relationships(&world.call, query, Page::default());
        assert_eq!(found.expect("relationships").items.len(), 8);
        world.engine.delete_relationship(&world.call, relate("SETTLES")).expect("a removal");
        let listed = |world: &World| {
            let query = RelationshipQuery::of(made.entities[0].entity);
            let page = Page { limit: Some(3), ..Page::default() };
            let mut found = 0;
            let mut page = Some(page);
            while let Some(asked) = page {
                let listing = world.engine.relationships(&world.call, query.clone(), asked);
                let listing = listing.expect("a page");
                found += listing.items.len();
                page = listing.next.map(|next| Page { limit: Some(3), cursor: Some(next) });
            }
            found
        };
        assert_eq!(listed(world), 7);
        world.engine.undo(&world.call, &project_log(), None).expect("an undo");
        assert_eq!(listed(world), 8);
        world.verified();
    });
}

#[test]
fn the_timeline_holds_what_is_dated_and_still_holds() {
    for_each_store(|world| {
        let made = world.facts(vec![
            fact("event", r#"{"title":"launch","date":"2025-05-01"}"#),
            fact("task", r#"{"title":"write","due":"2025-04-01"}"#),
        ]);
        let right = Correct {
            entity: made.entities[1].entity,
            fields: fields(r#"{"due":"2025-06-01"}"#),
            observed_at: None,
        };
        world.engine.correct(&world.call, right).expect("a correction");
        let all = world.engine.timeline(&world.call, None, None, Page::default());
        let all = all.expect("a timeline").items;
        let dates: Vec<_> =
            all.iter().map(|it| (it.date.as_str(), it.name.as_deref().unwrap_or(""))).collect();
        assert_eq!(dates, [("2025-05-01", "launch"), ("2025-06-01", "write")]);
        let from = "2025-05-15T00:00:00Z".parse().ok();
        let late = world.engine.timeline(&world.call, from, None, Page::default());
        assert_eq!(late.expect("a timeline").items.len(), 1);
    });
}

#[test]
fn a_turn_that_a_fact_was_taken_from_is_not_deleted_without_force() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let said = world.say(&talk, &["a", "b"]);
        let mut about = fact("note", r#"{"text":"b was said"}"#);
        about.turn = Some(said[1].into());
        world.facts(vec![about]);
        let delete = |force| Delete {
            turn: world.turn(said[0]),
            mode: DeleteMode::Cascade,
            force,
            dry_run: false,
        };
        let error = world.engine.delete(&world.call, delete(false)).expect_err("a reference");
        assert_eq!(error.kind(), ErrorKind::Protected);
        assert_eq!(error.details().references.len(), 1);
        world.engine.delete(&world.call, delete(true)).expect("a deletion by force");
    });
}

#[test]
fn a_half_of_a_turn_that_a_fact_was_taken_from_is_not_deleted_without_force() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let said = world.say(&talk, &["one two", "b", "c"]);
        for (turn, text) in [(said[0], "it was said"), (said[1], "b was said")] {
            let mut about = fact("note", &format!(r#"{{"text":"{text}"}}"#));
            about.turn = Some(turn.into());
            world.facts(vec![about]);
        }
        let split = SplitTurn { turn: world.turn(said[0]), offset: 4 };
        let halves = world.engine.split(&world.call, split).expect("two halves");
        let delete = |turn, force| Delete {
            turn: world.turn(turn),
            mode: DeleteMode::Reparent,
            force,
            dry_run: false,
        };
        for half in [halves.left.id, halves.right.id] {
            let error = world.engine.delete(&world.call, delete(half, false));
            assert_eq!(error.expect_err("a reference").kind(), ErrorKind::Protected);
        }
        // Taken back, a split takes nothing away.
        world.engine.undo(&world.call, &talk, None).expect("one turn again");
        world.engine.redo(&world.call, &talk, None).expect("two halves again");
        world.engine.delete(&world.call, delete(halves.left.id, true)).expect("by force");
        world.verified();
    });
}

#[test]
fn a_correction_names_fields_as_a_store_does() {
    for_each_store(|world| {
        let ada = world.facts(vec![fact("person", r#"{"name":"Ada"}"#)]).entities[0].entity;
        for wrong in [r#"{"Shoe Size":1}"#, r#"{"entity_id":"x"}"#] {
            let wrong = Correct { entity: ada, fields: fields(wrong), observed_at: None };
            let error = world.engine.correct(&world.call, wrong).expect_err("no field");
            assert_eq!(error.kind(), ErrorKind::Invalid);
        }
        assert_eq!(world.observed(ada).len(), 1);
    });
}

#[test]
fn a_relationship_without_metadata_always_has_an_empty_object() {
    for_each_store(|world| {
        let related = |relation: &str, source, target| NewRelationship {
            relation: relation.to_owned(),
            source,
            target,
            metadata: Json::Null,
        };
        let request = StoreFacts {
            entities: vec![fact("task", r#"{"title":"a"}"#), fact("task", r#"{"title":"b"}"#)],
            relationships: vec![related("DEPENDS_ON", End::InCall(0), End::InCall(1))],
            ..StoreFacts::default()
        };
        let stored = world.engine.store_facts(&world.call, request).expect("facts");
        let nothing = Json::Object(fields("{}"));
        assert_eq!(stored.relationships[0].metadata, nothing);
        let [a, b] = [0, 1].map(|at| End::Entity(stored.entities[at].entity));
        let made = world
            .engine
            .create_relationship(&world.call, related("REFERS_TO", a, b))
            .expect("a relationship");
        assert_eq!(made.metadata, nothing);
    });
}

#[test]
fn a_slot_is_edited_and_not_corrected() {
    for_each_store(|world| {
        let stored = world.store("chat", "1", user("a"));
        let wrong = Correct {
            entity: stored.entity,
            fields: fields(r#"{"content":"b"}"#),
            observed_at: Some(start()),
        };
        let error = world.engine.correct(&world.call, wrong).expect_err("a slot");
        assert_eq!(error.kind(), ErrorKind::Unsupported);
    });
}
