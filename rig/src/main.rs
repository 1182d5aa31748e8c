//! The rig's commands. Each ends with a summary line, and fails with a line that reproduces a
//! violation.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::{Parser, Subcommand};

use tine_rig::programs::Programs;
use tine_rig::report::Tally;
use tine_rig::shim::{Layer, Shim};
use tine_rig::{RigError, canary, crowd, faults, kill, power, server};

/// Tests Tine by power loss, I/O faults, kills and concurrency: no acknowledged write may be lost.
///
/// Stores are created in the folder for temporary files (TMPDIR); one in memory is faster.
#[derive(Debug, Parser)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Check images of a power loss at any moment
    Power(power::Options),
    /// Let every n-th call fail, once and permanently
    Faults(faults::Options),
    /// Kill processes at any moment
    Kill(kill::Options),
    /// Run many processes and threads at once, and check for linearizability
    Crowd(crowd::Options),
    /// Kill the server at any moment while clients append over HTTP
    KillServer(server::Options),
    /// Check that each seeded defect is caught
    Canary(canary::Options),
    /// Run a program with slower syncs, to measure it as on a slower disk
    Slow(Slow),
}

#[derive(Debug, clap::Args)]
struct Slow {
    /// The delay of each sync, in microseconds
    #[arg(long, default_value_t = 1_000)]
    micros: u64,
    /// The folder whose files are affected, with subfolders
    #[arg(long)]
    folder: PathBuf,
    /// The program and its arguments
    #[arg(trailing_var_arg = true, required = true)]
    program: Vec<OsString>,
}

impl Slow {
    fn run(&self) -> Result<ExitCode, RigError> {
        let shim = Shim::build()?;
        let (name, arguments) = self.program.split_first().ok_or("there is no program")?;
        let mut command = std::process::Command::new(name);
        command.args(arguments);
        let delay_sync = Duration::from_micros(self.micros);
        let layer = Layer { root: self.folder.clone(), delay_sync, ..Layer::default() };
        shim.under(&mut command, &layer)?;
        Ok(if command.status()?.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

fn main() -> Result<ExitCode, RigError> {
    let arguments = Arguments::parse();
    let programs = Programs::beside()?;
    let started = Instant::now();
    let (tally, cases, seed) = match &arguments.command {
        Command::Power(options) => (power::run(&programs, options)?, "images", options.seed),
        Command::Faults(options) => (faults::run(&programs, options)?, "runs", options.seed),
        Command::Kill(options) => (kill::run(&programs, options)?, "cycles", options.seed),
        Command::Crowd(options) => (crowd::run(&programs, options)?, "rounds", options.seed),
        Command::KillServer(options) => (server::run(&programs, options)?, "cycles", options.seed),
        Command::Canary(options) => return canaries(&programs, options, started),
        Command::Slow(slow) => return slow.run(),
    };
    Ok(report(&tally, cases, seed, started))
}

fn report(tally: &Tally, cases: &str, seed: u64, started: Instant) -> ExitCode {
    for violation in &tally.violations {
        println!("{violation}");
    }
    println!("{}", tally.summary(cases, seed, started.elapsed()));
    if tally.is_clean() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn canaries(
    programs: &Programs,
    options: &canary::Options,
    started: Instant,
) -> Result<ExitCode, RigError> {
    let all = canary::run(programs, options)?;
    for caught in &all {
        match &caught.by {
            Some(violation) => {
                let what: String = violation.what.chars().take(120).collect();
                let (defect, after) = (caught.defect, caught.after);
                println!("{defect:?}: caught after {after}: {:?}: {what}", violation.broken);
            }
            None => println!("{:?}: MISSED in {}", caught.defect, caught.after),
        }
    }
    let missed = all.iter().filter(|caught| caught.by.is_none()).count();
    let took = started.elapsed().as_secs_f64();
    println!("{} defects, {missed} missed; seed {}, {took:.1} s", all.len(), options.seed);
    Ok(if missed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
