//! Three-way merges of facts, field by field.
//!
//! A field is a sum of terms: the values of the sides minus the values of their bases. Merging adds
//! the sums and cancels equal terms. If one side remains, or all remaining sides are equal, the
//! field has that value; otherwise it is a conflict until a user resolves it. The order of the
//! sides only affects the order in which a conflict lists them.

use std::collections::BTreeSet;

use crate::json::Json;

use super::state::{Fact, FactState, FieldConflict, FieldState, FieldValue};

/// Merges two states that share a common base.
pub fn merge(base: &FactState, ours: &FactState, theirs: &FactState) -> FactState {
    let none = Fact::default();
    let mut merged = FactState::default();
    let entities: BTreeSet<_> =
        [base, ours, theirs].iter().flat_map(|state| state.facts.keys()).copied().collect();
    for entity in entities {
        let [base, ours, theirs] =
            [base, ours, theirs].map(|state| state.facts.get(&entity).unwrap_or(&none));
        let about = about(base, ours, theirs);
        let names: BTreeSet<_> =
            [base, ours, theirs].iter().flat_map(|fact| fact.fields.keys()).collect();
        for name in names {
            let [base, ours, theirs] = [base, ours, theirs].map(|fact| fact.fields.get(name));
            let set = about.sets.contains(name);
            merged.set(entity, &about, name, field(set, base, ours, theirs));
        }
    }
    merged
}

/// Returns a single merge base for histories with several: the bases merged with each other, with
/// the first base deciding where they conflict. Sides that changed such a field differently still
/// conflict.
pub fn merge_base_of(bases: &[FactState]) -> FactState {
    let Some((first, rest)) = bases.split_first() else {
        return FactState::default();
    };
    let mut base = first.clone();
    for other in rest {
        let mut merged = merge(&FactState::default(), &base, other);
        let open: Vec<_> = merged
            .conflicts()
            .map(|(id, fact, name, _)| (id, fact.clone(), name.to_owned()))
            .collect();
        for (entity, about, name) in open {
            let state = base.field(entity, &name).cloned();
            merged.set(entity, &about, &name, state);
        }
        base = merged;
    }
    base
}

/// Merges the type, name and set fields of an entity.
fn about(base: &Fact, ours: &Fact, theirs: &Fact) -> Fact {
    let entity_type = [ours, theirs, base].map(|fact| &fact.entity_type);
    let entity_type = entity_type.into_iter().find(|name| !name.is_empty());
    let name = match (&ours.name, &theirs.name) {
        (ours, theirs) if ours == theirs || *theirs == base.name => ours,
        (ours, theirs) if *ours == base.name => theirs,
        (ours, theirs) => ours.min(theirs),
    };
    Fact {
        entity_type: entity_type.cloned().unwrap_or_default(),
        name: name.clone().or_else(|| base.name.clone()),
        sets: [base, ours, theirs].iter().flat_map(|fact| &fact.sets).cloned().collect(),
        ..Fact::default()
    }
}

fn field(
    set: bool,
    base: Option<&FieldState>,
    ours: Option<&FieldState>,
    theirs: Option<&FieldState>,
) -> Option<FieldState> {
    if set && let Some(merged) = merge_sets([base, ours, theirs]) {
        return merged.map(FieldState::Value);
    }
    let ((base_sides, base_bases), (our_sides, our_bases), (their_sides, their_bases)) =
        (terms(base), terms(ours), terms(theirs));
    let mut sides = [our_sides, their_sides, base_bases].concat();
    let mut bases = [base_sides, our_bases, their_bases].concat();
    bases.retain(|base| match sides.iter().rposition(|side| side == base) {
        Some(equal) => {
            sides.remove(equal);
            false
        }
        None => true,
    });
    let first = sides.first().cloned().unwrap_or(FieldValue::ABSENT);
    if sides.iter().all(|side| *side == first) {
        return first.json.is_some().then_some(FieldState::Value(first));
    }
    Some(FieldState::Conflict(FieldConflict { sides, bases }))
}

/// Returns a field's positive terms (sides) and negative terms (bases).
fn terms(state: Option<&FieldState>) -> (Vec<FieldValue>, Vec<FieldValue>) {
    match state {
        None => (vec![FieldValue::ABSENT], Vec::new()),
        Some(FieldState::Value(value)) => (vec![value.clone()], Vec::new()),
        Some(FieldState::Conflict(conflict)) => (conflict.sides.clone(), conflict.bases.clone()),
    }
}

/// Merges sets member by member: a member that one side added is kept, one that a side removed is
/// dropped. Returns `None` when one of the values is not a set.
#[expect(clippy::option_option, reason = "no set at all, or one without members")]
fn merge_sets(sides: [Option<&FieldState>; 3]) -> Option<Option<FieldValue>> {
    let mut sets = Vec::with_capacity(3);
    for side in sides {
        sets.push(match side {
            None | Some(FieldState::Value(FieldValue { json: None, .. })) => Vec::new(),
            Some(FieldState::Value(FieldValue { json: Some(Json::Array(members)), .. })) => {
                members.clone()
            }
            _ => return None,
        });
    }
    let [base, ours, theirs] = sets.try_into().ok()?;
    let mut kept: Vec<Json> = ours
        .iter()
        .filter(|member| theirs.contains(member) || !base.contains(member))
        .chain(theirs.iter().filter(|member| !ours.contains(member) && !base.contains(member)))
        .cloned()
        .collect();
    kept.sort_by_cached_key(Json::to_canonical);
    let from: BTreeSet<_> = sides[1..]
        .iter()
        .filter_map(|side| match side {
            Some(FieldState::Value(value)) => Some(value.from.clone()),
            _ => None,
        })
        .flatten()
        .collect();
    let from = from.into_iter().collect();
    Some((!kept.is_empty()).then_some(FieldValue { json: Some(Json::Array(kept)), from }))
}
