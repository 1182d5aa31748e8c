//! Tests of the agent through its protocol, with a client that writes and reads lines.

mod forking;
mod fuzz;
mod lifecycle;
mod malformed_input;
mod model_endpoint;
mod model_tools;
mod models;
mod oversized_lines;
mod prompts;
mod test_client;
