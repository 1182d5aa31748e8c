//! The traps that an earlier implementation of the tree fell into; each became a test.

use tine_core::{ErrorKind, TurnId};
use tine_engine::{Append, SplitTurn, TurnRef};
use tine_sqlite::SqliteStore;
use tine_testkit::stores::TempFolder;

use crate::world::{World, bot, for_each_store, ids, spoken, user};

#[test]
fn quick_appends_under_the_root_lose_no_child() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        std::thread::scope(|scope| {
            for n in 0..3 {
                let talk = &talk;
                scope.spawn(move || {
                    let request = Append::to(talk.clone(), vec![user(&format!("first {n}"))]);
                    world.append(request.from_root());
                });
            }
        });
        assert_eq!(world.rows(&talk).len(), 3);
        world.verified();
    });
}

#[test]
fn a_damaged_store_is_reported_and_never_read_as_empty() {
    let folder = TempFolder::new();
    let file = folder.path().join("tine.db");
    drop(SqliteStore::open(folder.path()).expect("a new store"));
    for name in ["tine.db-wal", "tine.db-shm"] {
        std::fs::remove_file(folder.path().join(name)).ok();
    }
    let damaged = vec![b'?'; 4096];
    std::fs::write(&file, &damaged).expect("a file");
    assert!(SqliteStore::open(folder.path()).is_err());
    assert_eq!(std::fs::read(&file).expect("a file"), damaged, "and nothing was overwritten");
}

#[test]
fn a_shared_prefix_of_white_space_is_a_turn_like_any_other() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        world.append(Append::to(talk.clone(), vec![user(" "), bot("a")]));
        world.append(Append::to(talk.clone(), vec![user(" "), bot("b")]).from_root());
        let rows = world.rows(&talk);
        assert_eq!(rows.len(), 3);
        assert_eq!((rows[1].parent, rows[2].parent), (Some(rows[0].id), Some(rows[0].id)));
        world.verified();
    });
}

#[test]
fn white_space_can_be_split_off() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let said = world.say(&talk, &["  a"]);
        let request = SplitTurn { turn: world.turn(said[0]), offset: 2 };
        let done = world.engine.split(&world.call, request).expect("a split");
        let text = |turn: &tine_engine::TurnView| format!("{:?}", turn.content);
        assert!(text(&done.left).contains("\"  \""), "{}", text(&done.left));
        world.verified();
    });
}

#[test]
fn an_offset_inside_an_emoji_is_refused_and_destroys_nothing() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let said = world.say(&talk, &["👨‍👩‍👧 family"]);
        for offset in 1..5 {
            world.refused(ErrorKind::Invalid, |engine, call| {
                engine.split(call, SplitTurn { turn: TurnRef::of(said[0]), offset })
            });
        }
        assert_eq!(world.tree(&talk), "👨‍👩‍👧 family");
    });
}

#[test]
fn ids_are_not_reused_after_delete_and_restart() {
    let folder = TempFolder::new();
    let mut seen: Vec<TurnId> = vec![];
    for round in 0..3_u64 {
        let store = SqliteStore::open(folder.path()).expect("a store");
        // The same time in each round: only chance keeps the ids apart, as after a restart
        // with a clock that was set back.
        let world = World::seeded(std::sync::Arc::new(store), round);
        let talk = world.talk(&format!("talk {round}"));
        let said = world.say(&talk, &["a", "b"]);
        assert!(said.iter().all(|id| !seen.contains(id)), "an id was given twice");
        seen.extend(&said);
        crate::delete::cascade(&world, said[0]);
    }
}

#[test]
fn a_deleted_turn_hides_no_sibling() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let said = world.say(&talk, &["a", "b"]);
        world.say_under(&talk, said[0], "side", bot("c"));
        crate::delete::cascade(world, said[1]);
        assert_eq!(world.tree(&talk), "a(c)");
    });
}

#[test]
fn children_come_in_order_of_creation_not_of_name() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let parent = world.say(&talk, &["a"])[0];
        let texts: Vec<String> = (1..=12).map(|n| n.to_string()).collect();
        for text in &texts {
            world.say_under(&talk, parent, "side", bot(text));
        }
        let previews: Vec<_> =
            world.rows(&talk)[1..].iter().map(|row| row.preview.clone()).collect();
        assert_eq!(previews, texts);
    });
}

#[test]
fn appending_a_long_path_again_costs_no_more_than_reading_it() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let texts: Vec<String> = (0..301).map(|n| format!("message {n}")).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        world.say(&talk, &texts);
        let before = world.export();
        let again = world.append(Append::to(talk.clone(), spoken(&texts)).from_root());
        assert_eq!(ids(&again).len(), 301);
        assert_eq!(world.export(), before);
    });
}
