//! Keeps slots in step with the tree: a version that is deleted, or whose making is undone, is
//! retracted; one that comes back stands again.

use std::collections::BTreeSet;

use tine_core::facts::{Observation, Origin};
use tine_core::{EntityId, ObservationId};
use tine_store::TurnLoc;

use crate::Result;
use crate::log::Mutation;
use crate::tree::Piece;

/// Why a version was retracted.
const HIDDEN: &str = "its turn is not shown";
const UNDONE: &str = "its store is undone";
/// Why a retraction was.
const BACK: &str = "it is back";

/// After turns were hidden or shown: every slot whose version is among them.
pub(crate) fn after_hiding(mutation: &mut Mutation<'_>, runs: &[Piece]) -> Result<()> {
    if !has_slots(mutation)? {
        return Ok(());
    }
    for run in runs {
        for index in run.from..=run.to {
            let loc = TurnLoc { segment: run.segment, index };
            in_step(mutation, loc)?;
        }
    }
    Ok(())
}

/// The versions that a turn is, or is a half of: each stands as long as anything of it is shown.
fn in_step(mutation: &mut Mutation<'_>, loc: TurnLoc) -> Result<()> {
    let mut part = Some(loc);
    while let Some(loc) = part {
        let tree = mutation.tree();
        let (turn, shown) = (tree.turn(loc)?, tree.is_shown(loc)?);
        part = tree.split_with_half(loc)?.map(|split| split.whole);
        for one in mutation.ledger().about_turn(&turn.id)? {
            if one.origin == Origin::Turn {
                bring(mutation, &one, shown, HIDDEN)?;
            }
        }
    }
    Ok(())
}

/// After a store was undone or redone: the very observations that it made.
pub(crate) fn after_undo(
    mutation: &mut Mutation<'_>,
    id: ObservationId,
    undone: bool,
) -> Result<()> {
    let Some(one) = mutation.ledger().observation(id)? else {
        return Ok(());
    };
    if one.retracts.is_some() {
        return Ok(());
    }
    bring(mutation, &one, !undone, UNDONE)
}

fn has_slots(mutation: &Mutation<'_>) -> Result<bool> {
    let id = &mutation.conversation().id;
    Ok(mutation.ledger().conversation_entity(id)?.is_some())
}

/// Retracts an observation for a reason, or takes back the retraction that was made for it. Each
/// reason has a retraction of its own: what is both undone and hidden comes back when neither
/// holds any more.
fn bring(mutation: &mut Mutation<'_>, one: &Observation, stands: bool, why: &str) -> Result<()> {
    let later = retractions(mutation, one.id.entity, one.id.seq)?;
    let mut gone = BTreeSet::new();
    let mut held = None;
    for retraction in later.iter().rev() {
        if gone.contains(&retraction.id.seq) {
            continue;
        }
        gone.extend(retraction.retracts);
        let because = retraction.fields.get("because").and_then(tine_core::Json::as_str);
        if retraction.retracts == Some(one.id.seq) && because == Some(why) {
            held = Some(retraction.id.seq);
        }
    }
    match (held, stands) {
        (None, false) => mutation.retract(one.id.seq, one, why),
        (Some(seq), true) => mutation.retract(seq, one, BACK),
        _ => Ok(()),
    }
}

fn retractions(mutation: &Mutation<'_>, entity: EntityId, after: u64) -> Result<Vec<Observation>> {
    let limit = super::ledger::OBSERVATIONS_READ;
    let mut found = mutation.ledger().own_observations(entity, after, limit)?;
    found.retain(|one| one.retracts.is_some());
    Ok(found)
}
