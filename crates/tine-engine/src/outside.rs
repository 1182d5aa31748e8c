//! What the engine needs from outside: the time and randomness.

use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use tine_core::Timestamp;

/// A source of time.
pub trait Clock: Send + Sync {
    /// Now.
    fn now(&self) -> Timestamp;
}

/// A source of random bytes.
pub trait Entropy: Send + Sync {
    /// Ten bytes for an id.
    fn ten_bytes(&self) -> [u8; 10];
}

/// The machine's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }
}

/// The machine's random numbers.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemEntropy;

impl Entropy for SystemEntropy {
    fn ten_bytes(&self) -> [u8; 10] {
        let mut bytes = [0; 10];
        getrandom::fill(&mut bytes).expect("every supported system has a source of randomness");
        bytes
    }
}

/// A clock that moves on by a fixed step at each look: for tests and reproducible examples.
#[derive(Debug)]
pub struct ManualClock {
    next_ms: AtomicI64,
    step_ms: i64,
}

impl ManualClock {
    /// Starts at a time.
    pub fn new(start: Timestamp, step_ms: i64) -> Self {
        ManualClock { next_ms: AtomicI64::new(start.as_millis()), step_ms }
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.next_ms.fetch_add(self.step_ms, Ordering::SeqCst))
    }
}

/// Pseudo-random bytes from a seed (SplitMix64): for tests and reproducible examples.
#[derive(Debug)]
pub struct FixedEntropy {
    state: Mutex<u64>,
}

impl FixedEntropy {
    /// Starts from a seed.
    pub fn new(seed: u64) -> Self {
        FixedEntropy { state: Mutex::new(seed) }
    }

    fn next(&self) -> u64 {
        let mut state = self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = *state;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }
}

impl Entropy for FixedEntropy {
    fn ten_bytes(&self) -> [u8; 10] {
        let mut bytes = [0; 10];
        bytes[..8].copy_from_slice(&self.next().to_be_bytes());
        bytes[8..].copy_from_slice(&self.next().to_be_bytes()[..2]);
        bytes
    }
}
