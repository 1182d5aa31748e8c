//! The short form of fuzzing: a few thousand mutations of a small corpus, the same in every run.
//!
//! `fuzz/README.md` tells about the long form. Both run the same functions.

#[path = "../../../../fuzz/src/targets.rs"]
pub mod targets;

use std::fs;
use std::panic::catch_unwind;
use std::path::Path;

/// Pieces that decoders stumble over.
const PIECES: [&str; 24] = [
    "\"",
    "\\",
    "\\u0000",
    "\\ud800",
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "null",
    "true",
    "0",
    "-0",
    "1e400",
    "9007199254740993",
    "0.1",
    "~",
    "sha256:",
    "\u{1f338}",
    "\u{0}",
    "\n",
    "\u{feff}",
    "-9223372036854775809",
];

/// Numbers that look random and are the same in every run.
pub struct Dice(pub u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33).unwrap() % limit.max(1)
    }
}

pub fn mutate(dice: &mut Dice, corpus: &[Vec<u8>]) -> Vec<u8> {
    let mut data = corpus[dice.below(corpus.len())].clone();
    for _ in 0..=dice.below(3) {
        let at = dice.below(data.len() + 1);
        let end = (at + 1 + dice.below(8)).min(data.len());
        match dice.below(10) {
            0 if at < data.len() => data[at] ^= 1 << dice.below(8),
            1 if at < data.len() => data[at] = u8::try_from(dice.below(256)).unwrap(),
            2 if at < end => drop(data.drain(at..end)),
            3 => {
                let piece = PIECES[dice.below(PIECES.len())];
                data.splice(at..at, piece.bytes());
            }
            4 if at < end => {
                let again = data[at..end].to_vec();
                data.splice(at..at, again);
            }
            5 => data.truncate(at),
            6 => {
                // A digit by another one, wherever the next one is.
                if let Some(digit) = data.iter_mut().skip(at).find(|byte| byte.is_ascii_digit()) {
                    *digit = b'0' + u8::try_from(dice.below(10)).unwrap();
                }
            }
            7..=8 => lines(dice, &mut data),
            _ => {
                let other = &corpus[dice.below(corpus.len())];
                let from = dice.below(other.len() + 1);
                data.truncate(at);
                data.extend_from_slice(&other[from..]);
            }
        }
    }
    data
}

/// Drops, repeats or swaps whole lines.
fn lines(dice: &mut Dice, data: &mut Vec<u8>) {
    let mut lines: Vec<Vec<u8>> = data.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
    let (one, other) = (dice.below(lines.len()), dice.below(lines.len()));
    match dice.below(3) {
        0 => drop(lines.remove(one)),
        1 => lines.insert(other, lines[one].clone()),
        _ => lines.swap(one, other),
    }
    *data = lines.join(&b'\n');
}

fn run(target: &str, check: fn(&[u8]), rounds: usize) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let mut files: Vec<_> = fs::read_dir(&folder).unwrap().map(|it| it.unwrap().path()).collect();
    files.sort();
    let corpus: Vec<Vec<u8>> = files.iter().map(|path| fs::read(path).unwrap()).collect();
    let mut dice = Dice(0x7469_6e65 + target.len() as u64);
    let inputs = corpus.iter().cloned();
    let mutated = (0..rounds).map(|_| mutate(&mut dice, &corpus)).collect::<Vec<_>>();
    for input in inputs.chain(mutated) {
        let ended = catch_unwind(|| check(&input));
        assert!(ended.is_ok(), "{target}: {:?}", String::from_utf8_lossy(&input));
    }
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
