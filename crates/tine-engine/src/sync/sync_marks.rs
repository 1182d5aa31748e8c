//! Sync marks: how far diverged logs were compared without finding anything new.
//!
//! An operation that adds something new records it in the log (`merged`). A comparison that finds
//! nothing gets no operation, since that would be news to every other store. Its mark is kept
//! beside the log, holds nothing that could not be found out again, and never travels.

use tine_core::{ConversationId, ProjectId};
use tine_store::{Read, RecordKey, SyncMark, SyncMarks, Write, WriteFamilies};

use crate::Result;
use crate::{LogMark, LogMerge};

/// Marks that are kept for a conversation, the newest; one for each store that it is synced with
/// would do.
const KEPT: usize = 32;

/// Returns the marks of a conversation, oldest first. Each says where its own log ended then.
pub(super) fn sync_marks(
    records: &dyn Read,
    project: &ProjectId,
    id: &ConversationId,
) -> Result<Vec<LogMerge>> {
    let merge = |mark: &SyncMark| LogMerge {
        seq: mark.seq,
        of: LogMark { seq: mark.other_seq, hash: mark.other_hash },
    };
    Ok(marks(records, project, id)?.iter().map(merge).collect())
}

/// Marks that cannot be read are found out again.
fn marks(records: &dyn Read, project: &ProjectId, id: &ConversationId) -> Result<Vec<SyncMark>> {
    let found = records.record(project, &RecordKey::SyncMarks(id.clone()))?;
    let found = found.and_then(|record| record.decode::<SyncMarks>());
    Ok(found.map_or_else(Vec::new, |found| found.marks))
}

/// Remembers that nothing up to a place in another log is new to this one, which ends at `seq`.
pub(crate) fn remember(
    records: &mut dyn Write,
    project: &ProjectId,
    id: &ConversationId,
    LogMerge { seq, of }: LogMerge,
) -> Result<()> {
    let mark = SyncMark { seq, other_seq: of.seq, other_hash: of.hash };
    let mut marks = marks(records, project, id)?;
    let other = |mark: &SyncMark| (mark.other_seq, mark.other_hash);
    marks.retain(|earlier| other(earlier) != other(&mark));
    marks.push(mark);
    marks.drain(..marks.len().saturating_sub(KEPT));
    Ok(records.put(project, &SyncMarks { conversation: id.clone(), marks })?)
}
