//! Shared and exclusive access to the store's files.
//!
//! On POSIX, closing *any* handle of a file drops every lock that the process holds on it.
//! SQLite's locks on `tine.db` and `tine.db-shm` are of that kind. Opening and closing one of these
//! files in a process that has the store open silently drops SQLite's locks; the next process that
//! closes the store then considers itself the last one, deletes the log, and acknowledged writes
//! are lost.
//!
//! So there is one rule: *a file of SQLite's is opened directly only under [`ExclusiveAccess`]*,
//! and closed before that ends. Functions that open raw files take an [`ExclusiveAccess`] as proof.
//!
//! - Every open store holds [`SharedAccess`], from before its first connection until after its
//!   last: closing the last connection empties the log.
//! - [`ExclusiveAccess`] holds the same lock exclusively, so that neither this process nor another
//!   has the store open.
//! - Both are acquired under the writer lock, and exclusive access never outlives it. If the store
//!   is open elsewhere, its files have therefore been inspected, and no process can get between the
//!   inspection and the first connection.
//!
//! The lock is a `flock` lock and belongs to its handle: closing other handles of the file does not
//! drop it. The kernel releases it when the process dies.

use std::fs::{File, TryLockError};
use std::path::Path;

use super::files::is_denied;
use super::io;
use super::writer_lock::{WriterLock, WriterLockGuard, open_lock_file};
use tine_store::{Result, StoreError};

/// The lock file. Its name is part of the format.
pub(super) const ACCESS_LOCK_FILE: &str = "users.lock";

/// The access lock of a store, not yet acquired.
#[derive(Debug)]
pub(super) struct StoreLock {
    lock: FileLock,
}

/// Held while a store is open. Dropped after the last connection.
#[derive(Debug)]
pub(super) struct SharedAccess {
    _lock: FileLock,
}

/// Proof that no process has the store open, valid under the writer lock.
#[derive(Debug)]
pub(super) struct ExclusiveAccess<'p> {
    lock: Option<&'p FileLock>,
    _writer: Option<&'p WriterLockGuard>,
}

impl Drop for ExclusiveAccess<'_> {
    fn drop(&mut self) {
        if let Some(lock) = self.lock {
            lock.unlock();
        }
    }
}

#[derive(Debug)]
struct FileLock(File);

impl FileLock {
    fn unlock(&self) {
        // On failure the lock is held until the handle is closed; it cannot be reported from here.
        self.0.unlock().ok();
    }
}

impl Drop for FileLock {
    fn drop(&mut self) {
        // A process forked just now may share the handle: closing it would not release the lock.
        self.unlock();
    }
}

impl StoreLock {
    pub(super) fn open(folder: &Path) -> Result<Self> {
        Ok(StoreLock { lock: FileLock(open_lock_file(folder, ACCESS_LOCK_FILE)?) })
    }

    /// Acquires shared access. If the store is not open elsewhere, `inspect` runs first, with
    /// exclusive access.
    pub(super) fn acquire_shared(
        self,
        writer: &WriterLockGuard,
        inspect: impl FnOnce(&ExclusiveAccess<'_>) -> Result<()>,
    ) -> Result<SharedAccess> {
        match self.lock.0.try_lock() {
            Ok(()) => {
                let exclusive = ExclusiveAccess { lock: Some(&self.lock), _writer: Some(writer) };
                inspect(&exclusive)?;
                // No other process gets exclusive access before the next lock: it needs the writer lock.
                drop(exclusive);
            }
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(source)) => return Err(failed(source)),
        }
        self.lock.0.lock_shared().map_err(failed)?;
        Ok(SharedAccess { _lock: self.lock })
    }

    /// Acquires exclusive access; fails if the store is open.
    pub(super) fn acquire_exclusive<'p>(
        &'p self,
        writer: &'p WriterLockGuard,
        folder: &Path,
    ) -> Result<ExclusiveAccess<'p>> {
        match self.lock.0.try_lock() {
            Ok(()) => Ok(ExclusiveAccess { lock: Some(&self.lock), _writer: Some(writer) }),
            Err(TryLockError::WouldBlock) => Err(StoreError::InUse { path: folder.to_owned() }),
            Err(TryLockError::Error(source)) => Err(failed(source)),
        }
    }
}

impl ExclusiveAccess<'static> {
    /// Returns exclusive access to a store without lock files that cannot be written: a process
    /// that can write would have created them.
    pub(super) fn without_locks() -> Self {
        ExclusiveAccess { lock: None, _writer: None }
    }
}

/// Opens the locks of a store; `None` if they do not exist and cannot be created.
pub(super) fn open_locks(folder: &Path) -> Result<Option<(WriterLock, StoreLock)>> {
    let locks =
        WriterLock::open(folder).and_then(|writers| Ok((writers, StoreLock::open(folder)?)));
    match locks {
        Ok(locks) => Ok(Some(locks)),
        Err(error) if is_denied(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

fn failed(source: std::io::Error) -> StoreError {
    io("locking", Path::new(ACCESS_LOCK_FILE), source)
}
