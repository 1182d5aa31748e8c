//! The one test binary of this crate.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on stops here")]

mod drawing;
mod fixtures;
mod following;
mod fuzz;
mod hostile;
mod roundtrip;
