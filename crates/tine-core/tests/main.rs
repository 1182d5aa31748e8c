//! One binary for all tests of the crate: linking is what costs time.
#![allow(clippy::unwrap_used)]

mod facts;
mod hashes;
mod ids;
mod json;
mod merging;
mod messages;
mod references;
mod texts;
mod tokenizer;
mod usage;
