//! Tine for agents: the Model Context Protocol.
//!
//! [`Tine`] is the server of one engine: tools (`tools`), resources and their changes
//! (`resources`, `follow`), prompts (`prompts`), completions (`complete`), and the page that
//! teaches an agent how to store its turns (`instructions.md`). It is served over standard input
//! and output ([`serve_stdio`]) or as the handler of one HTTP route ([`Http`]); both speak the
//! stateless protocol of 2026-07-28 and the older ones that begin with `initialize`.
//!
//! Invariants:
//!
//! - Every tool is one request of the engine; no rule of the tree lives here.
//! - What a caller may not reach ([`Reach`]) is refused before the engine is asked.
//! - Every message is read by the strict JSON reader of the core, whatever the transport: arguments
//!   that two readers could take for different values are refused, and no digit is lost.
//! - Arguments that a tool does not know are refused, and so are files outside of the folders that
//!   were allowed.
//! - Answers are bounded, say what was cut, and never put recorded text anywhere but into fields
//!   of data.
//! - Only this crate knows the SDK (`rmcp`), whose version is pinned.
//!
//! Deliberately absent: listening, tokens, host names and origins, which are the HTTP server's;
//! erasure, which no agent should be offered.

mod access;
mod answer;
mod arguments;
mod complete;
mod cost;
mod files;
mod follow;
mod forms;
mod http;
mod incoming;
mod prompts;
mod refusal;
mod resources;
mod schema;
mod server;
mod stdio;
mod tools;
mod typed;

pub use access::Reach;
pub use cost::{Cost, cost};
pub use files::{Allowed, NotAllowed};
pub use http::Http;
pub use incoming::ExactArguments;
pub use server::{Options, Tine};
pub use stdio::{StdioError, serve_lines, serve_stdio};
pub use tools::Toolset;

/// What an agent is told before anything else.
pub const INSTRUCTIONS: &str = include_str!("instructions.md");
