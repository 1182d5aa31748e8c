//! Bundles in and out over HTTP, and what came behind an entry of a log.

use std::io::{self, BufReader, Read, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tine_api::Answer;

use axum::Extension;
use axum::body::{Body, Bytes};
use axum::extract::{RawQuery, Request, State};
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use futures_util::stream::{self, StreamExt};
use http_body_util::BodyExt;
use schemars::JsonSchema;
use serde::Deserialize;
use tine_api::bodies;
use tine_core::{ConversationId, ErrorKind};
use tine_engine::{self as engine, Call, Error, LogMark};
use tine_formats::bundle::{BundleError, read_bundle, read_delta, write_bundle, write_delta};
use tokio::sync::mpsc;

use crate::access::{Access, Caller};
use crate::app::App;
use crate::problem::Problem;
use crate::room::Held;
use crate::route::{NoBody, Wanted, asked, check_content};

/// The media type of a bundle.
pub(crate) const MEDIA_TYPE: &str = "application/x-ndjson";

/// Bytes in a second that a bundle or a delta must bring on the whole: who sends drop by drop takes
/// up room that others need.
const SLOWEST: u64 = 1_024;

/// Bytes of a bundle that are sent at once.
const PIECE: usize = 64 * 1024;

/// What is exported.
#[derive(Debug, Default, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Exported {
    /// The project; `default` without it.
    project_id: Option<String>,
    /// The conversations, each by a parameter of its own; all of the project without any.
    #[schemars(default)]
    conversation_id: Vec<String>,
}

impl Exported {
    /// Reads a query in which a name may come several times.
    fn read(query: &str) -> Result<Self, Problem> {
        let pairs: Vec<(String, String)> = serde_urlencoded::from_str(query).map_err(|error| {
            Problem::new(ErrorKind::Invalid, format!("the parameters: {error}"))
        })?;
        let mut read = Exported::default();
        for (name, value) in pairs {
            match name.as_str() {
                "project_id" => read.project_id = Some(value),
                "conversation_id" => read.conversation_id.push(value),
                _ => {
                    let why = format!("the parameters: `{name}` is unknown");
                    return Err(Problem::new(ErrorKind::Invalid, why));
                }
            }
        }
        Ok(read)
    }
}

/// Where a bundle goes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ImportedInto {
    /// The project; the one that the bundle names without it.
    project_id: Option<String>,
}

/// `GET /api/v1/export`.
pub(crate) async fn export(
    State(app): State<Arc<App>>,
    caller: Option<Extension<Caller>>,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    let wanted = Exported::read(query.as_deref().unwrap_or_default())?;
    let caller = caller.map(|Extension(caller)| caller).unwrap_or_default();
    let limits = *app.engine.limits();
    let project = bodies::project(wanted.project_id.as_deref(), &limits)?;
    caller.check(&project, Access::Read)?;
    let actor = caller.name().unwrap_or_else(|| app.options.actor.clone());
    let call = Call::by(actor).in_project(project);
    let room = app.transfer_room.take()?;
    let wanted = wanted.conversation_id.into_iter().map(|id| ConversationId::new(id, &limits));
    let wanted = wanted.collect::<Result<Vec<_>, _>>().map_err(Error::from)?;
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
    let (engine, call, ids) =
        found.await.map_err(|_| Problem::new(ErrorKind::Internal, "the export met a defect"))??;
    Ok(streamed(room, move |out| write_bundle(&engine, &call, &ids, out).map(|_| ())))
}

/// What is written, as the body of an answer.
fn streamed(
    room: Held,
    write: impl FnOnce(&mut dyn Write) -> Result<(), BundleError> + Send + 'static,
) -> Response {
    let (sender, receiver) = mpsc::channel::<io::Result<Bytes>>(4);
    tokio::task::spawn_blocking(move || {
        let _room = room;
        let mut out = Pieces { sender: sender.clone(), piece: Vec::with_capacity(PIECE) };
        let written = write(&mut out)
            .map_err(|error| io::Error::other(error.to_string()))
            .and_then(|()| out.flush());
        if let Err(error) = written {
            // The stream breaks off, and without its last line the bundle is refused.
            tracing::error!(%error, "an export broke off");
            sender.blocking_send(Err(error)).ok();
        }
    });
    let body = stream::unfold(receiver, |mut receiver| async {
        receiver.recv().await.map(|piece| (piece, receiver))
    });
    // Compression asks once more behind the end.
    let mut response = Response::new(Body::from_stream(body.fuse()));
    let kind = HeaderValue::from_static(MEDIA_TYPE);
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

/// A writer whose pieces go to a stream; it waits while nobody reads.
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

/// A body as it comes, for a reader that waits.
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
    Wanted(into): Wanted<ImportedInto>,
    request: Request,
) -> Result<Response, Problem> {
    let caller = caller.map(|Extension(caller)| caller).unwrap_or_default();
    let limits = *app.engine.limits();
    let project = match (&into.project_id, caller.only_project()) {
        (Some(id), _) => Some(bodies::project(Some(id), &limits)?),
        (None, only) => only,
    };
    match &project {
        Some(project) => caller.check(project, Access::Write)?,
        None => caller.check_store(Access::Write)?,
    }
    check_content(request.headers(), MEDIA_TYPE)?;
    let room = app.transfer_room.take()?;
    let incoming = incoming(request.into_body(), app.options.body_timeout);
    let engine = app.engine.clone();
    let done = tokio::task::spawn_blocking(move || {
        let _room = room;
        let mut input = BufReader::new(incoming);
        let done = read_bundle(&engine, project.as_ref(), &mut input)?;
        let project = project.unwrap_or_default();
        Ok::<_, Problem>(Answer::new(&project, done))
    });
    let done =
        done.await.map_err(|_| Problem::new(ErrorKind::Internal, "the import met a defect"))??;
    Ok(axum::Json(done).into_response())
}

/// Reads a body as it comes, on a task of its own: each piece within a time, and all of it no
/// slower than [`SLOWEST`].
fn incoming(body: Body, patience: Duration) -> Incoming {
    let (sender, receiver) = mpsc::channel(4);
    tokio::spawn(async move {
        let mut body = body;
        let mut refused = false;
        let (mut came, mut waited) = (0_u64, Duration::ZERO);
        loop {
            let begun = Instant::now();
            let piece = tokio::time::timeout(patience, body.frame()).await;
            // Only waiting for the sender counts; whoever takes the pieces may take its time.
            waited += begun.elapsed();
            let slow = waited > patience + Duration::from_secs(came / SLOWEST);
            let piece = match piece {
                Ok(None) => return,
                Ok(Some(Ok(_))) if slow => Err(io::Error::from(io::ErrorKind::TimedOut)),
                Ok(Some(Ok(frame))) => Ok(frame.into_data().unwrap_or_default()),
                Ok(Some(Err(error))) => Err(io::Error::other(error)),
                Err(_) => Err(io::Error::from(io::ErrorKind::TimedOut)),
            };
            came += piece.as_ref().map_or(0, |piece| piece.len() as u64);
            // What was refused is still taken to its end: a sender reads no answer before that.
            let broken = piece.is_err();
            refused = refused || sender.send(piece).await.is_err();
            if broken {
                return;
            }
        }
    });
    Incoming { receiver, piece: Bytes::new() }
}

/// What came behind an entry of a log.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Behind {
    /// The conversation; `~project` for what was done outside of conversations.
    conversation_id: String,
    /// The number of the entry; with `hash`, or the whole conversation without both.
    seq: Option<u64>,
    /// The hash of the entry.
    hash: Option<String>,
    /// What it is for; `log` without it.
    scope: Option<Scope>,
    /// The project; `default` without it.
    project_id: Option<String>,
}

/// What a part of a conversation is for.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Scope {
    /// To go on with a log that ends at the entry: everything that changed.
    Log,
    /// To be taken over into a log that went another way: turns and their branches.
    Turns,
}

impl From<Scope> for engine::DeltaScope {
    fn from(scope: Scope) -> Self {
        match scope {
            Scope::Log => engine::DeltaScope::Log,
            Scope::Turns => engine::DeltaScope::Turns,
        }
    }
}

/// `GET /api/v1/sync/delta`.
pub(crate) async fn give(
    State(app): State<Arc<App>>,
    Wanted(wanted): Wanted<Behind>,
    request: Request,
) -> Result<Response, Problem> {
    let (parts, _) = request.into_parts();
    let named = wanted.project_id.as_deref();
    let asked = asked(app, &parts, named, true, Access::Read, &NoBody::default())?;
    let engine = asked.engine().clone();
    let id = ConversationId::new(wanted.conversation_id, engine.limits()).map_err(Error::from)?;
    let since = match (wanted.seq, wanted.hash) {
        (None, None) => None,
        (Some(seq), Some(hash)) => {
            let unsound =
                |_| Problem::new(ErrorKind::Invalid, "`hash` is not the hash of an entry");
            Some(LogMark { seq, hash: hash.parse().map_err(unsound)? })
        }
        _ => {
            let why = "`seq` and `hash` name an entry together; give both or neither";
            return Err(Problem::new(ErrorKind::Invalid, why));
        }
    };
    let scope = wanted.scope.map_or(engine::DeltaScope::Log, engine::DeltaScope::from);
    let room = asked.app.transfer_room.take()?;
    let made = tokio::task::spawn_blocking(move || {
        // The room is taken up as long as the work goes on, also when the client has left.
        let limit = engine.limits().delta_bytes;
        let delta = engine.delta_within(&asked.call, &id, since, scope, limit)?;
        Ok::<_, Error>((room, engine, delta))
    });
    let (room, engine, delta) =
        made.await.map_err(|_| Problem::new(ErrorKind::Internal, "the request met a defect"))??;
    Ok(streamed(room, move |out| write_delta(&delta, engine.limits(), out)))
}

/// Where a part of a conversation goes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TakenInto {
    /// The project; `default` without it.
    project_id: Option<String>,
}

/// `POST /api/v1/sync/delta`.
pub(crate) async fn take(
    State(app): State<Arc<App>>,
    Wanted(into): Wanted<TakenInto>,
    request: Request,
) -> Result<Response, Problem> {
    let (parts, body) = request.into_parts();
    let named = into.project_id.as_deref();
    let asked = asked(app, &parts, named, true, Access::Write, &NoBody::default())?;
    check_content(&parts.headers, MEDIA_TYPE)?;
    let room = asked.app.transfer_room.take()?;
    let incoming = incoming(body, asked.app.options.body_timeout);
    let done = tokio::task::spawn_blocking(move || {
        let _room = room;
        let delta = read_delta(&mut BufReader::new(incoming), asked.engine().limits())?;
        let done = asked.engine().receive(&asked.call, delta)?;
        Ok::<_, Problem>(Answer::new(asked.project(), done))
    });
    let done =
        done.await.map_err(|_| Problem::new(ErrorKind::Internal, "the request met a defect"))??;
    Ok(axum::Json(done).into_response())
}
