//! One process of a crowd on one store.

use clap::Parser;

#[derive(Debug, Parser)]
struct Arguments {
    #[command(flatten)]
    member: tine_rig::crowd::member::Member,
}

fn main() -> Result<(), tine_rig::RigError> {
    Arguments::parse().member.run()
}
