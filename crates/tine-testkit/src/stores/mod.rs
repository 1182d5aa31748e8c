//! Temporary folders, and stores that watch what the engine does to them.

mod counting;
mod folder;
mod packing;
mod twice;

pub use self::counting::{Cost, Counting};
pub use self::folder::TempFolder;
pub use self::packing::AlwaysPacking;
pub use self::twice::Twice;
