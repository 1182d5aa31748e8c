//! Sessions as branches of the store: found by their ids, replayed, deleted.

use tine_core::{BranchId, ErrorKind, Reference, TurnId};
use tine_engine::{BranchView, Call, Engine, Error, PathQuery, TurnRef, WindowQuery};

use crate::lines::Out;
use crate::show;
use crate::wire::{self, Refusal};

/// The branch of a session.
pub(crate) fn named(engine: &Engine, call: &Call, session: &str) -> Result<BranchView, Refusal> {
    let unknown = || Refusal::no_session(session, "");
    let id = session.parse().map_err(|_| unknown())?;
    engine.branch_by_id(call, id).map_err(|error| match error.kind() {
        ErrorKind::NotFound => unknown(),
        _ => error.into(),
    })
}

/// The turn of a message of that very session.
pub(crate) fn message_of(
    engine: &Engine,
    call: &Call,
    session: &BranchView,
    message: &str,
) -> Result<TurnId, Refusal> {
    if show::is_thought(message) {
        let why = "a thought is no place to fork at; name the message that follows it";
        return Err(Refusal::message(message, why));
    }
    let unknown =
        || Refusal::message(message, format!("there is no message `{message}` in this session"));
    // The engine also takes other spellings, and the names of branches.
    let id: TurnId = message.parse().map_err(|_| unknown())?;
    let branch = message.parse().map_err(|_| unknown())?;
    if id.to_string() != message || engine.branch_by_id(call, branch).is_ok() {
        return Err(unknown());
    }
    let on_its_line = WindowQuery {
        turn: TurnRef::within(session.conversation.clone(), id),
        branch: Some(session.id.to_string()),
        before: 0,
        after: 0,
    };
    match engine.window(call, on_its_line) {
        Ok(_) => Ok(id),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Invalid) => {
            Err(unknown())
        }
        Err(error) => Err(error.into()),
    }
}

/// Shows a client all that was said on a branch, as of the session with this id.
pub(crate) fn replay(
    engine: &Engine,
    call: &Call,
    id: &str,
    branch: &BranchView,
    out: &Out,
) -> Result<(), Refusal> {
    let to = Reference::parse(&branch.id.to_string()).map_err(Error::from)?;
    let mut query = PathQuery::of(branch.conversation.clone()).to(to);
    loop {
        let page = engine.path(call, query.clone())?;
        for update in page.turns.iter().flat_map(show::turn) {
            out.send(&wire::update(id, update));
        }
        if page.next.is_none() {
            return Ok(());
        }
        query.cursor = page.next;
    }
}

/// Removes the branch of a session; its turns stay. What is not there is gone already.
pub(crate) fn delete(engine: &Engine, call: &Call, session: BranchId) -> Result<(), Refusal> {
    let gone = engine
        .branch_by_id(call, session)
        .and_then(|branch| engine.delete_branch(call, &branch.conversation, &session.to_string()));
    match gone {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error.into()),
        _ => Ok(()),
    }
}
