//! Prints how good the rings of a corpus are: `cargo run -p tine-analysis --example judge_rings [FILE]`.
//!
//! Without a file it judges the frozen corpus. With `--misses` it shows what is not as expected;
//! that is for corpora that rules may be developed against, and so it is refused for the frozen one.

#[path = "../tests/rings/judge/mod.rs"]
mod judge;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let misses = arguments.iter().any(|argument| argument == "--misses");
    let frozen = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/rings/corpus/turns.jsonl");
    let file = arguments.iter().find(|argument| !argument.starts_with("--")).map(PathBuf::from);
    let file = file.unwrap_or(frozen);
    if misses && file.ends_with("turns.jsonl") {
        eprintln!("The frozen corpus is not shown: develop against tests/rings/own.jsonl.");
        return ExitCode::FAILURE;
    }
    let verdict = judge::judge(&file);
    for miss in verdict.misses.iter().filter(|_| misses) {
        println!("{miss}");
    }
    for (language, score) in &verdict.languages {
        println!("{language:<4} {score}");
    }
    println!("{:<4} {}", "all", verdict.overall());
    println!("(facets: precision / recall)");
    ExitCode::SUCCESS
}
