//! The short form of fuzzing: mutations of a small corpus, the same in every run. The tests of the
//! crates with the decoders compile this file.

use std::fs;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};

/// Byte strings that decoders often handle wrongly.
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

/// Random numbers, the same in every run.
pub struct SeededRng(pub u64);

impl SeededRng {
    pub fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33).expect("it has 31 bits")
            % limit.max(1)
    }
}

/// Returns a member of the corpus with a few changes.
pub fn mutate(rng: &mut SeededRng, corpus: &[Vec<u8>]) -> Vec<u8> {
    let mut data = corpus[rng.below(corpus.len())].clone();
    for _ in 0..=rng.below(3) {
        let at = rng.below(data.len() + 1);
        let end = (at + 1 + rng.below(8)).min(data.len());
        match rng.below(10) {
            0 if at < data.len() => data[at] ^= 1 << rng.below(8),
            1 if at < data.len() => data[at] = u8::try_from(rng.below(256)).expect("a byte"),
            2 if at < end => drop(data.drain(at..end)),
            3 => {
                let piece = PIECES[rng.below(PIECES.len())];
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
                    *digit = b'0' + u8::try_from(rng.below(10)).expect("a digit");
                }
            }
            7..=8 => lines(rng, &mut data),
            _ => {
                let other = &corpus[rng.below(corpus.len())];
                let from = rng.below(other.len() + 1);
                data.truncate(at);
                data.extend_from_slice(&other[from..]);
            }
        }
    }
    data
}

/// Drops, repeats or swaps whole lines.
fn lines(rng: &mut SeededRng, data: &mut Vec<u8>) {
    let mut lines: Vec<Vec<u8>> = data.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
    let (one, other) = (rng.below(lines.len()), rng.below(lines.len()));
    match rng.below(3) {
        0 => drop(lines.remove(one)),
        1 => lines.insert(other, lines[one].clone()),
        _ => lines.swap(one, other),
    }
    *data = lines.join(&b'\n');
}

/// The variable that multiplies the number of mutations.
const TIMES: &str = "TINE_FUZZ_TIMES";

/// Passes every file of a folder, and a number of mutations, to a target.
pub fn run(folder: &Path, check: fn(&[u8]), rounds: usize) {
    let times = std::env::var(TIMES).ok().and_then(|times| times.parse().ok()).unwrap_or(1);
    let rounds = rounds.saturating_mul(times);
    let mut files = Vec::new();
    gather(folder, &mut files);
    files.sort();
    let corpus: Vec<Vec<u8>> =
        files.iter().map(|path| fs::read(path).expect("a readable corpus")).collect();
    let mut rng = SeededRng(0x7469_6e65 + files.len() as u64);
    let mutated = (0..rounds).map(|_| mutate(&mut rng, &corpus));
    for input in corpus.iter().cloned().chain(mutated) {
        let ended = catch_unwind(|| check(&input));
        assert!(ended.is_ok(), "{folder:?}: {:?}", String::from_utf8_lossy(&input));
    }
}

/// Finds the files in a folder and its subfolders.
fn gather(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a readable corpus") {
        let path = entry.expect("a readable corpus").path();
        match path.is_dir() {
            true => gather(&path, files),
            false => files.push(path),
        }
    }
}
