//! Calls that can be repeated.

use serde_json::{Value, json};

use crate::harness::{Answer, Client, Served};

/// Makes a call twice with one key and compares the answers; `replayed` tells them apart.
fn check_repeats(client: &Client, key: &str, call: impl Fn(&Client) -> Answer) {
    let client = client.and("idempotency-key", key);
    let (first, second) = (call(&client), call(&client));
    assert!(first.status < 300, "{}", first.as_text());
    assert!(second.status < 300, "{}", second.as_text());
    let without = |answer: &Answer| {
        let mut document = answer.json();
        let fields = document.as_object_mut().expect("an object");
        for field in ["replayed", "undone", "created"] {
            fields.remove(field);
        }
        document
    };
    assert_eq!(without(&first), without(&second), "{key}");
}

fn operations(served: &Served) -> Value {
    served.get("/api/v1/stats").expect(200).json()["store"]["operations"].clone()
}

#[test]
fn every_retried_change_returns_the_same_answer_and_adds_nothing() {
    let served = Served::new();
    let (question, answer) = served.trip();
    let of = |path: &str| format!("/api/v1/conversations/trip{path}");
    let turn = |id: &str, path: &str| format!("/api/v1/turns/{id}{path}");
    type Call = Box<dyn Fn(&Client) -> Answer>;
    let post = |path: String, body: Value| -> Call {
        Box::new(move |client| client.post(&path, body.clone()))
    };
    let patch = |path: String, body: Value| -> Call {
        Box::new(move |client| client.patch(&path, body.clone()))
    };
    let delete = |path: String| -> Call { Box::new(move |client| client.delete(&path)) };
    let bookmark = json!({"turn": question});
    let calls: Vec<(&str, Call)> = vec![
        ("create", post("/api/v1/conversations".to_owned(), json!({"title": "t"}))),
        ("append", post(of("/turns"), json!({"role": "user", "content": "x"}))),
        ("distinct", post(of("/turns"), json!({"role": "user", "content": "y", "reuse": false}))),
        ("branch", post(of("/branches"), json!({"at": question}))),
        ("fork", post(turn(&answer, "/fork"), json!({"name": "f"}))),
        ("rename", patch(of("/branches/f"), json!({"name": "g"}))),
        ("edit", post(turn(&answer, "/edit"), json!({"content": "z", "branch": "g"}))),
        ("revert", post(of("/branches/g/revert"), json!({"to": question}))),
        ("restore", post(of("/branches/g/restore"), json!({}))),
        ("split", post(turn(&answer, "/split"), json!({"offset": 4}))),
        ("metadata", patch(turn(&question, "/metadata"), json!({"title": "q"}))),
        ("patch", patch(of(""), json!({"title": "t"}))),
        ("derive", post(of("/derive"), json!({"system_prompt": "s"}))),
        ("archive", post(of("/archive"), json!({"archived": true}))),
        ("bookmark", Box::new(move |it| it.put("/api/v1/bookmarks/b", bookmark.clone()))),
        ("unmark", delete("/api/v1/bookmarks/b".to_owned())),
        ("unbranch", delete(of("/branches/g"))),
        ("delete", delete(turn(&answer, ""))),
        ("undo", post("/api/v1/operations/latest/undo?conversation_id=trip".to_owned(), json!({}))),
    ];
    for (name, call) in &calls {
        check_repeats(&served, name, |client| call(client));
        let once = operations(&served);
        call(&served.and("idempotency-key", name));
        assert_eq!(operations(&served), once, "{name}");
    }
}

#[test]
fn the_key_can_be_in_the_body_or_in_the_header() {
    let served = Served::new();
    served.trip();
    let at = "/api/v1/conversations/trip/turns";
    let body = json!({"role": "user", "content": "x", "idempotency_key": "k"});
    let first = served.post(at, body.clone()).expect(201);
    let by_header = served.and("idempotency-key", "k").say("trip", "x").expect(200);
    assert_eq!(by_header.json()["replayed"], true);
    assert_eq!(by_header.text("/turns/0/turn_id"), first.text("/turns/0/turn_id"));
    served.and("idempotency-key", "k").post(at, body.clone()).expect(200);
    served.and("idempotency-key", "other").post(at, body).refused(400, "invalid");
}

#[test]
fn a_key_of_another_request_is_refused() {
    let served = Served::new();
    served.trip();
    let keyed = served.and("idempotency-key", "k");
    keyed.say("trip", "one thing").expect(201);
    let before = operations(&served);
    keyed.say("trip", "another").refused(409, "idempotency_mismatch");
    keyed.post("/api/v1/conversations", json!({})).refused(409, "idempotency_mismatch");
    assert_eq!(operations(&served), before);
}

#[test]
fn a_refused_call_does_not_use_up_its_key() {
    let served = Served::new();
    let keyed = served.and("idempotency-key", "k");
    keyed.say("trip", "x").refused(404, "not_found");
    served.trip();
    keyed.say("trip", "x").expect(201);
}

#[test]
fn a_conditional_call_can_be_retried_after_its_etag_became_stale() {
    let served = Served::new();
    served.trip();
    let branch = served.get("/api/v1/conversations/trip/branches/main").expect(200);
    let seen = branch.header("etag").expect("an ETag");
    let client = served.and("if-match", seen).and("idempotency-key", "k");
    let first = client.say("trip", "x").expect(201).text("/tip");
    served.say("trip", "y").expect(201);
    assert_eq!(client.say("trip", "x").expect(200).text("/turns/0/turn_id"), first);
}

#[test]
fn a_retried_call_reports_that_its_work_was_undone() {
    let served = Served::new();
    served.trip();
    let keyed = served.and("idempotency-key", "k");
    keyed.say("trip", "x").expect(201);
    served.post("/api/v1/operations/latest/undo?conversation_id=trip", json!({})).expect(200);
    assert_eq!(keyed.say("trip", "x").expect(200).json()["undone"], true);
}
