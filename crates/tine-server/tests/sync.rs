//! What another store compares, asks for and sends.

use std::io::Write;
use std::time::{Duration, Instant};

use serde_json::json;
use tine_core::Limits;
use tine_server::Options;

use crate::harness::{Answer, Client, Served};

fn take(client: &Client, lines: &[u8]) -> Answer {
    let path = "/api/v1/sync/delta";
    client.and("content-type", "application/x-ndjson").send("POST", path, Some(lines))
}

fn end(served: &Served, conversation: &str) -> (u64, String) {
    let path = format!("/api/v1/sync/logs?conversation_id={conversation}");
    let found = served.get(&path).expect(200);
    let item = &found.json()["items"][0];
    (item["seq"].as_u64().expect("a number"), item["hash"].as_str().expect("a hash").to_owned())
}

#[test]
fn deltas_are_transferred_between_servers() {
    let (one, other) = (Served::new(), Served::new());
    one.trip();
    let whole = one.get("/api/v1/sync/delta?conversation_id=trip").expect(200);
    assert_eq!(whole.header("content-type"), Some("application/x-ndjson"));
    assert_eq!(take(&other, &whole.body).expect(200).json()["new"], true);
    assert_eq!(end(&one, "trip"), end(&other, "trip"));
    let (seq, hash) = end(&other, "trip");
    one.say("trip", "and more").expect(201);
    let path = format!("/api/v1/sync/delta?conversation_id=trip&seq={seq}&hash={hash}");
    let part = one.get(&path).expect(200);
    let done = take(&other, &part.body).expect(200).json();
    assert_eq!((&done["turns"], &done["operations"]), (&json!(1), &json!(1)));
    assert_eq!(done["bytes"], part.body.len());
    // Sent again, as after an answer that was lost, it adds nothing.
    assert_eq!(take(&other, &part.body).expect(200).json()["operations"], 0);
    let both = [&one, &other].map(|side| side.get("/api/v1/export").expect(200).body);
    assert!(both[0] == both[1]);
    let found = one.get("/api/v1/sync/hashes?conversation_id=trip&seq=1,2,99").expect(200).json();
    assert!(found["hashes"][1].is_string() && found["hashes"][2].is_null());
    assert_eq!(one.walk("/api/v1/sync/logs", "items").len(), 1);
}

#[test]
fn a_log_is_continued_only_where_it_ends() {
    let (one, other) = (Served::new(), Served::new());
    one.trip();
    let whole = one.get("/api/v1/sync/delta?conversation_id=trip").expect(200);
    take(&other, &whole.body).expect(200);
    let (seq, hash) = end(&other, "trip");
    one.say("trip", "here").expect(201);
    other.say("trip", "there").expect(201);
    let place = format!("conversation_id=trip&seq={seq}&hash={hash}");
    let part = one.get(&format!("/api/v1/sync/delta?{place}")).expect(200);
    take(&other, &part.body).refused(409, "conflict");
    // The turns are taken over all the same, with their ids, on a branch of their own.
    let turns = one.get(&format!("/api/v1/sync/delta?{place}&scope=turns")).expect(200);
    let done = take(&other, &turns.body).expect(200).json();
    assert_eq!((&done["diverged"], &done["turns"]), (&json!(true), &json!(1)));
    let tip = one.get("/api/v1/conversations/trip/branches/main").expect(200).text("/tip");
    let taken = other.get("/api/v1/conversations/trip/branches/main-1").expect(200).text("/tip");
    assert_eq!(tip, taken);
    let merges = "/api/v1/sync/merges?conversation_id=trip";
    let merges = other.get(merges).expect(200).json();
    assert_eq!(merges["merges"][0]["of"]["hash"], end(&one, "trip").1);
}

#[test]
fn a_delta_over_the_limit_is_refused_with_advice() {
    let limits = Limits { delta_bytes: 20_000, ..Limits::default() };
    let (one, other) = (Served::new(), Served::with_limits(limits));
    for served in [&one, &other] {
        served.post("/api/v1/conversations", json!({"conversation_id": "long"})).expect(201);
        for _ in 0..3 {
            served.say("long", &"word ".repeat(2_000)).expect(201);
        }
    }
    let path = "/api/v1/sync/delta?conversation_id=long";
    let problem = other.get(path).refused(413, "too_large");
    assert!(problem["detail"].to_string().contains("bundle"), "{problem}");
    let whole = one.get(path).expect(200).body;
    assert!(whole.len() > 20_000);
    take(&other, &whole).refused(413, "too_large");
    let (seq, hash) = end(&other, "long");
    other.say("long", "a little more").expect(201);
    other.get(&format!("{path}&seq={seq}&hash={hash}")).expect(200);
}

#[test]
fn malformed_and_altered_deltas_are_refused_and_leave_nothing() {
    let (one, other) = (Served::new(), Served::new());
    one.trip();
    let (seq, hash) = end(&one, "trip");
    for (query, status, code) in [
        ("conversation_id=none".to_owned(), 404, "not_found"),
        (format!("conversation_id=trip&seq={seq}"), 400, "invalid"),
        (format!("conversation_id=trip&hash={hash}"), 400, "invalid"),
        (format!("conversation_id=trip&seq={seq}&hash=x"), 400, "invalid"),
        (format!("conversation_id=trip&seq=1&hash={hash}"), 409, "conflict"),
        (format!("conversation_id=trip&seq={}&hash={hash}", u64::MAX), 409, "conflict"),
        ("conversation_id=trip&scope=all".to_owned(), 400, "invalid"),
    ] {
        one.get(&format!("/api/v1/sync/delta?{query}")).refused(status, code);
    }
    let many = vec!["1"; 101].join(",");
    for (path, status, code) in [
        (format!("hashes?conversation_id=trip&seq={many}"), 413, "too_large"),
        ("hashes?conversation_id=trip&seq=x".to_owned(), 400, "invalid"),
        ("hashes?conversation_id=trip&seq=".to_owned(), 400, "invalid"),
        ("logs?cursor=x".to_owned(), 400, "invalid"),
    ] {
        one.get(&format!("/api/v1/sync/{path}")).refused(status, code);
    }
    let far = format!("/api/v1/sync/merges?conversation_id=trip&behind={}", u64::MAX);
    assert_eq!(one.get(&far).expect(200).json()["merges"], json!([]));
    assert_eq!(one.get("/api/v1/sync/logs?project_id=none").expect(200).json()["items"], json!([]));

    let lines = one.get("/api/v1/sync/delta?conversation_id=trip").expect(200).body;
    let turns = one.get("/api/v1/sync/delta?conversation_id=trip&scope=turns").expect(200).body;
    let altered = String::from_utf8(lines.clone())
        .expect("lines of JSON")
        .replace("Late March", "Late Marsh");
    let bundle = one.get("/api/v1/export").expect(200).body;
    let cut = &lines[..lines.len() / 2];
    for bad in [altered.as_bytes(), cut, &bundle, b"", b"{}\n", b"\xff"] {
        take(&other, bad).refused(400, "invalid");
    }
    take(&other, &turns).refused(404, "not_found");
    let wrong = other.and("content-type", "application/json");
    wrong.send("POST", "/api/v1/sync/delta", Some(&lines)).refused(415, "invalid");
    assert_eq!(other.get("/api/v1/stats").expect(200).json()["store"]["conversations"], 0);
}

#[test]
fn an_upload_below_the_minimum_rate_is_cut_off() {
    let patience = Duration::from_millis(300);
    let served = Served::with(Options { body_timeout: patience, ..Options::default() });
    let mut stream = served.connect();
    let head = "POST /api/v1/sync/delta HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100000\r\n\
                content-type: application/x-ndjson\r\n\r\n";
    stream.write_all(head.as_bytes()).expect("a head");
    let begun = Instant::now();
    // Each drop comes in time; all of them would take hours.
    while stream.write_all(b" ").is_ok() {
        assert!(begun.elapsed() < 20 * patience, "it is taken for as long as it drips");
        std::thread::sleep(patience / 10);
    }
    served.get("/healthz").expect(200);
}
