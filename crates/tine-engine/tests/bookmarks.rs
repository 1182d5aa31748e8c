//! Bookmarks: named, unique in the project, on a turn.

use tine_core::{Kind, Limits, Name};
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
        world.refused(Kind::Protected, |engine, call| engine.undo(call, &talk, None));
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
        world.refused(Kind::NotFound, |engine, call| engine.bookmark(call, &name("here")));
        world.refused(Kind::NotFound, |engine, call| engine.delete_bookmark(call, &name("here")));
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
