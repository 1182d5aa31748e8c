//! Erasure of what was learned from what is erased: bytes, observations, raw answers of models,
//! notes on relationships, and the names that nobody else has given. Digests stay.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use tine_core::facts::observation::purged_form;
use tine_core::facts::{Endpoint, Schema, identity};
use tine_core::json::{Json, Object};
use tine_core::{
    ConversationId, Digest, EntityId, InterpretationId, ObservationId, ProjectId, SourceId,
    Timestamp, TurnId,
};
use tine_store::{ConversationKey, Detail, EntryKind, KeyRange, Write, required};

use super::facts::FACTS_MIME;
use super::keys;
use super::keys::Edge;
use super::ledger::{Ledger, OBSERVATIONS_READ, set};
use super::record::{EntityRecord, RelationshipRecord, SourceRecord};
use super::runs::RunRecord;
use crate::Result;
use crate::RunStatus;
use crate::commits::upkeep;
use crate::log::change::{Change, OperationDetail};
use crate::log::history::detail;
use crate::log::mutation::PROJECT_LOG;
use crate::maintenance::census;

/// What goes of what was learned.
#[derive(Clone, Debug, Default)]
pub(crate) struct Plan {
    /// The turns that it was learned from.
    pub turns: BTreeSet<TurnId>,
    pub sources: BTreeSet<SourceId>,
    pub observations: BTreeSet<ObservationId>,
    /// Whether raw answers of models go as well that are erased elsewhere.
    pub answers: bool,
}

impl Plan {
    /// What was learned from turns, of all sources that their conversation's log tells of.
    pub(crate) fn of_turns(
        ledger: &Ledger<'_>,
        turns: BTreeSet<TurnId>,
        told: &BTreeSet<SourceId>,
    ) -> Result<Plan> {
        let mut plan = Plan { turns, ..Plan::default() };
        for turn in &plan.turns {
            for key in ledger.under(EntryKind::ObservationOfTurn, turn.as_bytes())? {
                plan.observations.extend(keys::observation_at_end(&key));
            }
        }
        let mut read = told.clone();
        let mut sent = BTreeSet::new();
        for id in &plan.observations {
            let source = ledger.observation(*id)?.and_then(|one| one.source);
            read.extend(source);
            sent.extend(source);
        }
        for id in read {
            let Some(source) = ledger.source(id)? else {
                continue;
            };
            let of_turn = source.turn.is_some_and(|turn| plan.turns.contains(&turn));
            // What a caller structured repeats what was said.
            if of_turn || (source.mime_type == FACTS_MIME && sent.contains(&id)) {
                plan.add_source(ledger, id)?;
            }
        }
        Ok(plan)
    }

    /// A source with all that was learned from it.
    pub(crate) fn add_source(&mut self, ledger: &Ledger<'_>, id: SourceId) -> Result<()> {
        self.sources.insert(id);
        for run in runs_over(ledger, id)? {
            self.observations.extend(run.view.observations);
        }
        Ok(())
    }

    /// The observations of a conversation's own entity: they hold its titles.
    pub(crate) fn add_conversation(
        &mut self,
        ledger: &Ledger<'_>,
        id: &ConversationId,
    ) -> Result<()> {
        if let Some(entity) = ledger.conversation_entity(id)? {
            for key in ledger.under(EntryKind::Observation, entity.as_bytes())? {
                self.observations.extend(keys::observation_at_end(&key));
            }
        }
        Ok(())
    }

    pub(crate) fn is_empty(&self) -> bool {
        let nothing = self.turns.is_empty() && self.sources.is_empty();
        nothing && self.observations.is_empty() && !self.answers
    }

    /// Whether the bytes of all its sources are gone already.
    pub(crate) fn is_done(&self, ledger: &Ledger<'_>) -> Result<bool> {
        for id in &self.sources {
            if ledger.source(*id)?.is_some_and(|source| !source.purged) {
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
        upkeep::erase(records, project, &self.turns, &self.observations)?;
        let nameless = self.forget_names(records, project)?;
        let mut ends: BTreeSet<Endpoint> = self.turns.iter().copied().map(Endpoint::Turn).collect();
        ends.extend(self.sources.iter().copied().map(Endpoint::Source));
        ends.extend(nameless.iter().copied().map(Endpoint::Entity));
        let ledger = Ledger::new(&*records, project);
        let mut runs = BTreeSet::new();
        for id in &self.sources {
            runs.extend(runs_over(&ledger, *id)?.into_iter().map(|run| run.view.id));
        }
        for id in self.entities() {
            let message = ledger.entity(id)?.is_some_and(|entity| entity.slot.is_some());
            ends.extend(message.then_some(Endpoint::Entity(id)));
        }
        let log = ConversationId::from_stored(PROJECT_LOG);
        let related = records.entries(project, EntryKind::Relationship, &KeyRange::default(), 1)?;
        if related.is_empty() && records.conversation(project, &log)?.is_none() {
            return Ok(());
        }
        let told = Told { nameless, ends, runs };
        told.erase_notes(records, project)?;
        told.erase_in_logs(records, project)
    }

    fn entities(&self) -> BTreeSet<EntityId> {
        self.observations.iter().map(|id| id.entity).collect()
    }

    /// Takes the names away that nothing says any more; answers whose.
    fn forget_names(
        &self,
        records: &mut dyn Write,
        project: &ProjectId,
    ) -> Result<BTreeSet<EntityId>> {
        let mut nameless = BTreeSet::new();
        for id in self.entities() {
            for entity in unnamed(&Ledger::new(&*records, project), id)? {
                let (id, left) = (entity.id, EntityRecord { key: Json::Null, ..entity });
                set(records, project, EntryKind::Entity, id.as_bytes(), Some(&left.to_json()))?;
                nameless.insert(id);
            }
        }
        Ok(nameless)
    }
}

fn runs_over(ledger: &Ledger<'_>, id: SourceId) -> Result<Vec<RunRecord>> {
    let keys = ledger.under(EntryKind::RunOfSource, id.as_bytes())?;
    let runs = keys.iter().filter_map(|key| ledger.run(keys::run_at_end(key)?).transpose());
    runs.collect()
}

fn erase_observation(
    records: &mut dyn Write,
    project: &ProjectId,
    id: ObservationId,
) -> Result<()> {
    let Some(one) = Ledger::new(&*records, project).observation(id)? else {
        return Ok(());
    };
    // What it retracts stays retracted; a version of a slot holds nothing of its own.
    if one.retracts.is_some() || (one.fields.is_empty() && one.turn.is_some()) {
        return Ok(());
    }
    let key = keys::observation(id);
    let text = records.entry(project, EntryKind::Observation, &key)?;
    let text = required(text, || format!("observation {id}"))?;
    let left = purged_form(&Digest::of(text.as_bytes()));
    set(records, project, EntryKind::Observation, &key, Some(&left))
}

fn erase_source(
    records: &mut dyn Write,
    project: &ProjectId,
    id: SourceId,
    now: Timestamp,
) -> Result<()> {
    let ledger = Ledger::new(&*records, project);
    let Some(source) = ledger.source(id)? else {
        return Ok(());
    };
    let runs = runs_over(&ledger, id)?;
    records.delete_pieces(project, &id)?;
    let left = SourceRecord { purged: true, original_filename: None, ..source };
    set(records, project, EntryKind::Source, id.as_bytes(), Some(&left.to_json()))?;
    for run in runs {
        erased(run, now).write(records, project)?;
    }
    Ok(())
}

/// A run without what was said in it. One that had not ended will not.
fn erased(mut run: RunRecord, now: Timestamp) -> RunRecord {
    let view = &mut run.view;
    for told in ["request", "response", "agent"] {
        view.detail.remove(told);
    }
    view.detail.insert("purged", true.into());
    view.notes.clear();
    view.unknown_fields.clear();
    if view.status.is_open() {
        view.status = RunStatus::Failed;
        view.finished_at = Some(now);
    }
    if view.status == RunStatus::Failed {
        view.error = Some("its source was purged".to_owned());
    }
    run
}

/// The entities that are the same as one, itself included, and whose names nothing says any more.
fn unnamed(ledger: &Ledger<'_>, id: EntityId) -> Result<Vec<EntityRecord>> {
    let Some(entity) = ledger.entity(id)? else {
        return Ok(Vec::new());
    };
    let mut same = ledger.merged_with(entity)?;
    let mut given = Vec::new();
    let mut schemas: BTreeMap<u32, Schema> = BTreeMap::new();
    for entity in &same {
        for one in ledger.own_observations(entity.id, 0, OBSERVATIONS_READ)? {
            if one.retracts.is_some() {
                continue;
            }
            let version = one.schema_version;
            if let Entry::Vacant(place) = schemas.entry(version) {
                place.insert(ledger.schema(&one.entity_type, version)?);
            }
            given.extend(schemas.get(&version).and_then(|it| identity::key(it, &one.fields)));
        }
    }
    same.retain(|it| !it.key.is_null() && it.conversation.is_none() && !given.contains(&it.key));
    Ok(same)
}

/// What must not be told any more.
struct Told {
    nameless: BTreeSet<EntityId>,
    /// Whatever was noted of relationships at these ends.
    ends: BTreeSet<Endpoint>,
    /// Whatever was noted of relationships by these runs.
    runs: BTreeSet<InterpretationId>,
}

impl Told {
    fn at_ends(&self, edge: &Edge) -> bool {
        self.ends.contains(&edge.source) || self.ends.contains(&edge.target)
    }

    fn erase_notes(&self, records: &mut dyn Write, project: &ProjectId) -> Result<()> {
        let ledger = Ledger::new(&*records, project);
        let mut noted = Vec::new();
        for end in &self.ends {
            for key in ledger.under(EntryKind::Relationship, &end.to_bytes())? {
                noted.extend(Edge::from_key(&key));
            }
            for key in ledger.under(EntryKind::RelationshipTo, &end.to_bytes())? {
                noted.extend(Edge::from_key_at_target(&key));
            }
        }
        for edge in noted {
            erase_note(records, project, &edge.key())?;
        }
        Ok(())
    }

    /// A note can be told in any log of the project.
    fn erase_in_logs(&self, records: &mut dyn Write, project: &ProjectId) -> Result<()> {
        let mut after = None;
        loop {
            let page = census::page(&*records, project, after)?;
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
        let mut telling = Vec::new();
        let mut notes = Vec::new();
        records.operations(log, 1, u64::MAX, &mut |operation| {
            let entry = r#""record":"entry""#;
            if matches!(&operation.detail, Detail::Kept(text) if text.contains(entry))
                && let Ok(known) = detail(&operation)
                && self.tells(&known, &mut notes)
            {
                telling.push(operation.seq);
            }
            Ok(true)
        })?;
        for seq in telling {
            records.purge_operation(log, seq)?;
        }
        for (key, note) in notes {
            let here = Ledger::new(&*records, project).entry(EntryKind::Relationship, &key)?;
            if here == Some(note) {
                erase_note(records, project, &key)?;
            }
        }
        Ok(())
    }

    /// Whether an entry of a log tells what must not be told; `notes` are what its run noted.
    fn tells(&self, known: &OperationDetail, notes: &mut Vec<(Vec<u8>, Json)>) -> bool {
        let runs = known.told::<InterpretationId>("interpretation_id");
        let by_run = runs.iter().any(|run| self.runs.contains(run));
        let mut tells = false;
        for change in &known.changes {
            match change {
                Change::Entry { kind: EntryKind::Entity, key, .. } => {
                    let id = keys::entity_at_end(key);
                    tells |= id.is_some_and(|id| self.nameless.contains(&id));
                }
                Change::Entry { kind: EntryKind::Relationship, key, before, after } => {
                    if !before.iter().chain(after).any(is_noted) {
                        continue;
                    }
                    let at_ends = Edge::from_key(key).is_some_and(|edge| self.at_ends(&edge));
                    tells |= by_run || at_ends;
                    notes.extend(after.clone().filter(|_| by_run).map(|it| (key.clone(), it)));
                }
                _ => {}
            }
        }
        tells
    }
}

/// Whether something was noted of a relationship.
fn is_noted(relationship: &Json) -> bool {
    let noted = relationship.get("metadata").and_then(Json::as_object);
    noted.is_some_and(|noted| !noted.is_empty())
}

fn erase_note(records: &mut dyn Write, project: &ProjectId, key: &[u8]) -> Result<()> {
    let known = Ledger::new(&*records, project).entry(EntryKind::Relationship, key)?;
    let Some(known) = known.filter(is_noted) else {
        return Ok(());
    };
    let known = RelationshipRecord::from_json(&known);
    let known = required(known, || "a relationship".to_owned())?;
    let left = RelationshipRecord { metadata: Json::Object(Object::new()), ..known };
    set(records, project, EntryKind::Relationship, key, Some(&left.to_json()))
}
