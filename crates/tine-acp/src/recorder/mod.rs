//! A recorder in front of any other agent: `tine acp -- COMMAND…`.
//!
//! The client starts it in place of the agent, and it starts the agent. Whatever the two say passes
//! through as raw lines, at once and untouched, but for the ids of requests, sessions and messages:
//! sessions are branches of the store and messages its turns, as with Tine's own agent. What is said is
//! recorded twice, in one transaction: the lines as they came, as a source, and the turn that was
//! made of them, which names it.
//!
//! - `relay`: what stands between the two; `client` and `agent` are what comes from either side.
//! - `link`: the agent as a process, and who waits for which of its answers.
//! - `session`: an open session: its branch, and the agent's own id of it.
//! - `derive`: turns out of updates; pure. `events`: the lines behind them. `keep`: storing both.
//! - `message`: a line and what it says; `splice`: replacing ids in the bytes of a line.
//! - `gap`: what stands for content that is not recorded, because a line is too long or breaks the
//!   rules of the strict reader.
//! - `policy`: how a session of the agent comes to hold what a branch holds: natively, or by a
//!   `seed`, which is a record of the conversation in front of the first question.
//! - `roster`: which sessions of the agent are known here; `adopt`: those that it had before.
//! - `capabilities`: what the agent cannot do and the recorder does for it.
//!
//! Invariants:
//!
//! - A chunk is on its way to the client before it is recorded; but nothing that begins after a
//!   message or a call has ended is, before that is on disk. The same holds for the answer to a
//!   prompt, and a question is on disk before the agent sees it.
//! - An agent's session is only gone on with where it holds exactly what the branch holds. Which
//!   one does is told by the last turn of the branch; the roster tells whether its id still means
//!   that session.
//! - A whole native fork is never used for an earlier message.
//! - A seed is nobody's words: it is in no turn, no title and no list. What a context that was made
//!   from one lacks is told to the client and noted with the question.
//! - Values of `env` and `headers` are never stored, whatever else is.
//!
//! Deliberately absent: anything that the agent says between the lines. What has no place in a turn
//! (modes, commands, configuration) is in the recorded lines alone.

mod adopt;
mod agent;
mod capabilities;
mod client;
mod derive;
mod events;
mod gap;
mod keep;
mod link;
mod message;
mod policy;
mod relay;
mod roster;
mod seed;
mod session;
mod splice;

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::sync::Arc;

use tine_core::Reference;
use tine_engine::{Call, Engine};

/// Records what a client and an agent say to each other.
pub struct Recorder {
    /// Where it is recorded.
    pub engine: Engine,
    /// By whom, and in which project.
    pub call: Call,
    /// How the agent is started: a program and its arguments.
    pub command: Vec<OsString>,
    /// Whether secrets are taken out of what is recorded.
    pub redact: bool,
    /// The turn from which the first new session goes on.
    pub from: Option<Reference>,
    /// The longest line that is taken from either side; [`LINE_BYTES`](crate::LINE_BYTES).
    pub line_bytes: usize,
}

impl Recorder {
    /// Starts the agent and stands before it until the client closes the input.
    pub fn record(self, input: impl Read, output: impl Write + Send + 'static) -> io::Result<()> {
        client::listen(&Arc::new(relay::Relay::new(self, output)), input)
    }
}
