//! Prints how well the rules do on a corpus: `cargo run -p tine-analysis --example judge_rules [FILE]`.
//!
//! Without a file it judges the frozen corpus. With `--misses` it lists what was missed and what
//! was made up; that is for corpora that rules may be developed against, and so it is refused for
//! the frozen one.

#[path = "../tests/rules/judge/mod.rs"]
mod judge;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let misses = arguments.iter().any(|argument| argument == "--misses");
    let frozen = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/rules/corpus/frozen.json");
    let file = arguments.iter().find(|argument| !argument.starts_with("--")).map(PathBuf::from);
    let file = file.unwrap_or(frozen);
    if misses && file.ends_with("frozen.json") {
        eprintln!("The frozen corpus is not shown: develop against tests/rules/corpus/dev.json.");
        return ExitCode::FAILURE;
    }
    let verdict = judge::judge(&file);
    println!("{:<13} {}", "overall", verdict.overall());
    for (kind, score) in &verdict.types {
        println!("{kind:<13} {score}");
    }
    for miss in verdict.misses.iter().filter(|_| misses) {
        println!("{miss}");
    }
    ExitCode::SUCCESS
}
