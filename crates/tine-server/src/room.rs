//! Room for what a slow client makes the server hold: large bodies in memory, bundles on threads.
//!
//! Whoever finds no room is told to come back; nobody waits in line for it.

use std::sync::Arc;

use tine_core::ErrorKind;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::problem::Problem;

/// Bodies up to this size need no room of their own: the number of requests bounds them.
const SMALL_BYTES: usize = 64 << 10;

/// Memory for large bodies, counted in pieces of the size of a small one.
pub(crate) struct BodyRoom(Arc<Semaphore>);

/// Holds its room until it is dropped.
pub(crate) struct Held {
    _permit: Option<OwnedSemaphorePermit>,
}

impl BodyRoom {
    pub(crate) fn new(bytes: usize) -> Self {
        BodyRoom(Arc::new(Semaphore::new(bytes / SMALL_BYTES)))
    }

    /// Room for a body of a size.
    pub(crate) fn take(&self, bytes: usize) -> Result<Held, Problem> {
        if bytes <= SMALL_BYTES {
            return Ok(Held { _permit: None });
        }
        let pieces = u32::try_from(bytes.div_ceil(SMALL_BYTES)).unwrap_or(u32::MAX);
        let permit = Arc::clone(&self.0).try_acquire_many_owned(pieces);
        let why = "too many large bodies at once; try again";
        let permit = permit.map_err(|_| Problem::new(ErrorKind::Busy, why))?;
        Ok(Held { _permit: Some(permit) })
    }
}

/// Bundles that are read or written, sources that come, and outlines, at once.
pub(crate) struct TransferRoom(Arc<Semaphore>);

impl TransferRoom {
    pub(crate) fn new(transfers: usize) -> Self {
        TransferRoom(Arc::new(Semaphore::new(transfers)))
    }

    /// Room for one more.
    pub(crate) fn take(&self) -> Result<Held, Problem> {
        let permit = Arc::clone(&self.0).try_acquire_owned();
        let why = "too many exports, imports, sources and outlines at once; try again";
        let permit = permit.map_err(|_| Problem::new(ErrorKind::Busy, why))?;
        Ok(Held { _permit: Some(permit) })
    }
}

/// Requests that wait until a run has ended.
pub(crate) struct WaitRoom(Arc<Semaphore>);

impl WaitRoom {
    pub(crate) fn new(waits: usize) -> Self {
        WaitRoom(Arc::new(Semaphore::new(waits)))
    }

    /// Room for one more.
    pub(crate) fn take(&self) -> Result<Held, Problem> {
        let permit = Arc::clone(&self.0).try_acquire_owned();
        let why = "too many requests wait for runs; queue it, and ask for the run later";
        let permit = permit.map_err(|_| Problem::new(ErrorKind::Busy, why))?;
        Ok(Held { _permit: Some(permit) })
    }
}
