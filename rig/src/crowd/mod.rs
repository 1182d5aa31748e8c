//! Many processes and threads on one store at once, with a linearizability check.
//!
//! Every call and every answer is recorded ([`history`]); there must be one order of the calls that
//! explains all of them ([`checker`]). The seed decides the calls, the machine decides their order, so
//! a violation may need several runs to occur again.
//!
//! Rounds differ in their processes and threads: processes with many threads each, one process,
//! processes with one thread each, and one with many beside several with one.

mod calls;
mod checker;
mod history;
pub mod member;

use std::time::{Duration, Instant};

use crate::RigError;
use crate::defects::Defect;
use crate::programs::{Programs, scratch};
use crate::report::{BrokenGuarantee, Tally, Violation};
use crate::seeded_rng::SeededRng;
use crate::workload::{self, Exit};
use member::Member;

#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Runs for this many seconds instead of a number of calls.
    #[arg(long)]
    pub seconds: Option<u64>,
    /// Runs until this many calls were made.
    #[arg(long, default_value_t = 20_000)]
    pub calls: usize,
    /// Calls per round, each on a new store. Checking takes longer per call in a longer history.
    #[arg(long, default_value_t = 1_600)]
    pub round: usize,
    /// Threads per process.
    #[arg(long, default_value_t = 8)]
    pub threads: usize,
    /// Processes per round.
    #[arg(long, default_value_t = 4)]
    pub processes: usize,
    /// The seed of all random choices.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Stops at the first violation.
    #[arg(long)]
    pub stop: bool,
    /// A defect to seed into the store.
    #[arg(long)]
    pub defect: Option<Defect>,
}

/// Progress is printed after this many rounds.
const PROGRESS_INTERVAL: usize = 10;

/// Runs rounds and checks their histories.
pub fn run(programs: &Programs, options: &Options) -> Result<Tally, RigError> {
    let started = Instant::now();
    let mut tally = Tally::default();
    loop {
        let enough = match options.seconds {
            Some(seconds) => started.elapsed() >= Duration::from_secs(seconds),
            None => tally.calls >= options.calls,
        };
        if enough || options.stop && !tally.is_clean() {
            return Ok(tally);
        }
        let number = tally.cases;
        let seed = SeededRng::at(options.seed ^ 0xc0de, &[u64::try_from(number)?]).number();
        tally.cases += 1;
        match round(programs, options, seed, &shape(options, number))? {
            Ok(calls) => tally.calls += calls,
            Err(violation) => {
                tally.calls += options.round;
                let Options { threads, processes, seed, .. } = options;
                let replay = format!(
                    "crowd --seconds 60 --threads {threads} --processes {processes} --seed {seed}"
                );
                let what = format!("round {number}: {}", violation.what);
                tally.record_violation(Violation { what, replay, ..violation });
            }
        }
        if tally.cases.is_multiple_of(PROGRESS_INTERVAL) {
            let broken = tally.broken.iter().sum::<usize>();
            let since = started.elapsed().as_secs_f64();
            eprintln!(
                "{} rounds, {} calls, {broken} broken, {since:.0} s",
                tally.cases, tally.calls
            );
        }
    }
}

/// Returns the number of threads of each process of a round.
fn shape(options: &Options, number: usize) -> Vec<usize> {
    let Options { threads, processes, .. } = *options;
    match number % 4 {
        0 => vec![threads; processes],
        1 => vec![threads],
        2 => vec![1; processes],
        _ => std::iter::once(threads).chain(std::iter::repeat_n(1, processes)).collect(),
    }
}

/// Runs one round on a new store; returns the number of calls that were explained.
fn round(
    programs: &Programs,
    options: &Options,
    seed: u64,
    shape: &[usize],
) -> Result<Result<usize, Violation>, RigError> {
    let mut scratch = scratch()?;
    let (store, history) = (scratch.path().join("store"), scratch.path().join("history"));
    let workers: usize = shape.iter().sum();
    let mut children = Vec::new();
    let mut worker = 0;
    for threads in shape {
        let member = Member {
            store: store.clone(),
            history: history.clone(),
            seed,
            worker,
            threads: *threads,
            calls: options.round.div_ceil(workers.max(1)),
            defect: options.defect,
        };
        children.push(member.command(&programs.crowd).spawn()?);
        worker += u64::try_from(*threads)?;
    }
    let mut crashed = None;
    for child in children {
        let (exit, complaint) = workload::wait(child)?;
        if !matches!(exit, Exit::Code(0)) {
            let what = format!("a process ended with {exit:?}: {complaint}");
            crashed = Some(Violation::new(BrokenGuarantee::Crashed, what));
        }
    }
    if let Some(violation) = crashed {
        return Ok(Err(violation));
    }
    let checked = match history::read(&history) {
        Ok(calls) => checker::check(&store, seed, &calls)?.map(|()| calls.len()),
        Err(violation) => Err(violation),
    };
    if checked.is_err() && options.defect.is_none() {
        // Who came first cannot be had again from the seed.
        scratch.disable_cleanup(true);
        eprintln!("kept: {}", scratch.path().display());
    }
    Ok(checked)
}
