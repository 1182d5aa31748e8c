//! Redaction of secrets by the command and by the server.

use serde_json::{Value, json};

use crate::harness::{Home, Ran};
use crate::remote::Remote;

/// Made up, and put together so that no scanner takes this file for a leak.
fn key() -> String {
    format!("gh{}{}", "p_", "q7Zk2mXw9RtB4vNc8LpY3sHd6JgF5aTe1UoK")
}

/// What the last operation notes.
fn noted(log: &Value) -> &Value {
    &log["items"][0]["detail"]["facts"]["redacted"]
}

#[test]
fn redacted_secrets_are_reported_and_not_stored() {
    let home = Home::with_trip();
    let said = format!("use {} and postgres://me:hunter2@db/x", key());
    let out = home.ok(&["append", "--redact", &said]);
    assert!(out.contains("redacted: 1 github, 1 url_password"), "{out}");
    assert_eq!(*noted(&home.json(&["ops", "-n", "1"])), json!({"github": 1, "url_password": 1}));
    let shown = home.ok(&["show", "main"]);
    assert!(shown.contains("use [redacted:github] and postgres://me:[redacted:url_password]@db/x"));
    let out = home.ok(&["edit", "main", &key(), "--redact", "--branch", "main"]);
    assert!(out.contains("redacted: 1 github"), "{out}");
    assert!(!home.everything().contains(&key()));
    assert_eq!(home.json(&["verify"])["ok"], true);
}

#[test]
fn nothing_is_redacted_without_the_option() {
    let home = Home::with_trip();
    let done = home.json(&["append", &key()]);
    assert_eq!(done.get("redacted"), None);
    assert!(home.everything().contains(&key()));
    home.ok(&["append", "--redact", "nothing to hide"]);
    assert_eq!(*noted(&home.json(&["ops", "-n", "1"])), Value::Null);
}

#[test]
fn redacted_turns_match_earlier_redacted_turns() {
    let home = Home::with_trip();
    home.ok(&["append", "--redact", &key()]);
    let again = home.ok(&["append", "--redact", "--parent", "main~1", "--branch", "main", &key()]);
    assert!(again.contains("(reused)"), "{again}");
}

#[test]
fn a_server_redacts_for_all_clients() {
    let remote = Remote::new(&["--redact"]);
    let document = |ran: Ran| -> Value {
        assert_eq!(ran.code, 0, "{ran:?}");
        serde_json::from_str(&ran.out).expect("one document")
    };
    assert_eq!(remote.run(&["new", "trip"]).code, 0);
    let done = document(remote.run(&["append", "--json", &key()]));
    assert_eq!(done["redacted"], json!({"github": 1}));
    assert_eq!(done["turns"][0]["content"][0]["text"], "[redacted:github]");
    let edited = document(remote.run(&["edit", "main", "--json", &format!("no, {}", key())]));
    assert_eq!(edited["redacted"], json!({"github": 1}));
    let log = document(remote.run(&["ops", "--json", "-n", "1"]));
    assert_eq!((&log["items"][0]["kind"], noted(&log)), (&json!("edit"), &json!({"github": 1})));
    assert!(!remote.run(&["export", "--all"]).out.contains(&key()));
}
