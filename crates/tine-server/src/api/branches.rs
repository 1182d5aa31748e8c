//! Branches.

use axum::http::Method;
use tine_api::bodies;
use tine_api::{Answer, BranchView, Listing};

use super::{List, answer, conversation, name, parameters};
use crate::openapi::Operation;
use crate::route::{Answered, Asked, NoBody, Reply, Routes, etag};

const TAG: &str = "Branches";

parameters!(All {
    /// The conversation.
    conversation_id: String,
});

parameters!(One {
    /// The conversation.
    conversation_id: String,
    /// The branch, by name or id.
    branch: String,
});

pub(super) fn routes(routes: Routes) -> Routes {
    let about = |id, summary| Operation::new(TAG, id, summary);
    const ALL: &str = "/api/v1/conversations/{conversation_id}/branches";
    const ONE: &str = "/api/v1/conversations/{conversation_id}/branches/{branch}";
    routes
        .get(ALL, about("listBranches", "All branches, in order of name"), list)
        .route(Method::POST, ALL, about("createBranch", "Make a branch").also(&[201]), create)
        .get(ONE, about("getBranch", "One branch; its ETag changes whenever it does"), get)
        .route(
            Method::PATCH,
            ONE,
            about("renameBranch", "Give it another name; its id stays")
                .conditional()
                .body_required(),
            rename,
        )
        .route(
            Method::DELETE,
            ONE,
            about("deleteBranch", "Remove it; its turns stay").conditional(),
            delete,
        )
        .route(
            Method::POST,
            "/api/v1/conversations/{conversation_id}/branches/{branch}/revert",
            about("revertBranch", "Move it back; what that leaves behind is kept")
                .conditional()
                .body_required(),
            revert,
        )
        .route(
            Method::POST,
            "/api/v1/conversations/{conversation_id}/branches/{branch}/restore",
            about("restoreBranch", "Move it forward again").conditional(),
            restore,
        )
}

fn branch(asked: &Asked, found: tine_engine::BranchView) -> Reply<Answer<BranchView>> {
    let tag = etag(&found);
    Reply::ok(answer(asked, found)).with_etag(tag)
}

fn list(asked: &Asked, path: All, _: NoBody) -> Answered<List<BranchView>> {
    let id = conversation(&path.conversation_id, asked.engine().limits())?;
    let found = asked.engine().branches(&asked.call, &id)?;
    let items = found.into_iter().collect();
    Ok(Reply::ok(answer(asked, Listing::all(items))))
}

fn create(asked: &Asked, path: All, body: bodies::NewBranch) -> Answered<Answer<BranchView>> {
    let request = body.into_request(&path.conversation_id, asked.engine().limits())?;
    let made = asked.engine().fork(&asked.call, request)?;
    let tag = etag(&made);
    Ok(Reply::created(answer(asked, made)).with_etag(tag))
}

fn get(asked: &Asked, path: One, _: NoBody) -> Answered<Answer<BranchView>> {
    let id = conversation(&path.conversation_id, asked.engine().limits())?;
    Ok(branch(asked, asked.engine().branch(&asked.call, &id, &path.branch)?))
}

fn rename(asked: &Asked, path: One, body: bodies::BranchPatch) -> Answered<Answer<BranchView>> {
    let limits = asked.engine().limits();
    let id = conversation(&path.conversation_id, limits)?;
    let name = name(&body.name, limits)?;
    let done = asked.engine().rename_branch(&asked.call, &id, &path.branch, name)?;
    Ok(branch(asked, done))
}

fn delete(asked: &Asked, path: One, _: NoBody) -> Answered<Answer<BranchView>> {
    let id = conversation(&path.conversation_id, asked.engine().limits())?;
    let gone = asked.engine().delete_branch(&asked.call, &id, &path.branch)?;
    Ok(Reply::ok(answer(asked, gone)))
}

fn revert(asked: &Asked, path: One, body: bodies::MoveBranch) -> Answered<Answer<BranchView>> {
    let limits = asked.engine().limits();
    let request = body.into_request(&path.conversation_id, &path.branch, limits)?;
    Ok(branch(asked, asked.engine().revert(&asked.call, request)?))
}

fn restore(asked: &Asked, path: One, body: bodies::MoveBranch) -> Answered<Answer<BranchView>> {
    let limits = asked.engine().limits();
    let request = body.into_request(&path.conversation_id, &path.branch, limits)?;
    Ok(branch(asked, asked.engine().restore(&asked.call, request)?))
}
