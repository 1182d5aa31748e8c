//! Backoff, jitter and `Retry-After`.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on stops here")]

use std::time::{Duration, Instant};

use tine_net::retry::{Jitter, Policy, Retries};

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
fn pauses_double_respect_retry_after_and_end() {
    let mut retries = start(POLICY, Jitter::NONE);
    let mut next = |requested: Option<u64>| {
        retries.next_pause_after(Duration::ZERO, requested.map(Duration::from_secs))
    };
    assert_eq!(next(None), Some(Duration::from_millis(100)));
    assert_eq!(next(Some(2)), Some(Duration::from_secs(2)));
    assert_eq!(next(None), Some(Duration::from_millis(400)));
    assert_eq!(next(Some(3_600)), Some(Duration::from_secs(10)));
    assert_eq!(next(None), None);
}

#[test]
fn pauses_never_exceed_their_bound() {
    let policy = Policy::unlimited(Duration::from_millis(500), Duration::from_secs(30));
    assert_eq!(policy.pause(1).as_millis(), 500);
    assert_eq!(policy.pause(u32::MAX), Duration::from_secs(30));
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
    let requested = Some(Duration::from_secs(3));
    assert_eq!(retries.next_pause_after(Duration::ZERO, requested), requested);
}

#[cfg(feature = "http")]
#[test]
fn retry_after_is_read_in_both_spellings_and_never_guessed() {
    use http::{HeaderMap, HeaderName, HeaderValue};

    let read = |name: &'static str, value: &'static str| {
        tine_net::retry::retry_after(&HeaderMap::from_iter([(
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
