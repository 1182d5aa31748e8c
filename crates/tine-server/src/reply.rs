//! Answers of models, as streams: `POST …/branches/{branch}/reply` and `POST /turns/{turn}/regenerate`.
//!
//! What is said first is recorded, then the model is asked, on a thread of its own; each piece is
//! sent as it comes. However it ends, what was said until then is recorded: whole, or `partial` if
//! the client went away, somebody stopped it, or the model broke off. What can be refused is
//! refused before the stream begins.
//!
//! Events: `turn` (the question and its branch), `begin` (the id that the answer will have, and who
//! answers), `delta` and `thinking` (pieces), then one of `done` (the answer as it is recorded) and
//! `error` (why there is none, and what is kept of it).

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
use tine_api::bodies;
use tine_core::{ErrorKind, Role, TurnId};
use tine_engine::{BranchVersion, BranchView, Call, Fork, ForkPoint, TurnRef, TurnView};
use tine_formats::redact;
use tine_llm::reply::{Reply, ReplyContent, Responder};
use tine_llm::{Delta, Finish};
use tokio::sync::mpsc::{self, Sender};

use crate::access::Access;
use crate::api::{conversation, parameters, turn};
use crate::app::App;
use crate::openapi::{Description, Operation};
use crate::problem::Problem;
use crate::replies::{InWork, Place};
use crate::route::{self, Asked, Parameters};

pub(crate) const PATH: &str = "/api/v1/conversations/{conversation_id}/branches/{branch}/reply";
pub(crate) const AGAIN_PATH: &str = "/api/v1/turns/{turn}/regenerate";

/// Pieces that wait for a client; a model waits for whoever reads slowly.
const PIECES: usize = 256;

parameters!(Branch {
    /// The conversation.
    conversation_id: String,
    /// The branch, by name or id.
    branch: String,
});

parameters!(Turn {
    /// The answer: its id, its hash or a prefix of it, a branch, a bookmark, `branch~N`.
    turn: String,
    /// The conversation in which hashes and names are looked up.
    conversation_id: Option<String>,
});

pub(crate) fn describe(description: &mut Description) {
    let about = |id, summary| Operation::new("Models", id, summary).conditional();
    let reply = about("replyOnBranch", "Let a model answer at the end of a branch, as a stream");
    description.add_stream::<Branch, bodies::AskReply>(&Method::POST, PATH, &reply);
    let again =
        about("regenerateTurn", "Let a model answer anew, as a stream; the old answer stays");
    description.add_stream::<Turn, bodies::Regenerate>(&Method::POST, AGAIN_PATH, &again);
}

/// `POST /conversations/{conversation_id}/branches/{branch}/reply`.
pub(crate) async fn reply(State(app): State<Arc<App>>, request: Request) -> Response {
    answer(app, request, |asked, path: Branch, body: bodies::AskReply| {
        let model = model(asked, body.model.as_deref())?;
        let (question, branch) = say(asked, &path, body)?;
        Ok(Wanted { model, question, branch: Some(branch), instead_of: None })
    })
    .await
}

/// `POST /turns/{turn}/regenerate`.
pub(crate) async fn regenerate(State(app): State<Arc<App>>, request: Request) -> Response {
    answer(app, request, |asked, path: Turn, body: bodies::Regenerate| {
        let model = model(asked, body.model.as_deref())?;
        let engine = asked.engine();
        let within = path.conversation_id.as_deref().or(body.conversation_id.as_deref());
        let old = engine.turn(&asked.call, turn(asked, &path.turn, within)?)?;
        if old.role != Role::Assistant {
            let why = "only what an assistant said is answered anew; name its answer";
            return Err(Problem::new(ErrorKind::Invalid, why));
        }
        let Some(parent) = old.parent else {
            let why = "nothing was asked before this turn; edit it instead";
            return Err(Problem::new(ErrorKind::Invalid, why));
        };
        let branch = body.branch.as_deref();
        let branch =
            branch.map(|name| engine.branch(&asked.call, &old.conversation, name)).transpose()?;
        let question = engine.turn(&asked.call, TurnRef::of(parent))?;
        Ok(Wanted { model, question, branch, instead_of: Some(old.id) })
    })
    .await
}

/// An answer that is to be given.
struct Wanted {
    model: Responder,
    question: TurnView,
    branch: Option<BranchView>,
    /// The answer beside which it stands.
    instead_of: Option<TurnId>,
}

fn model(asked: &Asked, name: Option<&str>) -> Result<Responder, Problem> {
    let models = &asked.app.options.models;
    let Some((_, first)) = models.first() else {
        let why = "no model is configured here: start the server with `--model NAME`, or record \
                   the answer with an append";
        return Err(Problem::new(ErrorKind::Unsupported, why));
    };
    let Some(name) = name else { return Ok(first.clone()) };
    let found = models.iter().find(|(known, _)| known == name);
    found.map(|(_, model)| model.clone()).ok_or_else(|| {
        let known: Vec<&str> = models.iter().map(|(name, _)| name.as_str()).collect();
        let why = format!("there is no model `{name}`; there is {}", known.join(", "));
        Problem::new(ErrorKind::NotFound, why)
    })
}

/// Records what is said first, or finds what was said last; with the branch that ends there.
fn say(
    asked: &Asked,
    path: &Branch,
    mut body: bodies::AskReply,
) -> Result<(TurnView, BranchView), Problem> {
    let (engine, call) = (asked.engine(), &asked.call);
    let conversation = conversation(&path.conversation_id, engine.limits())?;
    let branch = engine.branch(call, &conversation, &path.branch)?;
    let name = branch.id.to_string();
    if let Some(mut request) = body.question(conversation.as_str(), &name, engine.limits())? {
        let redacted = match asked.app.options.redact {
            true => redact::messages(&mut request.messages),
            false => redact::Redacted::new(),
        };
        let done = engine.append(&call.clone().with_redacted(redacted), request)?;
        let said = done.turns.into_iter().next_back();
        let question = said.ok_or_else(|| Problem::new(ErrorKind::Internal, "no turn was made"))?;
        let question = without_outcome(question);
        if done.replayed {
            let now = engine.branch(call, &conversation, &name)?;
            if now.tip != Some(question.id) {
                let why = "this was said before, and the branch has gone on since: read the branch";
                return Err(Problem::new(ErrorKind::Conflict, why));
            }
        }
        return Ok((question, done.branch));
    }
    let seen = BranchVersion { id: branch.id, version: branch.version };
    if call.if_branch.is_some_and(|wanted| wanted != seen) {
        let why = "the branch has changed since; read it again";
        return Err(Problem::new(ErrorKind::Conflict, why));
    }
    let empty = "the branch is empty: say something first, with `content`";
    let tip = branch.tip.ok_or_else(|| Problem::new(ErrorKind::Invalid, empty))?;
    let question = engine.turn(call, TurnRef::of(tip))?;
    if question.role == Role::Assistant {
        let why = "the branch ends with an answer: say something with `content`, or regenerate it";
        return Err(Problem::new(ErrorKind::Invalid, why));
    }
    Ok((question, branch))
}

async fn answer<P: Parameters, B>(
    app: Arc<App>,
    request: Request,
    prepare: fn(&Asked, P, B) -> Result<Wanted, Problem>,
) -> Response
where
    B: bodies::Common + serde::de::DeserializeOwned + Default + Send + 'static,
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
    prepare: fn(&Asked, P, B) -> Result<Wanted, Problem>,
) -> Result<Response, Problem>
where
    B: bodies::Common + serde::de::DeserializeOwned + Default + Send + 'static,
{
    let path: P = route::parameters(parts).await?;
    let (body, room) = route::read_json::<B>(&app, &parts.headers, body, false).await?;
    let named = path.project_id();
    let asked = route::asked(app, parts, named, true, Access::Write, &body)?;
    let (sender, pieces) = mpsc::channel(PIECES);
    let prepared = tokio::task::spawn_blocking(move || {
        let wanted = prepare(&asked, path, body).map_err(|problem| {
            let stale = asked.conditional && problem.is(ErrorKind::Conflict);
            if stale { problem.with_status(StatusCode::PRECONDITION_FAILED) } else { problem }
        })?;
        let answer = asked.engine().promise_turn_id();
        let about = InWork {
            turn_id: answer.to_string(),
            conversation_id: wanted.question.conversation.to_string(),
            question_id: wanted.question.id.to_string(),
            branch_id: wanted.branch.as_ref().map(|branch| branch.id.to_string()),
            model: wanted.model.name().to_owned(),
            actor: asked.call.actor.clone(),
        };
        let place = asked.app.replies.take(asked.project(), answer, about)?;
        Ok::<_, Problem>((asked, wanted, place))
    });
    let prepared = prepared.await;
    drop(room);
    let (asked, wanted, place) =
        prepared.map_err(|_| Problem::new(ErrorKind::Internal, "the request met a defect"))??;
    tokio::task::spawn_blocking(move || give(&asked, wanted, place, &Out(sender)));
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

/// Where events go.
struct Out(Sender<Bytes>);

impl Out {
    /// Sends an event; breaks where nobody listens any more.
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

/// What is told at the end.
#[derive(Serialize)]
struct Ending {
    /// Why it ended: `stop`, `length`, `refused`, `stopped`, or the provider's own word.
    finish: String,
    /// The answer as it is recorded; `null` if nothing was said.
    turn: Option<TurnView>,
    /// The branch that ends with it.
    branch: Option<BranchView>,
    /// Whether that is a branch of its own, because others wrote meanwhile.
    forked: bool,
    /// Why there is no whole answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<Problem>,
}

/// Asks the model and records what it says. What the client misses is recorded all the same.
fn give(asked: &Asked, wanted: Wanted, place: Place, out: &Out) {
    let reply = Reply {
        engine: asked.engine(),
        call: &Call { idempotency_key: None, if_branch: None, ..asked.call.clone() },
        model: &wanted.model,
        about: Vec::new(),
    };
    let mut told = out.send(
        "turn",
        &json!({
            "turn": wanted.question.clone(),
            "branch": wanted.branch.clone(),
        }),
    );
    if told.is_continue() {
        told = out.send(
            "begin",
            &json!({
                "turn_id": place.turn.to_string(),
                "provider": wanted.model.provider(),
                "model": wanted.model.name(),
            }),
        );
    }
    if told.is_break() {
        return;
    }
    let ending = match ask(&reply, &wanted, &place, asked, out) {
        Ok(ending) => ending,
        Err(problem) => Ending {
            finish: "error".to_owned(),
            turn: None,
            branch: None,
            forked: false,
            problem: Some(problem),
        },
    };
    drop(place);
    let kind = if ending.problem.is_some() { "error" } else { "done" };
    // Whoever has gone reads it in the store.
    let _ = out.send(kind, &ending);
}

fn ask(
    reply: &Reply<'_>,
    wanted: &Wanted,
    place: &Place,
    asked: &Asked,
    out: &Out,
) -> Result<Ending, Problem> {
    let stopping = asked.app.stopping.clone();
    let mut spoken = ReplyContent::default();
    let ended = reply.ask(wanted.question.id, &mut spoken, &mut |piece, _| {
        if place.is_stopped() || *stopping.borrow() || out.is_closed() {
            return ControlFlow::Break(());
        }
        match piece {
            Delta::Silence => ControlFlow::Continue(()),
            Delta::Text(text) => out.send("delta", &json!({ "text": text })),
            Delta::Thought(text) => out.send("thinking", &json!({ "text": text })),
        }
    })?;
    let (finish, problem) = match &ended {
        Ok(ended) => (finish(&ended.finish), None),
        Err(error) => {
            tracing::warn!(%error, "a model gave no answer");
            ("error".to_owned(), Some(Problem::new(ErrorKind::Internal, error.to_string())))
        }
    };
    let Some(mut message) = reply.message(spoken, ended.as_ref().ok())? else {
        let branch = wanted.branch.clone();
        return Ok(Ending { finish, turn: None, branch, forked: false, problem });
    };
    let redacted = match asked.app.options.redact {
        true => redact::messages(std::slice::from_mut(&mut message)),
        false => redact::Redacted::new(),
    };
    let reply =
        Reply { call: &reply.call.clone().with_redacted(redacted), about: Vec::new(), ..*reply };
    let (turn, branch, forked) = record(&reply, wanted, place.turn, message)?;
    let (turn, branch) = (Some(turn), branch);
    Ok(Ending { finish, turn, branch, forked, problem })
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

/// Records the answer: at the branch's end, or beside the one that it is given instead of. Where
/// others wrote to the branch meanwhile, it gets a branch of its own.
fn record(
    reply: &Reply<'_>,
    wanted: &Wanted,
    id: TurnId,
    message: tine_core::Message,
) -> Result<(TurnView, Option<BranchView>, bool), Problem> {
    let internal = || Problem::new(ErrorKind::Internal, "no turn was made");
    let (Some(old), branch) = (wanted.instead_of, &wanted.branch) else {
        let branch = wanted.branch.as_ref().ok_or_else(internal)?;
        let done = reply.record(branch, wanted.question.id, id, message)?;
        let turn = done.turns.into_iter().next_back().ok_or_else(internal)?;
        return Ok((without_outcome(turn), Some(done.branch), done.forked));
    };
    let request = tine_engine::Regenerate {
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
            let alone = tine_engine::Regenerate { branch: None, ..request };
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
