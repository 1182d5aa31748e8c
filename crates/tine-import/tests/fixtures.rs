//! For every format a fixture with the traps of its description, and the expected tree beside it.
//!
//! `TINE_EXPECT=write cargo test -p tine-import` writes what came out, to be read and committed.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tine_core::{ConversationId, Limits, Message, Role};
use tine_engine::{Append, Call, Engine, FixedEntropy, ManualClock, Page, RecentQuery};
use tine_import::importer::{ImportSettings, ImportSummary};
use tine_store::MemoryStore;

use crate::drawing::{draw, engine, import, notes};

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

/// Imports the fixture, compares the trees, and imports it again.
fn check(name: &str) {
    let (input, expected) = (folder(name).join("input"), folder(name).join("expected.txt"));
    let engine = engine();
    let importer = import(&engine, &input, ImportSettings::default());
    let found = format!("{}{}", draw(&engine), notes(&importer.notes, &input));
    if std::env::var_os("TINE_EXPECT").is_some() {
        fs::write(&expected, &found).unwrap();
    }
    let expected = fs::read_to_string(&expected).unwrap_or_default();
    assert!(found == expected, "{name} gave another tree:\n{found}\ninstead of:\n{expected}");
    let problems = engine.verify().expect("a check").problems;
    assert!(problems.is_empty(), "{problems:?}");

    let again = import(&engine, &input, ImportSettings::default());
    let ImportSummary { conversations, grown, turns, branches, .. } = again.summary;
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
        let mut importer =
            tine_import::importer::Importer::begin(&engine, &call, ImportSettings::default())
                .expect("a beginning");
        jobs.iter().for_each(|job| importer.run(job).expect("a file"));
        importer.finish().expect("an end");
        (importer.summary.conversations, importer.summary.turns, draw(&engine))
    };
    assert_eq!(count(false), count(true));
}

/// A list of conversations shows when people were last at them, not when they were imported.
#[test]
fn an_imported_branch_is_extended_until_it_was_continued_locally() {
    let files = tempfile::tempdir().expect("a folder");
    let chat = |year: u32| {
        format!(
            r#"{{"id":"y{year}","title":"{year}","mapping":{{"a":{{"id":"a","parent":null,
            "message":{{"author":{{"role":"user"}},"create_time":{},
            "content":{{"content_type":"text","parts":["Hello"]}}}}}}}}}}"#,
            u64::from(year - 1970) * 31_557_600 + 3_000_000
        )
    };
    let list = format!("[{},{},{}]", chat(2025), chat(2021), chat(2023));
    let file = files.path().join("conversations.json");
    fs::write(&file, list).expect("a file");
    let start = "2026-01-01T00:00:00Z".parse().expect("a sound time");
    let engine = Engine::with(
        Arc::new(MemoryStore::new()),
        Arc::new(ManualClock::new(start, 1_000)),
        Arc::new(FixedEntropy::new(1)),
        Limits::default(),
    );
    import(&engine, &file, ImportSettings::default());
    let call = Call::by("tester");
    let recent = || -> Vec<String> {
        let query = RecentQuery::default();
        let page = Page::default();
        let found = engine.recent_conversations(&call, &query, page).expect("a list").items;
        let years = found.iter().map(|it| it.active_at.to_string()[..4].to_owned());
        found
            .iter()
            .map(|it| it.title.clone().expect("a title"))
            .zip(years)
            .map(|(a, b)| a + "/" + &b)
            .collect()
    };
    assert_eq!(recent(), ["2025/2025", "2023/2023", "2021/2021"]);
    let talk = ConversationId::from_stored("chatgpt:y2021");
    let said = vec![Message::text(Role::User, "Still there?")];
    engine.append(&call, Append::to(talk, said)).expect("an append");
    assert_eq!(recent(), ["2021/2026", "2025/2025", "2023/2023"]);
}
