//! Exports and imports bundles over HTTP, and sends and receives deltas of logs.

use std::io::{self, BufReader, Read, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Extension;
use axum::body::{Body, Bytes};
use axum::extract::{RawQuery, Request, State};
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use futures_util::stream::{self, StreamExt};
use http_body_util::BodyExt;
use schemars::JsonSchema;
use serde::Deserialize;
use tine_api::bodies::CallFields;
use tine_api::{Answer, Call, LogMark};
use tine_core::{ConversationId, ErrorKind, Limits, ProjectId};
use tine_engine::{self as engine, Error};
use tine_formats::bundle::{BundleError, read_bundle, read_delta, write_bundle, write_delta};
use tokio::sync::mpsc;

use crate::access::{Access, Caller};
use crate::app::App;
use crate::capacity::Permit;
use crate::problem::Problem;
use crate::route::{UrlParameters, check_content, internal_error, request_context};

/// The media type of a bundle.
pub(crate) const MEDIA_TYPE: &str = "application/x-ndjson";

/// The minimum average rate of an upload, in bytes per second: slow senders would block others.
const SLOWEST: u64 = 1_024;

/// The size of the pieces in which a bundle is sent, in bytes.
const PIECE: usize = 64 * 1024;

/// What to export.
#[derive(Debug, Default, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct ExportQuery {
    /// The project; `default` by default.
    project_id: Option<ProjectId>,
    /// A conversation; can be repeated. All conversations of the project by default.
    #[schemars(default)]
    conversation_id: Vec<ConversationId>,
}

impl ExportQuery {
    /// Parses a query in which a parameter can be repeated.
    fn parse(query: &str, limits: &Limits) -> Result<Self, Problem> {
        let pairs: Vec<(String, String)> = serde_urlencoded::from_str(query).map_err(|error| {
            Problem::new(ErrorKind::Invalid, format!("the parameters: {error}"))
        })?;
        let mut parsed = ExportQuery::default();
        for (name, value) in pairs {
            match name.as_str() {
                "project_id" => {
                    parsed.project_id = Some(ProjectId::new(value, limits).map_err(Error::from)?);
                }
                "conversation_id" => {
                    let id = ConversationId::new(value, limits).map_err(Error::from)?;
                    parsed.conversation_id.push(id);
                }
                _ => {
                    let why = format!("the parameters: `{name}` is unknown");
                    return Err(Problem::new(ErrorKind::Invalid, why));
                }
            }
        }
        Ok(parsed)
    }
}

/// Where to import a bundle.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ImportQuery {
    /// The project; by default the projects that the bundle names.
    project_id: Option<ProjectId>,
}

/// `GET /api/v1/export`.
pub(crate) async fn export(
    State(app): State<Arc<App>>,
    caller: Option<Extension<Caller>>,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    let query = ExportQuery::parse(query.as_deref().unwrap_or_default(), app.engine.limits())?;
    let caller = caller.map(|Extension(caller)| caller).unwrap_or_default();
    let (project, wanted) = (query.project_id.unwrap_or_default(), query.conversation_id);
    caller.check(&project, Access::Read)?;
    let actor = caller.name().unwrap_or_else(|| app.options.actor.clone());
    let call = Call::by(actor).in_project(project);
    let permit = app.transfers.acquire()?;
    let engine = app.engine.clone();
    let found = tokio::task::spawn_blocking(move || -> Result<_, Error> {
        let mut ids = Vec::new();
        for id in &wanted {
            ids.push(engine.conversation(&call, id)?.id);
        }
        if wanted.is_empty() {
            ids = engine.exported(&call)?;
        }
        Ok((engine, call, ids))
    });
    let (engine, call, ids) = found.await.map_err(|_| internal_error())??;
    Ok(streamed(permit, move |out| write_bundle(&engine, &call, &ids, out).map(|_| ())))
}

/// Streams what a function writes as the body of an answer.
fn streamed(
    permit: Permit,
    write: impl FnOnce(&mut dyn Write) -> Result<(), BundleError> + Send + 'static,
) -> Response {
    let (sender, receiver) = mpsc::channel::<io::Result<Bytes>>(4);
    tokio::task::spawn_blocking(move || {
        let _permit = permit;
        let mut out = Pieces { sender: sender.clone(), piece: Vec::with_capacity(PIECE) };
        let written = write(&mut out)
            .map_err(|error| io::Error::other(error.to_string()))
            .and_then(|()| out.flush());
        if let Err(error) = written {
            // The stream ends early; without its last line, the bundle is refused.
            tracing::error!(%error, "an export failed");
            sender.blocking_send(Err(error)).ok();
        }
    });
    let body = stream::unfold(receiver, |mut receiver| async {
        receiver.recv().await.map(|piece| (piece, receiver))
    });
    // The compression layer polls once more after the end.
    let mut response = Response::new(Body::from_stream(body.fuse()));
    let kind = HeaderValue::from_static(MEDIA_TYPE);
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

/// A writer that sends pieces to a stream and waits while the client does not read.
struct Pieces {
    sender: mpsc::Sender<io::Result<Bytes>>,
    piece: Vec<u8>,
}

impl Write for Pieces {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.piece.extend_from_slice(bytes);
        if self.piece.len() >= PIECE {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let piece = Bytes::from(std::mem::take(&mut self.piece));
        if piece.is_empty() {
            return Ok(());
        }
        let gone = |_| io::Error::from(io::ErrorKind::BrokenPipe);
        self.sender.blocking_send(Ok(piece)).map_err(gone)
    }
}

/// A body that is being received, as a blocking reader.
struct Incoming {
    receiver: mpsc::Receiver<io::Result<Bytes>>,
    piece: Bytes,
}

impl Read for Incoming {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.piece.is_empty() {
            match self.receiver.blocking_recv() {
                Some(piece) => self.piece = piece?,
                None => return Ok(0),
            }
        }
        let size = self.piece.len().min(buffer.len());
        buffer[..size].copy_from_slice(&self.piece.split_to(size));
        Ok(size)
    }
}

/// `POST /api/v1/import`.
pub(crate) async fn import(
    State(app): State<Arc<App>>,
    caller: Option<Extension<Caller>>,
    UrlParameters(query): UrlParameters<ImportQuery>,
    request: Request,
) -> Result<Response, Problem> {
    let caller = caller.map(|Extension(caller)| caller).unwrap_or_default();
    let project = query.project_id.or_else(|| caller.only_project());
    match &project {
        Some(project) => caller.check(project, Access::Write)?,
        None => caller.check_store(Access::Write)?,
    }
    check_content(request.headers(), MEDIA_TYPE)?;
    let permit = app.transfers.acquire()?;
    let incoming = incoming(request.into_body(), app.options.body_timeout);
    let engine = app.engine.clone();
    let done = tokio::task::spawn_blocking(move || {
        let _permit = permit;
        let mut input = BufReader::new(incoming);
        let done = read_bundle(&engine, project.as_ref(), &mut input)?;
        let project = project.unwrap_or_default();
        Ok::<_, Problem>(Answer::new(&project, done))
    });
    let done = done.await.map_err(|_| internal_error())??;
    Ok(axum::Json(done).into_response())
}

/// Receives a body on a task of its own: each piece within a timeout, and all of it no slower than
/// [`SLOWEST`].
fn incoming(body: Body, timeout: Duration) -> Incoming {
    let (sender, receiver) = mpsc::channel(4);
    tokio::spawn(async move {
        let mut body = body;
        let mut refused = false;
        let (mut came, mut waited) = (0_u64, Duration::ZERO);
        loop {
            let begun = Instant::now();
            let piece = tokio::time::timeout(timeout, body.frame()).await;
            // Only waiting for the sender counts, not the time that the reader takes.
            waited += begun.elapsed();
            let slow = waited > timeout + Duration::from_secs(came / SLOWEST);
            let piece = match piece {
                Ok(None) => return,
                Ok(Some(Ok(_))) if slow => Err(io::Error::from(io::ErrorKind::TimedOut)),
                Ok(Some(Ok(frame))) => Ok(frame.into_data().unwrap_or_default()),
                Ok(Some(Err(error))) => Err(io::Error::other(error)),
                Err(_) => Err(io::Error::from(io::ErrorKind::TimedOut)),
            };
            came += piece.as_ref().map_or(0, |piece| piece.len() as u64);
            // A refused body is still received to its end: senders read the answer only then.
            let broken = piece.is_err();
            refused = refused || sender.send(piece).await.is_err();
            if broken {
                return;
            }
        }
    });
    Incoming { receiver, piece: Bytes::new() }
}

/// Which delta of a log to send.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct DeltaQuery {
    /// The conversation; `~project` for the log of the project itself.
    conversation_id: ConversationId,
    /// The number of the entry to start after, together with `hash`; the whole log by default.
    seq: Option<u64>,
    /// The hash of that entry.
    hash: Option<String>,
    /// What the delta is for; `log` by default.
    scope: Option<DeltaScope>,
    /// The project; `default` by default.
    project_id: Option<ProjectId>,
}

/// What a delta is for.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "Scope")]
pub(crate) enum DeltaScope {
    /// To continue a log that ends at the entry: everything that changed.
    Log,
    /// To merge into a log that has diverged: turns and their branches.
    Turns,
}

/// `GET /api/v1/sync/delta`.
pub(crate) async fn send_delta(
    State(app): State<Arc<App>>,
    UrlParameters(query): UrlParameters<DeltaQuery>,
    request: Request,
) -> Result<Response, Problem> {
    let (parts, _) = request.into_parts();
    let (named, fields) = (query.project_id.as_ref(), CallFields::default());
    let context = request_context(app, &parts, named, true, Access::Read, fields)?;
    let engine = context.engine().clone();
    let since = match (query.seq, query.hash) {
        (None, None) => None,
        (Some(seq), Some(hash)) => {
            let malformed =
                |_| Problem::new(ErrorKind::Invalid, "`hash` is not the hash of an entry");
            Some(LogMark { seq, hash: hash.parse().map_err(malformed)? })
        }
        _ => {
            let why = "`seq` and `hash` name an entry together; give both or neither";
            return Err(Problem::new(ErrorKind::Invalid, why));
        }
    };
    let scope = match query.scope {
        None | Some(DeltaScope::Log) => engine::DeltaScope::Log,
        Some(DeltaScope::Turns) => engine::DeltaScope::Turns,
    };
    let permit = context.app.transfers.acquire()?;
    let id = query.conversation_id;
    let made = tokio::task::spawn_blocking(move || {
        // The permit is held as long as the work goes on, even if the client has left.
        let limit = engine.limits().delta_bytes;
        let delta = engine.delta_within(&context.call, &id, since, scope, limit)?;
        Ok::<_, Error>((permit, engine, delta))
    });
    let (permit, engine, delta) = made.await.map_err(|_| internal_error())??;
    Ok(streamed(permit, move |out| write_delta(&delta, engine.limits(), out)))
}

/// Where to apply a delta.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct DeltaTarget {
    /// The project; `default` by default.
    project_id: Option<ProjectId>,
}

/// `POST /api/v1/sync/delta`.
pub(crate) async fn receive_delta(
    State(app): State<Arc<App>>,
    UrlParameters(query): UrlParameters<DeltaTarget>,
    request: Request,
) -> Result<Response, Problem> {
    let (parts, body) = request.into_parts();
    let (named, fields) = (query.project_id.as_ref(), CallFields::default());
    let context = request_context(app, &parts, named, true, Access::Write, fields)?;
    check_content(&parts.headers, MEDIA_TYPE)?;
    let permit = context.app.transfers.acquire()?;
    let incoming = incoming(body, context.app.options.body_timeout);
    let done = tokio::task::spawn_blocking(move || {
        let _permit = permit;
        let delta = read_delta(&mut BufReader::new(incoming), context.engine().limits())?;
        let done = context.engine().receive(&context.call, delta)?;
        Ok::<_, Problem>(context.answer(done))
    });
    let done = done.await.map_err(|_| internal_error())??;
    Ok(axum::Json(done).into_response())
}
