//! Temporary folders, and stores that watch what the engine does to them.

mod counting;
mod failing;
mod folder;
mod packing;
mod twice;

pub use self::counting::{Cost, Counting};
pub use self::failing::Failing;
pub use self::folder::TempFolder;
pub use self::packing::AlwaysPacking;
pub use self::twice::Twice;
