//! Refusals: each has a form, a media type and a code.

use std::io::{Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;
use tine_core::{Limits, Timestamp};
use tine_engine::{Clock, SystemClock};
use tine_server::{Options, TokenRule};

use crate::harness::{Served, encoded};

#[test]
fn an_unknown_path_is_not_found() {
    let served = Served::new();
    for path in ["/none", "/api", "/api/v1", "/api/v2/conversations", "/api/v1/turns", "/docs/x"] {
        served.get(path).refused(404, "not_found");
        served.post(path, json!({})).refused(404, "not_found");
    }
}

#[test]
fn an_unsupported_method_is_refused_with_the_supported_ones() {
    let served = Served::new();
    for path in ["/healthz", "/docs", "/api/v1/events", "/api/v1/export", "/api/v1/stats"] {
        let refused = served.send("PUT", path, Some(b"{}"));
        refused.refused(405, "invalid");
        assert_eq!(refused.header("allow"), Some("GET,HEAD"), "{path}");
    }
    let refused = served.delete("/api/v1/conversations");
    refused.refused(405, "invalid");
    let allowed = refused.header("allow").expect("the methods that it knows");
    assert!(allowed.contains("GET") && allowed.contains("POST"), "{allowed}");
}

#[test]
fn missing_records_are_not_found_on_every_route() {
    let served = Served::new();
    served.trip();
    let none = "01890000-0000-7000-8000-000000000000";
    let of = |path: &str| format!("/api/v1/conversations/none{path}");
    let turn = |path: &str| format!("/api/v1/turns/{none}{path}");
    for path in [
        of(""),
        of("/turns"),
        of("/topology"),
        of("/tails"),
        of("/branches"),
        of("/branches/main"),
        "/api/v1/conversations/trip/branches/none".to_owned(),
        turn(""),
        turn("/path"),
        turn("/path?window=3"),
        turn("/path?format=openai"),
        turn("/children"),
        turn("/siblings"),
        turn("/versions"),
        "/api/v1/turns/none?conversation_id=trip".to_owned(),
        "/api/v1/bookmarks/none".to_owned(),
        "/api/v1/operations?conversation_id=none".to_owned(),
        "/api/v1/stats?conversation_id=none".to_owned(),
        "/api/v1/export?conversation_id=none".to_owned(),
        "/api/v1/projects/none".to_owned(),
    ] {
        served.get(&path).refused(404, "not_found");
    }
    for (path, body) in [
        (of("/turns"), json!({"role": "user", "content": "x"})),
        (of("/branches"), json!({})),
        (of("/branches/main/revert"), json!({"to": "root"})),
        (of("/branches/main/restore"), json!({})),
        (of("/derive"), json!({"system_prompt": "x"})),
        (of("/archive"), json!({})),
        (of("/purge"), json!({})),
        (turn("/fork"), json!({})),
        (turn("/edit"), json!({"content": "x"})),
        (turn("/split"), json!({"offset": 1})),
        (turn("/purge"), json!({})),
        ("/api/v1/operations/latest/undo?conversation_id=none".to_owned(), json!({})),
        ("/api/v1/operations/99/undo?conversation_id=trip".to_owned(), json!({})),
        ("/api/v1/operations/99/redo?conversation_id=trip".to_owned(), json!({})),
    ] {
        served.post(&path, body).refused(404, "not_found");
    }
    served.patch(&of(""), json!({})).refused(404, "not_found");
    served.patch(&of("/branches/main"), json!({"name": "x"})).refused(404, "not_found");
    served.patch(&turn("/metadata"), json!({})).refused(404, "not_found");
    served.put("/api/v1/bookmarks/b", json!({"turn": none})).refused(404, "not_found");
    for path in [of("/branches/main"), turn(""), "/api/v1/bookmarks/none".to_owned()] {
        served.delete(&path).refused(404, "not_found");
    }
}

#[test]
fn a_malformed_query_is_refused_on_every_route() {
    let served = Served::new();
    served.trip();
    for path in [
        "/api/v1/conversations?limit=x",
        "/api/v1/conversations?limit=-1",
        "/api/v1/conversations?limit=1.5",
        "/api/v1/conversations?limit=0",
        "/api/v1/conversations?limit=99999999999999999999",
        "/api/v1/conversations?cursor=x",
        "/api/v1/conversations?archived=perhaps",
        "/api/v1/conversations?unknown=1",
        "/api/v1/conversations?limit=1&limit=2",
        "/api/v1/conversations?project_id=",
        "/api/v1/conversations/trip/turns?cursor=x",
        "/api/v1/conversations/trip/topology?cursor=x",
        "/api/v1/conversations/trip/topology?under=~",
        "/api/v1/operations",
        "/api/v1/operations?conversation_id=trip&cursor=x",
        "/api/v1/turns/main~x?conversation_id=trip",
        "/api/v1/events?after=x",
        "/api/v1/events?after=-1",
        "/api/v1/events?after=1000000",
        "/api/v1/events?after=18446744073709551615",
        "/api/v1/events?unknown=1",
        "/api/v1/export?unknown=1",
        "/api/v1/export?project_id=",
    ] {
        served.get(path).refused(400, "invalid");
    }
    served.get("/api/v1/conversations?limit=1001").refused(413, "too_large");
    let import = served.and("content-type", "application/x-ndjson");
    import.send("POST", "/api/v1/import?unknown=1", Some(b"{}")).refused(400, "invalid");
}

#[test]
fn a_malformed_id_is_refused() {
    let served = Served::new();
    let long = "x".repeat(513);
    for id in ["\0", "a\0b", "a\nb"] {
        let path = format!("/api/v1/conversations/{}", encoded(id));
        served.get(&path).refused(400, "invalid");
        let body = json!({"conversation_id": id});
        served.post("/api/v1/conversations", body).refused(400, "invalid");
        served.get(&format!("/api/v1/bookmarks/{}", encoded(id))).refused(400, "invalid");
    }
    served.get(&format!("/api/v1/conversations/{long}")).refused(413, "too_large");
    served.post("/api/v1/projects", json!({"project_id": long})).refused(413, "too_large");
    served
        .and("idempotency-key", &long)
        .post("/api/v1/conversations", json!({}))
        .refused(413, "too_large");
    served.post("/api/v1/conversations", json!({"conversation_id": ""})).refused(400, "invalid");
    served.get("/api/v1/conversations/%FF").refused(400, "invalid");
    served.get("/api/v1/conversations?cursor=%FF").refused(400, "invalid");
    served.and("last-event-id", "x").get("/api/v1/events").refused(400, "invalid");
}

#[test]
fn a_malformed_body_is_refused_and_nothing_is_stored() {
    let served = Served::new();
    served.trip();
    let at = "/api/v1/conversations/trip/turns";
    let before = served.get("/api/v1/stats").expect(200).json()["store"]["operations"].clone();
    for body in [
        "",
        " ",
        "{",
        "null",
        "[]",
        r#"[null, "user", "x"]"#,
        "1",
        "{}",
        r#"{"messages": []}"#,
        r#"{"messages": "x"}"#,
        r#"{"role": "user"}"#,
        r#"{"role": "nobody", "content": "x"}"#,
        r#"{"role": "user", "content": ""}"#,
        r#"{"role": "user", "content": []}"#,
        r#"{"role": "user", "content": 1}"#,
        r#"{"role": "user", "content": "x", "parnet": "root"}"#,
        r#"{"role": "user", "role": "user", "content": "x"}"#,
        r#"{"role": "user", "content": "x", "messages": []}"#,
        r#"{"role": "tool", "content": "x"}"#,
        r#"{"role": "user", "content": [{"type": "text", "text": "x", "text": "y"}]}"#,
        r#"{"role": "user", "content": [{"text": "x"}]}"#,
        r#"{"role": "user", "content": "\ud800"}"#,
        r#"{"role": "user", "content": [{"type": "n", "n": 1e999}]}"#,
        r#"{"role": "user", "content": "x", "created_at": "yesterday"}"#,
        r#"{"role": "user", "content": "x"} {"#,
        r#"{"role": "user", "content": "x", "branch": "a~b"}"#,
    ] {
        served.post_text(at, body).refused(400, "invalid");
    }
    let deep = format!(
        r#"{{"role":"user","content":[{{"type":"d","d":{}{}}}]}}"#,
        "[".repeat(200),
        "]".repeat(200)
    );
    let refused = served.post_text(at, &deep);
    assert!([400, 413].contains(&refused.status), "{}", refused.as_text());
    refused.refused(refused.status, &refused.text("/code"));
    let json = served.and("content-type", "application/json");
    json.send("POST", at, Some(b"{\"role\":\"user\",\"content\":\"\xff\"}"))
        .refused(400, "invalid");
    let which = json!({"messages": [{"role": "user", "content": "x"}, {"role": "user"}]});
    assert_eq!(served.post(at, which).refused(400, "invalid")["message_index"], 1);
    let after = served.get("/api/v1/stats").expect(200).json()["store"]["operations"].clone();
    assert_eq!(before, after);
}

#[test]
fn a_body_of_another_type_or_encoding_is_refused() {
    let served = Served::new();
    served.trip();
    let at = "/api/v1/conversations/trip/turns";
    let body = br#"{"role":"user","content":"x"}"#;
    for kind in ["text/plain", "application/x-www-form-urlencoded", "application/xml", "json"] {
        served.and("content-type", kind).send("POST", at, Some(body)).refused(415, "invalid");
    }
    served.send("POST", at, Some(body)).refused(415, "invalid");
    let json = served.and("content-type", "application/json");
    json.and("content-encoding", "gzip").send("POST", at, Some(body)).refused(415, "invalid");
    served
        .and("content-type", "application/json")
        .send("POST", "/api/v1/import", Some(b"{}"))
        .refused(415, "invalid");
    served
        .and("content-type", "Application/JSON; charset=utf-8")
        .send("POST", at, Some(body))
        .expect(201);
}

#[test]
fn unsupported_and_protected_operations_have_their_own_errors() {
    let served = Served::new();
    let (question, answer) = served.trip();
    let call = json!({"messages": [
        {"role": "assistant", "content": [{"type": "tool-use", "id": "t", "name": "n", "parameters": {}}]},
        {"role": "tool", "tool_call_id": "t", "content": "done"},
    ]});
    let tool = served.post("/api/v1/conversations/trip/turns", call).expect(201).text("/tip");
    let split = json!({"offset": 1});
    served.post(&format!("/api/v1/turns/{tool}/split"), split).refused(422, "unsupported");
    served
        .post(&format!("/api/v1/turns/{answer}/split"), json!({"offset": 0}))
        .refused(400, "invalid");
    served
        .post(&format!("/api/v1/turns/{answer}/split"), json!({"offset": -1}))
        .refused(400, "invalid");
    served.delete("/api/v1/turns/root?conversation_id=trip").refused(409, "protected");
    let undo = "/api/v1/operations/1/undo?conversation_id=trip";
    let problem = served.post(undo, json!({})).refused(409, "protected");
    assert!(problem["depended_on_by"].is_array(), "{problem}");
    served.post("/api/v1/conversations", json!({"conversation_id": "other"})).expect(201);
    served.say("other", "hello").expect(201);
    let problem = served.get("/api/v1/turns/main").refused(409, "ambiguous");
    assert_eq!(problem["candidates"].as_array().map(Vec::len), Some(2));
    served.get(&format!("/api/v1/turns/{question}?conversation_id=other")).refused(400, "invalid");
}

/// A clock that can be broken, as a stand-in for a defect.
struct Brittle(AtomicBool);

impl Clock for Brittle {
    fn now(&self) -> Timestamp {
        assert!(!self.0.load(Ordering::SeqCst), "the clock is broken");
        SystemClock.now()
    }
}

#[test]
fn a_panic_is_answered_as_a_problem_and_the_next_request_is_served() {
    let clock = Arc::new(Brittle(AtomicBool::new(false)));
    let folder = tempfile::TempDir::new().expect("a temporary folder");
    let served = Served::at(
        folder,
        Options::default(),
        Limits::default(),
        Arc::clone(&clock) as Arc<dyn Clock>,
    );
    served.trip();
    clock.0.store(true, Ordering::SeqCst);
    for _ in 0..3 {
        served.say("trip", "x").refused(500, "internal");
    }
    clock.0.store(false, Ordering::SeqCst);
    served.say("trip", "x").expect(201);
}

#[test]
fn a_request_keeps_its_id_or_gets_one() {
    let served = Served::new();
    let named = served.and("x-request-id", "my-request.1").get("/healthz").expect(200);
    assert_eq!(named.header("x-request-id"), Some("my-request.1"));
    let one = served.get("/healthz").expect(200).header("x-request-id").expect("a name").to_owned();
    let two = served.get("/healthz").expect(200).header("x-request-id").expect("a name").to_owned();
    assert_ne!(one, two);
    let odd = "x".repeat(129);
    let other = served.and("x-request-id", &odd).get("/none");
    assert_ne!(other.header("x-request-id"), Some(odd.as_str()));
}

#[test]
fn a_malformed_request_head_is_answered_and_closed() {
    let served = Served::new();
    let mut stream = served.connect();
    stream.write_all(b"\x16\x03\x01\x02\x00\x01 this is no HTTP\r\n\r\n").expect("written");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("closed");
    assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
    served.get("/healthz").expect(200);
}

/// What a refused request left unread ends its connection, and the client hears of it: its next
/// request would go into nowhere.
#[test]
fn an_unread_body_closes_the_connection_and_the_answer_says_so() {
    let served = Served::with(Options { token_rule: TokenRule::Always, ..Options::default() });
    let refused = served.post("/api/v1/conversations", json!({ "conversation_id": "x" }));
    refused.refused(401, "unauthorized");
    assert_eq!(refused.header("connection"), Some("close"));
    let refused = served.get("/api/v1/conversations");
    refused.refused(401, "unauthorized");
    assert_eq!(refused.header("connection"), None);
}
