//! From a call to everything that its answer and its consequences may be.

use tine_core::{ErrorKind, Timestamp};
use tine_engine::Outcome;

use super::{Ix, Recorded, ReferenceModel, Stop};
use crate::action::EngineAction;

/// What a call that succeeds must answer, in the model's own handles.
#[derive(Clone, Debug)]
pub enum Expected {
    Conversation(Ix),
    Derived {
        conversation: Ix,
        created: bool,
        turns: usize,
    },
    Appended {
        turns: Vec<(Ix, Outcome)>,
        branch: Ix,
        forked: bool,
    },
    Branch(Ix),
    Edited {
        turn: Ix,
        outcome: Outcome,
        branch: Option<Ix>,
    },
    Split {
        whole: Ix,
        left: Ix,
        right: Ix,
    },
    Deleted {
        turn: Ix,
        turns: usize,
        moved_branches: Vec<Ix>,
        moved_bookmarks: Vec<String>,
        removed_bookmarks: Vec<String>,
        dry_run: bool,
    },
    Purged(Vec<Ix>),
    Bookmark {
        name: String,
        turn: Ix,
    },
    Turn(Ix),
    Undone {
        target: u64,
    },
    Done,
    /// The answer of an earlier call again.
    Replay {
        undone: bool,
    },
}

/// What may come of a call.
#[derive(Clone, Debug)]
pub struct Prediction {
    /// The world after success, what the answer says, and in which log it is recorded; `None`
    /// when it must be refused.
    pub success: Option<(ReferenceModel, Expected, Recorded)>,
    /// The kinds with which it may be refused.
    pub refusals: Vec<ErrorKind>,
}

impl ReferenceModel {
    /// Says what comes of a call; `None` where the contract says nothing.
    pub fn predict(
        &self,
        action: &EngineAction,
        key: Option<&str>,
        now: Timestamp,
    ) -> Option<Prediction> {
        let fingerprint = format!("{action:?}");
        // A preview changes nothing, so there is nothing to repeat.
        let key = key.filter(|_| !matches!(action, EngineAction::Delete(delete) if delete.dry_run));
        if let Some((used, op)) = key.and_then(|key| self.keys.get(key)) {
            if *used != fingerprint {
                let mut refusals = vec![ErrorKind::IdempotencyMismatch];
                let mut world = self.clone();
                match world.apply(action, now, true) {
                    Err(Stop::Refuse(kinds)) => refusals.extend(kinds),
                    Err(Stop::Unspecified) => return None,
                    Ok(_) => {}
                }
                return Some(Prediction { success: None, refusals });
            }
            let undone = op.is_some_and(|op| self.ops[op].undone.is_some());
            let success = Some((self.clone(), Expected::Replay { undone }, Recorded::No));
            return Some(Prediction { success, refusals: vec![] });
        }
        let mut world = self.clone();
        match world.apply(action, now, key.is_some()) {
            Err(Stop::Unspecified) => None,
            Err(Stop::Refuse(mut refusals)) => {
                // Of two faults either may be reported.
                refusals.append(&mut world.tolerated);
                Some(Prediction { success: None, refusals })
            }
            Ok((expected, recorded)) => {
                let refusals = std::mem::take(&mut world.tolerated);
                if let Expected::Deleted { dry_run: true, .. } = expected {
                    let success = Some((self.clone(), expected, Recorded::No));
                    return Some(Prediction { success, refusals });
                }
                if let Some(key) = key {
                    let op = (recorded == Recorded::Yes).then(|| world.ops.len() - 1);
                    world.keys.insert(key.to_owned(), (fingerprint, op));
                }
                Some(Prediction { success: Some((world, expected, recorded)), refusals })
            }
        }
    }

    fn apply(
        &mut self,
        action: &EngineAction,
        now: Timestamp,
        keyed: bool,
    ) -> Result<(Expected, Recorded), Stop> {
        self.open = super::Op::default();
        self.tolerated.clear();
        let (conversation, expected, kind) = match action {
            EngineAction::Create(new) => {
                let expected = self.create(new, now)?;
                (self.conversations.len() - 1, expected, "create")
            }
            EngineAction::Derive(derive) => {
                let expected = self.derive(derive, now)?;
                let Expected::Derived { conversation, .. } = expected else {
                    unreachable!("derive answers what was derived")
                };
                (conversation, expected, "derive")
            }
            EngineAction::PatchConversation(id, patch) => {
                (self.conversation(id)?, self.patch_conversation(id, patch)?, "patch")
            }
            EngineAction::Append(append) => {
                let expected = self.append(append, now)?;
                (self.conversation(&append.conversation)?, expected, "append")
            }
            EngineAction::Fork(fork) => {
                let expected = self.fork(fork)?;
                (self.branches[self.branches.len() - 1].conversation, expected, "fork")
            }
            EngineAction::Rename(id, branch, name) => {
                (self.conversation(id)?, self.rename(id, branch, name)?, "rename")
            }
            EngineAction::DropBranch(id, branch) => {
                (self.conversation(id)?, self.drop_branch(id, branch)?, "drop-branch")
            }
            EngineAction::Revert(request) => {
                (self.conversation(&request.conversation)?, self.revert(request)?, "revert")
            }
            EngineAction::Restore(request) => {
                (self.conversation(&request.conversation)?, self.restore(request)?, "restore")
            }
            EngineAction::Edit(edit) => {
                let expected = self.edit(edit, now)?;
                (self.conversation_of(&expected), expected, "edit")
            }
            EngineAction::Split(split) => {
                let expected = self.split(split)?;
                (self.conversation_of(&expected), expected, "split")
            }
            EngineAction::Delete(delete) => {
                let expected = self.delete(delete)?;
                (self.conversation_of(&expected), expected, "delete")
            }
            EngineAction::Purge(turn) => {
                let (conversation, expected) = self.purge(turn)?;
                (conversation, expected, "purge")
            }
            EngineAction::SetBookmark(name, turn) => {
                let expected = self.set_bookmark(name, turn)?;
                (self.conversation_of(&expected), expected, "bookmark")
            }
            EngineAction::DropBookmark(name) => {
                let (conversation, expected) = self.drop_bookmark(name)?;
                (conversation, expected, "drop-bookmark")
            }
            EngineAction::Patch(turn, patch) => {
                let expected = self.patch(turn, patch)?;
                (self.conversation_of(&expected), expected, "metadata")
            }
            EngineAction::Undo(id, seq) => {
                let (conversation, expected) = self.undo(id, *seq)?;
                (conversation, expected, "undo")
            }
            EngineAction::Redo(id, seq) => {
                let (conversation, expected) = self.redo(id, *seq)?;
                (conversation, expected, "redo")
            }
        };
        let recorded = self.record(conversation, kind, keyed);
        Ok((expected, recorded))
    }

    fn conversation_of(&self, expected: &Expected) -> Ix {
        match expected {
            Expected::Edited { turn, .. }
            | Expected::Deleted { turn, .. }
            | Expected::Bookmark { turn, .. }
            | Expected::Turn(turn)
            | Expected::Split { whole: turn, .. } => self.nodes[*turn].conversation,
            _ => unreachable!("only answers that name a turn are asked for its conversation"),
        }
    }
}
