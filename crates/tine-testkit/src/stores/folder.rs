//! A folder that goes away with its owner.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// A new folder, in memory where the system has such a place: durability is not what most tests
/// are about, and syncing to a disk is most of what a store does.
#[derive(Debug)]
pub struct TempFolder(PathBuf);

static MADE: AtomicU64 = AtomicU64::new(0);

impl TempFolder {
    pub fn new() -> Self {
        let shared = Path::new("/dev/shm");
        let base = if shared.is_dir() { shared.to_owned() } else { std::env::temp_dir() };
        let n = MADE.fetch_add(1, Ordering::SeqCst);
        let folder = base.join(format!("tine-test-{}-{n}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("the temporary folder can be written");
        TempFolder(folder)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Default for TempFolder {
    fn default() -> Self {
        TempFolder::new()
    }
}

impl Drop for TempFolder {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).ok();
    }
}
