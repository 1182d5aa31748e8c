//! Whose turn it is to write, across processes.
//!
//! SQLite lets a second writer poll for the lock; under load some writer then waits for seconds.
//! Here writers queue on two file locks. A writer takes `queue`, then `lock`, then gives `queue`
//! back; whoever has just written must pass the queue again and so cannot overtake the writer
//! that already waits for `lock`. The kernel releases both when a process dies.

use std::fs::File;
use std::path::Path;

use super::io;
use crate::Result;

const QUEUE_FILE: &str = "writer.queue";
pub(super) const LOCK_FILE: &str = "writer.lock";

/// The files that the turnstile keeps in a store's folder.
pub(super) const FILES: [&str; 2] = [QUEUE_FILE, LOCK_FILE];

#[derive(Debug)]
pub(super) struct Turnstile {
    queue: File,
    lock: File,
}

/// The right to write; given back when dropped.
#[derive(Debug)]
pub(super) struct Pass {
    lock: File,
}

impl Turnstile {
    pub(super) fn open(folder: &Path) -> Result<Self> {
        let open = |name: &str| {
            let path = folder.join(name);
            File::options()
                .create(true)
                .truncate(false)
                .write(true)
                .open(&path)
                .map_err(|source| io("opening", &path, source))
        };
        Ok(Turnstile { queue: open(QUEUE_FILE)?, lock: open(LOCK_FILE)? })
    }

    /// Waits for the turn. The caller makes sure that its own process has one writer at a time.
    pub(super) fn enter(&mut self) -> Result<Pass> {
        let failed = |source| io("locking", Path::new(LOCK_FILE), source);
        self.queue.lock().map_err(failed)?;
        let entered = self.lock.lock().and_then(|()| self.lock.try_clone());
        self.queue.unlock().map_err(failed)?;
        Ok(Pass { lock: entered.map_err(failed)? })
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        // A failure here leaves the lock to the end of the process; there is nobody to tell.
        self.lock.unlock().ok();
    }
}
