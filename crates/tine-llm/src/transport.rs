//! HTTP requests to an endpoint.
//!
//! Everything is bounded: connecting, the wait for a response, idle time, total time and size.
//! Redirects are not followed, so that a key is only sent to the configured address.

use std::io::{self, Read};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderName, HeaderValue, Request, Response};
use tine_net::retry::retry_after;
use tine_net::tls::is_untrusted;
use ureq::config::AutoHeaderValue;
use ureq::tls::TlsConfig;
use ureq::{Agent, Body, Timeout};

use crate::provider::{ConfigError, Provider};

/// Connection timeout.
const CONNECT: Duration = Duration::from_secs(10);

/// Read buffer size, in bytes.
const PIECE: usize = 16 << 10;

/// Pieces of a stream that are buffered for the listener.
const WAITING: usize = 16;

/// Status and headers of a response.
#[derive(Clone, Debug)]
pub(crate) struct ResponseHead {
    pub(crate) status: u16,
    pub(crate) content_type: String,
    pub(crate) retry_after: Option<Duration>,
}

impl ResponseHead {
    pub(crate) fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// Returns whether the content type is a stream of events.
    pub(crate) fn is_event_stream(&self) -> bool {
        self.content_type.contains("event-stream") || self.content_type.contains("ndjson")
    }
}

/// Why a response is missing or incomplete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TransportError {
    /// Idle timeout.
    Silent,
    /// Total timeout.
    Slow,
    /// The connection was closed early.
    Cut,
    TooLarge,
    /// The connection could not be established.
    Unreached(String),
    /// Retrying cannot help: the peer is not trusted, or the request cannot be sent.
    Impossible(String),
}

pub(crate) struct PostRequest {
    pub(crate) address: String,
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
    pub(crate) body: Vec<u8>,
    pub(crate) accept: &'static str,
}

/// An event of a streamed response, in this order: head, bytes, end.
pub(crate) enum StreamEvent {
    Head(ResponseHead),
    Bytes(Vec<u8>),
    End(Result<(), TransportError>),
}

/// The connections to one endpoint.
#[derive(Clone, Debug)]
pub(crate) struct Transport {
    agent: Agent,
    max_answer_bytes: u64,
}

impl Transport {
    pub(crate) fn new(provider: &Provider) -> Result<Transport, ConfigError> {
        let tls = match provider.base_url.starts_with("https://") {
            true => tls(provider)?,
            false => TlsConfig::default(),
        };
        let timeout = provider.timeout;
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .user_agent(concat!("tine/", env!("CARGO_PKG_VERSION")))
            // The stored bytes must be the bytes that were received.
            .accept_encoding(AutoHeaderValue::None)
            .timeout_connect(Some(CONNECT.min(timeout)))
            .timeout_per_write(Some(timeout))
            .timeout_per_read(Some(timeout))
            .timeout_recv_response(Some(timeout))
            .timeout_global(Some(provider.answer_timeout))
            .tls_config(tls);
        // Local endpoints are not reached through a proxy.
        let config = if is_local(&provider.base_url) { config.proxy(None) } else { config };
        Ok(Transport { agent: config.build().into(), max_answer_bytes: provider.max_answer_bytes })
    }

    /// Sends a request and reads the whole response. Bytes received before an error are kept in
    /// `bytes`.
    pub(crate) fn whole(
        &self,
        post: &PostRequest,
        bytes: &mut Vec<u8>,
    ) -> Result<(ResponseHead, Result<(), TransportError>), TransportError> {
        let (head, body) = self.send(post)?;
        let mut keep = |piece: &[u8]| {
            bytes.extend_from_slice(piece);
            true
        };
        Ok((head, self.read(body, &mut keep)))
    }

    /// Sends a request and returns the response as a stream of events.
    ///
    /// A thread reads, so that the receiver can stop while nothing arrives. It ends with the
    /// response, or when it notices that the receiver is gone: at the next byte or the idle timeout.
    pub(crate) fn stream(&self, post: PostRequest) -> io::Result<Receiver<StreamEvent>> {
        let (sender, receiver) = sync_channel(WAITING);
        let transport = self.clone();
        std::thread::Builder::new()
            .name("tine-model-stream".to_owned())
            .spawn(move || transport.pump(&post, &sender))?;
        Ok(receiver)
    }

    fn pump(&self, post: &PostRequest, sender: &SyncSender<StreamEvent>) {
        // A send fails when the receiver is gone, which is not an error.
        let _dropped = match self.send(post) {
            Err(broken) => sender.send(StreamEvent::End(Err(broken))),
            Ok((head, body)) => sender.send(StreamEvent::Head(head)).and_then(|()| {
                let mut pass =
                    |piece: &[u8]| sender.send(StreamEvent::Bytes(piece.to_vec())).is_ok();
                sender.send(StreamEvent::End(self.read(body, &mut pass)))
            }),
        };
    }

    fn send(&self, post: &PostRequest) -> Result<(ResponseHead, Body), TransportError> {
        let mut request = Request::post(&post.address)
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, post.accept);
        for (name, value) in &post.headers {
            request = request.header(name, value);
        }
        let request = request.body(&post.body[..]);
        let request = request.map_err(|error| TransportError::Impossible(error.to_string()))?;
        let response = self.agent.run(request).map_err(|error| broken(&error))?;
        Ok((head(&response), response.into_body()))
    }

    /// Reads until the end, until `take` returns false, or until the size limit.
    fn read(&self, body: Body, take: &mut dyn FnMut(&[u8]) -> bool) -> Result<(), TransportError> {
        let mut reader = body.into_with_config().limit(u64::MAX).reader();
        let mut piece = vec![0; PIECE];
        let mut left = self.max_answer_bytes;
        loop {
            match reader.read(&mut piece) {
                Ok(0) => return Ok(()),
                Ok(count) => {
                    let length = u64::try_from(count).unwrap_or(u64::MAX);
                    left = left.checked_sub(length).ok_or(TransportError::TooLarge)?;
                    if !take(&piece[..count]) {
                        return Ok(());
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(broken(&ureq::Error::from(error))),
            }
        }
    }
}

fn head(response: &Response<Body>) -> ResponseHead {
    let headers = response.headers();
    let content_type = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    ResponseHead {
        status: response.status().as_u16(),
        content_type: content_type.unwrap_or_default().to_ascii_lowercase(),
        retry_after: retry_after(headers),
    }
}

fn broken(error: &ureq::Error) -> TransportError {
    use io::ErrorKind::{
        BrokenPipe, ConnectionAborted, ConnectionReset, InvalidData, TimedOut, UnexpectedEof,
        WouldBlock,
    };
    match error {
        ureq::Error::Timeout(Timeout::Global | Timeout::PerCall) => TransportError::Slow,
        ureq::Error::Timeout(Timeout::Connect | Timeout::Resolve) => {
            TransportError::Unreached("no connection in time".to_owned())
        }
        ureq::Error::Timeout(_) => TransportError::Silent,
        _ if is_untrusted(error) => TransportError::Impossible(error.to_string()),
        ureq::Error::Io(io) => match io.kind() {
            TimedOut | WouldBlock => TransportError::Silent,
            UnexpectedEof | ConnectionReset | ConnectionAborted | BrokenPipe | InvalidData => {
                TransportError::Cut
            }
            _ => TransportError::Unreached(io.to_string()),
        },
        ureq::Error::Protocol(_) | ureq::Error::BodyStalled => TransportError::Cut,
        ureq::Error::Decompress(..) => TransportError::Cut,
        ureq::Error::HostNotFound
        | ureq::Error::ConnectionFailed
        | ureq::Error::ConnectProxyFailed(_) => TransportError::Unreached(error.to_string()),
        _ => TransportError::Impossible(error.to_string()),
    }
}

fn is_local(base_url: &str) -> bool {
    let uri: Option<http::Uri> = base_url.parse().ok();
    uri.as_ref()
        .and_then(http::Uri::host)
        .is_some_and(|host| host == "localhost" || host == "[::1]" || host.starts_with("127."))
}

/// Returns a TLS configuration that trusts the certificates of this machine.
fn tls(provider: &Provider) -> Result<TlsConfig, ConfigError> {
    tine_net::tls::http_client().map_err(|error| ConfigError {
        provider: provider.name.clone(),
        field: "base_url",
        why: format!("cannot be verified: {error}; set SSL_CERT_FILE to a file of certificates"),
    })
}
