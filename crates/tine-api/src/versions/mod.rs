//! What turns are about, and commits: rings, commits, diffs, merges, blame, bisect, drift.

mod commits;
mod compared;
mod requests;
mod rings;

pub use commits::*;
pub use compared::*;
pub use requests::*;
pub use rings::*;
