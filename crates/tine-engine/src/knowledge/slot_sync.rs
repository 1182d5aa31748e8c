//! Synchronizes slots with the tree: a version that is deleted, or whose making is undone, is
//! retracted; one that comes back stands again.

use std::collections::{BTreeMap, BTreeSet};

use tine_core::facts::{Observation, ObservationOrigin};
use tine_core::{EntityId, ObservationId, TurnId};
use tine_store::TurnLoc;

use super::reader::OBSERVATIONS_READ;
use crate::Result;
use crate::log::mutation::Mutation;
use crate::tree::shown::SegmentRun;

/// Why a version was retracted.
const HIDDEN: &str = "its turn is not shown";
const UNDONE: &str = "its store is undone";
/// Why a retraction was.
const BACK: &str = "it is back";

/// After turns were hidden or shown: every slot whose version is among them.
pub(crate) fn after_hiding(mutation: &mut Mutation<'_>, runs: &[SegmentRun]) -> Result<()> {
    if !has_slots(mutation)? {
        return Ok(());
    }
    let mut retractions = Retractions::default();
    for (turn, shown) in versions(mutation, runs)? {
        for one in mutation.knowledge().about_turn(&turn)? {
            if one.origin == ObservationOrigin::Turn {
                retractions.set_in_effect(mutation, &one, shown, HIDDEN)?;
            }
        }
    }
    Ok(())
}

/// Returns the versions that turns are, or are halves of, each once: it stands as long as anything
/// of it is shown.
fn versions(mutation: &Mutation<'_>, runs: &[SegmentRun]) -> Result<Vec<(TurnId, bool)>> {
    let tree = mutation.tree();
    let mut seen = BTreeSet::new();
    let mut found = Vec::new();
    for run in runs {
        for index in run.from..=run.to {
            let mut part = Some(TurnLoc { segment: run.segment, index });
            while let Some(loc) = part.filter(|loc| seen.insert(*loc)) {
                found.push((tree.turn(loc)?.id, tree.is_shown(loc)?));
                part = tree.split_with_half(loc)?.map(|split| split.whole);
            }
        }
    }
    Ok(found)
}

/// After a store was undone or redone: the very observations that it made.
pub(crate) fn after_undo(
    mutation: &mut Mutation<'_>,
    made: impl Iterator<Item = ObservationId>,
    undone: bool,
) -> Result<()> {
    let mut retractions = Retractions::default();
    for id in made {
        let one = mutation.knowledge().observation(id)?;
        if let Some(one) = one.filter(|one| one.retracts.is_none()) {
            retractions.set_in_effect(mutation, &one, !undone, UNDONE)?;
        }
    }
    Ok(())
}

fn has_slots(mutation: &Mutation<'_>) -> Result<bool> {
    let id = &mutation.conversation().id;
    Ok(mutation.knowledge().conversation_entity(id)?.is_some())
}

/// The retractions of entities after the first requested observation, read once.
#[derive(Default)]
struct Retractions {
    of: BTreeMap<EntityId, (u64, Vec<Observation>)>,
}

impl Retractions {
    /// Retracts an observation for a reason, or takes back the retraction that was made for it.
    /// Each reason has a retraction of its own: what is both undone and hidden comes back when
    /// neither holds any more.
    fn set_in_effect(
        &mut self,
        mutation: &mut Mutation<'_>,
        one: &Observation,
        in_effect: bool,
        why: &str,
    ) -> Result<()> {
        let mut gone = BTreeSet::new();
        let mut active = None;
        for retraction in self.retractions_after(mutation, one.id)?.iter().rev() {
            if gone.contains(&retraction.id.seq) {
                continue;
            }
            gone.extend(retraction.retracts);
            let because = retraction.fields.get("because").and_then(tine_core::Json::as_str);
            if retraction.retracts == Some(one.id.seq) && because == Some(why) {
                active = Some(retraction.id.seq);
            }
        }
        match (active, in_effect) {
            (None, false) => mutation.retract(one.id.seq, one, why),
            (Some(seq), true) => mutation.retract(seq, one, BACK),
            _ => Ok(()),
        }
    }

    fn retractions_after(
        &mut self,
        mutation: &Mutation<'_>,
        id: ObservationId,
    ) -> Result<&[Observation]> {
        let (from, cached) = self.of.entry(id.entity).or_insert((u64::MAX, Vec::new()));
        if id.seq < *from {
            let later =
                mutation.knowledge().own_observations(id.entity, id.seq, OBSERVATIONS_READ)?;
            *cached = later.into_iter().filter(|one| one.retracts.is_some()).collect();
            *from = id.seq;
        }
        Ok(cached)
    }
}
