//! Branch tips that have moved and whose rows are written later.

use tine_core::{BranchId, Name};
use tine_sqlite::SqliteStore;
use tine_store::{Branch, ConversationKey, SegmentNo, Store, TurnLoc, Verdict};

use crate::embedded::{add, add_operations, at};
use crate::fixture::Folder;

/// More operations than the pending index holds.
const MANY: u64 = 9_000;

fn branch(conversation: ConversationKey, version: u64) -> Branch {
    let index = u32::try_from(version).unwrap();
    Branch {
        conversation,
        id: BranchId::from_bytes([7; 16]),
        name: Name::from_stored("main"),
        tip: Some(TurnLoc { segment: SegmentNo(1), index }),
        forked_from: None,
        created_at: at(),
        version,
    }
}

/// Puts a branch in a transaction without an operation, then adds operations.
fn put(store: &SqliteStore, branch: &Branch, operations: u64) {
    let (branch, key) = (branch.clone(), branch.conversation);
    store
        .write(Box::new(move |records| {
            records.put_branch(&branch)?;
            assert_eq!(records.branch(key, &branch.name)?.as_ref(), Some(&branch));
            Ok(Verdict::Commit)
        }))
        .unwrap();
    add_operations(store, key, operations);
}

/// Puts a branch and its operation in one transaction, as the engine does.
fn move_with_operation(store: &SqliteStore, branch: &Branch) {
    let branch = branch.clone();
    store
        .write(Box::new(move |records| {
            records.put_branch(&branch)?;
            let seq = records.log_end(branch.conversation)?.map_or(0, |(seq, _)| seq) + 1;
            records.insert_operation(&crate::embedded::operation(branch.conversation, seq))?;
            assert_eq!(records.branches(branch.conversation)?, std::slice::from_ref(&branch));
            Ok(Verdict::Commit)
        }))
        .unwrap();
}

fn check(store: &SqliteStore, expected: &Branch) {
    store
        .read(&mut |records| {
            let key = expected.conversation;
            assert_eq!(records.branch(key, &expected.name)?.as_ref(), Some(expected));
            assert_eq!(records.branches(key)?, std::slice::from_ref(expected));
            let project = tine_core::ProjectId::default();
            assert_eq!(records.branch_by_id(&project, &expected.id)?.as_ref(), Some(expected));
            Ok(())
        })
        .unwrap();
}

#[test]
fn every_handle_finds_a_moved_branch_before_and_after_its_row_is_written() {
    let folder = Folder::new();
    let stores = [0, 1, 2].map(|_| SqliteStore::open(&folder.path()).unwrap());
    let key = add(&stores[0], "c", "title");
    for version in 1..20_u64 {
        let moved = branch(key, version);
        move_with_operation(&stores[usize::try_from(version % 2).unwrap()], &moved);
        stores.iter().for_each(|store| check(store, &moved));
        if version % 6 == 0 {
            add_operations(&stores[0], key, MANY);
            stores.iter().for_each(|store| check(store, &moved));
            check(&SqliteStore::open(&folder.path()).unwrap(), &moved);
        }
    }
}

#[test]
fn a_reader_finds_a_branch_as_of_its_snapshot() {
    let folder = Folder::new();
    let store = SqliteStore::open(&folder.path()).unwrap();
    let key = add(&store, "c", "title");
    move_with_operation(&store, &branch(key, 1));
    move_with_operation(&store, &branch(key, 2));
    store
        .read(&mut |records| {
            for version in 3..6 {
                move_with_operation(&store, &branch(key, version));
                assert_eq!(records.branches(key)?, [branch(key, 2)]);
                add_operations(&store, key, MANY);
                assert_eq!(records.branches(key)?, [branch(key, 2)]);
            }
            Ok(())
        })
        .unwrap();
    check(&store, &branch(key, 5));
}

#[test]
fn a_branch_put_without_an_operation_is_visible_to_every_handle() {
    let folder = Folder::new();
    let (one, other) = (SqliteStore::open(&folder.path()), SqliteStore::open(&folder.path()));
    let (one, other) = (one.unwrap(), other.unwrap());
    let key = add(&one, "c", "title");
    for version in 1..8 {
        let moved = branch(key, version);
        match version % 3 {
            0 => move_with_operation(&one, &moved),
            operations => put(&one, &moved, operations - 1),
        }
        check(&one, &moved);
        check(&other, &moved);
    }
}

#[test]
fn a_deleted_branch_can_be_put_back_with_an_older_version() {
    let folder = Folder::new();
    let (one, other) = (SqliteStore::open(&folder.path()), SqliteStore::open(&folder.path()));
    let (one, other) = (one.unwrap(), other.unwrap());
    let key = add(&one, "c", "title");
    for version in 1..5 {
        move_with_operation(&one, &branch(key, version));
    }
    let renamed = Branch { name: Name::from_stored("other"), ..branch(key, 5) };
    move_with_operation(&one, &renamed);
    check(&other, &renamed);
    let id = renamed.id;
    one.write(Box::new(move |records| {
        records.delete_branch(key, &id)?;
        Ok(Verdict::Commit)
    }))
    .unwrap();
    // Older than its version at the time of deletion.
    let back = branch(key, 2);
    move_with_operation(&one, &back);
    check(&one, &back);
    check(&other, &back);
    add_operations(&one, key, MANY);
    check(&one, &back);
    check(&other, &back);
}

#[test]
fn a_move_that_is_rolled_back_leaves_no_trace() {
    let folder = Folder::new();
    let store = SqliteStore::open(&folder.path()).unwrap();
    let key = add(&store, "c", "title");
    move_with_operation(&store, &branch(key, 1));
    store
        .write(Box::new(move |records| {
            records.put_branch(&branch(key, 2))?;
            Ok(Verdict::Rollback)
        }))
        .unwrap();
    check(&store, &branch(key, 1));
    store
        .write(Box::new(move |records| {
            records.put_branch(&branch(key, 3))?;
            records.insert_operation(&crate::embedded::operation(key, 2))?;
            Ok(Verdict::Rollback)
        }))
        .unwrap();
    check(&store, &branch(key, 1));
    move_with_operation(&store, &branch(key, 2));
    check(&SqliteStore::open(&folder.path()).unwrap(), &branch(key, 2));
}
