//! The handler of an HTTP route: Streamable HTTP, for hosts of both protocol eras.
//!
//! The server that owns the route checks host names, origins, tokens, rates and body sizes before
//! it passes a request on, and puts an [`AccessScope`](crate::AccessScope) into the request's
//! extensions. Bodies are parsed strictly here (`incoming_message`); the arguments of tool calls
//! travel in the extensions too. Long integers are written into the bodies of responses
//! (`exact_integers`).

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

use crate::exact_integers;
use crate::incoming_message::{IncomingMessage, UnreadableMessage, message_depth};
use crate::server::McpServer;

type Bytes = bytes::Bytes;

type HttpResponse = Response<BoxBody<Bytes, Infallible>>;

/// The media type of bodies.
const JSON: &str = "application/json";

/// The media type of streams of events.
const EVENT_STREAM: &str = "text/event-stream";

/// The most sessions of older hosts at the same time. Newer hosts have none.
const MOST_SESSIONS: usize = 1_000;

/// The header that names a session.
const SESSION: &str = "mcp-session-id";

/// The first protocol version without sessions.
const STATELESS: &str = "2026-07-28";

/// The schema keyword of an argument that is also sent as a header.
const HEADER_ARGUMENT: &str = "x-mcp-header";

/// The SDK's service, for any handler.
type Service = dyn Fn(Request<Full<Bytes>>) -> Pin<Box<dyn Future<Output = HttpResponse> + Send>>
    + Send
    + Sync;

/// Handles requests of the protocol over HTTP.
#[derive(Clone)]
pub struct McpHttp {
    service: Arc<Service>,
    /// Returns whether the SDK compares arguments of a tool with headers.
    has_header_arguments: Arc<dyn Fn(&str) -> bool + Send + Sync>,
    sessions: Arc<LocalSessionManager>,
    config: StreamableHttpServerConfig,
    max_depth: usize,
}

impl McpHttp {
    /// Creates a handler for a server that accepts bodies up to a size.
    pub fn new(tine: McpServer, body_bytes: usize) -> Self {
        let limits = Limits { body_bytes, ..*tine.engine.limits() };
        McpHttp::with_handler(move || tine.for_another(), &limits)
    }

    /// Creates a handler for any server of the protocol; `connect` creates one for each connection.
    pub fn with_handler<H: ServerHandler>(
        connect: impl Fn() -> H + Clone + Send + Sync + 'static,
        limits: &Limits,
    ) -> Self {
        let config = StreamableHttpServerConfig::default()
            // The server that owns the route has checked them against its own names.
            .disable_allowed_hosts()
            .disable_allowed_origins()
            .with_max_request_body_bytes(limits.body_bytes);
        let sessions = Arc::new(LocalSessionManager::default());
        let made = connect.clone();
        let sdk =
            StreamableHttpService::new(move || Ok(made()), Arc::clone(&sessions), config.clone());
        McpHttp {
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

    /// Handles one request.
    pub async fn answer(&self, request: Request<Bytes>) -> HttpResponse {
        if begins_session(request.headers())
            && self.sessions.sessions.read().await.len() >= MOST_SESSIONS
        {
            let why = "too many sessions; end one, or use a protocol version without sessions";
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
        let mut response = with_exact_integers((self.service)(request.map(Full::new)).await).await;
        // Hosts report a session as not ended if the response is only "accepted".
        if ends_session && response.status() == StatusCode::ACCEPTED {
            *response.status_mut() = StatusCode::NO_CONTENT;
        }
        // The SDK reports a session that ends while it is looked up as an internal error.
        if response.status() == StatusCode::INTERNAL_SERVER_ERROR
            && let Some(session) = session
            && !self.sessions.sessions.read().await.contains_key(session.as_str())
        {
            let mut gone = Response::new(Full::new(Bytes::from("the session has ended")).boxed());
            *gone.status_mut() = StatusCode::NOT_FOUND;
            return gone;
        }
        // The SDK's response to a body of the right media type that is not a JSON-RPC message.
        if is_message && response.status() == StatusCode::UNSUPPORTED_MEDIA_TYPE {
            return bad_request(UnreadableMessage::not_a_request(&sent).answer());
        }
        response
    }

    /// Returns whether the body is a message that the SDK would parse. The SDK itself refuses one
    /// that is too large.
    fn is_message(&self, request: &Request<Bytes>) -> bool {
        request.method() == Method::POST
            && is_json(request.headers())
            && request.body().len() <= self.config.max_request_body_bytes
    }

    /// Parses the body strictly and moves the arguments of a tool call into the extensions. The SDK
    /// gets the rest of the message, unless it compares arguments with headers.
    fn read(
        &self,
        mut request: Request<Bytes>,
        is_message: bool,
    ) -> Result<Request<Bytes>, UnreadableMessage> {
        if !is_message {
            return Ok(request);
        }
        let incoming = IncomingMessage::parse(request.body(), self.max_depth)?;
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

/// Replaces the marked integers in the body of a response by numbers.
async fn with_exact_integers(response: HttpResponse) -> HttpResponse {
    let (head, body) = response.into_parts();
    let is_stream = head.headers.get(CONTENT_TYPE).is_some_and(|media| media == EVENT_STREAM);
    let body = if is_stream {
        // Each event is one frame.
        body.map_frame(|frame| frame.map_data(exact_integers::write_numbers_in)).boxed()
    } else {
        let Ok(body) = body.collect().await;
        Full::new(exact_integers::write_numbers_in(body.to_bytes())).boxed()
    };
    Response::from_parts(head, body)
}

/// Returns whether a property of a schema, at any level, is also sent as a header.
fn has_header_argument(schema: &JsonObject) -> bool {
    let properties = schema.get("properties").and_then(Value::as_object);
    properties
        .into_iter()
        .flat_map(JsonObject::values)
        .filter_map(Value::as_object)
        .any(|property| property.contains_key(HEADER_ARGUMENT) || has_header_argument(property))
}

fn is_json(headers: &HeaderMap) -> bool {
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
