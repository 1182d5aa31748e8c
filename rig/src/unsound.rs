//! Unsound transactions: the seeded defects that show only under concurrency.

use tine_sqlite::SqliteStore;
use tine_store::{Branch, Read, Result, Store as _, StoreError, Write};

/// Reads without a snapshot: every record comes from the current state.
pub(crate) struct SnapshotlessRead<'t> {
    pub store: &'t SqliteStore,
}

macro_rules! torn {
    ($($name:ident($($argument:ident: $type:ty),*) -> $answer:ty;)*) => {
        impl Read for SnapshotlessRead<'_> {
            $(fn $name(&self, $($argument: $type),*) -> Result<$answer> {
                now(self.store, |records| records.$name($($argument),*))
            })*
        }
    };
}

tine_store::for_each_read!(torn);

/// A transaction that reads tips outside of itself, so that what it moves may have moved since. It
/// knows which branches exist, so that no constraint detects it.
pub(crate) struct StaleTips<'s> {
    pub inner: &'s mut dyn Write,
    pub store: &'s SqliteStore,
}

macro_rules! stale_read {
    (branch, $this:ident, $($argument:ident),*) => {
        Ok(stale(
            $this.inner.branch($($argument),*)?,
            now($this.store, |records| records.branch($($argument),*))?,
        ))
    };
    ($name:ident, $this:ident, $($argument:ident),*) => {
        $this.inner.$name($($argument),*)
    };
}

macro_rules! stale_reads {
    ($($name:ident($($argument:ident: $type:ty),*) -> $answer:ty;)*) => {
        impl Read for StaleTips<'_> {
            $(fn $name(&self, $($argument: $type),*) -> Result<$answer> {
                stale_read!($name, self, $($argument),*)
            })*
        }
    };
}

macro_rules! stale_writes {
    ($($name:ident($($argument:ident: $type:ty),*) -> $answer:ty;)*) => {
        impl Write for StaleTips<'_> {
            $(fn $name(&mut self, $($argument: $type),*) -> Result<$answer> {
                self.inner.$name($($argument),*)
            })*
        }
    };
}

tine_store::for_each_read!(stale_reads);
tine_store::for_each_write!(stale_writes);

fn stale(branch: Option<Branch>, runtime: Option<Branch>) -> Option<Branch> {
    match (branch, runtime) {
        (Some(branch), Some(stale)) if branch.id == stale.id => Some(stale),
        (branch, _) => branch,
    }
}

fn now<T>(store: &SqliteStore, mut read: impl FnMut(&dyn Read) -> Result<T>) -> Result<T> {
    let mut answer = None;
    store.read(&mut |records| {
        answer = Some(read(records)?);
        Ok(())
    })?;
    answer.ok_or_else(|| StoreError::Contract("a read that did not run".to_owned()))
}
