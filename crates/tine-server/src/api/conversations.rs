//! Projects and conversations.

use axum::http::Method;
use tine_api::bodies::{Archive, NewProject, PurgeBody};
use tine_api::{
    Answer, ConversationPatch, ConversationView, Derive, Derived, Listing, NewConversation,
    ProjectView, Purge, PurgeTarget, Purged,
};
use tine_core::{ErrorKind, ProjectId, Timestamp};
use tine_engine::RecentQuery;

use super::{ConversationPath, List, NoParameters, ProjectQuery, parameters};
use crate::access::Access;
use crate::openapi::{Link, Operation};
use crate::problem::Problem;
use crate::route::{ApiResult, Parameters, Reply, RequestContext, Routes};

const TAG: &str = "Conversations";

const CREATED: &[Link] = &[
    Link {
        to: "getConversation",
        parameter: "conversation_id",
        from: "$response.body#/conversation_id",
    },
    Link {
        to: "appendTurns",
        parameter: "conversation_id",
        from: "$response.body#/conversation_id",
    },
    Link {
        to: "getTopology",
        parameter: "conversation_id",
        from: "$response.body#/conversation_id",
    },
];

/// The path of a project.
#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ProjectPath {
    /// The project.
    project: ProjectId,
}

impl Parameters for ProjectPath {
    fn project_id(&self) -> Option<&ProjectId> {
        Some(&self.project)
    }
}

parameters!(paged ConversationsQuery {
    /// Whether to include archived conversations.
    archived: Option<bool>,
    /// The order of the list; `made` by default.
    order: Option<ConversationOrder>,
    /// Only conversations whose label, folder or id contains each of these words, ignoring case.
    /// Needs `order=activity`.
    q: Option<String>,
    /// Only conversations with this tag in the `tags` of their metadata. Needs `order=activity`.
    tag: Option<String>,
    /// Only conversations of this program, such as `claude-code`. Needs `order=activity`.
    program: Option<String>,
    /// Only conversations about this folder or one below it. A name without slashes is compared with
    /// the last part of the folder. Needs `order=activity`.
    folder: Option<String>,
    /// Only conversations that were active at this time or later. Needs `order=activity`.
    since: Option<Timestamp>,
    /// Only conversations that were last active before this time. Needs `order=activity`.
    until: Option<Timestamp>,
    /// Whether to omit conversations that another one started as sub-agents. Needs
    /// `order=activity`.
    top_level: Option<bool>,
});

/// An order of conversations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "Order")]
pub(crate) enum ConversationOrder {
    /// In order of creation.
    Made,
    /// Most recently active first, with an overview of each conversation. Imported messages count
    /// at the time at which they were sent.
    Activity,
}

pub(super) fn routes(routes: Routes) -> Routes {
    let about = |id, summary| Operation::new(TAG, id, summary);
    let projects = |id, summary| Operation::new("Projects", id, summary);
    routes
        .route(
            Method::POST,
            "/api/v1/projects",
            projects("createProject", "Create a project, or return the existing one")
                .also(&[201])
                .body_required(),
            create_project,
        )
        .get("/api/v1/projects", projects("listProjects", "List projects"), list_projects)
        .get(
            "/api/v1/projects/{project}",
            projects("getProject", "Retrieve a project"),
            get_project,
        )
        .route(
            Method::POST,
            "/api/v1/conversations",
            about("createConversation", "Create a conversation").also(&[201]).links(CREATED),
            create,
        )
        .get("/api/v1/conversations", about("listConversations", "List conversations"), list)
        .get(
            "/api/v1/conversations/{conversation_id}",
            about("getConversation", "Retrieve a conversation"),
            get,
        )
        .route(
            Method::PATCH,
            "/api/v1/conversations/{conversation_id}",
            about("patchConversation", "Update the title, metadata or visibility"),
            patch,
        )
        .route(
            Method::POST,
            "/api/v1/conversations/{conversation_id}/derive",
            about("deriveConversation", "Copy a conversation with another system prompt")
                .also(&[201]),
            derive,
        )
        .route(
            Method::POST,
            "/api/v1/conversations/{conversation_id}/archive",
            about("archiveConversation", "Archive or unarchive a conversation"),
            archive,
        )
        .route(
            Method::POST,
            "/api/v1/conversations/{conversation_id}/purge",
            about("purgeConversation", "Permanently erase the content of a conversation"),
            purge,
        )
}

fn create_project(
    context: &RequestContext,
    _: NoParameters,
    body: NewProject,
) -> ApiResult<ProjectView> {
    context.caller.check(&body.project_id, Access::Write)?;
    let (project, new) = context.engine().create_project(&body.project_id)?;
    Ok(Reply::made(new, project))
}

fn list_projects(context: &RequestContext, _: NoParameters) -> ApiResult<Listing<ProjectView>> {
    let only = context.caller.only_project();
    let mut found = context.engine().projects()?;
    found.retain(|project| only.as_ref().is_none_or(|only| *only == project.id));
    Ok(Reply::ok(Listing::all(found)))
}

fn get_project(context: &RequestContext, _: ProjectPath) -> ApiResult<ProjectView> {
    Ok(Reply::ok(context.engine().project(context.project())?))
}

fn create(
    context: &RequestContext,
    _: ProjectQuery,
    request: NewConversation,
) -> ApiResult<Answer<ConversationView>> {
    context.created(context.engine().create_conversation(&context.call, request)?)
}

fn list(context: &RequestContext, query: ConversationsQuery) -> ApiResult<List<ConversationView>> {
    let (page, include_archived) = (query.page(), query.archived.unwrap_or(false));
    let recent = RecentQuery {
        include_archived,
        top_level: query.top_level.unwrap_or(false),
        words: query.q,
        tag: query.tag,
        program: query.program,
        folder: query.folder,
        since: query.since,
        until: query.until,
    };
    let order = query.order.unwrap_or(ConversationOrder::Made);
    let found = match order {
        ConversationOrder::Made if has_filters(&recent) => {
            let why = "filters such as `q` and `tag` need `order=activity`";
            return Err(Problem::new(ErrorKind::Invalid, why));
        }
        ConversationOrder::Made => {
            context.engine().conversations(&context.call, include_archived, page)?
        }
        ConversationOrder::Activity => {
            context.engine().recent_conversations(&context.call, &recent, page)?
        }
    };
    context.ok(found)
}

fn has_filters(query: &RecentQuery) -> bool {
    let RecentQuery { include_archived: _, top_level, words, tag, program, folder, since, until } =
        query;
    let texts = [words, tag, program, folder];
    *top_level
        || texts.iter().any(|text| text.is_some())
        || [since, until].iter().any(|time| time.is_some())
}

fn get(context: &RequestContext, path: ConversationPath) -> ApiResult<Answer<ConversationView>> {
    context.ok(context.engine().conversation(&context.call, &path.conversation_id)?)
}

fn patch(
    context: &RequestContext,
    path: ConversationPath,
    patch: ConversationPatch,
) -> ApiResult<Answer<ConversationView>> {
    let (engine, id) = (context.engine(), &path.conversation_id);
    context.ok(engine.patch_conversation(&context.call, id, patch)?)
}

fn derive(
    context: &RequestContext,
    path: ConversationPath,
    request: Derive,
) -> ApiResult<Answer<Derived>> {
    let request = Derive { conversation: path.conversation_id, ..request };
    let done = context.engine().derive(&context.call, request)?;
    context.made(done.created, done)
}

fn archive(
    context: &RequestContext,
    path: ConversationPath,
    body: Archive,
) -> ApiResult<Answer<ConversationView>> {
    let archived = Some(body.archived.unwrap_or(true));
    patch(context, path, ConversationPatch { archived, ..ConversationPatch::default() })
}

fn purge(
    context: &RequestContext,
    path: ConversationPath,
    body: PurgeBody,
) -> ApiResult<Answer<Purged>> {
    let target = PurgeTarget::Conversation(path.conversation_id);
    context.ok(context.engine().purge(&context.call, Purge { target, confirm: body.confirm })?)
}
