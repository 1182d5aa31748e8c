//! Exponential backoff with jitter, limited in number and time. A server's `Retry-After` lengthens a
//! pause, up to the same maximum.
//!
//! A [`Policy`] is a constant of its caller; [`Retries`] is the state of one call. Nothing here
//! sleeps, and randomness can be injected, so that tests see exact pauses.

use std::hash::{BuildHasher, RandomState};
use std::time::{Duration, Instant};

/// The maximum number of doublings of a pause.
const MAX_DOUBLINGS: u32 = 20;

/// How often and how long a call is retried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// The pause before the first retry; it doubles from there.
    pub first_pause: Duration,
    /// The longest pause, even if a server asks for a longer one.
    pub longest_pause: Duration,
    /// The maximum number of retries, without the first attempt.
    pub max_retries: u32,
    /// The maximum time from the first attempt to the last retry.
    pub deadline: Duration,
}

impl Policy {
    /// Creates a policy without a limit on number and time: only for calls that wait for a server to
    /// come back and can be interrupted.
    pub const fn unlimited(first_pause: Duration, longest_pause: Duration) -> Policy {
        Policy { first_pause, longest_pause, max_retries: u32::MAX, deadline: Duration::MAX }
    }

    /// Starts now, with random jitter.
    pub fn start(self) -> Retries {
        self.start_with(Instant::now(), Jitter::random())
    }

    /// Starts from an earlier time, with the given jitter.
    pub fn start_with(self, began: Instant, jitter: Jitter) -> Retries {
        Retries { policy: self, began, jitter, taken: 0 }
    }

    /// Returns the pause before retry `nth`, counted from 1, without jitter.
    pub fn pause(&self, nth: u32) -> Duration {
        let doublings = nth.saturating_sub(1).min(MAX_DOUBLINGS);
        self.first_pause.saturating_mul(1 << doublings).min(self.longest_pause)
    }
}

/// The retries of one call.
#[derive(Clone, Debug)]
pub struct Retries {
    policy: Policy,
    began: Instant,
    jitter: Jitter,
    taken: u32,
}

impl Retries {
    /// Returns the pause before the next retry, or `None` if it is time to give up. `retry_after`
    /// is the pause that the server asked for; it is never shortened by jitter.
    pub fn next_pause(&mut self, retry_after: Option<Duration>) -> Option<Duration> {
        self.next_pause_after(self.began.elapsed(), retry_after)
    }

    /// Returns the next pause, given the time elapsed since the first attempt.
    pub fn next_pause_after(
        &mut self,
        elapsed: Duration,
        retry_after: Option<Duration>,
    ) -> Option<Duration> {
        let left = self.policy.deadline.checked_sub(elapsed).filter(|left| !left.is_zero())?;
        if self.taken >= self.policy.max_retries {
            return None;
        }
        self.taken += 1;
        let pause = self.jitter.apply(self.policy.pause(self.taken));
        let wanted = retry_after.unwrap_or_default().min(self.policy.longest_pause);
        Some(pause.max(wanted).min(left))
    }

    /// Returns how many retries were granted.
    pub fn taken(&self) -> u32 {
        self.taken
    }

    /// Starts over after a success.
    pub fn reset(&mut self) {
        self.began = Instant::now();
        self.taken = 0;
    }
}

/// Shortens pauses by up to a half, so that clients that failed together do not return together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Jitter(Option<u64>);

impl Jitter {
    /// Leaves pauses as they are.
    pub const NONE: Jitter = Jitter(None);

    /// Creates jitter from a seed: equal seeds give equal pauses.
    pub const fn seeded(seed: u64) -> Jitter {
        Jitter(Some(seed))
    }

    /// Creates random jitter.
    pub fn random() -> Jitter {
        // The standard library's only randomness without a dependency: the keys of its hash maps.
        Jitter(Some(RandomState::new().hash_one(0)))
    }

    fn apply(&mut self, pause: Duration) -> Duration {
        let Some(state) = &mut self.0 else { return pause };
        // SplitMix64.
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = *state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        let half = pause / 2;
        let nanos = u64::try_from(half.as_nanos()).unwrap_or(u64::MAX);
        half + Duration::from_nanos(mixed % nanos.max(1))
    }
}

/// Returns how long a server asks to wait: `Retry-After` in seconds, or `retry-after-ms`, which some
/// model providers send. A date is ignored, since there is no clock here.
#[cfg(feature = "http")]
pub fn retry_after(headers: &http::HeaderMap) -> Option<Duration> {
    let number =
        |name: &str| -> Option<f64> { headers.get(name)?.to_str().ok()?.trim().parse().ok() };
    let seconds = number("retry-after-ms")
        .map(|millis| millis / 1_000.0)
        .or_else(|| number(http::header::RETRY_AFTER.as_str()))?;
    Duration::try_from_secs_f64(seconds).ok()
}
