//! What was learned, through the trait alone.

use tine_core::SourceId;

use super::{at, commit, look, project};
use crate::ledger::{EntryKind, KeyRange, PIECE_BYTES};
use crate::records::Project;
use crate::traits::{Store, Verdict};

fn two_projects(store: &dyn Store) {
    commit(store, |records| {
        for name in ["p", "q"] {
            records.insert_project(&Project { id: project(name), created_at: at() })?;
        }
        Ok(())
    });
}

fn keys(store: &dyn Store, range: &KeyRange, limit: usize) -> Vec<Vec<u8>> {
    let found =
        look(store, |records| records.entries(&project("p"), EntryKind::Entity, range, limit));
    found.into_iter().map(|entry| entry.key).collect()
}

/// Ranges give the keys of one kind and one project, in order, from either end.
pub fn entries_lie_in_the_order_of_their_keys_each_kind_by_itself(store: &dyn Store) {
    two_projects(store);
    let all: [&[u8]; 6] = [&[0], &[1, 0], &[1, 255], &[1, 255, 0], &[2], &[255, 255]];
    commit(store, move |records| {
        for key in all.iter().rev() {
            records.put_entry(&project("p"), EntryKind::Entity, key, &format!("{key:?}"))?;
        }
        records.put_entry(&project("p"), EntryKind::Run, &[1, 1], "another kind")?;
        records.put_entry(&project("q"), EntryKind::Entity, &[1, 1], "another project")
    });
    assert_eq!(keys(store, &KeyRange::prefix(&[]), 10), all);
    assert_eq!(keys(store, &KeyRange::prefix(&[1]), 10), all[1..4]);
    assert_eq!(keys(store, &KeyRange::prefix(&[1, 255]), 10), all[2..4]);
    assert_eq!(keys(store, &KeyRange::prefix(&[255]), 10), all[5..]);
    assert_eq!(keys(store, &KeyRange::behind(&[1], &[1, 0]), 10), all[2..4]);
    assert_eq!(keys(store, &KeyRange::prefix(&[1]), 2), all[1..3]);
    let backwards = KeyRange::prefix(&[1]).backwards();
    assert_eq!(keys(store, &backwards, 2), [all[3], all[2]]);
    assert_eq!(keys(store, &KeyRange::prefix(&[]).backwards(), 1), [all[5]]);
    let text = look(store, |records| records.entry(&project("p"), EntryKind::Entity, &[2]));
    assert_eq!(text.as_deref(), Some("[2]"));
    let other = look(store, |records| records.entry(&project("nobody"), EntryKind::Entity, &[2]));
    assert_eq!(other, None);
}

/// What a transaction did to an entry counts when it commits, and not before.
pub fn an_entry_is_replaced_and_removed_and_a_rollback_keeps_it(store: &dyn Store) {
    two_projects(store);
    let read = || look(store, |it| it.entry(&project("p"), EntryKind::Schema, b"k"));
    commit(store, |it| it.put_entry(&project("p"), EntryKind::Schema, b"k", "one"));
    commit(store, |it| it.put_entry(&project("p"), EntryKind::Schema, b"k", "two"));
    assert_eq!(read().as_deref(), Some("two"));
    let job = |verdict| {
        Box::new(move |it: &mut dyn crate::Write| {
            it.delete_entry(&project("p"), EntryKind::Schema, b"k")?;
            assert_eq!(it.entry(&project("p"), EntryKind::Schema, b"k")?, None);
            Ok(verdict)
        })
    };
    store.write(job(Verdict::Rollback)).unwrap();
    assert_eq!(read().as_deref(), Some("two"));
    store.write(job(Verdict::Commit)).unwrap();
    assert_eq!(read(), None);
}

/// Pieces belong to one source of one project.
pub fn pieces_of_a_source_come_back_and_go_together(store: &dyn Store) {
    two_projects(store);
    let (one, other) = (SourceId::from_bytes([1; 16]), SourceId::from_bytes([2; 16]));
    commit(store, move |records| {
        for owner in ["p", "q"] {
            records.insert_piece(&project(owner), &one, 0, &vec![7; PIECE_BYTES])?;
            records.insert_piece(&project(owner), &one, 1, &[8, 9])?;
        }
        records.insert_piece(&project("p"), &other, 0, &[0, 255])
    });
    let read = |owner: &str, id: SourceId, nth| {
        look(store, |records| records.piece(&project(owner), &id, nth))
    };
    assert_eq!(read("p", one, 0), Some(vec![7; PIECE_BYTES]));
    assert_eq!(read("p", one, 1), Some(vec![8, 9]));
    assert_eq!(read("p", one, 2), None);
    commit(store, move |records| records.delete_pieces(&project("p"), &one));
    assert_eq!(read("p", one, 0), None);
    assert_eq!(read("p", other, 0), Some(vec![0, 255]));
    assert_eq!(read("q", one, 1), Some(vec![8, 9]));
}
