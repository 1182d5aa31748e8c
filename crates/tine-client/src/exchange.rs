//! Sends requests, with retries where that is safe.
//!
//! A read-only request, or one with an idempotency key, is retried after a pause when the
//! connection breaks or the server is busy. Every other request is sent once: without a response,
//! the client cannot know whether it was executed.

use std::io::Read;
use std::thread::sleep;
use std::time::Duration;

use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, RANGE};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tine_api::{Call, Error, ErrorDetails, Result, SourceBytes};
use tine_core::ErrorKind;
use tine_net::retry::{Policy, retry_after};
use tine_net::tls::is_untrusted;
use ureq::tls::TlsConfig;
use ureq::{Agent, AsSendBody, Body};

use crate::refusal;
use crate::url_path::UrlPath;

/// Connection timeout.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Timeout for an ordinary answer to begin.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(120);

/// Timeout for answers that need a scan of the whole store.
const LONG_ANSWER_TIMEOUT: Duration = Duration::from_secs(6 * 3_600);

/// Timeout of a single write.
const WRITE_TIMEOUT: Duration = Duration::from_secs(60);

/// The retry policy. A call takes at most five times its timeouts, and these pauses.
const RETRY: Policy = Policy {
    first_pause: Duration::from_millis(100),
    longest_pause: Duration::from_secs(10),
    max_retries: 4,
    deadline: Duration::MAX,
};

/// The largest response body.
const ANSWER_BYTES: u64 = 4 << 30;

/// The largest error body that is read.
const REFUSAL_BYTES: u64 = 4 << 20;

/// How long to wait for an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AnswerTimeout {
    Ordinary,
    /// For requests that scan a whole store.
    Long,
}

/// A request with an optional JSON body.
pub(crate) struct ClientRequest<'a> {
    pub(crate) method: Method,
    pub(crate) address: UrlPath,
    pub(crate) call: Option<&'a Call>,
    /// A JSON body; requests that change something have at least an empty one.
    pub(crate) body: Option<Vec<u8>>,
    /// Whether it is read-only.
    pub(crate) reads: bool,
    pub(crate) timeout: AnswerTimeout,
}

/// A request with a raw body.
pub(crate) struct Upload<'a> {
    pub(crate) address: UrlPath,
    pub(crate) call: &'a Call,
    /// The body, which a retry reads again from its beginning.
    pub(crate) content: &'a dyn SourceBytes,
    pub(crate) timeout: AnswerTimeout,
}

/// A server, and the connections to it.
pub(crate) struct Exchange {
    agent: Agent,
    address: String,
    token: Option<HeaderValue>,
}

impl Exchange {
    pub(crate) fn with(address: &str) -> Result<Self> {
        let address = address.trim().trim_end_matches('/');
        let secure = address.starts_with("https://");
        let named = address.split_once("://").is_some_and(|(_, host)| !host.is_empty());
        if !named || !(secure || address.starts_with("http://")) {
            let why = format!(
                "`{address}` is not the address of a server; give one such as http://127.0.0.1:8000"
            );
            return Err(refusal(ErrorKind::Invalid, why));
        }
        let tls = if secure { tls()? } else { TlsConfig::default() };
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .user_agent(concat!("tine/", env!("CARGO_PKG_VERSION")))
            .timeout_connect(Some(CONNECT_TIMEOUT))
            .timeout_per_write(Some(WRITE_TIMEOUT))
            .timeout_recv_response(Some(ANSWER_TIMEOUT))
            .tls_config(tls)
            .build();
        Ok(Exchange { agent: config.into(), address: address.to_owned(), token: None })
    }

    pub(crate) fn with_token(self, token: &str) -> Result<Self> {
        let value = HeaderValue::try_from(format!("Bearer {}", token.trim()));
        let mut value = value
            .map_err(|_| refusal(ErrorKind::Invalid, "the token holds characters no token has"))?;
        value.set_sensitive(true);
        Ok(Exchange { token: Some(value), ..self })
    }

    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// Sends a request and reads its answer.
    pub(crate) fn ask<T: DeserializeOwned>(&self, ask: &ClientRequest<'_>) -> Result<T> {
        Ok(self.ask_whether_created(ask)?.0)
    }

    /// Sends a request and reads its answer, and whether something was created.
    pub(crate) fn ask_whether_created<T: DeserializeOwned>(
        &self,
        ask: &ClientRequest<'_>,
    ) -> Result<(T, bool)> {
        let (status, answer) = self.answer(ask)?;
        Ok((read_json(&answer)?, status == StatusCode::CREATED))
    }

    fn answer(&self, ask: &ClientRequest<'_>) -> Result<(StatusCode, Vec<u8>)> {
        let keyed = ask.call.is_some_and(|call| call.idempotency_key.is_some());
        self.whole_answer(ask.reads || keyed, &[], || self.once(ask))
    }

    /// Sends a request and reads its answer; retries if that is safe. Statuses in `also` count as
    /// success.
    fn with_retries<T>(
        &self,
        again: bool,
        also: &[StatusCode],
        send: impl Fn() -> std::result::Result<Response<Body>, ureq::Error>,
        read: impl Fn(Response<Body>) -> Result<T>,
    ) -> Result<T> {
        let mut retries = RETRY.start();
        loop {
            let mut requested_pause = None;
            let sent = send().map_err(|error| self.broken(&error, again));
            let failed = match sent {
                Ok(response) => {
                    let status = response.status();
                    if status.is_success() || also.contains(&status) {
                        match read(response) {
                            Ok(answer) => return Ok(answer),
                            Err(error) => error,
                        }
                    } else {
                        requested_pause = retry_after(response.headers());
                        let error = refused(response);
                        if !matches!(status.as_u16(), 429 | 503) {
                            return Err(error);
                        }
                        error
                    }
                }
                Err(error) => error,
            };
            if !again || failed.kind() != ErrorKind::Busy {
                return Err(failed);
            }
            match retries.next_pause(requested_pause) {
                Some(pause) => sleep(pause),
                None => return Err(failed),
            }
        }
    }

    /// Sends a request and reads its whole answer; see [`Exchange::with_retries`].
    fn whole_answer(
        &self,
        again: bool,
        also: &[StatusCode],
        send: impl Fn() -> std::result::Result<Response<Body>, ureq::Error>,
    ) -> Result<(StatusCode, Vec<u8>)> {
        self.with_retries(again, also, send, |response| {
            let status = response.status();
            let body = response.into_body().into_with_config().limit(ANSWER_BYTES);
            let bytes = body.read_to_vec().map_err(|error| self.broken(&error, again))?;
            Ok((status, bytes))
        })
    }

    fn once(&self, ask: &ClientRequest<'_>) -> std::result::Result<Response<Body>, ureq::Error> {
        let request = self.request(&ask.method, &ask.address, ask.call)?;
        match &ask.body {
            None => self.run(request, (), ask.timeout),
            Some(body) => {
                let request = match body.is_empty() {
                    true => request,
                    false => request.header(CONTENT_TYPE, "application/json"),
                };
                self.run(request, body, ask.timeout)
            }
        }
    }

    /// Returns a request with its sender, without a body.
    fn request(
        &self,
        method: &Method,
        address: &UrlPath,
        call: Option<&Call>,
    ) -> std::result::Result<http::request::Builder, ureq::Error> {
        let uri = format!("{}{}", self.address, address.as_str());
        let mut request = Request::builder().method(method).uri(uri);
        if let Some(token) = &self.token {
            request = request.header(AUTHORIZATION, token);
        }
        let text = |text: &str| HeaderValue::from_bytes(text.as_bytes()).map_err(http::Error::from);
        if let Some(call) = call {
            request = request.header("x-tine-actor", text(&call.actor)?);
            // Other methods have the key in their body, where it may begin or end with spaces.
            if let Some(key) = call.idempotency_key.as_ref().filter(|_| *method == Method::DELETE) {
                request = request.header("idempotency-key", text(key)?);
            }
            if let Some(seen) = call.if_branch {
                request = request.header("if-match", format!("\"{}.{}\"", seen.id, seen.version));
            }
        }
        Ok(request)
    }

    fn run(
        &self,
        request: http::request::Builder,
        body: impl AsSendBody,
        timeout: AnswerTimeout,
    ) -> std::result::Result<Response<Body>, ureq::Error> {
        let answer = match timeout {
            AnswerTimeout::Ordinary => ANSWER_TIMEOUT,
            AnswerTimeout::Long => LONG_ANSWER_TIMEOUT,
        };
        let request = self.agent.configure_request(request.body(body)?);
        self.agent.run(request.timeout_recv_response(Some(answer)).build())
    }

    /// Requests a stream, with an idle timeout.
    pub(crate) fn stream(
        &self,
        address: &UrlPath,
        call: Option<&Call>,
        headers: &[(&'static str, String)],
        idle_timeout: Duration,
    ) -> Result<impl Read + use<>> {
        let begun = self.begin(address, call, headers, idle_timeout);
        let response = begun.map_err(|error| self.broken(&error, true))?;
        match response.status().is_success() {
            true => Ok(response.into_body().into_reader()),
            false => Err(refused(response)),
        }
    }

    fn begin(
        &self,
        address: &UrlPath,
        call: Option<&Call>,
        headers: &[(&'static str, String)],
        idle_timeout: Duration,
    ) -> std::result::Result<Response<Body>, ureq::Error> {
        let mut request = self.request(&Method::GET, address, call)?;
        for (name, value) in headers {
            request = request.header(*name, value);
        }
        let request = self.agent.configure_request(request.body(())?);
        self.agent.run(request.timeout_per_read(Some(idle_timeout)).build())
    }

    /// Requests a stream and reads it. Starts again if the server is busy or the stream ends early.
    pub(crate) fn stream_whole<T>(
        &self,
        address: &UrlPath,
        call: &Call,
        idle_timeout: Duration,
        read: impl Fn(&mut dyn Read) -> Result<T>,
    ) -> Result<T> {
        self.with_retries(
            true,
            &[],
            || self.begin(address, Some(call), &[], idle_timeout),
            |response| read(&mut response.into_body().into_reader()),
        )
    }

    /// Streams a body and reads the answer.
    pub(crate) fn send<T: DeserializeOwned>(
        &self,
        address: &UrlPath,
        content_type: &'static str,
        input: &mut dyn Read,
    ) -> Result<T> {
        let broken = |error: ureq::Error| self.broken(&error, false);
        let request = self.request(&Method::POST, address, None).map_err(broken)?;
        let request = request.header(CONTENT_TYPE, content_type).header(ACCEPT, "application/json");
        let mut input = input;
        let body = ureq::SendBody::from_reader(&mut input);
        let response = self.run(request, body, AnswerTimeout::Long).map_err(broken)?;
        if !response.status().is_success() {
            return Err(refused(response));
        }
        let body = response.into_body().into_with_config().limit(ANSWER_BYTES);
        read_json(&body.read_to_vec().map_err(broken)?)
    }

    /// Sends lines with retries: received twice, they add nothing.
    pub(crate) fn send_again<T: DeserializeOwned>(
        &self,
        address: &UrlPath,
        call: &Call,
        content_type: &'static str,
        lines: &[u8],
    ) -> Result<T> {
        let (_, answer) = self.whole_answer(true, &[], || {
            let request = self.request(&Method::POST, address, Some(call))?;
            let request =
                request.header(CONTENT_TYPE, content_type).header(ACCEPT, "application/json");
            self.run(request, lines, AnswerTimeout::Long)
        })?;
        read_json(&answer)
    }

    /// Uploads the bytes of a source and reads the answer.
    pub(crate) fn upload<T: DeserializeOwned>(&self, upload: &Upload<'_>) -> Result<T> {
        let again = upload.call.idempotency_key.is_some();
        let (_, answer) = self.whole_answer(again, &[], || {
            let mut input = upload.content.open()?;
            let request = self.request(&Method::POST, &upload.address, Some(upload.call))?;
            let request = request
                .header(CONTENT_TYPE, "application/octet-stream")
                .header(ACCEPT, "application/json");
            self.run(request, ureq::SendBody::from_reader(&mut input), upload.timeout)
        })?;
        read_json(&answer)
    }

    /// Requests a range of bytes; `None` if it is out of range.
    pub(crate) fn part(
        &self,
        address: &UrlPath,
        call: &Call,
        first: u64,
        last: u64,
    ) -> Result<Option<Vec<u8>>> {
        let out_of_range = StatusCode::RANGE_NOT_SATISFIABLE;
        let (status, bytes) = self.whole_answer(true, &[out_of_range], || {
            let request = self.request(&Method::GET, address, Some(call))?;
            let request = request.header(RANGE, format!("bytes={first}-{last}"));
            self.run(request, (), AnswerTimeout::Ordinary)
        })?;
        match status {
            StatusCode::PARTIAL_CONTENT => Ok(Some(bytes)),
            status if status == out_of_range => Ok(None),
            _ => Err(refusal(ErrorKind::Internal, "the server did not return the requested range")),
        }
    }

    /// Converts a transport error.
    fn broken(&self, error: &ureq::Error, again: bool) -> Error {
        let address = &self.address;
        let unreached = matches!(
            error,
            ureq::Error::HostNotFound
                | ureq::Error::ConnectionFailed
                | ureq::Error::Timeout(ureq::Timeout::Connect | ureq::Timeout::Resolve)
        ) || matches!(error, ureq::Error::Io(io) if io.kind() == std::io::ErrorKind::ConnectionRefused);
        match error {
            _ if is_untrusted(error) => refusal(
                ErrorKind::Invalid,
                format!(
                    "the server at {address} is not trusted ({error}); set SSL_CERT_FILE to the \
                     certificates of its authority"
                ),
            ),
            ureq::Error::Http(_) | ureq::Error::BadUri(_) | ureq::Error::InvalidProxyUrl => {
                refusal(
                    ErrorKind::Invalid,
                    format!("the request cannot be sent to {address}: {error}"),
                )
            }
            _ if unreached => refusal(
                ErrorKind::Busy,
                format!("the server at {address} cannot be reached ({error}); is it running?"),
            ),
            _ if again => refusal(
                ErrorKind::Busy,
                format!("the server at {address} did not answer ({error}); try again"),
            ),
            _ => refusal(
                ErrorKind::Busy,
                format!(
                    "the server at {address} did not answer ({error}); check whether the change was \
                     made before you retry, or use an idempotency key"
                ),
            ),
        }
    }
}

/// Returns the certificates that this machine trusts.
fn tls() -> Result<TlsConfig> {
    tine_net::tls::http_client().map_err(|error| {
        refusal(ErrorKind::Invalid, format!("{error}; set SSL_CERT_FILE to a file of certificates"))
    })
}

pub(crate) fn read_json<T: DeserializeOwned>(bytes: &[u8]) -> Result<T> {
    serde_json::from_slice(bytes).map_err(|error| {
        refusal(ErrorKind::Internal, format!("the server's answer cannot be read: {error}"))
    })
}

/// The error body of the server.
#[derive(Deserialize)]
struct ProblemBody {
    code: String,
    detail: String,
    #[serde(flatten)]
    details: ErrorDetails,
}

fn refused(response: Response<Body>) -> Error {
    let status = response.status();
    let body = response.into_body().into_with_config().limit(REFUSAL_BYTES).read_to_vec();
    let problem: Option<ProblemBody> =
        body.ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
    let Some(problem) = problem else {
        let why =
            format!("the server answered {status} without an error of Tine; check its address");
        return refusal(kind_of(status), why);
    };
    Error {
        kind: ErrorKind::parse(&problem.code).unwrap_or_else(|| kind_of(status)),
        message: problem.detail,
        details: Box::new(problem.details),
        source: None,
    }
}

/// Returns the kind of a status that a proxy or gateway returned.
fn kind_of(status: StatusCode) -> ErrorKind {
    match status.as_u16() {
        401 | 407 => ErrorKind::Unauthorized,
        403 => ErrorKind::Forbidden,
        413 => ErrorKind::TooLarge,
        429 | 502 | 503 | 504 => ErrorKind::Busy,
        _ => ErrorKind::Internal,
    }
}
