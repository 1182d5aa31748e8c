//! Turns: appending, reading, editing.

use axum::http::Method;
use tine_api::bodies::{self, ForkTurn, PurgeBody, Speaker};
use tine_api::{
    Answer, Append, Appended, BranchTurnsQuery, BranchView, Delete, DeleteMode, Deleted, Edit,
    Edited, Injected, MetadataPatch, Outcome, OutlineColumns, OutlineQuery, Page, PathPage,
    PathQuery, Purge, PurgeTarget, Purged, Selection, SplitDone, SplitTurn, Tail, TopologyPage,
    TopologyQuery, TurnRef, TurnRings, TurnView, TurnWithRings, Window, WindowQuery,
};
use tine_core::{Content, ConversationId, ErrorKind, Reference};
use tine_formats::redact::Redacted;
use tine_formats::render::RenderingJson;
use tine_formats::{redact, render};

use super::{ConversationPath, List, parameters};
use crate::openapi::{Link, Operation};
use crate::problem::Problem;
use crate::route::{ApiResult, RequestContext, Routes, etag};

const TAG: &str = "Turns";

parameters!(paged BranchTurns {
    /// The conversation.
    conversation_id: ConversationId,
    /// The branch, by name or id; `main` by default.
    branch: Option<String>,
    /// Only turns of this role.
    role: Option<Speaker>,
});

parameters!(paged TopologyParameters {
    /// The conversation.
    conversation_id: ConversationId,
    /// Only this turn and its descendants.
    under: Option<Reference>,
    /// Whether to include deleted turns, marked as such.
    deleted: Option<bool>,
});

parameters!(OutlineParameters {
    /// The conversation.
    conversation_id: ConversationId,
    /// The `seq` of an earlier outline. If turns were only added or renamed since, the answer has
    /// just those; otherwise the whole outline.
    since: Option<u64>,
    /// The `next` cursor of the previous page.
    cursor: Option<String>,
    /// The maximum number of rows to return; 200,000 by default.
    #[schemars(with = "Option<u64>")]
    rows: Option<usize>,
});

parameters!(TurnPath {
    /// The turn: its id, its hash or a prefix of it, a branch, a bookmark, or `branch~N`.
    turn: Reference,
    /// The conversation in which hashes and names are looked up.
    conversation_id: Option<ConversationId>,
});

parameters!(TurnQuery {
    /// The turn: its id, its hash or a prefix of it, a branch, a bookmark, or `branch~N`.
    turn: Reference,
    /// The conversation in which hashes and names are looked up.
    conversation_id: Option<ConversationId>,
    /// Whether to include what the turn is about; `true` by default.
    rings: Option<bool>,
});

parameters!(InjectPath {
    /// The turn: its id, its hash or a prefix of it, a branch, a bookmark, or `branch~N`.
    turn: Reference,
});

parameters!(paged PathParameters {
    /// The turn at the end of the path.
    turn: Reference,
    /// The conversation in which hashes and names are looked up.
    conversation_id: Option<ConversationId>,
    /// Renders the path for a provider, ready to be sent, instead of returning pages.
    format: Option<PathFormat>,
    /// With `format`: the maximum number of tokens. Only the end of the path that fits is rendered.
    max_tokens: Option<u64>,
    /// With `format`: how to render tool calls without a result; `close` by default.
    open_calls: Option<OpenCalls>,
    /// Only the last turns, as a number.
    #[schemars(with = "Option<u64>")]
    last: Option<usize>,
    /// Returns this many turns around the turn instead, half of them before it.
    #[schemars(with = "Option<u64>")]
    window: Option<usize>,
    /// Returns a window with this many turns before the turn.
    #[schemars(with = "Option<u64>")]
    before: Option<usize>,
    /// Returns a window with this many turns after the turn.
    #[schemars(with = "Option<u64>")]
    after: Option<usize>,
    /// The branch that a window follows after the turn.
    branch: Option<String>,
});

parameters!(DeleteParameters {
    /// The turn.
    turn: Reference,
    /// The conversation in which hashes and names are looked up.
    conversation_id: Option<ConversationId>,
    /// What to delete along with the turn; `cascade` by default.
    mode: Option<DeleteScope>,
    /// Whether to delete the turn even if other records refer to it.
    force: Option<bool>,
    /// Whether to only report what would be deleted.
    dry_run: Option<bool>,
});

/// What to delete along with a turn.
#[derive(Clone, Copy, Debug, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "Mode")]
pub(crate) enum DeleteScope {
    /// All descendants.
    Cascade,
    /// Nothing; its children become children of its parent.
    Reparent,
}

/// The provider to render a path for.
#[derive(Clone, Copy, Debug, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "Format")]
pub(crate) enum PathFormat {
    /// Messages in Tine's canonical form.
    Tine,
    /// OpenAI's Chat Completions API.
    Openai,
    /// Anthropic's Messages API.
    Anthropic,
    /// Gemini's `generateContent`.
    Gemini,
    /// Markdown.
    Markdown,
}

/// How to render tool calls without a result.
#[derive(Clone, Copy, Debug, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum OpenCalls {
    /// Adds a result that states that there is none.
    Close,
    /// Fails and lists the calls.
    Report,
    /// Leaves them as they are.
    Keep,
}

const APPENDED: &[Link] = &[
    Link { to: "getTurn", parameter: "turn", from: "$response.body#/turns/0/turn_id" },
    Link { to: "getPath", parameter: "turn", from: "$response.body#/tip" },
    Link { to: "forkTurn", parameter: "turn", from: "$response.body#/turns/0/turn_id" },
    Link { to: "editTurn", parameter: "turn", from: "$response.body#/turns/0/turn_id" },
    Link { to: "deleteTurn", parameter: "turn", from: "$response.body#/turns/0/turn_id" },
];

pub(super) fn routes(routes: Routes) -> Routes {
    let about = |id, summary| Operation::new(TAG, id, summary);
    routes
        .route(
            Method::POST,
            "/api/v1/conversations/{conversation_id}/turns",
            about("appendTurns", "Append messages, reusing existing turns with equal content")
                .also(&[201])
                .conditional()
                .body_required()
                .links(APPENDED),
            append,
        )
        .get(
            "/api/v1/conversations/{conversation_id}/turns",
            about("listTurns", "List the turns of a branch, first to last"),
            list,
        )
        .get(
            "/api/v1/conversations/{conversation_id}/topology",
            about("getTopology", "Retrieve the tree without its content"),
            topology,
        )
        .get(
            "/api/v1/conversations/{conversation_id}/outline",
            about("getOutline", "Retrieve the tree as columns, or what was added to it"),
            outline,
        )
        .get(
            "/api/v1/conversations/{conversation_id}/tails",
            about("listTails", "List lines of turns that no branch leads to"),
            tails,
        )
        .get("/api/v1/turns/{turn}", about("getTurn", "Retrieve a turn and what it is about"), get)
        .get(
            "/api/v1/turns/{turn}/rings",
            about("getRings", "Retrieve the keywords, intent, facets and sentences of a turn"),
            rings,
        )
        .get(
            "/api/v1/turns/{turn}/path",
            about("getPath", "Retrieve the path from the root to a turn, or the turns around it"),
            path,
        )
        .get(
            "/api/v1/turns/{turn}/children",
            about("listChildren", "List the children of a turn"),
            children,
        )
        .get(
            "/api/v1/turns/{turn}/siblings",
            about("listSiblings", "List the siblings of a turn, including the turn itself"),
            siblings,
        )
        .get(
            "/api/v1/turns/{turn}/versions",
            about("listVersions", "List the versions of a turn: its origin and its edits"),
            versions,
        )
        .route(
            Method::POST,
            "/api/v1/turns/{turn}/fork",
            about("forkTurn", "Create a branch at a turn").also(&[201]),
            fork,
        )
        .route(
            Method::POST,
            "/api/v1/turns/{turn}/edit",
            about("editTurn", "Create another version of a turn; the original is kept")
                .also(&[201])
                .conditional()
                .body_required(),
            edit,
        )
        .route(
            Method::POST,
            "/api/v1/turns/{turn}/split",
            about("splitTurn", "Show a turn as two").body_required(),
            split,
        )
        .route(
            Method::POST,
            "/api/v1/turns/{turn}/inject",
            about("injectTurn", "Copy a turn to the end of a branch")
                .also(&[201])
                .conditional()
                .body_required(),
            inject,
        )
        .route(
            Method::POST,
            "/api/v1/turns/{turn}/purge",
            about("purgeTurn", "Permanently erase the content of a turn"),
            purge,
        )
        .delete(
            "/api/v1/turns/{turn}",
            about("deleteTurn", "Delete a turn; undo restores it"),
            delete,
        )
        .route(
            Method::PATCH,
            "/api/v1/turns/{turn}/metadata",
            about("patchTurnMetadata", "Update the title, tags and custom data of a turn"),
            patch_metadata,
        )
}

fn append(
    context: &RequestContext,
    path: ConversationPath,
    mut request: Append,
) -> ApiResult<Answer<Appended>> {
    request.conversation = path.conversation_id;
    let call = context.redacting(|redacted| add(redacted, redact::messages(&mut request.messages)));
    let done = context.engine().append(&call, request)?;
    let new = done.turns.iter().any(|turn| turn.outcome == Some(Outcome::Created));
    let tag = etag(&done.branch);
    context.made(new && !done.replayed, done).map(|reply| reply.with_etag(tag))
}

/// Adds counts of redacted secrets, by kind.
pub(super) fn add(redacted: &mut Redacted, more: Redacted) {
    for (kind, count) in more {
        let known = redacted.entry(kind).or_default();
        *known = known.saturating_add(count);
    }
}

fn list(context: &RequestContext, query: BranchTurns) -> ApiResult<Answer<PathPage>> {
    let Page { cursor, limit } = query.page();
    let request = BranchTurnsQuery {
        conversation: query.conversation_id,
        branch: query.branch.unwrap_or_else(|| "main".to_owned()),
        role: query.role.map(Speaker::role),
        cursor,
        limit,
    };
    let (branch, found) = context.engine().branch_turns(&context.call, request)?;
    context.ok(found).map(|reply| reply.with_etag(etag(&branch)))
}

fn topology(
    context: &RequestContext,
    query: TopologyParameters,
) -> ApiResult<Answer<TopologyPage>> {
    let Page { cursor, limit } = query.page();
    let request = TopologyQuery {
        conversation: query.conversation_id,
        under: query.under,
        cursor,
        limit,
        include_deleted: query.deleted.unwrap_or(false),
    };
    context.ok(context.engine().topology(&context.call, request)?)
}

fn outline(
    context: &RequestContext,
    query: OutlineParameters,
) -> ApiResult<Answer<OutlineColumns>> {
    // The largest of these answers take megabytes each.
    let _permit = context.app.transfers.acquire()?;
    let OutlineParameters { conversation_id: conversation, since, cursor, rows, .. } = query;
    let request = OutlineQuery { conversation, since, cursor, rows };
    context.ok(context.engine().outline(&context.call, request)?.into())
}

fn tails(context: &RequestContext, path: ConversationPath) -> ApiResult<List<Tail>> {
    context.list(context.engine().tails(&context.call, &path.conversation_id)?)
}

impl From<TurnPath> for TurnRef {
    fn from(path: TurnPath) -> Self {
        TurnRef { conversation: path.conversation_id, turn: path.turn }
    }
}

fn get(context: &RequestContext, query: TurnQuery) -> ApiResult<Answer<TurnWithRings>> {
    let engine = context.engine();
    let wanted = TurnRef { conversation: query.conversation_id, turn: query.turn };
    let found = engine.turn(&context.call, wanted)?;
    let rings = match (&found.content, query.rings.unwrap_or(true)) {
        (Content::Kept(_), true) => {
            let same = TurnRef::within(found.conversation.clone(), Reference::from(found.id));
            Some(engine.rings(&context.call, same)?.into())
        }
        _ => None,
    };
    context.ok(TurnWithRings { turn: found, rings })
}

fn rings(context: &RequestContext, path: TurnPath) -> ApiResult<Answer<TurnRings>> {
    context.ok(context.engine().rings(&context.call, path.into())?)
}

/// A path, a window of it, or its rendering for a provider.
#[derive(Debug, serde::Serialize, schemars::JsonSchema)]
#[serde(untagged)]
pub(crate) enum PathForm {
    Path(PathPage),
    Window(Window),
    Rendering(RenderingJson),
}

/// Renders a path for a provider.
fn rendered(
    context: &RequestContext,
    path: PathQuery,
    format: PathFormat,
    max_tokens: Option<u64>,
    open_calls: Option<OpenCalls>,
) -> Result<RenderingJson, Problem> {
    let mut options = render::Options::of(match format {
        PathFormat::Tine => render::Format::Tine,
        PathFormat::Openai => render::Format::OpenAi,
        PathFormat::Anthropic => render::Format::Anthropic,
        PathFormat::Gemini => render::Format::Gemini,
        PathFormat::Markdown => render::Format::Markdown,
    });
    options.open_calls = match open_calls.unwrap_or(OpenCalls::Close) {
        OpenCalls::Close => render::OpenCalls::Close,
        OpenCalls::Report => render::OpenCalls::Report,
        OpenCalls::Keep => render::OpenCalls::Keep,
    };
    options.budget =
        max_tokens.map(|max_tokens| render::Budget { max_tokens, count: &tine_llm::tokens::count });
    Ok(render::render_path(context.engine(), &context.call, path, &options)?.into())
}

fn path(context: &RequestContext, query: PathParameters) -> ApiResult<Answer<PathForm>> {
    let (engine, Page { cursor, limit }) = (context.engine(), query.page());
    let (conversation, to) = (query.conversation_id, query.turn);
    let around = match (query.window, query.before, query.after) {
        (None, None, None) => None,
        (Some(window), None, None) => Some((window / 2, window.saturating_sub(window / 2 + 1))),
        (None, before, after) => Some((before.unwrap_or(0), after.unwrap_or(0))),
        (Some(_), ..) => {
            let why = "give either `window` or `before` and `after`, not both";
            return Err(Problem::new(ErrorKind::Invalid, why));
        }
    };
    if let Some((before, after)) = around {
        let turn = TurnRef { conversation, turn: to };
        let request = WindowQuery { turn, branch: query.branch, before, after };
        return context.ok(PathForm::Window(engine.window(&context.call, request)?));
    }
    let selection = query.last.map_or(Selection::Whole, Selection::Last);
    let request = PathQuery { conversation, to: Some(to), selection, cursor, limit };
    if let Some(format) = query.format {
        let rendered = rendered(context, request, format, query.max_tokens, query.open_calls)?;
        return context.ok(PathForm::Rendering(rendered));
    }
    context.ok(PathForm::Path(engine.path(&context.call, request)?))
}

fn children(context: &RequestContext, path: TurnPath) -> ApiResult<List<TurnView>> {
    context.list(context.engine().children(&context.call, path.into())?)
}

fn siblings(context: &RequestContext, path: TurnPath) -> ApiResult<List<TurnView>> {
    context.list(context.engine().siblings(&context.call, path.into())?)
}

fn versions(context: &RequestContext, path: TurnPath) -> ApiResult<List<TurnView>> {
    context.list(context.engine().versions(&context.call, path.into())?)
}

/// Returns the turn of a path, in the conversation of the query or else of the body.
fn turn_of(context: &RequestContext, path: TurnPath) -> TurnRef {
    let in_body = || context.fields.conversation_id.clone();
    TurnRef { conversation: path.conversation_id.or_else(in_body), turn: path.turn }
}

fn fork(context: &RequestContext, path: TurnPath, body: ForkTurn) -> ApiResult<Answer<BranchView>> {
    let made = context.engine().fork(&context.call, body.into_fork(turn_of(context, path)))?;
    let tag = etag(&made);
    context.created(made).map(|reply| reply.with_etag(tag))
}

fn edit(context: &RequestContext, path: TurnPath, mut request: Edit) -> ApiResult<Answer<Edited>> {
    request.turn = turn_of(context, path);
    let call = context.redacting(|redacted| add(redacted, redact::body(&mut request.body)));
    let done = context.engine().edit(&call, request)?;
    context.made(done.turn.outcome == Some(Outcome::Created), done)
}

fn split(
    context: &RequestContext,
    path: TurnPath,
    request: SplitTurn,
) -> ApiResult<Answer<SplitDone>> {
    let request = SplitTurn { turn: turn_of(context, path), ..request };
    context.ok(context.engine().split(&context.call, request)?)
}

fn inject(
    context: &RequestContext,
    path: InjectPath,
    body: bodies::Inject,
) -> ApiResult<Answer<Injected>> {
    let done = context.engine().inject(&context.call, body.into_request(path.turn))?;
    let tag = etag(&done.branch);
    context.created(done).map(|reply| reply.with_etag(tag))
}

fn purge(context: &RequestContext, path: TurnPath, body: PurgeBody) -> ApiResult<Answer<Purged>> {
    let target = PurgeTarget::Turn(turn_of(context, path));
    context.ok(context.engine().purge(&context.call, Purge { target, confirm: body.confirm })?)
}

fn delete(context: &RequestContext, query: DeleteParameters) -> ApiResult<Answer<Deleted>> {
    let request = Delete {
        turn: TurnRef { conversation: query.conversation_id, turn: query.turn },
        mode: match query.mode.unwrap_or(DeleteScope::Cascade) {
            DeleteScope::Cascade => DeleteMode::Cascade,
            DeleteScope::Reparent => DeleteMode::Reparent,
        },
        force: query.force.unwrap_or(false),
        dry_run: query.dry_run.unwrap_or(false),
    };
    context.ok(context.engine().delete(&context.call, request)?)
}

fn patch_metadata(
    context: &RequestContext,
    path: TurnPath,
    patch: MetadataPatch,
) -> ApiResult<Answer<TurnView>> {
    let turn = turn_of(context, path);
    context.ok(context.engine().patch_metadata(&context.call, turn, patch)?)
}
