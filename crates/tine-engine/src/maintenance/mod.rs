//! Work on a whole store: verifying, repairing and erasing.

pub(crate) mod conversation_pages;
pub(crate) mod expected;
pub(crate) mod purge;
pub(crate) mod repair;
pub(crate) mod sweep;
pub(crate) mod verify;
