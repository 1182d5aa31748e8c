//! Live events.

use std::io::Write;

use serde_json::json;
use tine_core::{ConversationId, Limits, Message, json};
use tine_engine::{Append, Call};

use crate::harness::{Following, Served};

fn talk(served: &Served, id: &str) {
    served.post("/api/v1/conversations", json!({"conversation_id": id})).expect(201);
}

#[test]
fn a_follower_sees_every_change_once_and_in_order() {
    let served = Served::new();
    let mut following = Following::new(&served, "", None);
    talk(&served, "c");
    for number in 0..20 {
        served.say("c", &format!("message {number}")).expect(201);
    }
    let events = following.take(21);
    assert!(events.windows(2).all(|pair| pair[0].id < pair[1].id));
    assert_eq!(events[0].kind, "create");
    assert!(events[1..].iter().all(|event| event.kind == "append"));
    let first = &events[1].data;
    assert_eq!((&first["project_id"], &first["conversation_id"]), (&json!("default"), &json!("c")));
    assert_eq!(first["position"], events[1].id);
}

#[test]
fn a_reconnecting_follower_misses_and_repeats_nothing() {
    let served = Served::new();
    talk(&served, "c");
    let mut whole = Following::new(&served, "", None);
    let mut seen = Vec::new();
    let mut last = None;
    for round in 0..5 {
        // Each connection sees some, and goes away in the middle of more.
        let mut following = Following::new(&served, "", last);
        for number in 0..7 {
            served.say("c", &format!("round {round}, message {number}")).expect(201);
        }
        seen.extend(following.take(4));
        last = seen.last().map(|event| event.id);
    }
    let rest = 5 * 7 - seen.len();
    seen.extend(Following::new(&served, "", last).take(rest));
    assert_eq!(seen, whole.take(5 * 7));
    // The same place named in the query.
    let after = format!("?after={}", seen[0].id);
    assert_eq!(Following::new(&served, &after, None).take(3), seen[1..4]);
}

#[test]
fn a_follower_sees_only_the_requested_project_and_conversation() {
    let served = Served::new();
    for (project, id) in [("p", "a"), ("p", "b"), ("q", "a")] {
        let body = json!({"conversation_id": id, "project_id": project});
        served.post("/api/v1/conversations", body).expect(201);
    }
    let mut of_project = Following::new(&served, "?project_id=p", None);
    let mut of_conversation = Following::new(&served, "?project_id=p&conversation_id=b", None);
    for (project, id) in [("q", "a"), ("p", "a"), ("p", "b"), ("q", "a"), ("p", "b")] {
        let path = format!("/api/v1/conversations/{id}/turns?project_id={project}");
        served.post(&path, json!({"role": "user", "content": "x", "reuse": false})).expect(201);
    }
    let seen = |following: &mut Following, count| -> Vec<String> {
        let events = following.take(count).into_iter();
        events
            .map(|it| format!("{}/{}", it.data["project_id"], it.data["conversation_id"]))
            .collect()
    };
    assert_eq!(seen(&mut of_project, 3), ["\"p\"/\"a\"", "\"p\"/\"b\"", "\"p\"/\"b\""]);
    assert_eq!(seen(&mut of_conversation, 2), ["\"p\"/\"b\"", "\"p\"/\"b\""]);
}

#[test]
fn changes_of_another_process_are_followed() {
    let served = Served::new();
    talk(&served, "c");
    let mut following = Following::new(&served, "", None);
    let other = served.beside();
    let said = json::parse(br#"{"role":"user","content":"from outside"}"#, 8).expect("JSON");
    let limits = Limits::default();
    let message = Message::from_json(said, &limits).expect("a message");
    let id = ConversationId::new("c", &limits).expect("an id");
    other.append(&Call::by("somebody else"), Append::to(id, vec![message])).expect("appended");
    let event = following.next().expect("an event");
    assert_eq!((event.kind.as_str(), &event.data["actor"]), ("append", &json!("somebody else")));
}

#[test]
fn a_follower_that_never_reads_blocks_no_other_request() {
    let served = Served::new();
    talk(&served, "c");
    let mut deaf: Vec<_> = (0..8).map(|_| served.connect()).collect();
    for stream in &mut deaf {
        let head = b"GET /api/v1/events?after=0 HTTP/1.1\r\nHost: localhost\r\n\r\n";
        stream.write_all(head).expect("the head");
    }
    let mut following = Following::new(&served, "", None);
    for number in 0..200 {
        served.say("c", &format!("message {number} {}", "x".repeat(4_000))).expect(201);
    }
    assert_eq!(following.take(200).len(), 200);
}

#[test]
fn connected_followers_are_counted() {
    let served = Served::new();
    let count = |count: usize| {
        let text = served.get("/metrics").expect(200).as_text();
        text.contains(&format!("tine_event_followers {count}\n"))
    };
    assert!(count(0));
    let following = Following::new(&served, "", None);
    assert!(count(1));
    drop(following);
    talk(&served, "c");
    crate::harness::eventually("the follower is gone", || count(0));
}
