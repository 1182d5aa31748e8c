//! Erasure of knowledge derived from erased content: bytes, observations, raw model responses,
//! relationship metadata, and names that no other observation states. Digests stay.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use tine_core::facts::{Endpoint, Schema, identity};
use tine_core::json::{Json, Object};
use tine_core::{
    ConversationId, Digest, EntityId, InterpretationId, ObservationId, ProjectId, SourceId,
    Timestamp, TurnId,
};
use tine_store::{
    ConversationKey, Detail, Edge, EntityRecord, Family, IndexKey, IndexQuery, ObservationRecord,
    ReadFamilies, RecordKey, RecordQuery, RelationshipRecord, RunRecord, SourceRecord, Write,
    WriteFamilies, required,
};

use super::facts::FACTS_MIME;
use super::reader::{KnowledgeReader, OBSERVATIONS_READ};
use crate::Result;
use crate::RunStatus;
use crate::commits::commit_maintenance;
use crate::log::change::{LoggedChange, OperationDetail};
use crate::log::history::detail;
use crate::log::mutation::PROJECT_LOG;
use crate::maintenance::conversation_pages;

/// The knowledge to erase.
#[derive(Clone, Debug, Default)]
pub(crate) struct ErasurePlan {
    /// The turns that it was derived from.
    pub turns: BTreeSet<TurnId>,
    pub sources: BTreeSet<SourceId>,
    pub observations: BTreeSet<ObservationId>,
    /// Whether raw answers of models go as well that are erased elsewhere.
    pub answers: bool,
}

impl ErasurePlan {
    /// Plans the erasure of knowledge derived from turns; `logged_sources` are the sources in their
    /// conversation's log.
    pub(crate) fn of_turns(
        knowledge: &KnowledgeReader<'_>,
        turns: BTreeSet<TurnId>,
        logged_sources: &BTreeSet<SourceId>,
    ) -> Result<ErasurePlan> {
        let mut plan = ErasurePlan { turns, ..ErasurePlan::default() };
        for turn in &plan.turns {
            plan.observations.extend(knowledge.ids_about_turn(turn)?);
        }
        let mut read = logged_sources.clone();
        let mut sent = BTreeSet::new();
        for id in &plan.observations {
            let source = knowledge.observation(*id)?.and_then(|one| one.source);
            read.extend(source);
            sent.extend(source);
        }
        for id in read {
            let Some(source) = knowledge.source(id)? else {
                continue;
            };
            let of_turn = source.turn.is_some_and(|turn| plan.turns.contains(&turn));
            // Structured facts repeat the content.
            if of_turn || (source.mime_type == FACTS_MIME && sent.contains(&id)) {
                plan.add_source(knowledge, id)?;
            }
        }
        Ok(plan)
    }

    /// Adds a source with everything derived from it.
    pub(crate) fn add_source(
        &mut self,
        knowledge: &KnowledgeReader<'_>,
        id: SourceId,
    ) -> Result<()> {
        self.sources.insert(id);
        for run in runs_over(knowledge, id)? {
            self.observations.extend(run.observations);
        }
        Ok(())
    }

    /// The observations of a conversation's own entity: they hold its titles.
    pub(crate) fn add_conversation(
        &mut self,
        knowledge: &KnowledgeReader<'_>,
        id: &ConversationId,
    ) -> Result<()> {
        if let Some(entity) = knowledge.conversation_entity(id)? {
            let query = RecordQuery::observations_of(entity);
            let own = knowledge.records.records(knowledge.project, &query, OBSERVATIONS_READ)?;
            self.observations.extend(own.iter().filter_map(|record| match record.key() {
                RecordKey::Observation(id) => Some(*id),
                _ => None,
            }));
        }
        Ok(())
    }

    pub(crate) fn is_empty(&self) -> bool {
        let nothing = self.turns.is_empty() && self.sources.is_empty();
        nothing && self.observations.is_empty() && !self.answers
    }

    /// Returns whether the bytes of all its sources are gone already.
    pub(crate) fn is_done(&self, knowledge: &KnowledgeReader<'_>) -> Result<bool> {
        for id in &self.sources {
            if knowledge.source(*id)?.is_some_and(|source| !source.purged) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Erases it all. Entries of logs that repeat a name or a note go with it.
    pub(crate) fn erase(
        &self,
        records: &mut dyn Write,
        project: &ProjectId,
        now: Timestamp,
    ) -> Result<()> {
        for id in &self.observations {
            erase_observation(records, project, *id)?;
        }
        for id in &self.sources {
            erase_source(records, project, *id, now)?;
        }
        commit_maintenance::erase(records, project, &self.turns, &self.observations)?;
        let nameless = self.forget_names(records, project)?;
        let mut ends: BTreeSet<Endpoint> = self.turns.iter().copied().map(Endpoint::Turn).collect();
        ends.extend(self.sources.iter().copied().map(Endpoint::Source));
        ends.extend(nameless.iter().copied().map(Endpoint::Entity));
        let knowledge = KnowledgeReader::new(&*records, project);
        let mut runs = BTreeSet::new();
        for id in &self.sources {
            runs.extend(runs_over(&knowledge, *id)?.into_iter().map(|run| run.id));
        }
        for id in self.entities() {
            let message = knowledge.entity(id)?.is_some_and(|entity| entity.slot.is_some());
            ends.extend(message.then_some(Endpoint::Entity(id)));
        }
        let log = ConversationId::from_stored(PROJECT_LOG);
        let related = records.records(project, &RecordQuery::all(Family::Relationship), 1)?;
        if related.is_empty() && records.conversation(project, &log)?.is_none() {
            return Ok(());
        }
        let mentions = Mentions { nameless, ends, runs };
        mentions.erase_notes(records, project)?;
        mentions.erase_in_logs(records, project)
    }

    fn entities(&self) -> BTreeSet<EntityId> {
        self.observations.iter().map(|id| id.entity).collect()
    }

    /// Removes names that no observation states any more; returns their entities.
    fn forget_names(
        &self,
        records: &mut dyn Write,
        project: &ProjectId,
    ) -> Result<BTreeSet<EntityId>> {
        let mut nameless = BTreeSet::new();
        for id in self.entities() {
            for entity in unnamed(&KnowledgeReader::new(&*records, project), id)? {
                nameless.insert(entity.id);
                records.put(project, &EntityRecord { key: Json::Null, ..entity })?;
            }
        }
        Ok(nameless)
    }
}

fn runs_over(knowledge: &KnowledgeReader<'_>, id: SourceId) -> Result<Vec<RunRecord>> {
    let keys = knowledge.indexed(&IndexQuery::runs_of(&id))?;
    let runs = keys.iter().filter_map(|key| match key {
        IndexKey::RunOfSource { run, .. } => knowledge.run(*run).transpose(),
        _ => None,
    });
    runs.collect()
}

fn erase_observation(
    records: &mut dyn Write,
    project: &ProjectId,
    id: ObservationId,
) -> Result<()> {
    let Some(one) = KnowledgeReader::new(&*records, project).observation(id)? else {
        return Ok(());
    };
    // What it retracts stays retracted; a version of a slot holds nothing of its own.
    if one.retracts.is_some() || (one.fields.is_empty() && one.turn.is_some()) {
        return Ok(());
    }
    let record = records.record(project, &RecordKey::Observation(id))?;
    let record = required(record, || format!("observation {id}"))?;
    let digest = Digest::of(record.text().as_bytes());
    Ok(records.put(project, &ObservationRecord::Purged(id, digest))?)
}

fn erase_source(
    records: &mut dyn Write,
    project: &ProjectId,
    id: SourceId,
    now: Timestamp,
) -> Result<()> {
    let knowledge = KnowledgeReader::new(&*records, project);
    let Some(source) = knowledge.source(id)? else {
        return Ok(());
    };
    let runs = runs_over(&knowledge, id)?;
    records.delete_pieces(project, &id)?;
    let left = SourceRecord { purged: true, original_filename: None, ..source };
    records.put(project, &left)?;
    for run in runs {
        records.put(project, &erased(run, now))?;
    }
    Ok(())
}

/// Returns a run without its content. An open run is marked as failed.
fn erased(mut run: RunRecord, now: Timestamp) -> RunRecord {
    for member in ["request", "response", "agent"] {
        run.detail.remove(member);
    }
    run.detail.insert("purged", true.into());
    run.notes.clear();
    run.unknown_fields.clear();
    if run.status.is_open() {
        run.status = RunStatus::Failed;
        run.finished_at = Some(now);
    }
    if run.status == RunStatus::Failed {
        run.error = Some("its source was purged".to_owned());
    }
    run
}

/// Returns the entities that are the same as one, itself included, and whose names no observation
/// states any more.
fn unnamed(knowledge: &KnowledgeReader<'_>, id: EntityId) -> Result<Vec<EntityRecord>> {
    let Some(entity) = knowledge.entity(id)? else {
        return Ok(Vec::new());
    };
    let mut same = knowledge.merged_with(entity)?;
    let mut given = Vec::new();
    let mut schemas: BTreeMap<u32, Schema> = BTreeMap::new();
    for entity in &same {
        for one in knowledge.own_observations(entity.id, 0, OBSERVATIONS_READ)? {
            if one.retracts.is_some() {
                continue;
            }
            let version = one.schema_version;
            if let Entry::Vacant(place) = schemas.entry(version) {
                place.insert(knowledge.schema(&one.entity_type, version)?);
            }
            given.extend(schemas.get(&version).and_then(|it| identity::key(it, &one.fields)));
        }
    }
    same.retain(|it| !it.key.is_null() && it.conversation.is_none() && !given.contains(&it.key));
    Ok(same)
}

/// What logs and relationships must not mention any more.
struct Mentions {
    nameless: BTreeSet<EntityId>,
    /// Whatever was noted of relationships at these ends.
    ends: BTreeSet<Endpoint>,
    /// Whatever was noted of relationships by these runs.
    runs: BTreeSet<InterpretationId>,
}

impl Mentions {
    fn at_ends(&self, edge: &Edge) -> bool {
        self.ends.contains(&edge.source) || self.ends.contains(&edge.target)
    }

    fn erase_notes(&self, records: &mut dyn Write, project: &ProjectId) -> Result<()> {
        let knowledge = KnowledgeReader::new(&*records, project);
        let mut noted = Vec::new();
        for end in &self.ends {
            noted.extend(knowledge.edges_from(end)?);
            noted.extend(knowledge.edges_to(end)?);
        }
        for edge in noted {
            erase_note(records, project, &edge)?;
        }
        Ok(())
    }

    /// Relationship metadata can be in any log of the project.
    fn erase_in_logs(&self, records: &mut dyn Write, project: &ProjectId) -> Result<()> {
        let mut after = None;
        loop {
            let page = conversation_pages::page(&*records, project, after)?;
            for conversation in &page.conversations {
                self.erase_in_log(records, project, conversation.key)?;
            }
            match page.last {
                Some(last) => after = Some(last),
                None => return Ok(()),
            }
        }
    }

    fn erase_in_log(
        &self,
        records: &mut dyn Write,
        project: &ProjectId,
        log: ConversationKey,
    ) -> Result<()> {
        let mut repeating = Vec::new();
        let mut notes = Vec::new();
        records.operations(log, 1, u64::MAX, &mut |operation| {
            let entry = r#""record":"entry""#;
            if matches!(&operation.detail, Detail::Kept(text) if text.contains(entry))
                && let Ok(entry) = detail(&operation)
                && self.repeats(&entry, &mut notes)
            {
                repeating.push(operation.seq);
            }
            Ok(true)
        })?;
        for seq in repeating {
            records.purge_operation(log, seq)?;
        }
        for (edge, note) in notes {
            let here = records.record(project, &RecordKey::Relationship(edge))?;
            if here.and_then(|here| here.json()) == Some(note) {
                erase_note(records, project, &edge)?;
            }
        }
        Ok(())
    }

    /// Returns whether an entry of a log repeats erased content; adds the relationship metadata
    /// that its run wrote to `notes`.
    fn repeats(&self, entry: &OperationDetail, notes: &mut Vec<(Edge, Json)>) -> bool {
        let runs = entry.ids_in_fact::<InterpretationId>("interpretation_id");
        let by_run = runs.iter().any(|run| self.runs.contains(run));
        let mut repeats = false;
        for change in &entry.changes {
            match change {
                LoggedChange::Record { key: RecordKey::Entity(id), .. } => {
                    repeats |= self.nameless.contains(id);
                }
                LoggedChange::Record { key: RecordKey::Relationship(edge), before, after } => {
                    if !before.iter().chain(after).any(is_noted) {
                        continue;
                    }
                    repeats |= by_run || self.at_ends(edge);
                    notes.extend(after.clone().filter(|_| by_run).map(|it| (*edge, it)));
                }
                _ => {}
            }
        }
        repeats
    }
}

/// Returns whether something was noted of a relationship.
fn is_noted(relationship: &Json) -> bool {
    let noted = relationship.get("metadata").and_then(Json::as_object);
    noted.is_some_and(|noted| !noted.is_empty())
}

fn erase_note(records: &mut dyn Write, project: &ProjectId, edge: &Edge) -> Result<()> {
    let Some(record) = records.get::<RelationshipRecord>(project, edge)? else {
        return Ok(());
    };
    if record.metadata.as_object().is_some_and(|noted| !noted.is_empty()) {
        let metadata = Json::Object(Object::new());
        records.put(project, &RelationshipRecord { metadata, ..record })?;
    }
    Ok(())
}
