//! Asking a model to go on with a conversation, and recording what it says.
//!
//! A [`Reply`] asks a [`Model`] with the path to a turn and hands on each piece of the answer as it
//! comes. What was said by the end, however it ended, becomes a message ([`Reply::message`]) that
//! tells how it came about; [`Reply::record`] keeps it as the turn of an id that was promised.
//!
//! - `model`: who answers; `transcript`: a path as what a model is asked.
//! - `spoken`: what was said so far; `recording`: from the question to the record.
//!
//! Invariant: an answer is the child of its question and of nothing else. When others wrote to the
//! branch meanwhile, it goes to a branch of its own.
//!
//! Deliberately absent: which tools there are and what calling them does, how questions are
//! recorded, and every wire form.

mod model;
mod recording;
mod spoken;
mod transcript;

pub use model::{Ended, Model};
pub use recording::{Listener, Reply, told};
pub use spoken::Spoken;
pub use transcript::Asked;
