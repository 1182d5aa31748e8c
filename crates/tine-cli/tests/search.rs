//! `tine search`, from outside: what it says, and that nothing that happens to its index matters.

use std::process::Stdio;
use std::time::Duration;

use crate::harness::{Home, hash_of};
use crate::reading::with_demo;

#[test]
fn search_shows_hits_and_the_command_that_opens_them() {
    let home = with_demo();
    insta::assert_snapshot!("search", home.ok(&["search", "tokyo", "OR", "flight*"]));
    assert_eq!(home.ok(&["search", "nowhere"]), "no matches\n");
    let shown = home.ok(&["search", "blossoms", "-n", "1"]);
    let command = shown.lines().find(|line| line.trim().starts_with("tine turn path")).expect("it");
    let words: Vec<&str> = command.split_whitespace().skip(1).collect();
    assert!(home.ok(&words).contains("blossoms"), "{command}");
}

#[test]
fn search_prints_one_json_document() {
    let home = with_demo();
    let found = home.json(&["search", "おすすめ", "--role", "assistant", "--branch", "autumn"]);
    let hits = found["hits"].as_array().unwrap();
    assert_eq!(hits.len(), 1);
    assert_eq!(hits[0]["turn_hash"], hash_of(&home, "autumn"));
    assert_eq!(hits[0]["window"]["branch"], "autumn");
    let (from, to) = (&hits[0]["highlights"][0][0], &hits[0]["highlights"][0][1]);
    let (from, to) = (from.as_u64().unwrap() as usize, to.as_u64().unwrap() as usize);
    let snippet: Vec<char> = hits[0]["snippet"].as_str().unwrap().chars().collect();
    assert_eq!(snippet[from..to].iter().collect::<String>(), "おすすめ");
    let first = home.json(&["search", "a OR the", "-n", "1"]);
    let next = first["next"].as_str().unwrap();
    let second = home.json(&["search", "a OR the", "-n", "1", "--cursor", next]);
    assert_ne!(first["hits"][0]["turn_id"], second["hits"][0]["turn_id"]);
    for filter in [["--since", "2100-01-01"], ["--until", "1999-12-31"], ["--tag", "nobody"]] {
        let none = home.json(&[&["search", "tokyo"], &filter[..]].concat());
        assert_eq!(none["hits"].as_array().unwrap().len(), 0, "{filter:?}");
    }
    let tagged = home.json(&["search", "direct", "--tag", "budget", "--since", "2024-01-01"]);
    assert_eq!(tagged["hits"][0]["turn_hash"], hash_of(&home, "flights"));
}

#[test]
fn invalid_searches_are_refused() {
    let home = Home::with_trip();
    home.refused("invalid", &["search", "!!!"]);
    home.refused("invalid", &["search", "--", "-tokyo"]);
    home.refused("too_large", &["search", &"x".repeat(100_000)]);
    home.refused("not_found", &["search", "x", "--branch", "nope"]);
    home.refused("not_found", &["search", "x", "-c", "nope"]);
    home.refused("invalid", &["search", "x", "--cursor", "y"]);
}

#[test]
fn a_search_by_another_process_finds_new_turns() {
    let home = Home::with_trip();
    for round in 0..5 {
        home.ok(&["append", &format!("needle{round}")]);
        let found = home.json(&["search", &format!("needle{round}")]);
        assert_eq!(found["hits"].as_array().unwrap().len(), 1);
    }
}

#[test]
fn killing_an_indexing_process_leaves_a_usable_index() {
    let home = Home::new();
    home.ok(&["new", "talk"]);
    let line = |n: usize| {
        let text = format!("common word{n} {}", "and some more to be indexed ".repeat(40));
        format!("{{\"role\":\"user\",\"content\":\"{text}\"}}\n")
    };
    let mut sent = 0;
    for part in 0..3 {
        let lines: String = (sent..sent + 2_000).map(line).collect();
        home.ok_with(&["append", "-m", "-"], lines.as_bytes());
        sent += 2_000;
        // Each is killed at another moment: while it opens, indexes, or answers.
        for wait_ms in [5, 20, 40, 60, 90, 130, 180, 250] {
            let mut child = home
                .command(&["search", "common"])
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .expect("the built command runs");
            std::thread::sleep(Duration::from_millis(wait_ms));
            child.kill().expect("a process of our own");
            child.wait().expect("it ends");
        }
        let last = sent - 1;
        for n in [0, 1_999, last] {
            let found = home.json(&["search", &format!("word{n}")]);
            assert_eq!(found["hits"].as_array().unwrap().len(), 1, "part {part}, word {n}");
        }
    }
    let all = home.json(&["search", "common", "-n", "10000"]);
    assert_eq!(all["hits"].as_array().unwrap().len(), sent);
    home.ok(&["verify"]);
}

#[test]
fn several_processes_can_index_at_once() {
    let home = Home::new();
    home.ok(&["new", "talk"]);
    let lines: String = (0..3_000)
        .map(|n| format!("{{\"role\":\"user\",\"content\":\"common word{n}\"}}\n"))
        .collect();
    home.ok_with(&["append", "-m", "-"], lines.as_bytes());
    let children: Vec<_> = (0..4)
        .map(|n| {
            home.command(&["--json", "search", &format!("word{n}")])
                .stdout(Stdio::piped())
                .spawn()
                .expect("the built command runs")
        })
        .collect();
    for child in children {
        let output = child.wait_with_output().expect("it ends");
        let found: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert_eq!(found["hits"].as_array().unwrap().len(), 1);
    }
}
