//! Whose turn it is to write, across processes.
//!
//! SQLite lets a second writer poll for the lock; under load some writer then waits for seconds.
//! Here writers queue on two file locks. A writer takes `queue`, then `lock`, then gives `queue`
//! back; whoever has just written must pass the queue again and so cannot overtake the writer
//! that already waits for `lock`. The kernel releases both when a process dies.

use std::fs::File;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

use super::io;
use tine_store::Result;

pub(super) const QUEUE_FILE: &str = "writer.queue";
pub(super) const LOCK_FILE: &str = "writer.lock";

#[derive(Debug)]
pub(super) struct Turnstile {
    queue: File,
    lock: Arc<File>,
}

/// The right to write; given back when dropped.
#[derive(Debug)]
pub(super) struct Pass {
    lock: Arc<File>,
}

impl Turnstile {
    pub(super) fn open(folder: &Path) -> Result<Self> {
        let (queue, lock) = (open_lock(folder, QUEUE_FILE)?, open_lock(folder, LOCK_FILE)?);
        Ok(Turnstile { queue, lock: Arc::new(lock) })
    }

    /// Waits for the turn. The caller makes sure that its own process has one writer at a time.
    pub(super) fn enter(&mut self) -> Result<Pass> {
        let failed = |source| io("locking", Path::new(LOCK_FILE), source);
        self.queue.lock().map_err(failed)?;
        let entered = self.lock.lock();
        self.queue.unlock().map_err(failed)?;
        entered.map_err(failed)?;
        Ok(Pass { lock: Arc::clone(&self.lock) })
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        // A failure here leaves the lock to the end of the process; there is nobody to tell.
        self.lock.unlock().ok();
    }
}

/// Opens a lock file, making it if it is missing. Locking needs no right to write: a file that
/// may only be read will do.
pub(super) fn open_lock(folder: &Path, name: &str) -> Result<File> {
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
