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
fn json_reads_and_writes_as_its_judges_do_whatever_it_is_given() {
    run("json", targets::json, 4_000);
}

#[test]
fn messages_are_refused_or_kept_in_a_form_that_reads_back() {
    run("message", targets::message, 4_000);
}

#[test]
fn references_and_times_have_one_spelling_whatever_they_are_read_from() {
    run("reference", targets::reference, 4_000);
    run("timestamp", targets::timestamp, 4_000);
}

#[test]
fn bundles_are_refused_or_verify_whatever_was_done_to_them() {
    run("bundle", targets::bundle, 600);
    run("sealed_bundle", targets::sealed_bundle, 600);
}

#[test]
fn a_sealed_bundle_gets_past_its_end_line() {
    let trip = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/sealed_bundle/trip.jsonl");
    let sealed = targets::sealed(&fs::read(trip).unwrap());
    let limits = tine_core::Limits::default();
    tine_formats::bundle::verify_bundle(&mut sealed.as_slice(), &limits).unwrap();
}
