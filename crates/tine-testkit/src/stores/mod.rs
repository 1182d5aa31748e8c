//! Temporary folders, and stores that watch what the engine does to them.

mod counting;
mod failing;
mod folder;
mod packing;
mod repeating;

pub use self::counting::{CountingStore, RecordCost};
pub use self::failing::FailingStore;
pub use self::folder::TempFolder;
pub use self::packing::PackingStore;
pub use self::repeating::RepeatingStore;
