//! Projects and conversations.

use axum::http::Method;
use tine_api::bodies;
use tine_api::{Answer, ConversationView, Derived, Listing, ProjectView, Purged};
use tine_core::ErrorKind;
use tine_engine::{ConversationPatch, Purge, PurgeTarget, RecentQuery};

use super::{List, Nowhere, OnlyProject, answer, conversation, page, parameters};
use crate::openapi::{Link, Operation};
use crate::problem::Problem;
use crate::route::{Answered, Asked, NoBody, Parameters, Reply, Routes};

const TAG: &str = "Conversations";

const GO_ON: &[Link] = &[
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

parameters!(One {
    /// The conversation.
    conversation_id: String,
});

/// A project by its place in the path.
#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ProjectPath {
    /// The project.
    project: String,
}

impl Parameters for ProjectPath {
    fn project_id(&self) -> Option<&str> {
        Some(&self.project)
    }
}

parameters!(Conversations {
    /// Goes on behind an earlier page.
    cursor: Option<String>,
    /// Rows in a page.
    limit: Option<u64>,
    /// Also hidden ones.
    archived: Option<bool>,
    /// In which order; as they were made without it.
    order: Option<Order>,
    /// With the order `activity`: only those whose title or id has each of these words somewhere.
    q: Option<String>,
    /// With the order `activity`: only those whose metadata has this among its `tags`.
    tag: Option<String>,
});

/// An order of conversations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Order {
    /// As they were made.
    Made,
    /// The one that people were last at first; an import counts when the last of it was said.
    Activity,
}

pub(super) fn routes(routes: Routes) -> Routes {
    let about = |id, summary| Operation::new(TAG, id, summary);
    routes
        .route(
            Method::POST,
            "/api/v1/projects",
            Operation::new("Projects", "createProject", "Make a project, or find it")
                .also(&[201])
                .body_required(),
            create_project,
        )
        .get(
            "/api/v1/projects",
            Operation::new("Projects", "listProjects", "List projects"),
            list_projects,
        )
        .get(
            "/api/v1/projects/{project}",
            Operation::new("Projects", "getProject", "One project"),
            get_project,
        )
        .route(
            Method::POST,
            "/api/v1/conversations",
            about("createConversation", "Begin a conversation").also(&[201]).links(GO_ON),
            create,
        )
        .get("/api/v1/conversations", about("listConversations", "List conversations"), list)
        .get(
            "/api/v1/conversations/{conversation_id}",
            about("getConversation", "One conversation"),
            get,
        )
        .route(
            Method::PATCH,
            "/api/v1/conversations/{conversation_id}",
            about("patchConversation", "Change title, metadata or visibility"),
            patch,
        )
        .route(
            Method::POST,
            "/api/v1/conversations/{conversation_id}/derive",
            about("deriveConversation", "Take it over under another system prompt").also(&[201]),
            derive,
        )
        .route(
            Method::POST,
            "/api/v1/conversations/{conversation_id}/archive",
            about("archiveConversation", "Hide it from lists, or show it again"),
            archive,
        )
        .route(
            Method::POST,
            "/api/v1/conversations/{conversation_id}/purge",
            about("purgeConversation", "Erase everything that it says, for ever"),
            purge,
        )
}

fn create_project(asked: &Asked, _: Nowhere, _: bodies::NewProject) -> Answered<ProjectView> {
    let (project, new) = asked.engine().create_project(asked.project())?;
    Ok(Reply::made(new, project))
}

fn list_projects(asked: &Asked, _: Nowhere, _: NoBody) -> Answered<Listing<ProjectView>> {
    let only = asked.caller.only_project();
    let mut found = asked.engine().projects()?;
    found.retain(|project| only.as_ref().is_none_or(|only| *only == project.id));
    Ok(Reply::ok(Listing::all(found.into_iter().collect())))
}

fn get_project(asked: &Asked, _: ProjectPath, _: NoBody) -> Answered<ProjectView> {
    Ok(Reply::ok(asked.engine().project(asked.project())?))
}

fn create(
    asked: &Asked,
    _: OnlyProject,
    body: bodies::NewConversation,
) -> Answered<Answer<ConversationView>> {
    let request = body.into_request(asked.engine().limits())?;
    let made = asked.engine().create_conversation(&asked.call, request)?;
    Ok(Reply::created(answer(asked, made)))
}

fn list(asked: &Asked, query: Conversations, _: NoBody) -> Answered<List<ConversationView>> {
    let archived = query.archived.unwrap_or(false);
    let page = page(query.cursor, query.limit)?;
    let found = match query.order.unwrap_or(Order::Made) {
        Order::Made if query.q.is_some() || query.tag.is_some() => {
            let why = "`q` and `tag` need `order=activity`";
            return Err(Problem::new(ErrorKind::Invalid, why));
        }
        Order::Made => asked.engine().conversations(&asked.call, archived, page)?,
        Order::Activity => {
            let (words, tag) = (query.q, query.tag);
            let recent = RecentQuery { include_archived: archived, words, tag, metadata: None };
            asked.engine().recent_conversations(&asked.call, &recent, page)?
        }
    };
    Ok(Reply::ok(answer(asked, found)))
}

fn get(asked: &Asked, path: One, _: NoBody) -> Answered<Answer<ConversationView>> {
    let id = conversation(&path.conversation_id, asked.engine().limits())?;
    Ok(Reply::ok(answer(asked, asked.engine().conversation(&asked.call, &id)?)))
}

fn patch(
    asked: &Asked,
    path: One,
    body: bodies::ConversationPatch,
) -> Answered<Answer<ConversationView>> {
    let id = conversation(&path.conversation_id, asked.engine().limits())?;
    let patch = body.into_request(asked.engine().limits())?;
    let done = asked.engine().patch_conversation(&asked.call, &id, patch)?;
    Ok(Reply::ok(answer(asked, done)))
}

fn derive(asked: &Asked, path: One, body: bodies::Derive) -> Answered<Answer<Derived>> {
    let request = body.into_request(&path.conversation_id, asked.engine().limits())?;
    let done = asked.engine().derive(&asked.call, request)?;
    Ok(Reply::made(done.created, answer(asked, done)))
}

fn archive(asked: &Asked, path: One, body: bodies::Archive) -> Answered<Answer<ConversationView>> {
    let id = conversation(&path.conversation_id, asked.engine().limits())?;
    let archived = Some(body.archived.unwrap_or(true));
    let patch = ConversationPatch { archived, ..ConversationPatch::default() };
    let done = asked.engine().patch_conversation(&asked.call, &id, patch)?;
    Ok(Reply::ok(answer(asked, done)))
}

fn purge(asked: &Asked, path: One, body: bodies::Purge) -> Answered<Answer<Purged>> {
    let id = conversation(&path.conversation_id, asked.engine().limits())?;
    let request = Purge { target: PurgeTarget::Conversation(id), confirm: body.confirm };
    let done = asked.engine().purge(&asked.call, request)?;
    Ok(Reply::ok(answer(asked, done)))
}
