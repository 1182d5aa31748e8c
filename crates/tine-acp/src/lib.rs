//! Tine as an agent of the Agent Client Protocol, version 1: every session is a branch.
//!
//! An [`Agent`] answers a client over lines of JSON-RPC ([`serve`]). Replies come from a
//! [`Responder`]: a configured model, or the built-in echo. A session's id is its branch's id and a
//! message's id is its turn's id. Forking at a message is therefore the engine's own fork: it costs
//! the same anywhere, and every id stays valid in every descendant.
//!
//! - `json_rpc`, `json_macro`, `line_io`, `outline`, `serve`: JSON-RPC over exact values; reading
//!   and writing lines; the outline of a line that cannot be parsed; the loop that dispatches
//!   requests.
//! - `agent`: the methods of the protocol.
//! - `fork_point`: the message to fork at, in the dialects that clients use.
//! - `open_sessions`, `session_list`, `session_branches`: which sessions are open in this process
//!   and what runs in them, how they are listed, and their branches in the store.
//! - `prompt`: one prompt, from question to answer. `model_tools`: what a model may search and
//!   store meanwhile. `unanswered_calls`: results for tool calls that have none.
//! - `session_updates`: turns as `session/update` notifications.
//! - `recorder`: records any other agent.
//!
//! Invariants:
//!
//! - No response before the commit: everything a response names is on disk.
//! - A question is recorded before the model is asked. What a model said before it was stopped is
//!   kept as a `partial` turn.
//! - A fork ends exactly at the named message or is refused. The message must be a recorded message
//!   of that session. A fork point that cannot be understood never forks the whole session.
//! - Forking asks no model.
//! - Nothing but the protocol is written to the output.
//! - Each line is parsed once, by the core's strict reader, and that value is what is stored and
//!   shown. The agent refuses a line that breaks the reader's rules; the recorder forwards it and
//!   labels what it could not record.
//!
//! The official crate of the protocol is not used. Its typed `session/fork` drops `messageId`, so
//! an agent built on it forks the whole session and reports success; its typed capabilities drop
//! `atMessageId`; and major versions follow each other within weeks. Without those types, what
//! remains is a small loop over lines. Messages stay untyped [`Json`](tine_core::Json), so members
//! that this version of the protocol does not know are not lost.
//!
//! Deliberately absent: MCP servers (declined with a note), the client's files and terminals,
//! images and audio, authentication, and any async runtime: each request runs on a thread.

use std::sync::{Mutex, MutexGuard, PoisonError};

mod agent;
mod fork_point;
mod json_macro;
mod json_rpc;
mod line_io;
mod model_tools;
mod open_sessions;
mod outline;
mod prompt;
mod recorder;
mod serve;
mod session_branches;
mod session_list;
mod session_updates;
mod unanswered_calls;

pub use agent::Agent;
pub use line_io::LINE_BYTES;
pub use recorder::Recorder;
pub use serve::serve;
pub use tine_llm::reply::Responder;

/// Locks a mutex, even one that a panicking thread has poisoned.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
