//! What goes into and comes out of Tine as text.
//!
//! [`bundle`] is Tine's own JSON Lines format: whole conversations with their hashes, out of one
//! store and into another; [`page`] shows one in a browser, and
//! [`export`] writes them as other programs read them. [`render`] makes a path into the request of a provider. [`redact`] takes
//! secrets out of what is about to be recorded.
//!
//! Nothing here decides what an operation means; that is the engine's. Nothing here opens a
//! socket or knows a terminal.

pub mod bundle;
pub mod export;
pub mod page;
pub mod redact;
pub mod render;
