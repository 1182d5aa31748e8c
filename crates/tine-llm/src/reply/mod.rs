//! Answers turns of a conversation with a model and records the answers.
//!
//! A [`Reply`] asks a [`Responder`] with the path to a turn and hands on each piece of the answer as it
//! comes. What was said by the end, however it ended, becomes a message ([`Reply::message`]) that
//! tells how it came about; [`Reply::record`] keeps it as the turn of an id that was promised.
//!
//! - `model`: who answers; `transcript`: a path as what a model is asked.
//! - `content`: what was said so far; `recording`: from the question to the record.
//!
//! Invariant: an answer is the child of its question and of nothing else. When others wrote to the
//! branch meanwhile, it goes to a branch of its own.
//!
//! Deliberately absent: which tools there are and what calling them does, how questions are
//! recorded, and every wire form.

mod content;
mod recording;
mod responder;
mod transcript;

pub use content::ReplyContent;
pub use recording::{Listener, Reply, source_info};
pub use responder::{ReplyEnd, Responder};
pub use transcript::ReplyPrompt;
