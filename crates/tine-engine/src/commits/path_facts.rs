//! Facts on a path: what the observations on the path to a turn say.

use std::collections::{BTreeMap, BTreeSet};

use tine_core::commit::{Fact, FactState, FieldState, FieldValue};
use tine_core::facts::reduce::{ObservationOrder, reduce, schema_version};
use tine_core::facts::schema::Strategy;
use tine_core::{EntityId, ObservationId, TurnId};
use tine_store::{IndexKey, IndexQuery, TurnLoc};

use super::window::PathRange;
use crate::Result;
use crate::knowledge::{KnowledgeReader, name};
use crate::tree::shown::Tree;

/// What the observations on a path say.
pub(super) struct PathFacts {
    pub state: FactState,
    /// How deep the turn of each of these observations lies.
    depths: BTreeMap<ObservationId, u32>,
}

impl PathFacts {
    /// Returns the facts at a turn. Corrections that name no turn hold on every path.
    pub(super) fn at(
        knowledge: &KnowledgeReader<'_>,
        tree: &Tree<'_>,
        end: Option<TurnLoc>,
    ) -> Result<PathFacts> {
        let mut path_facts = PathFacts { state: FactState::default(), depths: BTreeMap::new() };
        let Some(end) = end else {
            return Ok(path_facts);
        };
        let path = turns_of(tree, &PathRange::to(tree, end)?)?;
        let mut entities = BTreeSet::new();
        for (turn, id) in observed(knowledge, &path)? {
            path_facts.depths.insert(id, path.get(&turn).copied().unwrap_or(0));
            entities.insert(speaks_of(knowledge, id)?);
        }
        for entity in entities.into_iter().flatten() {
            path_facts.add_entity(knowledge, entity, &path)?;
        }
        Ok(path_facts)
    }

    fn add_entity(
        &mut self,
        knowledge: &KnowledgeReader<'_>,
        id: EntityId,
        path: &BTreeMap<TurnId, u32>,
    ) -> Result<()> {
        let entity = knowledge.canonical_entity(knowledge.require_entity(id)?)?;
        if entity.slot.is_some() || entity.conversation.is_some() || entity.deleted_at.is_some() {
            return Ok(());
        }
        let mut observations = knowledge.observations(entity.id)?;
        observations.retain(|one| match &one.turn {
            Some(turn) => path.contains_key(turn),
            None => one.retracts.is_some() || one.correction,
        });
        let schema = knowledge.schema(&entity.entity_type, schema_version(&observations))?;
        let snapshot = reduce(&schema, ObservationOrder::ObservedTime, &observations);
        let mut fact = Fact {
            entity_type: entity.entity_type.clone(),
            name: name(&schema, &snapshot.fields),
            ..Fact::default()
        };
        for (field, json) in snapshot.fields {
            let from = snapshot.provenance.get(&field).cloned().unwrap_or_default();
            if schema.strategy(&field) == Strategy::MergedSet {
                fact.sets.insert(field.clone());
            }
            fact.fields.insert(field, FieldState::Value(FieldValue { json: Some(json), from }));
        }
        if !fact.fields.is_empty() {
            self.state.facts.insert(entity.id, fact);
        }
        Ok(())
    }

    /// Returns whether an observation was made by a turn deeper than this.
    pub(super) fn is_below(&self, observation: &ObservationId, depth: u32) -> bool {
        self.depths.get(observation).is_some_and(|at| *at > depth)
    }
}

/// Index keys that are read at once.
const AT_ONCE: usize = 128;

/// Observations that name one of these turns. Only turns that have some cost anything: what lies
/// between two of them belongs to other conversations and is passed over.
pub(super) fn observed<T>(
    knowledge: &KnowledgeReader<'_>,
    turns: &BTreeMap<TurnId, T>,
) -> Result<Vec<(TurnId, ObservationId)>> {
    let mut found = Vec::new();
    let Some((last, _)) = turns.last_key_value() else {
        return Ok(found);
    };
    let from = |turn: &TurnId| IndexQuery::about_turns(turn, last);
    let mut next = turns.first_key_value().map(|(first, _)| from(first));
    while let Some(query) = next.take() {
        let page = knowledge.records.index_keys(knowledge.project, &query, AT_ONCE)?;
        for key in &page {
            let IndexKey::ObservationOfTurn { turn, observation } = key else { continue };
            if turns.contains_key(turn) {
                found.push((*turn, *observation));
            }
        }
        if let Some(key @ IndexKey::ObservationOfTurn { turn, .. }) = page.last()
            && page.len() == AT_ONCE
        {
            next = match turns.contains_key(turn) {
                true => Some(query.after(key)),
                false => turns.range(*turn..).next().map(|(turn, _)| from(turn)),
            };
        }
    }
    Ok(found)
}

/// Returns the entity that an observation describes now.
fn speaks_of(knowledge: &KnowledgeReader<'_>, id: ObservationId) -> Result<Option<EntityId>> {
    let to = knowledge.moved(id)?.map_or(id.entity, |moved| moved.to);
    Ok(knowledge.entity(to)?.map(|entity| entity.id))
}

/// Returns the shown turns of a range with their depths, and the wholes of halves.
fn turns_of(tree: &Tree<'_>, range: &PathRange) -> Result<BTreeMap<TurnId, u32>> {
    let mut turns = Vec::new();
    for run in &range.runs {
        tree.records().turns(run.segment, run.from, run.to, &mut |turn| {
            turns.push((turn.loc, turn.id, turn.depth, turn.origin.part_of.is_some()));
            Ok(true)
        })?;
    }
    let mut found = BTreeMap::new();
    for (loc, id, depth, is_half) in turns {
        if !tree.is_shown(loc)? {
            continue;
        }
        let mut half = loc;
        while is_half && let Some(split) = tree.split_with_half(half)? {
            found.insert(tree.turn(split.whole)?.id, depth);
            half = split.whole;
        }
        found.insert(id, depth);
    }
    Ok(found)
}
