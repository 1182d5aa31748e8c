//! Meaning and commits: what turns are about, stretches of turns sealed with it, and what can be
//! done with those: compare, merge, blame, bisect, drift.
//!
//! Invariants:
//!
//! - A commit is kept under its hash and never changes; an erasure takes its facets and leaves
//!   the rest. Whether it is there, which one is the last of a branch, and who signed it are
//!   entries of their own, which undo and redo take away and bring back.
//! - Windows walk the raw chain. What is known at a commit is what the observations on the path
//!   say, and beside them only what merges and decisions brought.
//! - Merging never interleaves turns and never drops a side: what no rule decides is a conflict,
//!   kept in the commit and carried on until somebody decides it.
//! - Rings are a cache: they can be thrown away at any time and are never part of a hash that
//!   turns have.

mod align;
mod bisect;
mod blame;
mod book;
mod changes;
mod diff;
mod drift;
mod facets;
mod inject;
mod known;
mod list;
mod make;
mod merging;
mod rings;
mod signing;
mod summary;
pub(crate) mod upkeep;
mod window;

pub use bisect::{NoFirst, Verdict, bisect_steps};
