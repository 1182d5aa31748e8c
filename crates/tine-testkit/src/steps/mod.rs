//! Random sequences of operations, in a form that shrinks well.
//!
//! A [`TestStep`] names nothing: it holds small numbers that are taken modulo whatever is there when
//! its turn comes ([`TestStep::resolve`]), so that leaving a step out leaves the others meaningful.
//! Texts come from a tiny alphabet: equal messages, equal siblings and characters of several
//! scalar values are the normal case.

mod generate;
mod messages;
mod pick;

use tine_core::{Body, Message, Metadata, Reference, Status, Timestamp, json};
use tine_engine::{
    Append, ConversationPatch, Delete, DeleteMode, Derive, Edit, Fork, ForkPoint, MoveBranch,
    NewConversation, OnConflict, SplitTurn, TurnRef,
};

use crate::action::EngineAction;
use crate::model::{Key, ModelValue, Op, ReferenceModel};

pub use self::generate::script;
pub use self::messages::TinyMessage;
pub use self::pick::Pick;

use self::messages::{TEXTS, patch};
use self::pick::{
    BRANCHES, branch_text, conversation, mint, moving, name, nth, reference, seq_back, side_branch,
    splittable,
};

const MARKS: [&str; 4] = ["here", "there", "one", "main"];
const PROMPTS: [Option<&str>; 3] = [None, Some("be brief"), Some("be kind")];

/// Where an append starts.
#[derive(Clone, Copy, Debug)]
pub enum Start {
    /// At the tip, which is the default.
    Tip,
    Root,
    At(Pick),
}

/// One operation, not yet tied to anything.
#[derive(Clone, Debug)]
pub enum TestStep {
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
        messages: Vec<TinyMessage>,
    },
    Resend {
        to: u8,
        branch: u8,
        cut: u8,
        more: Vec<TinyMessage>,
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
        said: TinyMessage,
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
        step: Box<TestStep>,
    },
    Replay {
        nth: u8,
    },
}

impl TestStep {
    /// Returns the calls that this step stands for now, each with its key.
    pub fn resolve(&self, model: &ReferenceModel, now: Timestamp) -> Option<EngineAction> {
        Some(match self {
            TestStep::Create { prompt } => EngineAction::Create(NewConversation {
                id: Some(mint(model)?),
                system_prompt: nth(&PROMPTS, *prompt).map(str::to_owned),
                title: (prompt % 5 == 4).then(|| "first".to_owned()),
                ..NewConversation::default()
            }),
            TestStep::Derive { of, prompt, at } => EngineAction::Derive(Derive {
                conversation: conversation(model, *of).1?,
                id: Some(mint(model)?),
                system_prompt: nth(&PROMPTS, *prompt).map(str::to_owned),
                config: None,
                at: at.map(|at| Pick { conversation: *of, ..at }.turn(model).1),
            }),
            TestStep::Append { to, start, branch, expect, fork, reuse, messages } => {
                let (ix, id) = conversation(model, *to);
                let here = |pick: &Pick| Pick { conversation: *to, ..*pick }.turn(model).1;
                EngineAction::Append(Append {
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
            TestStep::Resend { to, branch, cut, more } => {
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
                EngineAction::Append(Append {
                    branch: Some(text.clone()),
                    ..Append::to(id?, again.chain(more).collect()).from_root()
                })
            }
            TestStep::Fork { at, before, name: label } => {
                let TurnRef { conversation, turn } = at.turn_ref(model);
                EngineAction::Fork(Fork {
                    conversation,
                    point: if *before { ForkPoint::Before(turn) } else { ForkPoint::At(turn) },
                    name: label.map(|label| name(nth(&BRANCHES, label))),
                })
            }
            TestStep::Rename { of, branch, name: label } => {
                let (ix, id) = conversation(model, *of);
                EngineAction::Rename(
                    id?,
                    side_branch(model, ix, *branch),
                    name(nth(&BRANCHES, *label)),
                )
            }
            TestStep::DropBranch { of, branch } => {
                let (ix, id) = conversation(model, *of);
                EngineAction::DropBranch(id?, side_branch(model, ix, *branch))
            }
            TestStep::Revert { of, branch, back } => {
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
                EngineAction::Revert(MoveBranch {
                    conversation: id?,
                    branch: text,
                    to,
                    expected_tip: None,
                })
            }
            TestStep::RevertTo { to, branch } => {
                EngineAction::Revert(moving(model, *to, *branch, Some(to.turn(model).1))?)
            }
            TestStep::Restore { of, branch } => {
                let (ix, id) = conversation(model, *of);
                let branch = branch_text(model, ix, *branch);
                EngineAction::Restore(MoveBranch {
                    conversation: id?,
                    branch,
                    to: None,
                    expected_tip: None,
                })
            }
            TestStep::RestoreTo { to, branch } => {
                EngineAction::Restore(moving(model, *to, *branch, Some(to.turn(model).1))?)
            }
            TestStep::Edit { turn, said, branch, reuse } => EngineAction::Edit(Edit {
                turn: turn.turn_ref(model),
                body: Body::Text(nth(&TEXTS, said.text).to_owned()),
                branch: branch
                    .map(|n| branch_text(model, conversation(model, turn.conversation).0, n)),
                reuse: *reuse,
            }),
            TestStep::Split { turn, offset } => {
                let (at, length) = splittable(model, *turn, *offset);
                let offset = usize::from(*offset) / 8 % length + 1;
                EngineAction::Split(SplitTurn { turn: at, offset })
            }
            TestStep::Delete { turn, cascade, dry_run } => EngineAction::Delete(Delete {
                turn: turn.turn_ref(model),
                mode: if *cascade { DeleteMode::Cascade } else { DeleteMode::Reparent },
                force: false,
                dry_run: *dry_run,
            }),
            TestStep::Purge { turn } => EngineAction::Purge(turn.turn_ref(model)),
            TestStep::Bookmark { name: label, turn } => {
                EngineAction::SetBookmark(name(nth(&MARKS, *label)), turn.turn_ref(model))
            }
            TestStep::DropBookmark { name: label } => {
                let set = MARKS.into_iter().filter(|mark| {
                    model.get(&Key::Mark((*mark).to_owned())) != ModelValue::Nothing
                });
                let set: Vec<&str> = set.collect();
                let from = if set.is_empty() { &MARKS[..] } else { &set };
                EngineAction::DropBookmark(name(nth(from, *label)))
            }
            TestStep::Patch { turn, what, value, force } => {
                EngineAction::Patch(turn.turn_ref(model), patch(*what, *value, *force))
            }
            TestStep::PatchConversation { of, what, value, force } => {
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
                EngineAction::PatchConversation(conversation(model, *of).1?, patch)
            }
            TestStep::Undo { of, back } => {
                let (ix, id) = conversation(model, *of);
                // A world without its conversation is worth a look, not half of all looks.
                let held = |op: &&Op| op.conversation == ix && op.undone.is_none();
                if *of == 0 && model.ops.iter().filter(held).all(|op| !op.is_work() || op.seq == 1)
                {
                    return None;
                }
                EngineAction::Undo(id?, seq_back(model, ix, *back))
            }
            TestStep::Redo { of, back } => {
                let (ix, id) = conversation(model, *of);
                EngineAction::Redo(id?, seq_back(model, ix, *back))
            }
            TestStep::Keyed { step, .. } => step.resolve(model, now)?,
            TestStep::UndoRedo { .. } | TestStep::Replay { .. } => return None,
        })
    }
}
