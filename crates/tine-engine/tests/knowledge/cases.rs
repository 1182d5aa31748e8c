//! Many random scripts, each from a seed of its own; the first that fails is shrunk and printed with
//! the line that runs it again.
//!
//! The short form runs with every test; the long form is
//! `TINE_HOST_CASES=20000 cargo test --release -p tine-engine learned`, with `TINE_HOST_SEED` for
//! other scripts than those from seed 1 on.

use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use proptest::strategy::Strategy;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};
use tine_sqlite::SqliteStore;
use tine_store::MemoryStore;
use tine_testkit::stores::TempFolder;

use crate::world::World;

/// What a failed comparison says.
pub type Checked = Result<(), String>;

/// Fails a case with a sentence.
macro_rules! ensure {
    ($holds:expr, $($why:tt)*) => {
        if !$holds {
            return Err(format!($($why)*));
        }
    };
}
pub(crate) use ensure;

fn setting(name: &str, otherwise: u64) -> u64 {
    let set = std::env::var(name).ok();
    set.map_or(otherwise, |text| text.parse().expect("a number in the environment"))
}

/// Runs scripts over the store in memory, every fourth also over an embedded one. `test` is the
/// name of the test, for the rerun.
pub fn run<S: Strategy<Value: Debug>>(
    test: &str,
    usual: u64,
    scripts: impl Fn() -> S + Sync,
    check: impl Fn(&World, &S::Value) -> Checked + Sync,
) {
    let (cases, seed) = (setting("TINE_HOST_CASES", usual), setting("TINE_HOST_SEED", 1));
    let next = AtomicU64::new(0);
    let work = || -> Checked {
        loop {
            let case = next.fetch_add(1, Ordering::SeqCst);
            if case >= cases {
                return Ok(());
            }
            if let Err(why) = run_case(seed + case, &scripts(), &check) {
                next.store(cases, Ordering::SeqCst);
                return Err(format!(
                    "{why}\n\nrerun: TINE_HOST_SEED={} TINE_HOST_CASES=1 \
                     cargo test -p tine-engine {test}\n",
                    seed + case
                ));
            }
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let outcome: Checked = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("no case panics"))
    });
    if let Err(why) = outcome {
        panic!("{why}");
    }
}

fn run_case<S: Strategy<Value: Debug>>(
    seed: u64,
    scripts: &S,
    check: &impl Fn(&World, &S::Value) -> Checked,
) -> Checked {
    let config = Config {
        cases: 1,
        failure_persistence: None,
        max_shrink_iters: 4_000,
        ..Config::default()
    };
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_be_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let mut runner = TestRunner::new_with_rng(config, rng);
    let outcome = runner.run(scripts, |script| {
        let in_memory = World::over(Arc::new(MemoryStore::new()), None);
        check(&in_memory, &script).map_err(TestCaseError::fail)?;
        if seed.is_multiple_of(4) {
            let folder = TempFolder::new();
            let store = SqliteStore::open(folder.path()).expect("a new store");
            let embedded = World::over(Arc::new(store), Some(folder));
            check(&embedded, &script)
                .map_err(|why| TestCaseError::fail(format!("in the embedded store: {why}")))?;
        }
        Ok(())
    });
    match outcome {
        Ok(()) => Ok(()),
        Err(TestError::Fail(why, script)) => Err(format!("{why}\n\nshrunk to {script:?}")),
        Err(TestError::Abort(why)) => Err(format!("seed {seed} was given up: {why}")),
    }
}
