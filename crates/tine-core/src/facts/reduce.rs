//! From observations to what holds now.
//!
//! A pure function: any order of the same observations gives the same bytes. Observations are put
//! into one order first: versions of a slot by sequence, others by observed time and then by
//! sequence; the id decides between equals, which only a merge can bring together.

use std::collections::{BTreeMap, BTreeSet};

use crate::json::{Json, Object};
use crate::{EntityId, ObservationId, Timestamp};

use super::observation::Observation;
use super::schema::{Schema, Strategy};

/// Which of two observations is the later one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// By sequence alone: the last store of a slot counts, whatever time it names.
    Sequence,
    /// By observed time, then by sequence.
    ObservedTime,
}

/// What holds, and by which observations.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Snapshot {
    /// The fields that have a value.
    pub fields: Object,
    /// For each of them the observations that it comes from: one, or for a set all that gave it
    /// a member.
    pub provenance: BTreeMap<String, Vec<ObservationId>>,
    /// Observations that were taken into account: not retracted, no retractions.
    pub observations: usize,
    /// When the last of them was made.
    pub last_observed_at: Option<Timestamp>,
    /// The version of the schema that was used.
    pub schema_version: u32,
}

/// The version that reduces these observations: the highest that any of them names.
pub fn schema_version(observations: &[Observation]) -> u32 {
    observations.iter().map(|observation| observation.schema_version).max().unwrap_or(0)
}

/// What holds after these observations, under the schema of [`schema_version`].
pub fn reduce(schema: &Schema, order: Order, observations: &[Observation]) -> Snapshot {
    let mut standing = standing(observations);
    standing.sort_by_key(|one| sort_key(order, one));
    let mut snapshot = Snapshot {
        observations: standing.len(),
        last_observed_at: standing.iter().map(|one| one.observed_at).max(),
        schema_version: schema.version,
        ..Snapshot::default()
    };
    let names: BTreeSet<&str> = standing.iter().flat_map(|one| one.fields.keys()).collect();
    for name in names {
        let said: Vec<_> =
            standing.iter().filter_map(|one| Some((*one, one.fields.get(name)?))).collect();
        let Some((value, from)) = field(schema.strategy(name), &said) else {
            continue;
        };
        snapshot.fields.insert(name, value);
        snapshot.provenance.insert(name.to_owned(), from);
    }
    snapshot
}

fn sort_key(order: Order, one: &Observation) -> (Option<Timestamp>, u64, EntityId) {
    let time = (order == Order::ObservedTime).then_some(one.observed_at);
    (time, one.id.seq, one.id.entity)
}

/// Observations that nobody has taken back. A retraction can be taken back itself.
pub fn standing(observations: &[Observation]) -> Vec<&Observation> {
    let mut by_seq: Vec<_> = observations.iter().collect();
    by_seq.sort_by_key(|one| (one.id.entity, one.id.seq));
    let mut gone = BTreeSet::new();
    // Only a later one takes back an earlier one, so that from the end each is decided.
    for one in by_seq.iter().rev() {
        if let Some(seq) = one.retracts
            && seq < one.id.seq
            && !gone.contains(&one.id)
        {
            gone.insert(ObservationId { seq, ..one.id });
        }
    }
    by_seq.retain(|one| one.retracts.is_none() && !gone.contains(&one.id));
    by_seq
}

type Said<'o> = (&'o Observation, &'o Json);

fn field(strategy: Strategy, said: &[Said<'_>]) -> Option<(Json, Vec<ObservationId>)> {
    let last_correction = said.iter().rev().find(|(one, _)| one.correction);
    let winner = match (last_correction, strategy) {
        (Some(correction), _) => *correction,
        (None, Strategy::MergedSet) => return merged(said),
        (None, Strategy::LastWrite) => *said.last()?,
        (None, Strategy::HighestPriority) => *said.iter().max_by_key(|(one, _)| one.priority)?,
        (None, Strategy::MostSpecific) => *said.iter().max_by_key(|(one, _)| one.specificity)?,
    };
    let (one, value) = winner;
    (!value.is_null()).then(|| (value.clone(), vec![one.id]))
}

/// All values, each once, in canonical order. `null` clears what came before it.
fn merged(said: &[Said<'_>]) -> Option<(Json, Vec<ObservationId>)> {
    let cleared = said.iter().rposition(|(_, value)| value.is_null()).map_or(0, |last| last + 1);
    let mut values: BTreeMap<String, Json> = BTreeMap::new();
    let mut from = BTreeSet::new();
    for (one, value) in &said[cleared..] {
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
