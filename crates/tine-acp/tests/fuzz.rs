//! The agent under mutated client messages. `fuzz/README.md` describes the longer form, which runs
//! the same function.

#[path = "../../../fuzz/src/mutations.rs"]
mod mutations;
#[path = "../../../fuzz/src/rpc.rs"]
mod rpc;

use std::path::Path;

#[test]
fn no_line_makes_the_agent_panic_or_damages_the_store() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/rpc");
    mutations::run(&corpus, rpc::rpc, 1_000);
}
