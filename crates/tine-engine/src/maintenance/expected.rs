//! The state that a log implies.
//!
//! Hashes cover content and operations, not the records of how a conversation is shown: tips,
//! bookmarks, deletions, splits, titles. Those follow from the log's changes, so they can be
//! compared with it.
//!
//! Almost everything follows from the log exactly. Where a branch or a bookmark ends that an undo
//! or a redo has put back depends on the tree as it was then; it is compared again once it has been
//! moved. Nothing follows from entries whose detail was erased. Titles, metadata and origins that a
//! turn or a conversation was made with are in no entry.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use tine_core::json::Json;
use tine_core::metadata::MetadataKey;
use tine_core::{BranchId, Digest, Name, ObservationId, Timestamp, TurnHash, TurnId};
use tine_store::{Detail, HiddenBy, Operation, RecordKey};

use crate::log::change::{
    BookmarkImage, BranchImage, ConversationField, LoggedChange, OperationDetail, ids_digest,
};
use crate::log::history::detail;
use crate::ops::undo::{REDO, UNDO};

/// The expected state of a branch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ExpectedBranch {
    /// All of it.
    Exact(BranchImage),
    /// It exists; an undo or an erased entry has set it to an unknown state.
    Unknown,
    /// It is not there.
    Removed,
}

/// A chain of turns that the log records.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LoggedChain {
    /// The operation that made them.
    pub(crate) seq: u64,
    pub(crate) first: TurnId,
    pub(crate) count: u64,
    /// The last one's hash.
    pub(crate) last_hash: TurnHash,
    /// What seals their ids.
    pub(crate) ids: Option<Digest>,
}

impl LoggedChain {
    /// Returns whether the turns that the operation made, in order, have the ids that it sealed.
    pub(crate) fn has_ids(&self, made: &[TurnId]) -> bool {
        let Some(sealed) = self.ids else {
            return true;
        };
        let from = made.iter().position(|id| *id == self.first).unwrap_or(0);
        let count = usize::try_from(self.count).unwrap_or(usize::MAX);
        ids_digest(made.iter().skip(from).take(count)) == sealed
    }
}

/// The state of one conversation by its log.
#[derive(Default)]
pub(crate) struct ExpectedState {
    /// Whether every entry could be read; otherwise sets may lack something.
    pub(crate) complete: bool,
    /// Operations that are undone.
    pub(crate) undone: BTreeSet<u64>,
    /// Turns made by each operation.
    pub(crate) made: HashMap<u64, u64>,
    /// Chains of turns.
    pub(crate) chains: Vec<LoggedChain>,
    /// Operations of which a repair says that what they made is not all there.
    pub(crate) excused: BTreeSet<u64>,
    /// Hidden turns: by operation, root and reason.
    pub(crate) hidden: BTreeSet<(u64, TurnId, HiddenBy)>,
    /// Split turns: operation, halves.
    pub(crate) splits: BTreeMap<TurnId, (u64, TurnId, TurnId)>,
    /// When the conversation was made, if the log begins with that.
    pub(crate) created_at: Option<Timestamp>,
    /// Every branch that there ever was.
    pub(crate) branches: BTreeMap<BranchId, ExpectedBranch>,
    /// Bookmarks whose last change is known; absent ones too.
    pub(crate) bookmarks: HashMap<Name, Option<BookmarkImage>>,
    pub(crate) fields: Vec<(ConversationField, Json)>,
    pub(crate) metadata: BTreeMap<(TurnId, MetadataKey), Json>,
    /// Observations that were made, with what seals them.
    pub(crate) observed: Vec<(ObservationId, Digest)>,
    /// Records of families that were changed; `None` for those that were removed.
    pub(crate) records: BTreeMap<RecordKey, Option<Json>>,
    /// The changes of each operation that can be undone, for as long as they may be.
    changes: HashMap<u64, Vec<LoggedChange>>,
    /// The operation that undid another one last.
    undone_by: HashMap<u64, u64>,
}

impl ExpectedState {
    pub(crate) fn new() -> Self {
        ExpectedState { complete: true, ..ExpectedState::default() }
    }

    /// Takes in the next entry.
    pub(crate) fn add(&mut self, operation: &Operation) {
        let seq = operation.seq;
        if seq == 1 && matches!(operation.kind.as_str(), "create" | "derive") {
            self.created_at = Some(operation.at);
        }
        let entry = match &operation.detail {
            Detail::Kept(_) => detail(operation).ok(),
            Detail::Purged(_) => None,
        };
        match (operation.kind.as_str(), entry) {
            // What these change is known by their kind, also when it is erased.
            (crate::maintenance::purge::KIND, _) | ("metadata" | "conversation", None) => {
                self.forget_text_fields()
            }
            (_, None) => {
                self.complete = false;
                self.forget_movable_state();
            }
            (UNDO | REDO, Some(entry)) => self.apply_undo_or_redo(seq, &entry),
            (crate::maintenance::repair::KIND, Some(entry)) => self.repaired(&entry),
            (_, Some(entry)) => self.apply_changes(seq, entry.changes),
        }
    }

    /// Forgets titles and metadata.
    fn forget_text_fields(&mut self) {
        self.fields.clear();
        self.metadata.clear();
    }

    /// Forgets records of which only the last change counts.
    pub(crate) fn forget_movable_state(&mut self) {
        self.forget_text_fields();
        self.bookmarks.clear();
        for tip in self.branches.values_mut().filter(|tip| **tip != ExpectedBranch::Removed) {
            *tip = ExpectedBranch::Unknown;
        }
    }

    /// Drops the expectations about records that a repair left out or changed.
    fn repaired(&mut self, entry: &OperationDetail) {
        self.complete = false;
        self.forget_movable_state();
        self.observed.clear();
        self.records.clear();
        let incomplete = entry.facts.get("incomplete").and_then(Json::as_array);
        self.excused.extend(incomplete.into_iter().flatten().filter_map(Json::as_u64));
    }

    fn apply_changes(&mut self, seq: u64, changes: Vec<LoggedChange>) {
        for change in &changes {
            match change {
                LoggedChange::Branch { id, after, .. } => {
                    let tip = after.clone().map_or(ExpectedBranch::Removed, ExpectedBranch::Exact);
                    self.branches.insert(*id, tip);
                }
                LoggedChange::Bookmark { name, after, .. } => {
                    self.bookmarks.insert(name.clone(), after.clone());
                }
                LoggedChange::Metadata { turn, key, after, .. } => {
                    self.metadata.insert((*turn, *key), after.clone());
                }
                LoggedChange::Conversation { field, after, .. } => {
                    self.fields.retain(|(of, _)| of != field);
                    self.fields.push((*field, after.clone()));
                }
                LoggedChange::Created { first, count, last_hash, ids } => {
                    *self.made.entry(seq).or_default() += count;
                    let (first, count, last_hash, ids) = (*first, *count, *last_hash, *ids);
                    self.chains.push(LoggedChain { seq, first, count, last_hash, ids });
                }
                LoggedChange::Hidden { .. } | LoggedChange::Split { .. } => {
                    self.apply_visibility(seq, change)
                }
                LoggedChange::Observed { id, digest } => self.observed.push((*id, *digest)),
                LoggedChange::Record { key, after, .. } => {
                    self.records.insert(key.clone(), after.clone());
                }
            }
        }
        self.changes.insert(seq, changes);
    }

    /// A deletion or a split takes effect.
    fn apply_visibility(&mut self, seq: u64, change: &LoggedChange) {
        match change {
            LoggedChange::Hidden { root, cascade } => {
                let by = if *cascade { HiddenBy::Cascade } else { HiddenBy::Reparent };
                self.hidden.insert((seq, *root, by));
            }
            LoggedChange::Split { whole, left, right } => {
                self.splits.insert(*whole, (seq, *left, *right));
            }
            _ => {}
        }
    }

    fn apply_undo_or_redo(&mut self, seq: u64, entry: &OperationDetail) {
        for change in &entry.changes {
            if let LoggedChange::Observed { id, digest } = change {
                self.observed.push((*id, *digest));
            }
        }
        let target = entry.target_operation();
        let Some((target, changes)) =
            target.and_then(|target| Some((target, self.changes.get(&target)?.clone())))
        else {
            self.complete = false;
            self.forget_movable_state();
            return;
        };
        // An undo or redo toggles whether its target is in effect, whichever was requested.
        let redone = self.undone.remove(&target);
        if !redone {
            self.undone.insert(target);
        }
        for change in &changes {
            match change {
                LoggedChange::Created { .. } if redone => {
                    let undo = self.undone_by.get(&target).copied();
                    self.hidden.retain(|(operation, _, _)| Some(*operation) != undo);
                }
                LoggedChange::Created { first, .. } => {
                    self.hidden.insert((seq, *first, HiddenBy::Undo));
                }
                LoggedChange::Hidden { .. } | LoggedChange::Split { .. } if redone => {
                    self.apply_visibility(target, change)
                }
                LoggedChange::Hidden { .. } => {
                    self.hidden.retain(|(operation, _, _)| *operation != target);
                }
                LoggedChange::Split { whole, .. } => {
                    self.splits.remove(whole);
                }
                LoggedChange::Branch { id, before, after } => {
                    let there = if redone { after } else { before }.is_some();
                    self.branches.insert(
                        *id,
                        if there { ExpectedBranch::Unknown } else { ExpectedBranch::Removed },
                    );
                }
                LoggedChange::Bookmark { name, .. } => {
                    self.bookmarks.remove(name);
                }
                LoggedChange::Metadata { turn, key, before, after } => {
                    let value = if redone { after } else { before };
                    self.metadata.insert((*turn, *key), value.clone());
                }
                LoggedChange::Conversation { field, before, after } => {
                    let value = if redone { after } else { before };
                    self.fields.retain(|(of, _)| of != field);
                    self.fields.push((*field, value.clone()));
                }
                // What an undo takes back of it, it notes itself.
                LoggedChange::Observed { .. } => {}
                LoggedChange::Record { key, before, after } => {
                    let value = if redone { after } else { before };
                    self.records.insert(key.clone(), value.clone());
                }
            }
        }
        if !redone {
            self.undone_by.insert(target, seq);
        }
    }
}
