//! Commits: sealing turns, signing, merging, resolving conflicts.

use axum::http::Method;
use tine_api::bodies::SignCommit;
use tine_api::{
    Answer, Call, CommitQuery, CommitView, MergeBranches, Merged, NewCommit, Page,
    ResolveConflicts, Summary, Take,
};
use tine_core::{ConversationId, Json};
use tine_formats::redact;

use super::turns::add;
use super::{BranchPath, List, ProjectQuery, parameters};
use crate::openapi::{Link, Operation};
use crate::route::{ApiResult, RequestContext, Routes};

const TAG: &str = "Commits";

parameters!(paged CommitsQuery {
    /// Only commits of this conversation.
    conversation_id: Option<ConversationId>,
    /// Only the head of this branch and its ancestors: a name, together with a conversation, or an
    /// id.
    branch: Option<String>,
});

parameters!(paged ConversationCommitsQuery {
    /// The conversation.
    conversation_id: ConversationId,
    /// Only the head of this branch and its ancestors, by name or id.
    branch: Option<String>,
});

parameters!(CommitPath {
    /// The hash of the commit, or a prefix of it.
    commit: String,
});

const COMMITTED: &[Link] = &[
    Link { to: "getCommit", parameter: "commit", from: "$response.body#/commit_hash" },
    Link { to: "signCommit", parameter: "commit", from: "$response.body#/commit_hash" },
];

pub(super) fn routes(routes: Routes) -> Routes {
    let about = |id, summary| Operation::new(TAG, id, summary);
    routes
        .route(
            Method::POST,
            "/api/v1/commits",
            about("createCommit", "Create a commit of a range of turns")
                .also(&[201])
                .body_required()
                .links(COMMITTED),
            create,
        )
        .get("/api/v1/commits", about("listCommits", "List commits, newest first"), list)
        .get(
            "/api/v1/conversations/{conversation_id}/commits",
            about("listConversationCommits", "List the commits of a conversation, newest first"),
            of_conversation,
        )
        .get("/api/v1/commits/{commit}", about("getCommit", "Retrieve a commit"), get)
        .route(
            Method::POST,
            "/api/v1/commits/{commit}/signature",
            about("signCommit", "Store the signature of a commit").body_required(),
            sign,
        )
        .route(
            Method::POST,
            "/api/v1/merges",
            about("mergeBranches", "Merge the facts of a branch into another branch")
                .also(&[201])
                .conditional()
                .body_required(),
            merge,
        )
        .route(
            Method::POST,
            "/api/v1/conversations/{conversation_id}/branches/{branch}/resolutions",
            about("resolveConflicts", "Resolve the conflicts of a merge")
                .also(&[201])
                .conditional()
                .body_required()
                .links(COMMITTED),
            resolve,
        )
}

fn create(
    context: &RequestContext,
    _: ProjectQuery,
    mut request: NewCommit,
) -> ApiResult<Answer<CommitView>> {
    let call = redacted(context, [&mut request.message], []);
    context.created(context.engine().commit(&call, request)?)
}

fn list(context: &RequestContext, query: CommitsQuery) -> ApiResult<List<CommitView>> {
    let page = query.page();
    let wanted = CommitQuery { conversation: query.conversation_id, branch: query.branch };
    found(context, wanted, page)
}

fn of_conversation(
    context: &RequestContext,
    query: ConversationCommitsQuery,
) -> ApiResult<List<CommitView>> {
    let page = query.page();
    let wanted = CommitQuery { conversation: Some(query.conversation_id), branch: query.branch };
    found(context, wanted, page)
}

fn found(context: &RequestContext, query: CommitQuery, page: Page) -> ApiResult<List<CommitView>> {
    context.ok(context.engine().commits(&context.call, query, page)?)
}

fn get(context: &RequestContext, path: CommitPath) -> ApiResult<Answer<CommitView>> {
    context.ok(context.engine().commit_by_hash(&context.call, &path.commit)?)
}

fn sign(
    context: &RequestContext,
    path: CommitPath,
    body: SignCommit,
) -> ApiResult<Answer<CommitView>> {
    let (key, value) = (&body.public_key, &body.value);
    context.ok(context.engine().sign_commit(&context.call, &path.commit, key, value)?)
}

fn merge(
    context: &RequestContext,
    _: ProjectQuery,
    mut request: MergeBranches,
) -> ApiResult<Answer<Merged>> {
    let summary = match &mut request.summary {
        Summary::Text(text) => Some(text),
        Summary::None | Summary::Generated => None,
    };
    let call = redacted(context, request.message.iter_mut().chain(summary), []);
    let done = context.engine().merge(&call, request)?;
    context.made(done.commit.is_some(), done)
}

fn resolve(
    context: &RequestContext,
    path: BranchPath,
    mut request: ResolveConflicts,
) -> ApiResult<Answer<CommitView>> {
    request.conversation = path.conversation_id;
    request.branch = Some(path.branch);
    let values = request.decisions.iter_mut().filter_map(|one| match &mut one.take {
        Take::Value(value) => Some(value),
        Take::Side(_) | Take::Nothing => None,
    });
    let call = redacted(context, &mut request.message, values);
    context.created(context.engine().resolve_conflicts(&call, request)?)
}

/// Redacts texts and values before they are sealed, if the server redacts.
fn redacted<'a>(
    context: &RequestContext,
    texts: impl IntoIterator<Item = &'a mut String>,
    values: impl IntoIterator<Item = &'a mut Json>,
) -> Call {
    context.redacting(|redacted| {
        for text in texts {
            add(redacted, redact::string(text));
        }
        for value in values {
            let (clean, found) = redact::value(value.clone());
            *value = clean;
            add(redacted, found);
        }
    })
}
