//! Tests only: what the engine and the stores are tested with.
//!
//! - [`model`]: an independent implementation of the tree, as dumb as possible.
//! - [`steps`]: random sequences of operations that shrink well.
//! - [`machine`]: model = memory store = embedded store, step by step.
//! - [`database`]: a PostgreSQL that is started for tests and goes away with them.
//! - [`stores`]: temporary folders, and stores that count, repeat or refuse what the engine does.
//!
//! Nothing here is part of the product, and nothing here reads the machine's clock.

#![allow(missing_docs, reason = "for tests: most names say what a comment would repeat")]

pub mod action;
pub mod database;
pub mod machine;
pub mod model;
pub mod steps;
pub mod stores;
