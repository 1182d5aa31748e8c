//! One request over HTTP, and the bytes of its answer.
//!
//! Everything is bounded: connecting, the wait for an answer, silence in it, its whole time and
//! its size. Redirects are not followed, so that a key goes nowhere but to the address that was
//! configured.

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

/// How long it may take to reach an endpoint.
const CONNECT: Duration = Duration::from_secs(10);

/// How much is read at once.
const PIECE: usize = 16 << 10;

/// How many pieces of a stream wait for whoever listens.
const WAITING: usize = 16;

/// What an endpoint says before the body.
#[derive(Clone, Debug)]
pub(crate) struct Head {
    pub(crate) status: u16,
    pub(crate) content_type: String,
    pub(crate) retry_after: Option<Duration>,
}

impl Head {
    /// Whether an answer follows, and not a refusal.
    pub(crate) fn is_fine(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// Whether it says that a stream of events follows.
    pub(crate) fn is_of_events(&self) -> bool {
        self.content_type.contains("event-stream") || self.content_type.contains("ndjson")
    }
}

/// Why there is no answer, or not all of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Broken {
    /// Nothing came for too long.
    Silent,
    /// It took too long as a whole.
    Slow,
    /// The connection ended.
    Cut,
    /// It is too large.
    TooLarge,
    /// There was no connection.
    Unreached(String),
    /// There will be none: the other side cannot be trusted, or the request cannot be sent.
    Impossible(String),
}

/// What is sent.
pub(crate) struct Post {
    pub(crate) address: String,
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
    pub(crate) body: Vec<u8>,
    /// The type of answer that is wanted.
    pub(crate) accept: &'static str,
}

/// What comes of a stream, in this order: a head, bytes, an end.
pub(crate) enum Piece {
    Head(Head),
    Bytes(Vec<u8>),
    End(Result<(), Broken>),
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
            // The bytes that are stored are the bytes that came.
            .accept_encoding(AutoHeaderValue::None)
            .timeout_connect(Some(CONNECT.min(timeout)))
            .timeout_per_write(Some(timeout))
            .timeout_per_read(Some(timeout))
            .timeout_recv_response(Some(timeout))
            .timeout_global(Some(provider.answer_timeout))
            .tls_config(tls);
        // What is on this machine is not reached through another.
        let config = if is_local(&provider.base_url) { config.proxy(None) } else { config };
        Ok(Transport { agent: config.build().into(), max_answer_bytes: provider.max_answer_bytes })
    }

    /// Sends, and reads all of the answer. What came before a break is kept in `bytes`.
    pub(crate) fn whole(
        &self,
        post: &Post,
        bytes: &mut Vec<u8>,
    ) -> Result<(Head, Result<(), Broken>), Broken> {
        let (head, body) = self.send(post)?;
        let mut keep = |piece: &[u8]| {
            bytes.extend_from_slice(piece);
            true
        };
        Ok((head, self.read(body, &mut keep)))
    }

    /// Sends, and gives the answer as it comes.
    ///
    /// A thread reads, so that whoever listens can stop listening while nothing comes. It ends
    /// with the answer, or when it finds that nobody listens: at the next byte, or after the time
    /// that an answer may be silent.
    pub(crate) fn stream(&self, post: Post) -> io::Result<Receiver<Piece>> {
        let (sender, receiver) = sync_channel(WAITING);
        let transport = self.clone();
        std::thread::Builder::new()
            .name("tine-model-stream".to_owned())
            .spawn(move || transport.pump(&post, &sender))?;
        Ok(receiver)
    }

    fn pump(&self, post: &Post, sender: &SyncSender<Piece>) {
        // Nobody listening is no fault: then there is nobody to tell either.
        let _gone = match self.send(post) {
            Err(broken) => sender.send(Piece::End(Err(broken))),
            Ok((head, body)) => sender.send(Piece::Head(head)).and_then(|()| {
                let mut pass = |piece: &[u8]| sender.send(Piece::Bytes(piece.to_vec())).is_ok();
                sender.send(Piece::End(self.read(body, &mut pass)))
            }),
        };
    }

    fn send(&self, post: &Post) -> Result<(Head, Body), Broken> {
        let mut request = Request::post(&post.address)
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, post.accept);
        for (name, value) in &post.headers {
            request = request.header(name, value);
        }
        let request = request.body(&post.body[..]);
        let request = request.map_err(|error| Broken::Impossible(error.to_string()))?;
        let response = self.agent.run(request).map_err(|error| broken(&error))?;
        Ok((head(&response), response.into_body()))
    }

    /// Reads until the end, until `take` wants no more, or until it is too much.
    fn read(&self, body: Body, take: &mut dyn FnMut(&[u8]) -> bool) -> Result<(), Broken> {
        let mut reader = body.into_with_config().limit(u64::MAX).reader();
        let mut piece = vec![0; PIECE];
        let mut left = self.max_answer_bytes;
        loop {
            match reader.read(&mut piece) {
                Ok(0) => return Ok(()),
                Ok(count) => {
                    let length = u64::try_from(count).unwrap_or(u64::MAX);
                    left = left.checked_sub(length).ok_or(Broken::TooLarge)?;
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

fn head(response: &Response<Body>) -> Head {
    let headers = response.headers();
    let content_type = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    Head {
        status: response.status().as_u16(),
        content_type: content_type.unwrap_or_default().to_ascii_lowercase(),
        retry_after: retry_after(headers),
    }
}

fn broken(error: &ureq::Error) -> Broken {
    use io::ErrorKind::{
        BrokenPipe, ConnectionAborted, ConnectionReset, InvalidData, TimedOut, UnexpectedEof,
        WouldBlock,
    };
    match error {
        ureq::Error::Timeout(Timeout::Global | Timeout::PerCall) => Broken::Slow,
        ureq::Error::Timeout(Timeout::Connect | Timeout::Resolve) => {
            Broken::Unreached("no connection in time".to_owned())
        }
        ureq::Error::Timeout(_) => Broken::Silent,
        _ if is_untrusted(error) => Broken::Impossible(error.to_string()),
        ureq::Error::Io(io) => match io.kind() {
            TimedOut | WouldBlock => Broken::Silent,
            UnexpectedEof | ConnectionReset | ConnectionAborted | BrokenPipe | InvalidData => {
                Broken::Cut
            }
            _ => Broken::Unreached(io.to_string()),
        },
        ureq::Error::Protocol(_) | ureq::Error::BodyStalled => Broken::Cut,
        ureq::Error::Decompress(..) => Broken::Cut,
        ureq::Error::HostNotFound
        | ureq::Error::ConnectionFailed
        | ureq::Error::ConnectProxyFailed(_) => Broken::Unreached(error.to_string()),
        _ => Broken::Impossible(error.to_string()),
    }
}

fn is_local(base_url: &str) -> bool {
    let uri: Option<http::Uri> = base_url.parse().ok();
    uri.as_ref()
        .and_then(http::Uri::host)
        .is_some_and(|host| host == "localhost" || host == "[::1]" || host.starts_with("127."))
}

/// The certificates that this machine trusts.
fn tls(provider: &Provider) -> Result<TlsConfig, ConfigError> {
    tine_net::tls::http_client().map_err(|error| ConfigError {
        provider: provider.name.clone(),
        field: "base_url",
        why: format!("cannot be trusted: {error}; SSL_CERT_FILE names a file of them"),
    })
}
