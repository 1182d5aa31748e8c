//! Temporary folders, and stores that watch what the engine does to them.

mod counting;
mod folder;
mod twice;

pub use self::counting::{Cost, Counting};
pub use self::folder::TempFolder;
pub use self::twice::Twice;
