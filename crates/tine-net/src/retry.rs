//! When to try again: pauses that double up to a bound, with jitter, until attempts or time are
//! used up. A server's `Retry-After` lengthens a pause, within the same bound.
//!
//! A [`Policy`] is a constant of its caller; [`Retries`] is the state of one call. Nothing here
//! sleeps, and randomness comes from outside, so that tests see exact pauses.

use std::hash::{BuildHasher, RandomState};
use std::time::{Duration, Instant};

/// Doublings after which a pause grows no more.
const MAX_DOUBLINGS: u32 = 20;

/// How often and how long to try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// The pause before the first retry; it doubles from there.
    pub first_pause: Duration,
    /// The longest pause, also where a server asks for a longer one.
    pub longest_pause: Duration,
    /// Retries at most; the first attempt is not one.
    pub max_retries: u32,
    /// Time at most, from the first attempt until the last retry begins.
    pub deadline: Duration,
}

impl Policy {
    /// Retries without a bound on their number or time: only for what waits for a server to come
    /// back and can be interrupted by its caller.
    pub const fn unlimited(first_pause: Duration, longest_pause: Duration) -> Policy {
        Policy { first_pause, longest_pause, max_retries: u32::MAX, deadline: Duration::MAX }
    }

    /// Begins to count from now, with randomness of the system.
    pub fn start(self) -> Retries {
        self.start_with(Instant::now(), Jitter::random())
    }

    /// Begins to count from an earlier time, with this randomness.
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

    /// Begins again: what failed before has succeeded.
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

    /// Jitter from a seed: equal seeds give equal pauses.
    pub const fn seeded(seed: u64) -> Jitter {
        Jitter(Some(seed))
    }

    /// Jitter that differs in each call and process.
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

/// Returns how long a server asks to wait: `Retry-After` in seconds, or `retry-after-ms` as some
/// endpoints of models have it. A date is not read: there is no clock here.
#[cfg(feature = "http")]
pub fn retry_after(headers: &http::HeaderMap) -> Option<Duration> {
    let number =
        |name: &str| -> Option<f64> { headers.get(name)?.to_str().ok()?.trim().parse().ok() };
    let seconds = number("retry-after-ms")
        .map(|millis| millis / 1_000.0)
        .or_else(|| number(http::header::RETRY_AFTER.as_str()))?;
    Duration::try_from_secs_f64(seconds).ok()
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::{Jitter, Policy, Retries};

    const POLICY: Policy = Policy {
        first_pause: Duration::from_millis(100),
        longest_pause: Duration::from_secs(10),
        max_retries: 4,
        deadline: Duration::from_secs(60),
    };

    fn start(policy: Policy, jitter: Jitter) -> Retries {
        policy.start_with(Instant::now(), jitter)
    }

    #[test]
    fn pauses_double_heed_the_server_and_end() {
        let mut retries = start(POLICY, Jitter::NONE);
        let mut next = |wanted: Option<u64>| {
            retries.next_pause_after(Duration::ZERO, wanted.map(Duration::from_secs))
        };
        assert_eq!(next(None), Some(Duration::from_millis(100)));
        assert_eq!(next(Some(2)), Some(Duration::from_secs(2)));
        assert_eq!(next(None), Some(Duration::from_millis(400)));
        assert_eq!(next(Some(3_600)), Some(Duration::from_secs(10)));
        assert_eq!(next(None), None);
    }

    #[test]
    fn pauses_never_exceed_their_bound() {
        let policy = Policy::unlimited(Duration::from_millis(500), Duration::from_secs(30)).start();
        assert_eq!(policy.policy.pause(1).as_millis(), 500);
        assert_eq!(policy.policy.pause(u32::MAX), Duration::from_secs(30));
        let huge = Policy::unlimited(Duration::MAX, Duration::MAX);
        assert_eq!(huge.pause(9), Duration::MAX);
    }

    #[test]
    fn the_deadline_shortens_the_last_pause_and_then_ends_the_retries() {
        let mut retries = start(POLICY, Jitter::NONE);
        let late = POLICY.deadline - Duration::from_millis(30);
        assert_eq!(retries.next_pause_after(late, None), Some(Duration::from_millis(30)));
        assert_eq!(retries.next_pause_after(POLICY.deadline, None), None);
        assert_eq!(retries.taken(), 1);
        retries.reset();
        assert_eq!(retries.taken(), 0);
        assert_eq!(retries.next_pause(None), Some(Duration::from_millis(100)));
    }

    #[test]
    fn jitter_shortens_by_at_most_half_and_follows_its_seed() {
        let pauses = |seed| {
            let mut retries = start(Policy { max_retries: 100, ..POLICY }, Jitter::seeded(seed));
            let next = |_| retries.next_pause_after(Duration::ZERO, None).unwrap();
            (0..100).map(next).collect::<Vec<_>>()
        };
        for seed in 0..50 {
            for (nth, pause) in (1..).zip(pauses(seed)) {
                let whole = POLICY.pause(nth);
                assert!((whole / 2..=whole).contains(&pause), "{seed}, {nth}: {pause:?}");
            }
        }
        assert_eq!(pauses(7), pauses(7));
        assert_ne!(pauses(7), pauses(8));
        assert_ne!(Jitter::random(), Jitter::random());
    }

    #[test]
    fn jitter_never_shortens_what_the_server_asked_for() {
        let mut retries = start(POLICY, Jitter::seeded(1));
        let wanted = Some(Duration::from_secs(3));
        assert_eq!(retries.next_pause_after(Duration::ZERO, wanted), wanted);
    }

    #[cfg(feature = "http")]
    #[test]
    fn retry_after_is_read_in_both_spellings_and_never_guessed() {
        use http::{HeaderMap, HeaderName, HeaderValue};

        let read = |name: &'static str, value: &'static str| {
            super::retry_after(&HeaderMap::from_iter([(
                HeaderName::from_static(name),
                HeaderValue::from_static(value),
            )]))
        };
        assert_eq!(read("retry-after", "2"), Some(Duration::from_secs(2)));
        assert_eq!(read("retry-after-ms", "250"), Some(Duration::from_millis(250)));
        for wrong in ["-1", "NaN", "inf", "Wed, 21 Oct 2026 07:28:00 GMT", ""] {
            assert_eq!(read("retry-after", wrong), None, "{wrong}");
        }
    }
}
