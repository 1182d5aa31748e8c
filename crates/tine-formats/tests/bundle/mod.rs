//! The bundle: its form, what is refused, what the Python script finds, and the way through
//! both stores.

mod delta;
mod form;
mod knowledge;
mod page;
mod random;
mod refusals;
mod sample;
mod script;
mod stories;
mod transfer;
