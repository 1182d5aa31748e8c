//! Tests of the tests: each seeded defect must be caught, and soon.

use crate::Fault;
use crate::defects::Defect;
use crate::programs::Programs;
use crate::report::Violation;
use crate::{crowd, faults, power};

/// What to do.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Images, runs with a fault, or hundreds of calls of a crowd, within which a defect must be
    /// caught.
    #[arg(long, default_value_t = 1_000)]
    pub within: usize,
    /// Where every choice comes from.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Only this defect.
    #[arg(long)]
    pub defect: Option<Defect>,
}

/// How a defect fared.
#[derive(Clone, Debug)]
pub struct Caught {
    /// Which.
    pub defect: Defect,
    /// After how many images, runs or rounds.
    pub after: usize,
    /// By what; `None` when it was missed.
    pub by: Option<Violation>,
}

/// Lets every defect loose.
pub fn run(programs: &Programs, options: &Options) -> Result<Vec<Caught>, Fault> {
    let defects = Defect::ALL.into_iter();
    defects
        .filter(|defect| options.defect.is_none_or(|only| only == *defect))
        .map(|defect| caught(programs, options, defect))
        .collect()
}

fn caught(programs: &Programs, options: &Options, defect: Defect) -> Result<Caught, Fault> {
    let seed = options.seed;
    let tally = match defect {
        // Only an error can be swallowed.
        Defect::ErrorSwallowed => faults::run(
            programs,
            &faults::Options {
                workloads: options.within.div_ceil(500),
                seed,
                steps: 4,
                every: 1,
                jobs: 1,
                workload: None,
                call: None,
                stop: true,
                defect: Some(defect),
            },
        )?,
        // Only a crowd can come in between.
        Defect::TornRead | Defect::StaleTip => crowd::run(
            programs,
            &crowd::Options {
                seconds: None,
                calls: options.within * 100,
                round: 800,
                threads: 8,
                processes: 4,
                seed,
                stop: true,
                defect: Some(defect),
            },
        )?,
        _ => power::run(
            programs,
            &power::Options {
                images: options.within,
                workloads: options.within.div_ceil(250),
                seed,
                jobs: 1,
                workload: None,
                cut: None,
                // Making the store is the easiest place to be caught at.
                acknowledged: true,
                stop: true,
                defect: Some(defect),
            },
        )?,
    };
    Ok(Caught { defect, after: tally.cases, by: tally.violations.into_iter().next() })
}
