//! Reduces the observations of an entity to its current fields.
//!
//! A pure function: any order of the same observations gives the same bytes. Observations are
//! sorted first: versions of a slot by sequence, others by observed time and then by sequence, with
//! the id as a tie-breaker, which is only needed after a merge.

use std::collections::{BTreeMap, BTreeSet};

use crate::json::{Json, Object};
use crate::{EntityId, ObservationId, Timestamp};

use super::observation::Observation;
use super::schema::{Schema, Strategy};

/// How observations are ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObservationOrder {
    /// By sequence alone: the last write to a slot wins, whatever its observed time.
    Sequence,
    /// By observed time, then by sequence.
    ObservedTime,
}

/// The current fields of an entity, with the observations they come from.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Snapshot {
    /// The fields that have a value.
    pub fields: Object,
    /// The observations that each field comes from: one, or for a set all that contributed a
    /// member.
    pub provenance: BTreeMap<String, Vec<ObservationId>>,
    /// The number of observations used: neither retracted nor retractions.
    pub observations: usize,
    /// The latest observed time among them.
    pub last_observed_at: Option<Timestamp>,
    /// The version of the schema that was used.
    pub schema_version: u32,
}

/// Returns the schema version to reduce these observations with: the highest that any of them has.
pub fn schema_version(observations: &[Observation]) -> u32 {
    observations.iter().map(|observation| observation.schema_version).max().unwrap_or(0)
}

/// Reduces observations to a snapshot, under the schema of [`schema_version`].
pub fn reduce(schema: &Schema, order: ObservationOrder, observations: &[Observation]) -> Snapshot {
    let mut active = unretracted(observations);
    active.sort_by_key(|one| sort_key(order, one));
    let mut snapshot = Snapshot {
        observations: active.len(),
        last_observed_at: active.iter().map(|one| one.observed_at).max(),
        schema_version: schema.version,
        ..Snapshot::default()
    };
    let names: BTreeSet<&str> = active.iter().flat_map(|one| one.fields.keys()).collect();
    for name in names {
        let observed: Vec<_> =
            active.iter().filter_map(|one| Some((*one, one.fields.get(name)?))).collect();
        let Some((value, from)) = field(schema.strategy(name), &observed) else {
            continue;
        };
        snapshot.fields.insert(name, value);
        snapshot.provenance.insert(name.to_owned(), from);
    }
    snapshot
}

fn sort_key(order: ObservationOrder, one: &Observation) -> (Option<Timestamp>, u64, EntityId) {
    let time = (order == ObservationOrder::ObservedTime).then_some(one.observed_at);
    (time, one.id.seq, one.id.entity)
}

/// Returns the observations that are not retracted. A retraction can itself be retracted.
pub fn unretracted(observations: &[Observation]) -> Vec<&Observation> {
    let mut by_seq: Vec<_> = observations.iter().collect();
    by_seq.sort_by_key(|one| (one.id.entity, one.id.seq));
    let mut retracted = BTreeSet::new();
    // An observation only retracts earlier ones, so one pass from the end settles each.
    for one in by_seq.iter().rev() {
        if let Some(seq) = one.retracts
            && seq < one.id.seq
            && !retracted.contains(&one.id)
        {
            retracted.insert(ObservationId { seq, ..one.id });
        }
    }
    by_seq.retain(|one| one.retracts.is_none() && !retracted.contains(&one.id));
    by_seq
}

/// An observation and its value of the field being reduced.
type FieldObservation<'o> = (&'o Observation, &'o Json);

fn field(
    strategy: Strategy,
    observed: &[FieldObservation<'_>],
) -> Option<(Json, Vec<ObservationId>)> {
    let last_correction = observed.iter().rev().find(|(one, _)| one.correction);
    let winner = match (last_correction, strategy) {
        (Some(correction), _) => *correction,
        (None, Strategy::MergedSet) => return merged(observed),
        (None, Strategy::LastWrite) => *observed.last()?,
        (None, Strategy::HighestPriority) => {
            *observed.iter().max_by_key(|(one, _)| one.priority)?
        }
        (None, Strategy::MostSpecific) => {
            *observed.iter().max_by_key(|(one, _)| one.specificity)?
        }
    };
    let (one, value) = winner;
    (!value.is_null()).then(|| (value.clone(), vec![one.id]))
}

/// Merges all values into a set, in canonical order. `null` clears the values before it.
fn merged(observed: &[FieldObservation<'_>]) -> Option<(Json, Vec<ObservationId>)> {
    let cleared =
        observed.iter().rposition(|(_, value)| value.is_null()).map_or(0, |last| last + 1);
    let mut values: BTreeMap<String, Json> = BTreeMap::new();
    let mut from = BTreeSet::new();
    for (one, value) in &observed[cleared..] {
        let members = match value {
            Json::Array(members) => members.as_slice(),
            single => std::slice::from_ref(*single),
        };
        for member in members.iter().filter(|member| !member.is_null()) {
            values.entry(member.to_canonical()).or_insert_with(|| {
                from.insert(one.id);
                (*member).clone()
            });
        }
    }
    if values.is_empty() {
        return None;
    }
    Some((Json::Array(values.into_values().collect()), from.into_iter().collect()))
}
