//! Erasures whose traces may linger in free pages and in the search index.
//!
//! An erasure is one transaction; sweeping files belongs to none. So the transaction leaves a note,
//! which is removed once the files are swept. A later run that finds one completes the work.

use tine_core::{ConversationId, ProjectId};
use tine_store::{
    Content, Family, FamilyRecord, PendingErasure, Read, ReadFamilies, RecordQuery, TurnLoc, Write,
    WriteFamilies,
};

use crate::{Engine, Error, Result};

/// Notes that are read at once.
const NOTES: usize = 1_000;

/// Notes, in the transaction of an erasure, that its traces are to be swept. `seq` is where the
/// conversation's log ends with it.
pub(crate) fn note(
    records: &mut dyn Write,
    project: &ProjectId,
    id: &ConversationId,
    seq: u64,
) -> Result<()> {
    Ok(records.put(project, &PendingErasure { conversation: id.clone(), seq })?)
}

impl Engine {
    /// Sweeps what an erasure in a project has left that was cut off before; answers whether there
    /// was anything.
    pub fn sweep(&self, project: &ProjectId) -> Result<bool> {
        let (pending, turns) = self.read(|records| left(records, project))?;
        if pending.is_empty() {
            return Ok(false);
        }
        self.store().unindex(&turns).map_err(Error::NotSwept)?;
        self.store().scrub().map_err(Error::NotSwept)?;
        self.forget(project, pending)?;
        Ok(true)
    }

    /// Takes the note of an erasure back whose traces are swept.
    pub(crate) fn swept(&self, project: &ProjectId, id: &ConversationId, seq: u64) -> Result<()> {
        self.forget(project, vec![PendingErasure { conversation: id.clone(), seq }])
    }

    fn forget(&self, project: &ProjectId, done: Vec<PendingErasure>) -> Result<()> {
        let project = project.clone();
        self.write(move |records| {
            for key in done.iter().map(PendingErasure::key) {
                if records.has(&project, &key)? {
                    records.delete_record(&project, &key)?;
                }
            }
            Ok(())
        })
    }
}

/// Returns the notes of a project, and the turns that were erased where they are.
fn left(records: &dyn Read, project: &ProjectId) -> Result<(Vec<PendingErasure>, Vec<TurnLoc>)> {
    let query = RecordQuery::all(Family::PendingErasure);
    let pending: Vec<PendingErasure> = records.list(project, &query, NOTES)?;
    let mut turns = Vec::new();
    let mut ids: Vec<&ConversationId> = pending.iter().map(|it| &it.conversation).collect();
    ids.dedup();
    for id in ids {
        let Some(found) = records.conversation(project, id)? else { continue };
        for extent in records.segments(found.key)? {
            records.turns(extent.segment.no, 0, u32::MAX, &mut |turn| {
                if let Content::Purged(_) = turn.content {
                    turns.push(turn.loc);
                }
                Ok(true)
            })?;
        }
    }
    Ok((pending, turns))
}
