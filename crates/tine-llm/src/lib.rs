//! Language models: a client for several providers, and an interpreter built on it.
//!
//! All calls to models go through this crate. A [`Provider`] is a model's endpoint with its limits;
//! a [`Model`] sends requests to it and returns the answer as a whole ([`Model::complete`]) or
//! streams it ([`Model::stream`]); a [`ModelInterpreter`] extracts facts from texts with a model.
//!
//! - `provider`, `key`: the configuration; and keys, which are read from the environment for each
//!   call and never stored or shown.
//! - `wire`: the three protocols, as pure functions.
//! - `transport`: HTTP, bounded in time and size.
//! - `model`, `attempt`, `spending`: attempts, backoff and the budget.
//! - `interpreter`: prompts, and findings parsed from answers.
//! - `reply`: answers a turn of a conversation and records the answer.
//!
//! Not included: images, reading configuration files, and an async runtime: a call is a
//! blocking function.

mod attempt;
mod chat;
mod error;
mod interpreter;
mod key;
mod model;
mod provider;
pub mod reply;
mod spending;
pub mod tokens;
mod transport;
mod wire;

pub use chat::{
    CallTrace, Chat, ChatMessage, Completion, Delta, Finish, ResponseFormat, Speaker, Tool,
    ToolCall,
};
pub use error::{ModelError, Truncation};
pub use interpreter::{EntityType, ModelInterpreter};
pub use model::{Environment, Model, ModelRuntime, Random, Sleep};
pub use provider::{Budget, ConfigError, Price, Protocol, Provider, ProviderSettings};
pub use spending::Spending;
pub use tine_net::retry::Jitter;
