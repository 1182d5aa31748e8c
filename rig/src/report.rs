//! What was found, and how it can be found again.

use std::fmt;
use std::time::Duration;

/// What kind of promise was broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BrokenGuarantee {
    /// Something acknowledged is not there.
    Lost,
    /// The store does not open.
    Unopenable,
    /// The state is none that the calls explain, or a check fails.
    Half,
    /// A call that was made again did something again, or was not answered.
    Repeated,
    /// The program crashed or hung instead of answering.
    Crashed,
    /// A caller got the error that the store is busy or locked.
    Locked,
    /// No order of the calls explains their answers.
    Unexplained,
}

/// One broken promise.
#[derive(Clone, Debug)]
pub struct Violation {
    /// Which.
    pub broken: BrokenGuarantee,
    /// What was seen.
    pub what: String,
    /// The arguments of the rig that show it again.
    pub replay: String,
}

impl Violation {
    /// Without a replay yet.
    pub fn new(broken: BrokenGuarantee, what: impl Into<String>) -> Self {
        Violation { broken, what: what.into(), replay: String::new() }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.broken, self.what)?;
        write!(f, "\n  again: cargo run --release -p tine-rig -- {}", self.replay)
    }
}

/// What a run amounts to.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Images, runs or cycles.
    pub cases: usize,
    /// Of these, images of a power loss during recovery or the work after it.
    pub nested: usize,
    /// Of these, images taken while a checkpoint wrote to the database file.
    pub checkpoints: usize,
    /// Acknowledged calls that were looked for, over all cases.
    pub calls: usize,
    /// Everything that was wrong, the first ones only.
    pub violations: Vec<Violation>,
    /// How often each promise was broken.
    pub broken: [usize; 7],
}

/// Violations that are kept with their details.
const KEPT: usize = 10;

impl Tally {
    /// Notes a broken promise.
    pub fn broke(&mut self, violation: Violation) {
        self.broken[violation.broken as usize] += 1;
        if self.violations.len() < KEPT {
            self.violations.push(violation);
        }
    }

    /// Adds what another thread found.
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

    /// Returns whether every promise was kept.
    pub fn is_clean(&self) -> bool {
        self.broken.iter().all(|count| *count == 0)
    }

    /// Returns the line at the end of a run.
    pub fn summary(&self, cases: &str, seed: u64, took: Duration) -> String {
        let [lost, unopenable, half, repeated, crashed, locked, unexplained] = self.broken;
        format!(
            "{} {cases} ({} during recovery, {} during a checkpoint), {} acknowledged calls \
             looked for: {lost} lost, {unopenable} unopenable, {half} half visible, {repeated} \
             repeated, {crashed} crashed, {locked} told to wait, {unexplained} unexplained; seed {seed}, {:.1} s",
            self.cases,
            self.nested,
            self.checkpoints,
            self.calls,
            took.as_secs_f64()
        )
    }
}
