//! `tine repl`, from a pipe and on a terminal.

mod lines;
#[cfg(unix)]
mod terminal;

use crate::harness::{Home, Ran, finish};

/// Runs lines in one session.
pub fn repl(home: &Home, lines: &[&str]) -> Ran {
    let input: String = lines.iter().map(|line| format!("{line}\n")).collect();
    finish(&mut home.command(&["repl"]), input.as_bytes())
}

/// Runs lines that must all succeed, and returns the output.
pub fn answers(home: &Home, lines: &[&str]) -> String {
    let ran = repl(home, lines);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{lines:?}: {}", ran.out);
    ran.out
}
