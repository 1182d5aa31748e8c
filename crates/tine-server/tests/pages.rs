//! Cursors walk everything exactly once.

use std::collections::BTreeSet;

use serde_json::json;

use crate::harness::Served;

/// Reads a list in pages of every size and compares it with the whole list.
fn check_walk(served: &Served, path: &str, rows: &str, field: &str, expected: usize) {
    let join = if path.contains('?') { '&' } else { '?' };
    for limit in [1, 2, 3, expected, expected + 1] {
        let all = served.walk(&format!("{path}{join}limit={limit}"), rows);
        let distinct: BTreeSet<String> = all.iter().map(|row| row[field].to_string()).collect();
        assert_eq!((all.len(), distinct.len()), (expected, expected), "{path} by {limit}");
    }
}

#[test]
fn cursors_walk_every_list_exactly_once() {
    let served = Served::new();
    for number in 0..7 {
        let body = json!({"conversation_id": format!("c{number}")});
        served.post("/api/v1/conversations", body).expect(201);
    }
    for number in 0..9 {
        let made = served.say("c0", &format!("message {number}")).expect(201);
        let turn = made.text("/turns/0/turn_id");
        served.put(&format!("/api/v1/bookmarks/mark-{number}"), json!({"turn": turn})).expect(200);
    }
    check_walk(&served, "/api/v1/conversations", "items", "conversation_id", 7);
    check_walk(&served, "/api/v1/bookmarks", "items", "name", 9);
    check_walk(&served, "/api/v1/conversations/c0/turns", "turns", "turn_id", 9);
    check_walk(&served, "/api/v1/conversations/c0/topology", "turns", "turn_id", 9);
    check_walk(&served, "/api/v1/turns/main/path?conversation_id=c0", "turns", "turn_id", 9);
    check_walk(&served, "/api/v1/operations?conversation_id=c0", "items", "seq", 19);
}

#[test]
fn paging_is_stable_while_others_append() {
    let served = Served::new();
    served.post("/api/v1/conversations", json!({"conversation_id": "c"})).expect(201);
    for number in 0..6 {
        served.say("c", &format!("message {number}")).expect(201);
    }
    let path = "/api/v1/turns/main/path?conversation_id=c&limit=4";
    let first = served.get(path).expect(200).json();
    served.say("c", "one more").expect(201);
    let cursor = crate::harness::encoded(first["next"].as_str().expect("a cursor"));
    let second = served.get(&format!("{path}&cursor={cursor}")).expect(200).json();
    let texts: Vec<_> =
        second["turns"].as_array().unwrap().iter().map(|it| &it["content"][0]["text"]).collect();
    assert_eq!(texts[..2], ["message 4", "message 5"]);
}
