//! Who has the store open, and whether anybody has.
//!
//! On POSIX, closing *any* handle of a file drops every lock that the process holds on it.
//! SQLite's locks on `tine.db` and `tine.db-shm` are of that kind. A single look at one of these
//! files, in a process that has the store open, takes its locks away without a word; the next
//! process that closes the store then takes itself for the last one, deletes the log, and what
//! was acknowledged meanwhile is gone.
//!
//! So there is one rule: *nobody opens a file of SQLite's with a handle of their own unless they
//! are [`Alone`]*, and whoever does closes it before that ends. Functions that open raw files
//! take an [`Alone`] to prove it.
//!
//! - Everybody who has the store open is a [`User`], from before the first connection until after
//!   the last one: closing the last connection empties the log.
//! - Alone is who holds the same lock exclusively. There is then no user, in this process or in
//!   another.
//! - Both are entered inside the turnstile, and who is alone stays inside. So whoever finds a user
//!   knows that the files were looked at before, and nobody comes in between the look and the
//!   first connection.
//!
//! The lock is of `flock`'s kind and belongs to its handle: closing other handles of the file does
//! not drop it, and the kernel does when the process dies.

use std::fs::{File, TryLockError};
use std::path::Path;

use super::files::is_denied;
use super::io;
use super::turnstile::{Pass, Turnstile, open_lock};
use tine_store::{Result, StoreError};

/// The lock that says that somebody has the store open.
pub(super) const USERS_FILE: &str = "users.lock";

/// A store's lock, which is not taken yet.
#[derive(Debug)]
pub(super) struct Door {
    lock: Lock,
}

/// Somebody who has the store open. To be dropped after the last connection.
#[derive(Debug)]
pub(super) struct User {
    _lock: Lock,
}

/// The only one who has to do with the store's files, while inside the turnstile.
#[derive(Debug)]
pub(super) struct Alone<'p> {
    lock: Option<&'p Lock>,
    _pass: Option<&'p Pass>,
}

impl Drop for Alone<'_> {
    fn drop(&mut self) {
        if let Some(lock) = self.lock {
            lock.give_back();
        }
    }
}

#[derive(Debug)]
struct Lock(File);

impl Lock {
    fn give_back(&self) {
        // A failure leaves the lock to the end of the handle; there is nobody to tell.
        self.0.unlock().ok();
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // A child that was just forked may still have the handle: closing would not be enough.
        self.give_back();
    }
}

impl Door {
    pub(super) fn open(folder: &Path) -> Result<Self> {
        Ok(Door { lock: Lock(open_lock(folder, USERS_FILE)?) })
    }

    /// Comes in as a user. If nobody else is there, `look` sees the raw files first.
    pub(super) fn enter(
        self,
        pass: &Pass,
        look: impl FnOnce(&Alone<'_>) -> Result<()>,
    ) -> Result<User> {
        match self.lock.0.try_lock() {
            Ok(()) => {
                let alone = Alone { lock: Some(&self.lock), _pass: Some(pass) };
                look(&alone)?;
                // Nobody else is alone between this and the next lock: that would need the pass.
                drop(alone);
            }
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(source)) => return Err(failed(source)),
        }
        self.lock.0.lock_shared().map_err(failed)?;
        Ok(User { _lock: self.lock })
    }

    /// Comes in where nobody is; refused where somebody is.
    pub(super) fn enter_alone<'p>(&'p self, pass: &'p Pass, folder: &Path) -> Result<Alone<'p>> {
        match self.lock.0.try_lock() {
            Ok(()) => Ok(Alone { lock: Some(&self.lock), _pass: Some(pass) }),
            Err(TryLockError::WouldBlock) => Err(StoreError::InUse { path: folder.to_owned() }),
            Err(TryLockError::Error(source)) => Err(failed(source)),
        }
    }
}

impl Alone<'static> {
    /// Where there are no locks and none can be made, nobody who can write has come in: they
    /// would have made them.
    pub(super) fn without_locks() -> Self {
        Alone { lock: None, _pass: None }
    }
}

/// The locks of a store; `None` where there are none and none can be made.
pub(super) fn locks(folder: &Path) -> Result<Option<(Turnstile, Door)>> {
    let locks = Turnstile::open(folder).and_then(|turnstile| Ok((turnstile, Door::open(folder)?)));
    match locks {
        Ok(locks) => Ok(Some(locks)),
        Err(error) if is_denied(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

fn failed(source: std::io::Error) -> StoreError {
    io("locking", Path::new(USERS_FILE), source)
}
