//! Log positions, and deltas after a position. See `docs/sync.md`.
//!
//! Invariants:
//!
//! - A delta that continues a log names the entry after which it begins by number and hash, and
//!   applies only to a log with that entry.
//! - Every turn that a record of a delta names is in it, or is listed with its hash.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use tine_core::json::Json;
use tine_core::{ConversationId, OperationHash, ProjectId, TurnHash, TurnId};
use tine_store::{
    Content, Conversation, ConversationKey, Detail, Operation, Read, Turn, TurnLoc, required,
};

use super::BundleRecord;
use super::export::{ExportSelection, branch_record, conversation_record, export, turns};
use super::sync_marks::sync_marks;
use crate::log::change::{LoggedChange, OperationDetail, parsed, text};
use crate::log::history::detail;
use crate::ops::conversation::bad_cursor;
use crate::tree::resolve;
use crate::tree::shown::{Tree, TurnState};
use crate::{Call, Engine, Error, Listing, LogEnd, LogMark, LogMerge, LogMerges, Page, Result};

/// The most merges to return.
const MERGES: usize = 1_000;

/// Returns a mark as log entries hold it.
pub(crate) fn mark_json(mark: LogMark) -> Json {
    tine_core::json::object([("hash", text(&mark.hash)), ("seq", mark.seq.into())])
}

/// Reads a mark from a log entry.
pub(super) fn mark_from_json(json: &Json) -> Option<LogMark> {
    Some(LogMark { seq: json.get("seq")?.as_u64()?, hash: parsed(json, "hash")? })
}

/// What a delta is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeltaScope {
    /// To continue a log: everything that changed.
    Log,
    /// To merge into a diverged log: turns, and the branches that end there.
    Turns,
}

/// What changed in a conversation after a position in its log.
#[derive(Clone, Debug, PartialEq)]
pub struct Delta {
    /// What it is for.
    pub scope: DeltaScope,
    /// Where it begins; `None` for the whole conversation.
    pub since: Option<LogMark>,
    /// Where the log ended.
    pub until: LogMark,
    /// Turns from before that its records name.
    pub known: BTreeMap<TurnId, TurnHash>,
    /// Its records, in the order of a bundle.
    pub records: Vec<BundleRecord>,
    /// Bytes transferred; an estimate for a local delta.
    pub bytes: u64,
}

impl Delta {
    /// Returns the number of turns.
    pub fn turns(&self) -> usize {
        let is_turn = |record: &&BundleRecord| matches!(record, BundleRecord::Turn { .. });
        self.records.iter().filter(is_turn).count()
    }
}

impl Engine {
    /// Returns how far the logs of a project have come, in the order in which the conversations
    /// were made; also of what is not shown, and of what was done outside of conversations.
    pub fn log_ends(&self, call: &Call, page: Page) -> Result<Listing<LogEnd>> {
        let limit = self.page_limit(page.limit)?;
        let after = match &page.cursor {
            Some(cursor) => Some(ConversationKey(cursor.parse().map_err(|_| bad_cursor(cursor))?)),
            None => None,
        };
        self.read(|records| {
            let found = records.conversations(&call.project, after, limit)?;
            let full = found.len() == limit;
            let next = found.last().filter(|_| full).map(|last| last.key.0.to_string());
            let mut items = Vec::with_capacity(found.len());
            for Conversation { key, id: conversation, .. } in found {
                if let Some(end) = end_of(records, key)? {
                    items.push(LogEnd { conversation, end });
                }
            }
            Ok(Listing { items, next })
        })
    }

    /// Returns the last entry of a conversation's log, if the conversation is here in any form.
    pub fn log_end(&self, call: &Call, id: &ConversationId) -> Result<Option<LogMark>> {
        self.read(|records| match records.conversation(&call.project, id)? {
            Some(found) => end_of(records, found.key),
            None => Ok(None),
        })
    }

    /// Returns the hashes of these entries of a conversation's log; `None` for those that it has
    /// not.
    pub fn log_hashes(
        &self,
        call: &Call,
        id: &ConversationId,
        entries: &[u64],
    ) -> Result<Vec<Option<OperationHash>>> {
        self.read(|records| {
            let Some(found) = records.conversation(&call.project, id)? else {
                return Ok(vec![None; entries.len()]);
            };
            let hash = |seq: &u64| Ok(records.operation(found.key, *seq)?.map(|it| it.hash));
            entries.iter().map(hash).collect()
        })
    }

    /// Returns what a conversation's log records about other logs after an entry.
    pub fn log_merges(&self, call: &Call, id: &ConversationId, after: u64) -> Result<LogMerges> {
        self.read(|records| {
            let mut merges = LogMerges::default();
            let Some(found) = records.conversation(&call.project, id)? else { return Ok(merges) };
            for_each_after(records, found.key, after, &mut |operation, entry| {
                if entry.is_none() || is_undo_or_redo(&operation) {
                    merges.turned = operation.seq;
                }
                if let Some(entry) = entry.as_ref().filter(|_| operation.kind == "purge") {
                    merges.erased.extend(entry.ids_in_fact::<TurnId>("turn_ids"));
                }
                let of = entry.and_then(|entry| mark_from_json(entry.facts.get("merged")?));
                merges.merges.extend(of.map(|of| LogMerge { seq: operation.seq, of }));
            })?;
            merges.erased.sort_unstable();
            merges.erased.dedup();
            let surplus = merges.merges.len().saturating_sub(MERGES);
            merges.merges.drain(..surplus);
            merges.compared = sync_marks(records, &call.project, id)?;
            Ok(merges)
        })
    }

    /// Returns what changed in a conversation after an entry of its log.
    ///
    /// The whole conversation comes where something from before was altered that only the whole
    /// tells, as by an erasure.
    pub fn delta(
        &self,
        call: &Call,
        id: &ConversationId,
        since: Option<LogMark>,
        scope: DeltaScope,
    ) -> Result<Delta> {
        self.delta_within(call, id, since, scope, usize::MAX)
    }

    /// The same, refused once it takes more than about so many bytes: all of it is held in memory.
    pub fn delta_within(
        &self,
        call: &Call,
        id: &ConversationId,
        since: Option<LogMark>,
        scope: DeltaScope,
        limit: usize,
    ) -> Result<Delta> {
        self.read(|records| {
            let found = resolve::conversation_or_log(records, call, id)?;
            let until = required(end_of(records, found.key)?, || format!("log of {id}"))?;
            if let Some(mark) = since {
                let here = records.operation(found.key, mark.seq)?;
                if here.is_none_or(|here| here.hash != mark.hash) {
                    let advice = " whose log has no such entry; sync again";
                    let (what, name) = ("conversation", id.to_string());
                    return Err(Error::Exists { what, name, advice });
                }
            }
            let (whole, exported) = match scope {
                DeltaScope::Log => changed(records, &found, since, limit)?,
                DeltaScope::Turns => (false, new_turns(records, &found, since, limit)?),
            };
            let known = referenced_turns(records, &found, scope, &exported)?;
            let bytes = exported.iter().map(size).sum();
            let since = since.filter(|_| !whole);
            Ok(Delta { scope, since, until, known, records: exported, bytes })
        })
    }
}

fn end_of(records: &dyn Read, key: ConversationKey) -> Result<Option<LogMark>> {
    Ok(records.log_end(key)?.map(|(seq, hash)| LogMark { seq, hash }))
}

/// Visits the entries after one, each with its detail, unless that was erased.
fn for_each_after(
    records: &dyn Read,
    key: ConversationKey,
    after: u64,
    visit: &mut dyn FnMut(Operation, Option<OperationDetail>),
) -> Result<()> {
    Ok(records.operations(key, after.saturating_add(1), u64::MAX, &mut |operation| {
        let entry = match &operation.detail {
            Detail::Kept(_) => detail(&operation).ok(),
            Detail::Purged(_) => None,
        };
        visit(operation, entry);
        Ok(true)
    })?)
}

/// Returns whether an entry is an undo or a redo.
pub(super) fn is_undo_or_redo(operation: &Operation) -> bool {
    crate::ops::undo::is_undo_or_redo(&operation.kind)
}

/// Returns whether the whole conversation is needed, and everything that changed after an entry.
fn changed(
    records: &dyn Read,
    conversation: &Conversation,
    since: Option<LogMark>,
    limit: usize,
) -> Result<(bool, Vec<BundleRecord>)> {
    let after = since.map_or(0, |mark| mark.seq);
    let bounded = limit < usize::MAX;
    let mut selection = ExportSelection { since: after, bounded, ..ExportSelection::default() };
    let mut whole = false;
    for_each_after(records, conversation.key, after, &mut |operation, entry| match entry {
        // An erasure or repair changes more than its entry describes.
        Some(entry)
            if !matches!(
                operation.kind.as_str(),
                crate::maintenance::purge::KIND | crate::maintenance::repair::KIND
            ) =>
        {
            selection.changed.extend(with_metadata(&entry));
            if is_undo_or_redo(&operation) {
                selection.undo_targets.extend(entry.target_operation());
            }
        }
        _ => whole = true,
    })?;
    for seq in &selection.undo_targets {
        if let Some(earlier) = records.operation(conversation.key, *seq)?
            && let Ok(entry) = detail(&earlier)
        {
            selection.changed.extend(with_metadata(&entry));
        }
    }
    if whole {
        selection = ExportSelection { bounded, ..ExportSelection::default() };
    }
    let exported = gathered(limit, |visit| export(records, conversation, &selection, visit))?;
    Ok((whole, exported))
}

/// Turns whose metadata an entry changed.
fn with_metadata(entry: &OperationDetail) -> Vec<TurnId> {
    let turn = |change: &LoggedChange| match change {
        LoggedChange::Metadata { turn, .. } => Some(*turn),
        _ => None,
    };
    entry.changes.iter().filter_map(turn).collect()
}

/// Returns the turns that were made after an entry and exist, and the branches that end on them.
///
/// Halves of a turn, and turns that were deleted alone, are included only if they have descendants;
/// then also those from before the entry, since they may not have been sent at the time.
fn new_turns(
    records: &dyn Read,
    conversation: &Conversation,
    since: Option<LogMark>,
    limit: usize,
) -> Result<Vec<BundleRecord>> {
    let bounded = limit < usize::MAX;
    let selection = ExportSelection {
        since: since.map_or(0, |mark| mark.seq),
        bounded,
        ..ExportSelection::default()
    };
    let tree = Tree::new(records, conversation.key);
    let mut ids = Default::default();
    let all = gathered(limit, |visit| {
        ids = turns(records, conversation, &selection, visit)?;
        Ok(())
    })?;
    let mut gone: HashSet<TurnId> = HashSet::new();
    let mut bridged: HashSet<TurnId> = HashSet::new();
    for (loc, id) in &ids {
        match tree.state(*loc)? {
            TurnState::Gone(_) => drop(gone.insert(*id)),
            TurnState::Bridged(_) => drop(bridged.insert(*id)),
            TurnState::Live | TurnState::Split(_) => {}
        }
    }
    let mut needed: HashSet<TurnId> = HashSet::new();
    let mut exported = Vec::new();
    for record in all.into_iter().rev() {
        let BundleRecord::Turn { parent, turn: Turn { id, content: Content::Kept(_), origin, .. } } =
            &record
        else {
            continue;
        };
        let leads_on = origin.part_of.is_some() || bridged.contains(id);
        if gone.contains(id) || leads_on && !needed.contains(id) {
            continue;
        }
        needed.extend(*parent);
        needed.insert(*id);
        exported.push(record);
    }
    exported.reverse();
    let above = leading(&tree, &ids, &exported)?;
    let mut leading_turns = Vec::new();
    if !above.is_empty() {
        let selection = ExportSelection {
            since: u64::MAX,
            changed: above,
            bounded,
            ..ExportSelection::default()
        };
        let used = usize::try_from(exported.iter().map(size).sum::<u64>()).unwrap_or(usize::MAX);
        let room = limit.saturating_sub(used);
        let too_much = |error| match error {
            Error::LongDelta { .. } => Error::LongDelta { limit },
            error => error,
        };
        leading_turns =
            gathered(room, |visit| turns(records, conversation, &selection, visit).map(drop))
                .map_err(too_much)?;
    }
    let kept = |record: &BundleRecord| {
        matches!(record, BundleRecord::Turn { turn: Turn { content: Content::Kept(_), .. }, .. })
    };
    leading_turns.retain(kept);
    let beginning = std::iter::once(conversation_record(conversation));
    let mut exported: Vec<BundleRecord> = beginning.chain(leading_turns).chain(exported).collect();
    for record in &mut exported {
        if let BundleRecord::Turn { turn, .. } = record
            && let Some(whole) = turn.origin.part_of
        {
            turn.origin.part_of = Some(topmost(&tree, &conversation.project, whole)?);
        }
    }
    let made: HashSet<TurnId> = exported
        .iter()
        .filter_map(|record| match record {
            BundleRecord::Turn { turn, .. } => Some(turn.id),
            _ => None,
        })
        .collect();
    for branch in records.branches(conversation.key)? {
        let tip = branch.tip.and_then(|tip| ids.get(&tip)).copied();
        if tip.is_some_and(|tip| made.contains(&tip)) {
            exported.push(branch_record(tine_store::Branch { forked_from: None, ..branch }, tip));
        }
    }
    Ok(exported)
}

/// Returns the turns above the first exported ones that the other side may lack although they are
/// from before: halves, and turns that were deleted alone, up to the next other one.
fn leading(
    tree: &Tree<'_>,
    ids: &HashMap<TurnLoc, TurnId>,
    exported: &[BundleRecord],
) -> Result<BTreeSet<TurnId>> {
    let turn = |record: &BundleRecord| match record {
        BundleRecord::Turn { parent, turn } => Some((turn.id, *parent)),
        _ => None,
    };
    let included: HashSet<TurnId> = exported.iter().filter_map(turn).map(|(id, _)| id).collect();
    let parents = exported.iter().filter_map(turn).filter_map(|(_, parent)| parent);
    let wanted: HashSet<TurnId> = parents.filter(|parent| !included.contains(parent)).collect();
    let mut above = BTreeSet::new();
    for (loc, _) in ids.iter().filter(|(_, id)| wanted.contains(id)) {
        let mut next = Some(*loc);
        while let Some(loc) = next {
            let turn = tree.turn(loc)?;
            let bridged = matches!(tree.state(loc)?, TurnState::Bridged(_));
            if turn.origin.part_of.is_none() && !bridged || !above.insert(turn.id) {
                break;
            }
            next = tree.raw_parent(loc)?;
        }
    }
    Ok(above)
}

/// Returns the turn that is no half itself and of which one is a part: those in between stay where
/// they are.
fn topmost(tree: &Tree<'_>, project: &ProjectId, whole: TurnId) -> Result<TurnId> {
    let (mut top, mut seen) = (whole, HashSet::new());
    while seen.insert(top)
        && let Some((_, loc)) = tree.records().find_turn(project, &top)?
        && let Some(above) = tree.turn(loc)?.origin.part_of
    {
        top = above;
    }
    Ok(top)
}

/// Collects the visited records, up to a size limit.
fn gathered(
    limit: usize,
    walk: impl FnOnce(&mut dyn FnMut(BundleRecord) -> Result<()>) -> Result<()>,
) -> Result<Vec<BundleRecord>> {
    let kept = RefCell::new(Vec::new());
    let mut bytes = 0;
    walk(&mut |record| {
        bytes += size(&record);
        if bytes > limit as u64 {
            return Err(Error::LongDelta { limit });
        }
        kept.borrow_mut().push(record);
        Ok(())
    })?;
    Ok(kept.into_inner())
}

/// Returns the turns that records name and do not include.
fn referenced_turns(
    records: &dyn Read,
    conversation: &Conversation,
    scope: DeltaScope,
    exported: &[BundleRecord],
) -> Result<BTreeMap<TurnId, TurnHash>> {
    let (mut named, mut included) = (BTreeSet::new(), HashSet::new());
    for record in exported {
        match record {
            BundleRecord::Turn { parent, turn } => {
                included.insert(turn.id);
                named.extend(*parent);
                named.extend(turn.origin.part_of.filter(|_| scope == DeltaScope::Turns));
            }
            BundleRecord::Split { whole, left, right, .. } => {
                named.extend([*whole, *left, *right]);
            }
            BundleRecord::Hidden { root, .. } => {
                named.insert(*root);
            }
            BundleRecord::Branch { branch, tip } => {
                named.extend(*tip);
                named.extend(branch.forked_from);
            }
            BundleRecord::Bookmark { turn, .. } => {
                named.insert(*turn);
            }
            _ => {}
        }
    }
    let mut referenced = BTreeMap::new();
    for id in named.into_iter().filter(|id| !included.contains(id)) {
        let found = records.find_turn(&conversation.project, &id)?;
        let (_, loc) = required(found, || format!("turn {id}"))?;
        let turn = required(records.turn(loc)?, || format!("turn {id}"))?;
        referenced.insert(id, turn.hash);
    }
    Ok(referenced)
}

/// Estimates the size of a record in transfer.
fn size(record: &BundleRecord) -> u64 {
    let ids = 256;
    let bytes = match record {
        BundleRecord::Turn { turn: Turn { content, metadata, .. }, .. } => {
            let body = match content {
                Content::Kept(body) => body.stored_len(),
                Content::Purged(_) => 0,
            };
            2 * ids + body + metadata.to_json().to_canonical().len()
        }
        BundleRecord::Operation(Operation { detail: Detail::Kept(detail), .. }) => {
            2 * ids + detail.len()
        }
        BundleRecord::Record(record) => 2 * record.key().to_bytes().len() + record.text().len(),
        BundleRecord::Piece { bytes, .. } => bytes.len() * 4 / 3,
        BundleRecord::Conversation(Conversation { metadata, .. }) => {
            ids + metadata.to_canonical().len()
        }
        _ => ids,
    };
    bytes as u64
}
