//! Tine as an agent: the Agent Client Protocol, version 1, in which every session is a branch.
//!
//! An [`Agent`] answers a client over lines of JSON-RPC ([`serve`]), with a [`Responder`] that is
//! configured or with the built-in one that repeats what it is told. A session's id is its
//! branch's id, a message's id is its turn's id; so forking at a message is the engine's own
//! fork, costs the same anywhere, and every id stays valid in every descendant.
//!
//! - `wire`, `json`, `lines`, `skim`, `serve`: JSON-RPC over exact values; lines in and out, and
//!   the outline of a line that cannot be read as a whole; one loop that dispatches requests.
//! - `agent`: the methods, each a few lines over the rest.
//! - `anchor`: where a fork is cut, in the dialects that clients speak.
//! - `sessions`, `listing`: sessions as branches; which are open here and what runs in them.
//! - `prompt`: a turn from question to answer, which `tine_llm::reply` asks for; `memory`: what a model
//!   may look up and store on the way.
//! - `branches`, `open_calls`: what both the agent and the recorder ask of the store.
//! - `recorder`: the same for any other agent, which is recorded.
//! - `show`: turns as updates, for replays and for what is being said.
//!
//! Invariants:
//!
//! - No answer before the commit: whatever a response tells of is on disk.
//! - A question is recorded before a model is asked; what a model said until it was stopped is
//!   kept, as a turn that is `partial`.
//! - A fork ends exactly on its anchor or is refused. An anchor is a message that is recorded, of
//!   this session; nothing is ever forked whole because an anchor was not understood.
//! - Forking asks no model.
//! - Nothing but the protocol is written to the output.
//! - Each line is parsed once, from its bytes, by the core's strict reader; what is stored and shown
//!   is that value. The agent refuses a line that breaks the reader's rules; the recorder passes it
//!   on and labels what it could not record.
//!
//! The official crate of the protocol is not used. Its typed `session/fork` drops `messageId`, so
//! that an agent built on it forks everything and reports success; its typed capabilities drop
//! `atMessageId`; and its majors follow each other within weeks. What is left after replacing
//! these types is a loop over lines, which is small enough to be here and to be read. Messages stay
//! untyped [`Json`](tine_core::Json), so that what this version of the protocol does not know yet is
//! not lost on the way.
//!
//! Deliberately absent: MCP servers (declined, and said so), files and terminals of the
//! client, images and sound, authentication, and any runtime: a request is a thread.

mod agent;
mod anchor;
mod branches;
mod json;
mod lines;
mod listing;
mod memory;
mod open_calls;
mod prompt;
mod recorder;
mod serve;
mod sessions;
mod show;
mod skim;
mod wire;

pub use agent::Agent;
pub use lines::LINE_BYTES;
pub use recorder::Recorder;
pub use serve::serve;
pub use tine_llm::reply::Responder;
