//! What all requests share.

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use ipnet::IpNet;
use serde_json::Value;
use tine_engine::Engine;
use tokio::sync::{Semaphore, watch};

use crate::access::{TokenRule, Tokens};
use crate::metrics::Metrics;
use crate::rate::Rates;
use crate::replies::Replies;
use crate::room::{BodyRoom, TransferRoom, WaitRoom};
use crate::visited::Visited;
use crate::worker::Bell;

/// How a server behaves.
#[derive(Clone, Debug)]
pub struct Options {
    /// Who is recorded as the author of changes that no token or header names.
    pub actor: String,
    /// Where tokens are kept; without it none is valid.
    pub tokens: Option<PathBuf>,
    /// Where it is kept what people looked at last; in memory without it.
    pub visited: Option<PathBuf>,
    /// When a request needs a token.
    pub token_rule: TokenRule,
    /// Names under which the server may be addressed, in addition to those of the loopback.
    pub hosts: Vec<String>,
    /// Proxies whose `X-Forwarded-For` and `X-Forwarded-Proto` are believed.
    pub trusted_proxies: Vec<IpNet>,
    /// Connections at once; further ones wait until one ends.
    pub connections: usize,
    /// Whether secrets are taken out of what is appended and edited.
    pub redact: bool,
    /// Requests in work at once.
    pub concurrency: usize,
    /// Exports, imports, sources that come and outlines, at once.
    pub transfers: usize,
    /// Requests at once that wait until a run has ended; each holds a thread meanwhile.
    pub waits: usize,
    /// Models that answer, by name; the first where none is named.
    pub models: Vec<(String, tine_llm::reply::Responder)>,
    /// Answers of models at once; each holds a thread.
    pub replies: usize,
    /// Whether runs that wait are done here, in the background.
    pub interprets: bool,
    /// Memory for large bodies, all together.
    pub body_room_bytes: usize,
    /// Requests of one address in a second.
    pub rate: u32,
    /// How long a body may take to come.
    pub body_timeout: Duration,
    /// How long a request's head may take to come; also how long a connection may be idle.
    pub head_timeout: Duration,
    /// How long a client may leave an answer unread.
    pub write_timeout: Duration,
    /// How long requests in work may go on after the server was told to stop.
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
            replies: 32,
            interprets: true,
            body_room_bytes: 512 << 20,
            rate: 50_000,
            body_timeout: Duration::from_secs(60),
            head_timeout: Duration::from_secs(60),
            write_timeout: Duration::from_secs(60),
            grace: Duration::from_secs(20),
        }
    }
}

/// The server's state.
pub(crate) struct App {
    pub(crate) engine: Engine,
    pub(crate) options: Options,
    pub(crate) tokens: Tokens,
    pub(crate) metrics: Metrics,
    pub(crate) rates: Rates,
    pub(crate) room: Semaphore,
    pub(crate) body_room: BodyRoom,
    pub(crate) transfer_room: TransferRoom,
    pub(crate) wait_room: WaitRoom,
    /// Answers that are being given.
    pub(crate) replies: Arc<Replies>,
    /// What people looked at last.
    pub(crate) visited: Visited,
    /// Tells the worker that a run may be waiting.
    pub(crate) bell: Bell,
    /// The API's description, put together when it is first asked for.
    pub(crate) description: LazyLock<Value>,
    /// The tools for agents.
    pub(crate) mcp: tine_mcp::Http,
    /// How far the feed goes, as far as the server has seen.
    pub(crate) feed: watch::Receiver<u64>,
    /// Turns true when the server is told to stop.
    pub(crate) stopping: watch::Receiver<bool>,
}

/// Where a request comes from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer(pub(crate) IpAddr);
