//! Whether records of families match the logs, their hashes and their indexes.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};

use tine_core::hash::Hasher;
use tine_core::{Digest, ObservationId, ProjectId};
use tine_store::{
    DamagedRecord, Family, FeedPosition, IndexKey, IndexQuery, ObservationMove, ObservationRecord,
    PromptRecord, Read, ReadFamilies, Record, RecordIndex, RecordKey, RecordQuery, RunRecord,
    SourceRecord,
};

use super::Checker;
use crate::commits::commit_maintenance;
use crate::knowledge::{KnowledgeReader, sealed};
use crate::log::change::LoggedChange;
use crate::log::history::detail;
use crate::maintenance::conversation_pages::damage;
use crate::maintenance::expected::ExpectedState;
use crate::{Engine, Result};

/// Records that are read at once.
const PAGE: usize = 1_000;

/// The problem of an observation that no operation made.
const UNLOGGED: &str = "no log tells of it";

/// Observations in the logs of a project, with their digests.
pub(super) type LoggedObservations = BTreeMap<ObservationId, Digest>;

impl Checker<'_> {
    /// Checks that every observation in the log exists unchanged, and that every record which only
    /// this log changes is as it left it.
    pub(super) fn knowledge(&mut self, expected: &ExpectedState) -> Result<()> {
        let project = &self.conversation.project;
        for DamagedRecord { record, why } in mismatched_records(self.records, project, expected)? {
            self.problem(record, why);
        }
        for DamagedRecord { record, why } in
            commit_maintenance::check(self.records, self.conversation, expected)?
        {
            self.problem(record, why);
        }
        Ok(())
    }
}

/// Returns the records of families that do not match a log.
pub(crate) fn mismatched_records(
    records: &dyn Read,
    project: &ProjectId,
    expected: &ExpectedState,
) -> Result<Vec<DamagedRecord>> {
    let mut found = Vec::new();
    let mut problem = |record: String, why: &str| {
        found.push(DamagedRecord { record, why: why.to_owned() });
    };
    for (id, digest) in &expected.observed {
        match records.record(project, &RecordKey::Observation(*id))? {
            None => problem(format!("observation {id}"), "it is missing"),
            Some(record) if sealed(&record) != Some(*digest) => {
                problem(format!("observation {id}"), "it is not as it was made");
            }
            Some(_) => {}
        }
    }
    for (key, value) in &expected.records {
        // Others are changed from several logs.
        let family = key.family();
        let own = [Family::Entity, Family::ObservationMove, Family::Schema].contains(&family)
            || commit_maintenance::is_commit_family(family);
        let present = records.record(project, key)?.and_then(|record| record.json());
        if own && expected.complete && present != *value {
            problem(key.to_string(), "it is not as the log left it");
        }
    }
    Ok(found)
}

impl Engine {
    /// Checks what belongs to no log alone: the bytes of sources, observations that no log
    /// mentions, and indexes.
    pub(super) fn verify_knowledge(
        &self,
        project: &ProjectId,
        observed: Option<&LoggedObservations>,
        began: FeedPosition,
        problems: &mut Vec<DamagedRecord>,
    ) -> Result<u64> {
        let mut sources = 0;
        for family in Family::all() {
            let mut query = RecordQuery::all(family);
            loop {
                let read = self.read(|records| {
                    let page = records.records(project, &query, PAGE)?;
                    let knowledge = KnowledgeReader::new(records, project);
                    let mut found = Vec::new();
                    let newer = OnceCell::new();
                    for record in &page {
                        let mut wrong = check_record(&knowledge, record, observed)?;
                        // Operations that came since the logs were read mention what they made.
                        if wrong == Some(UNLOGGED) {
                            let newer: &BTreeSet<_> = match newer.get() {
                                Some(newer) => newer,
                                None => {
                                    let found = observed_since(records, began)?;
                                    newer.get_or_init(|| found)
                                }
                            };
                            wrong = wrong.filter(|_| {
                                !matches!(record.key(), RecordKey::Observation(id) if newer.contains(id))
                            });
                        }
                        found.extend(wrong.map(|why| problem(record.key(), why)));
                    }
                    Ok((page, found))
                });
                let page = match read {
                    Ok((page, found)) => {
                        problems.extend(found);
                        page
                    }
                    Err(error) => {
                        problems.push(damage(error)?);
                        break;
                    }
                };
                let Some(last) = page.last() else {
                    break;
                };
                query = query.after(last.key());
                if family == Family::Source {
                    sources += page.len() as u64;
                    self.verify_sources(project, &page, problems)?;
                }
            }
        }
        for index in RecordIndex::ALL {
            self.verify_index(project, index, problems)?;
        }
        match self.read(|records| commit_maintenance::check_rings(records, project)) {
            Ok(found) => problems.extend(found),
            Err(error) => problems.push(damage(error)?),
        }
        Ok(sources)
    }

    /// Checks that every key of an index leads to a record that declares it.
    fn verify_index(
        &self,
        project: &ProjectId,
        index: RecordIndex,
        problems: &mut Vec<DamagedRecord>,
    ) -> Result<()> {
        let mut query = IndexQuery::all(index);
        loop {
            let read = self.read(|records| {
                let page = records.index_keys(project, &query, PAGE)?;
                let mut found = Vec::new();
                for key in &page {
                    if !leads_to_record(records, project, key)? {
                        found.push(problem(key, "it leads nowhere"));
                    }
                }
                Ok((page, found))
            });
            let page = match read {
                Ok((page, found)) => {
                    problems.extend(found);
                    page
                }
                Err(error) => {
                    problems.push(damage(error)?);
                    return Ok(());
                }
            };
            match page.last() {
                Some(last) => query = query.after(last),
                None => return Ok(()),
            }
        }
    }

    fn verify_sources(
        &self,
        project: &ProjectId,
        page: &[Record],
        problems: &mut Vec<DamagedRecord>,
    ) -> Result<()> {
        for key in page.iter().map(Record::key) {
            match self.read(|records| check_source(records, project, key)) {
                Ok(None) => {}
                Ok(Some(why)) => problems.push(problem(key, why)),
                Err(error) => problems.push(damage(error)?),
            }
        }
        Ok(())
    }
}

/// Returns what was observed since a place in the feed.
fn observed_since(records: &dyn Read, began: FeedPosition) -> Result<BTreeSet<ObservationId>> {
    let mut found = BTreeSet::new();
    let mut after = began;
    loop {
        let page = records.feed(after, PAGE)?;
        let Some((last, _)) = page.last() else {
            return Ok(found);
        };
        after = *last;
        for (_, operation) in &page {
            let changes = detail(operation).map_or_else(|_| Vec::new(), |detail| detail.changes);
            found.extend(changes.iter().filter_map(|change| match change {
                LoggedChange::Observed { id, .. } => Some(*id),
                _ => None,
            }));
        }
    }
}

fn problem(record: &impl ToString, why: &str) -> DamagedRecord {
    DamagedRecord { record: record.to_string(), why: why.to_owned() }
}

/// Returns what is wrong with a record by itself and beside others, if anything.
fn check_record(
    knowledge: &KnowledgeReader<'_>,
    record: &Record,
    observed: Option<&LoggedObservations>,
) -> Result<Option<&'static str>> {
    match record.key() {
        RecordKey::Unreadable { .. } => return Ok(Some("it cannot be read")),
        RecordKey::Prompt(_) => {
            let sound = record.decode().is_some_and(|prompt: PromptRecord| prompt.is_sound());
            return Ok((!sound).then_some("its hash does not match it"));
        }
        RecordKey::Observation(id) if observed.is_some_and(|all| !all.contains_key(id)) => {
            return Ok(Some(UNLOGGED));
        }
        key => {
            if let Some((owner, why)) = rests_on(key, record)
                && !knowledge.records.has(knowledge.project, &owner)?
            {
                return Ok(Some(why));
            }
        }
    }
    for key in record.index_keys().iter() {
        let query = IndexQuery::exactly(key);
        if knowledge.records.index_keys(knowledge.project, &query, 1)?.is_empty() {
            return Ok(Some("what leads to it is missing"));
        }
    }
    Ok(None)
}

/// Returns another record that a record needs, and what to say when it is missing.
fn rests_on(key: &RecordKey, record: &Record) -> Option<(RecordKey, &'static str)> {
    Some(match key {
        RecordKey::Observation(id) => (RecordKey::Entity(id.entity), "its entity is missing"),
        RecordKey::ObservationMove(_) => {
            let ObservationMove { to, .. } = record.decode()?;
            (RecordKey::Entity(to), "its entity is missing")
        }
        RecordKey::Run(_) => {
            let RunRecord { source, .. } = record.decode()?;
            (RecordKey::Source(source), "its source is missing")
        }
        _ => return None,
    })
}

fn leads_to_record(records: &dyn Read, project: &ProjectId, key: &IndexKey) -> Result<bool> {
    let owner = match key.owner() {
        Some(owner) => records.record(project, &owner)?,
        None => None,
    };
    let Some(owner) = owner else {
        return Ok(false);
    };
    // Erasures of earlier releases kept the turn that an observation was about.
    let erased = key.index() == RecordIndex::ObservationOfTurn
        && matches!(owner.decode(), Some(ObservationRecord::Purged(..)));
    Ok(erased || owner.index_keys().contains(key))
}

/// Returns what is wrong with the bytes of a source, if anything.
fn check_source(
    records: &dyn Read,
    project: &ProjectId,
    key: &RecordKey,
) -> Result<Option<&'static str>> {
    // Read again: it may have been erased since it was listed.
    let record = records.record(project, key)?;
    let Some(source) = record.and_then(|record| record.decode::<SourceRecord>()) else {
        return Ok(Some("it cannot be read"));
    };
    if source.purged {
        return Ok(None);
    }
    let mut hash = Hasher::default();
    let (mut size, mut nth) = (0_u64, 0);
    while let Some(piece) = records.piece(project, &source.id, nth)? {
        hash.update(&piece);
        size += piece.len() as u64;
        nth += 1;
    }
    if hash.finish() != source.content_hash || size != source.size_bytes {
        return Ok(Some("its bytes do not match its hash"));
    }
    Ok(None)
}
