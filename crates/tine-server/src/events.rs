//! Live events: the operation log as a stream (server-sent events).
//!
//! Every connection keeps its own place in the feed and reads on from there whenever something
//! was committed, by this process or another. Nothing is queued for a client that does not read:
//! its place simply stays where it is. A client that comes back with `Last-Event-ID` misses
//! nothing.

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
use tine_api::bodies;
use tine_core::{ConversationId, ErrorKind};
use tine_engine::{Engine, FeedFilter};
use tine_store::FeedPosition;
use tokio::sync::watch;

use crate::access::{Access, Caller};
use crate::app::App;
use crate::metrics::Gauge;
use crate::problem::Problem;
use crate::route;

/// Entries read at once.
const ENTRIES: usize = 128;

/// How often a silent connection is shown to be alive.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// How often the store is asked whether another process has written.
const LOOK: Duration = Duration::from_millis(50);

/// What a follower asks for.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Wanted {
    /// Only events of this project.
    project_id: Option<String>,
    /// Only events of this conversation.
    conversation_id: Option<String>,
    /// The position behind which to begin; the present end without it. The header
    /// `Last-Event-ID` says the same.
    after: Option<u64>,
}

/// Keeps the end of the feed up to date for all followers.
pub(crate) async fn watch_feed(engine: Engine, end: watch::Sender<u64>) {
    loop {
        tokio::time::sleep(LOOK).await;
        // Nobody follows: nothing is asked.
        if end.receiver_count() <= 1 {
            continue;
        }
        let engine = engine.clone();
        let asked = tokio::task::spawn_blocking(move || engine.feed_end()).await;
        if let Ok(Ok(FeedPosition(now))) = asked {
            end.send_if_modified(|known| std::mem::replace(known, now) != now);
        }
    }
}

/// `GET /api/v1/events`.
pub(crate) async fn events(
    State(app): State<Arc<App>>,
    caller: Option<axum::Extension<Caller>>,
    headers: HeaderMap,
    route::Wanted(wanted): route::Wanted<Wanted>,
) -> Result<Response, Problem> {
    let caller = caller.map(|axum::Extension(caller)| caller).unwrap_or_default();
    let limits = app.engine.limits();
    let project = match (&wanted.project_id, caller.only_project()) {
        (Some(id), _) => {
            let project = bodies::project(Some(id), limits)?;
            caller.check(&project, Access::Read)?;
            Some(project)
        }
        (None, only) => only,
    };
    let conversation = match &wanted.conversation_id {
        Some(id) => Some(ConversationId::new(id, limits).map_err(tine_engine::Error::from)?),
        None => None,
    };
    let last = match headers.get("last-event-id") {
        Some(value) => {
            let number = value.to_str().ok().and_then(|text| text.trim().parse().ok());
            let why = "Last-Event-ID is the id of an event that was sent before, a number";
            Some(number.ok_or_else(|| Problem::new(ErrorKind::Invalid, why))?)
        }
        None => wanted.after,
    };
    let engine = app.engine.clone();
    let end = tokio::task::spawn_blocking(move || engine.feed_end()).await;
    let end =
        end.map_err(|_| Problem::new(ErrorKind::Internal, "the feed could not be read"))??;
    let at = last.map_or(end, FeedPosition);
    if at > end {
        let why = format!("no event has the id {} yet; the last one has {}", at.0, end.0);
        return Err(Problem::new(ErrorKind::Invalid, why));
    }
    let follower = Follower {
        filter: FeedFilter { project, conversation },
        at,
        feed: app.feed.clone(),
        stopping: app.stopping.clone(),
        _counted: app.metrics.follower(),
        caller,
        // Whoever is cut off before the first event knows from this where to go on.
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
    /// The next piece to send; `None` when the server stops, the caller's token was taken back,
    /// or the feed cannot be read.
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

    /// Reads what lies behind the follower's place. Answers whether there was anything.
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
