//! The one test binary of this crate.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on stops here")]

mod bundle;
mod fuzz;
mod html_page;
mod redact;
mod render;
