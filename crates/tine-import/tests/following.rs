//! Imports that are interrupted, and files that are being written.

use std::fs;
use std::path::PathBuf;

use tine_engine::{Call, Engine};
use tine_import::detect::{self, ImportJob};
use tine_import::importer::{ImportSettings, ImportSummary, Importer};

use crate::drawing::{draw, engine};

fn begin(engine: &Engine) -> Importer<'_> {
    Importer::begin(engine, &Call::by("tester"), ImportSettings::default()).expect("a beginning")
}

fn jobs(path: PathBuf) -> Vec<ImportJob> {
    let mut jobs = detect::plan(&[path], None).expect("a plan").jobs;
    jobs.sort_by(|a, b| a.path.cmp(&b.path));
    jobs
}

fn fixture(name: &str) -> PathBuf {
    let fixtures = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    fixtures.join(name).join("input")
}

#[test]
fn an_interrupted_import_continues_after_any_file() {
    for name in ["claude-code", "codex", "pi", "opencode"] {
        let jobs = jobs(fixture(name));
        let whole = engine();
        let mut importer = begin(&whole);
        jobs.iter().for_each(|job| importer.run(job).expect("a file"));
        importer.finish().expect("an end");
        for end in 0..jobs.len() {
            let engine = engine();
            let mut first = begin(&engine);
            jobs[..end].iter().for_each(|job| first.run(job).expect("a file"));
            // Killed here: nothing is finished.
            let mut second = begin(&engine);
            jobs.iter().for_each(|job| second.run(job).expect("a file"));
            second.finish().expect("an end");
            let turns = |engine: &Engine| {
                draw(engine)
                    .lines()
                    .filter(|line| !line.starts_with('>'))
                    .map(str::to_owned)
                    .collect::<Vec<_>>()
            };
            assert_eq!(turns(&engine), turns(&whole), "{name} ended after {end} files");
        }
    }
}

fn answer(uuid: &str, parent: &str, block: &str) -> String {
    format!(
        "{{\"type\":\"assistant\",\"uuid\":\"{uuid}\",\"parentUuid\":\"{parent}\",\"sessionId\":\"s\",\
         \"timestamp\":\"2026-01-01T00:00:01Z\",\"message\":{{\"id\":\"m\",\"role\":\"assistant\",\
         \"content\":[{{\"type\":\"text\",\"text\":\"{block}\"}}]}}}}\n"
    )
}

#[test]
fn an_incomplete_answer_is_held_back_while_its_file_grows() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("s.jsonl");
    let question = "{\"type\":\"user\",\"uuid\":\"q\",\"parentUuid\":null,\"sessionId\":\"s\",\
                    \"timestamp\":\"2026-01-01T00:00:00Z\",\"message\":{\"role\":\"user\",\"content\":\"?\"}}\n";
    let engine = engine();
    let mut importer = begin(&engine);
    fs::write(&path, format!("{question}{}", answer("a", "q", "half"))).unwrap();
    importer.run_growing(&jobs(path.clone())[0]).expect("a file");
    assert_eq!(importer.summary.turns, 1, "the question alone");
    fs::write(
        &path,
        format!("{question}{}{}", answer("a", "q", "half"), answer("b", "a", "whole")),
    )
    .unwrap();
    importer.run_growing(&jobs(path.clone())[0]).expect("a file");
    assert_eq!(importer.summary.turns, 1);
    let job = &jobs(path)[0];
    assert!(!importer.has_read(job), "it is read again once it is quiet");
    importer.run(job).expect("a file");
    assert_eq!(importer.summary.turns, 2);
    assert!(draw(&engine).contains("half") && draw(&engine).contains("whole"));
    assert!(!draw(&engine).contains('~'), "no half answer was left behind");
    assert!(importer.has_read(job));
    let ImportSummary { unchanged_files, .. } = {
        importer.run(job).expect("a file");
        importer.summary.clone()
    };
    assert_eq!(unchanged_files, 1);
}
