//! Turns: every one down to the first damaged one on its line.

use std::collections::{HashMap, HashSet};

use tine_core::{TurnHash, TurnId};
use tine_store::{Read, Segment, SegmentNo, Turn, TurnLoc};

use super::SalvagedConversation;
use crate::Result;
use crate::maintenance::conversation_pages::damage;
use crate::maintenance::expected::{ExpectedState, LoggedChain};
use crate::maintenance::verify::recomputed;

impl SalvagedConversation {
    pub(super) fn turns(&mut self, records: &dyn Read) -> Result<()> {
        let extents = match records.segments(self.conversation.key) {
            Ok(extents) => extents,
            Err(error) => {
                let found = damage(error.into())?;
                self.leave_out(format!("all turns: {}", found.record), found.why);
                Vec::new()
            }
        };
        let mut hashes = HashSet::new();
        for extent in extents {
            self.segment(records, extent.segment, extent.turns, &mut hashes)?;
        }
        Ok(())
    }

    /// Keeps the turns of a segment down to the first that does not follow from its parent.
    fn segment(
        &mut self,
        records: &dyn Read,
        segment: Segment,
        length: u32,
        hashes: &mut HashSet<TurnHash>,
    ) -> Result<()> {
        let mut above = segment.parent.map(|at| self.places.get(&at).copied());
        if above == Some(None) {
            return self.rest(records, segment.no, 0..length, None, "a turn above it is left out");
        }
        let base_depth = above.flatten().map_or(1, |(_, _, depth)| depth + 1);
        let mut turns: Vec<Turn> = Vec::new();
        let mut fault = None;
        let operations = self.operations.len() as u64;
        let mut adopted = 0_u64;
        let ids = &self.ids;
        let read = records.turns(segment.no, 0, u32::MAX, &mut |mut turn| {
            let parent = above.flatten().map(|(_, hash, _)| hash);
            let index = u32::try_from(turns.len()).unwrap_or(u32::MAX);
            let why = match recomputed(&turn, parent.as_ref()) {
                _ if turn.loc.index != index => Some("a turn above it is missing"),
                _ if ids.contains_key(&turn.id) => Some("another turn has its id"),
                Some(Ok(hash)) if hash != turn.hash => {
                    Some("its hash does not match its content and parent")
                }
                Some(Err(why)) => Some(why),
                _ if !hashes.insert(turn.hash) => Some("another turn has its hash"),
                _ => None,
            };
            if let Some(why) = why {
                fault = Some(why);
                return Ok(false);
            }
            turn.depth = base_depth + index;
            if turn.operation == 0 || turn.operation > operations {
                // The entry that made it is lost; the repair's own entry stands in for it.
                adopted += 1;
                turn.operation = operations + 1;
            }
            above = Some(Some((turn.id, turn.hash, turn.depth)));
            turns.push(turn);
            Ok(true)
        });
        let unreadable = read.err().map(|error| damage(error.into())).transpose()?;
        if adopted > 0 {
            let record = format!("operations that made {adopted} turns");
            self.leave_out(record, "they are lost; the turns are kept");
        }
        for turn in &turns {
            self.places.insert(turn.loc, (turn.id, turn.hash, turn.depth));
            self.ids.insert(turn.id, turn.loc);
        }
        let kept = u32::try_from(turns.len()).unwrap_or(u32::MAX);
        let parent = turns.last().map(|turn| turn.id).or(above.flatten().map(|(id, _, _)| id));
        if !turns.is_empty() {
            let segment = Segment { base_depth, ..segment };
            self.segments.push((segment, turns));
        }
        let why = match (&unreadable, fault) {
            (Some(found), _) => found.why.as_str(),
            (None, Some(why)) => why,
            (None, None) => return Ok(()),
        };
        self.rest(records, segment.no, kept..length.max(kept + 1), parent, why)
    }

    /// Reports what can be read of a segment after a damaged turn.
    fn rest(
        &mut self,
        records: &dyn Read,
        segment: SegmentNo,
        indices: std::ops::Range<u32>,
        mut parent: Option<TurnId>,
        first: &str,
    ) -> Result<()> {
        let mut why = first;
        let mut missing = 0_u32;
        for index in indices {
            match records.turn(TurnLoc { segment, index }) {
                Ok(Some(turn)) => {
                    let id = turn.id;
                    self.turn_left_out(turn, parent, why);
                    parent = Some(id);
                }
                Ok(None) => {
                    missing += 1;
                    parent = None;
                }
                Err(error) => {
                    let found = damage(error.into())?;
                    self.leave_out(found.record, found.why);
                    parent = None;
                }
            }
            why = "a turn above it is left out";
        }
        if missing > 0 {
            self.leave_out(format!("{missing} turns"), "they are missing");
        }
        Ok(())
    }

    /// Names the operations whose turns are not all here.
    pub(super) fn chains(&mut self, expected: &ExpectedState) {
        let mut by_hash = HashMap::new();
        let mut made: HashMap<u64, u64> = HashMap::new();
        let mut by_id = HashMap::new();
        let mut ids: HashMap<u64, Vec<TurnId>> = HashMap::new();
        for (_, turns) in &self.segments {
            for turn in turns {
                ids.entry(turn.operation).or_default().push(turn.id);
                *made.entry(turn.operation).or_default() += 1;
                by_hash.insert(turn.hash, (turn.depth, turn.operation));
                by_id.insert(turn.id, (turn.depth, turn.operation));
            }
        }
        let mut lost = Vec::new();
        for chain in &expected.chains {
            let LoggedChain { seq, first, count, last_hash, .. } = chain;
            let has_ids = chain.has_ids(ids.get(seq).map_or(&[][..], Vec::as_slice));
            let there = made.get(seq).copied().unwrap_or(0);
            let whole = match (by_id.get(first), by_hash.get(last_hash)) {
                (Some((top, made_by)), Some((bottom, also))) => {
                    (made_by, also) == (seq, seq)
                        && bottom.checked_sub(*top).is_some_and(|by| u64::from(by) + 1 == *count)
                }
                _ => false,
            };
            if !whole || !has_ids || expected.made.get(seq) != Some(&there) {
                lost.push((*seq, *count, there));
            }
        }
        for (seq, count, there) in lost {
            let why = format!("it made {count} turns, and {there} of them are kept");
            self.leave_out(format!("operation {seq}"), why);
            self.incomplete.insert(seq);
        }
    }
}
