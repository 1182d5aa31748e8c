//! Branches.

use axum::http::Method;
use tine_api::bodies::{BranchPatch, NewBranch};
use tine_api::{Answer, BranchView, MoveBranch};

use super::{BranchPath, ConversationPath, List};
use crate::openapi::Operation;
use crate::route::{ApiResult, RequestContext, Routes, etag};

const TAG: &str = "Branches";
const ALL: &str = "/api/v1/conversations/{conversation_id}/branches";
const ONE: &str = "/api/v1/conversations/{conversation_id}/branches/{branch}";

pub(super) fn routes(routes: Routes) -> Routes {
    let about = |id, summary| Operation::new(TAG, id, summary);
    routes
        .get(ALL, about("listBranches", "List the branches of a conversation, by name"), list)
        .route(Method::POST, ALL, about("createBranch", "Create a branch").also(&[201]), create)
        .get(
            ONE,
            about("getBranch", "Retrieve a branch, with an ETag that changes with every update"),
            get,
        )
        .route(
            Method::PATCH,
            ONE,
            about("renameBranch", "Rename a branch").conditional().body_required(),
            rename,
        )
        .delete(
            ONE,
            about("deleteBranch", "Delete a branch; its turns are kept").conditional(),
            delete,
        )
        .route(
            Method::POST,
            "/api/v1/conversations/{conversation_id}/branches/{branch}/revert",
            about("revertBranch", "Move a branch back; the turns after its new tip are kept")
                .conditional()
                .body_required(),
            revert,
        )
        .route(
            Method::POST,
            "/api/v1/conversations/{conversation_id}/branches/{branch}/restore",
            about("restoreBranch", "Move a branch forward again").conditional(),
            restore,
        )
}

/// Answers a branch, with its ETag.
fn branch(context: &RequestContext, found: BranchView) -> ApiResult<Answer<BranchView>> {
    let tag = etag(&found);
    context.ok(found).map(|reply| reply.with_etag(tag))
}

fn list(context: &RequestContext, path: ConversationPath) -> ApiResult<List<BranchView>> {
    context.list(context.engine().branches(&context.call, &path.conversation_id)?)
}

fn create(
    context: &RequestContext,
    path: ConversationPath,
    body: NewBranch,
) -> ApiResult<Answer<BranchView>> {
    let made = context.engine().fork(&context.call, body.into_fork(path.conversation_id)?)?;
    let tag = etag(&made);
    context.created(made).map(|reply| reply.with_etag(tag))
}

fn get(context: &RequestContext, path: BranchPath) -> ApiResult<Answer<BranchView>> {
    let found = context.engine().branch(&context.call, &path.conversation_id, &path.branch)?;
    branch(context, found)
}

fn rename(
    context: &RequestContext,
    path: BranchPath,
    body: BranchPatch,
) -> ApiResult<Answer<BranchView>> {
    let (conversation, old) = (&path.conversation_id, &path.branch);
    branch(context, context.engine().rename_branch(&context.call, conversation, old, body.name)?)
}

fn delete(context: &RequestContext, path: BranchPath) -> ApiResult<Answer<BranchView>> {
    let (conversation, branch) = (&path.conversation_id, &path.branch);
    context.ok(context.engine().delete_branch(&context.call, conversation, branch)?)
}

fn at_path(path: BranchPath, request: MoveBranch) -> MoveBranch {
    MoveBranch { conversation: path.conversation_id, branch: path.branch, ..request }
}

fn revert(
    context: &RequestContext,
    path: BranchPath,
    request: MoveBranch,
) -> ApiResult<Answer<BranchView>> {
    branch(context, context.engine().revert(&context.call, at_path(path, request))?)
}

fn restore(
    context: &RequestContext,
    path: BranchPath,
    request: MoveBranch,
) -> ApiResult<Answer<BranchView>> {
    branch(context, context.engine().restore(&context.call, at_path(path, request))?)
}
