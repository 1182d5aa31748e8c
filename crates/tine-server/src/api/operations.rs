//! The operation log of a conversation, undoing and redoing.

use axum::http::Method;
use tine_api::bodies;
use tine_api::{Answer, OperationView, Undone};
use tine_core::ErrorKind;

use super::{List, answer, conversation, page, parameters};
use crate::openapi::Operation;
use crate::problem::Problem;
use crate::route::{Answered, Asked, NoBody, Reply, Routes};

const TAG: &str = "Operations";

parameters!(All {
    /// The conversation whose log is read.
    conversation_id: String,
    /// Goes on behind an earlier page.
    cursor: Option<String>,
    /// Operations in a page.
    limit: Option<u64>,
});

parameters!(One {
    /// The operation's number in the log, or `latest`.
    operation: String,
    /// The conversation whose log it is in.
    conversation_id: String,
});

pub(super) fn routes(routes: Routes) -> Routes {
    let about = |id, summary| Operation::new(TAG, id, summary);
    routes
        .get("/api/v1/operations", about("listOperations", "The log, newest first"), list)
        .route(
            Method::POST,
            "/api/v1/operations/{operation}/undo",
            about("undoOperation", "Take it back"),
            undo,
        )
        .route(
            Method::POST,
            "/api/v1/operations/{operation}/redo",
            about("redoOperation", "Do it again"),
            redo,
        )
}

fn list(asked: &Asked, query: All, _: NoBody) -> Answered<List<OperationView>> {
    let id = conversation(&query.conversation_id, asked.engine().limits())?;
    let page = page(query.cursor, query.limit)?;
    let found = asked.engine().operations(&asked.call, &id, page)?;
    Ok(Reply::ok(answer(asked, found)))
}

fn number(text: &str) -> Result<Option<u64>, Problem> {
    match text {
        "latest" => Ok(None),
        text => text.parse().map(Some).map_err(|_| {
            let why =
                format!("`{text}` is not an operation; give its number in the log or `latest`");
            Problem::new(ErrorKind::Invalid, why)
        }),
    }
}

fn undo(asked: &Asked, path: One, _: bodies::Nothing) -> Answered<Answer<Undone>> {
    let id = conversation(&path.conversation_id, asked.engine().limits())?;
    let done = asked.engine().undo(&asked.call, &id, number(&path.operation)?)?;
    Ok(Reply::ok(answer(asked, done)))
}

fn redo(asked: &Asked, path: One, _: bodies::Nothing) -> Answered<Answer<Undone>> {
    let id = conversation(&path.conversation_id, asked.engine().limits())?;
    let done = asked.engine().redo(&asked.call, &id, number(&path.operation)?)?;
    Ok(Reply::ok(answer(asked, done)))
}
