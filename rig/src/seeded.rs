//! A clock and randomness that depend only on the seed and the number of the step.
//!
//! A step therefore creates the same ids and times in any process that runs it on the same state: an
//! interrupted run can be compared with one that was not.

use std::sync::Mutex;
use std::sync::{Arc, PoisonError};

use tine_core::{Limits, Timestamp};
use tine_engine::{Clock, Engine, Entropy};
use tine_store::Store;

use crate::seeded_rng::SeededRng;

/// 2026-01-01; every step begins ten seconds after the one before.
const START_MS: i64 = 1_767_225_600_000;
const STEP_MS: i64 = 10_000;

/// The clock and randomness of the current step.
#[derive(Debug)]
pub struct SeededRuntime {
    seed: u64,
    worker: u64,
    now: Mutex<(i64, SeededRng)>,
}

impl SeededRuntime {
    /// Creates those of a worker, at step 0.
    pub fn new(seed: u64, worker: u64) -> Arc<Self> {
        Arc::new(SeededRuntime { seed, worker, now: Mutex::new((START_MS, SeededRng::new(seed))) })
    }

    /// Sets the step.
    pub fn step(&self, step: usize) {
        let places = [self.worker, u64::try_from(step).unwrap_or(u64::MAX)];
        let start = START_MS + STEP_MS * i64::try_from(step).unwrap_or(0);
        *self.now.lock().unwrap_or_else(PoisonError::into_inner) =
            (start, SeededRng::at(self.seed, &places));
    }

    /// Returns an engine with this clock and randomness.
    pub fn engine(self: &Arc<Self>, store: Arc<dyn Store>) -> Engine {
        Engine::with(
            store,
            Arc::clone(self) as Arc<dyn Clock>,
            Arc::clone(self) as Arc<dyn Entropy>,
            Limits::default(),
        )
    }
}

impl Clock for SeededRuntime {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.now.lock().unwrap_or_else(PoisonError::into_inner).0)
    }
}

impl Entropy for SeededRuntime {
    fn ten_bytes(&self) -> [u8; 10] {
        let mut now = self.now.lock().unwrap_or_else(PoisonError::into_inner);
        let mut bytes = [0; 10];
        bytes[..8].copy_from_slice(&now.1.number().to_be_bytes());
        bytes[8..].copy_from_slice(&now.1.number().to_be_bytes()[..2]);
        bytes
    }
}
