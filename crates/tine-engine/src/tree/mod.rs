//! Reading the tree: the tree as shown, references, paths, and the listings made from them.

pub(crate) mod outline;
pub(crate) mod overview;
pub(crate) mod path;
pub(crate) mod resolve;
pub(crate) mod shown;
mod stats;
pub(crate) mod topology;
mod usage;
pub(crate) mod views;
