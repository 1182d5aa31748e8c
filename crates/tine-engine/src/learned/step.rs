//! Keeps slots in step with the tree: a version that is deleted, or whose making is undone, is
//! retracted; one that comes back stands again.

use tine_core::facts::{Observation, Origin};
use tine_core::{EntityId, ObservationId};
use tine_store::TurnLoc;

use crate::Result;
use crate::log::Mutation;
use crate::tree::{Piece, State};

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
            let tree = mutation.tree();
            let turn = tree.turn(loc)?;
            let shown = matches!(tree.state(loc)?, State::Live | State::Split(_));
            for one in mutation.ledger().about_turn(&turn.id)? {
                if one.origin == Origin::Turn {
                    bring(mutation, &one, shown, HIDDEN)?;
                }
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

/// Retracts an observation, or takes back the retraction that was made for the same reason.
fn bring(mutation: &mut Mutation<'_>, one: &Observation, stands: bool, why: &str) -> Result<()> {
    let all = retractions(mutation, one.id.entity, one.id.seq)?;
    // Each retraction names one observation, so that a chain of them ends the matter.
    let mut last = one.clone();
    let mut standing = true;
    while let Some(next) = all.iter().rfind(|later| later.retracts == Some(last.id.seq)) {
        last = next.clone();
        standing = !standing;
    }
    match (standing, stands) {
        (true, false) => mutation.retract(last.id.seq, one, why),
        (false, true) => {
            let for_this =
                last.fields.get("because").and_then(tine_core::Json::as_str) == Some(why);
            if for_this { mutation.retract(last.id.seq, one, BACK) } else { Ok(()) }
        }
        _ => Ok(()),
    }
}

fn retractions(mutation: &Mutation<'_>, entity: EntityId, after: u64) -> Result<Vec<Observation>> {
    let limit = super::ledger::OBSERVATIONS_READ;
    let mut found = mutation.ledger().own_observations(entity, after, limit)?;
    found.retain(|one| one.retracts.is_some());
    Ok(found)
}
