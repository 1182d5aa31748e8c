//! Records of families, one by one into the new store, which derives the index keys again. Rings
//! and notes beside the logs are not copied. Whether records match the logs is checked with each
//! conversation.

use tine_core::{ProjectId, SourceId};
use tine_store::{Family, PIECE_BYTES, Project, PromptRecord, Record, RecordKey, RecordQuery};

use super::{LeftOut, Repair};
use crate::Result;
use crate::knowledge::KnowledgeReader;
use crate::maintenance::conversation_pages::damage;

/// Records carried over in one transaction.
const PAGE: usize = 500;

impl Repair<'_> {
    /// Carries over the records of a project, and the bytes of its sources.
    pub(super) fn records(&mut self, project: &Project) -> Result<()> {
        let owner = project.clone();
        self.engine.write(move |records| {
            if records.project(&owner.id)?.is_none() {
                records.insert_project(&owner)?;
            }
            Ok(())
        })?;
        let left_behind = [Family::Rings, Family::SyncMarks, Family::PendingErasure];
        for family in Family::all().filter(|family| !left_behind.contains(family)) {
            let mut query = RecordQuery::all(family);
            loop {
                let page = self.read(|records| Ok(records.records(&project.id, &query, PAGE)?));
                let page = match page {
                    Ok(page) => page,
                    Err(error) => {
                        self.unreadable(&project.id, damage(error)?.why, family.as_str())?;
                        break;
                    }
                };
                let Some(last) = page.last() else {
                    break;
                };
                query = query.after(last.key());
                for record in &page {
                    if let RecordKey::Source(id) = record.key() {
                        self.source(project, *id)?;
                    }
                }
                let id = project.id.clone();
                let left_out = self.engine.write(move |records| {
                    let mut left_out = Vec::new();
                    for record in &page {
                        match unsound(&KnowledgeReader::new(&*records, &id), record)? {
                            Some(why) => left_out.push((record.key().to_string(), why)),
                            None => records.put_record(&id, record)?,
                        }
                    }
                    Ok(left_out)
                })?;
                for (name, why) in left_out {
                    self.unreadable(&project.id, why.to_owned(), &name)?;
                }
            }
        }
        Ok(())
    }

    fn source(&mut self, project: &Project, id: SourceId) -> Result<()> {
        let size = self.read(|records| {
            let record = KnowledgeReader::new(records, &project.id).source(id)?;
            Ok(record.map_or(0, |record| if record.purged { 0 } else { record.size_bytes }))
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

/// Returns why a record cannot be kept, if so.
fn unsound(knowledge: &KnowledgeReader<'_>, record: &Record) -> Result<Option<&'static str>> {
    Ok(match record.key() {
        RecordKey::Unreadable { .. } => Some("it cannot be read"),
        RecordKey::Prompt(_) => {
            let sound = record.decode().is_some_and(|prompt: PromptRecord| prompt.is_sound());
            (!sound).then_some("its hash does not match it")
        }
        RecordKey::Observation(id) if knowledge.entity(id.entity)?.is_none() => {
            Some("its entity is lost")
        }
        _ => record.json().is_none().then_some("it cannot be read"),
    })
}
