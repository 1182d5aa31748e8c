//! What only the embedded store can do: last, be shared, be copied, and refuse to be opened.

use std::path::Path;

use tine_core::json::{Json, Object};
use tine_core::{ConversationId, Digest, ProjectId, RootHash, Timestamp};
use tine_sqlite::OpenOptions;
use tine_sqlite::SqliteStore;
use tine_store::{
    Conversation, ConversationKey, Detail, FeedPosition, OpenMode, Operation, Project, Root, Store,
    StoreError, Verdict, Visibility,
};

use crate::fixture::{Folder, all_bytes};

pub(crate) fn at() -> Timestamp {
    Timestamp::from_millis(1_700_000_000_000)
}

/// Adds a conversation whose title is easy to find in a file.
pub(crate) fn add(store: &SqliteStore, id: &str, title: &str) -> ConversationKey {
    let project = ProjectId::default();
    let (id, title) = (id.to_owned(), title.to_owned());
    let (send, receive) = std::sync::mpsc::channel();
    store
        .write(Box::new(move |records| {
            if records.project(&project)?.is_none() {
                records.insert_project(&Project { id: project.clone(), created_at: at() })?;
            }
            let key = records.insert_conversation(&Conversation {
                key: ConversationKey(0),
                project: project.clone(),
                id: ConversationId::from_stored(id.clone()),
                root_hash: RootHash(Digest::of(id.as_bytes())),
                root: Some(Root { system_prompt: None, config: Json::Null }),
                title: Some(title.clone()),
                metadata: Json::Object(Object::new()),
                created_at: at(),
                derived_from: None,
                visibility: Visibility::Shown,
            })?;
            send.send(key).unwrap();
            Ok(Verdict::Commit)
        }))
        .unwrap();
    receive.recv().unwrap()
}

/// An entry of a conversation's log.
pub(crate) fn entry(conversation: ConversationKey, seq: u64) -> Operation {
    Operation {
        conversation,
        seq,
        kind: "test".into(),
        actor: "somebody".into(),
        at: at(),
        detail: Detail::Kept("{}".into()),
        hash: tine_core::OperationHash(Digest::of(&seq.to_be_bytes())),
        undone: false,
        idempotency: None,
    }
}

/// Adds so many entries to a conversation's log, in one transaction.
pub(crate) fn log(store: &SqliteStore, key: ConversationKey, count: u64) {
    store
        .write(Box::new(move |records| {
            for _ in 0..count {
                let seq = records.last_operation(key)?.map_or(0, |last| last.seq) + 1;
                records.insert_operation(&entry(key, seq))?;
            }
            Ok(Verdict::Commit)
        }))
        .unwrap();
}

pub(crate) fn operations(store: &SqliteStore) -> Vec<u64> {
    let mut seen = Vec::new();
    store
        .read(&mut |records| {
            let fed = records.feed(FeedPosition(0), 1_000_000)?;
            seen = fed.iter().map(|(_, operation)| operation.seq).collect();
            Ok(())
        })
        .unwrap();
    seen
}

pub(crate) fn titles(store: &SqliteStore) -> Vec<String> {
    let mut titles = Vec::new();
    store
        .read(&mut |records| {
            let found = records.conversations(&ProjectId::default(), None, 100)?;
            titles = found.into_iter().filter_map(|found| found.title).collect();
            Ok(())
        })
        .unwrap();
    titles
}

fn refused(folder: &Path, mode: OpenMode) -> StoreError {
    SqliteStore::open_with(folder, OpenOptions { mode, vfs: None }).unwrap_err()
}

#[test]
fn what_was_committed_is_there_after_reopening() {
    let folder = Folder::new();
    add(&SqliteStore::open(&folder.path()).unwrap(), "c", "kept");
    assert_eq!(titles(&SqliteStore::open(&folder.path()).unwrap()), ["kept"]);
}

#[test]
fn totals_report_the_size_of_the_database_and_its_log() {
    let folder = Folder::new();
    let store = SqliteStore::open(&folder.path()).unwrap();
    add(&store, "c", "title");
    let length = |name: &str| std::fs::metadata(folder.path().join(name)).unwrap().len();
    let expected = length("tine.db") + length("tine.db-wal");
    store
        .read(&mut |records| {
            assert_eq!(records.totals()?.disk_bytes, expected);
            Ok(())
        })
        .unwrap();
}

#[test]
fn handles_in_one_folder_see_each_others_commits_at_once() {
    let folder = Folder::new();
    let one = SqliteStore::open(&folder.path()).unwrap();
    let other = SqliteStore::open(&folder.path()).unwrap();
    let key = add(&one, "c", "title");
    assert_eq!(titles(&other), ["title"]);
    for _ in 0..50 {
        log(&one, key, 1);
        log(&other, key, 1);
    }
    assert_eq!(operations(&one), (1..=100).collect::<Vec<_>>());
    assert_eq!(operations(&other), operations(&one));
}

#[test]
fn look_ups_hold_while_entries_go_from_the_log_to_the_tables_under_several_handles() {
    // More operations than are kept in memory, written by two handles in turns, with a third that
    // only looks: each must find every number, whoever moved the tables forward.
    let folder = Folder::new();
    let writers = [0, 1].map(|_| SqliteStore::open(&folder.path()).unwrap());
    let reader = SqliteStore::open(&folder.path()).unwrap();
    let key = add(&writers[0], "c", "title");
    let mut expected = 0;
    for round in 0..9_u64 {
        let count = 2_500 + round;
        log(&writers[usize::try_from(round % 2).unwrap()], key, count);
        expected += count;
        for store in [&reader, &writers[0], &writers[1]] {
            store
                .read(&mut |records| {
                    assert_eq!(records.last_operation(key)?.unwrap().seq, expected);
                    for seq in [1, expected / 2, expected - 1, expected] {
                        assert_eq!(records.operation(key, seq)?.unwrap().seq, seq);
                    }
                    assert!(records.operation(key, expected + 1)?.is_none());
                    let mut next = expected - expected.min(4_000) + 1;
                    records.operations(key, next, u64::MAX, &mut |operation| {
                        assert_eq!(operation.seq, next);
                        next += 1;
                        Ok(true)
                    })?;
                    assert_eq!(next, expected + 1);
                    Ok(())
                })
                .unwrap();
        }
    }
}

#[test]
fn a_reader_keeps_its_snapshot_while_others_write_and_move_the_tables_forward() {
    let folder = Folder::new();
    let store = SqliteStore::open(&folder.path()).unwrap();
    let key = add(&store, "c", "title");
    for _ in 0..10 {
        log(&store, key, 1);
    }
    store
        .read(&mut |records| {
            assert_eq!(records.last_operation(key)?.unwrap().seq, 10);
            // Three times as much as is kept in memory comes in behind this reader's back.
            for _ in 0..3 {
                log(&store, key, 9_000);
                assert_eq!(records.last_operation(key)?.unwrap().seq, 10);
                assert!(records.operation(key, 10)?.is_some());
                assert!(records.operation(key, 11)?.is_none());
            }
            Ok(())
        })
        .unwrap();
}

#[test]
fn a_backup_of_a_store_in_use_is_a_store() {
    let folder = Folder::new();
    let store = SqliteStore::open(&folder.path()).unwrap();
    add(&store, "c", "kept");
    let copy = Folder::new();
    store.backup(&copy.path()).unwrap();
    add(&store, "d", "later");
    assert_eq!(titles(&SqliteStore::open(&copy.path()).unwrap()), ["kept"]);
    assert!(matches!(store.backup(&copy.path()), Err(StoreError::NotAStore { .. })));
}

#[test]
fn what_is_scrubbed_is_in_no_file() {
    let folder = Folder::new();
    let store = SqliteStore::open(&folder.path()).unwrap();
    let key = add(&store, "c", "a needle in a haystack");
    let found = |needle: &[u8]| {
        all_bytes(&folder.path()).windows(needle.len()).any(|window| window == needle)
    };
    assert!(found(b"a needle in a haystack"));
    store
        .write(Box::new(move |records| {
            let mut conversation = records.conversation_by_key(key)?.unwrap();
            conversation.title = None;
            records.update_conversation(&conversation)?;
            Ok(Verdict::Commit)
        }))
        .unwrap();
    store.scrub().unwrap();
    assert!(!found(b"a needle in a haystack"));
}

#[test]
fn what_is_not_a_store_is_refused_and_left_alone() {
    let folder = Folder::new();
    assert!(matches!(refused(&folder.path(), OpenMode::Existing), StoreError::Missing { .. }));
    assert!(!folder.path().exists(), "looking does not make one");

    std::fs::create_dir(folder.path()).unwrap();
    std::fs::write(folder.path().join("letter.txt"), "Dear").unwrap();
    for mode in [OpenMode::Create, OpenMode::Existing] {
        assert!(matches!(refused(&folder.path(), mode), StoreError::NotAStore { .. }));
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    let file = folder.path().join("letter.txt");
    assert!(matches!(refused(&file, OpenMode::Create), StoreError::NotAStore { .. }));

    let other = Folder::new();
    std::fs::create_dir(other.path()).unwrap();
    std::fs::write(other.path().join("tine.db"), vec![7; 10_000]).unwrap();
    assert!(matches!(refused(&other.path(), OpenMode::Create), StoreError::NotAStore { .. }));
    assert_eq!(std::fs::read(other.path().join("tine.db")).unwrap(), vec![7; 10_000]);
}

#[test]
fn a_database_of_another_program_and_a_newer_format_are_refused() {
    let folder = Folder::new();
    drop(SqliteStore::open(&folder.path()).unwrap());
    let database = rusqlite::Connection::open(folder.path().join("tine.db")).unwrap();
    database.pragma_update(None, "user_version", 999).unwrap();
    let error = refused(&folder.path(), OpenMode::Create);
    assert!(matches!(error, StoreError::NewerFormat { found: 999, .. }), "{error}");
    database.pragma_update(None, "user_version", 1).unwrap();
    database.pragma_update(None, "application_id", 42).unwrap();
    let error = refused(&folder.path(), OpenMode::Create);
    assert!(matches!(error, StoreError::NotAStore { .. }), "{error}");
}

#[test]
fn what_was_cut_off_before_there_was_a_log_is_taken_back_and_not_called_damage() {
    // Somebody writes the first pages of a database; meanwhile the power goes.
    let (making, folder) = (Folder::new(), Folder::new());
    std::fs::create_dir(making.path()).unwrap();
    let database = rusqlite::Connection::open(making.path().join("tine.db")).unwrap();
    database.execute_batch("PRAGMA page_size = 8192; CREATE TABLE first (text)").unwrap();
    database.execute_batch("PRAGMA cache_size = 2; BEGIN; DROP TABLE first").unwrap();
    for table in 0..200 {
        database.execute_batch(&format!("CREATE TABLE t{table} (text)")).unwrap();
    }
    std::fs::create_dir(folder.path()).unwrap();
    for name in ["tine.db", "tine.db-journal"] {
        std::fs::copy(making.path().join(name), folder.path().join(name)).unwrap();
    }
    drop(database);
    let torn = std::fs::File::options().write(true).open(folder.path().join("tine.db")).unwrap();
    torn.set_len(60).unwrap();
    // SQLite has to say what is in it once it is whole again: a table that is not Tine's.
    let error = refused(&folder.path(), OpenMode::Create);
    assert!(error.to_string().contains("another program"), "{error}");
    // Without the journal it stays as it is, and that is damage.
    torn.set_len(60).unwrap();
    std::fs::remove_file(folder.path().join("tine.db-journal")).ok();
    let error = refused(&folder.path(), OpenMode::Create);
    assert!(error.to_string().contains("it is cut"), "{error}");
}
