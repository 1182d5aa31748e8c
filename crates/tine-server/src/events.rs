//! Live events: the operation log as a stream (server-sent events).
//!
//! Each connection keeps its own position in the feed and reads on whenever something was
//! committed, by this process or another. Nothing is queued for a client that does not read: its
//! position stays where it is. A client that reconnects with `Last-Event-ID` misses nothing.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::Response;
use futures_util::stream::{self, StreamExt};
use schemars::JsonSchema;
use serde::Deserialize;
use tine_core::{ConversationId, ErrorKind, ProjectId};
use tine_engine::{Engine, FeedFilter};
use tine_store::FeedPosition;
use tokio::sync::watch;

use crate::access::{Access, Caller};
use crate::app::App;
use crate::metrics::Gauge;
use crate::problem::Problem;
use crate::route::UrlParameters;

/// The number of entries to read at once.
const ENTRIES: usize = 128;

/// The interval of keep-alive comments.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// How often to poll the store for writes of other processes.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Which events to follow.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct EventsQuery {
    /// Only events of this project.
    project_id: Option<ProjectId>,
    /// Only events of this conversation.
    conversation_id: Option<ConversationId>,
    /// The position to start after; the current end of the feed by default. The header
    /// `Last-Event-ID` overrides it.
    after: Option<u64>,
}

/// Polls the end of the feed for all followers.
pub(crate) async fn watch_feed(engine: Engine, end: watch::Sender<u64>) {
    loop {
        tokio::time::sleep(POLL_INTERVAL).await;
        // There are no followers.
        if end.receiver_count() <= 1 {
            continue;
        }
        let engine = engine.clone();
        let end_now = tokio::task::spawn_blocking(move || engine.feed_end()).await;
        if let Ok(Ok(FeedPosition(now))) = end_now {
            end.send_if_modified(|known| std::mem::replace(known, now) != now);
        }
    }
}

/// `GET /api/v1/events`.
pub(crate) async fn events(
    State(app): State<Arc<App>>,
    caller: Option<axum::Extension<Caller>>,
    headers: HeaderMap,
    UrlParameters(query): UrlParameters<EventsQuery>,
) -> Result<Response, Problem> {
    let caller = caller.map(|axum::Extension(caller)| caller).unwrap_or_default();
    let (conversation, project) = (query.conversation_id, query.project_id);
    if let Some(project) = &project {
        caller.check(project, Access::Read)?;
    }
    let project = project.or_else(|| caller.only_project());
    let last = match headers.get("last-event-id") {
        Some(value) => {
            let number = value.to_str().ok().and_then(|text| text.trim().parse().ok());
            let why = "Last-Event-ID must be the id of an earlier event, a number";
            Some(number.ok_or_else(|| Problem::new(ErrorKind::Invalid, why))?)
        }
        None => query.after,
    };
    let engine = app.engine.clone();
    let end = tokio::task::spawn_blocking(move || engine.feed_end()).await;
    let end =
        end.map_err(|_| Problem::new(ErrorKind::Internal, "the feed could not be read"))??;
    let at = last.map_or(end, FeedPosition);
    if at > end {
        let why = format!("there is no event with the id {} yet; the last one is {}", at.0, end.0);
        return Err(Problem::new(ErrorKind::Invalid, why));
    }
    let follower = Follower {
        filter: FeedFilter { project, conversation },
        at,
        feed: app.feed.clone(),
        stopping: app.stopping.clone(),
        _counted: app.metrics.follower(),
        caller,
        // A client that is cut off before the first event can continue from this id.
        ready: VecDeque::from([Bytes::from(format!(": following\nid: {}\n\n", at.0))]),
        app,
    };
    let body = stream::unfold(follower, |mut follower| async {
        let bytes = follower.next().await?;
        Some((Ok::<_, Infallible>(bytes), follower))
    });
    let mut response = Response::new(Body::from_stream(body.fuse()));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    Ok(response)
}

struct Follower {
    app: Arc<App>,
    caller: Caller,
    _counted: Gauge,
    filter: FeedFilter,
    at: FeedPosition,
    feed: watch::Receiver<u64>,
    stopping: watch::Receiver<bool>,
    ready: VecDeque<Bytes>,
}

impl Follower {
    /// Returns the next bytes to send; `None` when the server stops, the token of the caller was
    /// revoked, or the feed cannot be read.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if !self.app.tokens.still_admit(self.app.options.token_rule, &self.caller) {
                return None;
            }
            if let Some(piece) = self.ready.pop_front() {
                return Some(piece);
            }
            if *self.stopping.borrow_and_update() {
                return None;
            }
            self.feed.borrow_and_update();
            if self.read_on().await? {
                continue;
            }
            tokio::select! {
                changed = self.feed.changed() => changed.ok()?,
                changed = self.stopping.changed() => changed.ok()?,
                () = tokio::time::sleep(HEARTBEAT) => {
                    self.ready.push_back(Bytes::from_static(b": \n\n"));
                }
            }
        }
    }

    /// Reads the entries after the current position. Returns whether there were any.
    async fn read_on(&mut self) -> Option<bool> {
        let (engine, filter, at) = (self.app.engine.clone(), self.filter.clone(), self.at);
        let read = tokio::task::spawn_blocking(move || engine.feed(at, &filter, ENTRIES)).await;
        let (entries, now) = read.ok()?.ok()?;
        for entry in entries {
            let (position, kind) = (entry.position.0, entry.operation.kind.clone());
            let data = serde_json::to_string(&entry).ok()?;
            let event = format!("id: {position}\nevent: {kind}\ndata: {data}\n\n");
            self.ready.push_back(Bytes::from(event));
        }
        let moved = now > self.at;
        self.at = self.at.max(now);
        Some(moved)
    }
}
