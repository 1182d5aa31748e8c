//! A store whose transactions can be made to fail at any one of their writes.
//!
//! A failing call writes nothing and reports a full disk. Tests check how the engine handles it and
//! what state remains.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tine_store::{Job, Read, Result, Store, StoreError, Write};

/// Writes that may still succeed.
#[derive(Debug)]
struct RemainingWrites(AtomicU64);

impl RemainingWrites {
    fn take(&self) -> Result<()> {
        let left = self.0.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| match left {
            u64::MAX => Some(u64::MAX),
            left => left.checked_sub(1),
        });
        match left {
            Ok(_) => Ok(()),
            Err(_) => Err(StoreError::DiskFull),
        }
    }
}

/// A store that fails.
pub struct FailingStore {
    inner: Arc<dyn Store>,
    left: Arc<RemainingWrites>,
}

impl FailingStore {
    /// Wraps a store; no write fails until [`FailingStore::fail_after`] is called.
    pub fn new(inner: Arc<dyn Store>) -> Self {
        FailingStore { inner, left: Arc::new(RemainingWrites(AtomicU64::new(u64::MAX))) }
    }

    /// Lets this many writes through and fails every write after them.
    pub fn fail_after(&self, writes: u64) {
        self.left.0.store(writes, Ordering::SeqCst);
    }

    /// Lets everything through again.
    pub fn recover(&self) {
        self.fail_after(u64::MAX);
    }
}

impl Store for FailingStore {
    fn read(&self, body: &mut dyn FnMut(&dyn Read) -> Result<()>) -> Result<()> {
        self.inner.read(body)
    }

    fn write(&self, mut job: Job) -> Result<()> {
        let left = Arc::clone(&self.left);
        self.inner.write(Box::new(move |inner| job(&mut FailingWrite { inner, left: &left })))
    }

    tine_store::forward_store!(inner);
}

struct FailingWrite<'a> {
    inner: &'a mut dyn Write,
    left: &'a RemainingWrites,
}

macro_rules! reads {
    ($($method:ident($($arg:ident: $of:ty),*) -> $answer:ty;)*) => {
        impl Read for FailingWrite<'_> {
            $(fn $method(&self, $($arg: $of),*) -> Result<$answer> {
                self.inner.$method($($arg),*)
            })*
        }
    };
}

tine_store::for_each_read!(reads);

macro_rules! writes {
    ($($method:ident($($arg:ident: $of:ty),*) -> $answer:ty;)*) => {
        impl Write for FailingWrite<'_> {
            $(fn $method(&mut self, $($arg: $of),*) -> Result<$answer> {
                self.left.take()?;
                self.inner.$method($($arg),*)
            })*
        }
    };
}

tine_store::for_each_write!(writes);
