//! The handler of one HTTP route: Streamable HTTP, for hosts of either era.
//!
//! Names of hosts, origins, tokens, rates and the sizes of bodies are checked by the server that
//! owns the route, before a request comes here; it puts a [`Reach`](crate::Reach) into the
//! request's extensions.

use std::convert::Infallible;
use std::sync::Arc;

use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};

use crate::server::Tine;
use crate::unreadable;

/// The bytes of a body.
type Bytes = bytes::Bytes;

/// What bodies are.
const JSON: &str = "application/json";

/// Sessions of older hosts at once. Newer ones have none.
const MOST_SESSIONS: usize = 1_000;

/// The header that names a session.
const SESSION: &str = "mcp-session-id";

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
    pub async fn answer(&self, request: Request<Bytes>) -> Response<BoxBody<Bytes, Infallible>> {
        if begins_session(request.headers())
            && self.sessions.sessions.read().await.len() >= MOST_SESSIONS
        {
            let why = "there are too many sessions; end one, or use a protocol without them";
            let mut full = Response::new(Full::new(Bytes::from(why)).boxed());
            *full.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
            return full;
        }
        let ends_session = request.method() == Method::DELETE;
        let session = request.headers().get(SESSION).and_then(|id| id.to_str().ok());
        let session = session.map(str::to_owned);
        let sent = says_json(request.headers()).then(|| request.body().clone());
        let mut response = self.service.handle(request.map(Full::new)).await;
        // There is nothing left to be done, and hosts report a session that was only "accepted"
        // to be ended as one that was not.
        if ends_session && response.status() == StatusCode::ACCEPTED {
            *response.status_mut() = StatusCode::NO_CONTENT;
        }
        // The SDK reports a session that ends while it looks for it as a failure of the server.
        if response.status() == StatusCode::INTERNAL_SERVER_ERROR
            && let Some(session) = session
            && !self.sessions.sessions.read().await.contains_key(session.as_str())
        {
            let mut gone = Response::new(Full::new(Bytes::from("the session has ended")).boxed());
            *gone.status_mut() = StatusCode::NOT_FOUND;
            return gone;
        }
        // That is how the SDK says that it cannot read a body, also one of the right type.
        if let (StatusCode::UNSUPPORTED_MEDIA_TYPE, Some(body)) = (response.status(), sent)
            && let Err(unreadable) = unreadable::read(&body)
        {
            return bad_request(&unreadable.answer().to_string());
        }
        response
    }
}

fn says_json(headers: &HeaderMap) -> bool {
    let sent = headers.get(CONTENT_TYPE).and_then(|sent| sent.to_str().ok());
    sent.is_some_and(|sent| sent.starts_with(JSON))
}

fn bad_request(answer: &str) -> Response<BoxBody<Bytes, Infallible>> {
    let mut response = Response::new(Full::new(Bytes::from(answer.to_owned())).boxed());
    *response.status_mut() = StatusCode::BAD_REQUEST;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
    response
}

fn begins_session(headers: &HeaderMap) -> bool {
    let version = headers.get("mcp-protocol-version").and_then(|version| version.to_str().ok());
    !headers.contains_key(SESSION) && version.is_none_or(|version| version < STATELESS)
}
