//! Turns: appending, reading, editing.

use axum::http::Method;
use tine_api::bodies;
use tine_api::{
    Answer, Appended, BranchView, Deleted, Edited, Injected, Listing, OutlineColumns, PathPage,
    Purged, SplitDone, Tail, TopologyPage, TurnRings, TurnView, TurnWithRings, Window,
};
use tine_core::{ConversationId, ErrorKind, Reference};
use tine_engine::{
    BranchTurnsQuery, Delete, DeleteMode, Fork, ForkPoint, Outcome, OutlineQuery, PathQuery, Purge,
    PurgeTarget, Selection, TopologyQuery, TurnRef, WindowQuery,
};
use tine_formats::redact::Redacted;
use tine_formats::{redact, render};
use tine_store::Content;

use super::{List, answer, conversation, name, parameters, reference, turn};
use crate::openapi::{Link, Operation};
use crate::problem::Problem;
use crate::route::{Answered, Asked, NoBody, Reply, Routes, etag};

const TAG: &str = "Turns";

parameters!(InConversation {
    /// The conversation.
    conversation_id: String,
});

parameters!(BranchTurns {
    /// The conversation.
    conversation_id: String,
    /// The branch whose path is read, by name or id; `main` without it.
    branch: Option<String>,
    /// Only turns of this role.
    role: Option<bodies::Speaker>,
    /// Goes on behind an earlier page.
    cursor: Option<String>,
    /// Turns in a page.
    limit: Option<u64>,
});

parameters!(Topology {
    /// The conversation.
    conversation_id: String,
    /// Only what lies at and below this turn.
    under: Option<String>,
    /// Also what is deleted, marked so.
    deleted: Option<bool>,
    /// Goes on behind an earlier page.
    cursor: Option<String>,
    /// Rows in a page.
    limit: Option<u64>,
});

parameters!(Outline {
    /// The conversation.
    conversation_id: String,
    /// The `seq` of an outline that the caller has: only what is new since then, where nothing but
    /// adding and naming has happened; else everything again.
    since: Option<u64>,
    /// Goes on behind an earlier page.
    cursor: Option<String>,
    /// Rows in a page; 200,000 without it.
    rows: Option<u64>,
});

parameters!(One {
    /// The turn: its id, its hash or a prefix of it, a branch, a bookmark, `branch~N`.
    turn: String,
    /// The conversation in which hashes and names are looked up.
    conversation_id: Option<String>,
});

parameters!(Detail {
    /// The turn: its id, its hash or a prefix of it, a branch, a bookmark, `branch~N`.
    turn: String,
    /// The conversation in which hashes and names are looked up.
    conversation_id: Option<String>,
    /// `false` leaves out what it is about.
    rings: Option<bool>,
});

parameters!(OnlyTurn {
    /// The turn: its id, its hash or a prefix of it, a branch, a bookmark, `branch~N`.
    turn: String,
});

parameters!(PathTo {
    /// The turn at the end of the path.
    turn: String,
    /// The conversation in which hashes and names are looked up.
    conversation_id: Option<String>,
    /// Rendered for a provider instead, ready to be sent; then there are no pages.
    format: Option<Format>,
    /// With a format: the end of the path that fits.
    max_tokens: Option<u64>,
    /// With a format: what becomes of tool calls without a result; `close` without it.
    open_calls: Option<OpenCalls>,
    /// Only the last turns.
    last: Option<u64>,
    /// The turns around it instead, half before and half behind.
    window: Option<u64>,
    /// The same with a number of turns before it …
    before: Option<u64>,
    /// … and one of turns behind it.
    after: Option<u64>,
    /// The branch whose line a window follows behind the turn.
    branch: Option<String>,
    /// Goes on behind an earlier page.
    cursor: Option<String>,
    /// Turns in a page.
    limit: Option<u64>,
});

parameters!(Deletion {
    /// The turn.
    turn: String,
    /// The conversation in which hashes and names are looked up.
    conversation_id: Option<String>,
    /// What goes with it; `cascade` without it.
    mode: Option<Mode>,
    /// Also when something from elsewhere points at it.
    force: Option<bool>,
    /// Only say what would go.
    dry_run: Option<bool>,
});

/// What goes with a deleted turn.
#[derive(Clone, Copy, Debug, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Mode {
    /// Everything below it.
    Cascade,
    /// Nothing; the children show under the parent.
    Reparent,
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
            about("appendTurns", "Append messages; what is there already is taken as it is")
                .also(&[201])
                .conditional()
                .body_required()
                .links(APPENDED),
            append,
        )
        .get(
            "/api/v1/conversations/{conversation_id}/turns",
            about("listTurns", "The turns of a branch, first turn first"),
            list,
        )
        .get(
            "/api/v1/conversations/{conversation_id}/topology",
            about("getTopology", "The tree without its content"),
            topology,
        )
        .get(
            "/api/v1/conversations/{conversation_id}/outline",
            about("getOutline", "The tree at a glance, in columns, or what has come to it"),
            outline,
        )
        .get(
            "/api/v1/conversations/{conversation_id}/tails",
            about("listTails", "Lines that no branch leads to"),
            tails,
        )
        .get(
            "/api/v1/turns/{turn}",
            about("getTurn", "One turn, shown or not, and what it is about"),
            get,
        )
        .get(
            "/api/v1/turns/{turn}/rings",
            about("getRings", "What it is about: keywords, intent, facets and sentences"),
            rings,
        )
        .get(
            "/api/v1/turns/{turn}/path",
            about("getPath", "The path from the root to a turn, or the window around it"),
            path,
        )
        .get("/api/v1/turns/{turn}/children", about("listChildren", "What follows it"), children)
        .get(
            "/api/v1/turns/{turn}/siblings",
            about("listSiblings", "All that follow its parent, itself among them"),
            siblings,
        )
        .get(
            "/api/v1/turns/{turn}/versions",
            about("listVersions", "What it was edited from, and what was edited from it"),
            versions,
        )
        .route(
            Method::POST,
            "/api/v1/turns/{turn}/fork",
            about("forkTurn", "Make a branch there").also(&[201]),
            fork,
        )
        .route(
            Method::POST,
            "/api/v1/turns/{turn}/edit",
            about("editTurn", "Make another version; the old one stays")
                .also(&[201])
                .conditional()
                .body_required(),
            edit,
        )
        .route(
            Method::POST,
            "/api/v1/turns/{turn}/split",
            about("splitTurn", "Show it as two").body_required(),
            split,
        )
        .route(
            Method::POST,
            "/api/v1/turns/{turn}/inject",
            about("injectTurn", "Say it again at the end of a branch")
                .also(&[201])
                .conditional()
                .body_required(),
            inject,
        )
        .route(
            Method::POST,
            "/api/v1/turns/{turn}/purge",
            about("purgeTurn", "Erase what it says, for ever"),
            purge,
        )
        .route(
            Method::DELETE,
            "/api/v1/turns/{turn}",
            about("deleteTurn", "Delete it; undo brings it back"),
            delete,
        )
        .route(
            Method::PATCH,
            "/api/v1/turns/{turn}/metadata",
            about("patchTurnMetadata", "Change title, tags and free-form data"),
            patch_metadata,
        )
}

fn append(asked: &Asked, path: InConversation, body: bodies::Append) -> Answered<Answer<Appended>> {
    let mut body = body;
    let mut redacted = bodies::redacted(std::mem::take(&mut body.redacted))?;
    let mut request = body.into_request(&path.conversation_id, asked.engine().limits())?;
    if asked.app.options.redact {
        add(&mut redacted, redact::messages(&mut request.messages));
    }
    let done = asked.engine().append(&asked.call.clone().with_redacted(redacted), request)?;
    let new = done.turns.iter().any(|turn| turn.outcome == Some(Outcome::Created));
    let tag = etag(&done.branch);
    Ok(Reply::made(new && !done.replayed, answer(asked, done)).with_etag(tag))
}

/// Counts by kind, with more of them.
pub(super) fn add(redacted: &mut Redacted, more: Redacted) {
    for (kind, count) in more {
        let known = redacted.entry(kind).or_default();
        *known = known.saturating_add(count);
    }
}

fn list(asked: &Asked, query: BranchTurns, _: NoBody) -> Answered<Answer<PathPage>> {
    let request = BranchTurnsQuery {
        conversation: conversation(&query.conversation_id, asked.engine().limits())?,
        branch: query.branch.unwrap_or_else(|| "main".to_owned()),
        role: query.role.map(bodies::Speaker::role),
        cursor: query.cursor,
        limit: query.limit.map(|limit| bodies::size("the limit", limit)).transpose()?,
    };
    let (branch, found) = asked.engine().branch_turns(&asked.call, request)?;
    Ok(Reply::ok(answer(asked, found)).with_etag(etag(&branch)))
}

fn topology(asked: &Asked, query: Topology, _: NoBody) -> Answered<Answer<TopologyPage>> {
    let request = TopologyQuery {
        conversation: conversation(&query.conversation_id, asked.engine().limits())?,
        under: query.under.as_deref().map(reference).transpose()?,
        cursor: query.cursor,
        limit: query.limit.map(|limit| bodies::size("the limit", limit)).transpose()?,
        include_deleted: query.deleted.unwrap_or(false),
    };
    Ok(Reply::ok(answer(asked, asked.engine().topology(&asked.call, request)?)))
}

fn outline(asked: &Asked, query: Outline, _: NoBody) -> Answered<Answer<OutlineColumns>> {
    // The largest of these answers take megabytes each.
    let _room = asked.app.transfer_room.take()?;
    let request = OutlineQuery {
        conversation: conversation(&query.conversation_id, asked.engine().limits())?,
        since: query.since,
        cursor: query.cursor,
        rows: query.rows.map(|rows| bodies::size("the rows", rows)).transpose()?,
    };
    Ok(Reply::ok(answer(asked, asked.engine().outline(&asked.call, request)?.into())))
}

fn tails(asked: &Asked, path: InConversation, _: NoBody) -> Answered<List<Tail>> {
    let id = conversation(&path.conversation_id, asked.engine().limits())?;
    let found = asked.engine().tails(&asked.call, &id)?;
    let items = found.into_iter().collect();
    Ok(Reply::ok(answer(asked, Listing::all(items))))
}

fn find(asked: &Asked, path: &One) -> Result<TurnRef, Problem> {
    turn(asked, &path.turn, path.conversation_id.as_deref())
}

fn get(asked: &Asked, query: Detail, _: NoBody) -> Answered<Answer<TurnWithRings>> {
    let engine = asked.engine();
    let wanted = turn(asked, &query.turn, query.conversation_id.as_deref())?;
    let found = engine.turn(&asked.call, wanted)?;
    let rings = match (&found.content, query.rings.unwrap_or(true)) {
        (Content::Kept(_), true) => {
            let same = TurnRef::within(found.conversation.clone(), Reference::from(found.id));
            Some(engine.rings(&asked.call, same)?.into())
        }
        _ => None,
    };
    Ok(Reply::ok(answer(asked, TurnWithRings { turn: found, rings })))
}

fn rings(asked: &Asked, path: One, _: NoBody) -> Answered<Answer<TurnRings>> {
    let turn = find(asked, &path)?;
    Ok(Reply::ok(answer(asked, asked.engine().rings(&asked.call, turn)?)))
}

/// Whom a path is rendered for.
#[derive(Clone, Copy, Debug, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Format {
    /// Messages as they are stored.
    Tine,
    /// Chat completions.
    Openai,
    /// The Messages API.
    Anthropic,
    /// `generateContent`.
    Gemini,
    /// For people.
    Markdown,
}

/// What becomes of tool calls without a result.
#[derive(Clone, Copy, Debug, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum OpenCalls {
    /// They get a result that says so.
    Close,
    /// The call is refused and names them.
    Report,
    /// They stay as they are.
    Keep,
}

/// A path, a window of it, or its rendering for a provider.
#[derive(Debug, serde::Serialize, schemars::JsonSchema)]
#[serde(untagged)]
pub(crate) enum PathForm {
    Path(PathPage),
    Window(Window),
    Rendering(tine_formats::render::RenderingJson),
}

/// Renders a path for a provider.
fn rendered(
    asked: &Asked,
    path: PathQuery,
    format: Format,
    max_tokens: Option<u64>,
    open_calls: Option<OpenCalls>,
) -> Result<tine_formats::render::RenderingJson, Problem> {
    let mut options = render::Options::of(match format {
        Format::Tine => render::Format::Tine,
        Format::Openai => render::Format::OpenAi,
        Format::Anthropic => render::Format::Anthropic,
        Format::Gemini => render::Format::Gemini,
        Format::Markdown => render::Format::Markdown,
    });
    options.open_calls = match open_calls.unwrap_or(OpenCalls::Close) {
        OpenCalls::Close => render::OpenCalls::Close,
        OpenCalls::Report => render::OpenCalls::Report,
        OpenCalls::Keep => render::OpenCalls::Keep,
    };
    options.budget =
        max_tokens.map(|max_tokens| render::Budget { max_tokens, count: &tine_llm::tokens::count });
    Ok(render::render_path(asked.engine(), &asked.call, path, &options)?.into())
}

fn path(asked: &Asked, query: PathTo, _: NoBody) -> Answered<Answer<PathForm>> {
    let engine = asked.engine();
    let TurnRef { conversation, turn: to } =
        turn(asked, &query.turn, query.conversation_id.as_deref())?;
    let size = |what, value: Option<u64>| value.map(|value| bodies::size(what, value)).transpose();
    let around = match (size("the window", query.window)?, query.before, query.after) {
        (None, None, None) => None,
        (Some(window), None, None) => Some((window / 2, window.saturating_sub(window / 2 + 1))),
        (None, before, after) => {
            let (before, after) = (size("before", before)?, size("after", after)?);
            Some((before.unwrap_or(0), after.unwrap_or(0)))
        }
        (Some(_), ..) => {
            let why = "give either `window` or `before` and `after`, not both";
            return Err(Problem::new(ErrorKind::Invalid, why));
        }
    };
    if let Some((before, after)) = around {
        let turn = TurnRef { conversation, turn: to };
        let request = WindowQuery { turn, branch: query.branch, before, after };
        let found = engine.window(&asked.call, request)?;
        return Ok(Reply::ok(answer(asked, PathForm::Window(found))));
    }
    let selection = match size("last", query.last)? {
        Some(last) => Selection::Last(last),
        None => Selection::Whole,
    };
    let (cursor, limit) = (query.cursor, size("the limit", query.limit)?);
    let request = PathQuery { conversation, to: Some(to), selection, cursor, limit };
    if let Some(format) = query.format {
        let made = rendered(asked, request, format, query.max_tokens, query.open_calls)?;
        return Ok(Reply::ok(answer(asked, PathForm::Rendering(made))));
    }
    let found = engine.path(&asked.call, request)?;
    Ok(Reply::ok(answer(asked, PathForm::Path(found))))
}

fn turns(asked: &Asked, found: Vec<TurnView>) -> Answered<List<TurnView>> {
    Ok(Reply::ok(answer(asked, Listing::all(found))))
}

fn children(asked: &Asked, path: One, _: NoBody) -> Answered<List<TurnView>> {
    let turn = find(asked, &path)?;
    turns(asked, asked.engine().children(&asked.call, turn)?)
}

fn siblings(asked: &Asked, path: One, _: NoBody) -> Answered<List<TurnView>> {
    let turn = find(asked, &path)?;
    turns(asked, asked.engine().siblings(&asked.call, turn)?)
}

fn versions(asked: &Asked, path: One, _: NoBody) -> Answered<List<TurnView>> {
    let turn = find(asked, &path)?;
    turns(asked, asked.engine().versions(&asked.call, turn)?)
}

/// The conversation that a body names, or the one of the query.
fn within(
    asked: &Asked,
    path: &One,
    body: Option<&str>,
) -> Result<(Option<ConversationId>, TurnRef), Problem> {
    let named = path.conversation_id.as_deref().or(body);
    let found = turn(asked, &path.turn, named)?;
    Ok((found.conversation.clone(), found))
}

fn fork(asked: &Asked, path: One, body: bodies::ForkTurn) -> Answered<Answer<BranchView>> {
    let (conversation, turn) = within(asked, &path, body.conversation_id.as_deref())?;
    let point = match body.inclusive.unwrap_or(true) {
        true => ForkPoint::At(turn.turn),
        false => ForkPoint::Before(turn.turn),
    };
    let limits = asked.engine().limits();
    let name = body.name.as_deref().map(|text| name(text, limits)).transpose()?;
    let made = asked.engine().fork(&asked.call, Fork { conversation, point, name })?;
    let tag = etag(&made);
    Ok(Reply::created(answer(asked, made)).with_etag(tag))
}

fn edit(asked: &Asked, path: One, body: bodies::EditTurn) -> Answered<Answer<Edited>> {
    let (_, turn) = within(asked, &path, body.conversation_id.as_deref())?;
    let engine = asked.engine();
    let mut body = body;
    let mut redacted = bodies::redacted(std::mem::take(&mut body.redacted))?;
    let mut request = body.into_request(turn, engine.limits())?;
    if asked.app.options.redact {
        add(&mut redacted, redact::body(&mut request.body));
    }
    let done = engine.edit(&asked.call.clone().with_redacted(redacted), request)?;
    Ok(Reply::made(done.turn.outcome == Some(Outcome::Created), answer(asked, done)))
}

fn split(asked: &Asked, path: One, body: bodies::SplitTurn) -> Answered<Answer<SplitDone>> {
    let (_, turn) = within(asked, &path, body.conversation_id.as_deref())?;
    let done = asked.engine().split(&asked.call, body.into_request(turn)?)?;
    Ok(Reply::ok(answer(asked, done)))
}

fn inject(asked: &Asked, path: OnlyTurn, body: bodies::Inject) -> Answered<Answer<Injected>> {
    let request = body.into_request(&path.turn, asked.engine().limits())?;
    let done = asked.engine().inject(&asked.call, request)?;
    let tag = etag(&done.branch);
    Ok(Reply::created(answer(asked, done)).with_etag(tag))
}

fn purge(asked: &Asked, path: One, body: bodies::Purge) -> Answered<Answer<Purged>> {
    let (_, turn) = within(asked, &path, body.conversation_id.as_deref())?;
    let request = Purge { target: PurgeTarget::Turn(turn), confirm: body.confirm };
    Ok(Reply::ok(answer(asked, asked.engine().purge(&asked.call, request)?)))
}

fn delete(asked: &Asked, query: Deletion, _: NoBody) -> Answered<Answer<Deleted>> {
    let request = Delete {
        turn: turn(asked, &query.turn, query.conversation_id.as_deref())?,
        mode: match query.mode.unwrap_or(Mode::Cascade) {
            Mode::Cascade => DeleteMode::Cascade,
            Mode::Reparent => DeleteMode::Reparent,
        },
        force: query.force.unwrap_or(false),
        dry_run: query.dry_run.unwrap_or(false),
    };
    Ok(Reply::ok(answer(asked, asked.engine().delete(&asked.call, request)?)))
}

fn patch_metadata(
    asked: &Asked,
    path: One,
    body: bodies::MetadataPatch,
) -> Answered<Answer<TurnView>> {
    let (_, turn) = within(asked, &path, body.conversation_id.as_deref())?;
    let patch = body.into_request(asked.engine().limits())?;
    Ok(Reply::ok(answer(asked, asked.engine().patch_metadata(&asked.call, turn, patch)?)))
}
