//! Clients that mean no good. Each is tried in small numbers here; the long form is
//! `TINE_HOSTILE_CONNECTIONS=10000 cargo test --release -p tine-server --test main hostile`, which
//! also looks at the memory of the process.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::json;
use tine_server::Options;

use crate::harness::{Served, eventually};

/// Idle connections at once.
fn connections() -> usize {
    let asked = std::env::var("TINE_HOSTILE_CONNECTIONS").ok();
    asked.map_or(1_000, |count| count.parse().expect("a number of connections"))
}

/// How many connections can have both their ends in this process.
fn descriptors_allow() -> usize {
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"));
    let soft = line.and_then(|line| line.split_whitespace().next()?.parse::<usize>().ok());
    soft.map_or(usize::MAX, |soft| soft.saturating_sub(200) / 2)
}

/// Bytes of memory that this process holds.
fn resident_bytes() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<usize>().ok());
    kilobytes.unwrap_or(0) << 10
}

fn assert_closed(stream: &mut TcpStream) {
    let mut left = Vec::new();
    match stream.read_to_end(&mut left) {
        Ok(_) => {}
        Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset),
    }
}

#[test]
fn a_body_with_a_huge_content_length_is_refused_unread() {
    let served = Served::new();
    for expect in ["", "Expect: 100-continue\r\n"] {
        let mut stream = served.connect();
        let head = format!(
            "POST /api/v1/conversations HTTP/1.1\r\nHost: localhost\r\n{expect}\
             Content-Type: application/json\r\nContent-Length: 1073741824\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).expect("the head");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer, and the end");
        assert!(answer.starts_with("HTTP/1.1 413"), "{answer}");
        assert!(answer.contains("application/problem+json"), "{answer}");
    }
}

#[test]
fn a_slow_request_head_times_out() {
    let head_timeout = Duration::from_millis(300);
    let served = Served::with(Options { head_timeout, ..Options::default() });
    let mut trickling = served.connect();
    let mut sent = 0;
    let refused = (0..200).any(|_| {
        std::thread::sleep(Duration::from_millis(20));
        sent += 1;
        trickling
            .write_all(b"GET /healthz HTTP/1.1\r\nX-Slow: yes".get(sent..=sent).unwrap_or(b"x"))
            .is_err()
    });
    assert!(refused, "it went on for ever");
    served.get("/healthz").expect(200);
}

#[test]
fn an_idle_connection_times_out() {
    let head_timeout = Duration::from_millis(300);
    let served = Served::with(Options { head_timeout, ..Options::default() });
    let mut silent = served.connect();
    let mut idle = served.connect();
    idle.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").expect("a request");
    assert_closed(&mut silent);
    assert_closed(&mut idle);
}

#[test]
fn a_client_that_stops_reading_times_out_and_others_are_served() {
    let write_timeout = Duration::from_millis(500);
    let served = Served::with(Options { write_timeout, ..Options::default() });
    served.post("/api/v1/conversations", json!({"conversation_id": "c"})).expect(201);
    for number in 0..30 {
        served.say("c", &format!("{number}{}", "x".repeat(1 << 20))).expect(201);
    }
    let paths = ["/api/v1/conversations/c/turns", "/api/v1/export"];
    let mut slow: Vec<TcpStream> = Vec::new();
    for path in paths.iter().cycle().take(6) {
        let mut stream = served.connect();
        let head = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
        stream.write_all(head.as_bytes()).expect("the head");
        slow.push(stream);
    }
    for number in 0..20 {
        served.say("c", &format!("meanwhile {number}")).expect(201);
    }
    eventually("the exports have let go", || served.get("/healthz").status == 200);
    // Long enough for a busy machine: a client that resumes too early would be served.
    std::thread::sleep(write_timeout * 12);
    for stream in &mut slow {
        assert_closed(stream);
    }
}

#[test]
fn a_client_that_disconnects_does_not_affect_others() {
    let served = Served::new();
    served.trip();
    for cut in [1, 20, 60, 120, 150] {
        let request = "POST /api/v1/conversations/trip/turns HTTP/1.1\r\nHost: localhost\r\n\
                       Content-Type: application/json\r\nContent-Length: 35\r\n\r\n\
                       {\"role\":\"user\",\"content\":\"half-open\"}";
        let mut stream = served.connect();
        stream.write_all(&request.as_bytes()[..cut.min(request.len() - 1)]).expect("a part");
        drop(stream);
    }
    served.await_in_work(0);
    let turns = served.get("/api/v1/conversations/trip/turns").expect(200).json();
    assert_eq!(turns["turns"].as_array().map(Vec::len), Some(2));
}

#[test]
fn connections_over_the_limit_wait() {
    let served = Served::with(Options { connections: 10, ..Options::default() });
    let held: Vec<TcpStream> = (0..10).map(|_| served.connect()).collect();
    let mut waiting = served.connect();
    waiting
        .write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        .expect("sent");
    waiting.set_read_timeout(Some(Duration::from_millis(200))).expect("a timeout");
    let mut answer = String::new();
    assert!(waiting.read_to_string(&mut answer).is_err(), "{answer}");
    drop(held);
    waiting.set_read_timeout(Some(crate::harness::PATIENCE)).expect("a timeout");
    waiting.read_to_string(&mut answer).expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

#[test]
fn a_thousand_idle_connections_leave_room_for_work() {
    let count = connections().min(descriptors_allow());
    let served = Served::with(Options { connections: count + 100, ..Options::default() });
    served.trip();
    let before = resident_bytes();
    let idle: Vec<TcpStream> =
        (0..count).map(|_| TcpStream::connect(served.address).expect("a connection")).collect();
    for number in 0..50 {
        served.say("trip", &format!("meanwhile {number}")).expect(201);
    }
    let each = resident_bytes().saturating_sub(before) / idle.len().max(1);
    eprintln!("{} idle connections, {each} bytes each, both sides", idle.len());
    if count > 1_000 {
        assert!(each < 64 << 10, "{each} bytes for an idle connection");
    }
}
