//! What another store has and this one has not, conversation by conversation. See `docs/sync.md`.
//!
//! Invariants:
//!
//! - A conversation is brought forward in one transaction, and only after every hash of it was
//!   recomputed: interrupted at any point, the next pull goes on.
//! - Where one log is a beginning of the other, only what lies behind it is handed over, and both
//!   stores hold the same bytes afterwards.
//! - Where both went on by themselves, the turns of the other side become operations of this log,
//!   with the ids and hashes that they have. Both branches stay, under two names.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use tine_core::{ConversationId, Message, Name, OperationHash, TurnId};
use tine_store::{Content, Detail, HiddenBy};

use super::BundleRecord;
use super::export::{Part, export};
use crate::change::Change;
use crate::history::detail;
use crate::log::PROJECT_LOG;
use crate::{Call, Engine, Error, Graft, GraftLine, GraftTurn, NewConversation, Result, resolve};

/// Everything of a conversation that changed behind an operation.
#[derive(Clone, Debug)]
pub struct Delta {
    /// The operation behind which it begins; 0 for the whole conversation.
    pub since: u64,
    /// Its records, in the order of a bundle.
    pub records: Vec<BundleRecord>,
}

/// What a pull did with a conversation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pulled {
    /// It was not here.
    pub new: bool,
    /// Both sides had gone on by themselves.
    pub diverged: bool,
    /// Turns that are new here.
    pub turns: u64,
    /// Operations that are new here.
    pub operations: u64,
    /// About how many bytes were handed over.
    pub bytes: u64,
}

impl Engine {
    /// The last operation of a conversation's log, if the conversation is here in any form.
    pub fn log_end(
        &self,
        call: &Call,
        id: &ConversationId,
    ) -> Result<Option<(u64, OperationHash)>> {
        self.read(|records| {
            let found = records.conversation(&call.project, id)?;
            Ok(found.map(|found| records.log_end(found.key)).transpose()?.flatten())
        })
    }

    /// The hash of one operation of a conversation's log.
    fn log_hash(
        &self,
        call: &Call,
        id: &ConversationId,
        seq: u64,
    ) -> Result<Option<OperationHash>> {
        self.read(|records| {
            let Some(found) = records.conversation(&call.project, id)? else { return Ok(None) };
            Ok(records.operation(found.key, seq)?.map(|operation| operation.hash))
        })
    }

    /// What of a conversation changed behind an operation.
    pub fn delta(&self, call: &Call, id: &ConversationId, since: u64) -> Result<Delta> {
        self.read(|records| {
            let found = match id.as_str() {
                PROJECT_LOG => records
                    .conversation(&call.project, id)?
                    .ok_or_else(|| Error::not_found("conversation", id))?,
                _ => resolve::conversation(records, call, id)?,
            };
            let mut part = Part { since, changed: BTreeSet::new() };
            records.operations(found.key, since + 1, u64::MAX, &mut |operation| {
                let known = match &operation.detail {
                    Detail::Kept(_) => detail(&operation).ok(),
                    Detail::Purged(_) => None,
                };
                match known {
                    // An erasure and a repair reach back further than they tell.
                    Some(known)
                        if !matches!(operation.kind.as_str(), "purge" | crate::repair::KIND) =>
                    {
                        for change in known.changes {
                            if let Change::Metadata { turn, .. } = change {
                                part.changed.insert(turn);
                            }
                        }
                    }
                    _ => part = Part::default(),
                }
                Ok(true)
            })?;
            let mut kept = Vec::new();
            let keep = std::cell::RefCell::new(&mut kept);
            export(records, &found, &part, &mut |record| {
                keep.borrow_mut().push(record);
                Ok(())
            })?;
            Ok(Delta { since: part.since, records: kept })
        })
    }

    /// Brings a conversation forward by what changed behind the end of its log here.
    pub fn apply(&self, call: &Call, id: &ConversationId, delta: Delta) -> Result<Pulled> {
        let bytes = delta.records.iter().map(size).sum();
        let records = match delta.since {
            0 => delta.records,
            since => {
                let here = self.delta(call, id, 0)?;
                let end = self.log_end(call, id)?.map_or(0, |(seq, _)| seq);
                if end != since {
                    let why =
                        format!("the conversation `{id}` ends at operation {end}, not {since}");
                    return Err(Error::invalid(why));
                }
                composed(here.records, delta.records, since)
            }
        };
        let mut records = records.into_iter().map(Ok);
        let done = self.import(Some(&call.project), &mut records)?;
        Ok(Pulled {
            new: done.conversations > 0,
            diverged: false,
            turns: done.turns,
            operations: done.operations,
            bytes,
        })
    }

    /// Takes over what another store has of a conversation and this one has not.
    pub fn pull(&self, from: &Engine, call: &Call, id: &ConversationId) -> Result<Pulled> {
        let Some((theirs, hash)) = from.log_end(call, id)? else {
            return Ok(Pulled::default());
        };
        let ours = self.log_end(call, id)?;
        if ours.is_some_and(|(_, own)| own == hash) {
            return Ok(Pulled::default());
        }
        let ours = ours.map_or(0, |(seq, _)| seq);
        let common = self.common(from, call, id, ours.min(theirs))?;
        if common == theirs {
            return Ok(Pulled::default());
        }
        if common == ours {
            return self.apply(call, id, from.delta(call, id, common)?);
        }
        self.take_turns(call, id, from.delta(call, id, common)?, common)
    }

    /// Takes over the turns of a whole conversation whose log went another way.
    pub fn merge_turns(
        &self,
        call: &Call,
        id: &ConversationId,
        records: Vec<BundleRecord>,
    ) -> Result<Pulled> {
        let mut common = 0;
        for record in &records {
            if let BundleRecord::Operation { seq, hash, .. } = record
                && self.log_hash(call, id, *seq)? == Some(*hash)
            {
                common = common.max(*seq);
            }
        }
        self.take_turns(call, id, Delta { since: common, records }, common)
    }

    /// The last operation that both logs share: they are chained, so that all before it are too.
    fn common(&self, from: &Engine, call: &Call, id: &ConversationId, end: u64) -> Result<u64> {
        let (mut low, mut high) = (0, end);
        while low < high {
            let middle = low + (high - low).div_ceil(2);
            let same = self.log_hash(call, id, middle)? == from.log_hash(call, id, middle)?;
            if same {
                low = middle;
            } else {
                high = middle - 1;
            }
        }
        Ok(low)
    }

    /// Adds the turns of a log that went another way, with their ids and hashes, as operations of
    /// this one.
    fn take_turns(
        &self,
        call: &Call,
        id: &ConversationId,
        delta: Delta,
        common: u64,
    ) -> Result<Pulled> {
        if id.as_str() == PROJECT_LOG {
            let why = "what was done outside of conversations went different ways in both stores; \
                       export one of them into a project of its own";
            return Err(Error::Unsupported(why.to_owned()));
        }
        let bytes = delta.records.iter().map(size).sum();
        let known = self.log_end(call, id)?.map_or(0, |(seq, _)| seq);
        let done = self.graft(call, grafted(id, delta.records, common))?;
        let end = self.log_end(call, id)?.map_or(0, |(seq, _)| seq);
        Ok(Pulled { new: false, diverged: true, turns: done.made, operations: end - known, bytes })
    }
}

/// The records of the whole conversation, from those up to an operation and those behind it.
fn composed(here: Vec<BundleRecord>, there: Vec<BundleRecord>, since: u64) -> Vec<BundleRecord> {
    let mut conversation = Vec::new();
    let mut turns: Vec<BundleRecord> = Vec::new();
    let mut places: HashMap<TurnId, usize> = HashMap::new();
    let (mut state, mut operations) = (Vec::new(), Vec::new());
    let (mut entries, mut pieces) = (BTreeMap::new(), BTreeMap::new());
    let undone: HashSet<u64> = there
        .iter()
        .filter_map(|record| match record {
            BundleRecord::Operation { seq, undone: true, .. } => Some(*seq),
            _ => None,
        })
        .collect();
    for (newer, record) in
        here.into_iter().map(|it| (false, it)).chain(there.into_iter().map(|it| (true, it)))
    {
        match record {
            BundleRecord::Conversation { .. } => conversation = vec![record],
            BundleRecord::Turn { id, .. } => match places.get(&id) {
                Some(place) => turns[*place] = record,
                None => {
                    places.insert(id, turns.len());
                    turns.push(record);
                }
            },
            BundleRecord::Operation { seq, kind, actor, at, detail, hash, idempotency, .. } => {
                if newer && seq <= since {
                    continue;
                }
                let undone = undone.contains(&seq);
                operations.push(BundleRecord::Operation {
                    seq,
                    kind,
                    actor,
                    at,
                    detail,
                    hash,
                    undone,
                    idempotency,
                });
            }
            BundleRecord::Entry { kind, key, text } => {
                entries.insert((kind, key), text);
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
    let entries =
        entries.into_iter().map(|((kind, key), text)| BundleRecord::Entry { kind, key, text });
    let pieces =
        pieces.into_iter().map(|((source, nth), bytes)| BundleRecord::Piece { source, nth, bytes });
    let whole = conversation.into_iter().chain(turns).chain(state).chain(operations);
    whole.chain(entries).chain(pieces).collect()
}

/// The turns that a log made behind an operation, as a tree on what both sides share. What is
/// deleted there, and what hangs on a half of a split turn, is not taken.
fn grafted(id: &ConversationId, records: Vec<BundleRecord>, common: u64) -> Graft {
    let mut gone: HashSet<TurnId> = HashSet::new();
    let mut branches = Vec::new();
    for record in &records {
        match record {
            BundleRecord::Hidden { root, by, .. } if *by != HiddenBy::Reparent => {
                gone.insert(*root);
            }
            BundleRecord::Split { left, right, .. } => gone.extend([*left, *right]),
            BundleRecord::Branch { name, tip: Some(tip), .. } => {
                branches.push((name.clone(), *tip))
            }
            _ => {}
        }
    }
    let mut turns: Vec<GraftTurn> = Vec::new();
    let mut places: HashMap<TurnId, usize> = HashMap::new();
    let mut inner: HashSet<usize> = HashSet::new();
    for record in records {
        let BundleRecord::Turn {
            id,
            hash,
            parent,
            role,
            content: Content::Kept(body),
            tool_call_id,
            created_at,
            status,
            metadata,
            operation,
            ..
        } = record
        else {
            continue;
        };
        if operation <= common {
            continue;
        }
        if gone.contains(&id) || parent.is_some_and(|parent| gone.contains(&parent)) {
            gone.insert(id);
            continue;
        }
        let (parent, shared) = match parent {
            None => (None, None),
            Some(parent) => match places.get(&parent) {
                Some(place) => (Some(*place), None),
                None => (None, Some(parent)),
            },
        };
        inner.extend(parent);
        places.insert(id, turns.len());
        let created_at = Some(created_at);
        turns.push(GraftTurn {
            parent,
            below: shared,
            message: Message { role, body, tool_call_id, created_at, status, metadata },
            timeless: false,
            identity: Some((id, hash)),
        });
    }
    let named: HashSet<usize> =
        branches.iter().filter_map(|(_, tip)| places.get(tip)).copied().collect();
    let tails = (0..turns.len()).filter(|place| !inner.contains(place) && !named.contains(place));
    let mut lines: Vec<GraftLine> =
        tails.map(|tip| GraftLine { tip: Some(tip), branch: None }).collect();
    lines.extend(branches.into_iter().filter_map(|(name, tip): (Name, TurnId)| {
        Some(GraftLine { tip: Some(*places.get(&tip)?), branch: Some(name) })
    }));
    let conversation = NewConversation { id: Some(id.clone()), ..NewConversation::default() };
    Graft { conversation, turns, lines, rewinds: false }
}

/// About how many bytes a record takes on its way.
fn size(record: &BundleRecord) -> u64 {
    let ids = 256;
    let bytes = match record {
        BundleRecord::Turn { content, metadata, .. } => {
            let body = match content {
                Content::Kept(body) => body.stored_len(),
                Content::Purged(_) => 0,
            };
            2 * ids + body + metadata.to_json().to_canonical().len()
        }
        BundleRecord::Operation { detail: Detail::Kept(detail), .. } => 2 * ids + detail.len(),
        BundleRecord::Entry { key, text, .. } => 2 * key.len() + text.len(),
        BundleRecord::Piece { bytes, .. } => bytes.len() * 4 / 3,
        BundleRecord::Conversation { metadata, .. } => ids + metadata.to_canonical().len(),
        _ => ids,
    };
    bytes as u64
}
