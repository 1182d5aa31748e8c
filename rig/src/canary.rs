//! Tests of the rig itself: each seeded defect must be caught quickly.

use crate::RigError;
use crate::defects::Defect;
use crate::programs::Programs;
use crate::report::Violation;
use crate::{crowd, faults, power};

#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Images, runs with a fault, or hundreds of calls of a crowd, within which a defect must be
    /// caught.
    #[arg(long, default_value_t = 1_000)]
    pub within: usize,
    /// The seed of all random choices.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Only this defect.
    #[arg(long)]
    pub defect: Option<Defect>,
}

/// The result for a defect.
#[derive(Clone, Debug)]
pub struct CanaryResult {
    pub defect: Defect,
    /// The number of images, runs or rounds.
    pub after: usize,
    /// The violation that revealed it; `None` if it was missed.
    pub by: Option<Violation>,
}

/// Runs the rig with every defect.
pub fn run(programs: &Programs, options: &Options) -> Result<Vec<CanaryResult>, RigError> {
    let defects = Defect::ALL.into_iter();
    defects
        .filter(|defect| options.defect.is_none_or(|only| only == *defect))
        .map(|defect| caught(programs, options, defect))
        .collect()
}

fn caught(
    programs: &Programs,
    options: &Options,
    defect: Defect,
) -> Result<CanaryResult, RigError> {
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
    Ok(CanaryResult { defect, after: tally.cases, by: tally.violations.into_iter().next() })
}
