//! Limits on what slow clients make the server hold: large bodies in memory, bundles on threads.
//!
//! A request that exceeds a limit is refused as busy; requests do not queue.

use std::sync::Arc;

use tine_core::ErrorKind;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::problem::Problem;

/// Bodies up to this size need no permit: the number of requests bounds them.
const SMALL_BYTES: usize = 64 << 10;

/// Holds capacity until it is dropped.
pub(crate) struct Permit {
    _permit: Option<OwnedSemaphorePermit>,
}

/// Memory for large bodies, counted in units of [`SMALL_BYTES`].
pub(crate) struct BodyMemory(Arc<Semaphore>);

impl BodyMemory {
    pub(crate) fn new(bytes: usize) -> Self {
        BodyMemory(Arc::new(Semaphore::new(bytes / SMALL_BYTES)))
    }

    /// Acquires memory for a body of this size.
    pub(crate) fn acquire(&self, bytes: usize) -> Result<Permit, Problem> {
        if bytes <= SMALL_BYTES {
            return Ok(Permit { _permit: None });
        }
        let units = u32::try_from(bytes.div_ceil(SMALL_BYTES)).unwrap_or(u32::MAX);
        let permit = Arc::clone(&self.0).try_acquire_many_owned(units);
        let why = "too many large bodies at once; try again";
        let permit = permit.map_err(|_| Problem::new(ErrorKind::Busy, why))?;
        Ok(Permit { _permit: Some(permit) })
    }
}

/// A number of requests that may do something at once.
pub(crate) struct RequestSlots {
    free: Arc<Semaphore>,
    /// The refusal when there is none.
    exhausted: &'static str,
}

impl RequestSlots {
    /// Slots for bundles that are read or written, uploaded sources, and outlines.
    pub(crate) fn for_transfers(slots: usize) -> Self {
        let exhausted = "too many exports, imports, sources and outlines at once; try again";
        RequestSlots { free: Arc::new(Semaphore::new(slots)), exhausted }
    }

    /// Slots for requests that wait until a run has ended.
    pub(crate) fn for_waits(slots: usize) -> Self {
        let exhausted =
            "too many requests are waiting for runs; queue the run and request its result later";
        RequestSlots { free: Arc::new(Semaphore::new(slots)), exhausted }
    }

    /// Acquires a slot.
    pub(crate) fn acquire(&self) -> Result<Permit, Problem> {
        let permit = Arc::clone(&self.free).try_acquire_owned();
        let permit = permit.map_err(|_| Problem::new(ErrorKind::Busy, self.exhausted))?;
        Ok(Permit { _permit: Some(permit) })
    }
}
