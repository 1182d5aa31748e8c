//! The options and the state of a server.

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use ipnet::IpNet;
use serde_json::Value;
use tine_engine::Engine;
use tokio::sync::{Semaphore, watch};

use crate::access::{TokenRule, Tokens};
use crate::capacity::{BodyMemory, RequestSlots};
use crate::metrics::Metrics;
use crate::rate::Rates;
use crate::running_replies::RunningReplies;
use crate::visited::Visited;
use crate::worker::Bell;

/// The options of a server.
#[derive(Clone, Debug)]
pub struct Options {
    /// The recorded author of changes without a token and without the header `X-Tine-Actor`.
    pub actor: String,
    /// The file of tokens; without it no token is valid.
    pub tokens: Option<PathBuf>,
    /// The file of last viewed leaves; kept in memory by default.
    pub visited: Option<PathBuf>,
    /// When a request needs a token.
    pub token_rule: TokenRule,
    /// Additional host names of the server, beside those of the loopback interface.
    pub hosts: Vec<String>,
    /// Proxies whose `X-Forwarded-For` and `X-Forwarded-Proto` headers are believed.
    pub trusted_proxies: Vec<IpNet>,
    /// The maximum number of connections; further ones wait.
    pub connections: usize,
    /// Whether to redact secrets in content before it is recorded.
    pub redact: bool,
    /// The maximum number of concurrent requests.
    pub concurrency: usize,
    /// The maximum number of concurrent exports, imports, uploads and outlines.
    pub transfers: usize,
    /// The maximum number of requests that wait for a run; each holds a thread.
    pub waits: usize,
    /// The models that can reply, by name. The first one is the default.
    pub models: Vec<(String, tine_llm::reply::Responder)>,
    /// The prices that estimate the cost of turns that record none.
    pub prices: tine_api::Prices,
    /// The maximum number of concurrent replies of models; each holds a thread.
    pub replies: usize,
    /// Whether to perform queued runs in the background.
    pub interprets: bool,
    /// Memory for all large bodies together.
    pub body_memory_bytes: usize,
    /// The maximum number of requests per second and address.
    pub rate: u32,
    /// Timeout for receiving a body.
    pub body_timeout: Duration,
    /// Timeout for receiving the head of a request; also the idle timeout of a connection.
    pub head_timeout: Duration,
    /// Timeout for a client to read an answer.
    pub write_timeout: Duration,
    /// Timeout for running requests after the server was asked to stop.
    pub grace: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            actor: "tine".to_owned(),
            tokens: None,
            visited: None,
            token_rule: TokenRule::default(),
            hosts: Vec::new(),
            trusted_proxies: Vec::new(),
            connections: 10_000,
            redact: false,
            concurrency: 1_024,
            transfers: 16,
            waits: 64,
            models: Vec::new(),
            prices: tine_api::Prices::default(),
            replies: 32,
            interprets: true,
            body_memory_bytes: 512 << 20,
            rate: 50_000,
            body_timeout: Duration::from_secs(60),
            head_timeout: Duration::from_secs(60),
            write_timeout: Duration::from_secs(60),
            grace: Duration::from_secs(20),
        }
    }
}

/// The state of a server.
pub(crate) struct App {
    pub(crate) engine: Engine,
    pub(crate) options: Options,
    pub(crate) tokens: Tokens,
    pub(crate) metrics: Metrics,
    pub(crate) rates: Rates,
    pub(crate) concurrency: Semaphore,
    pub(crate) body_memory: BodyMemory,
    pub(crate) transfers: RequestSlots,
    pub(crate) waits: RequestSlots,
    pub(crate) replies: Arc<RunningReplies>,
    pub(crate) visited: Visited,
    /// Wakes the worker when a run may be queued.
    pub(crate) bell: Bell,
    /// The OpenAPI document, generated on first use.
    pub(crate) description: LazyLock<Value>,
    /// The handler of MCP requests.
    pub(crate) mcp: tine_mcp::McpHttp,
    /// The last known position of the change feed.
    pub(crate) feed: watch::Receiver<u64>,
    /// Becomes true when the server is asked to stop.
    pub(crate) stopping: watch::Receiver<bool>,
}

/// The address of a client.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer(pub(crate) IpAddr);
