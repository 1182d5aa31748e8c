//! Operations that change conversations, one file per family.

pub(crate) mod append;
mod bookmark;
mod branch;
pub(crate) mod conversation;
mod delete;
mod edit;
mod fork;
pub(crate) mod metadata;
mod project;
mod revert;
mod split;
pub(crate) mod undo;
