//! Compares an answer with what the model expected, and learns the ids in it.

use tine_core::{Digest, TurnId};
use tine_engine::{BranchView, Outcome, TurnView};
use tine_store::Content;

use super::{Checked, Machine};
use crate::action::EngineAnswer;
use crate::model::{Expected, Ix};

/// Returns the comparison of two things that must be equal.
pub(crate) fn same<T: PartialEq + std::fmt::Debug>(what: &str, got: &T, want: &T) -> Checked {
    if got == want {
        return Ok(());
    }
    Err(format!("{what} differs\n  engine: {got:?}\n  model:  {want:?}"))
}

/// What is kept of an erased turn is the store's own business.
pub(crate) fn without_digest(mut view: TurnView) -> TurnView {
    if let Content::Purged(_) = view.content {
        view.content = Content::Purged(Digest([0; 32]));
    }
    view
}

impl Machine {
    /// Takes the ids of new turns and branches from an answer.
    pub(crate) fn learn(&mut self, expected: &Expected, answer: &EngineAnswer) -> Checked {
        match (expected, answer) {
            (Expected::Appended { turns, branch, .. }, EngineAnswer::Appended(got)) => {
                same("the number of turns", &got.turns.len(), &turns.len())?;
                for ((turn, outcome), view) in turns.iter().zip(&got.turns) {
                    if *outcome == Outcome::Created {
                        self.learn_turn(*turn, view.id)?;
                    }
                }
                self.learn_branch(*branch, &got.branch)
            }
            (Expected::Branch(branch), EngineAnswer::Branch(view)) => {
                self.learn_branch(*branch, view)
            }
            (
                Expected::Edited { turn, outcome: Outcome::Created, .. },
                EngineAnswer::Edited(got),
            ) => self.learn_turn(*turn, got.turn.id),
            (Expected::Split { left, right, .. }, EngineAnswer::Split(got)) => {
                // Which half of a broken-off turn is the broken one is left open.
                self.model.nodes[*left].status = got.left.status;
                self.model.nodes[*right].status = got.right.status;
                self.learn_turn(*left, got.left.id)?;
                self.learn_turn(*right, got.right.id)
            }
            (Expected::Conversation(ix), _) => self.learn_main(*ix),
            (Expected::Derived { conversation, created, .. }, EngineAnswer::Derived(got)) => {
                self.learn_main(*conversation)?;
                if *created {
                    let view = &got.conversation;
                    self.model.adopt_fields(*conversation, &view.title, &view.metadata);
                }
                self.learn_copies(*conversation)
            }
            _ => Ok(()),
        }
    }

    fn learn_turn(&mut self, turn: Ix, id: TurnId) -> Checked {
        if !self.ids.insert(id) {
            return Err(format!("the id {id} was given before"));
        }
        self.model.nodes[turn].id = Some(id);
        Ok(())
    }

    fn learn_branch(&mut self, branch: Ix, view: &BranchView) -> Checked {
        match self.model.branches[branch].id {
            Some(id) => same("the branch's id", &view.id, &id),
            None => {
                if self.model.branches.iter().any(|other| other.id == Some(view.id)) {
                    return Err(format!("the branch id {} was given before", view.id));
                }
                self.model.branches[branch].id = Some(view.id);
                Ok(())
            }
        }
    }

    fn learn_main(&mut self, conversation: Ix) -> Checked {
        let id = self.model.conversations[conversation].id.clone();
        let branches = self.memory.branches(&self.call, &id).map_err(|error| error.to_string())?;
        for view in branches {
            let known = self.model.branches_of(conversation);
            let found = known.iter().find(|(name, _)| name == view.name.as_str());
            if let Some((_, branch)) = found {
                self.learn_branch(*branch, &view)?;
            }
        }
        Ok(())
    }

    /// Turns that a derivation took over: times and metadata are the engine's choice.
    fn learn_copies(&mut self, conversation: Ix) -> Checked {
        let main = self.model.branches_of(conversation);
        let tip = main.iter().find(|(name, _)| name == "main").map(|(_, branch)| *branch);
        let path = self.model.path(tip.and_then(|branch| self.model.tip(branch)));
        let views = self.whole_path(&self.memory, conversation, "main")?;
        for (turn, view) in path.into_iter().zip(views) {
            if self.model.nodes[turn].id.is_none() {
                self.learn_turn(turn, view.id)?;
                self.model.adopt(turn, view.created_at, view.status, &view.metadata);
            }
        }
        Ok(())
    }

    /// Compares an answer with what was expected.
    pub(crate) fn judge(&self, expected: &Expected, answer: &EngineAnswer) -> Checked {
        match (expected, answer) {
            (Expected::Appended { turns, branch, forked }, EngineAnswer::Appended(got)) => {
                for ((turn, outcome), view) in turns.iter().zip(&got.turns) {
                    self.judge_turn(*turn, view)?;
                    same("the outcome", &view.outcome, &Some(*outcome))?;
                }
                self.judge_branch(*branch, &got.branch)?;
                same("forked", &got.forked, forked)?;
                same("replayed, undone", &(got.replayed, got.undone), &(false, false))
            }
            (Expected::Branch(branch), EngineAnswer::Branch(view)) => {
                self.judge_branch(*branch, view)
            }
            (Expected::Edited { turn, outcome, branch }, EngineAnswer::Edited(got)) => {
                self.judge_turn(*turn, &got.turn)?;
                same("the outcome", &got.turn.outcome, &Some(*outcome))?;
                same("whether a branch moved", &got.branch.is_some(), &branch.is_some())?;
                match (branch, &got.branch) {
                    (Some(branch), Some(view)) => self.judge_branch(*branch, view),
                    _ => Ok(()),
                }
            }
            (Expected::Split { whole, left, right }, EngineAnswer::Split(got)) => {
                same("the whole", &Some(got.whole), &self.model.nodes[*whole].id)?;
                self.judge_turn(*left, &got.left)?;
                self.judge_turn(*right, &got.right)
            }
            (Expected::Turn(turn), EngineAnswer::Turn(view)) => self.judge_turn(*turn, view),
            (Expected::Deleted { turn, turns, dry_run, .. }, EngineAnswer::Deleted(got)) => {
                same("the turn", &Some(got.turn), &self.model.nodes[*turn].id)?;
                same("turns deleted", &got.turns, turns)?;
                same("dry run", &got.dry_run, dry_run)?;
                self.judge_moved(expected, got)
            }
            (Expected::Purged(turns), EngineAnswer::Purged(got)) => {
                let mut want: Vec<_> =
                    turns.iter().filter_map(|turn| self.model.nodes[*turn].id).collect();
                let mut got = got.turns.clone();
                want.sort();
                got.sort();
                same("the erased turns", &got, &want)
            }
            (Expected::Bookmark { name, turn }, EngineAnswer::Bookmark(got)) => {
                same("the bookmark", &got.name.as_str(), &name.as_str())?;
                let node = &self.model.nodes[*turn];
                same("its turn", &(Some(got.turn), got.turn_hash), &(node.id, node.hash))
            }
            (Expected::Conversation(ix), EngineAnswer::Conversation(got)) => {
                same("the conversation", &got.id, &self.model.conversations[*ix].id)
            }
            (Expected::Derived { conversation, created, turns }, EngineAnswer::Derived(got)) => {
                let id = &self.model.conversations[*conversation].id;
                same("the derivative", &got.conversation.id, id)?;
                same("created, turns", &(got.created, got.turns), &(*created, *turns))
            }
            (Expected::Undone { target }, EngineAnswer::Undone(got)) => {
                same("the operation", &got.target, target)
            }
            (Expected::Done, EngineAnswer::Done) | (Expected::Replay { .. }, _) => Ok(()),
            _ => Err(format!("an answer of another sort: {answer:?}")),
        }
    }

    fn judge_moved(&self, expected: &Expected, got: &tine_engine::Deleted) -> Checked {
        let Expected::Deleted { moved_branches, moved_bookmarks, removed_bookmarks, .. } = expected
        else {
            return Ok(());
        };
        let mut want: Vec<_> =
            moved_branches.iter().filter_map(|branch| self.model.branches[*branch].id).collect();
        let mut moved: Vec<_> = got.moved_branches.iter().map(|branch| branch.id).collect();
        want.sort();
        moved.sort();
        same("the branches that moved", &moved, &want)?;
        let names = |names: &[tine_core::Name]| -> Vec<String> {
            names.iter().map(ToString::to_string).collect()
        };
        same("the bookmarks that moved", &names(&got.moved_bookmarks), moved_bookmarks)?;
        same("the bookmarks removed", &names(&got.removed_bookmarks), removed_bookmarks)
    }

    fn judge_turn(&self, turn: Ix, got: &TurnView) -> Checked {
        let want = without_digest(self.model.view(turn));
        let got = TurnView { outcome: None, ..without_digest(got.clone()) };
        same("the turn", &got, &want)
    }

    fn judge_branch(&self, branch: Ix, got: &BranchView) -> Checked {
        let tip = self.model.tip(branch);
        let id = tip.and_then(|tip| self.model.nodes[tip].id);
        let hash = tip.map(|tip| self.model.nodes[tip].hash);
        same("the tip", &(got.tip, got.tip_hash), &(id, hash))?;
        same("the branch's name", &got.name.to_string(), &self.model.name_of(branch))?;
        same("the branch's id", &Some(got.id), &self.model.branches[branch].id)
    }

    /// Returns the first answer again, and nothing else.
    pub(crate) fn judge_replay(
        &self,
        key: &str,
        expected: &Expected,
        got: &EngineAnswer,
    ) -> Checked {
        let Expected::Replay { undone } = expected else { return Ok(()) };
        let first = &self.answers[key];
        if let EngineAnswer::Appended(got) = got {
            same("replayed, undone", &(got.replayed, got.undone), &(true, *undone))?;
        }
        same("what a replay names", &names_in(got), &names_in(first))
    }
}

/// Ids and outcomes of an answer: what is the same whenever it is given.
fn names_in(answer: &EngineAnswer) -> Vec<String> {
    match answer {
        EngineAnswer::Appended(got) => {
            let turns = got.turns.iter().map(|view| format!("{} {:?}", view.id, view.outcome));
            turns.chain([got.branch.id.to_string(), got.forked.to_string()]).collect()
        }
        EngineAnswer::Branch(branch) => vec![branch.id.to_string()],
        EngineAnswer::Edited(got) => {
            vec![got.turn.id.to_string(), format!("{:?}", got.turn.outcome)]
        }
        EngineAnswer::Split(got) => {
            [got.whole, got.left.id, got.right.id].map(|id| id.to_string()).into()
        }
        EngineAnswer::Deleted(got) => vec![got.turn.to_string(), got.turns.to_string()],
        EngineAnswer::Bookmark(got) => vec![got.name.to_string(), got.turn.to_string()],
        EngineAnswer::Turn(view) => vec![view.id.to_string()],
        EngineAnswer::Conversation(view) => vec![view.id.to_string()],
        EngineAnswer::Derived(got) => vec![got.conversation.id.to_string(), got.turns.to_string()],
        EngineAnswer::Undone(got) => vec![got.target.to_string(), got.seq.to_string()],
        EngineAnswer::Purged(_) | EngineAnswer::Done => vec![],
    }
}
