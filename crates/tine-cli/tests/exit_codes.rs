//! Every kind of refusal that the command can meet, by its exit code.

use crate::harness::{Home, finish, hash_of};

#[test]
fn missing_records_are_not_found() {
    let home = Home::with_trip();
    home.refused("not_found", &["show", "nothing"]);
    home.refused("not_found", &["show", "00000000"]);
    home.refused("not_found", &["tree", "-c", "nothing"]);
    home.refused("not_found", &["branch", "delete", "nothing"]);
    home.refused("not_found", &["bookmark", "--delete", "nothing"]);
    home.refused("not_found", &["undo", "99"]);
    home.refused("not_found", &["append", "-m", "missing.json"]);
    home.refused("not_found", &["ls", "--store", "missing"]);
    home.refused("not_found", &["show", "main", "--project", "nothing"]);
}

#[test]
fn several_conversations_are_ambiguous_and_ten_are_listed() {
    let home = Home::with_trip();
    for number in 0..11 {
        home.ok(&["new", &format!("c{number:02}")]);
    }
    let error = home.refused("ambiguous", &["append", "x"]);
    assert!(error.contains("-c ID") && error.contains("c05"), "{error}");
    assert_eq!(error.lines().filter(|line| line.starts_with("  ")).count(), 11, "{error}");
    let error = home.refused("ambiguous", &["log"]);
    assert!(error.contains("TINE_CONVERSATION"), "{error}");
    home.ok(&["log", "-c", "trip"]);
}

#[test]
fn a_lost_race_is_a_conflict_with_the_actual_tip() {
    let home = Home::with_trip();
    let arguments = ["append", "--expected-tip", "main~1", "x"];
    let error = home.refused("conflict", &arguments);
    assert!(error.contains("--on-conflict fork"), "{error}");
    let ran = home.run(&["--json", "append", "--expected-tip", "main~1", "x"]);
    let document: serde_json::Value = serde_json::from_str(&ran.err).unwrap();
    assert_eq!(document["error"]["actual_tip"]["turn_hash"], hash_of(&home, "main"));
    let out = home.ok(&["append", "--expected-tip", "main~1", "--on-conflict", "fork", "x"]);
    assert!(out.contains("[main-1]"), "{out}");
}

#[test]
fn renamed_options_keep_their_old_names() {
    let home = Home::with_trip();
    home.refused("conflict", &["append", "--expect-tip", "main~1", "x"]);
    home.ok(&["append", "--at", "2024-01-15T10:30:00Z", "x"]);
    home.ok(&["search", "tokyo", "--limit", "1"]);
}

#[test]
fn existing_names_are_a_conflict() {
    let home = Home::with_trip();
    home.refused("conflict", &["new", "trip"]);
    home.refused("conflict", &["fork", "main", "--name", "main"]);
    home.ok(&["title", "main", "First"]);
    let error = home.refused("conflict", &["title", "main", "Second"]);
    assert!(error.contains("--force"), "{error}");
    home.ok(&["title", "main", "Second", "--force"]);
}

#[test]
fn a_key_reused_for_another_call_is_a_mismatch() {
    let home = Home::with_trip();
    home.ok(&["append", "--key", "k", "x"]);
    home.refused("idempotency_mismatch", &["append", "--key", "k", "y"]);
    assert!(home.ok(&["append", "--key", "k", "x"]).contains("earlier call"));
}

#[test]
fn splitting_other_content_than_text_is_unsupported() {
    let home = Home::with_trip();
    home.ok(&["append", "-r", "tool", "--tool-call-id", "a", "forty-two"]);
    home.refused("unsupported", &["split", "main", "3"]);
    home.refused("unsupported", &["verify", "--repair", "x", "--store", "postgres://h/tine"]);
}

#[test]
fn names_over_the_limit_are_too_large() {
    let home = Home::with_trip();
    home.refused("too_large", &["new", &"x".repeat(513)]);
    home.refused("too_large", &["fork", "main", "--name", &"x".repeat(513)]);
    home.refused("too_large", &["tag", "main", &"x".repeat(513)]);
}

#[test]
fn reserved_names_are_invalid() {
    let home = Home::with_trip();
    for name in ["root", "a~b", "deadbeef", ""] {
        home.refused("invalid", &["fork", "main", "--name", name]);
        home.refused("invalid", &["bookmark", name, "main"]);
    }
    home.refused("invalid", &["show", "main~x"]);
    home.refused("invalid", &["append", "--at", "yesterday", "x"]);
}

#[test]
fn without_main_an_append_needs_a_branch() {
    let home = Home::with_trip();
    home.ok(&["fork", "main", "--name", "other"]);
    for remove in [&["branch", "-d", "main"][..], &["branch", "-m", "main", "old"]] {
        home.ok(remove);
        let error = home.refused("not_found", &["append", "x"]);
        assert!(error.contains("`main`") && error.contains("tine branch"), "{error}");
        home.refused("not_found", &["log"]);
        home.ok(&["undo"]);
    }
    home.ok(&["branch", "-d", "main"]);
    home.ok(&["append", "-b", "other", "x"]);
    assert_eq!(home.json(&["path", "other"])["turns"].as_array().unwrap().len(), 3);
}

#[test]
fn without_a_store_every_way_to_one_is_named() {
    let home = Home::with_trip();
    let error = home.refused("not_found", &["ls", "--store", "missing"]);
    for way in ["tine import --discover", "tine new", "--store"] {
        assert!(error.contains(way), "{error}");
    }
}

#[test]
fn usage_errors_exit_with_2() {
    let home = Home::with_trip();
    for arguments in [&["frobnicate"][..], &["append"], &["show", "a", "b"], &["split", "main"]] {
        home.refused("invalid", arguments);
    }
    assert_eq!(home.run(&[]).code, 2);
}

#[test]
fn a_damaged_store_is_corrupt() {
    let home = Home::with_trip();
    let database = home.path("store").join("tine.db");
    let mut bytes = std::fs::read(&database).unwrap();
    let text = "Late March".as_bytes();
    let place = bytes.windows(text.len()).position(|window| window == text);
    bytes[place.expect("texts are stored as they are")] = b'H';
    std::fs::write(&database, &bytes).unwrap();
    let ran = home.run(&["verify"]);
    assert_eq!(ran.code, 13, "{ran:?}");
    assert!(ran.out.contains("hash"), "{}", ran.out);
    let machine = home.run(&["verify", "--json"]);
    let document: serde_json::Value = serde_json::from_str(&machine.out).unwrap();
    assert_eq!(document["ok"], false);
    assert_eq!(machine.code, 13);
}

#[test]
fn an_empty_variable_counts_as_unset() {
    let home = Home::with_trip();
    let plain = home.ok(&["log"]);
    for name in ["TINE_CONVERSATION", "TINE_PROJECT", "TINE_ACTOR"] {
        let ran = finish(home.command(&["log"]).env(name, ""), b"");
        assert_eq!((ran.code, ran.out.as_str()), (0, plain.as_str()), "{name}: {}", ran.err);
    }
    // The default store in the user's data folder does not exist.
    let ran = finish(home.command(&["--json", "log"]).env("TINE_STORE", ""), b"");
    assert!(ran.err.contains("not_found"), "{}", ran.err);
    home.refused("invalid", &["log", "-c", ""]);
}
