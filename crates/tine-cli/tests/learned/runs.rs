//! `tine interpret`.

use super::{items, shown, text, with_task};
use crate::harness::Home;

const UNKNOWN: &str = "int_00000000000000000000000000000000";

/// A store with one source.
fn with_source(interpret: &str, status: &str) -> (Home, String) {
    let home = Home::new();
    let file = home.write("notes.md", "TODO: pay the invoice by 2025-04-01.\n");
    let stored = home.json(&["store", "source", &file, "--interpret", interpret]);
    assert_eq!(stored["interpretation"]["status"], status);
    (home, text(&stored, "/source_id"))
}

#[test]
fn queued_runs_are_listed_executed_and_kept() {
    let (home, source) = with_source("queue", "queued");
    insta::assert_snapshot!("interpret_status", shown(&home, &["interpret", "--status"]));
    insta::assert_snapshot!("interpret_run", shown(&home, &["interpret", "--run"]));
    assert_eq!(home.ok(&["interpret", "--run"]), "0 runs done\n");
    assert_eq!(home.json(&["interpret", "--status"])["queued"], 0);
    let runs = items(&home, &["interpret", "--of", &source]);
    assert_eq!(runs[0]["status"], "completed");
    let run = text(&runs[0], "/interpretation_id");
    let shown = shown(&home, &["interpret", "--show", &run]);
    let shown: Vec<&str> = shown.lines().filter(|line| !line.starts_with("duration")).collect();
    insta::assert_snapshot!("interpret_show", shown.join("\n"));
    assert!(home.ok(&["interpret", "--show", &run, "--bytes"]).contains("response: none"));
    assert!(home.ok(&["interpret", "--replay", &run]).contains("1 finding recomputed"));
    home.refused("not_found", &["interpret", "--replay", UNKNOWN]);
    let again = home.ok(&["interpret", "--mime", "text/markdown"]);
    assert!(again.contains("queued"), "{again}");
    assert!(home.ok(&["interpret", "--run"]).contains("1 run done\n"));
}

#[test]
fn runs_of_other_projects_are_executed_too() {
    let home = Home::new();
    let file = home.write("notes.md", "TODO: pay the invoice.\n");
    home.ok(&["store", "source", &file, "--project", "other"]);
    assert!(home.ok(&["interpret", "--run"]).contains("completed"));
    assert_eq!(items(&home, &["entity", "list", "--project", "other"]).len(), 1);
}

#[test]
fn interpreting_again_adds_a_run_to_compare() {
    let (home, source) = with_source("wait", "completed");
    let again = home.ok(&["interpret", &source, "--wait"]);
    assert!(again.contains("completed"), "{again}");
    let third = home.ok(&["interpret", "--mime", "text/markdown", "--wait"]);
    assert!(third.contains("completed"), "{third}");
    let runs = items(&home, &["interpret", "--of", &source]);
    assert_eq!(runs.len(), 3);
    let run = |nth: usize| text(&runs[nth], "/interpretation_id");
    let same = home.ok(&["interpret", "--compare", &run(0), &run(1)]);
    assert_eq!(same, "0 gained, 0 lost, 0 changed, 1 the same\n");
    assert_eq!(home.json(&["interpret", "--compare", &run(0), &run(1)])["same"], 1);
}

#[test]
fn a_failed_run_has_an_error_and_can_be_retried() {
    let home = Home::new();
    let file = home.write("bad.txt", b"caf\xe9");
    let stored = home.json(&["store", "source", &file, "--interpret", "wait"]);
    assert_eq!(stored["interpretation"]["status"], "failed");
    let run = text(&stored, "/interpretation/interpretation_id");
    assert!(home.ok(&["interpret", "--show", &run]).contains("is not UTF-8"));
    let retried = home.json(&["interpret", "--retry", &run, "--wait"]);
    assert_eq!(retried["retry_of"], run.as_str());
    assert_eq!(retried["status"], "failed");
    let failed = items(&home, &["interpret", "--failed", "--wait"]);
    assert_eq!(failed.len(), 1);
}

#[test]
fn a_run_that_fails_is_counted() {
    let home = Home::new();
    let file = home.write("bad.txt", b"caf\xe9");
    home.ok(&["store", "source", &file, "--interpret", "wait"]);
    home.ok(&["interpret", "--failed"]);
    assert!(home.ok(&["interpret", "--run"]).contains("1 run done, 1 failed"));
}

#[test]
fn a_bad_request_is_refused() {
    let home = with_task();
    let source = text(&items(&home, &["source", "list"])[0], "/source_id");
    let run = text(&items(&home, &["interpret", "--of", &source])[0], "/interpretation_id");
    home.refused("not_found", &["interpret", "--show", UNKNOWN]);
    home.refused("not_found", &["interpret", "--retry", UNKNOWN]);
    home.refused("not_found", &["interpret", "--compare", &run, UNKNOWN]);
    home.refused("not_found", &["interpret", "src_00000000000000000000000000000000"]);
    let calls: [&[&str]; 7] = [
        &["interpret"],
        &["interpret", "--retry", &run],
        &["interpret", &source, "--interpreter", "nobody"],
        &["interpret", "--status", "--run"],
        &["interpret", "--show", &source],
        &["interpret", "--compare", &run],
        &["interpret", &source, "--failed"],
    ];
    for arguments in calls {
        home.refused("invalid", arguments);
    }
    assert_eq!(items(&home, &["interpret", "--of", &source]).len(), 1, "nothing was queued");
}
