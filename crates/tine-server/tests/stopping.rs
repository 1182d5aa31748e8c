//! Stopping.

use std::io::{Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;
use tine_core::Limits;
use tine_server::Options;

use crate::harness::{Following, PATIENCE, Served, eventually};

#[test]
fn running_requests_are_finished_when_the_server_stops() {
    let served = Served::new();
    served.trip();
    let body = br#"{"role":"user","content":"in work"}"#;
    let mut stream = served.connect();
    let head = format!(
        "POST /api/v1/conversations/trip/turns HTTP/1.1\r\nHost: localhost\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).expect("the head");
    stream.write_all(&body[..10]).expect("a part");
    served.await_in_work(1);
    served.tell_to_stop();
    eventually("nobody new is taken", || std::net::TcpStream::connect(served.address).is_err());
    stream.write_all(&body[10..]).expect("the rest");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer, and the end");
    assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
    let again = Served::over(served.stop(), Options::default(), Limits::default());
    let turns = again.get("/api/v1/conversations/trip/turns").expect(200);
    assert_eq!(turns.text("/turns/2/content/0/text"), "in work");
}

#[test]
fn nothing_that_was_acknowledged_is_lost_when_the_server_stops_under_load() {
    let served = Served::new();
    served.post("/api/v1/conversations", json!({"conversation_id": "c"})).expect(201);
    let stopped = AtomicBool::new(false);
    let acknowledged: Vec<String> = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..4)
            .map(|writer| {
                let (address, stopped) = (served.address, &stopped);
                scope.spawn(move || {
                    let mut said = Vec::new();
                    for number in 0.. {
                        let text = format!("writer {writer}, message {number}");
                        let body = json!({"role": "user", "content": text}).to_string();
                        let request = format!(
                            "POST /api/v1/conversations/c/turns HTTP/1.1\r\nHost: localhost\r\n\
                             Content-Type: application/json\r\nConnection: close\r\n\
                             Content-Length: {}\r\n\r\n{body}",
                            body.len()
                        );
                        let mut answer = String::new();
                        let asked = std::net::TcpStream::connect(address).and_then(|mut stream| {
                            stream.set_read_timeout(Some(PATIENCE))?;
                            stream.write_all(request.as_bytes())?;
                            stream.read_to_string(&mut answer)
                        });
                        if answer.starts_with("HTTP/1.1 201") {
                            said.push(text);
                        } else {
                            assert!(stopped.load(Ordering::SeqCst), "{asked:?} {answer}");
                            return said;
                        }
                    }
                    said
                })
            })
            .collect();
        std::thread::sleep(Duration::from_millis(300));
        stopped.store(true, Ordering::SeqCst);
        served.tell_to_stop();
        writers.into_iter().flat_map(|writer| writer.join().expect("a writer")).collect()
    });
    assert!(!acknowledged.is_empty());
    let again = Served::over(served.stop(), Options::default(), Limits::default());
    let turns = again.walk("/api/v1/conversations/c/turns", "turns");
    let there: Vec<&str> =
        turns.iter().filter_map(|turn| turn["content"][0]["text"].as_str()).collect();
    for text in &acknowledged {
        assert!(there.contains(&text.as_str()), "{text} is lost");
    }
}

#[test]
fn followers_and_idle_connections_do_not_keep_a_server_from_stopping() {
    let served = Served::new();
    let mut following = Following::new(&served, "", None);
    let _idle = served.connect();
    let _half = {
        let mut stream = served.connect();
        stream.write_all(b"GET /healthz HTTP/1.1\r\nHost:").expect("half a head");
        stream
    };
    served.get("/healthz").expect(200);
    let started = Instant::now();
    served.stop();
    assert_eq!(following.next(), None);
    assert!(started.elapsed() < Options::default().grace, "it waited for nothing");
}

#[test]
fn a_stalled_client_is_dropped_after_the_grace_period() {
    let grace = Duration::from_millis(200);
    let served = Served::with(Options { grace, ..Options::default() });
    let mut stream = served.connect();
    let head = "POST /api/v1/conversations HTTP/1.1\r\nHost: localhost\r\n\
                Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{";
    stream.write_all(head.as_bytes()).expect("half a request");
    served.await_in_work(1);
    served.stop();
}
