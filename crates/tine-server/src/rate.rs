//! Limits the rate of requests by address.
//!
//! Each address has a token bucket that fills at the rate and holds one second's worth. Full
//! buckets are removed, so that the table does not grow with the number of clients.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// The number of buckets above which full ones are removed.
const KEPT: usize = 4_096;

pub(crate) struct Rates {
    per_second: f64,
    buckets: Mutex<HashMap<IpAddr, Bucket>>,
}

struct Bucket {
    left: f64,
    at: Instant,
}

impl Rates {
    pub(crate) fn new(per_second: u32) -> Self {
        Rates { per_second: f64::from(per_second.max(1)), buckets: Mutex::default() }
    }

    /// Returns whether one more request of an address is admitted.
    pub(crate) fn admits(&self, address: IpAddr, now: Instant) -> bool {
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        if buckets.len() > KEPT {
            let full = |bucket: &Bucket| {
                let since = now.saturating_duration_since(bucket.at).as_secs_f64();
                bucket.left + since * self.per_second >= self.per_second
            };
            buckets.retain(|_, bucket| !full(bucket));
        }
        let bucket = buckets.entry(address).or_insert(Bucket { left: self.per_second, at: now });
        let since = now.saturating_duration_since(bucket.at).as_secs_f64();
        bucket.left = (bucket.left + since * self.per_second).min(self.per_second);
        bucket.at = now;
        let admitted = bucket.left >= 1.0;
        if admitted {
            bucket.left -= 1.0;
        }
        admitted
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};
    use std::time::{Duration, Instant};

    use super::Rates;

    #[test]
    fn the_rate_limits_requests_per_second() {
        let rates = Rates::new(3);
        let (one, other) = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2));
        let start = Instant::now();
        let ask = |address: Ipv4Addr, at: Duration| rates.admits(IpAddr::V4(address), start + at);
        let taken = (0..5).filter(|_| ask(one, Duration::ZERO)).count();
        assert_eq!(taken, 3);
        assert!(ask(other, Duration::ZERO));
        assert!(!ask(one, Duration::from_millis(100)));
        assert!(ask(one, Duration::from_millis(500)));
    }
}
