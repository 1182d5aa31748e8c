//! A fair lock for writers, across processes.
//!
//! A second writer polls for SQLite's own lock, and under load some writer waits for seconds. Here
//! writers queue on two file locks. A writer takes `queue`, then `lock`, then releases `queue`; the
//! next write has to take `queue` again, so it cannot overtake a writer that already waits for
//! `lock`. The kernel releases both when a process dies.

use std::fs::File;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

use super::io;
use tine_store::Result;

pub(super) const QUEUE_FILE: &str = "writer.queue";
pub(super) const LOCK_FILE: &str = "writer.lock";

#[derive(Debug)]
pub(super) struct WriterLock {
    queue: File,
    lock: Arc<File>,
}

/// The right to write; released when dropped.
#[derive(Debug)]
pub(super) struct WriterLockGuard {
    lock: Arc<File>,
}

impl WriterLock {
    pub(super) fn open(folder: &Path) -> Result<Self> {
        let (queue, lock) =
            (open_lock_file(folder, QUEUE_FILE)?, open_lock_file(folder, LOCK_FILE)?);
        Ok(WriterLock { queue, lock: Arc::new(lock) })
    }

    /// Waits for the lock. The caller ensures that its process has one writer at a time.
    pub(super) fn acquire(&mut self) -> Result<WriterLockGuard> {
        let failed = |source| io("locking", Path::new(LOCK_FILE), source);
        self.queue.lock().map_err(failed)?;
        let locked = self.lock.lock();
        self.queue.unlock().map_err(failed)?;
        locked.map_err(failed)?;
        Ok(WriterLockGuard { lock: Arc::clone(&self.lock) })
    }
}

impl Drop for WriterLockGuard {
    fn drop(&mut self) {
        // On failure the lock is held until the process ends; it cannot be reported from here.
        self.lock.unlock().ok();
    }
}

/// Opens a lock file, creating it if it is missing. Locking does not require write permission, so
/// a read-only file is enough.
pub(super) fn open_lock_file(folder: &Path, name: &str) -> Result<File> {
    let path = folder.join(name);
    let opened = File::options().create(true).truncate(false).write(true).open(&path);
    let opened = opened.or_else(|error| match error.kind() {
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
            File::open(&path).map_err(|_| error)
        }
        _ => Err(error),
    });
    opened.map_err(|source| io("opening", &path, source))
}
