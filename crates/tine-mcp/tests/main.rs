//! The server from outside, with the SDK's own client, in either era.

mod cost;
mod harness;
mod store;
