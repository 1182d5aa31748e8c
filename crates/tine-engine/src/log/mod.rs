//! The operation log: running a change as one entry, reading entries, and the change feed.

pub(crate) mod activity;
pub(crate) mod canonical_writer;
pub(crate) mod change;
pub(crate) mod feed;
pub(crate) mod history;
pub(crate) mod mutation;
