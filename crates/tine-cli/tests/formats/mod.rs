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
