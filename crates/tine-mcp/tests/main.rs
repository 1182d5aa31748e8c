//! The server through its protocol, with the SDK's own client, in either protocol era.

mod answer_size;
mod exact_json;
mod harness;
mod http;
mod malformed_input;
mod resources;
mod restored_turns;
mod schemas;
mod subscriptions;
mod token_cost;
mod tools;
