//! Undo and redo of operations.
//!
//! An operation can be undone when no later one that still holds depends on it: none read a
//! record that it wrote (that is noted in the log as `depends_on`), and none wrote one of its
//! records again. Undoing is itself an operation; the log only ever grows.

use std::collections::BTreeSet;

use tine_core::json;
use tine_core::{ConversationId, ObservationId, TurnId};
use tine_store::{
    Bookmark, Branch, Conversation, Detail, Family, HiddenBy, Operation, Read, ReadFamilies,
    Record, Split, TurnLoc, Visibility, required,
};

use crate::error::refuse_referenced;
use crate::knowledge::{self, slot_sync};
use crate::log::change::{BookmarkImage, BranchImage, ConversationField, LoggedChange, text};
use crate::log::history::detail;
use crate::log::mutation::Mutation;
use crate::ops::conversation::{visibility_from, visibility_json};
use crate::tree::shown::{Tree, TurnState};
use crate::{Call, Engine, Error, Result, Undone};

/// The kind of an undo.
pub(crate) const UNDO: &str = "undo";

/// The kind of a redo.
pub(crate) const REDO: &str = "redo";

/// Returns whether a kind is undo or redo.
pub(crate) fn is_undo_or_redo(kind: &str) -> bool {
    matches!(kind, UNDO | REDO)
}

impl Engine {
    /// Undoes an operation; by default the newest that is in effect.
    pub fn undo(
        &self,
        call: &Call,
        conversation: &ConversationId,
        operation: Option<u64>,
    ) -> Result<Undone> {
        self.undo_or_redo(call, UNDO, conversation, operation)
    }

    /// Redoes an undone operation; by default the one undone last.
    pub fn redo(
        &self,
        call: &Call,
        conversation: &ConversationId,
        operation: Option<u64>,
    ) -> Result<Undone> {
        self.undo_or_redo(call, REDO, conversation, operation)
    }

    fn undo_or_redo(
        &self,
        call: &Call,
        verb: &'static str,
        id: &ConversationId,
        operation: Option<u64>,
    ) -> Result<Undone> {
        let payload = |(id, operation): &(ConversationId, Option<u64>)| {
            json::object([("conversation_id", text(id)), ("operation", (*operation).into())])
        };
        let request = (id.clone(), operation);
        let (done, _) = self.mutate(call, verb, request, payload, move |mutation, request| {
            let (id, operation) = request;
            let found = mutation.reader().conversation(&mutation.call.project, id)?;
            let found = found.ok_or_else(|| Error::not_found("conversation", id))?;
            mutation.open(found)?;
            match pick_action(mutation, verb, *operation)? {
                UndoAction::Undo(target) => undo(mutation, &target),
                UndoAction::Redo(target) => redo(mutation, &target),
            }
        })?;
        Ok(done)
    }
}

/// What a call does to its target. Undoing an undo is a redo, and the reverse.
enum UndoAction {
    Undo(Operation),
    Redo(Operation),
}

fn pick_action(
    mutation: &Mutation<'_>,
    verb: &'static str,
    wanted: Option<u64>,
) -> Result<UndoAction> {
    let records = mutation.reader();
    let key = mutation.key();
    if let Some(seq) = wanted {
        let found = records.operation(key, seq)?;
        let found = found.ok_or_else(|| Error::not_found("operation", seq))?;
        return match (found.kind.as_str(), verb) {
            (UNDO, UNDO) => Ok(UndoAction::Redo(target_of(records, &found)?)),
            (REDO, UNDO) => Ok(UndoAction::Undo(target_of(records, &found)?)),
            (UNDO | REDO, _) => Err(Error::invalid(format!(
                "operation {seq} is an {}; undo it instead",
                found.kind
            ))),
            (_, UNDO) => Ok(UndoAction::Undo(found)),
            _ => Ok(UndoAction::Redo(found)),
        };
    }
    if verb == REDO {
        let found = last_undone(records, key)?.map(UndoAction::Redo);
        return found
            .ok_or_else(|| Error::invalid("there is nothing to redo in this conversation"));
    }
    let mut newest = None;
    records.operations(key, 1, u64::MAX, &mut |operation| {
        if !operation.undone && !is_undo_or_redo(&operation.kind) {
            newest = Some(operation);
        }
        Ok(true)
    })?;
    newest
        .map(UndoAction::Undo)
        .ok_or_else(|| Error::invalid("there is nothing to undo in this conversation"))
}

/// Returns the operation that was undone last and still is.
fn last_undone(records: &dyn Read, key: tine_store::ConversationKey) -> Result<Option<Operation>> {
    let mut undos = Vec::new();
    records.operations(key, 1, u64::MAX, &mut |operation| {
        if operation.kind == UNDO {
            undos.push(operation);
        }
        Ok(true)
    })?;
    for undo in undos.iter().rev() {
        let target = target_of(records, undo)?;
        if target.undone {
            return Ok(Some(target));
        }
    }
    Ok(None)
}

fn target_of(records: &dyn Read, operation: &Operation) -> Result<Operation> {
    let seq = detail(operation)?.target_operation();
    let seq = required(seq, || format!("detail of operation {}", operation.seq))?;
    Ok(required(records.operation(operation.conversation, seq)?, || format!("operation {seq}"))?)
}

fn undo(mutation: &mut Mutation<'_>, target: &Operation) -> Result<Undone> {
    let seq = target.seq;
    if target.undone {
        return Err(Error::invalid(format!("operation {seq} is already undone")));
    }
    if target.kind == crate::maintenance::purge::KIND {
        let why =
            "a purge cannot be undone; to undo an earlier operation, give its number in the log";
        return Err(Error::Unsupported(why.to_owned()));
    }
    let changes = detail(target)?.changes;
    let dependents = dependents(mutation, target, &changes, seq, &[seq])?;
    if !dependents.is_empty() {
        return Err(Error::DependedOn { operation: seq, verb: "undone", by: dependents });
    }
    for change in &changes {
        check_current(mutation, target, change, ChangeSide::After)?;
    }
    // Structure first: tips are then set in the tree as it will be.
    for change in changes.iter().rev() {
        match change {
            LoggedChange::Split { whole, .. } => {
                let whole = locate(mutation, whole)?;
                mutation.records.delete_split(mutation.key(), whole)?;
            }
            LoggedChange::Hidden { .. } => mutation.records.delete_hidden(mutation.key(), seq)?,
            LoggedChange::Created { first, .. } => {
                let first = locate(mutation, first)?;
                let runs = mutation.tree().subtree(first)?;
                refuse_referenced(knowledge::references_to(mutation, &runs, &changes)?)?;
                let own = mutation.seq();
                mutation.hide(first, HiddenBy::Undo, own)?;
            }
            _ => {}
        }
    }
    slot_sync::after_undo(mutation, observed(&changes), true)?;
    // What is about turns that are hidden now was observed by this operation, and is retracted.
    let hidden = changes.iter().filter(|change| matches!(change, LoggedChange::Hidden { .. }));
    sync_slots(mutation, hidden)?;
    for change in changes.iter().rev() {
        put(mutation, target, change, ChangeSide::Before)?;
    }
    finish(mutation, target, true)
}

fn redo(mutation: &mut Mutation<'_>, target: &Operation) -> Result<Undone> {
    let seq = target.seq;
    if !target.undone {
        return Err(Error::invalid(format!("operation {seq} is not undone")));
    }
    let undo = last_undo_of(mutation, seq)?;
    let entry = detail(target)?;
    for dependency in &entry.depends_on {
        let found = mutation.reader().operation(mutation.key(), *dependency)?;
        if found.is_some_and(|found| found.undone) {
            let what = format!("operation {dependency}, on which it builds, is undone and");
            return Err(changed_since(target, what));
        }
    }
    let changes = &entry.changes;
    let undone = mutation.conversation().visibility == Visibility::Undone;
    if undone && !makes_conversation(changes) {
        let what = "the making of the conversation, on which it builds, is undone and".to_owned();
        return Err(changed_since(target, what));
    }
    let dependents = dependents(mutation, target, changes, undo, &[seq, undo])?;
    if !dependents.is_empty() {
        return Err(Error::DependedOn { operation: seq, verb: "redone", by: dependents });
    }
    for change in changes {
        check_current(mutation, target, change, ChangeSide::Before)?;
    }
    for change in changes {
        match change {
            LoggedChange::Created { .. } => mutation.records.delete_hidden(mutation.key(), undo)?,
            LoggedChange::Split { whole, left, right } => {
                let split = Split {
                    conversation: mutation.key(),
                    whole: locate(mutation, whole)?,
                    left: locate(mutation, left)?,
                    right: locate(mutation, right)?,
                    operation: seq,
                };
                mutation.records.insert_split(&split)?;
            }
            LoggedChange::Hidden { root, cascade } => {
                let by = if *cascade { HiddenBy::Cascade } else { HiddenBy::Reparent };
                let root = locate(mutation, root)?;
                if *cascade {
                    refuse_hidden_since(mutation, target, root, &entry.depends_on)?;
                    refuse_younger(mutation, target, root, undo)?;
                }
                mutation.hide(root, by, seq)?;
            }
            _ => {}
        }
    }
    slot_sync::after_undo(mutation, observed(changes), false)?;
    sync_slots(mutation, changes.iter())?;
    for change in changes {
        put(mutation, target, change, ChangeSide::After)?;
    }
    finish(mutation, target, false)
}

fn observed(changes: &[LoggedChange]) -> impl Iterator<Item = ObservationId> {
    changes.iter().filter_map(|change| match change {
        LoggedChange::Observed { id, .. } => Some(*id),
        _ => None,
    })
}

/// Synchronizes slots with the turns that were just hidden or shown.
fn sync_slots<'c>(
    mutation: &mut Mutation<'_>,
    changes: impl Iterator<Item = &'c LoggedChange>,
) -> Result<()> {
    for change in changes {
        let (root, cascade) = match change {
            LoggedChange::Hidden { root, cascade } => (root, *cascade),
            LoggedChange::Created { first, .. } => (first, true),
            _ => continue,
        };
        let runs = mutation.tree().runs(locate(mutation, root)?, cascade)?;
        slot_sync::after_hiding(mutation, &runs)?;
    }
    Ok(())
}

fn changed_since(target: &Operation, what: String) -> Error {
    let verb = if target.undone { "redone" } else { "undone" };
    Error::ChangedSince { operation: target.seq, verb, what }
}

/// Later operations that still hold and depend on any of `on`, or wrote the same records.
fn dependents(
    mutation: &Mutation<'_>,
    target: &Operation,
    changes: &[LoggedChange],
    after: u64,
    on: &[u64],
) -> Result<Vec<u64>> {
    let mut later = Vec::new();
    mutation.reader().operations(mutation.key(), after + 1, u64::MAX, &mut |operation| {
        if !operation.undone && !is_undo_or_redo(&operation.kind) {
            later.push(operation);
        }
        Ok(true)
    })?;
    // Every operation in a conversation depends on its root.
    let makes_conversation = makes_conversation(changes);
    let mut dependents = Vec::new();
    for operation in later.iter().filter(|operation| operation.seq != target.seq) {
        // What an erased entry did is unknown: it may build on anything before it. An erasure's
        // own entry holds no changes and builds on nothing.
        let depends = match &operation.detail {
            _ if makes_conversation => true,
            Detail::Purged(_) => true,
            Detail::Kept(_) => {
                let entry = detail(operation)?;
                entry.depends_on.iter().any(|seq| on.contains(seq))
                    || entry
                        .changes
                        .iter()
                        .any(|new| changes.iter().any(|old| old.same_record(new)))
            }
        };
        if depends {
            dependents.push(operation.seq);
        }
    }
    Ok(dependents)
}

/// Returns whether an operation made its conversation: undone, it leaves it as if it were not
/// there.
fn makes_conversation(changes: &[LoggedChange]) -> bool {
    let undone = visibility_json(Visibility::Undone);
    changes.iter().any(
        |change| matches!(change, LoggedChange::Conversation { before, .. } if *before == undone),
    )
}

/// The state of a record before or after an operation.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ChangeSide {
    Before,
    After,
}

impl ChangeSide {
    fn other(self) -> ChangeSide {
        match self {
            ChangeSide::Before => ChangeSide::After,
            ChangeSide::After => ChangeSide::Before,
        }
    }

    fn of<'a, T>(self, before: &'a T, after: &'a T) -> &'a T {
        match self {
            ChangeSide::Before => before,
            ChangeSide::After => after,
        }
    }
}

fn locate(mutation: &Mutation<'_>, id: &TurnId) -> Result<TurnLoc> {
    let found = mutation.reader().find_turn(&mutation.call.project, id)?;
    Ok(required(found, || format!("turn {id}"))?.1)
}

/// Refuses if a record is not in the state from which the operation is undone or redone. The log of
/// this conversation has been looked through already; this sees changes from elsewhere, and
/// whatever would leave the tree in disorder.
fn check_current(
    mutation: &Mutation<'_>,
    target: &Operation,
    change: &LoggedChange,
    side: ChangeSide,
) -> Result<()> {
    let refuse = |what: String| Err(changed_since(target, what));
    match change {
        LoggedChange::Branch { id, before, after } => {
            let expected = side.of(before, after).as_ref();
            let present = mutation.reader().branch_by_id(&mutation.call.project, id)?;
            let same = match (expected, &present) {
                (None, None) => true,
                (Some(image), Some(branch)) => {
                    image.name == branch.name && nearest_shown(mutation, image.tip)? == branch.tip
                }
                _ => false,
            };
            if !same {
                let name = expected.map_or_else(|| id.to_string(), |image| image.name.to_string());
                return refuse(format!("the branch `{name}`"));
            }
        }
        LoggedChange::Bookmark { name, before, after } => {
            let expected = side.of(before, after).as_ref();
            let present = mutation.reader().bookmark(&mutation.call.project, name)?;
            let present = present.map(|mark| mark.turn);
            let expected = match expected {
                Some(image) => nearest_shown_bookmark(mutation, image)?.map(|(_, loc)| loc),
                None => None,
            };
            if present != expected {
                return refuse(format!("the bookmark `{name}`"));
            }
        }
        LoggedChange::Metadata { turn, key, before, after } => {
            let loc = locate(mutation, turn)?;
            let present = mutation.tree().turn(loc)?.metadata.get(*key);
            if present != *side.of(before, after) {
                return refuse(format!("the {} of turn {turn}", key.as_str()));
            }
        }
        LoggedChange::Conversation { field, before, after } => {
            if field_value(mutation.conversation(), *field) != *side.of(before, after) {
                return refuse(format!("the {} of the conversation", field.as_str()));
            }
        }
        LoggedChange::Created { first, .. } if side == ChangeSide::After => {
            let loc = locate(mutation, first)?;
            if let TurnState::Gone(operation) | TurnState::Bridged(operation) =
                mutation.tree().state(loc)?
            {
                return refuse(format!(
                    "the turn {first} was deleted by operation {operation} and"
                ));
            }
        }
        LoggedChange::Hidden { root, .. } if side == ChangeSide::Before => {
            let loc = locate(mutation, root)?;
            if mutation.tree().state(loc)? != TurnState::Live {
                return refuse(format!("the turn {root}"));
            }
        }
        LoggedChange::Split { whole, .. } if side == ChangeSide::Before => {
            let loc = locate(mutation, whole)?;
            if mutation.tree().state(loc)? != TurnState::Live {
                return refuse(format!("the turn {whole}"));
            }
        }
        LoggedChange::Record { key, before, after } => {
            let present = mutation.reader().record(&mutation.call.project, key)?;
            if present.and_then(|record| record.json()) != *side.of(before, after) {
                return refuse("a knowledge record that it wrote".to_owned());
            }
            if key.family() == Family::Schema && side == ChangeSide::After {
                return Err(Error::Unsupported(
                    "registering a schema cannot be undone, because observations may use it; register \
                     the earlier version again"
                        .to_owned(),
                ));
            }
            let wanted = side.other().of(before, after).as_ref();
            let wanted = wanted.and_then(|json| Record::from_json(key.clone(), json).decode());
            if let Some(wanted) = wanted
                && knowledge::has_merge_cycle(&mutation.knowledge(), &wanted)?
            {
                return refuse("what it merges this entity into".to_owned());
            }
        }
        LoggedChange::Created { .. }
        | LoggedChange::Hidden { .. }
        | LoggedChange::Split { .. }
        | LoggedChange::Observed { .. } => {}
    }
    Ok(())
}

/// Returns the shown turn nearest to a logged tip.
fn nearest_shown(mutation: &Mutation<'_>, tip: Option<TurnId>) -> Result<Option<TurnLoc>> {
    match tip {
        None => Ok(None),
        Some(id) => mutation.tree().nearest_live(locate(mutation, &id)?),
    }
}

/// Returns the shown turn nearest to a logged bookmark, which may be in another conversation.
fn nearest_shown_bookmark(
    mutation: &Mutation<'_>,
    image: &BookmarkImage,
) -> Result<Option<(tine_store::ConversationKey, TurnLoc)>> {
    let found = mutation.reader().find_turn(&mutation.call.project, &image.turn)?;
    let (key, loc) = required(found, || format!("turn {}", image.turn))?;
    let live = Tree::new(mutation.reader(), key).nearest_live(loc)?;
    Ok(live.map(|loc| (key, loc)))
}

pub(crate) fn field_value(conversation: &Conversation, field: ConversationField) -> json::Json {
    match field {
        ConversationField::Title => conversation.title.clone().into(),
        ConversationField::Metadata => conversation.metadata.clone(),
        ConversationField::Visibility => visibility_json(conversation.visibility),
    }
}

/// Sets a record to its state on one side of the change.
fn put(
    mutation: &mut Mutation<'_>,
    target: &Operation,
    change: &LoggedChange,
    side: ChangeSide,
) -> Result<()> {
    match change {
        LoggedChange::Branch { id, before, after } => {
            let wanted = side.of(before, after).clone();
            put_branch(mutation, target, id, wanted.as_ref())
        }
        LoggedChange::Bookmark { name, before, after } => {
            let wanted = side.of(before, after).clone();
            let present = mutation.reader().bookmark(&mutation.call.project, name)?;
            let wanted = match &wanted {
                Some(image) => {
                    nearest_shown_bookmark(mutation, image)?.map(|(conversation, turn)| Bookmark {
                        project: mutation.call.project.clone(),
                        name: name.clone(),
                        conversation,
                        turn,
                        created_at: image.created_at,
                    })
                }
                None => None,
            };
            if present != wanted {
                mutation.change_bookmark(present.as_ref(), wanted.as_ref())?;
            }
            Ok(())
        }
        LoggedChange::Metadata { turn, key, before, after } => {
            let loc = locate(mutation, turn)?;
            let mut metadata = mutation.tree().turn(loc)?.metadata;
            metadata.set(*key, side.of(before, after).clone(), mutation.engine.limits())?;
            mutation.records.set_metadata(loc, &metadata)?;
            Ok(())
        }
        LoggedChange::Conversation { field, before, after } => {
            let value = side.of(before, after);
            let mut next = mutation.conversation().clone();
            match field {
                ConversationField::Title => next.title = value.as_str().map(str::to_owned),
                ConversationField::Metadata => next.metadata = value.clone(),
                ConversationField::Visibility => {
                    next.visibility = visibility_from(value).unwrap_or(Visibility::Shown);
                }
            }
            mutation.records.update_conversation(&next)?;
            mutation.conversation = Some(next);
            Ok(())
        }
        LoggedChange::Record { key, before, after } => {
            let project = &mutation.call.project;
            match side.of(before, after) {
                Some(wanted) => {
                    let record = Record::from_json(key.clone(), wanted);
                    mutation.records.put_record(project, &record)?;
                }
                None if mutation.reader().has(project, key)? => {
                    mutation.records.delete_record(project, key)?;
                }
                None => {}
            }
            Ok(())
        }
        LoggedChange::Created { .. }
        | LoggedChange::Hidden { .. }
        | LoggedChange::Split { .. }
        | LoggedChange::Observed { .. } => Ok(()),
    }
}

fn put_branch(
    mutation: &mut Mutation<'_>,
    target: &Operation,
    id: &tine_core::BranchId,
    wanted: Option<&BranchImage>,
) -> Result<()> {
    let key = mutation.key();
    let present = mutation.reader().branch_by_id(&mutation.call.project, id)?;
    let Some(image) = wanted else {
        return match present {
            Some(branch) => mutation.delete_branch(&branch),
            None => Ok(()),
        };
    };
    let namesake = mutation.reader().branch(key, &image.name)?;
    if namesake.is_some_and(|other| other.id != *id) {
        let what = format!("another branch has the name `{}`: it", image.name);
        return Err(changed_since(target, what));
    }
    let version =
        present.as_ref().map_or(image.version, |branch| branch.version.max(image.version));
    let branch = Branch {
        conversation: key,
        id: *id,
        name: image.name.clone(),
        tip: nearest_shown(mutation, image.tip)?,
        forked_from: image.forked_from,
        created_at: image.created_at,
        version: version + 1,
    };
    mutation.put_branch(present.as_ref(), &branch)
}

/// A deletion with all below it writes whether each of these turns is shown. An operation that has
/// hidden one of them since wrote the same record.
fn refuse_hidden_since(
    mutation: &Mutation<'_>,
    target: &Operation,
    root: TurnLoc,
    found_hidden_by: &[u64],
) -> Result<()> {
    let mut by = BTreeSet::new();
    for run in mutation.tree().subtree(root)? {
        let hidden = mutation.reader().hidden_in(mutation.key(), run.segment)?;
        let touched = hidden.iter().filter(|other| other.from <= run.to && run.from <= other.to);
        by.extend(touched.map(|other| other.operation));
    }
    by.retain(|operation| !found_hidden_by.contains(operation));
    if by.is_empty() {
        return Ok(());
    }
    let by = by.into_iter().collect();
    Err(Error::DependedOn { operation: target.seq, verb: "redone", by })
}

/// Redoing a deletion must not take away what came below the turn in the meantime.
fn refuse_younger(
    mutation: &Mutation<'_>,
    target: &Operation,
    root: TurnLoc,
    since: u64,
) -> Result<()> {
    let tree = mutation.tree();
    for run in tree.subtree(root)? {
        let last = tree.turn(TurnLoc { segment: run.segment, index: run.to })?;
        if last.operation > since && tree.state(last.loc)? == TurnState::Live {
            let what = format!("turn {}, made below it, shows that the tree", last.id);
            return Err(changed_since(target, what));
        }
    }
    Ok(())
}

fn last_undo_of(mutation: &Mutation<'_>, seq: u64) -> Result<u64> {
    let mut last = None;
    let mut undos = Vec::new();
    mutation.reader().operations(mutation.key(), seq + 1, u64::MAX, &mut |operation| {
        if operation.kind == UNDO {
            undos.push(operation);
        }
        Ok(true)
    })?;
    for undo in &undos {
        if target_of(mutation.reader(), undo)?.seq == seq {
            last = Some(undo.seq);
        }
    }
    Ok(required(last, || format!("undo of operation {seq}"))?)
}

/// Marks the target, checks that nothing dangles, and answers.
fn finish(mutation: &mut Mutation<'_>, target: &Operation, undone: bool) -> Result<Undone> {
    let key = mutation.key();
    mutation.records.set_undone(key, target.seq, undone)?;
    let tree = mutation.tree();
    for branch in mutation.reader().branches(key)? {
        if let Some(tip) = branch.tip
            && tree.state(tip)? != TurnState::Live
        {
            return Err(changed_since(target, format!("the branch `{}`", branch.name)));
        }
    }
    for bookmark in mutation.reader().bookmarks_in(key)? {
        if tree.state(bookmark.turn)? != TurnState::Live {
            return Err(changed_since(target, format!("the bookmark `{}`", bookmark.name)));
        }
    }
    // The log entry of an undo names its target; its own changes would only repeat the target's in
    // reverse.
    mutation.forget_changes();
    mutation.fact("operation", target.seq);
    Ok(Undone { target: target.seq, kind: target.kind.clone(), seq: mutation.seq() })
}
