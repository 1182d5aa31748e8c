//! Stores that earlier releases have written: opening one brings it up to date, and everything in
//! it is what it was. Each is kept as SQL, beside what the release that wrote it exported.

use serde_json::Value;

use crate::harness::Home;

/// Makes a store from the SQL of an older one.
fn older(sql: &str) -> Home {
    let home = Home::new();
    let store = home.path("store");
    std::fs::create_dir_all(&store).unwrap();
    let database = rusqlite::Connection::open(store.join("tine.db")).unwrap();
    database.execute_batch(sql).unwrap();
    drop(database);
    home
}

/// Every turn of an export is found, by its id and by its hash, or known to be deleted.
fn look_up(home: &Home, conversation: &str, exported: &str) {
    let records = exported.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    for turn in records.filter(|record| record["record"] == "turn") {
        let show = |name: &Value| {
            let ran = home.run(&["show", "-c", conversation, name.as_str().unwrap()]);
            assert!(ran.code == 0 || ran.err.contains("is deleted"), "{name}: {ran:?}");
            (ran.out, ran.err)
        };
        assert_eq!(show(&turn["turn_id"]), show(&turn["turn_hash"]), "{turn}");
    }
}

#[test]
fn a_store_of_format_1_is_what_it_was() {
    let home = older(include_str!("0001.sql"));
    let exported = [
        ("tokyo-trip", include_str!("0001-tokyo-trip.jsonl")),
        ("notes", include_str!("0001-notes.jsonl")),
    ];
    for (conversation, expected) in exported {
        assert_eq!(home.ok(&["export", "-c", conversation]), expected, "{conversation}");
        look_up(&home, conversation, expected);
    }
    assert_eq!(home.json(&["verify"])["ok"], true);
    assert_eq!(home.json(&["stats"])["store"]["operations"], 40);
    // The key is known: nothing is added.
    home.ok(&["append", "-c", "tokyo-trip", "--key", "third", "Thank you!"]);
    assert_eq!(home.json(&["stats"])["store"]["operations"], 40);
    home.ok(&["append", "-c", "tokyo-trip", "You are welcome."]);
    assert_eq!(home.json(&["stats"])["store"]["operations"], 41);
    assert_eq!(home.json(&["verify"])["ok"], true);
}

#[test]
fn a_store_of_format_3_is_what_it_was() {
    let home = older(include_str!("0003.sql"));
    let exported =
        [("ring", include_str!("0003-ring.jsonl")), ("bell", include_str!("0003-bell.jsonl"))];
    for (conversation, expected) in exported {
        assert_eq!(home.ok(&["export", "-c", conversation]), expected, "{conversation}");
        look_up(&home, conversation, expected);
    }
    assert_eq!(home.json(&["verify"])["ok"], true);
    let operations = home.json(&["stats"])["store"]["operations"].clone();
    // Keys are known, whether they were in the table of keys or not there yet.
    home.ok(&["append", "-c", "bell", "--key", "cast", "Who cast the bell?"]);
    home.ok(&["append", "-c", "ring", "--key", "one", "A ring for the tower"]);
    home.ok(&["append", "-c", "ring", "--key", "three", "Thank you!"]);
    home.ok(&["append", "-c", "ring", "--key", "four", "-b", "light", "Good."]);
    assert_eq!(home.json(&["stats"])["store"]["operations"], operations);
    home.ok(&["pack", "--all"]);
    for (conversation, expected) in exported {
        look_up(&home, conversation, expected);
    }
    assert_eq!(home.json(&["verify"])["ok"], true);
}

#[test]
fn a_store_of_format_4_is_what_it_was() {
    let home = older(include_str!("0004.sql"));
    let expected = include_str!("0004-chat.jsonl");
    assert_eq!(home.ok(&["export", "-c", "chat"]), expected);
    look_up(&home, "chat", expected);
    // Everything that is read by way of an index is answered as the release that wrote it did.
    for line in include_str!("0004-answers.jsonl").lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let arguments = line["arguments"].as_array().unwrap().iter();
        let arguments: Vec<&str> = arguments.map(|argument| argument.as_str().unwrap()).collect();
        assert_eq!(home.json(&arguments), line["answer"], "{arguments:?}");
    }
    assert_eq!(home.json(&["verify"])["ok"], true);
    // The queue still leads to the run, and the slot to its entity.
    home.ok(&["interpret", "--run"]);
    assert_eq!(home.json(&["interpret", "--status"])["queued"], 0);
    let entities = || home.json(&["entity", "list"])["items"].as_array().unwrap().len();
    let before = entities();
    home.ok(&["store", "turn", "chat", "--turn-id", "1", "-r", "assistant", "To Osaka."]);
    assert_eq!(entities(), before, "another version of the same slot");
    assert_eq!(home.json(&["verify"])["ok"], true);
}

#[test]
fn a_store_of_format_4_is_repaired_as_it_lies() {
    let home = older(include_str!("0004.sql"));
    let whole = home.path("whole");
    let whole = whole.to_str().unwrap();
    assert_eq!(home.run(&["verify", "--repair", whole]).code, 0);
    assert_eq!(
        home.ok(&["--store", whole, "export", "-c", "chat"]),
        include_str!("0004-chat.jsonl")
    );
}

/// Index keys are derived from records: one that is missing and one that leads nowhere are named,
/// and a repair derives all of them again.
#[test]
fn a_damaged_index_is_named_and_derived_again() {
    let home = older(include_str!("0004.sql"));
    let listed = home.ok(&["timeline"]);
    let database = rusqlite::Connection::open(home.path("store").join("tine.db")).unwrap();
    let change = |sql: &str| assert_eq!(database.execute(sql, []).unwrap(), 1, "{sql}");
    // A date that is gone, and one of no record.
    change(
        "DELETE FROM record_index WHERE key = (SELECT min(key) FROM record_index WHERE name = 8)",
    );
    change("INSERT INTO record_index VALUES (1, 8, zeroblob(40))");
    drop(database);
    let checked = home.run(&["--json", "verify"]);
    let problems = serde_json::from_str::<Value>(&checked.out).unwrap()["problems"].clone();
    let told = problems.to_string();
    assert!(told.contains("what leads to it is missing"), "{told}");
    assert!(told.contains("it leads nowhere"), "{told}");
    let whole = home.path("whole");
    let whole = whole.to_str().unwrap();
    home.run(&["verify", "--repair", whole]);
    assert_eq!(home.json(&["--store", whole, "verify"])["ok"], true);
    assert_eq!(home.ok(&["--store", whole, "timeline"]), listed);
}
