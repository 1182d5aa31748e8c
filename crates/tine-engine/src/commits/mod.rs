//! Meaning and commits: what turns are about, commits of ranges of turns, and operations on
//! commits: compare, merge, blame, bisect, drift.
//!
//! Invariants:
//!
//! - A commit is kept under its hash and never changes; an erasure removes its facets and leaves
//!   the rest. Its listing, the head of its branch and its signature are records of their own,
//!   which undo and redo remove and restore.
//! - Windows walk the raw chain. What is known at a commit is what the observations on the path
//!   say, plus what merges and resolutions added.
//! - Merging never interleaves turns and never drops a side: what no rule decides is a conflict,
//!   kept in the commit and inherited until it is resolved.
//! - Rings are a cache: they can be thrown away at any time and are never part of a hash that
//!   turns have.

mod align;
mod bisect;
mod blame;
mod changes;
mod commit_graph;
pub(crate) mod commit_maintenance;
mod diff;
mod drift;
mod facets;
mod inject;
mod list;
mod make;
mod merging;
mod path_facts;
mod rings;
mod signing;
mod summary;
mod window;

pub use bisect::{BisectVerdict, NoFirst, bisect_range};
