//! Listens, admits requests, routes them and logs their results.

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
use crate::body_watch::BodyWatch;
use crate::capacity::{BodyMemory, RequestSlots};
use crate::metrics::Metrics;
use crate::openapi::Operation;
use crate::problem::Problem;
use crate::rate::Rates;
use crate::running_replies::RunningReplies;
use crate::visited::Visited;
use crate::worker::{self, Bell};
use crate::{api, events, mcp, page, reference, reply, request_origin, route, sources, transfer};

/// The minimum size of a compressed answer, in bytes.
const COMPRESSED_FROM: u16 = 1_024;

/// The compression level. For an outline, two levels more save a tenth of the size and take three
/// times as long.
const COMPRESSION: CompressionLevel = CompressionLevel::Precise(4);

/// A server that is bound to an address and not running yet.
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    app: Arc<App>,
    router: Router,
    feed: watch::Sender<u64>,
    stop: watch::Sender<bool>,
    rings: Receiver<()>,
}

/// Stops a server.
#[derive(Clone, Debug)]
pub struct Stopper(watch::Sender<bool>);

impl Stopper {
    /// Stops accepting requests and finishes running ones.
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

    /// Binds to an address and serves `/mcp` with the given handler.
    pub async fn bind_with_mcp(
        engine: Engine,
        listen: SocketAddr,
        mut options: Options,
        mcp: tine_mcp::McpHttp,
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
            concurrency: Semaphore::new(options.concurrency),
            body_memory: BodyMemory::new(options.body_memory_bytes),
            transfers: RequestSlots::for_transfers(options.transfers),
            waits: RequestSlots::for_waits(options.waits),
            replies: RunningReplies::new(options.replies),
            visited: Visited::new(options.visited.clone()),
            bell,
            description: LazyLock::new(description),
            feed: feed_end,
            stopping,
            options,
        });
        // Sources are sent as they are: ranges of compressed bytes would not fit together.
        let whole = |_: StatusCode, _: Version, headers: &HeaderMap, _: &Extensions| {
            !headers.contains_key(header::ACCEPT_RANGES)
        };
        let worth = SizeAbove::new(COMPRESSED_FROM)
            .and(NotForContentType::const_new("text/event-stream"))
            .and(whole);
        let router = router()
            .layer(CatchPanicLayer::custom(|_| route::internal_error().into_response()))
            .layer(CompressionLayer::new().quality(COMPRESSION).compress_when(worth))
            .layer(from_fn_with_state(Arc::clone(&app), admit))
            .with_state(Arc::clone(&app));
        Ok(Server { listener, address, app, router, feed, stop, rings })
    }

    /// Returns the address that it is bound to.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns what stops it.
    pub fn stopper(&self) -> Stopper {
        Stopper(self.stop.clone())
    }

    /// Answers requests until it is stopped, then finishes running ones.
    pub async fn run(self) -> io::Result<()> {
        let Server { listener, app, router, feed, stop, rings, .. } = self;
        let watcher = tokio::spawn(events::watch_feed(app.engine.clone(), feed));
        let engine = app.engine.clone();
        // Completes purges that were interrupted before they rewrote the files.
        tokio::task::spawn_blocking(move || {
            let swept = engine.projects().and_then(|projects| {
                projects.iter().try_for_each(|it| engine.sweep(&it.id).map(drop))
            });
            if let Err(error) = swept {
                tracing::warn!(%error, "purged content could not be removed from the files");
            }
        });
        let mut stopping = stop.subscribe();
        // Each connection and the worker hold a sender; when the last is dropped, all have ended.
        let (open, mut all_closed) = mpsc::channel::<()>(1);
        if app.options.interprets {
            let (app, open) = (Arc::clone(&app), open.clone());
            let worker = std::thread::Builder::new().name("tine-worker".to_owned());
            worker.spawn(move || {
                worker::work(&app, &rings);
                drop(open);
            })?;
        }
        let connections = Arc::new(Semaphore::new(app.options.connections));
        let accept = async || {
            let permit = Arc::clone(&connections).acquire_owned().await;
            let permit = permit.expect("the semaphore is never closed");
            listener.accept().await.map(|(stream, peer)| (stream, peer, permit))
        };
        while !*stopping.borrow_and_update() {
            let (stream, peer, permit) = tokio::select! {
                accepted = accept() => match accepted {
                    Ok(accepted) => accepted,
                    Err(error) => {
                        // Out of file descriptors, or the client has left: continue with others.
                        tracing::warn!(%error, "could not accept a connection");
                        tokio::time::sleep(Duration::from_millis(20)).await;
                        continue;
                    }
                },
                _ = stopping.changed() => continue,
            };
            // Small answers must not wait for acknowledgements.
            stream.set_nodelay(true).ok();
            let (app, router, open) = (Arc::clone(&app), router.clone(), open.clone());
            tokio::spawn(async move {
                connection(&app, router, stream, peer).await;
                drop((open, permit));
            });
        }
        drop((listener, open));
        app.bell.ring();
        app.mcp.stop();
        let closed = tokio::time::timeout(app.options.grace, all_closed.recv()).await;
        if closed.is_err() {
            tracing::warn!("shutdown timed out with requests still running");
        }
        watcher.abort();
        Ok(())
    }
}

async fn connection(app: &App, router: Router, stream: tokio::net::TcpStream, peer: SocketAddr) {
    let used = Arc::new(AtomicBool::new(false));
    let in_use = Arc::clone(&used);
    let service = tower::service_fn(move |mut request: hyper::Request<hyper::body::Incoming>| {
        in_use.store(true, Ordering::Relaxed);
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
                // A graceful shutdown would wait for the first request of an unused connection.
                if !used.load(Ordering::Relaxed) {
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
        tracing::debug!(%error, %peer, "a connection failed");
    }
}

/// Returns all routes.
fn router() -> Router<Arc<App>> {
    api::routes()
        .router()
        .route("/api/v1/events", get(events::events))
        .route("/api/v1/export", get(transfer::export))
        .route("/api/v1/import", post(transfer::import))
        .route("/api/v1/sync/delta", get(transfer::send_delta).post(transfer::receive_delta))
        .route(reply::PATH, post(reply::reply))
        .route(reply::REGENERATE_PATH, post(reply::regenerate))
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

/// Returns the OpenAPI document.
pub(crate) fn description() -> Value {
    let mut description = api::routes().describe();
    let live = Operation::new(
        "Events",
        "followEvents",
        "Follow the change feed as a stream of server-sent events",
    );
    let stream = json!({ "text/event-stream": { "schema": { "type": "string" } } });
    description.add_other::<events::EventsQuery>(
        &Method::GET,
        "/api/v1/events",
        &live,
        None,
        stream,
    );
    let export = Operation::new("Store", "exportBundle", "Export conversations as a bundle");
    let lines = json!({ transfer::MEDIA_TYPE: { "schema": { "type": "string" } } });
    description.add_other::<transfer::ExportQuery>(
        &Method::GET,
        "/api/v1/export",
        &export,
        None,
        lines,
    );
    let import = Operation::new("Store", "importBundle", "Import a bundle, verifying every hash");
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
    let read = tokio::task::spawn_blocking(move || engine.feed_end()).await;
    read.map_err(|_| route::internal_error())??;
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
    let read = tokio::task::spawn_blocking(move || -> Result<_, tine_engine::Error> {
        let (mut queued, mut running) = (0, 0);
        for project in engine.projects()? {
            let call = Call::by("metrics").in_project(project.id);
            let queue = engine.interpretation_queue(&call)?;
            queued += queue.queued as u64;
            running += queue.running as u64;
        }
        Ok((engine.stats(&Call::by("metrics"), None)?.store, queued, running))
    });
    let (totals, queued, running) = read.await.map_err(|_| route::internal_error())??;
    let text = app.metrics.text(&[
        ("tine_store_conversations", "Conversations in the store.", totals.conversations),
        ("tine_store_turns", "Turns in the store.", totals.turns),
        ("tine_store_operations", "Operations in the store.", totals.operations),
        ("tine_store_disk_bytes", "Bytes on disk.", totals.disk_bytes),
        ("tine_interpretations_queued", "Queued runs.", queued),
        ("tine_interpretations_running", "Running runs.", running),
    ]);
    let kind = "text/plain; version=0.0.4; charset=utf-8";
    Ok(([(header::CONTENT_TYPE, kind)], text).into_response())
}

async fn wrong_method() -> Response {
    Problem::new(ErrorKind::Invalid, "the path does not support this method; see /docs")
        .with_status(StatusCode::METHOD_NOT_ALLOWED)
        .into_response()
}

/// Handles every request: assigns its id, checks its sender and the limits, and logs its result.
async fn admit(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let started = Instant::now();
    let (mut request, body) = BodyWatch::over(request);
    let id = request_id(&request);
    let method = request.method().clone();
    let route = request.extensions().get::<MatchedPath>().map(|it| it.as_str().to_owned());
    let route = route.unwrap_or_else(|| "none".to_owned());
    let peer = request.extensions().get::<Peer>().copied();
    let running = app.metrics.request();
    let mut response = match enter(&app, peer, &request) {
        Ok((caller, _permit)) => {
            request.extensions_mut().insert(caller);
            next.run(request).await
        }
        Err(problem) => problem.into_response(),
    };
    drop(running);
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
    let nosniff = HeaderValue::from_static("nosniff");
    response.headers_mut().insert(header::X_CONTENT_TYPE_OPTIONS, nosniff);
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
    let permit = app.concurrency.try_acquire();
    let why = "too many requests at once; try again";
    Ok((caller, permit.map_err(|_| Problem::new(ErrorKind::Busy, why))?))
}

/// Returns whether a request is a health check, which needs no token.
fn is_probe(request: &Request) -> bool {
    let reads = matches!(*request.method(), Method::GET | Method::HEAD);
    reads && request.uri().path() == "/healthz"
}

/// Returns the id of a request: the sender's, or a new one.
fn request_id(request: &Request) -> String {
    let given = request.headers().get("x-request-id").and_then(|id| id.to_str().ok());
    let fits =
        |id: &&str| (1..=128).contains(&id.len()) && id.bytes().all(|b| b.is_ascii_graphic());
    match given.filter(fits) {
        Some(id) => id.to_owned(),
        None => uuid::Uuid::now_v7().simple().to_string(),
    }
}
