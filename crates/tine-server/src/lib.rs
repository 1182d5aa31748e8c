//! Tine over HTTP.
//!
//! [`Server`] listens, checks the caller (`access`) and answers: the REST routes (`api`), the change
//! feed (`events`), replies of models (`reply`), bundles (`transfer`), MCP (`mcp`), the OpenAPI
//! document (`openapi`) with its reference (`reference`), and the web page (`page`). Everything goes
//! through the engine; no rule of the tree is implemented here.
//!
//! Connections are served by a few asynchronous threads that never wait for the store; blocking
//! work runs on threads of its own.

mod access;
mod api;
mod app;
pub mod assets;
mod body_watch;
mod capacity;
pub mod demo;
mod events;
mod mcp;
mod metrics;
mod openapi;
mod page;
mod parameters;
mod problem;
mod rate;
mod reference;
mod reply;
mod request_origin;
mod route;
mod running_replies;
mod serve;
mod sources;
mod transfer;
mod visited;
mod worker;

pub use access::{Token, TokenFile, TokenRule, token_digest};
pub use app::Options;
pub use request_origin::parse_network;
pub use serve::{Server, Stopper};

/// Returns the OpenAPI 3.1 document of the API.
pub fn description() -> serde_json::Value {
    serve::description()
}
