//! Metrics for Prometheus.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Upper bounds of the histogram buckets, in seconds.
const STEPS: [f64; 12] =
    [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0, 30.0];

/// Requests by route.
#[derive(Default)]
pub(crate) struct Metrics {
    requests: Mutex<BTreeMap<(String, String, u16), Durations>>,
    in_work: Arc<AtomicI64>,
    followers: Arc<AtomicI64>,
    runs: Mutex<BTreeMap<&'static str, u64>>,
}

#[derive(Clone, Default)]
struct Durations {
    steps: [u64; STEPS.len()],
    count: u64,
    seconds: f64,
}

/// Counts something until it is dropped.
pub(crate) struct Gauge(Arc<AtomicI64>);

impl Gauge {
    fn raise(counter: &Arc<AtomicI64>) -> Self {
        counter.fetch_add(1, Ordering::Relaxed);
        Gauge(Arc::clone(counter))
    }
}

impl Drop for Gauge {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Metrics {
    pub(crate) fn request(&self) -> Gauge {
        Gauge::raise(&self.in_work)
    }

    pub(crate) fn follower(&self) -> Gauge {
        Gauge::raise(&self.followers)
    }

    /// Counts a run that this server performed, by status.
    pub(crate) fn run(&self, status: &'static str) {
        let mut runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        *runs.entry(status).or_default() += 1;
    }

    pub(crate) fn done(&self, method: &str, route: &str, status: u16, took: Duration) {
        let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        let durations = requests.entry((method.to_owned(), route.to_owned(), status)).or_default();
        let seconds = took.as_secs_f64();
        for (step, bound) in durations.steps.iter_mut().zip(STEPS) {
            *step += u64::from(seconds <= bound);
        }
        durations.count += 1;
        durations.seconds += seconds;
    }

    /// Returns all metrics in the Prometheus text format; `store` adds metrics of the store.
    pub(crate) fn text(&self, store: &[(&str, &str, u64)]) -> String {
        let mut out = String::new();
        let name = "tine_http_request_duration_seconds";
        // Writing to a string cannot fail.
        let _ =
            writeln!(out, "# HELP {name} Requests by route and status.\n# TYPE {name} histogram");
        let requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for ((method, route, status), found) in &requests {
            let labels = format!("method=\"{method}\",route=\"{route}\",status=\"{status}\"");
            for (step, bound) in found.steps.iter().zip(STEPS) {
                let _ = writeln!(out, "{name}_bucket{{{labels},le=\"{bound}\"}} {step}");
            }
            let _ = writeln!(out, "{name}_bucket{{{labels},le=\"+Inf\"}} {}", found.count);
            let _ = writeln!(out, "{name}_sum{{{labels}}} {}", found.seconds);
            let _ = writeln!(out, "{name}_count{{{labels}}} {}", found.count);
        }
        let name = "tine_interpretation_runs_total";
        let about = "Runs done in the background, by how they ended.";
        let _ = writeln!(out, "# HELP {name} {about}\n# TYPE {name} counter");
        let runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for (status, count) in &runs {
            let _ = writeln!(out, "{name}{{status=\"{status}\"}} {count}");
        }
        let mut gauge = |name: &str, about: &str, value: i64| {
            let _ = writeln!(out, "# HELP {name} {about}\n# TYPE {name} gauge\n{name} {value}");
        };
        let now = |counter: &AtomicI64| counter.load(Ordering::Relaxed);
        gauge("tine_http_requests_in_work", "Requests in work.", now(&self.in_work));
        gauge("tine_event_followers", "Connections that follow events.", now(&self.followers));
        for (name, about, value) in store {
            gauge(name, about, i64::try_from(*value).unwrap_or(i64::MAX));
        }
        out
    }
}
