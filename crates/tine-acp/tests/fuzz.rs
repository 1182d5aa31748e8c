//! The agent under mutations of what clients send. `fuzz/README.md` tells about the long form; both
//! run the same function.

#[path = "../../../fuzz/src/mutations.rs"]
mod mutations;
#[path = "../../../fuzz/src/rpc.rs"]
mod rpc;

use std::path::Path;

#[test]
fn no_line_makes_the_agent_panic_and_what_it_recorded_verifies() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/rpc");
    mutations::run(&corpus, rpc::rpc, 1_000);
}
