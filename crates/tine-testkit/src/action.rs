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
pub enum Action {
    /// [`Engine::create_conversation`]
    Create(NewConversation),
    /// [`Engine::derive`]
    Derive(Derive),
    /// [`Engine::patch_conversation`]
    PatchConversation(ConversationId, ConversationPatch),
    /// [`Engine::append`]
    Append(Append),
    /// [`Engine::fork`]
    Fork(Fork),
    /// [`Engine::rename_branch`]
    Rename(ConversationId, String, Name),
    /// [`Engine::delete_branch`]
    DropBranch(ConversationId, String),
    /// [`Engine::revert`]
    Revert(MoveBranch),
    /// [`Engine::restore`]
    Restore(MoveBranch),
    /// [`Engine::edit`]
    Edit(Edit),
    /// [`Engine::split`]
    Split(SplitTurn),
    /// [`Engine::delete`]
    Delete(Delete),
    /// [`Engine::purge`] of a turn, asked and confirmed.
    Purge(TurnRef),
    /// [`Engine::set_bookmark`]
    SetBookmark(Name, TurnRef),
    /// [`Engine::delete_bookmark`]
    DropBookmark(Name),
    /// [`Engine::patch_metadata`]
    Patch(TurnRef, MetadataPatch),
    /// [`Engine::undo`]
    Undo(ConversationId, Option<u64>),
    /// [`Engine::redo`]
    Redo(ConversationId, Option<u64>),
}

/// What a call answered.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum Answer {
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
pub fn perform(engine: &Engine, call: &Call, action: &Action) -> Result<Answer> {
    Ok(match action.clone() {
        Action::Create(new) => Answer::Conversation(engine.create_conversation(call, new)?),
        Action::Derive(derive) => Answer::Derived(engine.derive(call, derive)?),
        Action::PatchConversation(id, patch) => {
            Answer::Conversation(engine.patch_conversation(call, &id, patch)?)
        }
        Action::Append(append) => Answer::Appended(engine.append(call, append)?),
        Action::Fork(fork) => Answer::Branch(engine.fork(call, fork)?),
        Action::Rename(id, branch, name) => {
            Answer::Branch(engine.rename_branch(call, &id, &branch, name)?)
        }
        Action::DropBranch(id, branch) => {
            engine.delete_branch(call, &id, &branch)?;
            Answer::Done
        }
        Action::Revert(revert) => Answer::Branch(engine.revert(call, revert)?),
        Action::Restore(restore) => Answer::Branch(engine.restore(call, restore)?),
        Action::Edit(edit) => Answer::Edited(engine.edit(call, edit)?),
        Action::Split(split) => Answer::Split(Box::new(engine.split(call, split)?)),
        Action::Delete(delete) => Answer::Deleted(engine.delete(call, delete)?),
        Action::Purge(turn) => {
            let target = PurgeTarget::Turn(turn);
            let asked = engine.purge(call, Purge { target: target.clone(), confirm: None })?;
            Answer::Purged(engine.purge(call, Purge { target, confirm: asked.confirm })?)
        }
        Action::SetBookmark(name, turn) => Answer::Bookmark(engine.set_bookmark(call, name, turn)?),
        Action::DropBookmark(name) => {
            engine.delete_bookmark(call, &name)?;
            Answer::Done
        }
        Action::Patch(turn, patch) => Answer::Turn(engine.patch_metadata(call, turn, patch)?),
        Action::Undo(id, operation) => Answer::Undone(engine.undo(call, &id, operation)?),
        Action::Redo(id, operation) => Answer::Undone(engine.redo(call, &id, operation)?),
    })
}

/// A call on one line, for people.
pub fn told_briefly(action: &Action) -> String {
    let at = |turn: &TurnRef| turn.turn.as_str().to_owned();
    let or = |text: Option<&str>, otherwise: &str| text.unwrap_or(otherwise).to_owned();
    match action {
        Action::Append(append) => {
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
        Action::Fork(fork) => match &fork.point {
            ForkPoint::At(turn) => format!("fork at {} as {:?}", turn.as_str(), fork.name),
            ForkPoint::Before(turn) => format!("fork before {} as {:?}", turn.as_str(), fork.name),
        },
        Action::Edit(edit) => {
            let (body, branch) = (&edit.body, or(edit.branch.as_deref(), "no branch"));
            let distinct = if edit.reuse { "" } else { ", distinct" };
            format!("edit {} to {body:?} for {branch}{distinct}", at(&edit.turn))
        }
        Action::Split(split) => format!("split {} at {}", at(&split.turn), split.offset),
        Action::Delete(delete) => {
            let dry = if delete.dry_run { ", dry run" } else { "" };
            format!("delete {} by {:?}{dry}", at(&delete.turn), delete.mode)
        }
        Action::Purge(turn) => format!("purge {}", at(turn)),
        Action::SetBookmark(name, turn) => format!("bookmark {name} on {}", at(turn)),
        Action::Patch(turn, patch) => format!("patch {}: {patch:?}", at(turn)),
        Action::Revert(moved) | Action::Restore(moved) => {
            let verb = if matches!(action, Action::Revert(_)) { "revert" } else { "restore" };
            let to = moved.to.as_ref().map(|to| to.as_str());
            format!("{verb} {} of {} to {}", moved.branch, moved.conversation, or(to, "-"))
        }
        Action::Undo(id, seq) => format!("undo {seq:?} of {id}"),
        Action::Redo(id, seq) => format!("redo {seq:?} of {id}"),
        other => format!("{other:?}"),
    }
}
