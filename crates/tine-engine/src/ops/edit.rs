//! Other versions of a turn: edits, and regenerated answers. The turn itself never changes.

use serde::{Deserialize, Serialize};
use tine_core::json::object;
use tine_core::{Message, Metadata, Role, Status};
use tine_store::{Turn, TurnOrigin};

use crate::knowledge;
use crate::log::change::text;
use crate::log::mutation::{Mutation, Receipt};
use crate::ops::append::{equal_child, make_chain, message_payload, refuse_purged};
use crate::tree::resolve;
use crate::tree::views::{self, ViewOrId};
use crate::{
    BranchView, Call, Edit, Edited, Engine, Error, Outcome, Regenerate, Result, TurnRef, TurnView,
};

impl Engine {
    /// Makes a sibling of a turn that says something else, and moves a branch to it if one is
    /// given. The old path stays.
    pub fn edit(&self, call: &Call, request: Edit) -> Result<Edited> {
        let payload = |request: &Edit| {
            object([
                ("conversation_id", request.turn.conversation.as_ref().map(text).into()),
                ("turn", request.turn.turn.as_str().into()),
                ("content", request.body.to_blocks_string().into()),
                ("branch", request.branch.clone().into()),
                ("reuse", request.reuse.into()),
            ])
        };
        let rules = |mutation: &mut Mutation<'_>, request: &Edit| {
            let branch = request.branch.as_deref();
            version(mutation, &request.turn, branch, request.reuse, |old| {
                Ok(Message {
                    role: old.role,
                    body: request.body.clone(),
                    tool_call_id: old.tool_call_id.clone(),
                    created_at: None,
                    status: Status::Complete,
                    metadata: Metadata::default(),
                })
            })
        };
        let (receipt, _) = self.mutate(call, "edit", request, payload, rules)?;
        self.edited(call, receipt)
    }

    /// Records another answer of a model beside one of its answers, under an id that was promised
    /// ([`promise_turn_id`](Engine::promise_turn_id)), and moves a branch to it if one is given.
    pub fn regenerate(&self, call: &Call, request: Regenerate) -> Result<Edited> {
        let payload = |request: &Regenerate| {
            object([
                ("conversation_id", request.turn.conversation.as_ref().map(text).into()),
                ("turn", request.turn.turn.as_str().into()),
                ("turn_id", text(&request.id)),
                ("message", message_payload(&request.message)),
                ("branch", request.branch.clone().into()),
            ])
        };
        let rules = |mutation: &mut Mutation<'_>, request: &Regenerate| {
            mutation.refuse_existing_turn(request.id)?;
            mutation.promise(request.id);
            version(mutation, &request.turn, request.branch.as_deref(), false, |old| {
                if old.role != Role::Assistant || request.message.role != Role::Assistant {
                    let why =
                        "only an assistant's turn can be regenerated; edit other turns instead";
                    return Err(Error::invalid(why));
                }
                Ok(request.message.clone())
            })
        };
        let (receipt, _) = self.mutate(call, "regenerate", request, payload, rules)?;
        self.edited(call, receipt)
    }

    fn edited(&self, call: &Call, receipt: EditReceipt) -> Result<Edited> {
        let turn = self.load_turn(call, receipt.turn)?.with_outcome(receipt.outcome);
        Ok(Edited { turn, branch: receipt.branch, redacted: call.redacted.clone() })
    }
}

#[derive(Serialize, Deserialize)]
struct EditReceipt {
    #[serde(rename = "turn_id")]
    turn: ViewOrId<TurnView>,
    #[serde(rename = "created", with = "views::created")]
    outcome: Outcome,
    branch: Option<BranchView>,
}

impl Receipt for EditReceipt {}

/// Makes a sibling of a turn.
fn version(
    mutation: &mut Mutation<'_>,
    turn: &TurnRef,
    branch: Option<&str>,
    reuse: bool,
    message: impl FnOnce(&Turn) -> Result<Message>,
) -> Result<EditReceipt> {
    let call = mutation.call;
    let place = resolve::place(mutation.reader(), call, turn)?;
    let loc = place.require_turn_for("edited")?;
    refuse_purged(&place.conversation)?;
    mutation.open(place.conversation)?;
    let branch = match branch {
        Some(name) => Some(resolve::branch(mutation.reader(), call, mutation.key(), name)?),
        None => None,
    };
    if let Some(branch) = &branch {
        mutation.check_seen(Some(branch), &branch.name)?;
    }
    let tree = mutation.tree();
    let old = tree.turn(loc)?;
    let message = message(&old)?;
    message
        .check(mutation.engine.limits())
        .map_err(|source| Error::Message { index: 0, source })?;
    let parent = tree.shown_parent(loc)?;
    let existing = if reuse { equal_child(&tree, parent, &message)? } else { None };
    let dependencies = tree.dependencies();
    mutation.depends_on_all(dependencies);
    mutation.depends_on(old.operation);
    let (turn, outcome) = match existing {
        Some(turn) => {
            mutation.depends_on(turn.operation);
            (turn, Outcome::Reused)
        }
        None => {
            let slot = old.origin.slot.clone();
            let origin = |_| TurnOrigin {
                edited_from: Some(old.id),
                slot: slot.clone(),
                ..TurnOrigin::default()
            };
            let mut made = make_chain(mutation, parent, &[message], origin)?.turns;
            let turn = made.pop().expect("a chain of one message has one turn");
            (turn, Outcome::Created)
        }
    };
    knowledge::turns::observe_edit(mutation, &old, &turn, outcome == Outcome::Created)?;
    let id = mutation.conversation().id.clone();
    let branch = match branch {
        Some(branch) if branch.tip == Some(turn.loc) => Some(branch),
        Some(branch) => Some(mutation.move_branch(&branch, Some(turn.loc))?),
        None => None,
    };
    let branch = match branch {
        Some(branch) => Some(views::branch(mutation.reader(), &id, &branch)?),
        None => None,
    };
    mutation.fact_if_changed("edited_from", text(&old.id));
    Ok(EditReceipt { turn: mutation.viewed_turn(turn.loc)?, outcome, branch })
}
