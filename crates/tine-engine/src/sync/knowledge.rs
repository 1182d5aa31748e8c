//! Knowledge between stores: the records that a log mentions, and nothing else.
//!
//! Index keys do not travel: the receiving store derives them. Entities keep their ids, also in
//! another project; there, an entity with the id that the same name would get is merged into the
//! one that came, so that facts stored by name reach it.

use std::collections::BTreeSet;

use tine_core::facts::{Endpoint, ObservationOrigin, identity};
use tine_core::json::Json;
use tine_core::{Digest, EntityId, InterpretationId, ObservationId, ProjectId, SourceId};
use tine_store::{
    EntityRecord, Family, FamilyRecord, ObservationRecord, PIECE_BYTES, PromptRecord, Read,
    ReadFamilies, Record, RecordKey, RunRecord, SourceRecord, Write, WriteFamilies, required,
};

use super::BundleRecord;
use crate::commits::commit_maintenance;
use crate::knowledge::{KnowledgeReader, erase, sealed};
use crate::log::change::{LoggedChange, OperationDetail};
use crate::{Error, Result};

/// What a log mentions.
#[derive(Default)]
pub(super) struct LoggedRecords {
    observed: BTreeSet<ObservationId>,
    /// Records that the log itself changed.
    changed: BTreeSet<RecordKey>,
    runs: BTreeSet<InterpretationId>,
    sources: BTreeSet<SourceId>,
}

impl LoggedRecords {
    /// Adds what the detail of an operation mentions.
    pub(super) fn add(&mut self, detail: &str) {
        let json = tine_core::json::parse(detail.as_bytes(), tine_core::json::MAX_DEPTH).ok();
        let Some(entry) = json.and_then(|json| OperationDetail::from_json(&json)) else {
            return;
        };
        for change in &entry.changes {
            match change {
                LoggedChange::Observed { id, .. } => {
                    self.observed.insert(*id);
                }
                LoggedChange::Record { key, .. } => {
                    self.changed.insert(key.clone());
                }
                _ => {}
            }
        }
        self.sources.extend(entry.ids_in_fact::<SourceId>("source_id"));
        self.runs.extend(entry.ids_in_fact::<InterpretationId>("interpretation_id"));
    }

    /// Returns the records that the log changed, whether they still exist or not.
    pub(super) fn changed(self) -> BTreeSet<RecordKey> {
        self.changed
    }

    /// Visits the records in order of key, and then the bytes of the sources.
    pub(super) fn export(
        mut self,
        records: &dyn Read,
        project: &ProjectId,
        visit: &mut dyn FnMut(BundleRecord) -> Result<()>,
    ) -> Result<()> {
        let knowledge = KnowledgeReader::new(records, project);
        let wanted = self.everything(&knowledge)?;
        for key in &wanted {
            let Some(mut record) = records.record(project, key)? else {
                continue;
            };
            // Merging and deleting entities is up to each project.
            if key.family() == Family::Entity && !self.changed.contains(key) {
                let entity: EntityRecord = record.require()?;
                record = Record::of(&EntityRecord { merged: None, deleted_at: None, ..entity });
            }
            visit(BundleRecord::Record(record))?;
        }
        for source in &self.sources {
            let Some(record) = knowledge.source(*source)?.filter(|record| !record.purged) else {
                continue;
            };
            let mut left = record.size_bytes;
            let mut nth = 0;
            while left > 0 {
                let bytes = records.piece(project, source, nth)?;
                let bytes = required(bytes, || format!("piece {nth} of source {source}"))?;
                left = left.saturating_sub(bytes.len() as u64);
                visit(BundleRecord::Piece { source: *source, nth, bytes })?;
                nth += 1;
            }
        }
        Ok(())
    }

    /// Follows the mentioned records to everything that they rest on.
    fn everything(&mut self, knowledge: &KnowledgeReader<'_>) -> Result<BTreeSet<RecordKey>> {
        let mut wanted = self.changed.clone();
        wanted.extend(self.changed.iter().filter_map(|key| match key {
            RecordKey::CommitListing { hash, .. } => Some(RecordKey::Commit(*hash)),
            _ => None,
        }));
        for key in &self.changed {
            // An entity that was separated from another has no observation of its own.
            if let RecordKey::ObservationMove(id) = key
                && let Some(moved) = knowledge.moved(*id)?
            {
                wanted.insert(RecordKey::Entity(moved.to));
            }
        }
        let mut ends = BTreeSet::new();
        for id in &self.observed {
            wanted.insert(RecordKey::Observation(*id));
            wanted.insert(RecordKey::Entity(id.entity));
            let Some(one) = knowledge.observation(*id)? else {
                continue;
            };
            let (entity_type, version) = (one.entity_type, one.schema_version);
            wanted.insert(RecordKey::Schema { entity_type, version });
            self.runs.extend(one.interpretation);
            self.sources.extend(one.source);
            if one.origin == ObservationOrigin::Turn {
                ends.insert(Endpoint::Entity(id.entity));
                ends.extend(one.turn.map(Endpoint::Turn));
            }
        }
        for id in &self.runs {
            wanted.insert(RecordKey::Run(*id));
            if let Some(run) = knowledge.run(*id)? {
                self.sources.insert(run.source);
                let prompt = run.detail.get("prompt_hash").and_then(Json::as_str);
                let prompt = prompt.and_then(|hash| hash.parse::<Digest>().ok());
                wanted.extend(prompt.map(RecordKey::Prompt));
            }
        }
        for end in ends {
            for edge in knowledge.edges_from(&end)? {
                // An attachment comes with its message.
                if let Endpoint::Source(source) = edge.target {
                    self.sources.insert(source);
                }
                wanted.insert(RecordKey::Relationship(edge));
            }
        }
        wanted.extend(self.sources.iter().copied().map(RecordKey::Source));
        Ok(wanted)
    }
}

/// Records and bytes that came with a conversation.
#[derive(Default)]
pub(super) struct IncomingRecords {
    pub records: Vec<Record>,
    pub pieces: Vec<(SourceId, u32, Vec<u8>)>,
}

impl IncomingRecords {
    /// Adds what is not here yet. `owned` says that the log is the project's own, which decides
    /// about entities.
    pub(super) fn store(
        &self,
        records: &mut dyn Write,
        project: &ProjectId,
        owned: bool,
        erased: &mut erase::ErasurePlan,
    ) -> Result<()> {
        for record in &self.records {
            let present = records.record(project, record.key())?;
            if present.as_ref() != Some(record) {
                self.store_one(records, project, owned, record, present.as_ref(), erased)?;
            }
        }
        Ok(())
    }

    /// Removes records that the project's own log mentions and does not include: they were removed
    /// there.
    pub(super) fn remove_absent(
        &self,
        records: &mut dyn Write,
        project: &ProjectId,
        logged: LoggedRecords,
    ) -> Result<()> {
        let incoming: BTreeSet<&RecordKey> = self.records.iter().map(Record::key).collect();
        for key in logged.changed() {
            let removable = matches!(key.family(), Family::Relationship | Family::ObservationMove);
            if removable && !incoming.contains(&key) && records.has(project, &key)? {
                records.delete_record(project, &key)?;
            }
        }
        Ok(())
    }

    fn store_one(
        &self,
        records: &mut dyn Write,
        project: &ProjectId,
        owned: bool,
        record: &Record,
        present: Option<&Record>,
        erased: &mut erase::ErasurePlan,
    ) -> Result<()> {
        let changeable = present.is_none() || owned;
        match record.key() {
            RecordKey::Entity(_) if changeable => {
                let entity: EntityRecord = sound(record)?;
                records.put_record(project, record)?;
                redirect_name(records, project, &entity)?;
            }
            RecordKey::ObservationMove(_)
            | RecordKey::Schema { .. }
            | RecordKey::Relationship(_)
                if changeable =>
            {
                damaged(record.json(), record.key())?;
                records.put_record(project, record)?;
            }
            RecordKey::Observation(id) => {
                let incoming: ObservationRecord = sound(record)?;
                match present {
                    None => records.insert_record(project, record)?,
                    Some(present) if sealed(present) != sealed(record) => {
                        let why = "another observation of the same id is here";
                        return Err(Error::Invalid(format!("{}: {why}", record.key())));
                    }
                    Some(_) if matches!(incoming, ObservationRecord::Purged(..)) => {
                        erased.observations.insert(*id);
                    }
                    Some(_) => {}
                }
            }
            RecordKey::Source(id) => {
                let source: SourceRecord = sound(record)?;
                match present {
                    None => {
                        self.source(records, project, &source)?;
                        records.insert_record(project, record)?;
                    }
                    Some(present) => {
                        let here = present.decode::<SourceRecord>();
                        if source.purged && !here.is_some_and(|here| here.purged) {
                            erased.add_source(&KnowledgeReader::new(&*records, project), *id)?;
                        }
                    }
                }
            }
            RecordKey::Run(_) => {
                let run: RunRecord = sound(record)?;
                let existing = present.and_then(|present| present.decode::<RunRecord>());
                // One that has ended here stays as it ended, unless what was said in it is gone.
                let is_purged = |run: &RunRecord| run.detail.get("purged").is_some();
                let purged = is_purged(&run);
                erased.answers |=
                    purged && existing.as_ref().is_some_and(|existing| !is_purged(existing));
                if existing.is_none_or(|existing| purged || existing.status.is_open()) {
                    records.put(project, &run)?;
                }
            }
            RecordKey::Prompt(_) if present.is_none() => {
                if !sound::<PromptRecord>(record)?.is_sound() {
                    let why = "its hash does not match it";
                    return Err(Error::Invalid(format!("{}: {why}", record.key())));
                }
                records.insert_record(project, record)?;
            }
            RecordKey::Entity(_)
            | RecordKey::ObservationMove(_)
            | RecordKey::Schema { .. }
            | RecordKey::Relationship(_)
            | RecordKey::Prompt(_) => {}
            key if commit_maintenance::is_commit_family(key.family()) => {}
            key => {
                return Err(Error::Invalid(format!(
                    "{key}: records of this kind cannot be imported"
                )));
            }
        }
        Ok(())
    }

    fn source(
        &self,
        records: &mut dyn Write,
        project: &ProjectId,
        source: &SourceRecord,
    ) -> Result<()> {
        if source.purged {
            return Ok(());
        }
        let mut hash = tine_core::hash::Hasher::default();
        let (mut size, mut next) = (0_u64, 0);
        // They come sorted by source.
        let first = self.pieces.partition_point(|(of, ..)| *of < source.id);
        for (of, nth, bytes) in &self.pieces[first..] {
            if *of != source.id {
                break;
            }
            if *nth != next || bytes.len() > PIECE_BYTES {
                break;
            }
            hash.update(bytes);
            size += bytes.len() as u64;
            next += 1;
            records.insert_piece(project, &source.id, *nth, bytes)?;
        }
        if hash.finish() != source.content_hash || size != source.size_bytes {
            return Err(Error::Invalid(format!(
                "the bundle is damaged: source {}: its bytes do not match its hash",
                source.id
            )));
        }
        Ok(())
    }
}

fn damaged<T>(found: Option<T>, key: &RecordKey) -> Result<T> {
    found.ok_or_else(|| Error::Invalid(format!("the bundle is damaged: {key}")))
}

fn sound<R: FamilyRecord>(record: &Record) -> Result<R> {
    damaged(record.decode(), record.key())
}

/// Redirects facts stored by name in this project to an entity that came from another.
fn redirect_name(
    records: &mut dyn Write,
    project: &ProjectId,
    entity: &EntityRecord,
) -> Result<()> {
    if entity.key.is_null() || entity.conversation.is_some() {
        return Ok(());
    }
    let here: EntityId = identity::entity_id(project, &entity.entity_type, &entity.key);
    if here == entity.id || records.has(project, &RecordKey::Entity(here))? {
        return Ok(());
    }
    let redirect = EntityRecord {
        id: here,
        merged: Some((entity.id, entity.first_seen)),
        deleted_at: None,
        ..entity.clone()
    };
    Ok(records.insert(project, &redirect)?)
}
