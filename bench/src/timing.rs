//! Timing by the wall clock, for people to read. No test depends on it.

use std::time::{Duration, Instant};

use crate::Error;

/// The durations of several equal pieces of work.
pub(crate) struct Samples {
    sorted: Vec<Duration>,
}

impl Samples {
    pub(crate) fn all(parts: Vec<Samples>) -> Self {
        let mut sorted: Vec<Duration> = parts.into_iter().flat_map(|part| part.sorted).collect();
        sorted.sort_unstable();
        Samples { sorted }
    }

    pub(crate) fn median(&self) -> Duration {
        self.sorted.get(self.sorted.len() / 2).copied().unwrap_or_default()
    }

    fn p99(&self) -> Duration {
        self.sorted.get(self.sorted.len() * 99 / 100).copied().unwrap_or_default()
    }

    pub(crate) fn rate(&self) -> f64 {
        per_second(self.sorted.len(), self.sorted.iter().sum())
    }

    pub(crate) fn describe(&self) -> String {
        let (median, p99) = (self.median(), self.p99());
        format!("p50 {median:.1?}, p99 {p99:.1?}, {:.0}/s", self.rate())
    }

    /// Returns the ratio of the medians.
    pub(crate) fn ratio(&self, other: &Samples) -> String {
        format!("{:.2}×", self.median().as_secs_f64() / other.median().as_secs_f64())
    }
}

/// Does a piece of work a number of times and times each.
pub(crate) fn time_each(
    times: usize,
    mut work: impl FnMut(usize) -> Result<(), Error>,
) -> Result<Samples, Error> {
    let mut sorted = Vec::with_capacity(times);
    for number in 0..times {
        let started = Instant::now();
        work(number)?;
        sorted.push(started.elapsed());
    }
    sorted.sort_unstable();
    Ok(Samples { sorted })
}

/// Does a piece of work for a time, and returns how often.
pub(crate) fn time_for(
    duration: Duration,
    mut work: impl FnMut(usize) -> Result<(), Error>,
) -> Result<usize, Error> {
    let started = Instant::now();
    let mut done = 0;
    while started.elapsed() < duration {
        work(done)?;
        done += 1;
    }
    Ok(done)
}

pub(crate) fn per_second(count: usize, duration: Duration) -> f64 {
    count as f64 / duration.as_secs_f64()
}
