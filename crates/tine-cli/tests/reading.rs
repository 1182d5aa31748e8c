//! Every command that reads, on its happy path.

use crate::harness::{Home, hash_of, stable};

/// The demonstration's conversation, whose hashes are the same on every machine.
pub fn with_demo() -> Home {
    let home = Home::new();
    home.demo(&[]);
    home
}

#[test]
fn log_shows_the_newest_turn_first() {
    let home = with_demo();
    insta::assert_snapshot!("log", home.ok(&["log", "-n", "3"]));
    insta::assert_snapshot!("log_oneline", home.ok(&["log", "autumn", "--oneline"]));
    let newest = home.json(&["log"]);
    assert_eq!(newest["turns"][0]["turn_hash"], hash_of(&home, "main"));
}

#[test]
fn path_shows_the_first_turn_first() {
    let home = with_demo();
    insta::assert_snapshot!("path", home.ok(&["path", "flights"]));
    let last = home.json(&["path", "--last", "2"]);
    assert_eq!(last["turns"].as_array().unwrap().len(), 2);
    assert_eq!(last["turns"][1]["turn_hash"], hash_of(&home, "main"));
    let window = home.json(&["path", "--around", "hotel", "--before", "1", "--after", "2"]);
    assert_eq!(window["turns"].as_array().unwrap().len(), 4);
    assert_eq!(window["focus"], 1);
    let shown = home.ok(&["path", "--around", "hotel", "--before", "0", "--after", "0"]);
    assert!(shown.starts_with("… earlier turns") && shown.ends_with("… later turns\n"), "{shown}");
}

#[test]
fn a_path_in_canonical_form_can_be_appended_elsewhere_with_the_same_hashes() {
    let home = with_demo();
    let lines = home.ok(&["path", "flights", "--format", "tine"]);
    assert!(lines.starts_with(r#"{"content":"You are a travel agent."#), "{lines}");
    let lines = home.ok(&["path", "flights", "--format", "tine", "--no-system"]);
    home.ok_with(&["append", "-c", "copy", "--create", "-m", "-"], lines.as_bytes());
    let copied = home.json(&["show", "main", "-c", "copy"]);
    let original = home.json(&["show", "flights", "-c", "tokyo-trip"]);
    assert_eq!(copied["turn_hash"], original["turn_hash"]);
    assert_eq!(copied["metadata"], original["metadata"]);
}

#[test]
fn show_prints_all_details_of_a_turn() {
    let home = with_demo();
    let shown = home.ok(&["show", "flights~2", "--children", "--siblings", "--versions"]);
    insta::assert_snapshot!("show", stable(&shown, &home.path("")));
    insta::assert_snapshot!("show_root", home.ok(&["show", "root"]));
    let turn = home.json(&["show", "flights"]);
    for field in [
        "project_id",
        "conversation_id",
        "turn_id",
        "turn_hash",
        "parent_turn_hash",
        "parent_id",
        "depth",
        "role",
        "content",
        "created_at",
        "status",
        "metadata",
        "presence",
    ] {
        assert!(turn.get(field).is_some(), "{field} is missing: {turn}");
    }
    assert_eq!(turn["metadata"]["tags"][0], "budget");
}

#[test]
fn every_form_of_reference_names_the_turn() {
    let home = Home::with_trip();
    let turn = home.json(&["show", "main~1"]);
    let hash = turn["turn_hash"].as_str().unwrap();
    home.ok(&["bookmark", "question", "main~1"]);
    let id = turn["turn_id"].as_str().unwrap();
    for reference in
        [id, hash, &hash[7..], "a9d2e63b", "A9D2E63BE84C", "question", "main~1", "main~"]
    {
        assert_eq!(home.json(&["show", reference])["turn_id"], id, "{reference}");
    }
}

#[test]
fn the_tree_of_a_part_and_a_folded_tree_are_drawn() {
    let home = with_demo();
    insta::assert_snapshot!("tree_folded", home.ok(&["tree", "--depth", "0"]));
    insta::assert_snapshot!("tree_part", home.ok(&["tree", "81f647c78473"]));
    insta::assert_snapshot!("tree_other_line", home.ok(&["tree", "--branch", "autumn", "--all"]));
    let document = home.json(&["tree"]);
    assert_eq!(document["total"], document["turns"].as_array().unwrap().len());
    assert!(document["next"].is_null());
}

#[test]
fn stats_and_verify_count_records() {
    let home = with_demo();
    let stats = home.json(&["stats", "-c", "tokyo-trip"]);
    assert_eq!(stats["conversation"]["branches"], 4);
    assert!(home.ok(&["stats", "-c", "tokyo-trip"]).contains("longest path"));
    assert!(!home.ok(&["stats"]).contains("longest path"));
    let checked = home.ok(&["verify"]);
    assert!(checked.contains("all is well"), "{checked}");
}

#[test]
fn a_conversation_without_turns_is_shown_by_its_root() {
    let home = Home::new();
    home.ok(&["new", "empty", "--system", "Be brief."]);
    assert_eq!(home.ok(&["tree"]), "root         ◆ [main] empty · Be brief.\n");
    assert_eq!(home.ok(&["log"]), "");
    assert_eq!(home.ok(&["show"]), home.ok(&["show", "root"]));
}

#[test]
fn projects_are_separate() {
    let home = Home::with_trip();
    home.ok(&["--project", "work", "new", "trip"]);
    home.ok(&["--project", "work", "append", "x"]);
    assert_eq!(home.json(&["--project", "work", "path"])["turns"].as_array().unwrap().len(), 1);
    assert_eq!(home.json(&["--project", "work", "path"])["project_id"], "work");
    assert_eq!(home.json(&["path"])["turns"].as_array().unwrap().len(), 2);
}

#[test]
fn terminal_control_sequences_are_shown_not_executed() {
    let home = Home::with_trip();
    home.ok(&["append", "\u{1b}[31mred\u{7} \u{202e}back"]);
    for command in [&["log"][..], &["tree"], &["show"], &["path"]] {
        let out = home.ok(command);
        assert!(!out.contains(['\u{1b}', '\u{7}', '\u{202e}']), "{out:?}");
    }
    assert!(home.ok(&["log"]).contains("␛[31mred␇"));
    // A program gets what was said.
    assert!(home.ok(&["show", "--json"]).contains("\\u001b[31m"));
}
