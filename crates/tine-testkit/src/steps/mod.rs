//! Random sequences of operations, in a form that shrinks well.
//!
//! A [`Step`] names nothing: it holds small numbers that are taken modulo whatever is there when
//! its turn comes ([`Step::resolve`]), so that leaving a step out leaves the others meaningful.
//! Texts come from a tiny alphabet: equal messages, equal siblings and characters of several
//! scalar values are the normal case.

mod generate;
mod pick;
mod said;

use tine_core::{Body, Message, Metadata, Reference, Status, Timestamp, json};
use tine_engine::{
    Append, ConversationPatch, Delete, DeleteMode, Derive, Edit, Fork, ForkPoint, MoveBranch,
    NewConversation, OnConflict, SplitTurn, TurnRef,
};

use crate::action::Action;
use crate::model::{Key, Model, Op, Value};

pub use self::generate::script;
pub use self::pick::Pick;
pub use self::said::Said;

use self::pick::{
    BRANCHES, branch_text, conversation, mint, moving, name, nth, reference, seq_back, side_branch,
    splittable,
};
use self::said::{TEXTS, patch};

const MARKS: [&str; 4] = ["here", "there", "one", "main"];
const PROMPTS: [Option<&str>; 3] = [None, Some("be brief"), Some("be kind")];

/// Where an append starts.
#[derive(Clone, Copy, Debug)]
pub enum Start {
    /// Not said.
    Tip,
    /// The root.
    Root,
    /// Any turn.
    At(Pick),
}

/// One operation, not yet tied to anything.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub enum Step {
    Create {
        prompt: u8,
    },
    Derive {
        of: u8,
        prompt: u8,
        at: Option<Pick>,
    },
    Append {
        to: u8,
        start: Start,
        branch: Option<u8>,
        expect: Option<Pick>,
        fork: bool,
        reuse: bool,
        messages: Vec<Said>,
    },
    Resend {
        to: u8,
        branch: u8,
        cut: u8,
        more: Vec<Said>,
    },
    Fork {
        at: Pick,
        before: bool,
        name: Option<u8>,
    },
    Rename {
        of: u8,
        branch: u8,
        name: u8,
    },
    DropBranch {
        of: u8,
        branch: u8,
    },
    Revert {
        of: u8,
        branch: u8,
        back: u8,
    },
    RevertTo {
        to: Pick,
        branch: u8,
    },
    Restore {
        of: u8,
        branch: u8,
    },
    RestoreTo {
        to: Pick,
        branch: u8,
    },
    Edit {
        turn: Pick,
        said: Said,
        branch: Option<u8>,
        reuse: bool,
    },
    Split {
        turn: Pick,
        offset: u8,
    },
    Delete {
        turn: Pick,
        cascade: bool,
        dry_run: bool,
    },
    Purge {
        turn: Pick,
    },
    Bookmark {
        name: u8,
        turn: Pick,
    },
    DropBookmark {
        name: u8,
    },
    Patch {
        turn: Pick,
        what: u8,
        value: u8,
        force: bool,
    },
    PatchConversation {
        of: u8,
        what: u8,
        value: u8,
        force: bool,
    },
    Undo {
        of: u8,
        back: Option<u8>,
    },
    Redo {
        of: u8,
        back: Option<u8>,
    },
    UndoRedo {
        of: u8,
    },
    Keyed {
        key: u8,
        step: Box<Step>,
    },
    Replay {
        nth: u8,
    },
}

impl Step {
    /// The calls that this step stands for now, each with its key.
    pub fn resolve(&self, model: &Model, now: Timestamp) -> Option<Action> {
        Some(match self {
            Step::Create { prompt } => Action::Create(NewConversation {
                id: Some(mint(model)?),
                system_prompt: nth(&PROMPTS, *prompt).map(str::to_owned),
                title: (prompt % 5 == 4).then(|| "first".to_owned()),
                ..NewConversation::default()
            }),
            Step::Derive { of, prompt, at } => Action::Derive(Derive {
                conversation: conversation(model, *of).1?,
                id: Some(mint(model)?),
                system_prompt: nth(&PROMPTS, *prompt).map(str::to_owned),
                config: None,
                at: at.map(|at| Pick { conversation: *of, ..at }.turn(model).1),
            }),
            Step::Append { to, start, branch, expect, fork, reuse, messages } => {
                let (ix, id) = conversation(model, *to);
                let here = |pick: &Pick| Pick { conversation: *to, ..*pick }.turn(model).1;
                Action::Append(Append {
                    conversation: id?,
                    messages: messages.iter().map(|said| said.message(now)).collect(),
                    parent: match start {
                        Start::Tip => None,
                        Start::Root => Some(reference("root")),
                        // Now and then a turn of another conversation.
                        Start::At(pick) if pick.form % 16 == 15 => Some(pick.turn(model).1),
                        Start::At(pick) => Some(here(pick)),
                    },
                    branch: branch.map(|branch| branch_text(model, ix, branch)),
                    expected_tip: expect.as_ref().map(here),
                    on_conflict: if *fork { OnConflict::Fork } else { OnConflict::Refuse },
                    reuse: *reuse,
                })
            }
            Step::Resend { to, branch, cut, more } => {
                let (ix, id) = conversation(model, *to);
                let branches = model.branches_of(ix);
                let (text, branch) = branches.get(usize::from(*branch) % branches.len().max(1))?;
                let path = model.path(model.tip(*branch));
                let keep = path.len().saturating_sub(usize::from(cut % 4));
                let again = path[..keep].iter().map(|&turn| Message {
                    created_at: None,
                    metadata: Metadata::default(),
                    role: model.nodes[turn].role,
                    body: model.nodes[turn].body.clone(),
                    tool_call_id: model.nodes[turn].call.clone(),
                    status: Status::Complete,
                });
                let more = more.iter().map(|said| said.message(now));
                Action::Append(Append {
                    branch: Some(text.clone()),
                    ..Append::to(id?, again.chain(more).collect()).from_root()
                })
            }
            Step::Fork { at, before, name: label } => {
                let TurnRef { conversation, turn } = at.turn_ref(model);
                Action::Fork(Fork {
                    conversation,
                    point: if *before { ForkPoint::Before(turn) } else { ForkPoint::At(turn) },
                    name: label.map(|label| name(nth(&BRANCHES, label))),
                })
            }
            Step::Rename { of, branch, name: label } => {
                let (ix, id) = conversation(model, *of);
                Action::Rename(id?, side_branch(model, ix, *branch), name(nth(&BRANCHES, *label)))
            }
            Step::DropBranch { of, branch } => {
                let (ix, id) = conversation(model, *of);
                Action::DropBranch(id?, side_branch(model, ix, *branch))
            }
            Step::Revert { of, branch, back } => {
                let (ix, id) = conversation(model, *of);
                let text = branch_text(model, ix, *branch);
                let branches = model.branches_of(ix);
                let found = branches.iter().find(|(name, _)| *name == text);
                let path = model.path(found.and_then(|(_, branch)| model.tip(*branch)));
                let keep = path.len().saturating_sub(usize::from(back % 4) + 1);
                let to = match keep.checked_sub(1) {
                    Some(at) => model.nodes[path[at]].id.map(Reference::from),
                    None => Some(reference("root")),
                };
                Action::Revert(MoveBranch {
                    conversation: id?,
                    branch: text,
                    to,
                    expected_tip: None,
                })
            }
            Step::RevertTo { to, branch } => {
                Action::Revert(moving(model, *to, *branch, Some(to.turn(model).1))?)
            }
            Step::Restore { of, branch } => {
                let (ix, id) = conversation(model, *of);
                let branch = branch_text(model, ix, *branch);
                Action::Restore(MoveBranch {
                    conversation: id?,
                    branch,
                    to: None,
                    expected_tip: None,
                })
            }
            Step::RestoreTo { to, branch } => {
                Action::Restore(moving(model, *to, *branch, Some(to.turn(model).1))?)
            }
            Step::Edit { turn, said, branch, reuse } => Action::Edit(Edit {
                turn: turn.turn_ref(model),
                body: Body::Text(nth(&TEXTS, said.text).to_owned()),
                branch: branch
                    .map(|n| branch_text(model, conversation(model, turn.conversation).0, n)),
                reuse: *reuse,
            }),
            Step::Split { turn, offset } => {
                let (at, length) = splittable(model, *turn, *offset);
                let offset = usize::from(*offset) / 8 % length + 1;
                Action::Split(SplitTurn { turn: at, offset })
            }
            Step::Delete { turn, cascade, dry_run } => Action::Delete(Delete {
                turn: turn.turn_ref(model),
                mode: if *cascade { DeleteMode::Cascade } else { DeleteMode::Reparent },
                force: false,
                dry_run: *dry_run,
            }),
            Step::Purge { turn } => Action::Purge(turn.turn_ref(model)),
            Step::Bookmark { name: label, turn } => {
                Action::SetBookmark(name(nth(&MARKS, *label)), turn.turn_ref(model))
            }
            Step::DropBookmark { name: label } => {
                let set = MARKS
                    .into_iter()
                    .filter(|mark| model.get(&Key::Mark((*mark).to_owned())) != Value::Nothing);
                let set: Vec<&str> = set.collect();
                let from = if set.is_empty() { &MARKS[..] } else { &set };
                Action::DropBookmark(name(nth(from, *label)))
            }
            Step::Patch { turn, what, value, force } => {
                Action::Patch(turn.turn_ref(model), patch(*what, *value, *force))
            }
            Step::PatchConversation { of, what, value, force } => {
                let text = || nth(&["x", "y"], *value).to_owned();
                let patch = match what % 3 {
                    0 => ConversationPatch { title: Some(Some(text())), ..Default::default() },
                    1 => ConversationPatch { archived: Some(value % 2 == 0), ..Default::default() },
                    _ => ConversationPatch {
                        metadata: Some(json::object([("k", text().into())])),
                        ..Default::default()
                    },
                };
                let patch = ConversationPatch { force: *force, ..patch };
                Action::PatchConversation(conversation(model, *of).1?, patch)
            }
            Step::Undo { of, back } => {
                let (ix, id) = conversation(model, *of);
                // A world without its conversation is worth a look, not half of all looks.
                let held = |op: &&Op| op.conversation == ix && op.undone.is_none();
                if *of == 0 && model.ops.iter().filter(held).all(|op| !op.is_work() || op.seq == 1)
                {
                    return None;
                }
                Action::Undo(id?, seq_back(model, ix, *back))
            }
            Step::Redo { of, back } => {
                let (ix, id) = conversation(model, *of);
                Action::Redo(id?, seq_back(model, ix, *back))
            }
            Step::Keyed { step, .. } => step.resolve(model, now)?,
            Step::UndoRedo { .. } | Step::Replay { .. } => return None,
        })
    }
}
