//! Forking: a new branch at any turn. No turn is copied.

use tine_core::Name;
use tine_core::json::{Json, object};
use tine_store::{Branch, TurnLoc};

use crate::log::change::text;
use crate::log::mutation::Mutation;
use crate::ops::append::{free_name, refuse_purged};
use crate::tree::resolve::{self, TreePosition};
use crate::tree::shown::TurnState;
use crate::tree::views;
use crate::{BranchView, Call, Engine, Error, Fork, ForkPoint, Result, TurnRef};

impl Engine {
    /// Makes a branch that ends at a turn, or just before it.
    pub fn fork(&self, call: &Call, request: Fork) -> Result<BranchView> {
        let payload = |request: &Fork| {
            let (point, turn) = match &request.point {
                ForkPoint::At(turn) => ("at", turn),
                ForkPoint::Before(turn) => ("before", turn),
            };
            object([
                ("conversation_id", request.conversation.as_ref().map(text).into()),
                (point, Json::from(turn.as_str())),
                ("name", request.name.as_ref().map(text).into()),
            ])
        };
        let (view, _) = self.mutate(call, "fork", request, payload, fork)?;
        Ok(view)
    }
}

fn fork(mutation: &mut Mutation<'_>, request: &Fork) -> Result<BranchView> {
    let call = mutation.call;
    let (turn, before) = match &request.point {
        ForkPoint::At(turn) => (turn, false),
        ForkPoint::Before(turn) => (turn, true),
    };
    let wanted = TurnRef { conversation: request.conversation.clone(), turn: turn.clone() };
    let found = resolve::find(mutation.reader(), call, &wanted)?;
    refuse_purged(&found.conversation)?;
    mutation.open(found.conversation.clone())?;
    let tip = match before {
        true => before_turn(mutation, &wanted, found)?,
        false => resolve::live(mutation.reader(), found)?.turn,
    };
    mutation.depends_on_turn(tip)?;
    let key = mutation.key();
    let name = match &request.name {
        Some(name) => {
            if mutation.reader().branch(key, name)?.is_some() {
                let advice = "; choose another name";
                return Err(Error::Exists { what: "branch", name: name.to_string(), advice });
            }
            name.clone()
        }
        None => {
            let (fork, limits) = (Name::from_stored("fork"), mutation.engine.limits());
            free_name(mutation.reader(), key, &fork, limits)?
        }
    };
    let forked_from = match tip {
        Some(loc) => Some(mutation.tree().turn(loc)?.id),
        None => None,
    };
    let branch = Branch {
        conversation: key,
        id: mutation.new_branch_id(),
        name,
        tip,
        forked_from,
        created_at: mutation.now,
        version: 1,
    };
    mutation.put_branch(None, &branch)?;
    let id = mutation.conversation().id.clone();
    views::branch(mutation.reader(), &id, &branch)
}

/// Returns the turn before this one as shown. Before a split turn, named by its own id or hash, is
/// before its first half, whether or not the last one is still shown.
fn before_turn(
    mutation: &mut Mutation<'_>,
    wanted: &TurnRef,
    found: TreePosition,
) -> Result<Option<TurnLoc>> {
    let last_half = found.require_turn()?;
    let named = resolve::named(mutation.reader(), mutation.call, wanted)?;
    let tree = mutation.tree();
    let first = match named {
        Some(loc) if tree.last_half(loc)? == last_half => tree.first_half(loc)?,
        _ => last_half,
    };
    if tree.state(first)? != TurnState::Live {
        resolve::live(mutation.reader(), found)?;
    }
    let parent = tree.shown_parent(first)?;
    let dependencies = tree.dependencies();
    mutation.depends_on_all(dependencies);
    Ok(parent)
}
