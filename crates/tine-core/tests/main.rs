//! One binary for all tests of the crate: linking is what costs time.

mod hashes;
mod ids;
mod json;
mod messages;
mod references;
mod texts;
