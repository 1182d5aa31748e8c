//! Listening, and the way of a request: who asks, which route, how it ended.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::extract::{MatchedPath, Request, State};
use axum::http::{Extensions, HeaderMap, HeaderValue, Method, StatusCode, Version, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::{any, get, post};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use serde_json::{Value, json};
use tine_core::ErrorKind;
use tine_engine::{Call, Engine};
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, mpsc, watch};
use tokio_io_timeout::TimeoutStream;
use tower_http::CompressionLevel;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::compression::CompressionLayer;
use tower_http::compression::predicate::{NotForContentType, Predicate, SizeAbove};

use crate::access::{self, Access, Caller, Tokens};
use crate::app::{App, Options, Peer};
use crate::metrics::Metrics;
use crate::openapi::Operation;
use crate::problem::Problem;
use crate::rate::Rates;
use crate::replies::Replies;
use crate::room::{BodyRoom, TransferRoom, WaitRoom};
use crate::unread::Watch;
use crate::visited::Visited;
use crate::worker::{self, Bell};
use crate::{
    api, events, mcp, page, reference, reply, request_origin, route, sources, transfer,
};

/// Answers smaller than this are sent as they are.
const COMPRESSED_FROM: u16 = 1_024;

/// How hard answers are compressed: of an outline, two levels more make a tenth less in three
/// times the time.
const COMPRESSION: CompressionLevel = CompressionLevel::Precise(4);

/// A server that is bound to an address and does not answer yet.
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    app: Arc<App>,
    router: Router,
    feed: watch::Sender<u64>,
    stop: watch::Sender<bool>,
    rings: Receiver<()>,
}

/// Tells a server to stop.
#[derive(Clone, Debug)]
pub struct Stopper(watch::Sender<bool>);

impl Stopper {
    /// Takes no more requests, finishes those in work.
    pub fn stop(&self) {
        self.0.send_replace(true);
    }
}

impl Server {
    /// Binds to an address.
    pub async fn bind(engine: Engine, listen: SocketAddr, options: Options) -> io::Result<Self> {
        let mcp = mcp::handler(&engine, &options);
        Server::bind_with_mcp(engine, listen, options, mcp).await
    }

    /// Binds to an address and serves `/mcp` with a handler of the caller.
    pub async fn bind_with_mcp(
        engine: Engine,
        listen: SocketAddr,
        mut options: Options,
        mcp: tine_mcp::Http,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind(listen).await?;
        let address = listener.local_addr()?;
        if !address.ip().is_unspecified() {
            options.hosts.push(address.ip().to_string());
        }
        let (feed, feed_end) = watch::channel(0);
        let (stop, stopping) = watch::channel(false);
        let (bell, rings) = Bell::new();
        let app = Arc::new(App {
            mcp,
            engine,
            tokens: Tokens::new(options.tokens.clone()),
            metrics: Metrics::default(),
            rates: Rates::new(options.rate),
            room: Semaphore::new(options.concurrency),
            body_room: BodyRoom::new(options.body_room_bytes),
            transfer_room: TransferRoom::new(options.transfers),
            wait_room: WaitRoom::new(options.waits),
            replies: Replies::new(options.replies),
            visited: Visited::new(options.visited.clone()),
            bell,
            description: LazyLock::new(description),
            feed: feed_end,
            stopping,
            options,
        });
        // Of a source, the bytes themselves are promised: a part of them is no part of others.
        let whole = |_: StatusCode, _: Version, headers: &HeaderMap, _: &Extensions| {
            !headers.contains_key(header::ACCEPT_RANGES)
        };
        let worth = SizeAbove::new(COMPRESSED_FROM)
            .and(NotForContentType::const_new("text/event-stream"))
            .and(whole);
        let router = router()
            .layer(CatchPanicLayer::custom(|_| route::defect()))
            .layer(CompressionLayer::new().quality(COMPRESSION).compress_when(worth))
            .layer(from_fn_with_state(Arc::clone(&app), admit))
            .with_state(Arc::clone(&app));
        Ok(Server { listener, address, app, router, feed, stop, rings })
    }

    /// The address that it is bound to.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What tells it to stop.
    pub fn stopper(&self) -> Stopper {
        Stopper(self.stop.clone())
    }

    /// Answers until it is told to stop; then finishes what it has begun.
    pub async fn run(self) -> io::Result<()> {
        let Server { listener, app, router, feed, stop, rings, .. } = self;
        let watcher = tokio::spawn(events::watch_feed(app.engine.clone(), feed));
        let engine = app.engine.clone();
        // What an erasure that came, cut off, has not swept out of the files.
        tokio::task::spawn_blocking(move || {
            let swept = engine.projects().and_then(|projects| {
                projects.iter().try_for_each(|it| engine.sweep(&it.id).map(drop))
            });
            if let Err(error) = swept {
                tracing::warn!(%error, "what was erased could not be swept out of the files");
            }
        });
        let mut stopping = stop.subscribe();
        // Each connection holds a sender, and the worker; when the last is gone, all have ended.
        let (open, mut all_closed) = mpsc::channel::<()>(1);
        if app.options.interprets {
            let (app, open) = (Arc::clone(&app), open.clone());
            let worker = std::thread::Builder::new().name("tine-worker".to_owned());
            worker.spawn(move || {
                worker::work(&app, &rings);
                drop(open);
            })?;
        }
        let places = Arc::new(Semaphore::new(app.options.connections));
        let accept = async || {
            let place = Arc::clone(&places).acquire_owned().await;
            let place = place.expect("the places are never closed");
            listener.accept().await.map(|(stream, peer)| (stream, peer, place))
        };
        while !*stopping.borrow_and_update() {
            let (stream, peer, place) = tokio::select! {
                accepted = accept() => match accepted {
                    Ok(accepted) => accepted,
                    Err(error) => {
                        // Out of descriptors, or a client that has gone: the others go on.
                        tracing::warn!(%error, "a connection was not accepted");
                        tokio::time::sleep(Duration::from_millis(20)).await;
                        continue;
                    }
                },
                _ = stopping.changed() => continue,
            };
            // Small answers must not wait for an acknowledgement.
            stream.set_nodelay(true).ok();
            let (app, router, open) = (Arc::clone(&app), router.clone(), open.clone());
            tokio::spawn(async move {
                connection(&app, router, stream, peer).await;
                drop((open, place));
            });
        }
        drop((listener, open));
        app.bell.ring();
        app.mcp.stop();
        let closed = tokio::time::timeout(app.options.grace, all_closed.recv()).await;
        if closed.is_err() {
            tracing::warn!("requests were still in work when the time to stop was over");
        }
        watcher.abort();
        Ok(())
    }
}

async fn connection(app: &App, router: Router, stream: tokio::net::TcpStream, peer: SocketAddr) {
    let asked = Arc::new(AtomicBool::new(false));
    let asking = Arc::clone(&asked);
    let service = tower::service_fn(move |mut request: hyper::Request<hyper::body::Incoming>| {
        asking.store(true, Ordering::Relaxed);
        request.extensions_mut().insert(Peer(peer.ip()));
        let mut router = router.clone();
        async move { tower::Service::call(&mut router, request.map(Body::new)).await }
    });
    let mut stream = TimeoutStream::new(stream);
    stream.set_write_timeout(Some(app.options.write_timeout));
    let served = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(app.options.head_timeout)
        .serve_connection(TokioIo::new(Box::pin(stream)), TowerToHyperService::new(service));
    let mut served = std::pin::pin!(served);
    let mut stopping = app.stopping.clone();
    let ended = loop {
        tokio::select! {
            ended = served.as_mut() => break ended,
            changed = stopping.changed() => {
                // A connection that has not asked for anything yet would be waited for.
                if !asked.load(Ordering::Relaxed) {
                    return;
                }
                if changed.is_err() || *stopping.borrow() {
                    served.as_mut().graceful_shutdown();
                    break served.await;
                }
            }
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, %peer, "a connection broke off");
    }
}

/// All routes.
fn router() -> Router<Arc<App>> {
    api::routes()
        .router()
        .route("/api/v1/events", get(events::events))
        .route("/api/v1/export", get(transfer::export))
        .route("/api/v1/import", post(transfer::import))
        .route("/api/v1/sync/delta", get(transfer::give).post(transfer::take))
        .route(reply::PATH, post(reply::reply))
        .route(reply::AGAIN_PATH, post(reply::regenerate))
        .route(sources::PATH, post(sources::store))
        .route(sources::CONTENT_PATH, get(sources::content))
        .route("/api/v1/openapi.json", get(openapi))
        .route("/docs", get(docs))
        .route("/healthz", get(healthz))
        .route("/mcp", any(mcp::answer))
        .route("/metrics", get(metrics))
        .method_not_allowed_fallback(wrong_method)
        .fallback(page::answer)
}

/// Their description.
pub(crate) fn description() -> Value {
    let mut description = api::routes().describe();
    let live = Operation::new("Events", "followEvents", "Follow changes as they happen");
    let stream = json!({ "text/event-stream": { "schema": { "type": "string" } } });
    description.add_other::<events::Wanted>(&Method::GET, "/api/v1/events", &live, None, stream);
    let export = Operation::new("Store", "exportBundle", "Whole conversations as a bundle");
    let lines = json!({ transfer::MEDIA_TYPE: { "schema": { "type": "string" } } });
    description.add_other::<transfer::Exported>(
        &Method::GET,
        "/api/v1/export",
        &export,
        None,
        lines,
    );
    let import = Operation::new("Store", "importBundle", "Read a bundle, checking every hash");
    description.add_import(&import);
    description.add_deltas();
    description.add_sources();
    reply::describe(&mut description);
    description.finish()
}

async fn openapi(State(app): State<Arc<App>>) -> Response {
    axum::Json(&*app.description).into_response()
}

async fn docs(State(app): State<Arc<App>>) -> Response {
    let policy = HeaderValue::from_static("default-src 'none'; style-src 'unsafe-inline'");
    let mut response = Html(reference::page(&app.description)).into_response();
    response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, policy);
    response
}

async fn healthz(State(app): State<Arc<App>>) -> Result<Response, Problem> {
    let engine = app.engine.clone();
    let asked = tokio::task::spawn_blocking(move || engine.feed_end()).await;
    asked.map_err(|_| Problem::new(ErrorKind::Internal, "the store could not be asked"))??;
    let body = json!({ "status": "ok", "version": env!("CARGO_PKG_VERSION") });
    Ok(axum::Json(body).into_response())
}

async fn metrics(
    State(app): State<Arc<App>>,
    caller: Option<axum::Extension<Caller>>,
) -> Result<Response, Problem> {
    let caller = caller.map(|axum::Extension(caller)| caller).unwrap_or_default();
    caller.check_store(Access::Read)?;
    let engine = app.engine.clone();
    let asked = tokio::task::spawn_blocking(move || -> Result<_, tine_engine::Error> {
        let (mut queued, mut running) = (0, 0);
        for project in engine.projects()? {
            let call = Call::by("metrics").in_project(project.id);
            let queue = engine.interpretation_queue(&call)?;
            queued += queue.queued as u64;
            running += queue.running as u64;
        }
        Ok((engine.stats(&Call::by("metrics"), None)?.store, queued, running))
    });
    let asked = asked.await.map_err(|_| Problem::new(ErrorKind::Internal, "a defect"))?;
    let (totals, queued, running) = asked?;
    let text = app.metrics.text(&[
        ("tine_store_conversations", "Conversations in the store.", totals.conversations),
        ("tine_store_turns", "Turns in the store.", totals.turns),
        ("tine_store_operations", "Operations in the store.", totals.operations),
        ("tine_store_disk_bytes", "Bytes on disk.", totals.disk_bytes),
        ("tine_interpretations_queued", "Runs that wait.", queued),
        ("tine_interpretations_running", "Runs at work.", running),
    ]);
    let kind = "text/plain; version=0.0.4; charset=utf-8";
    Ok(([(header::CONTENT_TYPE, kind)], text).into_response())
}

async fn wrong_method() -> Response {
    Problem::new(
        ErrorKind::Invalid,
        "this path does not know this method; /docs lists what it knows",
    )
    .with_status(StatusCode::METHOD_NOT_ALLOWED)
    .into_response()
}

/// The way of every request: its name, its sender, its room, its end in the log.
async fn admit(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let started = Instant::now();
    let (mut request, body) = Watch::over(request);
    let id = request_id(&request);
    let method = request.method().clone();
    let route = request.extensions().get::<MatchedPath>().map(|it| it.as_str().to_owned());
    let route = route.unwrap_or_else(|| "none".to_owned());
    let peer = request.extensions().get::<Peer>().copied();
    let in_work = app.metrics.request();
    let mut response = match enter(&app, peer, &request) {
        Ok((caller, _room)) => {
            request.extensions_mut().insert(caller);
            next.run(request).await
        }
        Err(problem) => problem.into_response(),
    };
    drop(in_work);
    let (status, took) = (response.status().as_u16(), started.elapsed());
    app.metrics.done(method.as_str(), &route, status, took);
    let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
    if status >= 500 {
        tracing::error!(%method, route, status, micros, id, "refused");
    } else {
        tracing::debug!(%method, route, status, micros, id, "answered");
    }
    if let Ok(id) = HeaderValue::from_str(&id) {
        response.headers_mut().insert("x-request-id", id);
    }
    if !body.is_read() {
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    let as_it_says = HeaderValue::from_static("nosniff");
    response.headers_mut().insert(header::X_CONTENT_TYPE_OPTIONS, as_it_says);
    response
}

fn enter<'a>(
    app: &'a App,
    peer: Option<Peer>,
    request: &Request,
) -> Result<(Caller, tokio::sync::SemaphorePermit<'a>), Problem> {
    let client = peer.map(|Peer(address)| {
        request_origin::client_address(&app.options, address, request.headers())
    });
    if let Some(client) = client
        && !app.rates.admits(client, Instant::now())
    {
        let why = "too many requests in one second; slow down";
        return Err(Problem::new(ErrorKind::Busy, why)
            .with_status(StatusCode::TOO_MANY_REQUESTS)
            .after(1));
    }
    request_origin::check(&app.options, request)?;
    let open = page::covers(request) || is_probe(request);
    let caller = access::admit(&app.tokens, app.options.token_rule, request.headers(), open)?;
    let room = app.room.try_acquire();
    let room =
        room.map_err(|_| Problem::new(ErrorKind::Busy, "too many requests at once; try again"))?;
    Ok((caller, room))
}

/// Whether a request asks for nothing but whether the server is well: whoever watches over servers
/// has no token.
fn is_probe(request: &Request) -> bool {
    let reads = matches!(*request.method(), Method::GET | Method::HEAD);
    reads && request.uri().path() == "/healthz"
}

/// The name of a request: the sender's, or one of our own.
fn request_id(request: &Request) -> String {
    let given = request.headers().get("x-request-id").and_then(|id| id.to_str().ok());
    let fits =
        |id: &&str| (1..=128).contains(&id.len()) && id.bytes().all(|b| b.is_ascii_graphic());
    match given.filter(fits) {
        Some(id) => id.to_owned(),
        None => uuid::Uuid::now_v7().simple().to_string(),
    }
}
