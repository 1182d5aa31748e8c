//! Erasures whose traces may linger in free pages and in the index of words.
//!
//! An erasure is one transaction; sweeping files belongs to none. So the transaction leaves a note,
//! which goes once the files are swept. Whoever finds one later does what was left.

use tine_core::{ConversationId, ProjectId};
use tine_store::{Content, EntryKind, KeyRange, Read, TurnLoc, Write};

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
    Ok(records.put_entry(project, EntryKind::Unswept, &key(id, seq), "null")?)
}

/// No id holds a control character.
fn key(id: &ConversationId, seq: u64) -> Vec<u8> {
    [id.as_str().as_bytes(), &[0], &seq.to_be_bytes()].concat()
}

fn conversation(key: &[u8]) -> Option<ConversationId> {
    let id = key.split(|byte| *byte == 0).next()?;
    Some(ConversationId::from_stored(std::str::from_utf8(id).ok()?))
}

impl Engine {
    /// Sweeps what an erasure in a project has left that was cut off before; answers whether there
    /// was anything.
    pub fn sweep(&self, project: &ProjectId) -> Result<bool> {
        let (keys, turns) = self.read(|records| left(records, project))?;
        if keys.is_empty() {
            return Ok(false);
        }
        self.store().unindex(&turns).map_err(Error::NotSwept)?;
        self.store().scrub().map_err(Error::NotSwept)?;
        self.forget_notes(project, keys)?;
        Ok(true)
    }

    /// Takes the note of an erasure back whose traces are swept.
    pub(crate) fn swept(&self, project: &ProjectId, id: &ConversationId, seq: u64) -> Result<()> {
        self.forget_notes(project, vec![key(id, seq)])
    }

    fn forget_notes(&self, project: &ProjectId, keys: Vec<Vec<u8>>) -> Result<()> {
        let project = project.clone();
        self.write(move |records| {
            for key in &keys {
                if records.entry(&project, EntryKind::Unswept, key)?.is_some() {
                    records.delete_entry(&project, EntryKind::Unswept, key)?;
                }
            }
            Ok(())
        })
    }
}

/// The notes of a project, and the turns that were erased where they are.
fn left(records: &dyn Read, project: &ProjectId) -> Result<(Vec<Vec<u8>>, Vec<TurnLoc>)> {
    let notes = records.entries(project, EntryKind::Unswept, &KeyRange::default(), NOTES)?;
    let keys: Vec<Vec<u8>> = notes.into_iter().map(|note| note.key).collect();
    let mut turns = Vec::new();
    let mut ids: Vec<ConversationId> = keys.iter().filter_map(|key| conversation(key)).collect();
    ids.dedup();
    for id in ids {
        let Some(found) = records.conversation(project, &id)? else { continue };
        for extent in records.segments(found.key)? {
            records.turns(extent.segment.no, 0, u32::MAX, &mut |turn| {
                if let Content::Purged(_) = turn.content {
                    turns.push(turn.loc);
                }
                Ok(true)
            })?;
        }
    }
    Ok((keys, turns))
}
