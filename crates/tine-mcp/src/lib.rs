//! Tine for agents: the Model Context Protocol.
//!
//! [`McpServer`] serves one engine: tools (`tools`), resources and subscriptions to them
//! (`resources`, `subscriptions`), prompts (`prompts`), completions (`completions`), and
//! instructions that teach an agent to store its turns (`instructions.md`). It is served over
//! standard input and output ([`serve_stdio`]) or as the handler of an HTTP route ([`McpHttp`]).
//! Both speak the stateless protocol of 2026-07-28 and the older ones that begin with `initialize`.
//!
//! Invariants:
//!
//! - Every tool is one request of the engine; no rule of the tree lives here.
//! - What a caller may not access ([`AccessScope`]) is refused before the engine is asked.
//! - Every message is parsed by the core's strict JSON reader, over any transport: JSON that two
//!   readers could take for different values is refused. Numbers keep every digit, in arguments and
//!   in answers.
//! - Unknown arguments are refused, and so are files outside the allowed folders.
//! - Answers are bounded and say what was left out. Recorded text appears only in data fields.
//! - Only this crate knows the SDK (`rmcp`), whose version is pinned.
//!
//! Deliberately absent: listening, tokens, host names and origins, which belong to the HTTP server;
//! erasure, which no agent should be offered.

mod access_scope;
mod allowed_folders;
mod answer;
mod completions;
mod exact_integers;
mod http;
mod incoming_message;
mod mcp_error;
mod prompts;
mod record_json;
mod resources;
mod schema;
mod server;
mod shared_arguments;
mod stdio;
mod subscriptions;
mod token_cost;
mod tools;
mod typed_arguments;

pub use access_scope::AccessScope;
pub use allowed_folders::{AllowedFolders, FileAccessError};
pub use http::McpHttp;
pub use incoming_message::ExactArguments;
pub use server::{McpOptions, McpServer};
pub use stdio::{StdioError, serve_lines, serve_stdio};
pub use token_cost::{TokenCost, token_cost};
pub use tools::Toolset;

/// The instructions that a host gives its model before the first call.
pub const INSTRUCTIONS: &str = include_str!("instructions.md");
