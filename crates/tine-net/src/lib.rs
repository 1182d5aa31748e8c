//! Network code that the HTTP client, the model transport and the PostgreSQL store share: trusted
//! certificates ([`tls`]), retries ([`retry`]) and server-sent events ([`sse`]).
//!
//! It is a separate crate because it brings rustls to three crates that must not depend on each
//! other: `tine-client` compiles no database, `tine-postgres` no HTTP client (feature `http`).
//!
//! Invariants: every wait, line and event has a maximum, and randomness can be injected. Not included:
//! connections, requests and the meaning of answers.

pub mod retry;
pub mod sse;
pub mod tls;
