//! What turns are about, commits, and what can be done with them.

mod commit;
mod diff;
mod fact;
mod merge;
mod origin;
mod rings;

pub use commit::*;
pub use diff::*;
pub use fact::*;
pub use merge::*;
pub use origin::*;
pub use rings::*;
