//! Checks of record families and their indexes.

use tine_core::facts::RunStatus;
use tine_core::facts::{Observation, ObservationOrigin, Slot};
use tine_core::json::{self, Json};
use tine_core::{
    ConversationId, Digest, EntityId, InterpretationId, ObservationId, Role, SourceId, Timestamp,
    TurnId,
};

use super::{at, commit, project, read_store};
use crate::families::{
    EntityRecord, Family, IndexKey, IndexQuery, ObservationRecord, PromptRecord, ReadFamilies,
    Record, RecordIndex, RecordKey, RecordQuery, RunRecord, WriteFamilies,
};
use crate::records::{PIECE_BYTES, Project};
use crate::traits::{Store, Verdict};

fn two_projects(store: &dyn Store) {
    commit(store, |records| {
        for name in ["p", "q"] {
            records.insert_project(&Project { id: project(name), created_at: at() })?;
        }
        Ok(())
    });
}

fn id(byte: u8) -> EntityId {
    EntityId::from_bytes([byte; 16])
}

fn observed(entity: u8, seq: u64) -> ObservationId {
    ObservationId { entity: id(entity), seq }
}

fn list(store: &dyn Store, query: RecordQuery, limit: usize) -> Vec<RecordKey> {
    let found = read_store(store, |records| records.records(&project("p"), &query, limit));
    found.iter().map(|record| record.key().clone()).collect()
}

fn indexed(store: &dyn Store, query: IndexQuery) -> Vec<IndexKey> {
    read_store(store, |records| records.index_keys(&project("p"), &query, 100))
}

/// Returns every index key of a project.
fn index(store: &dyn Store) -> Vec<IndexKey> {
    RecordIndex::ALL.into_iter().flat_map(|of| indexed(store, IndexQuery::all(of))).collect()
}

/// Queries return the records of one family and one project, in order, from either end.
pub fn records_of_each_family_are_listed_in_order_of_key(store: &dyn Store) {
    two_projects(store);
    let ids = [(0, 1), (1, 1), (1, 255), (1, 256), (2, 9), (255, u64::MAX)];
    let all = ids.map(|(entity, seq)| RecordKey::Observation(observed(entity, seq)));
    let keys = all.clone();
    commit(store, move |records| {
        for key in keys.iter().rev() {
            records.insert_record(&project("p"), &Record::verbatim(key.clone(), "text"))?;
        }
        let other = Record::verbatim(RecordKey::ObservationMove(observed(1, 2)), "text");
        records.insert_record(&project("p"), &other)?;
        let elsewhere = Record::verbatim(RecordKey::Observation(observed(1, 2)), "text");
        records.insert_record(&project("q"), &elsewhere)
    });
    let of = |entity| RecordQuery::observations_of(id(entity));
    assert_eq!(list(store, RecordQuery::all(Family::Observation), 10), all);
    assert_eq!(list(store, of(1), 10), all[1..4]);
    assert_eq!(list(store, of(255), 10), all[5..]);
    assert_eq!(list(store, RecordQuery::observations_after(id(1), 1), 10), all[2..4]);
    assert_eq!(list(store, of(1), 2), all[1..3]);
    assert_eq!(list(store, of(1).through(&all[2]), 10), all[1..3]);
    let backwards: Vec<RecordKey> = all[1..4].iter().rev().cloned().collect();
    assert_eq!(list(store, of(1).backwards(), 2), backwards[..2]);
    assert_eq!(list(store, of(1).backwards().after(&all[3]), 10), backwards[1..]);
    let last = RecordQuery::all(Family::Observation).backwards();
    assert_eq!(list(store, last, 1), all[5..]);
    let read = |owner: &str| read_store(store, |records| records.record(&project(owner), &all[4]));
    assert_eq!(read("p").as_ref().map(Record::text), Some("text"));
    assert_eq!(read("unknown"), None);
}

/// Changes of a record become visible to others with the commit.
pub fn a_record_is_replaced_and_removed_and_a_rollback_keeps_it(store: &dyn Store) {
    two_projects(store);
    let digest = Digest::of(b"k");
    let prompt = move |text: &str| PromptRecord { digest, text: text.to_owned() };
    let read = || read_store(store, |it| it.get::<PromptRecord>(&project("p"), &digest));
    commit(store, move |it| it.insert(&project("p"), &prompt("one")));
    commit(store, move |it| it.put(&project("p"), &prompt("two")));
    assert_eq!(read(), Some(prompt("two")));
    let job = |verdict| {
        Box::new(move |it: &mut dyn crate::Write| {
            it.delete_record(&project("p"), &RecordKey::Prompt(digest))?;
            assert!(!it.has(&project("p"), &RecordKey::Prompt(digest))?);
            Ok(verdict)
        })
    };
    store.write(job(Verdict::Rollback)).unwrap();
    assert_eq!(read(), Some(prompt("two")));
    store.write(job(Verdict::Commit)).unwrap();
    assert_eq!(read(), None);
}

/// Indexes match the present records: after an insert, a replacement, a return to an earlier form, a
/// removal and a rollback.
pub fn indexes_follow_their_records(store: &dyn Store) {
    two_projects(store);
    let chat = ConversationId::from_stored("chat");
    let slot = Slot { turn_id: "1".into(), role: Role::Assistant, tool_call_id: None, part: 2 };
    let plain = EntityRecord::new(id(1), "person", Json::Null, at());
    let merged = EntityRecord { merged: Some((id(2), at())), ..plain.clone() };
    let message = EntityRecord {
        slot: Some((chat.clone(), slot.clone())),
        ..EntityRecord::new(id(3), "agent_message", Json::Null, at())
    };
    let (first, other) = (plain.clone(), message.clone());
    commit(store, move |it| {
        it.insert(&project("p"), &first)?;
        it.insert(&project("q"), &first)?;
        it.insert(&project("p"), &other)
    });
    let people = || indexed(store, IndexQuery::entities(Some("person")));
    let into = || indexed(store, IndexQuery::merged_into(id(2)));
    assert_eq!(people().len(), 1);
    assert_eq!(people()[0].owner(), Some(RecordKey::Entity(id(1))));
    assert!(into().is_empty());
    let found = indexed(store, IndexQuery::entity_of_slot(&chat, &slot));
    assert_eq!(found.first().and_then(IndexKey::owner), Some(RecordKey::Entity(id(3))));
    assert_eq!(indexed(store, IndexQuery::answers_of_turn(&chat, "1")), found);
    let other_part = Slot { part: 0, ..slot };
    assert!(indexed(store, IndexQuery::entity_of_slot(&chat, &other_part)).is_empty());
    let put = |record: &EntityRecord, verdict| {
        let record = record.clone();
        let job = Box::new(move |it: &mut dyn crate::Write| {
            it.put(&project("p"), &record)?;
            Ok(verdict)
        });
        store.write(job).unwrap();
    };
    put(&merged, Verdict::Rollback);
    assert!(into().is_empty());
    put(&merged, Verdict::Commit);
    assert_eq!((people().len(), into().len()), (1, 1));
    put(&plain, Verdict::Commit);
    assert_eq!((people().len(), into().len()), (1, 0));
    commit(store, |it| {
        it.delete_record(&project("p"), &RecordKey::Entity(id(1)))?;
        it.delete_record(&project("p"), &RecordKey::Entity(id(3)))
    });
    assert_eq!(index(store), []);
    let elsewhere = IndexQuery::entities(None);
    let kept = read_store(store, |it| it.index_keys(&project("q"), &elsewhere, 10));
    assert_eq!(kept.len(), 1, "the other project keeps its own");
}

/// One record may have several keys in an index; erased and ended ones have fewer.
pub fn an_index_lists_each_date_and_each_run_that_is_due(store: &dyn Store) {
    two_projects(store);
    let (turn, source) = (TurnId::from_bytes([7; 16]), SourceId::from_bytes([8; 16]));
    let mut fields = json::Object::new();
    for (name, value) in [("start", "2024-05-01"), ("end", "2024-05-03"), ("name", "Sam")] {
        fields.insert(name, value.into());
    }
    let one = Observation {
        id: observed(1, 1),
        entity_type: "trip".to_owned(),
        fields,
        source: Some(source),
        interpretation: None,
        turn: Some(turn),
        span: None,
        observed_at: at(),
        stored_at: at(),
        priority: 0,
        specificity: 0,
        origin: ObservationOrigin::Rules,
        correction: false,
        retracts: None,
        schema_version: 1,
    };
    let run = RunRecord {
        id: InterpretationId::from_bytes([9; 16]),
        source,
        status: RunStatus::Queued,
        interpreter: "rules".to_owned(),
        queued_at: at(),
        started_at: None,
        finished_at: None,
        attempts: 0,
        retry_of: None,
        observations: Vec::new(),
        unknown_fields: Vec::new(),
        notes: Vec::new(),
        error: None,
        detail: json::Object::new(),
        due: at(),
        owner: None,
        requested_by: "tester".to_owned(),
    };
    let (made, queued) = (one.clone(), run.clone());
    commit(store, move |it| {
        it.insert(&project("p"), &ObservationRecord::Made(made.clone()))?;
        it.insert(&project("p"), &queued)
    });
    let dates = indexed(store, IndexQuery::dated(None, None));
    let names: Vec<&str> = dates
        .iter()
        .filter_map(|key| match key {
            IndexKey::DatedField { field, .. } => Some(field.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(names, ["start", "end"]);
    assert_eq!(indexed(store, IndexQuery::about_turn(&turn)).len(), 1);
    let earlier = Timestamp::from_millis(at().as_millis() - 1);
    assert!(indexed(store, IndexQuery::runs_due(earlier)).is_empty());
    assert_eq!(indexed(store, IndexQuery::runs_due(at())).len(), 1);
    let purged = ObservationRecord::Purged(one.id, Digest::of(b"text"));
    let ended = RunRecord { status: RunStatus::Completed, ..run };
    commit(store, move |it| {
        it.put(&project("p"), &purged)?;
        it.put(&project("p"), &ended)
    });
    let left = index(store);
    assert_eq!(left.len(), 1, "{left:?}");
    assert_eq!(left, indexed(store, IndexQuery::runs_of(&source)));
}

/// Pieces belong to one source of one project.
pub fn pieces_of_a_source_are_read_back_and_removed_together(store: &dyn Store) {
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
        read_store(store, |records| records.piece(&project(owner), &id, nth))
    };
    assert_eq!(read("p", one, 0), Some(vec![7; PIECE_BYTES]));
    assert_eq!(read("p", one, 1), Some(vec![8, 9]));
    assert_eq!(read("p", one, 2), None);
    commit(store, move |records| records.delete_pieces(&project("p"), &one));
    assert_eq!(read("p", one, 0), None);
    assert_eq!(read("p", other, 0), Some(vec![0, 255]));
    assert_eq!(read("q", one, 1), Some(vec![8, 9]));
}
