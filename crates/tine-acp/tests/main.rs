//! The agent from outside: a client that writes lines and reads lines.

mod asking;
mod client;
mod endpoint;
mod forking;
mod fuzz;
mod hostile;
mod lifecycle;
mod models;
mod recording;
mod remembering;
