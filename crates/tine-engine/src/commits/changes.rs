//! Differences between two sides: fields, conflicts, words.

use std::collections::{BTreeMap, BTreeSet};

use tine_core::EntityId;
use tine_core::commit::{FacetTerm, FactState, FieldState};

use crate::{FieldChange, SeenDiff};

/// Returns all fields that differ between two states.
pub(super) fn field_changes(from: &FactState, to: &FactState) -> Vec<FieldChange> {
    let is_set =
        |value: &&FieldState| !matches!(value, FieldState::Value(value) if value.json.is_none());
    let mut found = Vec::new();
    let entities: BTreeSet<EntityId> = from.facts.keys().chain(to.facts.keys()).copied().collect();
    for entity in entities {
        let sides = [from.facts.get(&entity), to.facts.get(&entity)];
        let Some(about) = sides[1].or(sides[0]) else {
            continue;
        };
        let fields: BTreeSet<&String> =
            sides.iter().flatten().flat_map(|fact| fact.fields.keys()).collect();
        for field in fields {
            let [was, is] = sides.map(|fact| fact?.fields.get(field).filter(is_set));
            if was != is {
                found.push(FieldChange {
                    entity,
                    entity_type: about.entity_type.clone(),
                    name: about.name.clone(),
                    field: field.clone(),
                    from: was.cloned(),
                    to: is.cloned(),
                });
            }
        }
    }
    found
}

/// Compares the names, keywords or topics of two sides.
pub(super) fn seen_diff(
    from: &BTreeMap<String, FacetTerm>,
    to: &BTreeMap<String, FacetTerm>,
) -> SeenDiff {
    let only = |these: &BTreeMap<String, FacetTerm>, others: &BTreeMap<String, FacetTerm>| {
        let found = these.iter().filter(|(key, _)| !others.contains_key(*key));
        found.map(|(_, seen)| seen.clone()).collect()
    };
    let kept = to.iter().filter(|(key, _)| from.contains_key(*key));
    SeenDiff {
        gained: only(to, from),
        lost: only(from, to),
        kept: kept.map(|(_, seen)| seen.clone()).collect(),
    }
}
