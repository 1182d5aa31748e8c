//! Stores in temporary folders.

use std::ops::Deref;
use std::path::Path;

use tempfile::TempDir;
use tine_sqlite::SqliteStore;

pub(crate) struct Folder(TempDir);

impl Folder {
    pub(crate) fn new() -> Self {
        Folder(TempDir::new().unwrap())
    }

    pub(crate) fn path(&self) -> std::path::PathBuf {
        self.0.path().join("store")
    }

    /// Opens the store; the folder is deleted after it is closed.
    pub(crate) fn open(self) -> Opened {
        Opened { store: SqliteStore::open(&self.path()).unwrap(), _folder: self }
    }
}

pub(crate) struct Opened {
    store: SqliteStore,
    _folder: Folder,
}

impl Deref for Opened {
    type Target = SqliteStore;

    fn deref(&self) -> &Self::Target {
        &self.store
    }
}

/// Returns the bytes of every file in a folder.
pub(crate) fn all_bytes(folder: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        bytes.extend(std::fs::read(entry.unwrap().path()).unwrap());
    }
    bytes
}
