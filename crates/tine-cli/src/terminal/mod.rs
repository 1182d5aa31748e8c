//! The terminal: where text goes, how wide and how colourful it may be.
//!
//! Stored text is data. Whatever of it would steer a terminal (escape sequences, cursor moves,
//! changes of writing direction) is shown and not obeyed: see [`text::visible`].

mod paint;
mod screen;
pub mod text;
mod time;

pub use paint::Paint;
pub(crate) use screen::{Paging, Screen};
pub(crate) use time::{precise_time, short_time};
