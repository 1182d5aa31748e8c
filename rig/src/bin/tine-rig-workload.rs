//! The program under test: carries out a plan on an embedded store.

use clap::Parser;

#[derive(Debug, Parser)]
struct Arguments {
    #[command(flatten)]
    work: tine_rig::workload::WorkloadArgs,
}

fn main() -> Result<(), tine_rig::RigError> {
    let code = Arguments::parse().work.run()?;
    std::process::exit(code)
}
