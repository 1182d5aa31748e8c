//! Language models: one way to ask any of them, and the interpreter that does.
//!
//! This is the one place that talks to models. A [`Provider`] says which one, where and within
//! which bounds; a [`Model`] asks it, as a whole ([`Model::complete`]) or piece by piece
//! ([`Model::stream`]); a [`ModelInterpreter`] reads facts out of texts that way.
//!
//! - `provider`, `key`: the configuration; keys, which come from the environment for each call and
//!   are stored and shown nowhere.
//! - `wire`: the three protocols, as functions of bytes.
//! - `transport`: HTTP, bounded in time and size.
//! - `model`, `attempt`, `ledger`: tries, pauses and the budget around them.
//! - `interpreter`: prompts, and findings out of answers.
//!
//! Deliberately absent: tools, images, conversations that are kept, a file that is read, and any
//! runtime: a call is a blocking function.

mod attempt;
mod chat;
mod error;
mod interpreter;
mod key;
mod ledger;
mod model;
mod provider;
pub mod reply;
pub mod tokens;
mod transport;
mod wire;

pub use chat::{Chat, Completion, Delta, Finish, Form, Said, Speaker, Tool, ToolCall, Trail};
pub use error::{Cut, ModelError};
pub use interpreter::{EntityType, ModelInterpreter};
pub use ledger::Spent;
pub use model::{Environment, Model, Outside, Random, Sleep};
pub use provider::{Budget, ConfigError, Kind, Price, Provider, Settings};
pub use tine_net::retry::Jitter;
