//! Many sequences, each from a seed of its own, shrunk when one fails.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};
use tine_sqlite::SqliteStore;
use tine_store::{MemoryStore, Store};

use super::{Checked, Machine, Tally};
use crate::steps::{TestStep, script};
use crate::stores::{PackingStore, RepeatingStore, TempFolder};

/// What to run.
#[derive(Clone, Copy, Debug)]
pub struct RunPlan {
    pub cases: u64,
    /// The seed of the first; each further one has the next.
    pub seed: u64,
    /// Steps of a sequence at most.
    pub longest: usize,
    /// Every which sequence also runs on another store; 0 for none.
    pub embedded_every: u64,
    /// Makes that other store; without it, that is an embedded one.
    pub other: Option<fn() -> Arc<dyn Store>>,
    /// Whether the store in memory runs every closure twice.
    pub twice: bool,
    /// Whether the embedded store packs everything after every write.
    pub packing: bool,
}

/// Runs the sequences on all cores; the first failure is shrunk and printed with its rerun.
pub fn run_cases(plan: RunPlan) -> Result<Tally, String> {
    let next = AtomicU64::new(0);
    let total = Mutex::new(Tally::new());
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        let work = || -> Checked {
            loop {
                let case = next.fetch_add(1, Ordering::SeqCst);
                if case >= plan.cases {
                    return Ok(());
                }
                let failed = run_case(plan, plan.seed + case, &total);
                if failed.is_err() {
                    next.store(plan.cases, Ordering::SeqCst);
                    return failed;
                }
            }
        };
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("no case panics"))
    })?;
    Ok(total.into_inner().expect("no case panics"))
}

fn run_case(plan: RunPlan, seed: u64, total: &Mutex<Tally>) -> Checked {
    let config = Config {
        cases: 1,
        failure_persistence: None,
        max_shrink_iters: 20_000,
        ..Config::default()
    };
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_be_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let mut runner = TestRunner::new_with_rng(config, rng);
    let embedded = seed.checked_rem(plan.embedded_every) == Some(0);
    let outcome = runner.run(&script(plan.longest), |steps| {
        let tally = run_steps(&steps, embedded, plan).map_err(TestCaseError::fail)?;
        let mut total = total.lock().expect("no case panics");
        for (sort, count) in tally {
            *total.entry(sort).or_default() += count;
        }
        Ok(())
    });
    match outcome {
        Ok(()) => Ok(()),
        Err(TestError::Fail(why, steps)) => Err(described(seed, &why.to_string(), &steps)),
        Err(TestError::Abort(why)) => Err(format!("seed {seed} was given up: {why}")),
    }
}

/// Runs one sequence in a fresh world, and counts what came of its calls.
pub fn run_steps(steps: &[TestStep], embedded: bool, plan: RunPlan) -> Result<Tally, String> {
    let folder = TempFolder::new();
    let store = if embedded {
        let store: Arc<dyn Store> = match plan.other {
            Some(other) => other(),
            None => {
                let opened = SqliteStore::open(folder.path());
                Arc::new(opened.map_err(|error| error.to_string())?)
            }
        };
        Some(if plan.packing { Arc::new(PackingStore::new(store)) } else { store })
    } else {
        None
    };
    let memory: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let memory = if plan.twice { Arc::new(RepeatingStore::new(memory)) } else { memory };
    let mut machine = Machine::new(memory, store);
    let outcome = machine.run(steps);
    let journal = machine.journal.join("\n  ");
    outcome.map_err(|why| format!("{why}\n\nthe calls, the last of which fails:\n  {journal}"))?;
    Ok(machine.tally)
}

fn described(seed: u64, why: &str, steps: &[TestStep]) -> String {
    let mut text = format!("{why}\n\nshrunk to {} steps\n", steps.len());
    text.push_str(&format!(
        "\nrerun: TINE_STATE_MACHINE_SEED={seed} TINE_STATE_MACHINE_CASES=1 \
         cargo test -p tine-testkit state_machine\n"
    ));
    text
}
