//! Stores that earlier releases have written: opening one brings it up to date, and everything in
//! it is what it was. Each is kept as SQL, beside what the release that wrote it exported.

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

#[test]
fn a_store_of_format_1_is_what_it_was() {
    let home = older(include_str!("0001.sql"));
    let exported = [
        ("tokyo-trip", include_str!("0001-tokyo-trip.jsonl")),
        ("notes", include_str!("0001-notes.jsonl")),
    ];
    for (conversation, expected) in exported {
        assert_eq!(home.ok(&["export", "-c", conversation]), expected, "{conversation}");
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
