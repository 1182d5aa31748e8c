//! What is specific to the embedded store: durability, sharing, backups, and rejected folders.

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

/// Returns an operation of a conversation.
pub(crate) fn operation(conversation: ConversationKey, seq: u64) -> Operation {
    Operation {
        conversation,
        seq,
        kind: "test".into(),
        actor: "tester".into(),
        at: at(),
        detail: Detail::Kept("{}".into()),
        hash: tine_core::OperationHash(Digest::of(&seq.to_be_bytes())),
        undone: false,
        idempotency: None,
    }
}

/// Adds operations to a conversation's log, in one transaction.
pub(crate) fn add_operations(store: &SqliteStore, key: ConversationKey, count: u64) {
    store
        .write(Box::new(move |records| {
            for _ in 0..count {
                let seq = records.last_operation(key)?.map_or(0, |last| last.seq) + 1;
                records.insert_operation(&operation(key, seq))?;
            }
            Ok(Verdict::Commit)
        }))
        .unwrap();
}

pub(crate) fn feed_seqs(store: &SqliteStore) -> Vec<u64> {
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

fn open_error(folder: &Path, mode: OpenMode) -> StoreError {
    SqliteStore::open_with(folder, OpenOptions { mode, vfs: None }).unwrap_err()
}

#[test]
fn committed_records_survive_reopening() {
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
fn handles_in_one_folder_see_each_others_commits_immediately() {
    let folder = Folder::new();
    let one = SqliteStore::open(&folder.path()).unwrap();
    let other = SqliteStore::open(&folder.path()).unwrap();
    let key = add(&one, "c", "title");
    assert_eq!(titles(&other), ["title"]);
    for _ in 0..50 {
        add_operations(&one, key, 1);
        add_operations(&other, key, 1);
    }
    assert_eq!(feed_seqs(&one), (1..=100).collect::<Vec<_>>());
    assert_eq!(feed_seqs(&other), feed_seqs(&one));
}

#[test]
fn look_ups_work_while_several_handles_flush_the_pending_index() {
    // More operations than the pending index holds, written by two handles in turn and read by a
    // third: each must find every number, no matter which handle flushed.
    let folder = Folder::new();
    let writers = [0, 1].map(|_| SqliteStore::open(&folder.path()).unwrap());
    let reader = SqliteStore::open(&folder.path()).unwrap();
    let key = add(&writers[0], "c", "title");
    let mut expected = 0;
    for round in 0..9_u64 {
        let count = 2_500 + round;
        add_operations(&writers[usize::try_from(round % 2).unwrap()], key, count);
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
fn a_reader_keeps_its_snapshot_while_others_write_and_flush() {
    let folder = Folder::new();
    let store = SqliteStore::open(&folder.path()).unwrap();
    let key = add(&store, "c", "title");
    for _ in 0..10 {
        add_operations(&store, key, 1);
    }
    store
        .read(&mut |records| {
            assert_eq!(records.last_operation(key)?.unwrap().seq, 10);
            // Three times as many operations as the pending index holds are added during this read.
            for _ in 0..3 {
                add_operations(&store, key, 9_000);
                assert_eq!(records.last_operation(key)?.unwrap().seq, 10);
                assert!(records.operation(key, 10)?.is_some());
                assert!(records.operation(key, 11)?.is_none());
            }
            Ok(())
        })
        .unwrap();
}

#[test]
fn a_backup_of_an_open_store_can_be_opened() {
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
fn scrubbing_removes_deleted_text_from_every_file() {
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
fn folders_and_files_that_are_not_a_store_are_rejected_unchanged() {
    let folder = Folder::new();
    assert!(matches!(open_error(&folder.path(), OpenMode::Existing), StoreError::Missing { .. }));
    assert!(!folder.path().exists(), "rejecting does not create a folder");

    std::fs::create_dir(folder.path()).unwrap();
    std::fs::write(folder.path().join("letter.txt"), "Dear").unwrap();
    for mode in [OpenMode::Create, OpenMode::Existing] {
        assert!(matches!(open_error(&folder.path(), mode), StoreError::NotAStore { .. }));
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    let file = folder.path().join("letter.txt");
    assert!(matches!(open_error(&file, OpenMode::Create), StoreError::NotAStore { .. }));

    let other = Folder::new();
    std::fs::create_dir(other.path()).unwrap();
    std::fs::write(other.path().join("tine.db"), vec![7; 10_000]).unwrap();
    assert!(matches!(open_error(&other.path(), OpenMode::Create), StoreError::NotAStore { .. }));
    assert_eq!(std::fs::read(other.path().join("tine.db")).unwrap(), vec![7; 10_000]);
}

#[test]
fn a_newer_format_and_a_database_of_another_program_are_rejected() {
    let folder = Folder::new();
    drop(SqliteStore::open(&folder.path()).unwrap());
    let database = rusqlite::Connection::open(folder.path().join("tine.db")).unwrap();
    database.pragma_update(None, "user_version", 999).unwrap();
    let error = open_error(&folder.path(), OpenMode::Create);
    assert!(matches!(error, StoreError::NewerFormat { found: 999, .. }), "{error}");
    database.pragma_update(None, "user_version", 1).unwrap();
    database.pragma_update(None, "application_id", 42).unwrap();
    let error = open_error(&folder.path(), OpenMode::Create);
    assert!(matches!(error, StoreError::NotAStore { .. }), "{error}");
}

#[test]
fn a_creation_interrupted_before_the_switch_to_a_log_is_rolled_back() {
    // A power loss while the first pages of a database are written.
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
    // SQLite rolls it back, and the result has a table that is not Tine's.
    let error = open_error(&folder.path(), OpenMode::Create);
    assert!(error.to_string().contains("another program"), "{error}");
    // Without the journal it cannot be rolled back: that is damage.
    torn.set_len(60).unwrap();
    std::fs::remove_file(folder.path().join("tine.db-journal")).ok();
    let error = open_error(&folder.path(), OpenMode::Create);
    assert!(error.to_string().contains("it is cut"), "{error}");
}
