//! Receiving changes from another store. See `docs/sync.md`.
//!
//! Invariants:
//!
//! - A conversation is updated in one transaction, and only after all of its hashes were
//!   recomputed.
//! - A log is continued only where it ends at the entry that the delta names: compare and set.
//!   Both stores hold the same bytes afterwards.
//! - The turns of a diverged log become operations of this one and keep their ids and hashes. Both
//!   branches stay, under two names.

use std::collections::{BTreeMap, HashMap, HashSet};

use tine_core::json;
use tine_core::{ConversationId, Message, Name, TurnHash, TurnId};
use tine_store::{Branch, Content, Conversation, Detail, Operation, Turn};

use super::BundleRecord;
use super::delta::{Delta, DeltaScope};
use super::import::{ErasurePolicy, ImportOutcome, ImportPolicy, NameConflicts};
use super::knowledge::LoggedRecords;
use crate::Imported;
use crate::log::change::OperationDetail;
use crate::{Call, Engine, Error, Graft, GraftLine, GraftTurn, NewConversation, Result};
use crate::{LogMark, Pulled};

impl Engine {
    /// Applies a delta from another store.
    ///
    /// What was erased there is erased here, too, for ever.
    pub fn receive(&self, call: &Call, delta: Delta) -> Result<Pulled> {
        self.receive_with(ErasurePolicy::Done, call, delta)
    }

    /// Applies a delta, but refuses a conversation in which something was erased that is still
    /// here.
    pub(super) fn receive_keeping(&self, call: &Call, delta: Delta) -> Result<Pulled> {
        self.receive_with(ErasurePolicy::Refused, call, delta)
    }

    fn receive_with(&self, erasures: ErasurePolicy, call: &Call, delta: Delta) -> Result<Pulled> {
        let Some(BundleRecord::Conversation(Conversation { id, .. })) = delta.records.first()
        else {
            return Err(Error::invalid("the first record must be a conversation"));
        };
        let id = id.clone();
        match delta.scope {
            DeltaScope::Log => self.continue_log(erasures, call, &id, delta),
            DeltaScope::Turns => self.take_turns(call, &id, delta),
        }
    }

    /// Continues a conversation with what changed after the end of its log here.
    fn continue_log(
        &self,
        erasures: ErasurePolicy,
        call: &Call,
        id: &ConversationId,
        delta: Delta,
    ) -> Result<Pulled> {
        let records = match delta.since {
            None => delta.records,
            since => {
                let end = self.log_end(call, id)?;
                if end == Some(delta.until) {
                    return Ok(Pulled { bytes: delta.bytes, ..Pulled::default() });
                }
                if end != since {
                    return Err(went_on(id));
                }
                let here = self.delta(call, id, None, DeltaScope::Log)?;
                if Some(here.until) != since {
                    return Err(went_on(id));
                }
                composed(here.records, delta.records)
            }
        };
        let mut records = records.into_iter().map(Ok);
        let policy = ImportPolicy { names: NameConflicts::Numbered, erasures };
        let ImportOutcome { imported, renamed, keys } =
            self.import_as(policy, Some(&call.project), &mut records)?;
        let Imported { conversations, turns, operations, .. } = imported;
        let (new, bytes) = (conversations > 0, delta.bytes);
        Ok(Pulled { new, turns, operations, renamed, keys, bytes, ..Pulled::default() })
    }

    /// Adds the turns of a diverged log, with their ids and hashes, as operations of this one.
    fn take_turns(&self, call: &Call, id: &ConversationId, delta: Delta) -> Result<Pulled> {
        let Delta { bytes, until, known, records, .. } = delta;
        let here = self.read(|records| Ok(records.conversation(&call.project, id)?))?;
        let here = here.ok_or_else(|| Error::not_found("conversation", id))?;
        if let Some(BundleRecord::Conversation(there)) = records.first()
            && there.root_hash != here.root_hash
        {
            let advice = " with another root; export into another project";
            return Err(Error::Exists { what: "conversation", name: id.to_string(), advice });
        }
        let done = self.graft(call, grafted(id, records, &known, until)?)?;
        let (turns, operations, withheld) = (done.made, done.operations, done.withheld);
        let diverged = true;
        Ok(Pulled { diverged, turns, operations, withheld, bytes, ..Pulled::default() })
    }
}

fn went_on(id: &ConversationId) -> Error {
    let advice = " whose log has changed meanwhile; sync again";
    Error::Exists { what: "conversation", name: id.to_string(), advice }
}

/// Combines the records up to an operation with those after it.
fn composed(here: Vec<BundleRecord>, there: Vec<BundleRecord>) -> Vec<BundleRecord> {
    let mut conversation = Vec::new();
    let mut turns: Vec<BundleRecord> = Vec::new();
    let mut places: HashMap<TurnId, usize> = HashMap::new();
    let (mut state, mut operations) = (Vec::new(), Vec::new());
    let (mut families, mut pieces) = (BTreeMap::new(), BTreeMap::new());
    let undo_targets = undo_targets(&there);
    let mut logged = LoggedRecords::default();
    for (newer, record) in
        here.into_iter().map(|it| (false, it)).chain(there.into_iter().map(|it| (true, it)))
    {
        match record {
            BundleRecord::Conversation(_) => conversation = vec![record],
            BundleRecord::Turn { turn: Turn { id, .. }, .. } => match places.get(&id) {
                Some(place) => turns[*place] = record,
                None => {
                    places.insert(id, turns.len());
                    turns.push(record);
                }
            },
            BundleRecord::Operation(mut operation) => {
                let toggled = undo_targets.get(&operation.seq);
                if let Detail::Kept(detail) = &operation.detail
                    && (newer || toggled.is_some())
                {
                    logged.add(detail);
                }
                operation.undone ^= toggled.is_some_and(|toggled| *toggled && !newer);
                operations.push(BundleRecord::Operation(operation));
            }
            BundleRecord::Record(record) => {
                families.insert(record.key().clone(), (newer, record));
            }
            BundleRecord::Piece { source, nth, bytes } => {
                pieces.insert((source, nth), bytes);
            }
            BundleRecord::Split { .. }
            | BundleRecord::Hidden { .. }
            | BundleRecord::Branch { .. }
            | BundleRecord::Bookmark { .. } => {
                if newer {
                    state.push(record);
                }
            }
        }
    }
    // Records that the newer operations mention and do not include were removed by them.
    for changed in logged.changed() {
        if families.get(&changed).is_some_and(|(newer, _)| !newer) {
            families.remove(&changed);
        }
    }
    let families = families.into_values().map(|(_, record)| BundleRecord::Record(record));
    let pieces =
        pieces.into_iter().map(|((source, nth), bytes)| BundleRecord::Piece { source, nth, bytes });
    let whole = conversation.into_iter().chain(turns).chain(state).chain(operations);
    whole.chain(families).chain(pieces).collect()
}

/// Returns the targets of undo and redo entries, and whether each was toggled an odd number of
/// times.
fn undo_targets(records: &[BundleRecord]) -> HashMap<u64, bool> {
    let mut undo_targets: HashMap<u64, bool> = HashMap::new();
    for record in records {
        if let BundleRecord::Operation(Operation { kind, detail: Detail::Kept(detail), .. }) =
            record
            && crate::ops::undo::is_undo_or_redo(kind)
            && let Ok(json) = json::parse(detail.as_bytes(), json::MAX_DEPTH)
            && let Some(entry) = OperationDetail::from_json(&json)
            && let Some(target) = entry.target_operation()
        {
            *undo_targets.entry(target).or_insert(false) ^= true;
        }
    }
    undo_targets
}

/// Converts the turns of a diverged log to a graft.
fn grafted(
    id: &ConversationId,
    records: Vec<BundleRecord>,
    referenced: &BTreeMap<TurnId, TurnHash>,
    until: LogMark,
) -> Result<Graft> {
    let mut turns: Vec<GraftTurn> = Vec::new();
    let mut places: HashMap<TurnId, usize> = HashMap::new();
    let mut inner: HashSet<usize> = HashSet::new();
    let mut branches: Vec<(Name, usize)> = Vec::new();
    let mut hashes: HashMap<TurnId, TurnHash> =
        referenced.iter().map(|(id, it)| (*id, *it)).collect();
    hashes.extend(records.iter().filter_map(|record| match record {
        BundleRecord::Turn { turn, .. } => Some((turn.id, turn.hash)),
        _ => None,
    }));
    for record in records {
        match record {
            BundleRecord::Turn {
                parent,
                turn:
                    Turn {
                        content: Content::Kept(body),
                        id,
                        hash,
                        role,
                        tool_call_id,
                        created_at,
                        status,
                        metadata,
                        origin,
                        ..
                    },
            } => {
                let place = parent.and_then(|parent| places.get(&parent)).copied();
                let below = match parent.filter(|_| place.is_none()) {
                    None => None,
                    Some(parent) => {
                        let hash = referenced.get(&parent);
                        Some(*hash.ok_or_else(|| Error::not_found("turn", parent))?)
                    }
                };
                let parent = place;
                inner.extend(parent);
                places.insert(id, turns.len());
                let created_at = Some(created_at);
                turns.push(GraftTurn {
                    parent,
                    below,
                    message: Message { role, body, tool_call_id, created_at, status, metadata },
                    timeless: false,
                    identity: Some((id, hash)),
                    part_of: origin.part_of.map(|whole| (whole, hashes.get(&whole).copied())),
                });
            }
            BundleRecord::Branch { branch: Branch { name, .. }, tip: Some(tip) } => {
                let place = places.get(&tip).ok_or_else(|| Error::not_found("turn", tip))?;
                branches.push((name, *place));
            }
            BundleRecord::Conversation(_) => {}
            _ => {
                return Err(Error::invalid("a delta of turns may contain only turns and branches"));
            }
        }
    }
    let ends: HashSet<usize> = branches.iter().map(|(_, place)| *place).collect();
    let tails = (0..turns.len()).filter(|place| !inner.contains(place) && !ends.contains(place));
    let mut lines: Vec<GraftLine> =
        tails.map(|tip| GraftLine { tip: Some(tip), branch: None }).collect();
    let named = branches.into_iter();
    lines.extend(named.map(|(name, tip)| GraftLine { tip: Some(tip), branch: Some(name) }));
    let conversation = NewConversation { id: Some(id.clone()), ..NewConversation::default() };
    Ok(Graft { conversation, turns, lines, rewinds: false, merged: Some(until) })
}
