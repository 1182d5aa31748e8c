//! The index of the embedded store: always fresh, never in the way, and of no consequence when it
//! is lost.

use std::path::Path;
use std::sync::Arc;

use tine_engine::{Append, Purge, PurgeTarget, SearchQuery};
use tine_sqlite::INDEX_FILE;
use tine_sqlite::SqliteStore;
use tine_store::IndexState;
use tine_testkit::stores::TempFolder;

use crate::search::found;
use crate::world::{World, ids, spoken};

fn open(folder: &Path, seed: u64) -> World {
    let store = SqliteStore::open(folder).expect("a store");
    World::seeded(Arc::new(store), seed)
}

/// A file of the index with its companions.
fn index_files(folder: &Path) -> Vec<std::path::PathBuf> {
    let names = ["", "-wal", "-shm"].map(|end| folder.join(format!("{INDEX_FILE}{end}")));
    names.into_iter().filter(|path| path.exists()).collect()
}

#[test]
fn a_turn_acknowledged_a_moment_before_is_found_also_by_another_handle() {
    let folder = TempFolder::new();
    let (one, other) = (open(folder.path(), 1), open(folder.path(), 2));
    let talk = one.talk("talk");
    for round in 0..20 {
        let (writer, reader) = if round % 2 == 0 { (&one, &other) } else { (&other, &one) };
        let said = writer.say(&talk, &[&format!("word{round}")]);
        assert_eq!(found(reader, &format!("word{round}")), said);
        assert_eq!(found(writer, &format!("word{round}")), said);
    }
    assert_eq!(found(&one, "word*").len(), 20);
}

#[test]
fn appending_does_not_touch_the_index() {
    let folder = TempFolder::new();
    let world = open(folder.path(), 1);
    let talk = world.talk("talk");
    world.say(&talk, &["one", "two"]);
    assert_eq!(index_files(folder.path()), Vec::<std::path::PathBuf>::new());
    assert_eq!(found(&world, "one").len(), 1);
    let before = world.engine.store().index_state().expect("a state");
    world.say(&talk, &["three"]);
    assert_eq!(world.engine.store().index_state().expect("a state"), before);
    let done = world.engine.refresh_search().expect("a refresh");
    assert_eq!((done.operations, done.turns), (1, 1));
    assert_eq!(world.engine.refresh_search().expect("a refresh").operations, 0);
}

#[test]
fn a_deleted_index_is_made_again() {
    let folder = TempFolder::new();
    let world = open(folder.path(), 1);
    let said = world.say(&world.talk("talk"), &["needle"]);
    assert_eq!(found(&world, "needle"), said);
    for path in index_files(folder.path()) {
        std::fs::remove_file(path).expect("a file that can be removed");
    }
    assert_eq!(found(&world, "needle"), said);
    assert!(folder.path().join(INDEX_FILE).exists());
    assert_eq!(found(&open(folder.path(), 2), "needle"), said);
}

#[test]
fn a_damaged_index_is_made_again() {
    let ways: [fn(&mut Vec<u8>); 5] = [
        |bytes| bytes.fill(0x5a),
        |bytes| bytes.truncate(5_000),
        |bytes| bytes[..100].fill(0),
        |bytes| {
            let page = bytes.len() - 4096 * 2;
            bytes[page..].fill(0xff);
        },
        |bytes| {
            for page in bytes.chunks_mut(4096).skip(1) {
                page[..64].fill(0x77);
            }
        },
    ];
    for (number, damage) in ways.into_iter().enumerate() {
        let folder = TempFolder::new();
        let world = open(folder.path(), 1);
        let talk = world.talk("talk");
        let texts: Vec<String> = (0..400).map(|n| format!("needle in bale{n} of hay")).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let said = world.say(&talk, &texts);
        assert_eq!(found(&world, "bale7"), [said[7]]);
        drop(world);
        let file = folder.path().join(INDEX_FILE);
        let mut bytes = std::fs::read(&file).expect("the index");
        assert!(!folder.path().join(format!("{INDEX_FILE}-wal")).exists(), "all is in the file");
        damage(&mut bytes);
        std::fs::write(&file, bytes).expect("the index can be written");
        let world = open(folder.path(), 2);
        for n in [7, 399] {
            assert_eq!(found(&world, &format!("bale{n}")), [said[n]], "damage {number}");
        }
        let last = world.say(&talk, &["one more bale"]);
        assert_eq!(found(&world, "one bale"), last, "damage {number}");
        world.verified();
    }
}

#[test]
fn an_index_of_another_format_or_program_is_made_again() {
    for (pragma, value) in [("user_version", 0), ("user_version", 999), ("application_id", 7)] {
        let folder = TempFolder::new();
        let world = open(folder.path(), 1);
        let said = world.say(&world.talk("talk"), &["needle"]);
        assert_eq!(found(&world, "needle"), said);
        drop(world);
        let index = rusqlite::Connection::open(folder.path().join(INDEX_FILE)).expect("SQLite");
        index.pragma_update(None, pragma, value).expect("a change");
        index.execute_batch("DELETE FROM said; DELETE FROM entry;").expect("a change");
        drop(index);
        assert_eq!(found(&open(folder.path(), 2), "needle"), said, "{pragma} {value}");
    }
}

#[test]
fn an_index_that_is_ahead_of_a_restored_store_is_made_again() {
    let (folder, copy) = (TempFolder::new(), TempFolder::new());
    let world = open(folder.path(), 1);
    let talk = world.talk("talk");
    let kept = world.say(&talk, &["needle before"]);
    world.engine.store().backup(copy.path()).expect("a backup");
    world.say(&talk, &["needle lost"]);
    assert_eq!(found(&world, "needle").len(), 2);
    drop(world);
    std::fs::copy(copy.path().join("tine.db"), folder.path().join("tine.db")).expect("a copy");
    let world = open(folder.path(), 2);
    assert_eq!(found(&world, "needle"), kept);
    let other = world.say(&talk, &["needle instead"]);
    assert_eq!(found(&world, "instead"), other);
    let mut both = [kept[0], other[0]];
    both.sort();
    assert_eq!(found(&world, "needle"), both);
    assert_eq!(found(&world, "lost"), []);
}

#[test]
fn many_search_and_write_at_once_and_each_finds_what_it_wrote() {
    let folder = TempFolder::new();
    let talk = open(folder.path(), 1).talk("talk");
    std::thread::scope(|scope| {
        for writer in 0..4_u64 {
            let (folder, talk) = (folder.path(), talk.clone());
            scope.spawn(move || {
                let world = open(folder, 10 + writer);
                for round in 0..25 {
                    let text = format!("common writer{writer}x{round}");
                    let mut append = Append::to(talk.clone(), spoken(&[&text]));
                    append.on_conflict = tine_engine::OnConflict::Fork;
                    let said = ids(&world.append(append));
                    assert_eq!(found(&world, &format!("writer{writer}x{round}")), said);
                }
            });
        }
    });
    let world = open(folder.path(), 99);
    let all = SearchQuery { limit: Some(500), ..SearchQuery::of("common") };
    let hits = world.engine.search(&world.call, all).expect("a search").hits;
    assert_eq!(hits.len(), 100);
    assert!(matches!(world.engine.store().index_state(), Ok(IndexState::Through(_))));
}

#[test]
fn an_erasure_reaches_the_index_that_another_handle_has_open() {
    let folder = TempFolder::new();
    let (one, other) = (open(folder.path(), 1), open(folder.path(), 2));
    let talk = one.talk("talk");
    let said = one.say(&talk, &["zqxjneedleword", "other"]);
    assert_eq!(found(&other, "zqxjneedleword"), [said[0]]);
    let target = PurgeTarget::Turn(one.turn(said[0]));
    let ask = Purge { target: target.clone(), confirm: None };
    let confirm = one.engine.purge(&one.call, ask).expect("a question").confirm;
    one.engine.purge(&one.call, Purge { target, confirm }).expect("an erasure");
    for path in index_files(folder.path()) {
        let bytes = std::fs::read(&path).expect("a readable file");
        assert!(!bytes.windows(6).any(|window| window == b"zqxjne"), "{}", path.display());
    }
    assert_eq!((found(&other, "zqxj*"), found(&other, "other")), (vec![], vec![said[1]]));
}
