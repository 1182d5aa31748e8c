//! Moving a branch back on its line and forward again. The turns stay where they are.

use tine_core::TurnId;
use tine_core::json::{Json, object};
use tine_store::{Branch, TurnLoc, required};

use crate::log::change::{LoggedChange, text};
use crate::log::history::detail;
use crate::log::mutation::Mutation;
use crate::ops::append::conflict;
use crate::tree::resolve;
use crate::tree::views;
use crate::{BranchView, Call, Engine, Error, MoveBranch, Result, TurnRef};

impl Engine {
    /// Moves a branch back to an earlier turn of its line, or to the root. The turns after it
    /// become a tail.
    pub fn revert(&self, call: &Call, request: MoveBranch) -> Result<BranchView> {
        let (view, _) = self.mutate(call, "revert", request, payload, |mutation, request| {
            let branch = open_branch(mutation, request)?;
            let to = request
                .to
                .as_ref()
                .ok_or_else(|| Error::invalid("name the turn to revert to, such as main~1"))?;
            let to = target(mutation, to)?;
            if !mutation.tree().on_shown_path(to, branch.tip)? {
                return Err(Error::invalid(format!(
                    "that turn is not on the path of `{}`; fork there instead",
                    branch.name
                )));
            }
            arrive(mutation, &branch, to)
        })?;
        Ok(view)
    }

    /// Moves a branch forward to a turn below its tip; without one, to where the last revert
    /// took it away from.
    pub fn restore(&self, call: &Call, request: MoveBranch) -> Result<BranchView> {
        let (view, _) = self.mutate(call, "restore", request, payload, |mutation, request| {
            let branch = open_branch(mutation, request)?;
            let to = match &request.to {
                Some(to) => target(mutation, to)?,
                None => before_last_revert(mutation, &branch)?,
            };
            if !mutation.tree().on_shown_path(branch.tip, to)? {
                return Err(Error::invalid(format!(
                    "that turn is not below the tip of `{}`; fork there instead",
                    branch.name
                )));
            }
            arrive(mutation, &branch, to)
        })?;
        Ok(view)
    }
}

fn payload(request: &MoveBranch) -> Json {
    let reference = |found: &Option<tine_core::Reference>| -> Json {
        found.as_ref().map(|found| Json::from(found.as_str())).into()
    };
    object([
        ("conversation_id", text(&request.conversation)),
        ("branch", request.branch.as_str().into()),
        ("to", reference(&request.to)),
        ("expected_tip", reference(&request.expected_tip)),
    ])
}

fn open_branch(mutation: &mut Mutation<'_>, request: &MoveBranch) -> Result<Branch> {
    let call = mutation.call;
    let found = resolve::conversation(mutation.reader(), call, &request.conversation)?;
    mutation.open(found)?;
    let branch = resolve::branch(mutation.reader(), call, mutation.key(), &request.branch)?;
    mutation.check_seen(Some(&branch), &branch.name)?;
    if let Some(expected) = &request.expected_tip {
        let wanted = TurnRef::within(request.conversation.clone(), expected.clone());
        let expected = resolve::find(mutation.reader(), call, &wanted)?.turn;
        if expected != branch.tip {
            return Err(conflict(mutation, &branch.name, expected, branch.tip)?);
        }
    }
    Ok(branch)
}

fn target(mutation: &Mutation<'_>, to: &tine_core::Reference) -> Result<Option<TurnLoc>> {
    let wanted = TurnRef::within(mutation.conversation().id.clone(), to.clone());
    Ok(resolve::place(mutation.reader(), mutation.call, &wanted)?.turn)
}

fn arrive(mutation: &mut Mutation<'_>, branch: &Branch, to: Option<TurnLoc>) -> Result<BranchView> {
    mutation.depends_on_turn(to)?;
    let branch = match to == branch.tip {
        true => branch.clone(),
        false => mutation.move_branch(branch, to)?,
    };
    let id = mutation.conversation().id.clone();
    views::branch(mutation.reader(), &id, &branch)
}

/// Returns where the newest revert that led to the present tip came from. Turns that were split
/// since are what is shown of them now.
fn before_last_revert(mutation: &Mutation<'_>, branch: &Branch) -> Result<Option<TurnLoc>> {
    let records = mutation.reader();
    let mut reverts = Vec::new();
    records.operations(mutation.key(), 1, u64::MAX, &mut |operation| {
        if operation.kind == "revert" && !operation.undone {
            reverts.push(operation);
        }
        Ok(true)
    })?;
    let tree = mutation.tree();
    let shown = |id: Option<TurnId>| -> Result<Option<TurnLoc>> {
        let Some(id) = id else {
            return Ok(None);
        };
        let found = records.find_turn(&mutation.call.project, &id)?;
        let (_, loc) = required(found, || format!("turn {id}"))?;
        Ok(Some(tree.last_half(loc)?))
    };
    for revert in reverts.iter().rev() {
        for change in detail(revert)?.changes {
            let LoggedChange::Branch { id, before: Some(before), after: Some(after) } = change
            else {
                continue;
            };
            if id == branch.id && shown(after.tip)? == branch.tip {
                let conversation = mutation.conversation().clone();
                let place = resolve::TreePosition { conversation, turn: shown(before.tip)? };
                return Ok(resolve::live(records, place)?.turn);
            }
        }
    }
    Err(Error::invalid(format!(
        "`{}` was not reverted to its current tip; name the turn to move forward to",
        branch.name
    )))
}
