//! What was learned, entry by entry, into the new store. Whether it is as the logs tell is found
//! out with each conversation.

use tine_core::ProjectId;
use tine_store::{EntryKind, KeyRange, PIECE_BYTES, Project};

use super::{LeftOut, Repair};
use crate::Result;
use crate::census::damage;
use crate::learned::{Ledger, keys};

/// Entries carried over in one transaction.
const PAGE: usize = 500;

impl Repair<'_> {
    /// Carries over all entries of a project, and the bytes of its sources.
    pub(super) fn ledger(&mut self, project: &Project) -> Result<()> {
        let owner = project.clone();
        self.engine.write(move |records| {
            if records.project(&owner.id)?.is_none() {
                records.insert_project(&owner)?;
            }
            Ok(())
        })?;
        for kind in EntryKind::ALL {
            let mut range = KeyRange::prefix(&[]);
            loop {
                let page =
                    self.read(|records| Ok(records.entries(&project.id, kind, &range, PAGE)?));
                let page = match page {
                    Ok(page) => page,
                    Err(error) => {
                        self.unreadable(&project.id, damage(error)?.why, kind.as_str())?;
                        break;
                    }
                };
                let Some(last) = page.last() else {
                    break;
                };
                range = KeyRange::behind(&[], &last.key);
                if kind == EntryKind::Source {
                    for entry in &page {
                        self.source(project, &entry.key)?;
                    }
                }
                let id = project.id.clone();
                self.engine.write(move |records| {
                    for entry in &page {
                        records.put_entry(&id, kind, &entry.key, &entry.text)?;
                    }
                    Ok(())
                })?;
            }
        }
        Ok(())
    }

    fn source(&mut self, project: &Project, key: &[u8]) -> Result<()> {
        let Some(id) = keys::source_at_end(key) else {
            return Ok(());
        };
        let size = self.read(|records| {
            let known = Ledger::new(records, &project.id).source(id)?;
            Ok(known.map_or(0, |known| if known.purged { 0 } else { known.size_bytes }))
        });
        let pieces = size.unwrap_or(0).div_ceil(PIECE_BYTES as u64);
        for nth in 0..u32::try_from(pieces).unwrap_or(u32::MAX) {
            let why = match self.read(|records| Ok(records.piece(&project.id, &id, nth)?)) {
                Ok(Some(bytes)) => {
                    let owner = project.id.clone();
                    self.engine.write(move |records| {
                        Ok(records.insert_piece(&owner, &id, nth, &bytes)?)
                    })?;
                    continue;
                }
                Ok(None) => super::GONE.to_owned(),
                Err(error) => damage(error)?.why,
            };
            self.unreadable(&project.id, why, &format!("piece {nth} of source {id}"))?;
            break;
        }
        Ok(())
    }

    fn unreadable(&mut self, project: &ProjectId, why: String, record: &str) -> Result<()> {
        let (project, record) = (Some(project.clone()), record.to_owned());
        self.leave_out(vec![LeftOut { project, conversation: None, record, why, turn: None }])
    }
}
