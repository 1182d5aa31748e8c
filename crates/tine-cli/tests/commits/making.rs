//! Making commits and looking at them.

use super::with_osaka;
use crate::harness::{Home, finish, hash_of, stable};

#[test]
fn a_commit_seals_what_is_new_and_then_there_is_nothing() {
    let home = Home::with_trip();
    let out = home.ok(&["commit", "--msg", "Research complete"]);
    assert!(out.starts_with("[main] ") && out.contains("Research complete"), "{out}");
    assert!(out.contains("2 turns: a9d2e63be84c … e38bb1328f49"), "{out}");
    let why = home.refused("invalid", &["commit", "-m", "Again"]);
    assert!(why.contains("nothing to commit"), "{why}");
    home.ok(&["append", "And in autumn?"]);
    let second = home.json(&["commit", "-m", "Autumn", "--author", "Ada"]);
    assert_eq!(second["turn_count"], 1);
    assert_eq!(second["author"], "Ada");
    let first = home.json(&["commits"])["items"][1]["commit_hash"].clone();
    assert_eq!(second["parent_hashes"], serde_json::json!([first]));
}

#[test]
fn a_window_is_committed_by_its_ends() {
    let home = Home::with_trip();
    home.ok(&["append", "And in autumn?"]);
    let (start, end) = (hash_of(&home, "main~2"), hash_of(&home, "main~1"));
    let made = home.json(&["commit", "main~2", "main~1", "--msg", "Specific range"]);
    assert_eq!(made["turn_window"]["start_turn_hash"], start);
    assert_eq!(made["turn_window"]["end_turn_hash"], end);
    let why = home.refused("invalid", &["commit", &end, &start, "-m", "x"]);
    assert!(why.contains("after its end"), "{why}");
    let why = home.refused("invalid", &["commit", &end, "-m", "one end"]);
    assert!(why.contains("START"), "{why}");
    home.refused("invalid", &["commit"]);
    home.refused("invalid", &["commit", "-m", " "]);
}

#[test]
fn messages_keep_spaces_and_quotes() {
    let home = Home::with_trip();
    let message = "  Ada said \"yes\", it's  settled\n\nsecond — 京都\u{1b}[2J";
    let made = home.json(&["commit", "-m", message]);
    assert_eq!(made["message"], message);
    let hash = made["commit_hash"].as_str().unwrap();
    let shown = home.ok(&["show", hash]);
    assert!(shown.contains("Ada said \"yes\", it's  settled"), "{shown}");
    for out in [shown, home.ok(&["commits"]), home.ok(&["log", "--commits"])] {
        assert!(!out.contains('\u{1b}'), "a message does not steer the terminal: {out}");
    }
}

#[test]
fn the_graph_shows_branches_and_merges() {
    let home = with_osaka();
    home.ok(&["commit", "-m", "Kyoto"]);
    home.ok(&["commit", "-b", "osaka", "-m", "Osaka instead"]);
    home.ok(&["merge", "osaka", "-m", "Take Osaka in"]);
    home.ok(&["append", "Good."]);
    home.ok(&["commit", "-m", "Settled"]);
    let graph = home.ok(&["log", "--graph"]);
    insta::assert_snapshot!("graph", stable(&graph, &home.path("")));
    assert_eq!(home.ok(&["log", "--graph", "-n", "2"]).lines().count(), 3, "{graph}");
    assert!(!home.ok(&["log", "--graph", "osaka"]).contains("Settled"));
    let items = home.json(&["log", "--graph"]);
    assert_eq!(items["items"].as_array().unwrap().len(), 5);
    let coloured = home.ok(&["log", "--graph", "--color", "always"]);
    assert!(coloured.contains("\u{1b}[1;32m[main]"), "{coloured}");
    let narrow = finish(home.command(&["log", "--graph"]).env("COLUMNS", "60"), b"").out;
    assert!(narrow.contains("Take Osaka in"), "{narrow}");
}

#[test]
fn commits_are_listed_newest_first() {
    let home = with_osaka();
    home.ok(&["commit", "-b", "osaka", "-m", "Osaka instead"]);
    insta::assert_snapshot!("commits", stable(&home.ok(&["commits"]), &home.path("")));
    insta::assert_snapshot!(
        "log_commits",
        stable(&home.ok(&["log", "--commits", "osaka"]), &home.path(""))
    );
    assert_eq!(home.ok(&["commits", "-n", "1"]).lines().count(), 1);
    assert_eq!(home.ok(&["commits", "--branch", "main"]).lines().count(), 1);
    assert_eq!(home.ok(&["log", "--commits", "--oneline", "osaka"]).lines().count(), 2);
    home.refused("not_found", &["commits", "--branch", "nothing"]);
    assert!(home.ok(&["log"]).contains("Kyoto"), "without --commits it is turns");
}

#[test]
fn a_log_of_turns_says_where_commits_end() {
    let home = with_osaka();
    home.ok(&["commit", "main~1", "main~1", "-m", "Only the answer"]);
    home.ok(&["merge", "osaka", "--into", "main", "-m", "Both"]);
    insta::assert_snapshot!("log_turns", stable(&home.ok(&["log"]), &home.path("")));
    assert!(!home.ok(&["log", "--oneline"]).contains("commit"));
}

#[test]
fn a_commit_is_shown_with_its_window_facets_and_evidence() {
    let home = with_osaka();
    let hash = home.json(&["commits"])["items"][0]["commit_hash"].as_str().unwrap().to_owned();
    let short = &hash["sha256:".len()..][..12];
    let shown = home.ok(&["show", short]);
    insta::assert_snapshot!("show_commit", stable(&shown, &home.path("")));
    assert_eq!(home.json(&["show", short]), home.json(&["show", &hash]));
    home.refused("not_found", &["show", "0123456789ab"]);
}

#[test]
fn rings_tell_what_a_turn_is_about() {
    let home = Home::with_trip();
    let out = home.ok(&["show", "main~1", "--rings"]);
    assert!(out.contains("intent") && out.contains("question") && out.contains("Tokyo"), "{out}");
    let turn = home.json(&["show", "main~1", "--rings"]);
    assert_eq!(turn["rings"]["ring2"]["intent"], "question", "{turn}");
    assert!(home.json(&["show", "main~1"]).get("rings").is_none(), "only where it is asked for");
}

#[test]
fn turns_are_listed_by_number_and_role() {
    let home = with_osaka();
    assert_eq!(home.ok(&["turns"]).lines().count(), 3);
    assert_eq!(home.ok(&["turns", "--n", "2"]).lines().count(), 2);
    let users = home.ok(&["turns", "--role", "user", "-n", "1", "-b", "osaka"]);
    assert!(users.contains("What about Osaka instead?"), "{users}");
    assert_eq!(users.lines().count(), 1);
    assert_eq!(home.json(&["turns", "--role", "assistant"])["turns"].as_array().unwrap().len(), 1);
    home.refused("invalid", &["turns", "--role", "nobody"]);
}

#[test]
fn commits_can_be_undone_and_verified() {
    let home = with_osaka();
    assert_eq!(home.ok(&["commits"]).lines().count(), 1);
    home.ok(&["commit", "-m", "Kyoto"]);
    home.ok(&["undo"]);
    assert_eq!(home.ok(&["commits"]).lines().count(), 1);
    home.ok(&["redo"]);
    assert_eq!(home.ok(&["commits"]).lines().count(), 2);
    assert!(home.ok(&["verify"]).contains("all is well"));
}

#[test]
fn drift_is_a_series_with_bars() {
    let home = with_osaka();
    home.ok(&["commit", "-m", "Kyoto"]);
    let out = home.ok(&["drift"]);
    insta::assert_snapshot!("drift", stable(&out, &home.path("")));
    let series = home.json(&["drift"]);
    assert_eq!(series["items"][0]["from_parent"], serde_json::Value::Null);
    assert!(series["items"][1]["from_parent"].as_f64().unwrap() > 0.0);
    home.refused("not_found", &["drift", "--branch", "nothing"]);
}
