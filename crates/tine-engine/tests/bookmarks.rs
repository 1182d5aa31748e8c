//! Bookmarks: named, unique in the project, on a turn.

use tine_core::{ErrorKind, Limits, Name};
use tine_engine::Page;

use crate::world::{World, for_each_store};

fn name(text: &str) -> Name {
    Name::new(text, &Limits::default()).expect("a sound name")
}

fn mark(world: &World, text: &str, turn: tine_core::TurnId) {
    let set = world.engine.set_bookmark(&world.call, name(text), world.turn(turn));
    assert_eq!(set.expect("a bookmark").turn, turn);
}

#[test]
fn a_bookmark_names_a_turn() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let said = world.say(&talk, &["a", "b"]);
        mark(world, "here", said[0]);
        assert_eq!(world.path(&talk, "here"), "a");
        assert_eq!(world.rows(&talk)[0].bookmarks, [name("here")]);
    });
}

#[test]
fn a_bookmark_is_unique_in_the_project_and_setting_it_again_moves_it() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let said = world.say(&talk, &["a", "b"]);
        let other = world.talk("other");
        let there = world.say(&other, &["c"]);
        mark(world, "here", said[0]);
        mark(world, "here", there[0]);
        let found = world.engine.bookmark(&world.call, &name("here")).expect("a bookmark");
        assert_eq!((found.conversation, found.turn), (other.clone(), there[0]));
        assert!(world.rows(&talk).iter().all(|row| row.bookmarks.is_empty()));
        world.refused(ErrorKind::Protected, |engine, call| engine.undo(call, &talk, None));
        world.engine.undo(&world.call, &other, None).expect("an undo");
        let found = world.engine.bookmark(&world.call, &name("here")).expect("a bookmark");
        assert_eq!(found.turn, said[0], "back where it was");
    });
}

#[test]
fn a_removed_bookmark_is_gone_until_undone() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let said = world.say(&talk, &["a"]);
        mark(world, "here", said[0]);
        world.engine.delete_bookmark(&world.call, &name("here")).expect("a bookmark can go");
        world.refused(ErrorKind::NotFound, |engine, call| engine.bookmark(call, &name("here")));
        world.refused(ErrorKind::NotFound, |engine, call| {
            engine.delete_bookmark(call, &name("here"))
        });
        world.engine.undo(&world.call, &talk, None).expect("an undo");
        assert_eq!(world.path(&talk, "here"), "a");
    });
}

#[test]
fn bookmarks_are_listed_in_order_of_name() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let said = world.say(&talk, &["a"]);
        for text in ["c", "a", "b"] {
            mark(world, text, said[0]);
        }
        let page = Page { cursor: None, limit: Some(2) };
        let first = world.engine.bookmarks(&world.call, page).expect("a page");
        let page = Page { cursor: first.next.clone(), limit: Some(2) };
        let second = world.engine.bookmarks(&world.call, page).expect("a page");
        let names = first.items.iter().chain(&second.items).map(|mark| mark.name.to_string());
        assert_eq!(names.collect::<Vec<_>>(), ["a", "b", "c"]);
        assert_eq!(second.next, None);
    });
}

#[test]
fn a_bookmark_does_not_take_a_name_that_means_a_branch() {
    for_each_store(|world| {
        let (talk, other) = (world.talk("talk"), world.talk("other"));
        let said = world.say(&talk, &["a", "b"]);
        let there = world.say(&other, &["c"]);
        world.fork_at(&talk, said[0], "side");
        let error = world.refused(ErrorKind::Invalid, |engine, call| {
            engine.set_bookmark(call, Name::main(), world.turn(said[0]))
        });
        assert!(error.to_string().contains("choose another name"), "{error}");
        let error = world.refused(ErrorKind::Conflict, |engine, call| {
            engine.set_bookmark(call, name("side"), world.turn(said[1]))
        });
        assert!(error.to_string().contains("choose another name"), "{error}");
        // Branches belong to their conversation, so it is free in another one.
        mark(world, "side", there[0]);
        assert_eq!(world.path(&other, "side"), "c");
        assert_eq!(world.path(&talk, "side"), "a");
        world.refused(ErrorKind::Conflict, |engine, call| {
            engine.set_bookmark(call, name("side"), world.turn(said[1]))
        });
    });
}

#[test]
fn a_branch_may_take_the_name_of_a_bookmark_and_is_meant_from_then_on() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let said = world.say(&talk, &["a", "b"]);
        mark(world, "here", said[1]);
        world.fork_at(&talk, said[0], "here");
        assert_eq!(world.path(&talk, "here"), "a");
        let mark = world.engine.bookmark(&world.call, &name("here")).expect("the bookmark");
        assert_eq!(mark.turn, said[1], "it is still listed");
    });
}
