//! `tine diff`.

use super::with_osaka;
use crate::harness::{Home, stable};

#[test]
fn branches_are_compared_turn_by_turn_and_by_what_they_are_about() {
    let home = with_osaka();
    let out = home.ok(&["diff", "main", "osaka"]);
    insta::assert_snapshot!("diff", stable(&out, &home.path("")));
    assert_eq!(
        home.ok(&["diff", "main..osaka"]).lines().skip(2).collect::<Vec<_>>(),
        out.lines().skip(2).collect::<Vec<_>>(),
        "two dots are two sides"
    );
}

#[test]
fn words_that_differ_are_marked() {
    let home = Home::with_trip();
    home.ok(&["edit", "main", "Early March", "--branch", "main"]);
    home.ok(&["fork", "e38bb1328f49", "--name", "old"]);
    let plain = home.ok(&["diff", "old", "main"]);
    assert!(plain.contains("[-Late-]{+Early+} March"), "{plain}");
    let coloured = home.ok(&["diff", "old", "main", "--color", "always"]);
    assert!(
        coloured.contains("\u{1b}[31mLate\u{1b}[0m\u{1b}[32mEarly\u{1b}[0m March"),
        "{coloured}"
    );
    let whole = home.ok(&["diff", "old", "main", "--no-words"]);
    assert!(whole.contains("- Late March") && whole.contains("+ Early March"), "{whole}");
    assert!(!whole.contains("[-"), "{whole}");
}

#[test]
fn three_dots_begin_where_the_sides_part() {
    let home = with_osaka();
    let out = home.ok(&["diff", "main...osaka"]);
    assert!(out.contains("+ ") && out.contains("What about Osaka instead?"), "{out}");
    assert!(!out.contains("Gion"), "nothing of main's own: {out}");
    let json = home.json(&["diff", "main...osaka"]);
    assert_eq!((&json["from"]["turns"], &json["to"]["turns"]), (&0.into(), &2.into()));
}

#[test]
fn counts_and_facets_alone_can_be_asked_for() {
    let home = with_osaka();
    let stat = home.ok(&["diff", "main", "osaka", "--stat"]);
    insta::assert_snapshot!("diff_stat", stable(&stat, &home.path("")));
    let facets = home.ok(&["diff", "main", "osaka", "--facets"]);
    assert!(!facets.contains("better food.") && facets.contains("city"), "{facets}");
    home.refused("invalid", &["diff", "main", "osaka", "--stat", "--facets"]);
}

#[test]
fn commits_and_stretches_are_compared_too() {
    let home = with_osaka();
    let main = home.json(&["commit", "-m", "Kyoto"]);
    let osaka = home.json(&["commit", "-b", "osaka", "-m", "Osaka"]);
    let hash = |commit: &serde_json::Value| commit["commit_hash"].as_str().unwrap().to_owned();
    let out = home.ok(&["diff", &hash(&main), &hash(&osaka)]);
    assert!(out.contains("both build on") && out.contains("1 commit only here"), "{out}");
    let json = home.json(&["diff", &format!("{}...{}", hash(&main), hash(&osaka))]);
    assert_eq!(json["to"]["commits"], serde_json::json!([hash(&osaka)]));
    assert_eq!(json["from"]["commits"], serde_json::json!([]));
    let out = home.ok(&["diff", "main~1..main", "osaka~2..osaka"]);
    assert!(out.contains("Kyoto") && out.contains("cheaper"), "{out}");
    home.refused("not_found", &["diff", "main", "nothing"]);
    assert_eq!(home.ok(&["diff", "osaka"]), home.ok(&["diff", "osaka", "main"]));
}
