//! Delete: cascade and reparent.

use tine_core::{ErrorKind, Limits, Name, TurnId};
use tine_engine::{Append, Delete, DeleteMode, Deleted, Presence, TopologyQuery, TurnRef};

use crate::world::{World, bot, for_each_store, reference, spoken, user};

pub fn cascade(world: &World, turn: TurnId) -> Deleted {
    delete(world, turn, DeleteMode::Cascade)
}

fn reparent(world: &World, turn: TurnId) -> Deleted {
    delete(world, turn, DeleteMode::Reparent)
}

fn delete(world: &World, turn: TurnId, mode: DeleteMode) -> Deleted {
    let request = Delete { turn: world.turn(turn), mode, force: false, dry_run: false };
    world.engine.delete(&world.call, request).expect("a turn that can go")
}

fn mark(world: &World, name: &str, turn: TurnId) {
    let name = Name::new(name, &Limits::default()).expect("a sound name");
    world.engine.set_bookmark(&world.call, name, world.turn(turn)).expect("a bookmark");
}

#[test]
fn cascade_takes_the_turn_and_all_below_it() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let said = world.say(&talk, &["a", "b", "c"]);
        world.say_under(&talk, said[1], "side", user("d"));
        world.say_under(&talk, said[0], "other", bot("e"));
        assert_eq!(cascade(world, said[1]).turns, 3);
        assert_eq!(world.tree(&talk), "a(e)");
        world.verified();
    });
}

#[test]
fn reparent_attaches_the_children_at_the_turns_own_place() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let said = world.say(&talk, &["a", "b", "c"]);
        world.say_under(&talk, said[1], "side", user("d"));
        world.say_under(&talk, said[0], "other", bot("e"));
        let first = world.say_under(&talk, said[0], "other", bot("f"));
        world.say_under(&talk, first, "other", user("g"));
        assert_eq!(world.tree(&talk), "a(b(c d) e f(g))");
        assert_eq!(reparent(world, said[1]).turns, 1);
        assert_eq!(world.tree(&talk), "a(c d e f(g))");
        reparent(world, said[0]);
        assert_eq!(world.tree(&talk), "c d e f(g)");
        world.verified();
    });
}

#[test]
fn the_raw_chain_stays_whole_through_tombstones() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let said = world.say(&talk, &["a", "b", "c"]);
        let before = world.engine.turn(&world.call, world.turn(said[2])).expect("a turn");
        reparent(world, said[1]);
        let after = world.engine.turn(&world.call, world.turn(said[2])).expect("a turn");
        let raw = |turn: &tine_engine::TurnView| (turn.hash, turn.parent_hash, turn.depth);
        assert_eq!(raw(&after), raw(&before));
        assert_eq!((before.parent, after.parent), (Some(said[1]), Some(said[0])));
        assert_eq!(world.path(&talk, "main"), "a c");
        world.verified();
    });
}

#[test]
fn tips_and_bookmarks_move_to_the_nearest_live_ancestor_and_the_answer_says_which() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let said = world.say(&talk, &["a", "b", "c"]);
        world.fork_at(&talk, said[1], "side");
        mark(world, "deep", said[2]);
        mark(world, "first", said[0]);
        reparent(world, said[1]);
        let answer = cascade(world, said[2]);
        let moved: Vec<_> =
            answer.moved_branches.iter().map(|branch| branch.name.as_str()).collect();
        assert_eq!(moved, ["main"]);
        assert_eq!(answer.moved_bookmarks.iter().map(Name::as_str).collect::<Vec<_>>(), ["deep"]);
        for name in ["main", "side", "deep", "first"] {
            assert_eq!(world.path(&talk, name), "a", "{name}");
        }
        let answer = cascade(world, said[0]);
        assert_eq!(answer.moved_branches.len(), 2);
        assert_eq!(answer.removed_bookmarks.len(), 2, "bookmarks cannot be on the root");
        assert_eq!(world.path(&talk, "main"), "");
        let name = Name::new("deep", &Limits::default()).expect("a sound name");
        world.refused(ErrorKind::NotFound, |engine, call| engine.bookmark(call, &name));
    });
}

#[test]
fn the_root_cannot_be_deleted() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        world.say(&talk, &["a"]);
        for mode in [DeleteMode::Cascade, DeleteMode::Reparent] {
            world.refused(ErrorKind::Protected, |engine, call| {
                let turn = TurnRef::within(talk.clone(), reference("root"));
                engine.delete(call, Delete { turn, mode, force: true, dry_run: false })
            });
        }
    });
}

#[test]
fn undo_restores_everything() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let said = world.say(&talk, &["a", "b", "c"]);
        world.fork_at(&talk, said[1], "side");
        mark(world, "here", said[2]);
        for mode in [DeleteMode::Cascade, DeleteMode::Reparent] {
            delete(world, said[1], mode);
            world.engine.undo(&world.call, &talk, None).expect("an undo");
            assert_eq!(world.tree(&talk), "a(b(c))");
            assert_eq!(world.path(&talk, "main"), "a b c");
            assert_eq!(world.path(&talk, "side"), "a b");
            assert_eq!(world.path(&talk, "here"), "a b c");
        }
    });
}

#[test]
fn no_listing_shows_tombstones_unless_asked() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let said = world.say(&talk, &["a", "b", "c"]);
        cascade(world, said[1]);
        assert_eq!(world.rows(&talk).len(), 1);
        let query = TopologyQuery { include_deleted: true, ..TopologyQuery::of(talk.clone()) };
        let rows = world.engine.topology(&world.call, query).expect("a tree").rows;
        let shown: Vec<_> = rows.iter().map(|row| (row.preview.as_str(), row.presence)).collect();
        let gone = Presence::Deleted;
        assert_eq!(shown, [("a", Presence::Live), ("b", gone), ("c", gone)]);
        let children = world.engine.children(&world.call, world.turn(said[0])).expect("children");
        assert_eq!(children, []);
    });
}

#[test]
fn importing_the_same_turns_again_does_not_revive_them() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let said = world.say(&talk, &["a", "b"]);
        let before = world.export();
        cascade(world, said[1]);
        let mut records = before.into_iter().map(Ok);
        let imported = world.engine.import(None, &mut records).expect("an import");
        assert_eq!((imported.unchanged, imported.turns), (1, 0));
        assert_eq!(world.tree(&talk), "a");
    });
}

#[test]
fn a_dry_run_reports_what_would_be_deleted_and_changes_nothing() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let said = world.say(&talk, &["a", "b", "c"]);
        let before = world.export();
        let request = Delete {
            turn: world.turn(said[1]),
            mode: DeleteMode::Cascade,
            force: false,
            dry_run: true,
        };
        let answer = world.engine.delete(&world.call, request).expect("a preview");
        assert_eq!((answer.turns, answer.dry_run, answer.moved_branches.len()), (2, true, 1));
        assert_eq!(world.export(), before);
    });
}

#[test]
fn an_id_is_never_given_again_after_a_delete() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let said = world.say(&talk, &["a", "b"]);
        cascade(world, said[1]);
        let again = world.append(Append::to(talk, spoken(&["a", "b"])).from_root());
        assert_ne!(again.turns[1].id, said[1]);
        assert_ne!(again.turns[1].hash, again.turns[0].hash);
    });
}

#[test]
fn new_turns_below_what_was_reparented_chain_to_the_live_parent() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let said = world.say(&talk, &["a", "b", "c"]);
        reparent(world, said[1]);
        let request = Append::to(talk.clone(), vec![user("a"), user("c"), bot("d")]).from_root();
        world.append(request);
        assert_eq!(world.tree(&talk), "a(c(d))");
        world.verified();
    });
}
