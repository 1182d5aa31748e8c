//! Commits: sealing turns, signing, merging, deciding.

use axum::http::Method;
use tine_api::bodies;
use tine_api::{Answer, CommitView, Merged};
use tine_core::{ConversationId, Json};
use tine_engine::{Call, CommitQuery, Summary, Take};
use tine_formats::redact::{self, Redacted};

use super::turns::add;
use super::{List, OnlyProject, answer, conversation, page, parameters};
use crate::openapi::{Link, Operation};
use crate::route::{Answered, Asked, NoBody, Reply, Routes};

const TAG: &str = "Commits";

parameters!(All {
    /// Only those of this conversation.
    conversation_id: Option<String>,
    /// Only those that the last commit of this branch builds on: its name or id, with a
    /// conversation.
    branch: Option<String>,
    /// Goes on behind an earlier page.
    cursor: Option<String>,
    /// Commits in a page.
    limit: Option<u64>,
});

parameters!(OfConversation {
    /// The conversation.
    conversation_id: String,
    /// Only those that the last commit of this branch builds on: its name or id.
    branch: Option<String>,
    /// Goes on behind an earlier page.
    cursor: Option<String>,
    /// Commits in a page.
    limit: Option<u64>,
});

parameters!(One {
    /// The commit: its hash, or a prefix of it.
    commit: String,
});

parameters!(OnBranch {
    /// The conversation.
    conversation_id: String,
    /// The branch, by name or id.
    branch: String,
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
            about("createCommit", "Seal a stretch of turns with what it is about")
                .also(&[201])
                .body_required()
                .links(COMMITTED),
            create,
        )
        .get("/api/v1/commits", about("listCommits", "Commits, the newest first"), list)
        .get(
            "/api/v1/conversations/{conversation_id}/commits",
            about("listConversationCommits", "Commits of a conversation, the newest first"),
            of_conversation,
        )
        .get("/api/v1/commits/{commit}", about("getCommit", "One commit"), get)
        .route(
            Method::POST,
            "/api/v1/commits/{commit}/signature",
            about("signCommit", "Keep a signature of its hash").body_required(),
            sign,
        )
        .route(
            Method::POST,
            "/api/v1/merges",
            about("mergeBranches", "Bring what was learned on another branch to a branch")
                .also(&[201])
                .conditional()
                .body_required(),
            merge,
        )
        .route(
            Method::POST,
            "/api/v1/conversations/{conversation_id}/branches/{branch}/resolutions",
            about("resolveConflicts", "Decide what a merge could not decide")
                .also(&[201])
                .conditional()
                .body_required()
                .links(COMMITTED),
            resolve,
        )
}

fn create(asked: &Asked, _: OnlyProject, body: bodies::NewCommit) -> Answered<Answer<CommitView>> {
    let mut request = body.into_request(asked.engine().limits())?;
    let call = without_secrets(asked, [&mut request.message], []);
    Ok(Reply::created(answer(asked, asked.engine().commit(&call, request)?)))
}

fn list(asked: &Asked, query: All, _: NoBody) -> Answered<List<CommitView>> {
    let limits = asked.engine().limits();
    let id = query.conversation_id.as_deref().map(|id| conversation(id, limits)).transpose()?;
    found(asked, id, query.branch, (query.cursor, query.limit))
}

fn of_conversation(asked: &Asked, query: OfConversation, _: NoBody) -> Answered<List<CommitView>> {
    let id = conversation(&query.conversation_id, asked.engine().limits())?;
    found(asked, Some(id), query.branch, (query.cursor, query.limit))
}

fn found(
    asked: &Asked,
    conversation: Option<ConversationId>,
    branch: Option<String>,
    (cursor, limit): (Option<String>, Option<u64>),
) -> Answered<List<CommitView>> {
    let (query, page) = (CommitQuery { conversation, branch }, page(cursor, limit)?);
    Ok(Reply::ok(answer(asked, asked.engine().commits(&asked.call, query, page)?)))
}

fn get(asked: &Asked, path: One, _: NoBody) -> Answered<Answer<CommitView>> {
    let found = asked.engine().commit_by_hash(&asked.call, &path.commit)?;
    Ok(Reply::ok(answer(asked, found)))
}

fn sign(asked: &Asked, path: One, body: bodies::SignCommit) -> Answered<Answer<CommitView>> {
    let (key, value) = (&body.public_key, &body.value);
    let signed = asked.engine().sign_commit(&asked.call, &path.commit, key, value)?;
    Ok(Reply::ok(answer(asked, signed)))
}

fn merge(asked: &Asked, _: OnlyProject, body: bodies::Merge) -> Answered<Answer<Merged>> {
    let mut request = body.into_request(asked.engine().limits())?;
    let summary = match &mut request.summary {
        Summary::Text(words) => Some(words),
        Summary::None | Summary::Generated => None,
    };
    let call = without_secrets(asked, request.message.iter_mut().chain(summary), []);
    let done = asked.engine().merge(&call, request)?;
    Ok(Reply::made(done.commit.is_some(), answer(asked, done)))
}

fn resolve(
    asked: &Asked,
    path: OnBranch,
    body: bodies::ResolveConflicts,
) -> Answered<Answer<CommitView>> {
    let limits = asked.engine().limits();
    let mut request = body.into_request(&path.conversation_id, &path.branch, limits)?;
    let values = request.decisions.iter_mut().filter_map(|one| match &mut one.take {
        Take::Value(value) => Some(value),
        Take::Side(_) | Take::Nothing => None,
    });
    let call = without_secrets(asked, &mut request.message, values);
    let made = asked.engine().resolve_conflicts(&call, request)?;
    Ok(Reply::created(answer(asked, made)))
}

/// The call, with a note of the secrets that were taken out of what is about to be sealed, where
/// the server takes them out.
fn without_secrets<'a>(
    asked: &Asked,
    texts: impl IntoIterator<Item = &'a mut String>,
    values: impl IntoIterator<Item = &'a mut Json>,
) -> Call {
    let mut redacted = Redacted::new();
    if asked.app.options.redact {
        for text in texts {
            add(&mut redacted, redact::string(text));
        }
        for value in values {
            let (clean, found) = redact::value(value.clone());
            *value = clean;
            add(&mut redacted, found);
        }
    }
    asked.call.clone().with_redacted(redacted)
}
