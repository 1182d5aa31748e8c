//! The embedded store underneath the engine: reopening, formats, wrong places.

use std::sync::Arc;

use tine_core::ErrorKind;
use tine_engine::{Append, Error};
use tine_sqlite::SqliteStore;
use tine_store::StoreError;
use tine_testkit::stores::TempFolder;

use crate::world::{World, bot, spoken};

fn open(folder: &TempFolder) -> World {
    let store = SqliteStore::open(folder.path()).expect("a store");
    World::over(Arc::new(store), None)
}

fn refused(folder: &std::path::Path, kind: ErrorKind) -> StoreError {
    let error = SqliteStore::open(folder).expect_err("this is no store to open");
    assert_eq!(error.kind(), kind, "{error}");
    error
}

#[test]
fn reopening_sees_everything() {
    let folder = TempFolder::new();
    let world = open(&folder);
    let talk = world.talk("talk");
    let said = world.say(&talk, &["a", "b", "c"]);
    world.say_under(&talk, said[0], "side", bot("d"));
    crate::delete::cascade(&world, said[2]);
    let before = world.export();
    drop(world);
    let world = open(&folder);
    assert_eq!(world.export(), before);
    assert_eq!(world.tree(&talk), "a(b d)");
    world.engine.undo(&world.call, &talk, None).expect("an undo in another session");
    assert_eq!(world.tree(&talk), "a(b(c) d)");
    world.verified();
}

#[test]
fn two_handles_see_each_others_work_at_once() {
    let folder = TempFolder::new();
    let (one, two) = (open(&folder), open(&folder));
    let talk = one.talk("talk");
    one.append(Append::to(talk.clone(), spoken(&["a"])));
    assert_eq!(two.tree(&talk), "a");
}

#[test]
fn a_store_of_a_newer_format_is_refused_and_left_alone() {
    let folder = TempFolder::new();
    drop(open(&folder));
    let file = folder.path().join("tine.db");
    // SQLite keeps `user_version` in bytes 60 to 64 of the file's first page.
    let mut bytes = std::fs::read(&file).expect("the database");
    bytes[60..64].copy_from_slice(&9_999_u32.to_be_bytes());
    std::fs::write(&file, &bytes).expect("the database");
    let error = refused(folder.path(), ErrorKind::Invalid);
    assert!(matches!(error, StoreError::NewerFormat { found: 9_999, .. }), "{error}");
    assert_eq!(std::fs::read(&file).expect("the database"), bytes);
}

#[test]
fn a_folder_with_other_files_is_refused_and_left_alone() {
    let folder = TempFolder::new();
    std::fs::write(folder.path().join("thesis.txt"), "important").expect("a file");
    let error = refused(folder.path(), ErrorKind::Invalid);
    assert!(matches!(error, StoreError::NotAStore { .. }), "{error}");
    let entries = std::fs::read_dir(folder.path()).expect("the folder").count();
    assert_eq!(entries, 1, "nothing was added");
}

#[test]
fn a_file_instead_of_a_folder_is_refused() {
    let folder = TempFolder::new();
    let file = folder.path().join("notes");
    std::fs::write(&file, "important").expect("a file");
    let error = refused(&file, ErrorKind::Invalid);
    assert!(matches!(error, StoreError::NotAStore { .. }), "{error}");
    assert_eq!(std::fs::read(&file).expect("a file"), b"important");
}

#[test]
fn a_backup_is_a_whole_store() {
    let (folder, copy) = (TempFolder::new(), TempFolder::new());
    let world = open(&folder);
    let talk = world.talk("talk");
    world.say(&talk, &["a", "b"]);
    world.engine.store().backup(copy.path()).expect("a backup");
    world.say(&talk, &["later"]);
    let restored = open(&copy);
    assert_eq!(restored.tree(&talk), "a(b)");
    restored.verified();
}

#[test]
fn verify_names_a_turn_that_was_altered_outside_the_store() {
    let folder = TempFolder::new();
    let world = open(&folder);
    let talk = world.talk("talk");
    world.say(&talk, &["the original words"]);
    world.engine.store().scrub().expect("everything in the main file");
    drop(world);
    let file = folder.path().join("tine.db");
    let mut bytes = std::fs::read(&file).expect("the database");
    let (old, new) = (b"the original words", b"the altered  words");
    let at = bytes.windows(old.len()).position(|window| window == old).expect("the text");
    bytes[at..at + old.len()].copy_from_slice(new);
    std::fs::write(&file, bytes).expect("the database");
    let world = open(&folder);
    let found = world.engine.verify();
    match found {
        Ok(found) => assert!(!found.problems.is_empty(), "an altered turn must be found"),
        Err(error) => assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}"),
    }
}

#[test]
fn errors_of_the_store_keep_their_kind_in_the_engine() {
    let error = StoreError::Corrupt { record: "turn".to_owned(), why: "test".to_owned() };
    assert_eq!(Error::from(error).kind(), ErrorKind::Corrupt);
    assert_eq!(Error::from(StoreError::Busy { waited_ms: 1 }).kind(), ErrorKind::Busy);
}
