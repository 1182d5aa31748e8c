//! For every format a fixture with the traps of its description, and the expected tree beside it.
//!
//! `TINE_EXPECT=write cargo test -p tine-import` writes what came out, to be read and committed.

use std::fs;
use std::path::{Path, PathBuf};

use tine_import::land::{Settings, Summary};

use crate::drawing::{draw, engine, import, notes};

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

/// Imports the fixture, compares the trees, and imports it again.
fn check(name: &str) {
    let (input, expected) = (folder(name).join("input"), folder(name).join("expected.txt"));
    let engine = engine();
    let landing = import(&engine, &input, Settings::default());
    let found = format!("{}{}", draw(&engine), notes(&landing.notes, &input));
    if std::env::var_os("TINE_EXPECT").is_some() {
        fs::write(&expected, &found).unwrap();
    }
    let expected = fs::read_to_string(&expected).unwrap_or_default();
    assert!(found == expected, "{name} gave another tree:\n{found}\ninstead of:\n{expected}");
    let problems = engine.verify().expect("a check").problems;
    assert!(problems.is_empty(), "{problems:?}");

    let again = import(&engine, &input, Settings::default());
    let Summary { conversations, grown, turns, branches, .. } = again.summary;
    assert_eq!((conversations, grown, turns, branches), (0, 0, 0, 0), "again adds nothing");
    assert_eq!(format!("{}", draw(&engine)), draw(&engine));
}

#[test]
fn chatgpt() {
    check("chatgpt");
}

#[test]
fn claude_ai() {
    check("claude-ai");
}

#[test]
fn claude_code() {
    check("claude-code");
}

#[test]
fn codex() {
    check("codex");
}

#[test]
fn forest() {
    check("forest");
}

#[test]
fn gemini_cli() {
    check("gemini-cli");
}

#[test]
fn librechat() {
    check("librechat");
}

#[test]
fn messages() {
    check("messages");
}

#[test]
fn open_webui() {
    check("open-webui");
}

#[test]
fn opencode() {
    check("opencode");
}

#[test]
fn pi() {
    check("pi");
}

#[test]
fn a_subagent_is_a_conversation_of_its_own_whichever_file_is_read_first() {
    let input = folder("claude-code").join("input");
    let plan = tine_import::detect::plan(&[input], None).expect("a plan");
    let count = |reversed: bool| {
        let mut jobs = plan.jobs.clone();
        jobs.sort_by(|a, b| a.path.cmp(&b.path));
        if reversed {
            // Forks stay behind what they were forked off.
            jobs.reverse();
            jobs.sort_by_key(|job| job.path.to_string_lossy().contains("5e550002"));
        }
        let engine = engine();
        let call = tine_engine::Call::by("tester");
        let mut landing = tine_import::land::Landing::begin(&engine, &call, Settings::default())
            .expect("a beginning");
        jobs.iter().for_each(|job| landing.run(job).expect("a file"));
        landing.finish().expect("an end");
        (landing.summary.conversations, landing.summary.turns, draw(&engine))
    };
    assert_eq!(count(false), count(true));
}
