//! The server from outside, with the SDK's own client, in either era.

mod bounds;
mod cost;
mod following;
mod harness;
mod hostile;
mod http;
mod resources;
mod schemas;
mod store;
mod strict;
mod tools;
