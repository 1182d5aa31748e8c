//! Text formats of conversations.
//!
//! - [`bundle`]: Tine's own JSON Lines format, with hashes, to move conversations between stores.
//! - [`html_page`]: a self-contained HTML page around a bundle.
//! - [`export`]: formats of other programs.
//! - [`render`]: a path as a request to a provider.
//! - [`redact`]: replaces secrets before messages are recorded.
//!
//! The crate contains no rules of operations (see the engine) and no network or terminal I/O.

pub mod bundle;
pub mod export;
pub mod html_page;

pub mod redact;
pub mod render;
