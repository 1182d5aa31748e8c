//! A recorder for any other agent: `tine acp -- COMMAND…`.
//!
//! The client starts the recorder in place of the agent, and the recorder starts the agent. Lines
//! pass between them at once and unchanged, except for the ids of requests, sessions and messages:
//! as with Tine's own agent, sessions are branches of the store and messages are turns. Everything
//! is recorded twice, in one transaction: the lines as they came, as a source, and the turn derived
//! from them, which names that source.
//!
//! - `relay`: the shared state. `client_messages` and `agent_messages` handle what arrives from
//!   either side.
//! - `agent_process`: the agent's process, and the requests it has not answered yet.
//! - `recorded_sessions`: open sessions, with the client's and the agent's ids.
//! - `turn_builder`: builds turns from updates; pure. `event_lines`: the lines they were built
//!   from. `turn_storage`: stores both.
//! - `raw_message`: a line and its parsed value. `json_splice`: replaces ids in the bytes of a
//!   line.
//! - `gap`: the placeholder for content that is not recorded because a line is too long or breaks
//!   the rules of the strict reader.
//! - `session_opening`: finds or creates the agent session that continues a branch. `context_seed`:
//!   the transcript that a new agent session gets with the first question.
//! - `session_registry`: which agent sessions are known to the store. `unrecorded_sessions`: those
//!   that the agent had before it was recorded.
//! - `capabilities`: what the agent cannot do, and the recorder does for it.
//!
//! Invariants:
//!
//! - A chunk is sent to the client before it is recorded. Whatever follows a completed message or
//!   call is sent only once that message or call is on disk. The response to a prompt also waits
//!   for this, and a question is on disk before the agent sees it.
//! - An agent session is continued only if it holds exactly what the branch holds. The branch's
//!   last turn names the session; the registry tells whether its id still means that session.
//! - A native fork of a whole session is never used to fork at an earlier message.
//! - A seed is not part of the conversation: it is in no turn, title or list. What it leaves out is
//!   reported to the client and recorded with the question.
//! - Values of `env` and `headers` are never stored.
//!
//! Deliberately absent: interpreting what has no place in a turn (modes, commands, configuration).
//! It is only in the recorded lines.

mod agent_messages;
mod agent_process;
mod capabilities;
mod client_messages;
mod context_seed;
mod event_lines;
mod gap;
mod json_splice;
mod raw_message;
mod recorded_sessions;
mod relay;
mod session_opening;
mod session_registry;
mod turn_builder;
mod turn_storage;
mod unrecorded_sessions;

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::sync::Arc;

use tine_core::Reference;
use tine_engine::{Call, Engine};

/// Records the conversation between a client and an agent.
pub struct Recorder {
    /// The store to record in.
    pub engine: Engine,
    /// The actor and project of what is recorded.
    pub call: Call,
    /// The program and arguments that start the agent.
    pub command: Vec<OsString>,
    /// Whether secrets are redacted from what is recorded.
    pub redact: bool,
    /// The turn that the first new session continues from.
    pub from: Option<Reference>,
    /// The longest line accepted from either side; usually [`LINE_BYTES`](crate::LINE_BYTES).
    pub line_bytes: usize,
}

impl Recorder {
    /// Starts the agent and relays until the client closes the input.
    pub fn record(self, input: impl Read, output: impl Write + Send + 'static) -> io::Result<()> {
        client_messages::listen(&Arc::new(relay::Relay::new(self, output)), input)
    }
}
