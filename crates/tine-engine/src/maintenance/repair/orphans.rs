//! Conversations that have lost their own record.

use tine_store::{ConversationKey, Read, TurnLoc};

use super::LeftOut;
use super::salvage::read_operations;
use crate::Result;
use crate::maintenance::conversation_pages::damage;

/// Returns what is left of a conversation that has no record of its own.
pub(super) fn left_of(records: &dyn Read, key: ConversationKey) -> Result<Vec<LeftOut>> {
    let left_out = |record: String, why: &str| LeftOut {
        project: None,
        conversation: None,
        record,
        why: why.to_owned(),
        turn: None,
    };
    let (operations, _) = read_operations(records, key)?;
    let mut lost = vec![left_out(
        format!("conversation number {}", key.0),
        &format!("its own record is lost, with {} operations", operations.len()),
    )];
    let extents = match records.segments(key) {
        Ok(extents) => extents,
        Err(error) => {
            let found = damage(error.into())?;
            lost.push(left_out(found.record, &found.why));
            Vec::new()
        }
    };
    for extent in extents {
        let mut parent = None;
        for index in 0..extent.turns {
            match records.turn(TurnLoc { segment: extent.segment.no, index }) {
                Ok(Some(turn)) => {
                    let (id, record) = (turn.id, format!("turn {}", turn.id));
                    let mut found = left_out(record, "its conversation is lost");
                    found.turn = Some(Box::new((turn, parent)));
                    lost.push(found);
                    parent = Some(id);
                }
                Ok(None) => parent = None,
                Err(error) => {
                    let found = damage(error.into())?;
                    lost.push(left_out(found.record, &found.why));
                    parent = None;
                }
            }
        }
    }
    Ok(lost)
}
