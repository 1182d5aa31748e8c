//! The branches of sessions: finding, replaying and deleting them.

use tine_core::{BranchId, ErrorKind, Message, Reference, TurnId};
use tine_engine::{
    Append, BranchView, Call, Engine, Error, MoveBranch, PathQuery, TurnRef, WindowQuery,
};

use crate::json_rpc::{RpcError, RpcResult};
use crate::line_io::LineWriter;
use crate::session_updates::{is_thought, turn_updates};

/// Returns the branch of a session.
pub(crate) fn find(engine: &Engine, call: &Call, session: &str) -> RpcResult<BranchView> {
    let unknown = || RpcError::no_session(session, "");
    let id = session.parse().map_err(|_| unknown())?;
    engine.branch_by_id(call, id).map_err(|error| match error.kind() {
        ErrorKind::NotFound => unknown(),
        _ => error.into(),
    })
}

/// Returns the turn of a message of this session.
pub(crate) fn message_turn(
    engine: &Engine,
    call: &Call,
    session: &BranchView,
    message: &str,
) -> RpcResult<TurnId> {
    if is_thought(message) {
        let why = "cannot fork at a thought; name the message that follows it";
        return Err(RpcError::bad_message(message, why));
    }
    let unknown = || {
        RpcError::bad_message(message, format!("there is no message `{message}` in this session"))
    };
    // The engine would also accept other spellings, and names of branches.
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

/// Sends every turn of a branch to a client, as updates of the session with this id.
pub(crate) fn replay(
    engine: &Engine,
    call: &Call,
    id: &str,
    branch: &BranchView,
    out: &LineWriter,
) -> RpcResult<()> {
    let to = Reference::parse(&branch.id.to_string()).map_err(Error::from)?;
    let mut query = PathQuery::of(branch.conversation.clone()).to(to);
    loop {
        let page = engine.path(call, query.clone())?;
        for update in page.turns.iter().flat_map(turn_updates) {
            out.send_update(id, update);
        }
        if page.next.is_none() {
            return Ok(());
        }
        query.cursor = page.next;
    }
}

/// Returns a reference to a turn, or to the root.
pub(crate) fn turn_or_root(turn: Option<TurnId>) -> Option<Reference> {
    turn.map(Reference::from).or_else(|| Reference::parse("root").ok())
}

/// Returns an append to the tip of a branch as last seen.
pub(crate) fn append_at_tip(branch: &BranchView, messages: Vec<Message>) -> Append {
    Append {
        branch: Some(branch.id.to_string()),
        expected_tip: turn_or_root(branch.tip),
        ..Append::to(branch.conversation.clone(), messages)
    }
}

/// Moves a branch back to before a question that was refused, so that it is not part of the next
/// prompt. The turns stay.
pub(crate) fn revert_refused_question(
    engine: &Engine,
    call: &Call,
    branch: &BranchView,
    before: Option<Reference>,
) -> RpcResult<BranchView> {
    let request = MoveBranch {
        conversation: branch.conversation.clone(),
        branch: branch.id.to_string(),
        to: before,
        expected_tip: branch.tip.map(Reference::from),
    };
    Ok(engine.revert(call, request)?)
}

/// Deletes the branch of a session; its turns stay. Does nothing if there is no such branch.
pub(crate) fn delete(engine: &Engine, call: &Call, session: BranchId) -> RpcResult<()> {
    let gone = engine
        .branch_by_id(call, session)
        .and_then(|branch| engine.delete_branch(call, &branch.conversation, &session.to_string()));
    match gone {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error.into()),
        _ => Ok(()),
    }
}
