//! Models over real sockets: an endpoint on the loopback that the tests start and script.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on stops here")]

mod answers;
mod budget;
mod configuration;
mod endpoint;
mod faults;
mod interpreting;
mod keys;
mod protocols;
mod reading;
mod streams;
mod tokens;
mod tools;
mod tries;
