//! Random sequences of operations: model = memory store = embedded store.
//!
//! The short form runs with every test; the long form is
//! `TINE_STATE_MACHINE_CASES=20000 cargo test --release -p tine-testkit state_machine`, with
//! `TINE_STATE_MACHINE_SEED` for other sequences than those from seed 1 on.

use tine_testkit::machine::{RunPlan, run_cases};

fn setting(name: &str, otherwise: u64) -> u64 {
    let set = std::env::var(name).ok();
    set.map_or(otherwise, |text| text.parse().expect("a number in the environment"))
}

fn run(plan: RunPlan) {
    match run_cases(plan) {
        Err(why) => panic!("{why}"),
        // Shown with `--nocapture`: how often each sort of call was accepted and refused.
        Ok(tally) => tally.iter().for_each(|row| println!("{row:?}")),
    }
}

#[test]
fn state_machine_model_memory_and_embedded_store_agree() {
    run(RunPlan {
        cases: setting("TINE_STATE_MACHINE_CASES", 256),
        seed: setting("TINE_STATE_MACHINE_SEED", 1),
        longest: 40,
        embedded_every: setting("TINE_STATE_MACHINE_EMBEDDED_EVERY", 4),
        other: None,
        twice: false,
        packing: false,
    });
}

#[test]
fn write_closures_have_no_effect_besides_their_transaction() {
    run(RunPlan {
        cases: 64,
        seed: 1,
        longest: 40,
        embedded_every: 0,
        other: None,
        twice: true,
        packing: false,
    });
}

#[test]
fn packing_is_invisible_to_every_operation() {
    run(RunPlan {
        cases: setting("TINE_STATE_MACHINE_CASES", 256) / 8,
        seed: setting("TINE_STATE_MACHINE_SEED", 1),
        longest: 40,
        embedded_every: 1,
        other: None,
        twice: false,
        packing: true,
    });
}
