//! Violations, and how to reproduce them.

use std::fmt;
use std::time::Duration;

/// The guarantee that was violated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BrokenGuarantee {
    /// An acknowledged write is missing.
    Lost,
    /// The store cannot be opened.
    Unopenable,
    /// The calls do not explain the state, or a check fails.
    Inconsistent,
    /// A repeated call had an effect again, or was not answered.
    Repeated,
    /// The program crashed or hung.
    Crashed,
    /// A caller got the error that the store is busy or locked.
    Busy,
    /// No order of the calls explains their answers.
    Unexplained,
}

/// A violation.
#[derive(Clone, Debug)]
pub struct Violation {
    pub broken: BrokenGuarantee,
    /// What was observed.
    pub what: String,
    /// The arguments that reproduce it.
    pub replay: String,
}

impl Violation {
    /// Creates a violation; the replay is added later.
    pub fn new(broken: BrokenGuarantee, what: impl Into<String>) -> Self {
        Violation { broken, what: what.into(), replay: String::new() }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.broken, self.what)?;
        write!(f, "\n  reproduce: cargo run --release -p tine-rig -- {}", self.replay)
    }
}

/// The result of a run.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Images, runs or cycles.
    pub cases: usize,
    /// Images of a power loss during recovery or the work after it.
    pub nested: usize,
    /// Images during a checkpoint.
    pub checkpoints: usize,
    /// Acknowledged calls that were checked, over all cases.
    pub calls: usize,
    /// The first violations.
    pub violations: Vec<Violation>,
    /// The number of violations of each guarantee.
    pub broken: [usize; 7],
}

/// Violations that are kept with details.
const KEPT: usize = 10;

impl Tally {
    /// Records a violation.
    pub fn record_violation(&mut self, violation: Violation) {
        self.broken[violation.broken as usize] += 1;
        if self.violations.len() < KEPT {
            self.violations.push(violation);
        }
    }

    /// Adds the result of another thread.
    pub fn add(&mut self, other: Tally) {
        self.cases += other.cases;
        self.nested += other.nested;
        self.checkpoints += other.checkpoints;
        self.calls += other.calls;
        for (sum, count) in self.broken.iter_mut().zip(other.broken) {
            *sum += count;
        }
        let room = KEPT.saturating_sub(self.violations.len());
        self.violations.extend(other.violations.into_iter().take(room));
    }

    /// Returns whether there is no violation.
    pub fn is_clean(&self) -> bool {
        self.broken.iter().all(|count| *count == 0)
    }

    /// Returns the summary line of a run.
    pub fn summary(&self, cases: &str, seed: u64, took: Duration) -> String {
        let [lost, unopenable, inconsistent, repeated, crashed, busy, unexplained] = self.broken;
        format!(
            "{} {cases} ({} during recovery, {} during a checkpoint), {} acknowledged calls \
             checked: {lost} lost, {unopenable} unopenable, {inconsistent} inconsistent, {repeated} \
             repeated, {crashed} crashed, {busy} busy, {unexplained} unexplained; seed {seed}, {:.1} s",
            self.cases,
            self.nested,
            self.checkpoints,
            self.calls,
            took.as_secs_f64()
        )
    }
}
