//! What the HTTP client, the model transport and the PostgreSQL store share: which certificates
//! to trust ([`tls`]), when to try again ([`retry`]) and how to read server-sent events ([`sse`]).
//!
//! It is a crate of its own because it carries rustls to three crates that must not depend on each
//! other: `tine-client` compiles no database, `tine-postgres` no HTTP client (feature `http`).
//!
//! Invariants: every wait has a bound, every line and event has a bound, and randomness comes in
//! from outside. Deliberately absent: connections, requests and what an answer means.

pub mod retry;
pub mod sse;
pub mod tls;
