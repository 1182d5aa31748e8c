//! The operation log of a conversation, undo and redo.

use axum::http::Method;
use tine_api::bodies::Nothing;
use tine_api::{Answer, OperationView, Undone};
use tine_core::{ConversationId, ErrorKind};

use super::{List, parameters};
use crate::openapi::Operation;
use crate::problem::Problem;
use crate::route::{ApiResult, RequestContext, Routes};

const TAG: &str = "Operations";

parameters!(paged OperationsQuery {
    /// The conversation whose log to list.
    conversation_id: ConversationId,
});

parameters!(OperationPath {
    /// The number of the operation in the log, or `latest`.
    operation: String,
    /// The conversation of the log.
    conversation_id: ConversationId,
});

pub(super) fn routes(routes: Routes) -> Routes {
    let about = |id, summary| Operation::new(TAG, id, summary);
    routes
        .get(
            "/api/v1/operations",
            about("listOperations", "List the operations of a conversation, newest first"),
            list,
        )
        .route(
            Method::POST,
            "/api/v1/operations/{operation}/undo",
            about("undoOperation", "Undo an operation"),
            undo,
        )
        .route(
            Method::POST,
            "/api/v1/operations/{operation}/redo",
            about("redoOperation", "Redo an operation"),
            redo,
        )
}

fn list(context: &RequestContext, query: OperationsQuery) -> ApiResult<List<OperationView>> {
    let id = &query.conversation_id;
    context.ok(context.engine().operations(&context.call, id, query.page())?)
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

fn undo(context: &RequestContext, path: OperationPath, _: Nothing) -> ApiResult<Answer<Undone>> {
    let (id, operation) = (&path.conversation_id, number(&path.operation)?);
    context.ok(context.engine().undo(&context.call, id, operation)?)
}

fn redo(context: &RequestContext, path: OperationPath, _: Nothing) -> ApiResult<Answer<Undone>> {
    let (id, operation) = (&path.conversation_id, number(&path.operation)?);
    context.ok(context.engine().redo(&context.call, id, operation)?)
}
