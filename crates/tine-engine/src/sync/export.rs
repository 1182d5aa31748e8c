//! Out: a conversation as records, in one consistent state.

use std::collections::{BTreeSet, HashMap};

use tine_core::{ConversationId, TurnId};
use tine_store::{
    Branch, Conversation, ConversationKey, Detail, Operation, Read, SegmentNo, Turn, TurnLoc,
    Visibility, required,
};

use super::BundleRecord;
use super::knowledge::LoggedRecords;
use crate::log::mutation::PROJECT_LOG;
use crate::tree::path::fetch;
use crate::tree::resolve;
use crate::{Call, Engine, Error, Page, Result};

/// Turns held in memory at once.
const TURNS_PER_READ: usize = 1_000;

/// The same where what is handed out is bounded: few enough that they are little beside the bound.
const TURNS_PER_BOUNDED_READ: usize = 16;

impl Engine {
    /// Everything that a project holds, in the order of an export: its conversations, and at
    /// last the log of what was done outside of them.
    pub fn exported(&self, call: &Call) -> Result<Vec<ConversationId>> {
        let mut ids = Vec::new();
        let mut page = Page::default();
        loop {
            let found = self.conversations(call, true, page)?;
            ids.extend(found.items.into_iter().map(|conversation| conversation.id));
            match found.next {
                Some(next) => page = Page { cursor: Some(next), ..Page::default() },
                None => break,
            }
        }
        let log = ConversationId::from_stored(PROJECT_LOG);
        let there =
            self.read(|records| Ok(records.conversation(&call.project, &log)?.is_some()))?;
        ids.extend(there.then_some(log));
        Ok(ids)
    }

    /// Hands out every record of a conversation, also what is hidden, in the order of a bundle.
    ///
    /// The order is a function of the records alone: the same conversation gives the same
    /// records from every store.
    pub fn export(
        &self,
        call: &Call,
        conversation: &ConversationId,
        visit: &mut dyn FnMut(BundleRecord) -> Result<()>,
    ) -> Result<()> {
        let visit = std::cell::RefCell::new(visit);
        self.read(|records| {
            let found = resolve::conversation_or_log(records, call, conversation)?;
            export(records, &found, &ExportSelection::default(), &mut **visit.borrow_mut())
        })
    }
}

/// Which records of a conversation to export: all, or what changed after an operation.
#[derive(Default)]
pub(super) struct ExportSelection {
    /// The last operation that the receiver has.
    pub since: u64,
    /// Earlier turns that were changed after it.
    pub changed: BTreeSet<TurnId>,
    /// Earlier operations that were undone or redone after it.
    pub undo_targets: BTreeSet<u64>,
    /// Whether it is given up once it is too much.
    pub bounded: bool,
}

/// Returns the record that begins a conversation.
pub(super) fn conversation_record(conversation: &Conversation) -> BundleRecord {
    let visibility = match conversation.visibility {
        Visibility::Archived => Visibility::Archived,
        _ => Visibility::Shown,
    };
    BundleRecord::Conversation(Conversation {
        key: ConversationKey::NONE,
        visibility,
        ..conversation.clone()
    })
}

pub(super) fn export(
    records: &dyn Read,
    conversation: &Conversation,
    selection: &ExportSelection,
    visit: &mut dyn FnMut(BundleRecord) -> Result<()>,
) -> Result<()> {
    visit(conversation_record(conversation))?;
    let ids = turns(records, conversation, selection, visit)?;
    let id_of = |loc: TurnLoc| -> Result<TurnId> {
        Ok(*required(ids.get(&loc), || format!("turn {} of segment {}", loc.index, loc.segment.0))?)
    };
    let key = conversation.key;
    let mut splits = records.splits(key)?;
    splits.sort_by_key(|split| (split.operation, id_of(split.whole).ok()));
    for split in splits {
        visit(BundleRecord::Split {
            whole: id_of(split.whole)?,
            left: id_of(split.left)?,
            right: id_of(split.right)?,
            operation: split.operation,
        })?;
    }
    let mut hidden = BTreeSet::new();
    for run in records.hidden(key)? {
        hidden.insert((run.operation, id_of(run.root)?, run.by));
    }
    for (operation, root, by) in hidden {
        visit(BundleRecord::Hidden { root, by, operation })?;
    }
    for branch in records.branches(key)? {
        let tip = branch.tip.map(id_of).transpose()?;
        visit(branch_record(branch, tip))?;
    }
    for bookmark in records.bookmarks_in(key)? {
        let turn = id_of(bookmark.turn)?;
        let (name, created_at) = (bookmark.name, bookmark.created_at);
        visit(BundleRecord::Bookmark { name, turn, created_at })?;
    }
    // The visitor's error is not the store's: it is carried around the store's visitor.
    let mut failed: Option<Error> = None;
    let mut logged = LoggedRecords::default();
    for seq in &selection.undo_targets {
        if let Some(Detail::Kept(detail)) = records.operation(key, *seq)?.map(|it| it.detail) {
            logged.add(&detail);
        }
    }
    records.operations(key, selection.since + 1, u64::MAX, &mut |operation| {
        if let Detail::Kept(detail) = &operation.detail {
            logged.add(detail);
        }
        let record =
            BundleRecord::Operation(Operation { conversation: ConversationKey::NONE, ..operation });
        failed = visit(record).err();
        Ok(failed.is_none())
    })?;
    failed.map_or(Ok(()), Err)?;
    logged.export(records, &conversation.project, visit)
}

pub(super) fn branch_record(branch: Branch, tip: Option<TurnId>) -> BundleRecord {
    let branch = Branch { conversation: ConversationKey::NONE, tip: None, ..branch };
    BundleRecord::Branch { branch, tip }
}

/// Turns in the order in which they were made: by operation, and within one by depth.
pub(super) fn turns(
    records: &dyn Read,
    conversation: &Conversation,
    selection: &ExportSelection,
    visit: &mut dyn FnMut(BundleRecord) -> Result<()>,
) -> Result<HashMap<TurnLoc, TurnId>> {
    let mut parents: HashMap<SegmentNo, Option<TurnLoc>> = HashMap::new();
    let mut ids = HashMap::new();
    let mut order = Vec::new();
    for extent in records.segments(conversation.key)? {
        parents.insert(extent.segment.no, extent.segment.parent);
        records.turns(extent.segment.no, 0, u32::MAX, &mut |turn| {
            ids.insert(turn.loc, turn.id);
            if turn.operation > selection.since || selection.changed.contains(&turn.id) {
                order.push((turn.operation, turn.depth, turn.loc));
            }
            Ok(true)
        })?;
    }
    order.sort_unstable();
    let order: Vec<TurnLoc> = order.into_iter().map(|(_, _, loc)| loc).collect();
    let at_once = if selection.bounded { TURNS_PER_BOUNDED_READ } else { TURNS_PER_READ };
    for page in order.chunks(at_once) {
        for turn in fetch(records, page)? {
            let parent = match turn.loc.index {
                0 => parents.get(&turn.loc.segment).copied().flatten(),
                index => Some(TurnLoc { index: index - 1, ..turn.loc }),
            };
            let parent = parent.and_then(|loc| ids.get(&loc).copied());
            let turn = Turn { loc: TurnLoc::NONE, depth: 0, ..turn };
            visit(BundleRecord::Turn { parent, turn })?;
        }
    }
    Ok(ids)
}
