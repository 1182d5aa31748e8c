//! Streams replies of models: `POST …/branches/{branch}/reply` and `POST /turns/{turn}/regenerate`.
//!
//! The user message is recorded first. Then the model is called on a thread of its own, and each
//! piece of its reply is sent at once. In the end the reply is recorded: complete, or `partial` if
//! the client disconnected, the reply was stopped, or the model failed. Requests are refused before
//! the stream begins.
//!
//! Events: `turn` (the question and its branch), `begin` (the id of the reply, and the model),
//! `delta` and `thinking` (pieces), then either `done` (the recorded reply) or `error` (the problem,
//! and what was recorded).

use std::convert::Infallible;
use std::ops::ControlFlow;
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use serde::Serialize;
use serde_json::json;
use tine_api::bodies::{self, AskReply, RegenerateReply, RequestBody};
use tine_api::{BranchVersion, BranchView, Call, Fork, ForkPoint, TurnRef, TurnView};
use tine_core::{ConversationId, ErrorKind, Reference, Role, TurnId};
use tine_formats::redact;
use tine_llm::reply::{Reply, ReplyContent, Responder};
use tine_llm::{Delta, Finish};
use tokio::sync::mpsc::{self, Sender};

use crate::access::Access;
use crate::api::{BranchPath, parameters};
use crate::app::App;
use crate::openapi::{Description, Operation};
use crate::problem::Problem;
use crate::route::{self, Parameters, RequestContext};
use crate::running_replies::{ReplySlot, RunningReply};

pub(crate) const PATH: &str = "/api/v1/conversations/{conversation_id}/branches/{branch}/reply";
pub(crate) const REGENERATE_PATH: &str = "/api/v1/turns/{turn}/regenerate";

/// The number of pieces buffered for a client; the model waits for slow ones.
const BUFFERED_PIECES: usize = 256;

parameters!(RegeneratePath {
    /// The reply: its id, its hash or a prefix of it, a branch, a bookmark, or `branch~N`.
    turn: Reference,
    /// The conversation in which hashes and names are looked up.
    conversation_id: Option<ConversationId>,
});

pub(crate) fn describe(description: &mut Description) {
    let about = |id, summary| Operation::new("Models", id, summary).conditional();
    let reply = about("replyOnBranch", "Stream a model's reply at the end of a branch");
    description.add_stream::<BranchPath, RequestBody<AskReply>>(&Method::POST, PATH, &reply);
    let again = about("regenerateTurn", "Stream another reply of a model; the original is kept");
    description.add_stream::<RegeneratePath, RequestBody<RegenerateReply>>(
        &Method::POST,
        REGENERATE_PATH,
        &again,
    );
}

/// `POST /conversations/{conversation_id}/branches/{branch}/reply`.
pub(crate) async fn reply(State(app): State<Arc<App>>, request: Request) -> Response {
    answer(app, request, |context, path: BranchPath, body: AskReply| {
        let model = model(context, body.model.as_deref())?;
        let (question, branch) = question(context, &path, body)?;
        Ok(PendingReply { model, question, branch: Some(branch), replaces: None })
    })
    .await
}

/// `POST /turns/{turn}/regenerate`.
pub(crate) async fn regenerate(State(app): State<Arc<App>>, request: Request) -> Response {
    answer(app, request, |context, path: RegeneratePath, body: RegenerateReply| {
        let model = model(context, body.model.as_deref())?;
        let engine = context.engine();
        let in_body = || context.fields.conversation_id.clone();
        let conversation = path.conversation_id.or_else(in_body);
        let old = engine.turn(&context.call, TurnRef { conversation, turn: path.turn })?;
        if old.role != Role::Assistant {
            let why = "only a turn of role `assistant` can be regenerated; name a reply";
            return Err(Problem::new(ErrorKind::Invalid, why));
        }
        let Some(parent) = old.parent else {
            let why = "a first turn cannot be regenerated; edit it instead";
            return Err(Problem::new(ErrorKind::Invalid, why));
        };
        let branch = body.branch.as_deref();
        let branch =
            branch.map(|name| engine.branch(&context.call, &old.conversation, name)).transpose()?;
        let question = engine.turn(&context.call, TurnRef::of(parent))?;
        Ok(PendingReply { model, question, branch, replaces: Some(old.id) })
    })
    .await
}

/// A reply that is to be requested from a model.
struct PendingReply {
    model: Responder,
    question: TurnView,
    branch: Option<BranchView>,
    /// The reply that it is an alternative to.
    replaces: Option<TurnId>,
}

fn model(context: &RequestContext, name: Option<&str>) -> Result<Responder, Problem> {
    let models = &context.app.options.models;
    let Some((_, first)) = models.first() else {
        let why = "no model is configured: start the server with `--model NAME`, or append the \
                   reply yourself";
        return Err(Problem::new(ErrorKind::Unsupported, why));
    };
    let Some(name) = name else { return Ok(first.clone()) };
    let found = models.iter().find(|(known, _)| known == name);
    found.map(|(_, model)| model.clone()).ok_or_else(|| {
        let known: Vec<&str> = models.iter().map(|(name, _)| name.as_str()).collect();
        let why = format!("there is no model `{name}`; available: {}", known.join(", "));
        Problem::new(ErrorKind::NotFound, why)
    })
}

/// Appends the user message, or finds the last turn. Returns it with the branch that ends there.
fn question(
    context: &RequestContext,
    path: &BranchPath,
    mut body: AskReply,
) -> Result<(TurnView, BranchView), Problem> {
    let (engine, call, conversation) = (context.engine(), &context.call, &path.conversation_id);
    let branch = engine.branch(call, conversation, &path.branch)?;
    let name = branch.id.to_string();
    if let Some(mut request) = body.question(conversation, &name, engine.limits())? {
        let redact = |redacted: &mut _| *redacted = redact::messages(&mut request.messages);
        let call = context.redacting(redact);
        let done = engine.append(&call, request)?;
        let appended = done.turns.into_iter().next_back();
        let question = appended.ok_or_else(route::internal_error)?;
        let question = without_outcome(question);
        if done.replayed {
            let now = engine.branch(&call, conversation, &name)?;
            if now.tip != Some(question.id) {
                let why = "this message was appended by an earlier call, and the branch has moved since; \
                           read the branch";
                return Err(Problem::new(ErrorKind::Conflict, why));
            }
        }
        return Ok((question, done.branch));
    }
    let seen = BranchVersion { id: branch.id, version: branch.version };
    if call.if_branch.is_some_and(|expected| expected != seen) {
        let why = "the branch has changed since; read it again";
        return Err(Problem::new(ErrorKind::Conflict, why));
    }
    let empty = "the branch is empty; give a user message in `content`";
    let tip = branch.tip.ok_or_else(|| Problem::new(ErrorKind::Invalid, empty))?;
    let question = engine.turn(call, TurnRef::of(tip))?;
    if question.role == Role::Assistant {
        let why = "the branch ends with a reply; give a user message in `content`, or regenerate the reply";
        return Err(Problem::new(ErrorKind::Invalid, why));
    }
    Ok((question, branch))
}

async fn answer<P: Parameters, B>(
    app: Arc<App>,
    request: Request,
    prepare: fn(&RequestContext, P, B) -> Result<PendingReply, Problem>,
) -> Response
where
    B: bodies::Request + Send + 'static,
{
    let (mut parts, body) = request.into_parts();
    match begin(app, &mut parts, body, prepare).await {
        Ok(response) => response,
        Err(problem) => problem.into_response(),
    }
}

async fn begin<P: Parameters, B>(
    app: Arc<App>,
    parts: &mut Parts,
    body: Body,
    prepare: fn(&RequestContext, P, B) -> Result<PendingReply, Problem>,
) -> Result<Response, Problem>
where
    B: bodies::Request + Send + 'static,
{
    let path: P = route::parameters(&app, parts).await?;
    let (body, permit) = route::read_json::<B>(&app, &parts.headers, body, false).await?;
    let RequestBody { request, fields } = body;
    let named = path.project_id();
    let context = route::request_context(app, parts, named, true, Access::Write, fields)?;
    let (sender, pieces) = mpsc::channel(BUFFERED_PIECES);
    let prepared = tokio::task::spawn_blocking(move || {
        let pending = prepare(&context, path, request).map_err(|problem| {
            let stale = context.conditional && problem.is(ErrorKind::Conflict);
            if stale { problem.with_status(StatusCode::PRECONDITION_FAILED) } else { problem }
        })?;
        let id = context.engine().promise_turn_id();
        let about = RunningReply {
            turn_id: id.to_string(),
            conversation_id: pending.question.conversation.to_string(),
            question_id: pending.question.id.to_string(),
            branch_id: pending.branch.as_ref().map(|branch| branch.id.to_string()),
            model: pending.model.name().to_owned(),
            actor: context.call.actor.clone(),
        };
        let slot = context.app.replies.start(context.project(), id, about)?;
        Ok::<_, Problem>((context, pending, slot))
    });
    let prepared = prepared.await;
    drop(permit);
    let (context, pending, slot) = prepared.map_err(|_| route::internal_error())??;
    tokio::task::spawn_blocking(move || {
        stream_reply(&context, pending, slot, &EventSender(sender));
    });
    let stream = stream::unfold(pieces, |mut pieces| async {
        let piece = pieces.recv().await?;
        Some((Ok::<Bytes, Infallible>(piece), pieces))
    });
    let mut response = Response::new(Body::from_stream(stream));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    Ok(response)
}

/// Sends events to the client.
struct EventSender(Sender<Bytes>);

impl EventSender {
    /// Sends an event; breaks if the client has disconnected.
    fn send(&self, kind: &str, data: &impl Serialize) -> ControlFlow<()> {
        let data = serde_json::to_string(data).unwrap_or_default();
        match self.0.blocking_send(Bytes::from(format!("event: {kind}\ndata: {data}\n\n"))) {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    }

    fn is_closed(&self) -> bool {
        self.0.is_closed()
    }
}

/// The last event of a stream.
#[derive(Serialize)]
struct ReplyEnd {
    /// Why the reply ended: `stop`, `length`, `refused`, `stopped`, or the provider's own reason.
    finish: String,
    /// The recorded reply; `null` if it is empty.
    turn: Option<TurnView>,
    /// The branch that ends with it.
    branch: Option<BranchView>,
    /// Whether that is a new branch, because the original one moved meanwhile.
    forked: bool,
    /// Why the reply is not complete.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<Problem>,
}

/// Calls the model and records its reply, even if the client disconnects.
fn stream_reply(
    context: &RequestContext,
    pending: PendingReply,
    slot: ReplySlot,
    events: &EventSender,
) {
    let reply = Reply {
        engine: context.engine(),
        call: &Call { idempotency_key: None, if_branch: None, ..context.call.clone() },
        model: &pending.model,
        about: Vec::new(),
    };
    let mut sent = events.send(
        "turn",
        &json!({
            "turn": pending.question.clone(),
            "branch": pending.branch.clone(),
        }),
    );
    if sent.is_continue() {
        sent = events.send(
            "begin",
            &json!({
                "turn_id": slot.turn.to_string(),
                "provider": pending.model.provider(),
                "model": pending.model.name(),
            }),
        );
    }
    if sent.is_break() {
        return;
    }
    let end = match ask(&reply, &pending, &slot, context, events) {
        Ok(end) => end,
        Err(problem) => ReplyEnd {
            finish: "error".to_owned(),
            turn: None,
            branch: None,
            forked: false,
            problem: Some(problem),
        },
    };
    drop(slot);
    let kind = if end.problem.is_some() { "error" } else { "done" };
    // A client that has disconnected can read the reply from the store.
    let _ = events.send(kind, &end);
}

fn ask(
    reply: &Reply<'_>,
    pending: &PendingReply,
    slot: &ReplySlot,
    context: &RequestContext,
    events: &EventSender,
) -> Result<ReplyEnd, Problem> {
    let stopping = context.app.stopping.clone();
    let mut content = ReplyContent::default();
    let ended = reply.ask(pending.question.id, &mut content, &mut |piece, _| {
        if slot.is_stopped() || *stopping.borrow() || events.is_closed() {
            return ControlFlow::Break(());
        }
        match piece {
            Delta::Silence => ControlFlow::Continue(()),
            Delta::Text(text) => events.send("delta", &json!({ "text": text })),
            Delta::Thought(text) => events.send("thinking", &json!({ "text": text })),
        }
    })?;
    let (finish, problem) = match &ended {
        Ok(ended) => (finish(&ended.finish), None),
        Err(error) => {
            tracing::warn!(%error, "a model failed to reply");
            ("error".to_owned(), Some(Problem::new(ErrorKind::Internal, error.to_string())))
        }
    };
    let Some(mut message) = reply.message(content, ended.as_ref().ok())? else {
        let branch = pending.branch.clone();
        return Ok(ReplyEnd { finish, turn: None, branch, forked: false, problem });
    };
    let redacted = match context.app.options.redact {
        true => redact::messages(std::slice::from_mut(&mut message)),
        false => redact::Redacted::new(),
    };
    let reply =
        Reply { call: &reply.call.clone().with_redacted(redacted), about: Vec::new(), ..*reply };
    let (turn, branch, forked) = record(&reply, pending, slot.turn, message)?;
    let (turn, branch) = (Some(turn), branch);
    Ok(ReplyEnd { finish, turn, branch, forked, problem })
}

fn finish(finish: &Finish) -> String {
    match finish {
        Finish::Stop => "stop".to_owned(),
        Finish::Length => "length".to_owned(),
        Finish::Refused => "refused".to_owned(),
        Finish::Cancelled => "stopped".to_owned(),
        Finish::Other(word) => word.clone(),
    }
}

/// Records the reply: at the end of the branch, or beside the reply that it is an alternative to.
/// If the branch has moved meanwhile, creates a new branch for it.
fn record(
    reply: &Reply<'_>,
    pending: &PendingReply,
    id: TurnId,
    message: tine_core::Message,
) -> Result<(TurnView, Option<BranchView>, bool), Problem> {
    let internal = route::internal_error;
    let (Some(old), branch) = (pending.replaces, &pending.branch) else {
        let branch = pending.branch.as_ref().ok_or_else(internal)?;
        let done = reply.record(branch, pending.question.id, id, message)?;
        let turn = done.turns.into_iter().next_back().ok_or_else(internal)?;
        return Ok((without_outcome(turn), Some(done.branch), done.forked));
    };
    let request = tine_api::Regenerate {
        id,
        turn: TurnRef::of(old),
        message,
        branch: branch.as_ref().map(|branch| branch.id.to_string()),
    };
    let engine = reply.engine;
    let seen = branch.as_ref().map(|it| BranchVersion { id: it.id, version: it.version });
    let call = Call { if_branch: seen, ..reply.call.clone() };
    match engine.regenerate(&call, request.clone()) {
        Ok(done) => Ok((without_outcome(done.turn), done.branch, false)),
        Err(error) if error.kind() == ErrorKind::Conflict => {
            let alone = tine_api::Regenerate { branch: None, ..request };
            let done = engine.regenerate(reply.call, alone)?;
            let fork = Fork { conversation: None, point: ForkPoint::At(id.into()), name: None };
            Ok((without_outcome(done.turn), Some(engine.fork(reply.call, fork)?), true))
        }
        Err(error) => Err(error.into()),
    }
}

/// A reply always creates its turns; its events do not repeat that.
fn without_outcome(turn: TurnView) -> TurnView {
    TurnView { outcome: None, ..turn }
}
