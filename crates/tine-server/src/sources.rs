//! Uploads and downloads the bytes of sources in pieces; they are never in memory as a whole.
//!
//! Uploads go to a temporary file first, since their hash is known only at their end. Downloads are
//! untrusted content: they are sent as attachments, and a browser that opens one anyway runs
//! nothing in it.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::sync::Arc;
use tine_api::{Answer, StoredSourceAnswer};

use axum::Extension;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures_util::stream::{self, StreamExt};
use http_body_util::BodyExt;
use schemars::JsonSchema;
use serde::Deserialize;
use tine_api::bodies::{CallFields, RequestBody};
use tine_api::{Call, Interpret, NewSource, Outcome, SourceBytes, SourceView};
use tine_core::{ErrorKind, ProjectId, SourceId};
use tine_engine::Error;
use tine_formats::redact::{self, Redacted};
use tine_store::PIECE_BYTES;
use tokio::sync::mpsc;

use crate::access::{Access, Caller};
use crate::app::App;
use crate::capacity::Permit;
use crate::problem::Problem;
use crate::route::{self, ApiResult, RequestContext, UrlParameters, blocking, respond};

/// The path of all sources.
pub(crate) const PATH: &str = "/api/v1/sources";

/// The path of the bytes of a source.
pub(crate) const CONTENT_PATH: &str = "/api/v1/sources/{source}/content";

/// Isolates a document from this server: nothing in it runs or loads.
const POLICY: &str = "default-src 'none'; sandbox";

/// The parameters of an upload whose body is the source itself. With a JSON body, all but the
/// project are fields of the body.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct UploadQuery {
    /// The project; `default` by default.
    project_id: Option<ProjectId>,
    /// The media type of the bytes; overrides `Content-Type`.
    mime_type: Option<String>,
    /// The file name.
    original_filename: Option<String>,
    /// Whether to interpret the source; `queue` by default.
    interpret: Option<Interpret>,
    /// The interpreter; the configured default if omitted.
    interpreter: Option<String>,
    /// Whether to include the turn itself in the answer, if the bytes are the envelope of one.
    return_turn: Option<bool>,
    /// Makes the call safe to retry, like the header `Idempotency-Key`.
    idempotency_key: Option<String>,
}

/// `POST /api/v1/sources`.
pub(crate) async fn store(
    State(app): State<Arc<App>>,
    UrlParameters(query): UrlParameters<UploadQuery>,
    request: Request,
) -> Result<Response, Problem> {
    let (parts, body) = request.into_parts();
    let kind = parts.headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let Some(kind) = kind.map(str::trim).filter(|kind| !kind.is_empty()) else {
        let why = "set Content-Type to the media type of the bytes; with application/json the \
                   body holds them in `file_content` or `text`";
        return Err(
            Problem::new(ErrorKind::Invalid, why).with_status(StatusCode::UNSUPPORTED_MEDIA_TYPE)
        );
    };
    let essence = kind.split(';').next().unwrap_or_default().trim();
    if !essence.eq_ignore_ascii_case("application/json") {
        let kind = kind.to_owned();
        return store_raw(app, &parts, query, kind, body).await;
    }
    let in_query = query.mime_type.is_some()
        || query.original_filename.is_some()
        || query.interpret.is_some()
        || query.interpreter.is_some()
        || query.return_turn.is_some()
        || query.idempotency_key.is_some();
    if in_query {
        let why = "with a JSON body, all parameters but `project_id` belong in the body";
        return Err(Problem::new(ErrorKind::Invalid, why));
    }
    let (body, permit) = route::read_json::<NewSource>(&app, &parts.headers, body, true).await?;
    let RequestBody { request, fields } = body;
    let project = query.project_id.as_ref();
    let context = route::request_context(app, &parts, project, true, Access::Write, fields)?;
    let answer = blocking(|| respond(&context, store_source(&context, request)));
    drop(permit);
    Ok(answer)
}

async fn store_raw(
    app: Arc<App>,
    parts: &axum::http::request::Parts,
    query: UploadQuery,
    kind: String,
    body: Body,
) -> Result<Response, Problem> {
    route::check_encoding(&parts.headers)?;
    let fields = CallFields {
        project_id: query.project_id,
        idempotency_key: query.idempotency_key,
        return_turn: query.return_turn.unwrap_or(false),
        ..CallFields::default()
    };
    let context =
        route::request_context(Arc::clone(&app), parts, None, true, Access::Write, fields)?;
    let limit = app.engine.limits().source_bytes;
    if route::content_length(&parts.headers).is_some_and(|length| length > limit) {
        return Err(too_large(limit));
    }
    let permit = app.transfers.acquire()?;
    let content = spooled(&app, body, limit).await?;
    let answer = blocking(|| {
        let request = NewSource {
            content: Arc::new(content),
            mime_type: query.mime_type.unwrap_or(kind),
            original_filename: query.original_filename,
            interpret: query.interpret.unwrap_or(Interpret::Queue),
            interpreter: query.interpreter,
        };
        respond(&context, store_source(&context, request))
    });
    drop(permit);
    Ok(answer)
}

fn store_source(
    context: &RequestContext,
    mut request: NewSource,
) -> ApiResult<Answer<StoredSourceAnswer>> {
    let redacted = match context.app.options.redact {
        true => redact_source(&mut request, context.engine().limits().body_bytes)?,
        false => Redacted::new(),
    };
    let _permit = context.wait_permit(request.interpret == Interpret::Wait)?;
    let secrets: u64 = redacted.values().sum();
    let call = context.call.clone().with_redacted(redacted);
    let mut done = context.engine().store_source(&call, request)?;
    if done.interpretation.is_some() {
        context.app.bell.ring();
    }
    if secrets > 0 {
        done.warnings.push(format!(
            "{secrets} secrets were redacted: the stored bytes differ from the bytes sent"
        ));
    }
    let new = done.outcome == Outcome::Created && !done.replayed;
    context.made(new, StoredSourceAnswer::new(done, context.fields.return_turn))
}

/// Redacts secrets in a text, unless it is larger than a body may be.
pub(crate) fn redact_source(request: &mut NewSource, limit: usize) -> Result<Redacted, Problem> {
    let unreadable = |error: io::Error| Problem::new(ErrorKind::Internal, error.to_string());
    let mut bytes = Vec::new();
    let most = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    let content = Arc::clone(&request.content);
    content.open().and_then(|it| it.take(most).read_to_end(&mut bytes)).map_err(unreadable)?;
    if bytes.len() > limit {
        return Ok(Redacted::new());
    }
    let (clean, redacted) = redact::source(bytes);
    if let Some(clean) = clean {
        request.content = Arc::new(clean);
    }
    Ok(redacted)
}

fn too_large(limit: usize) -> Problem {
    let why = format!("the bytes of a source: at most {limit}; nothing was stored");
    Problem::new(ErrorKind::TooLarge, why)
}

/// An uploaded body in an unnamed file.
struct SpooledFile(File);

impl SourceBytes for SpooledFile {
    /// Rewinds the file: it is never read twice at the same time.
    fn open(&self) -> io::Result<Box<dyn Read + '_>> {
        let mut file = &self.0;
        file.seek(SeekFrom::Start(0))?;
        Ok(Box::new(file))
    }
}

async fn spooled(app: &App, mut body: Body, limit: usize) -> Result<SpooledFile, Problem> {
    let (sender, mut receiver) = mpsc::channel::<Bytes>(4);
    let writing = tokio::task::spawn_blocking(move || -> io::Result<File> {
        let mut file = tempfile::tempfile()?;
        while let Some(piece) = receiver.blocking_recv() {
            file.write_all(&piece)?;
        }
        Ok(file)
    });
    let mut size = 0_usize;
    loop {
        let piece = match tokio::time::timeout(app.options.body_timeout, body.frame()).await {
            Ok(None) => break,
            Ok(Some(Ok(frame))) => frame.into_data().unwrap_or_default(),
            Ok(Some(Err(error))) => {
                let why = format!("the body ended early: {error}; nothing was stored");
                return Err(Problem::new(ErrorKind::Invalid, why));
            }
            Err(_) => {
                let why = "the body arrived too slowly; nothing was stored";
                return Err(
                    Problem::new(ErrorKind::Invalid, why).with_status(StatusCode::REQUEST_TIMEOUT)
                );
            }
        };
        size = size.saturating_add(piece.len());
        if size > limit {
            // A client that is still sending would not hear the answer.
            tokio::time::timeout(app.options.body_timeout, route::discard(body)).await.ok();
            return Err(too_large(limit));
        }
        if sender.send(piece).await.is_err() {
            break;
        }
    }
    drop(sender);
    match writing.await {
        Ok(Ok(file)) => Ok(SpooledFile(file)),
        Ok(Err(error)) => {
            tracing::error!(%error, "an upload could not be written to a temporary file");
            let why = "the server has no disk space for a file of this size; nothing was stored";
            Err(Problem::new(ErrorKind::Busy, why))
        }
        Err(_) => Err(route::internal_error()),
    }
}

/// Which source to download.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ContentPath {
    /// The id of the source.
    source: SourceId,
    /// The project; `default` by default.
    project_id: Option<ProjectId>,
}

/// `GET /api/v1/sources/{source}/content`.
pub(crate) async fn content(
    State(app): State<Arc<App>>,
    caller: Option<Extension<Caller>>,
    UrlParameters(query): UrlParameters<ContentPath>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let caller = caller.map(|Extension(caller)| caller).unwrap_or_default();
    let project = query.project_id.unwrap_or_default();
    caller.check(&project, Access::Read)?;
    let actor = caller.name().unwrap_or_else(|| app.options.actor.clone());
    let call = Call::by(actor).in_project(project);
    let (engine, by, id) = (app.engine.clone(), call.clone(), query.source);
    let found = tokio::task::spawn_blocking(move || -> Result<SourceView, Error> {
        let source = engine.source(&by, id)?;
        if source.purged {
            // Fails with the engine's own error.
            engine.source_piece(&by, id, 0)?;
        }
        Ok(source)
    });
    let source = found.await.map_err(|_| route::internal_error())??;
    let mut answer = answer_about(&source);
    let etag = format!("\"{}\"", source.content_hash);
    let given = |name| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    let known = given(header::IF_NONE_MATCH)
        .is_some_and(|tags| tags == "*" || tags.split(',').any(|tag| same_tag(tag, &etag)));
    if known {
        *answer.status_mut() = StatusCode::NOT_MODIFIED;
        return Ok(answer);
    }
    let applies = given(header::IF_RANGE).is_none_or(|tag| tag == etag);
    let range = given(header::RANGE).filter(|_| applies);
    let (range, part) = match range.map(|text| part(text, source.size_bytes)) {
        None | Some(Part::Whole) => (0..source.size_bytes, false),
        Some(Part::These(range)) => (range, true),
        Some(Part::Nowhere) => {
            let why =
                format!("the range is outside of the {} bytes of the source", source.size_bytes);
            let problem = Problem::new(ErrorKind::Invalid, why);
            let mut answer = problem.with_status(StatusCode::RANGE_NOT_SATISFIABLE).into_response();
            set(&mut answer, header::CONTENT_RANGE, format!("bytes */{}", source.size_bytes));
            return Ok(answer);
        }
    };
    if part {
        *answer.status_mut() = StatusCode::PARTIAL_CONTENT;
        let (first, last) = (range.start, range.end - 1);
        let range = format!("bytes {first}-{last}/{}", source.size_bytes);
        set(&mut answer, header::CONTENT_RANGE, range);
    }
    set(&mut answer, header::CONTENT_LENGTH, (range.end - range.start).to_string());
    let permit = app.body_memory.acquire(2 * PIECE_BYTES)?;
    let pieces = Pieces { app, call, id, range, _permit: permit };
    let body = stream::unfold(Some(pieces), |pieces| async {
        let mut pieces = pieces?;
        match pieces.next().await {
            Ok(None) => None,
            Ok(Some(piece)) => Some((Ok(piece), Some(pieces))),
            Err(error) => {
                // The stream ends before the announced length.
                tracing::error!(%error, "a download of a source failed");
                Some((Err(error), None))
            }
        }
    });
    *answer.body_mut() = Body::from_stream(body.fuse());
    Ok(answer)
}

fn same_tag(given: &str, etag: &str) -> bool {
    let given = given.trim();
    given.strip_prefix("W/").unwrap_or(given) == etag
}

fn set(answer: &mut Response, name: header::HeaderName, value: String) {
    if let Ok(value) = HeaderValue::try_from(value) {
        answer.headers_mut().insert(name, value);
    }
}

/// Returns the head of an answer with the bytes of a source.
fn answer_about(source: &SourceView) -> Response {
    let mut answer = Response::new(Body::empty());
    let kind = HeaderValue::from_str(&source.mime_type);
    let kind = kind.unwrap_or(HeaderValue::from_static("application/octet-stream"));
    let fixed = [
        (header::ACCEPT_RANGES, "bytes"),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        (header::CACHE_CONTROL, "private, no-cache"),
    ];
    for (name, value) in fixed {
        answer.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    answer.headers_mut().insert(header::CONTENT_TYPE, kind);
    set(&mut answer, header::ETAG, format!("\"{}\"", source.content_hash));
    let saved_as = match &source.original_filename {
        None => "attachment".to_owned(),
        Some(name) => format!("attachment; filename*=UTF-8''{}", escaped(name)),
    };
    set(&mut answer, header::CONTENT_DISPOSITION, saved_as);
    answer
}

/// Encodes a file name according to RFC 8187.
fn escaped(name: &str) -> String {
    let mut out = String::new();
    for byte in name.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                out.push(char::from(byte));
            }
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

/// What a header `Range` asks for.
#[derive(Debug, PartialEq, Eq)]
enum Part {
    /// Nothing that is understood, or several parts: all of it, as RFC 9110 allows.
    Whole,
    These(Range<u64>),
    /// Nothing that is there.
    Nowhere,
}

fn part(text: &str, size: u64) -> Part {
    let Some((first, last)) =
        text.strip_prefix("bytes=").and_then(|text| text.trim().split_once('-'))
    else {
        return Part::Whole;
    };
    let number = |text: &str| -> Option<u64> {
        (!text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()))
            .then(|| text.parse().unwrap_or(u64::MAX))
    };
    let range = match (number(first.trim()), number(last.trim())) {
        (Some(first), None) if last.trim().is_empty() => first..size,
        (Some(first), Some(last)) if first <= last => first..size.min(last.saturating_add(1)),
        (None, Some(count)) if first.trim().is_empty() => size.saturating_sub(count)..size,
        _ => return Part::Whole,
    };
    if range.start < range.end { Part::These(range) } else { Part::Nowhere }
}

/// The bytes that are still to be sent.
struct Pieces {
    app: Arc<App>,
    call: Call,
    id: SourceId,
    range: Range<u64>,
    _permit: Permit,
}

impl Pieces {
    async fn next(&mut self) -> io::Result<Option<Bytes>> {
        if self.range.is_empty() {
            return Ok(None);
        }
        let size = PIECE_BYTES as u64;
        let (nth, within) = (self.range.start / size, self.range.start % size);
        let nth = u32::try_from(nth).map_err(io::Error::other)?;
        let (engine, call, id) = (self.app.engine.clone(), self.call.clone(), self.id);
        let read = tokio::task::spawn_blocking(move || engine.source_piece(&call, id, nth));
        let piece = read.await.map_err(io::Error::other)?;
        let piece = piece.map_err(|error| io::Error::other(error.to_string()))?;
        let piece = Bytes::from(piece.unwrap_or_default());
        let left = usize::try_from(self.range.end - self.range.start).unwrap_or(usize::MAX);
        let from = usize::try_from(within).unwrap_or(usize::MAX).min(piece.len());
        let to = piece.len().min(from.saturating_add(left));
        if from == to {
            return Err(io::Error::other(format!("piece {nth} of {id} is too short")));
        }
        let piece = piece.slice(from..to);
        self.range.start += piece.len() as u64;
        Ok(Some(piece))
    }
}

#[cfg(test)]
mod tests {
    use super::{Part, part};

    #[test]
    fn ranges_are_parsed_and_clamped() {
        assert_eq!(part("bytes=0-0", 10), Part::These(0..1));
        assert_eq!(part("bytes=2-", 10), Part::These(2..10));
        assert_eq!(part("bytes=-3", 10), Part::These(7..10));
        assert_eq!(part("bytes=-30", 10), Part::These(0..10));
        assert_eq!(part("bytes=5-99999999999999999999999", 10), Part::These(5..10));
        assert_eq!(part("bytes=10-", 10), Part::Nowhere);
        assert_eq!(part("bytes=-0", 10), Part::Nowhere);
        assert_eq!(part("bytes=0-", 0), Part::Nowhere);
        for odd in ["bytes=3-2", "bytes=-", "bytes=a-b", "lines=1-2", "bytes=0-1,4-5", "bytes=1"] {
            assert_eq!(part(odd, 10), Part::Whole, "{odd}");
        }
    }
}
