//! The decoders of this crate under mutations. `fuzz/README.md` tells about the long form; both run
//! the same functions.

#[path = "../../../../fuzz/src/mutations.rs"]
pub mod mutations;
#[path = "../../../../fuzz/src/targets.rs"]
pub mod targets;

use std::fs;
use std::path::Path;

fn run(target: &str, check: fn(&[u8]), rounds: usize) {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    mutations::run(&corpus.join(target), check, rounds);
}

#[test]
fn json_agrees_with_other_implementations_on_any_input() {
    run("json", targets::json, 4_000);
}

#[test]
fn messages_are_rejected_or_round_trip() {
    run("message", targets::message, 4_000);
}

#[test]
fn references_and_times_have_one_spelling() {
    run("reference", targets::reference, 4_000);
    run("timestamp", targets::timestamp, 4_000);
}

#[test]
fn mutated_bundles_are_rejected_or_verify() {
    run("bundle", targets::bundle, 600);
    run("sealed_bundle", targets::sealed_bundle, 600);
}

#[test]
fn a_bundle_with_a_corrected_end_line_passes_the_end_check() {
    let trip = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/sealed_bundle/trip.jsonl");
    let sealed = targets::sealed(&fs::read(trip).unwrap());
    let limits = tine_core::Limits::default();
    tine_formats::bundle::verify_bundle(&mut sealed.as_slice(), &limits).unwrap();
}
