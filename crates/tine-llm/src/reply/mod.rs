//! Answers turns of a conversation with a model and records the answers.
//!
//! A [`Reply`] prompts a [`Responder`] with the path to a turn and passes on each piece of the answer
//! as it arrives. The answer, however it ended, becomes a message with its provenance
//! ([`Reply::message`]); [`Reply::record`] appends it under an id that was announced before.
//!
//! - `responder`: a model, or an echo; `transcript`: the prompt of a path.
//! - `content`: the answer so far; `recording`: from the question to the record.
//!
//! Invariant: an answer is a child of its question. If the branch has moved meanwhile, the answer
//! goes to a branch of its own.
//!
//! Not included: tools and what they do, how questions are recorded, and wire formats.

mod content;
mod recording;
mod responder;
mod transcript;

pub use content::ReplyContent;
pub use recording::{Listener, Reply, source_info};
pub use responder::{ReplyEnd, Responder};
pub use transcript::ReplyPrompt;
