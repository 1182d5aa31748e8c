//! Tine over HTTP.
//!
//! [`Server`] listens, checks who asks (`access`), and answers: the REST routes (`api`), live
//! events (`events`), answers of models (`reply`), bundles (`transfer`), tools for agents (`mcp`), the API's description (`openapi`) and its reference
//! (`reference`), and the web page (`page`). Everything goes through the engine; no rule of the tree lives here.
//!
//! Connections are served by a few asynchronous threads that never wait for the store; what may
//! wait runs on threads of its own.

mod access;
mod api;
mod app;
pub mod assets;
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
mod replies;
mod reply;
mod request_origin;
mod room;
mod route;
mod serve;
mod sources;
mod transfer;
mod unread;
mod visited;
mod worker;

pub use access::{Token, TokenFile, TokenRule, token_digest};
pub use app::Options;
pub use request_origin::parse_network;
pub use serve::{Server, Stopper};

/// The API's description, as OpenAPI 3.1.
pub fn description() -> serde_json::Value {
    serve::description()
}
