//! The handler of one HTTP route: Streamable HTTP, for hosts of both protocol eras.
//!
//! The server that owns the route checks host names, origins, tokens, rates and body sizes before
//! it passes a request on, and puts a [`Reach`](crate::Reach) into the request's extensions. Bodies
//! are read strictly here (`incoming`), and the arguments of tool calls travel in the extensions
//! too.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;

use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use rmcp::ServerHandler;
use rmcp::model::JsonObject;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use serde_json::Value;
use tine_core::Limits;

use crate::incoming::{Incoming, Unreadable, message_depth};
use crate::server::Tine;

type Bytes = bytes::Bytes;

type HttpResponse = Response<BoxBody<Bytes, Infallible>>;

/// The media type of bodies.
const JSON: &str = "application/json";

/// Sessions of older hosts at once. Newer ones have none.
const MOST_SESSIONS: usize = 1_000;

/// The header that names a session.
const SESSION: &str = "mcp-session-id";

/// The first protocol version without sessions.
const STATELESS: &str = "2026-07-28";

/// The schema keyword of an argument that is sent as a header as well.
const HEADER_ARGUMENT: &str = "x-mcp-header";

/// The SDK's service, whatever handler it serves.
type Service = dyn Fn(Request<Full<Bytes>>) -> Pin<Box<dyn Future<Output = HttpResponse> + Send>>
    + Send
    + Sync;

/// Answers requests of the protocol over HTTP.
#[derive(Clone)]
pub struct Http {
    service: Arc<Service>,
    /// Returns whether the SDK compares arguments of a tool with headers.
    has_header_arguments: Arc<dyn Fn(&str) -> bool + Send + Sync>,
    sessions: Arc<LocalSessionManager>,
    config: StreamableHttpServerConfig,
    max_depth: usize,
}

impl Http {
    /// Creates a handler for a server that takes bodies up to a size.
    pub fn new(tine: Tine, body_bytes: usize) -> Self {
        let limits = Limits { body_bytes, ..*tine.engine.limits() };
        Http::with_handler(move || tine.for_another(), &limits)
    }

    /// Creates a handler for any server of the protocol; `connect` makes one for each connection.
    pub fn with_handler<H: ServerHandler>(
        connect: impl Fn() -> H + Clone + Send + Sync + 'static,
        limits: &Limits,
    ) -> Self {
        let config = StreamableHttpServerConfig::default()
            // Checked already, and with the names that the server was given.
            .disable_allowed_hosts()
            .disable_allowed_origins()
            .with_max_request_body_bytes(limits.body_bytes);
        let sessions = Arc::new(LocalSessionManager::default());
        let made = connect.clone();
        let sdk =
            StreamableHttpService::new(move || Ok(made()), Arc::clone(&sessions), config.clone());
        Http {
            service: Arc::new(move |request| {
                let sdk = sdk.clone();
                Box::pin(async move { sdk.handle(request).await })
            }),
            has_header_arguments: Arc::new(move |tool| {
                connect().get_tool(tool).is_some_and(|tool| has_header_argument(&tool.input_schema))
            }),
            sessions,
            config,
            max_depth: message_depth(limits),
        }
    }

    /// Ends all connections.
    pub fn stop(&self) {
        self.config.cancellation_token.cancel();
    }

    /// Answers one request.
    pub async fn answer(&self, request: Request<Bytes>) -> HttpResponse {
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
        let sent = request.body().clone();
        let is_message = self.is_message(&request);
        let request = match self.read(request, is_message) {
            Ok(request) => request,
            Err(unreadable) => return bad_request(unreadable.answer()),
        };
        let mut response = (self.service)(request.map(Full::new)).await;
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
        // This is how the SDK says that a body of the right media type is not a JSON-RPC message.
        if is_message && response.status() == StatusCode::UNSUPPORTED_MEDIA_TYPE {
            return bad_request(Unreadable::not_a_request(&sent).answer());
        }
        response
    }

    /// Returns whether the body is a message that the SDK would read. It refuses one that is too
    /// large by itself.
    fn is_message(&self, request: &Request<Bytes>) -> bool {
        request.method() == Method::POST
            && says_json(request.headers())
            && request.body().len() <= self.config.max_request_body_bytes
    }

    /// Reads the body strictly and moves the arguments of a tool call into the extensions. The SDK
    /// gets the rest of the message, unless it compares arguments with headers.
    fn read(
        &self,
        mut request: Request<Bytes>,
        is_message: bool,
    ) -> Result<Request<Bytes>, Unreadable> {
        if !is_message {
            return Ok(request);
        }
        let incoming = Incoming::parse(request.body(), self.max_depth)?;
        if let Some(tool) = incoming.tool()
            && !(self.has_header_arguments)(tool)
        {
            *request.body_mut() = Bytes::from(incoming.envelope());
        }
        if let Some(arguments) = incoming.arguments {
            request.extensions_mut().insert(arguments);
        }
        Ok(request)
    }
}

/// Returns whether a property of a schema, at any level, is sent as a header as well.
fn has_header_argument(schema: &JsonObject) -> bool {
    let properties = schema.get("properties").and_then(Value::as_object);
    properties
        .into_iter()
        .flat_map(JsonObject::values)
        .filter_map(Value::as_object)
        .any(|property| property.contains_key(HEADER_ARGUMENT) || has_header_argument(property))
}

fn says_json(headers: &HeaderMap) -> bool {
    let sent = headers.get(CONTENT_TYPE).and_then(|sent| sent.to_str().ok());
    sent.is_some_and(|sent| sent.starts_with(JSON))
}

fn bad_request(answer: String) -> HttpResponse {
    let mut response = Response::new(Full::new(Bytes::from(answer)).boxed());
    *response.status_mut() = StatusCode::BAD_REQUEST;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
    response
}

fn begins_session(headers: &HeaderMap) -> bool {
    let version = headers.get("mcp-protocol-version").and_then(|version| version.to_str().ok());
    !headers.contains_key(SESSION) && version.is_none_or(|version| version < STATELESS)
}
