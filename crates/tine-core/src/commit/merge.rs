//! Three-way merges of what is known, field by field.
//!
//! A field is a sum: what the sides say, less what they changed. Merging adds the sums and lets
//! equal terms cancel; one side left over decides the field, equal sides collapse, and anything
//! else is a conflict that stays until somebody decides it. Nothing depends on the order of the
//! sides but the order in which a conflict lists them.

use std::collections::BTreeSet;

use crate::json::Json;

use super::state::{Conflict, Fact, Held, State, Value};

/// What is known after two states that grew out of a common one come together.
pub fn merge(base: &State, ours: &State, theirs: &State) -> State {
    let none = Fact::default();
    let mut merged = State::default();
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

/// One state in place of several that are all the last common ones: what they agree on after
/// being merged upon one another. Where they do not, the first decides; sides that changed it
/// differently still conflict.
pub fn merge_base_of(bases: &[State]) -> State {
    let Some((first, rest)) = bases.split_first() else {
        return State::default();
    };
    let mut base = first.clone();
    for other in rest {
        let mut merged = merge(&State::default(), &base, other);
        let open: Vec<_> = merged
            .conflicts()
            .map(|(id, fact, name, _)| (id, fact.clone(), name.to_owned()))
            .collect();
        for (entity, about, name) in open {
            let held = base.held(entity, &name).cloned();
            merged.set(entity, &about, &name, held);
        }
        base = merged;
    }
    base
}

/// Type, name and sets of an entity, as the sides have them.
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
    base: Option<&Held>,
    ours: Option<&Held>,
    theirs: Option<&Held>,
) -> Option<Held> {
    if set && let Some(merged) = members([base, ours, theirs]) {
        return merged.map(Held::Value);
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
    let first = sides.first().cloned().unwrap_or(Value::ABSENT);
    if sides.iter().all(|side| *side == first) {
        return first.json.is_some().then_some(Held::Value(first));
    }
    Some(Held::Conflict(Conflict { sides, bases }))
}

/// What is said of a field, and what is taken from it.
fn terms(held: Option<&Held>) -> (Vec<Value>, Vec<Value>) {
    match held {
        None => (vec![Value::ABSENT], Vec::new()),
        Some(Held::Value(value)) => (vec![value.clone()], Vec::new()),
        Some(Held::Conflict(conflict)) => (conflict.sides.clone(), conflict.bases.clone()),
    }
}

/// Sets, member by member: what one side added is there, what one side removed is not. `None`
/// when one of them is no set.
#[expect(clippy::option_option, reason = "no set at all, or one without members")]
fn members(sides: [Option<&Held>; 3]) -> Option<Option<Value>> {
    let mut sets = Vec::with_capacity(3);
    for side in sides {
        sets.push(match side {
            None | Some(Held::Value(Value { json: None, .. })) => Vec::new(),
            Some(Held::Value(Value { json: Some(Json::Array(members)), .. })) => members.clone(),
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
            Some(Held::Value(value)) => Some(value.from.clone()),
            _ => None,
        })
        .flatten()
        .collect();
    let from = from.into_iter().collect();
    Some((!kept.is_empty()).then_some(Value { json: Some(Json::Array(kept)), from }))
}
