//! An endpoint on the loopback with scripted answers.
//!
//! It speaks HTTP/1.1, one request per connection. Everything is bounded: a gate opens after a timeout,
//! and dripping ends.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::Value;
use tine_llm::{Jitter, Model, ModelRuntime, Protocol, Provider, ProviderSettings};

/// The longest wait in a test.
const TEST_TIMEOUT: Duration = Duration::from_secs(20);

/// The key that tests use.
pub const KEY: &str = "sk-very/secret+0123456789";

/// A step of an answer.
#[derive(Clone)]
pub enum ReplyStep {
    Send(Vec<u8>),
    /// Waits until the test is over.
    Gate,
    /// Sends these bytes again and again until the test is over.
    Drip(Vec<u8>),
}

/// An answer of the endpoint.
#[derive(Clone)]
pub struct Reply {
    status: u16,
    headers: Vec<(String, String)>,
    /// The announced length.
    length: Option<usize>,
    steps: Vec<ReplyStep>,
}

impl Reply {
    pub fn new(status: u16, content_type: &str, body: impl Into<Vec<u8>>) -> Reply {
        let body = body.into();
        Reply {
            status,
            headers: vec![("content-type".into(), content_type.into())],
            length: Some(body.len()),
            steps: vec![ReplyStep::Send(body)],
        }
    }

    pub fn json(status: u16, body: &Value) -> Reply {
        Reply::new(status, "application/json", body.to_string())
    }

    /// Returns an answer in separate pieces, without an announced length.
    pub fn pieces(content_type: &str, pieces: Vec<Vec<u8>>) -> Reply {
        let steps = pieces.into_iter().map(ReplyStep::Send).collect();
        Reply { length: None, steps, ..Reply::new(200, content_type, "") }
    }

    pub fn header(mut self, name: &str, value: &str) -> Reply {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Announces more bytes than it sends.
    pub fn cut_short(self) -> Reply {
        Reply { length: self.length.map(|length| length + 100), ..self }
    }

    /// Waits at the gate before it sends anything.
    pub fn late() -> Reply {
        Reply { status: 0, headers: Vec::new(), length: None, steps: vec![ReplyStep::Gate] }
    }

    /// Waits at the gate at the end.
    pub fn then_gate(mut self) -> Reply {
        self.steps.push(ReplyStep::Gate);
        Reply { length: None, ..self }
    }

    /// Sends bytes until the test is over.
    pub fn drip(content_type: &str, bytes: &[u8]) -> Reply {
        let steps = vec![ReplyStep::Drip(bytes.to_vec())];
        Reply { length: None, steps, ..Reply::new(200, content_type, "") }
    }

    fn run(&self, stream: &mut TcpStream, gate: &Gate) -> std::io::Result<()> {
        if self.status != 0 {
            let mut head = format!("HTTP/1.1 {} Status\r\nconnection: close\r\n", self.status);
            for (name, value) in &self.headers {
                head.push_str(&format!("{name}: {value}\r\n"));
            }
            if let Some(length) = self.length {
                head.push_str(&format!("content-length: {length}\r\n"));
            }
            stream.write_all(format!("{head}\r\n").as_bytes())?;
        }
        for step in &self.steps {
            match step {
                ReplyStep::Send(bytes) => stream.write_all(bytes)?,
                ReplyStep::Gate => {
                    gate.wait(TEST_TIMEOUT);
                }
                ReplyStep::Drip(bytes) => {
                    for _ in 0..1_000 {
                        if gate.wait(Duration::from_millis(20)) {
                            break;
                        }
                        stream.write_all(bytes)?;
                    }
                }
            }
        }
        Ok(())
    }
}

/// A request that the endpoint received.
#[derive(Clone, Debug)]
pub struct ReceivedRequest {
    pub path: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl ReceivedRequest {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(its, _)| its == name).map(|(_, value)| value.as_str())
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("requests are JSON")
    }
}

#[derive(Default)]
struct Gate {
    open: Mutex<bool>,
    opened: Condvar,
}

impl Gate {
    /// Returns whether the gate was opened in time.
    fn wait(&self, time: Duration) -> bool {
        let open = self.open.lock().unwrap();
        *self.opened.wait_timeout_while(open, time, |open| !*open).unwrap().0
    }

    fn open(&self) {
        *self.open.lock().unwrap() = true;
        self.opened.notify_all();
    }
}

struct EndpointState {
    replies: Mutex<Vec<Reply>>,
    requests: Mutex<Vec<ReceivedRequest>>,
    gate: Gate,
    stopped: AtomicBool,
}

/// The endpoint; it ends with the test.
pub struct Endpoint {
    address: SocketAddr,
    state: Arc<EndpointState>,
    listener: Option<JoinHandle<()>>,
}

impl Endpoint {
    /// Starts an endpoint that gives these answers in order, and then repeats the last one.
    pub fn start(replies: Vec<Reply>) -> Endpoint {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(EndpointState {
            replies: Mutex::new(replies),
            requests: Mutex::new(Vec::new()),
            gate: Gate::default(),
            stopped: AtomicBool::new(false),
        });
        let shared = Arc::clone(&state);
        let listener = std::thread::spawn(move || {
            let mut serving = Vec::new();
            for stream in listener.incoming() {
                if shared.stopped.load(Ordering::SeqCst) {
                    break;
                }
                let (stream, shared) = (stream.unwrap(), Arc::clone(&shared));
                // A client that hangs up is part of many tests.
                serving.push(std::thread::spawn(move || serve(stream, &shared).unwrap_or(())));
            }
            for thread in serving {
                thread.join().unwrap();
            }
        });
        Endpoint { address, state, listener: Some(listener) }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn requests(&self) -> Vec<ReceivedRequest> {
        self.state.requests.lock().unwrap().clone()
    }

    pub fn times(&self) -> usize {
        self.state.requests.lock().unwrap().len()
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.state.stopped.store(true, Ordering::SeqCst);
        self.state.gate.open();
        drop(TcpStream::connect(self.address));
        if let Some(listener) = self.listener.take() {
            listener.join().unwrap();
        }
    }
}

fn serve(mut stream: TcpStream, state: &EndpointState) -> std::io::Result<()> {
    stream.set_read_timeout(Some(TEST_TIMEOUT))?;
    stream.set_write_timeout(Some(TEST_TIMEOUT))?;
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
    let mut headers = Vec::new();
    loop {
        line.clear();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.split_once(':') else { break };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let length: usize = length.map_or(0, |(_, value)| value.parse().unwrap());
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    state.requests.lock().unwrap().push(ReceivedRequest { path, headers, body });
    let reply = {
        let mut replies = state.replies.lock().unwrap();
        if replies.len() > 1 { replies.remove(0) } else { replies[0].clone() }
    };
    reply.run(&mut stream, &state.gate)
}

/// The pauses of a model.
#[derive(Clone, Default)]
pub struct Pauses(Arc<Mutex<Vec<Duration>>>);

impl Pauses {
    pub fn millis(&self) -> Vec<u128> {
        self.0.lock().unwrap().iter().map(Duration::as_millis).collect()
    }
}

/// Returns an environment with one key, and pauses that take no time.
pub fn runtime(pauses: &Pauses) -> ModelRuntime {
    let pauses = pauses.clone();
    ModelRuntime {
        environment: Arc::new(|name| (name == "TEST_KEY").then(|| format!("{KEY}\n"))),
        sleep: Arc::new(move |time| pauses.0.lock().unwrap().push(time)),
        jitter: Arc::new(|| Jitter::NONE),
    }
}

/// Returns settings for an endpoint, with a key.
pub fn settings(kind: Protocol, endpoint: &Endpoint) -> ProviderSettings {
    ProviderSettings {
        base_url: Some(endpoint.url()),
        key_env: Some("TEST_KEY".to_owned()),
        ..ProviderSettings::new(kind, "asked-for")
    }
}

/// Returns a model with settings.
pub fn model_with(settings: ProviderSettings, pauses: &Pauses) -> Model {
    let provider = Provider::new("test", settings).expect("the settings are fine");
    Model::with(provider, runtime(pauses)).expect("there is a transport")
}

/// Returns a model at the endpoint.
pub fn model(kind: Protocol, endpoint: &Endpoint) -> Model {
    model_with(settings(kind, endpoint), &Pauses::default())
}
