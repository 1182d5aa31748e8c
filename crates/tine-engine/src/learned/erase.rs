//! Erasure of what was learned from what is erased: bytes, observations, raw answers of models,
//! and the names that nobody else has given. Digests stay.

use std::collections::BTreeSet;

use tine_core::json::{Json, Object};
use tine_core::{ConversationId, Digest, EntityId, ObservationId, SourceId, TurnId};
use tine_store::{EntryKind, required};

use super::ledger::{Ledger, set};
use super::record::{EntityRecord, SourceRecord};
use super::runs::RunRecord;
use super::{RunStatus, keys};
use crate::Result;
use crate::change::{Change, optional};
use crate::log::Mutation;
use crate::undo::detail;

/// What goes of what was learned.
#[derive(Clone, Debug, Default)]
pub(crate) struct Plan {
    pub sources: BTreeSet<SourceId>,
    pub observations: BTreeSet<ObservationId>,
}

impl Plan {
    /// What was learned from turns, of all sources that their conversation's log tells of.
    pub(crate) fn of_turns(
        ledger: &Ledger<'_>,
        turns: &BTreeSet<TurnId>,
        told: &BTreeSet<SourceId>,
    ) -> Result<Plan> {
        let mut plan = Plan::default();
        for turn in turns {
            for key in ledger.under(EntryKind::ObservationOfTurn, turn.as_bytes())? {
                plan.observations.extend(keys::observation_at_end(&key));
            }
        }
        let of_runs: Vec<SourceId> = plan
            .observations
            .iter()
            .map(|id| Ok(ledger.observation(*id)?.and_then(|one| one.source)))
            .collect::<Result<Vec<_>>>()?
            .into_iter()
            .flatten()
            .collect();
        for id in told.iter().chain(&of_runs) {
            let source = ledger.source(*id)?;
            if source.is_some_and(|source| source.turn.is_some_and(|turn| turns.contains(&turn))) {
                plan.sources.insert(*id);
            }
        }
        Ok(plan)
    }

    /// What was learned from a source.
    pub(crate) fn of_source(ledger: &Ledger<'_>, id: SourceId) -> Result<Plan> {
        let mut plan = Plan { sources: BTreeSet::from([id]), ..Plan::default() };
        for key in ledger.under(EntryKind::RunOfSource, id.as_bytes())? {
            if let Some(run) = keys::run_at_end(&key)
                && let Some(run) = ledger.run(run)?
            {
                plan.observations.extend(run.view.observations);
            }
        }
        Ok(plan)
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

    /// Erases it all. Entries of the project's own log that repeat a name go with it.
    pub(crate) fn erase(&self, mutation: &mut Mutation<'_>) -> Result<()> {
        for id in &self.observations {
            erase_observation(mutation, *id)?;
        }
        for id in &self.sources {
            erase_source(mutation, *id)?;
        }
        let entities: BTreeSet<EntityId> = self.observations.iter().map(|id| id.entity).collect();
        let mut nameless = BTreeSet::new();
        for id in entities {
            if forget_name(mutation, id)? {
                nameless.insert(id);
            }
        }
        forget_in_project_log(mutation, &nameless)
    }
}

fn erase_observation(mutation: &mut Mutation<'_>, id: ObservationId) -> Result<()> {
    let project = mutation.call.project.clone();
    let key = keys::observation(id);
    let Some(one) = mutation.ledger().observation(id)? else {
        return Ok(());
    };
    let text = mutation.reader().entry(&project, EntryKind::Observation, &key)?;
    let text = required(text, || format!("observation {id}"))?;
    // What it retracts stays retracted; a version of a slot holds nothing of its own.
    if one.retracts.is_some() || (one.fields.is_empty() && one.turn.is_some()) {
        return Ok(());
    }
    for (field, value) in one.fields.iter() {
        if let Some(at) = value.as_str().and_then(tine_core::facts::schema::moment) {
            let key = keys::dated(at, id, field);
            mutation.records.delete_entry(&project, EntryKind::Dated, &key)?;
        }
    }
    let left = tine_core::facts::observation::purged_form(&Digest::of(text.as_bytes()));
    mutation.records.put_entry(&project, EntryKind::Observation, &key, &left.to_canonical())?;
    Ok(())
}

fn erase_source(mutation: &mut Mutation<'_>, id: SourceId) -> Result<()> {
    let project = mutation.call.project.clone();
    let Some(source) = mutation.ledger().source(id)? else {
        return Ok(());
    };
    mutation.records.delete_pieces(&project, &id)?;
    let left = SourceRecord { purged: true, original_filename: None, ..source };
    set(mutation.records, &project, EntryKind::Source, id.as_bytes(), Some(&left.to_json()))?;
    for key in mutation.ledger().under(EntryKind::RunOfSource, id.as_bytes())? {
        let run = required(keys::run_at_end(&key), || format!("a run over {id}"))?;
        if let Some(run) = mutation.ledger().run(run)? {
            erase_run(mutation, run)?;
        }
    }
    Ok(())
}

/// A run without what was said in it. One that had not ended will not.
fn erase_run(mutation: &mut Mutation<'_>, mut run: RunRecord) -> Result<()> {
    let view = &mut run.view;
    view.detail.remove("request");
    view.detail.remove("response");
    view.detail.insert("purged", true.into());
    view.notes.clear();
    if view.status.is_open() {
        view.status = RunStatus::Failed;
        view.finished_at = Some(mutation.now);
        view.error = Some("its source was purged".to_owned());
    }
    run.write(mutation.records, &mutation.call.project)
}

/// Takes an entity's name away when nothing says it any more; answers whether it did.
fn forget_name(mutation: &mut Mutation<'_>, id: EntityId) -> Result<bool> {
    let ledger = mutation.ledger();
    let Some(entity) = ledger.entity(id)? else {
        return Ok(false);
    };
    let named = ledger.own_observations(id, 0, super::ledger::OBSERVATIONS_READ)?;
    if entity.key.is_null() || entity.conversation.is_some() || !named.is_empty() {
        return Ok(false);
    }
    let left = EntityRecord { key: Json::Null, ..entity };
    let project = mutation.call.project.clone();
    set(mutation.records, &project, EntryKind::Entity, id.as_bytes(), Some(&left.to_json()))?;
    Ok(true)
}

fn forget_in_project_log(mutation: &mut Mutation<'_>, nameless: &BTreeSet<EntityId>) -> Result<()> {
    if nameless.is_empty() {
        return Ok(());
    }
    let log = ConversationId::from_stored(crate::log::PROJECT_LOG);
    let Some(log) = mutation.reader().conversation(&mutation.call.project, &log)? else {
        return Ok(());
    };
    let mut telling = Vec::new();
    mutation.reader().operations(log.key, 1, u64::MAX, &mut |operation| {
        let tells = detail(&operation).is_ok_and(|known| {
            known.changes.iter().any(|change| match change {
                Change::Entry { kind: EntryKind::Entity, key, .. } => {
                    keys::entity_at_end(key).is_some_and(|id| nameless.contains(&id))
                }
                _ => false,
            })
        });
        if tells {
            telling.push(operation.seq);
        }
        Ok(true)
    })?;
    for seq in telling {
        mutation.records.purge_operation(log.key, seq)?;
    }
    Ok(())
}

/// The source that an entry of a log tells of.
pub(crate) fn told_source(facts: &Object) -> Option<SourceId> {
    optional(&Json::Object(facts.clone()), "source_id").flatten()
}
