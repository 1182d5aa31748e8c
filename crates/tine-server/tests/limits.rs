//! Bounds on what one client, and all together, may ask of the server.

use std::io::{Read, Write};
use std::time::Duration;

use serde_json::json;
use tine_core::Limits;
use tine_server::Options;

use crate::harness::{Served, eventually};

#[test]
fn a_body_over_the_limit_is_refused_and_nothing_is_stored() {
    let served = Served::with_limits(Limits { body_bytes: 10_000, ..Limits::default() });
    served.trip();
    let problem = served.say("trip", &"x".repeat(10_000)).refused(413, "too_large");
    assert!(problem["detail"].as_str().unwrap().contains("10000 bytes"), "{problem}");
    served.say("trip", &"x".repeat(9_000)).expect(201);
    let stats = served.get("/api/v1/stats").expect(200).json();
    assert_eq!(stats["store"]["turns"], 3);
}

#[test]
fn a_body_of_unknown_length_is_read_up_to_the_limit() {
    let served = Served::with_limits(Limits { body_bytes: 10_000, ..Limits::default() });
    let mut stream = served.connect();
    let head = "POST /api/v1/conversations HTTP/1.1\r\nHost: localhost\r\n\
                Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";
    stream.write_all(head.as_bytes()).expect("the head");
    let piece = [b"3e8\r\n".as_slice(), &[b' '; 1_000], b"\r\n"].concat();
    for _ in 0..11 {
        stream.write_all(&piece).expect("a piece");
    }
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).expect("an answer");
    assert_eq!(&answer, b"HTTP/1.1 413");
}

#[test]
fn a_block_and_a_list_over_their_limits_are_refused() {
    let limits = Limits { block_bytes: 1_000, messages_per_append: 3, ..Limits::default() };
    let served = Served::with_limits(limits);
    served.trip();
    served.say("trip", &"x".repeat(2_000)).refused(413, "too_large");
    let messages = vec![json!({"role": "user", "content": "x"}); 4];
    let at = "/api/v1/conversations/trip/turns";
    served.post(at, json!({"messages": messages})).refused(413, "too_large");
}

#[test]
fn requests_over_the_rate_get_a_retry_time() {
    let served = Served::with(Options { rate: 5, ..Options::default() });
    let answers: Vec<_> = (0..40).map(|_| served.get("/healthz")).collect();
    let refused = answers.iter().find(|it| it.status != 200).expect("one over the rate");
    refused.refused(429, "busy");
    assert_eq!(refused.header("retry-after"), Some("1"));
    eventually("the rate allows more", || served.get("/healthz").status == 200);
}

/// Sends the head and a part of the body of a request, which is in work from then on.
fn half_a_request(served: &Served) -> std::net::TcpStream {
    let mut stream = served.connect();
    let head = "POST /api/v1/conversations HTTP/1.1\r\nHost: localhost\r\n\
                Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{";
    stream.write_all(head.as_bytes()).expect("half a request");
    stream
}

#[test]
fn concurrent_requests_over_the_limit_are_refused() {
    let served = Served::with(Options { concurrency: 2, ..Options::default() });
    let mut held = vec![half_a_request(&served)];
    served.await_in_work(1);
    // What asks takes room as well: a second one that came at the wrong moment is refused itself.
    eventually("the room is full", || {
        held.truncate(1);
        held.push(half_a_request(&served));
        (0..20).any(|_| served.get("/healthz").status == 503)
    });
    let refused = served.get("/healthz");
    refused.refused(503, "busy");
    assert_eq!(refused.header("retry-after"), Some("1"));
    // They are not lost: with the rest of their bodies they are answered.
    for stream in &mut held {
        stream.write_all(b"}").expect("the rest");
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).expect("an answer");
        assert_eq!(&answer, b"HTTP/1.1 201");
    }
    eventually("there is room again", || served.get("/healthz").status == 200);
}

#[test]
fn large_bodies_have_a_memory_limit() {
    let options = Options { body_memory_bytes: 1 << 20, ..Options::default() };
    let served = Served::with(options);
    served.trip();
    let mut held = served.connect();
    let head = "POST /api/v1/conversations HTTP/1.1\r\nHost: localhost\r\n\
                Content-Type: application/json\r\nContent-Length: 1000000\r\n\r\n";
    held.write_all(head.as_bytes()).expect("the head");
    served.await_in_work(1);
    let large = "x".repeat(200_000);
    served.say("trip", &large).refused(503, "busy");
    served.say("trip", "small").expect(201);
    drop(held);
    eventually("there is room again", || served.say("trip", &large).status < 300);
}

#[test]
fn concurrent_exports_over_the_limit_are_refused() {
    let served = Served::with(Options { transfers: 1, ..Options::default() });
    served.trip();
    let mut held = served.connect();
    let head = "POST /api/v1/import HTTP/1.1\r\nHost: localhost\r\n\
                Content-Type: application/x-ndjson\r\nContent-Length: 1000\r\n\r\n{";
    held.write_all(head.as_bytes()).expect("half a bundle");
    served.await_in_work(1);
    served.get("/api/v1/export").refused(503, "busy");
    drop(held);
    eventually("there is room again", || served.get("/api/v1/export").status == 200);
}

#[test]
fn a_body_that_never_arrives_times_out() {
    let body_timeout = Duration::from_millis(200);
    let served = Served::with(Options { body_timeout, ..Options::default() });
    let mut stream = half_a_request(&served);
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer, and the end");
    assert!(answer.starts_with("HTTP/1.1 408"), "{answer}");
    assert!(answer.contains("application/problem+json"), "{answer}");
}
