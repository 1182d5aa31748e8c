//! What was learned, entry by entry, into the new store; look-ups, rings and what was compared with
//! other stores are made again. Whether
//! it is as the logs tell is found out with each conversation.

use tine_core::Digest;
use tine_core::ProjectId;
use tine_store::{Entry, EntryKind, KeyRange, PIECE_BYTES, Project};

use super::{LeftOut, Repair};
use crate::Result;
use crate::knowledge::{Ledger, keys, look_ups, parse, restore};
use crate::maintenance::census::damage;

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
        let again = |kind: EntryKind| {
            look_ups::is_look_up(kind)
                || matches!(kind, EntryKind::Rings | EntryKind::Compared | EntryKind::Unswept)
        };
        for kind in EntryKind::ALL.into_iter().filter(|kind| !again(*kind)) {
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
                let (id, of) = (project.id.clone(), project.id.clone());
                let left_out = self.engine.write(move |records| {
                    let mut left_out = Vec::new();
                    for entry in &page {
                        match unsound(&Ledger::new(&*records, &id), kind, entry)? {
                            Some(why) => left_out.push((tine_core::hash::to_hex(&entry.key), why)),
                            None => restore(records, &id, kind, &entry.key, &entry.text)?,
                        }
                    }
                    Ok(left_out)
                })?;
                for (key, why) in left_out {
                    self.unreadable(&of, why.to_owned(), &format!("{} {key}", kind.as_str()))?;
                }
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

/// Why an entry cannot be kept, if so.
fn unsound(ledger: &Ledger<'_>, kind: EntryKind, entry: &Entry) -> Result<Option<&'static str>> {
    if kind == EntryKind::Prompt {
        let fits = Digest::of(entry.text.as_bytes()).0.as_slice() == entry.key;
        return Ok((!fits).then_some("its hash does not fit it"));
    }
    if kind == EntryKind::Observation {
        let entity = keys::observation_at_end(&entry.key).map(|id| ledger.entity(id.entity));
        if entity.transpose()?.flatten().is_none() {
            return Ok(Some("its entity is lost"));
        }
    }
    Ok(parse(&entry.text).is_none().then_some("it cannot be read"))
}
