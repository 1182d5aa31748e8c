//! What is known at a turn: what the observations say whose turns lie on its path.

use std::collections::{BTreeMap, BTreeSet};

use tine_core::commit::{Fact, Held, State, Value};
use tine_core::facts::reduce::{Order, reduce, schema_version};
use tine_core::facts::schema::Strategy;
use tine_core::{EntityId, ObservationId, TurnId};
use tine_store::{EntryKind, KeyRange, TurnLoc};

use super::window::Stretch;
use crate::Result;
use crate::knowledge::{Ledger, keys, name};
use crate::tree::shown::Tree;

/// What the observations on a path say.
pub(super) struct Known {
    pub state: State,
    /// How deep the turn of each of these observations lies.
    depths: BTreeMap<ObservationId, u32>,
}

impl Known {
    /// What is known at a turn. Corrections that name no turn hold on every path.
    pub(super) fn at(ledger: &Ledger<'_>, tree: &Tree<'_>, end: Option<TurnLoc>) -> Result<Known> {
        let mut known = Known { state: State::default(), depths: BTreeMap::new() };
        let Some(end) = end else {
            return Ok(known);
        };
        let path = turns_of(tree, &Stretch::to(tree, end)?)?;
        let mut entities = BTreeSet::new();
        for (turn, id) in observed(ledger, &path)? {
            known.depths.insert(id, path.get(&turn).copied().unwrap_or(0));
            entities.insert(speaks_of(ledger, id)?);
        }
        for entity in entities.into_iter().flatten() {
            known.learn(ledger, entity, &path)?;
        }
        Ok(known)
    }

    fn learn(
        &mut self,
        ledger: &Ledger<'_>,
        id: EntityId,
        path: &BTreeMap<TurnId, u32>,
    ) -> Result<()> {
        let entity = ledger.standing_for(ledger.known_entity(id)?)?;
        if entity.slot.is_some() || entity.conversation.is_some() || entity.deleted_at.is_some() {
            return Ok(());
        }
        let mut said = ledger.observations(entity.id)?;
        said.retain(|one| match &one.turn {
            Some(turn) => path.contains_key(turn),
            None => one.retracts.is_some() || one.correction,
        });
        let schema = ledger.schema(&entity.entity_type, schema_version(&said))?;
        let snapshot = reduce(&schema, Order::ObservedTime, &said);
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
            fact.fields.insert(field, Held::Value(Value { json: Some(json), from }));
        }
        if !fact.fields.is_empty() {
            self.state.facts.insert(entity.id, fact);
        }
        Ok(())
    }

    /// Whether an observation was made by a turn deeper than this.
    pub(super) fn is_below(&self, observation: &ObservationId, depth: u32) -> bool {
        self.depths.get(observation).is_some_and(|at| *at > depth)
    }
}

/// Look-ups that are read at once.
const AT_ONCE: usize = 128;

/// Observations that name one of these turns. Only turns that have some cost anything: what lies
/// between two of them belongs to other conversations and is passed over.
pub(super) fn observed<T>(
    ledger: &Ledger<'_>,
    turns: &BTreeMap<TurnId, T>,
) -> Result<Vec<(TurnId, ObservationId)>> {
    let mut found = Vec::new();
    let Some((last, _)) = turns.last_key_value() else {
        return Ok(found);
    };
    let end = KeyRange::prefix(last.as_bytes()).to;
    let mut next = turns.first_key_value().map(|(first, _)| first.as_bytes().to_vec());
    while let Some(from) = next {
        let range = KeyRange { from, to: end.clone(), backwards: false };
        let kind = EntryKind::ObservationOfTurn;
        let page = ledger.records.entries(ledger.project, kind, &range, AT_ONCE)?;
        let mut at = None;
        for entry in &page {
            let turn = entry.key.first_chunk::<16>().copied().map(TurnId::from_bytes);
            at = turn;
            if let (Some(turn), Some(id)) = (turn, keys::observation_at_end(&entry.key))
                && turns.contains_key(&turn)
            {
                found.push((turn, id));
            }
        }
        next = match (at, page.last()) {
            (Some(turn), Some(last)) if page.len() == AT_ONCE => {
                if turns.contains_key(&turn) {
                    Some([last.key.as_slice(), &[0]].concat())
                } else {
                    turns.range(turn..).next().map(|(turn, _)| turn.as_bytes().to_vec())
                }
            }
            _ => None,
        };
    }
    Ok(found)
}

/// The entity that an observation speaks of now.
fn speaks_of(ledger: &Ledger<'_>, id: ObservationId) -> Result<Option<EntityId>> {
    let moved = ledger.records.entry(ledger.project, EntryKind::Moved, &keys::observation(id))?;
    let moved = moved.as_deref().and_then(crate::knowledge::parse);
    let to = moved.and_then(|moved| crate::log::change::parsed(&moved, "to")).unwrap_or(id.entity);
    Ok(ledger.entity(to)?.map(|entity| entity.id))
}

/// The turns of a stretch that are shown, with their depths; of halves also the whole.
fn turns_of(tree: &Tree<'_>, stretch: &Stretch) -> Result<BTreeMap<TurnId, u32>> {
    let mut line = Vec::new();
    for piece in &stretch.pieces {
        tree.records().turns(piece.segment, piece.from, piece.to, &mut |turn| {
            line.push((turn.loc, turn.id, turn.depth, turn.origin.part_of.is_some()));
            Ok(true)
        })?;
    }
    let mut found = BTreeMap::new();
    for (loc, id, depth, is_half) in line {
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
