//! The handler of one HTTP route: Streamable HTTP, for hosts of either era.
//!
//! Names of hosts, origins, tokens, rates and the sizes of bodies are checked by the server that
//! owns the route, before a request comes here; it puts a [`Reach`](crate::Reach) into the
//! request's extensions.

use std::convert::Infallible;
use std::fmt::Display;
use std::sync::Arc;

use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body::Body;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};

use crate::server::Tine;

/// The bytes of a body.
type Bytes = bytes::Bytes;

/// Sessions of older hosts at once. Newer ones have none.
const MOST_SESSIONS: usize = 1_000;

/// The first protocol without sessions.
const STATELESS: &str = "2026-07-28";

/// Answers requests of the protocol over HTTP.
#[derive(Clone)]
pub struct Http {
    service: StreamableHttpService<Tine, LocalSessionManager>,
    sessions: Arc<LocalSessionManager>,
    config: StreamableHttpServerConfig,
}

impl Http {
    /// A handler for a server, which takes bodies up to a size.
    pub fn new(tine: Tine, body_bytes: usize) -> Self {
        let config = StreamableHttpServerConfig::default()
            // Checked already, and with the names that the server was given.
            .disable_allowed_hosts()
            .disable_allowed_origins()
            .with_max_request_body_bytes(body_bytes);
        let sessions = Arc::new(LocalSessionManager::default());
        let made = move || Ok(tine.for_another());
        let service = StreamableHttpService::new(made, Arc::clone(&sessions), config.clone());
        Http { service, sessions, config }
    }

    /// Ends everything that goes on.
    pub fn stop(&self) {
        self.config.cancellation_token.cancel();
    }

    /// Answers one request.
    pub async fn answer<B>(&self, request: Request<B>) -> Response<BoxBody<Bytes, Infallible>>
    where
        B: Body + Send + 'static,
        B::Error: Display,
    {
        if begins_session(request.headers())
            && self.sessions.sessions.read().await.len() >= MOST_SESSIONS
        {
            let why = "there are too many sessions; end one, or use a protocol without them";
            let mut full = Response::new(Full::new(Bytes::from(why)).boxed());
            *full.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
            return full;
        }
        let ends_session = request.method() == Method::DELETE;
        let mut response = self.service.handle(request).await;
        // There is nothing left to be done, and hosts report a session that was only "accepted"
        // to be ended as one that was not.
        if ends_session && response.status() == StatusCode::ACCEPTED {
            *response.status_mut() = StatusCode::NO_CONTENT;
        }
        response
    }
}

fn begins_session(headers: &HeaderMap) -> bool {
    let version = headers.get("mcp-protocol-version").and_then(|version| version.to_str().ok());
    !headers.contains_key("mcp-session-id") && version.is_none_or(|version| version < STATELESS)
}
