//! `kill -9`, repeated on stores that survive from one cycle to the next.
//!
//! The operating system keeps what a killed process wrote, so this does not detect a missing sync
//! ([`crate::power`] does). It detects what images cannot: locks of a dead process, several
//! processes at once, and shared memory that outlives one of them.

use std::path::PathBuf;
use std::process::Child;
use std::time::{Duration, Instant};

use crate::RigError;
use crate::check::{self, Expected};
use crate::command::CommandStore;
use crate::marks::{self, Progress};
use crate::plan::WorkPlan;
use crate::programs::{Programs, scratch};
use crate::report::{BrokenGuarantee, Tally, Violation};
use crate::seeded_rng::SeededRng;
use crate::shim::{FailAt, FailureMode, Layer};
use crate::workload::{self, Exit, WorkloadArgs};

#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Cycles of starting, killing and checking.
    #[arg(long, default_value_t = 1_000)]
    pub cycles: usize,
    /// The seed of all random choices.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// The longest lifetime of a process, in milliseconds.
    #[arg(long, default_value_t = 60)]
    pub longest: usize,
}

/// Workers, and in some cycles processes at once.
const WORKERS: usize = 4;
/// Steps of a worker before a new store is created.
const STEPS: usize = 60;
/// The highest call at which the shim may end a process.
const CALLS: usize = 200;
/// Progress is printed after this many cycles.
const PROGRESS_INTERVAL: usize = 50;

/// Runs the cycles.
pub fn run(programs: &Programs, options: &Options) -> Result<Tally, RigError> {
    let started = Instant::now();
    let mut tally = Tally::default();
    let mut store: Option<KilledStore> = None;
    let mut command: Option<CommandStore> = None;
    for cycle in 0..options.cycles {
        let mut rng = SeededRng::at(options.seed ^ 0xdead, &[u64::try_from(cycle)?]);
        tally.cases += 1;
        let outcome = if cycle % 3 == 2 {
            let mut target = match command.take().filter(|store| !store.is_full()) {
                Some(store) => store,
                None => CommandStore::new()?,
            };
            let outcome = target.cycle(programs, &mut rng)?;
            command = outcome.is_ok().then_some(target);
            outcome
        } else {
            let mut target = match store.take().filter(|store| !store.is_done()) {
                Some(store) => store,
                None => KilledStore::new(rng.number())?,
            };
            let outcome = target.cycle(programs, options, &mut rng)?;
            store = outcome.is_ok().then_some(target);
            outcome
        };
        match outcome {
            Ok(calls) => tally.calls += calls,
            Err(violation) => {
                let replay = format!("kill --cycles {} --seed {}", cycle + 1, options.seed);
                let what = format!("cycle {cycle}: {}", violation.what);
                tally.record_violation(Violation { what, replay, ..violation });
            }
        }
        if (cycle + 1).is_multiple_of(PROGRESS_INTERVAL) {
            let broken = tally.broken.iter().sum::<usize>();
            let since = started.elapsed().as_secs_f64();
            eprintln!("{} cycles, {broken} broken, {since:.0} s", cycle + 1);
        }
    }
    Ok(tally)
}

/// A store, and the progress of its workers.
struct KilledStore {
    scratch: tempfile::TempDir,
    plans: Vec<WorkPlan>,
    positions: Vec<usize>,
}

impl KilledStore {
    fn new(seed: u64) -> Result<Self, RigError> {
        let mut plans = Vec::new();
        for worker in (0..).take(WORKERS) {
            plans.push(WorkPlan::new(seed, worker, STEPS)?);
        }
        Ok(KilledStore { scratch: scratch()?, plans, positions: vec![0; WORKERS] })
    }

    fn is_done(&self) -> bool {
        self.positions.iter().any(|position| *position >= STEPS)
    }

    fn marks(&self, worker: usize) -> PathBuf {
        self.scratch.path().join(format!("marks-{worker}"))
    }

    fn work(&self, worker: usize, workers: usize) -> WorkloadArgs {
        WorkloadArgs {
            store: self.scratch.path().join("store"),
            marks: self.marks(worker),
            seed: self.plans[worker].seed,
            worker: self.plans[worker].worker,
            from: self.positions[worker..worker + workers].to_vec(),
            to: STEPS,
            bulk: 0,
            reopen: (workers == 1).then_some(7),
            defect: None,
        }
    }

    /// Starts, kills and checks; returns the number of acknowledged calls that were checked.
    fn cycle(
        &mut self,
        programs: &Programs,
        options: &Options,
        rng: &mut SeededRng,
    ) -> Result<Result<usize, Violation>, RigError> {
        for worker in 0..WORKERS {
            let marks = self.marks(worker);
            if marks.exists() {
                std::fs::remove_file(marks)?;
            }
        }
        let children = self.start(programs, rng)?;
        std::thread::sleep(Duration::from_micros(u64::try_from(
            rng.below(options.longest.max(1) * 1_000),
        )?));
        // All at once, or one after the other while the rest works on.
        let mut ends = Vec::new();
        for mut child in children {
            child.kill()?;
            ends.push(workload::wait(child)?);
        }
        for (exit, complaint) in ends {
            if !matches!(exit, Exit::Signal | Exit::Code(0)) {
                let what = format!("a process ended with {exit:?} by itself: {complaint}");
                return Ok(Err(Violation::new(BrokenGuarantee::Crashed, what)));
            }
        }
        self.look(rng)
    }

    fn start(&self, programs: &Programs, rng: &mut SeededRng) -> Result<Vec<Child>, RigError> {
        let mut children = Vec::new();
        match rng.below(4) {
            // One process, ended by the kill or, more exactly, at one of its calls.
            way @ (0 | 1) => {
                let mut command = self.work(0, 1).command(&programs.workload);
                if way == 1 {
                    let call = 1 + rng.below(CALLS);
                    let layer = Layer {
                        root: self.scratch.path().join("store"),
                        fail: Some(FailAt { call, how: FailureMode::Kill, forever: false }),
                        ..Layer::default()
                    };
                    programs.shim.under(&mut command, &layer)?;
                }
                children.push(command.spawn()?);
            }
            // Threads that share their commits.
            2 => children.push(self.work(0, WORKERS).command(&programs.workload).spawn()?),
            _ => {
                for worker in 0..WORKERS {
                    children.push(self.work(worker, 1).command(&programs.workload).spawn()?);
                }
            }
        }
        Ok(children)
    }

    fn look(&mut self, rng: &mut SeededRng) -> Result<Result<usize, Violation>, RigError> {
        let mut seen: Vec<Progress> = self
            .positions
            .iter()
            .map(|position| Progress { answered: *position, begun: false })
            .collect();
        for worker in 0..WORKERS {
            for (worker, mark) in marks::read(&self.marks(worker))? {
                if let Some(progress) = seen.get_mut(usize::try_from(worker)?) {
                    progress.see(&mark);
                }
            }
        }
        let expected: Vec<Expected<'_>> = self
            .plans
            .iter()
            .zip(&seen)
            .map(|(plan, progress)| Expected { plan, progress: *progress })
            .collect();
        let checked = check::check_store(&self.scratch.path().join("store"), &expected, rng);
        Ok(checked.map(|store| {
            self.positions = store.positions;
            store.calls
        }))
    }
}
