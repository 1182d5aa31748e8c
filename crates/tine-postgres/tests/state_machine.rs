//! Random sequences of operations: the model, the memory store and PostgreSQL agree byte for byte.
//!
//! A short run is part of every test run; `TINE_STATE_MACHINE_CASES` and `TINE_STATE_MACHINE_SEED`
//! set its length and seed.

use std::sync::Arc;

use tine_store::Store;
use tine_testkit::machine::{RunPlan, run_cases};

fn setting(name: &str, default: u64) -> u64 {
    let set = std::env::var(name).ok();
    set.map_or(default, |text| text.parse().expect("a number in the environment"))
}

fn run(cases: u64, other: fn() -> Arc<dyn Store>) {
    let plan = RunPlan {
        cases: setting("TINE_STATE_MACHINE_CASES", cases),
        seed: setting("TINE_STATE_MACHINE_SEED", 1),
        longest: 40,
        embedded_every: 1,
        other: Some(other),
        twice: false,
        packing: false,
    };
    if let Err(why) = run_cases(plan) {
        panic!("{why}");
    }
}

#[test]
fn state_machine_model_memory_and_postgres_agree() {
    run(10, || Arc::new(crate::fixture::open(0)));
}

#[test]
fn state_machine_model_memory_and_partitioned_postgres_agree() {
    run(4, || Arc::new(crate::fixture::open(4)));
}
