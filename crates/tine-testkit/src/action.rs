//! One call of the engine as data, and its answer as data, so that two engines and the model can
//! be asked the same thing and their answers compared.
//!
//! Reading calls are not here: they are made by the checks after each step.

use tine_core::{ConversationId, Name};
use tine_engine::{
    Append, Appended, BookmarkView, BranchView, Call, ConversationPatch, ConversationView, Delete,
    Deleted, Derive, Derived, Edit, Edited, Engine, Fork, ForkPoint, MetadataPatch, MoveBranch,
    NewConversation, Purge, PurgeTarget, Purged, Result, SplitDone, SplitTurn, TurnRef, TurnView,
    Undone,
};

/// A call that changes something.
#[derive(Clone, Debug)]
pub enum EngineAction {
    Create(NewConversation),
    Derive(Derive),
    PatchConversation(ConversationId, ConversationPatch),
    Append(Append),
    Fork(Fork),
    Rename(ConversationId, String, Name),
    DropBranch(ConversationId, String),
    Revert(MoveBranch),
    Restore(MoveBranch),
    Edit(Edit),
    Split(SplitTurn),
    Delete(Delete),
    /// [`Engine::purge`] of a turn, asked and confirmed.
    Purge(TurnRef),
    SetBookmark(Name, TurnRef),
    DropBookmark(Name),
    Patch(TurnRef, MetadataPatch),
    Undo(ConversationId, Option<u64>),
    Redo(ConversationId, Option<u64>),
}

/// What a call answered.
#[derive(Clone, Debug, PartialEq)]
pub enum EngineAnswer {
    Conversation(ConversationView),
    Derived(Derived),
    Appended(Appended),
    Branch(BranchView),
    Edited(Edited),
    Split(Box<SplitDone>),
    Deleted(Deleted),
    Purged(Purged),
    Bookmark(BookmarkView),
    Turn(TurnView),
    Undone(Undone),
    Done,
}

/// Makes the call.
pub fn perform(engine: &Engine, call: &Call, action: &EngineAction) -> Result<EngineAnswer> {
    Ok(match action.clone() {
        EngineAction::Create(new) => {
            EngineAnswer::Conversation(engine.create_conversation(call, new)?)
        }
        EngineAction::Derive(derive) => EngineAnswer::Derived(engine.derive(call, derive)?),
        EngineAction::PatchConversation(id, patch) => {
            EngineAnswer::Conversation(engine.patch_conversation(call, &id, patch)?)
        }
        EngineAction::Append(append) => EngineAnswer::Appended(engine.append(call, append)?),
        EngineAction::Fork(fork) => EngineAnswer::Branch(engine.fork(call, fork)?),
        EngineAction::Rename(id, branch, name) => {
            EngineAnswer::Branch(engine.rename_branch(call, &id, &branch, name)?)
        }
        EngineAction::DropBranch(id, branch) => {
            engine.delete_branch(call, &id, &branch)?;
            EngineAnswer::Done
        }
        EngineAction::Revert(revert) => EngineAnswer::Branch(engine.revert(call, revert)?),
        EngineAction::Restore(restore) => EngineAnswer::Branch(engine.restore(call, restore)?),
        EngineAction::Edit(edit) => EngineAnswer::Edited(engine.edit(call, edit)?),
        EngineAction::Split(split) => EngineAnswer::Split(Box::new(engine.split(call, split)?)),
        EngineAction::Delete(delete) => EngineAnswer::Deleted(engine.delete(call, delete)?),
        EngineAction::Purge(turn) => {
            let target = PurgeTarget::Turn(turn);
            let asked = engine.purge(call, Purge { target: target.clone(), confirm: None })?;
            EngineAnswer::Purged(engine.purge(call, Purge { target, confirm: asked.confirm })?)
        }
        EngineAction::SetBookmark(name, turn) => {
            EngineAnswer::Bookmark(engine.set_bookmark(call, name, turn)?)
        }
        EngineAction::DropBookmark(name) => {
            engine.delete_bookmark(call, &name)?;
            EngineAnswer::Done
        }
        EngineAction::Patch(turn, patch) => {
            EngineAnswer::Turn(engine.patch_metadata(call, turn, patch)?)
        }
        EngineAction::Undo(id, operation) => {
            EngineAnswer::Undone(engine.undo(call, &id, operation)?)
        }
        EngineAction::Redo(id, operation) => {
            EngineAnswer::Undone(engine.redo(call, &id, operation)?)
        }
    })
}

/// Returns a call on one line, for people.
pub fn summarize(action: &EngineAction) -> String {
    let at = |turn: &TurnRef| turn.turn.as_str().to_owned();
    let or = |text: Option<&str>, otherwise: &str| text.unwrap_or(otherwise).to_owned();
    match action {
        EngineAction::Append(append) => {
            let said: Vec<String> = append
                .messages
                .iter()
                .map(|message| format!("{} {:?}", message.role.as_str(), message.body))
                .collect();
            let parent = append.parent.as_ref().map(|parent| parent.as_str());
            let expected = append.expected_tip.as_ref().map(|tip| tip.as_str());
            format!(
                "append {} under {} on {}: [{}]{}{}",
                append.conversation,
                or(parent, "the tip"),
                or(append.branch.as_deref(), "main (by default)"),
                said.join(", "),
                expected
                    .map(|tip| format!(", expecting {tip}, else {:?}", append.on_conflict))
                    .unwrap_or_default(),
                if append.reuse { "" } else { ", distinct" },
            )
        }
        EngineAction::Fork(fork) => match &fork.point {
            ForkPoint::At(turn) => format!("fork at {} as {:?}", turn.as_str(), fork.name),
            ForkPoint::Before(turn) => format!("fork before {} as {:?}", turn.as_str(), fork.name),
        },
        EngineAction::Edit(edit) => {
            let (body, branch) = (&edit.body, or(edit.branch.as_deref(), "no branch"));
            let distinct = if edit.reuse { "" } else { ", distinct" };
            format!("edit {} to {body:?} for {branch}{distinct}", at(&edit.turn))
        }
        EngineAction::Split(split) => format!("split {} at {}", at(&split.turn), split.offset),
        EngineAction::Delete(delete) => {
            let dry = if delete.dry_run { ", dry run" } else { "" };
            format!("delete {} by {:?}{dry}", at(&delete.turn), delete.mode)
        }
        EngineAction::Purge(turn) => format!("purge {}", at(turn)),
        EngineAction::SetBookmark(name, turn) => format!("bookmark {name} on {}", at(turn)),
        EngineAction::Patch(turn, patch) => format!("patch {}: {patch:?}", at(turn)),
        EngineAction::Revert(moved) | EngineAction::Restore(moved) => {
            let verb = if matches!(action, EngineAction::Revert(_)) { "revert" } else { "restore" };
            let to = moved.to.as_ref().map(|to| to.as_str());
            format!("{verb} {} of {} to {}", moved.branch, moved.conversation, or(to, "-"))
        }
        EngineAction::Undo(id, seq) => format!("undo {seq:?} of {id}"),
        EngineAction::Redo(id, seq) => format!("redo {seq:?} of {id}"),
        other => format!("{other:?}"),
    }
}
