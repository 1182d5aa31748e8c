//! Terminal output: pager, width and colours.
//!
//! Stored text is untrusted. Escape sequences, cursor movement and bidirectional controls are made
//! visible and not passed on: see [`text::visible`].

mod paint;
mod screen;
pub mod text;
mod time;

pub use paint::Paint;
pub(crate) use screen::{Paging, Screen};
pub(crate) use time::{precise_time, short_time};
