//! A server of its own for each test, and a small client.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;
use tine_core::Limits;
use tine_engine::{Clock, Engine, SystemClock, SystemEntropy};
use tine_server::{Options, Server, Stopper};
use tine_sqlite::SqliteStore;
use ureq::http::{Request, Response};

/// How long anything may take before a test gives up. Nothing is expected to take that long.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// A running server.
pub struct Served {
    pub address: SocketAddr,
    pub client: Client,
    folder: Option<TempDir>,
    path: PathBuf,
    stopper: Stopper,
    running: Option<JoinHandle<()>>,
}

impl Served {
    pub fn new() -> Self {
        Served::with(Options::default())
    }

    pub fn with(options: Options) -> Self {
        Served::over(TempDir::new().expect("a temporary folder"), options, Limits::default())
    }

    pub fn with_limits(limits: Limits) -> Self {
        let folder = TempDir::new().expect("a temporary folder");
        Served::over(folder, Options::default(), limits)
    }

    /// A server over a store that is there already.
    pub fn over(folder: TempDir, options: Options, limits: Limits) -> Self {
        Served::at(folder, options, limits, Arc::new(SystemClock))
    }

    /// The same with another clock.
    pub fn at(folder: TempDir, options: Options, limits: Limits, clock: Arc<dyn Clock>) -> Self {
        Served::by(folder, options, |store| {
            Engine::with(store, clock, Arc::new(SystemEntropy), limits)
        })
    }

    /// A server with an engine of the test's own.
    pub fn by(
        folder: TempDir,
        options: Options,
        engine: impl FnOnce(Arc<SqliteStore>) -> Engine,
    ) -> Self {
        let path = folder.path().join("store");
        let engine = engine(Arc::new(SqliteStore::open(&path).expect("a store")));
        let (sender, bound) = std::sync::mpsc::channel();
        let running = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_multi_thread()
                .worker_threads(2)
                .enable_all()
                .build()
                .expect("a runtime");
            runtime.block_on(async {
                let any = SocketAddr::from(([127, 0, 0, 1], 0));
                let server = Server::bind(engine, any, options).await.expect("a free port");
                sender.send((server.address(), server.stopper())).expect("somebody waits");
                server.run().await.expect("the server runs");
            });
        });
        let (address, stopper) = bound.recv().expect("the server is bound");
        let (client, running) = (Client::of(address), Some(running));
        Served { address, client, folder: Some(folder), path, stopper, running }
    }

    /// An engine of its own over the same store, as another process has it.
    pub fn beside(&self) -> Engine {
        Engine::new(SqliteStore::open(&self.path).expect("the same store"))
    }

    /// Tells the server to stop, without waiting.
    pub fn tell_to_stop(&self) {
        self.stopper.stop();
    }

    /// Stops the server and keeps the store.
    pub fn stop(mut self) -> TempDir {
        self.end();
        self.folder.take().expect("the folder is there until here")
    }

    fn end(&mut self) {
        self.stopper.stop();
        if let Some(running) = self.running.take() {
            let ended = running.join();
            assert!(std::thread::panicking() || ended.is_ok(), "the server panicked");
        }
    }

    /// A connection for bytes of one's own.
    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).expect("the server accepts");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        stream.set_write_timeout(Some(PATIENCE)).expect("a timeout");
        stream
    }

    /// A conversation with a user's question and an assistant's answer; the ids of both.
    pub fn trip(&self) -> (String, String) {
        self.post("/api/v1/conversations", json!({"conversation_id": "trip"})).expect(201);
        let messages = json!({"messages": [
            {"role": "user", "content": "When?", "created_at": "2024-01-15T10:30:00Z"},
            {"role": "assistant", "content": "Late March", "created_at": "2024-01-15T10:30:05Z"},
        ]});
        let made = self.post("/api/v1/conversations/trip/turns", messages).expect(201);
        (made.text("/turns/0/turn_id"), made.text("/turns/1/turn_id"))
    }

    /// Waits until so many requests are in work, besides the one that asks.
    pub fn await_in_work(&self, count: usize) {
        let line = format!("tine_http_requests_in_work {}\n", count + 1);
        eventually("the requests are in work", || self.get("/metrics").as_text().contains(&line));
    }
}

impl std::ops::Deref for Served {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.client
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.end();
    }
}

/// Asks one server.
#[derive(Clone)]
pub struct Client {
    agent: ureq::Agent,
    base: String,
    headers: Vec<(String, String)>,
}

impl Client {
    fn of(address: SocketAddr) -> Self {
        let config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .timeout_global(Some(PATIENCE))
            .max_redirects(0)
            .build();
        Client { agent: config.into(), base: format!("http://{address}"), headers: Vec::new() }
    }

    /// The same with one more header on every request.
    pub fn and(&self, name: &str, value: &str) -> Self {
        let mut client = self.clone();
        client.headers.push((name.to_owned(), value.to_owned()));
        client
    }

    /// The same with a token.
    pub fn bearing(&self, word: &str) -> Self {
        self.and("authorization", &format!("Bearer {word}"))
    }

    pub fn send(&self, method: &str, path: &str, body: Option<&[u8]>) -> Answer {
        let mut request = Request::builder().method(method).uri(format!("{}{path}", self.base));
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        let sent = match body {
            Some(body) => self.agent.run(request.body(body).expect("a request")),
            None => self.agent.run(request.body(()).expect("a request")),
        };
        Answer::read(sent.unwrap_or_else(|error| panic!("{method} {path}: {error}")))
    }

    fn json(&self, method: &str, path: &str, body: &Value) -> Answer {
        let bytes = serde_json::to_vec(body).expect("a document");
        self.and("content-type", "application/json").send(method, path, Some(&bytes))
    }

    /// Sends raw bytes with the media type of JSON.
    pub fn post_text(&self, path: &str, body: &str) -> Answer {
        self.and("content-type", "application/json").send("POST", path, Some(body.as_bytes()))
    }

    pub fn get(&self, path: &str) -> Answer {
        self.send("GET", path, None)
    }

    pub fn delete(&self, path: &str) -> Answer {
        self.send("DELETE", path, None)
    }

    pub fn post(&self, path: &str, body: Value) -> Answer {
        self.json("POST", path, &body)
    }

    pub fn put(&self, path: &str, body: Value) -> Answer {
        self.json("PUT", path, &body)
    }

    pub fn patch(&self, path: &str, body: Value) -> Answer {
        self.json("PATCH", path, &body)
    }

    /// Appends one message of a user to a conversation.
    pub fn say(&self, conversation: &str, text: &str) -> Answer {
        let path = format!("/api/v1/conversations/{conversation}/turns");
        self.post(&path, json!({"role": "user", "content": text}))
    }

    /// Everything that a list holds, page by page.
    pub fn walk(&self, path: &str, rows: &str) -> Vec<Value> {
        let (mut all, mut cursor) = (Vec::new(), String::new());
        let join = if path.contains('?') { '&' } else { '?' };
        loop {
            let page = self.get(&format!("{path}{cursor}")).expect(200).json();
            all.extend(page[rows].as_array().expect("rows").iter().cloned());
            match page["next"].as_str() {
                Some(next) => cursor = format!("{join}cursor={}", encoded(next)),
                None => return all,
            }
        }
    }
}

/// What came back.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Answer {
    fn read(response: Response<ureq::Body>) -> Self {
        let (parts, body) = response.into_parts();
        let headers = parts.headers.iter();
        let headers = headers.map(|(name, value)| {
            (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned())
        });
        let mut bytes = Vec::new();
        body.into_reader().read_to_end(&mut bytes).expect("a whole body");
        Answer { status: parts.status.as_u16(), headers: headers.collect(), body: bytes }
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// A text somewhere in the document.
    pub fn text(&self, pointer: &str) -> String {
        let found = self.json().pointer(pointer).and_then(Value::as_str).map(str::to_owned);
        found.unwrap_or_else(|| panic!("no text at {pointer}: {}", self.as_text()))
    }

    pub fn as_text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The answer, if its status is this one.
    #[track_caller]
    pub fn expect(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{}", self.as_text());
        self
    }

    /// The document of a refusal, if it is one of this status and code, in the form of RFC 9457.
    #[track_caller]
    pub fn refused(&self, status: u16, code: &str) -> Value {
        assert_eq!(self.status, status, "{}", self.as_text());
        assert_eq!(self.header("content-type"), Some("application/problem+json"));
        assert!(self.header("x-request-id").is_some(), "a refusal can be found in the log");
        let problem = self.json();
        assert_eq!(problem["status"], status, "{problem}");
        assert_eq!(problem["code"], code, "{problem}");
        assert_eq!(problem["type"], format!("/docs#{code}"), "{problem}");
        for field in ["title", "detail"] {
            assert!(problem[field].as_str().is_some_and(|it| !it.is_empty()), "{problem}");
        }
        problem
    }
}

/// A text as part of a path or a query.
pub fn encoded(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                out.push(char::from(byte));
            }
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

/// One live event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    pub id: u64,
    pub kind: String,
    pub data: Value,
}

/// A connection that follows events.
pub struct Following {
    lines: BufReader<TcpStream>,
}

impl Following {
    /// Connects and waits until the server follows.
    pub fn new(served: &Served, query: &str, last: Option<u64>) -> Self {
        Following::with(served, query, last, "")
    }

    /// The same with header lines of one's own.
    pub fn with(served: &Served, query: &str, last: Option<u64>, headers: &str) -> Self {
        let mut stream = served.connect();
        let last = last.map(|id| format!("Last-Event-ID: {id}\r\n")).unwrap_or_default();
        let head = format!("GET /api/v1/events{query} HTTP/1.1\r\nHost: localhost\r\n");
        stream.write_all(format!("{head}{last}{headers}\r\n").as_bytes()).expect("the head");
        let mut following = Following { lines: BufReader::new(stream) };
        let status = following.line().expect("a status");
        assert!(status.starts_with("HTTP/1.1 200"), "{status}");
        while following.line().expect("a head") != ": following" {}
        following
    }

    /// A line without its end; `None` when the stream has ended.
    fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        match self.lines.read_line(&mut line) {
            Ok(0) => None,
            Ok(_) => Some(line.trim_end().to_owned()),
            Err(error) => panic!("nothing came: {error}"),
        }
    }

    /// The next event; `None` when the stream has ended. Sizes of chunks and signs of life are
    /// passed over.
    pub fn next(&mut self) -> Option<Event> {
        let (mut id, mut kind) = (None, String::new());
        loop {
            let line = self.line()?;
            if line == "0" {
                // The last chunk has no bytes.
                return None;
            } else if let Some(text) = line.strip_prefix("id: ") {
                id = Some(text.parse().expect("a number"));
            } else if let Some(text) = line.strip_prefix("event: ") {
                kind = text.to_owned();
            } else if let Some(text) = line.strip_prefix("data: ") {
                let data = serde_json::from_str(text).expect("a document");
                return Some(Event { id: id.expect("an id before the data"), kind, data });
            }
        }
    }

    /// So many events.
    pub fn take(&mut self, count: usize) -> Vec<Event> {
        (0..count).map(|_| self.next().expect("an event")).collect()
    }
}

/// Waits until something holds.
#[track_caller]
pub fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let started = Instant::now();
    while !holds() {
        assert!(started.elapsed() < PATIENCE, "{what}: not in {PATIENCE:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
}
