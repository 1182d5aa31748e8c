//! Bundles in and out over HTTP.

use std::io::{self, BufReader, Read, Write};
use std::sync::Arc;

use axum::Extension;
use axum::body::{Body, Bytes};
use axum::extract::{RawQuery, Request, State};
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use futures_util::stream::{self, StreamExt};
use http_body_util::BodyExt;
use schemars::JsonSchema;
use serde::Deserialize;
use tine_core::{ConversationId, Kind};
use tine_engine::{Call, Error};
use tine_formats::bundle::{read_bundle, write_bundle};
use tine_formats::view::{self, Answer};
use tine_formats::wire;
use tokio::sync::mpsc;

use crate::access::{Access, Caller};
use crate::app::App;
use crate::problem::Problem;
use crate::route::{Wanted, check_content};

/// The media type of a bundle.
pub(crate) const MEDIA_TYPE: &str = "application/x-ndjson";

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
        let pairs: Vec<(String, String)> = serde_urlencoded::from_str(query)
            .map_err(|error| Problem::new(Kind::Invalid, format!("the parameters: {error}")))?;
        let mut read = Exported::default();
        for (name, value) in pairs {
            match name.as_str() {
                "project_id" => read.project_id = Some(value),
                "conversation_id" => read.conversation_id.push(value),
                _ => {
                    let why = format!("the parameters: `{name}` is unknown");
                    return Err(Problem::new(Kind::Invalid, why));
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
    let project = wire::project(wanted.project_id.as_deref(), &limits)?;
    caller.check(&project, Access::Read)?;
    let actor = caller.name().unwrap_or_else(|| app.options.actor.clone());
    let call = Call::by(actor).in_project(project);
    let room = app.transfer_room.take()?;
    let wanted = wanted.conversation_id.into_iter().map(|id| ConversationId::new(id, &limits));
    let wanted = wanted.collect::<Result<Vec<_>, _>>().map_err(Error::from)?;
    let engine = app.engine.clone();
    let (sender, receiver) = mpsc::channel::<io::Result<Bytes>>(4);
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
        found.await.map_err(|_| Problem::new(Kind::Internal, "the export met a defect"))??;
    tokio::task::spawn_blocking(move || {
        let _room = room;
        let mut out = Pieces { sender: sender.clone(), piece: Vec::with_capacity(PIECE) };
        let written = write_bundle(&engine, &call, &ids, &mut out)
            .map_err(|error| io::Error::other(error.to_string()))
            .and_then(|_| out.flush());
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
    Ok(response)
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
        (Some(id), _) => Some(wire::project(Some(id), &limits)?),
        (None, only) => only,
    };
    match &project {
        Some(project) => caller.check(project, Access::Write)?,
        None => caller.check_store(Access::Write)?,
    }
    check_content(request.headers(), MEDIA_TYPE)?;
    let room = app.transfer_room.take()?;
    let (sender, receiver) = mpsc::channel(4);
    let patience = app.options.body_timeout;
    tokio::spawn(async move {
        let mut body = request.into_body();
        let mut refused = false;
        loop {
            let piece = match tokio::time::timeout(patience, body.frame()).await {
                Ok(None) => return,
                Ok(Some(Ok(frame))) => Ok(frame.into_data().unwrap_or_default()),
                Ok(Some(Err(error))) => Err(io::Error::other(error)),
                Err(_) => Err(io::Error::from(io::ErrorKind::TimedOut)),
            };
            // What was refused is still taken to its end: a sender reads no answer before that.
            let broken = piece.is_err();
            refused = refused || sender.send(piece).await.is_err();
            if broken {
                return;
            }
        }
    });
    let engine = app.engine.clone();
    let done = tokio::task::spawn_blocking(move || {
        let _room = room;
        let mut input = BufReader::new(Incoming { receiver, piece: Bytes::new() });
        let done = read_bundle(&engine, project.as_ref(), &mut input)?;
        let project = project.unwrap_or_default();
        Ok::<_, Problem>(Answer::new(&project, view::Imported::from(done)))
    });
    let done =
        done.await.map_err(|_| Problem::new(Kind::Internal, "the import met a defect"))??;
    Ok(axum::Json(done).into_response())
}
