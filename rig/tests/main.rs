//! The short forms of the rig's runs. The long ones are commands: see `src/main.rs`.

use std::path::Path;

use tine_rig::programs::Programs;
use tine_rig::report::Tally;
use tine_rig::{canary, crowd, faults, kill, power, server};

fn programs() -> Programs {
    let workload = Path::new(env!("CARGO_BIN_EXE_tine-rig-workload"));
    let command = Path::new(env!("CARGO_BIN_EXE_tine-rig-command"));
    let crowd = Path::new(env!("CARGO_BIN_EXE_tine-rig-crowd"));
    Programs::at(workload, command, crowd).expect("the programs are built with the tests")
}

fn assert_clean(tally: &Tally) {
    for violation in &tally.violations {
        eprintln!("{violation}");
    }
    assert!(tally.is_clean(), "{} promises were broken", tally.broken.iter().sum::<usize>());
}

#[test]
fn a_power_loss_loses_no_acknowledged_write() {
    let options = power::Options {
        images: 1_750,
        workloads: 7,
        seed: 20_260_101,
        jobs: 1,
        workload: None,
        cut: None,
        acknowledged: false,
        stop: false,
        defect: None,
    };
    let tally = power::run(&programs(), &options).expect("the rig works");
    assert_clean(&tally);
    assert!(tally.cases >= 2_000, "only {} images", tally.cases);
    assert!(tally.checkpoints >= 50, "only {} during a checkpoint", tally.checkpoints);
    assert!(tally.nested >= 100, "only {} during recovery", tally.nested);
}

#[test]
fn a_failing_call_is_reported_and_leaves_whole_operations() {
    let options = faults::Options {
        workloads: 2,
        seed: 20_260_101,
        steps: 3,
        every: 1,
        jobs: 1,
        workload: None,
        call: None,
        stop: false,
        defect: None,
    };
    assert_clean(&faults::run(&programs(), &options).expect("the rig works"));
}

#[test]
fn a_killed_process_loses_no_acknowledged_write() {
    let options = kill::Options { cycles: 20, seed: 20_260_101, longest: 60 };
    let tally = kill::run(&programs(), &options).expect("the rig works");
    assert_clean(&tally);
    assert_eq!(tally.cases, 20);
}

#[test]
fn one_order_of_the_calls_explains_all_answers_of_a_crowd() {
    let options = crowd::Options {
        seconds: None,
        calls: 2_000,
        round: 500,
        threads: 8,
        processes: 4,
        seed: 20_260_101,
        stop: false,
        defect: None,
    };
    let tally = crowd::run(&programs(), &options).expect("the rig works");
    assert_clean(&tally);
    assert_eq!(tally.cases, 4, "each way to take part once");
    assert!(tally.calls >= 2_000, "only {} calls", tally.calls);
}

#[test]
fn a_killed_server_loses_no_acknowledged_write() {
    let options = server::Options { cycles: 5, seed: 20_260_101, longest: 400 };
    let tally = server::run(&programs(), &options).expect("the rig works");
    assert_clean(&tally);
    assert_eq!(tally.cases, 5);
    assert!(tally.calls > 0, "nobody was answered");
}

#[test]
fn every_seeded_defect_is_caught() {
    let options = canary::Options { within: 1_000, seed: 20_260_101, defect: None };
    for caught in canary::run(&programs(), &options).expect("the rig works") {
        assert!(caught.by.is_some(), "{:?} was missed", caught.defect);
    }
}
