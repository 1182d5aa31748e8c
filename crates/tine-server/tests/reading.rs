//! Every route that reads, on its way to an answer.

use serde_json::json;

use crate::harness::{Served, encoded};

#[test]
fn projects_are_created_found_and_listed() {
    let served = Served::new();
    served.post("/api/v1/projects", json!({"project_id": "trips"})).expect(201);
    let again = served.post("/api/v1/projects", json!({"project_id": "trips"})).expect(200);
    assert_eq!(again.text("/project_id"), "trips");
    assert_eq!(served.get("/api/v1/projects/trips").expect(200).text("/project_id"), "trips");
    let all = served.get("/api/v1/projects").expect(200).json();
    let ids: Vec<_> = all["items"].as_array().unwrap().iter().map(|it| &it["project_id"]).collect();
    assert_eq!(ids, ["default", "trips"]);
    served.get("/api/v1/projects/none").refused(404, "not_found");
}

#[test]
fn a_conversation_is_created_retrieved_and_listed() {
    let served = Served::new();
    let body = json!({"conversation_id": "c", "system_prompt": "Be brief.", "title": "Trips"});
    let made = served.post("/api/v1/conversations", body).expect(201).json();
    assert_eq!(made["project_id"], "default");
    let mut read = served.get("/api/v1/conversations/c").expect(200).json();
    let read_fields = read.as_object_mut().expect("an object");
    assert_eq!(read_fields.remove("label"), Some(json!("Trips")));
    assert_eq!(read_fields.remove("turns"), Some(json!(0)));
    assert_eq!(read, made);
    let listed = served.get("/api/v1/conversations").expect(200).json();
    assert_eq!(listed["items"][0]["conversation_id"], "c");
    served.post("/api/v1/conversations", json!({"conversation_id": "c"})).refused(409, "conflict");
}

#[test]
fn projects_are_isolated() {
    let served = Served::new();
    let body = json!({"conversation_id": "c", "project_id": "trips"});
    assert_eq!(served.post("/api/v1/conversations", body).expect(201).text("/project_id"), "trips");
    served.get("/api/v1/conversations/c").refused(404, "not_found");
    served.get("/api/v1/conversations/c?project_id=trips").expect(200);
    let both = json!({"conversation_id": "d", "project_id": "other"});
    served.post("/api/v1/conversations?project_id=trips", both).refused(400, "invalid");
}

#[test]
fn a_turn_is_found_by_every_kind_of_reference() {
    let served = Served::new();
    let (question, answer) = served.trip();
    let turn = served.get(&format!("/api/v1/turns/{answer}")).expect(200);
    let hash = turn.text("/turn_hash");
    let bare = hash.strip_prefix("sha256:").expect("a hash says how it was made");
    served.put("/api/v1/bookmarks/here", json!({"turn": answer})).expect(200);
    for name in [answer.as_str(), &hash, bare, &bare[..8], "main", "here", "main~0"] {
        let path = format!("/api/v1/turns/{}?conversation_id=trip", encoded(name));
        assert_eq!(served.get(&path).expect(200).text("/turn_id"), answer, "{name}");
    }
    let before = served.get("/api/v1/turns/main~1?conversation_id=trip").expect(200);
    assert_eq!(before.text("/turn_id"), question);
}

#[test]
fn the_neighbours_of_a_turn_are_listed() {
    let served = Served::new();
    let (question, answer) = served.trip();
    let edited = served.post(&format!("/api/v1/turns/{answer}/edit"), json!({"content": "April"}));
    let edited = edited.expect(201).text("/turn/turn_id");
    let ids = |path: String| -> Vec<String> {
        let found = served.get(&path).expect(200).json();
        let items = found["items"].as_array().expect("a list").iter();
        items.map(|it| it["turn_id"].as_str().expect("an id").to_owned()).collect()
    };
    let both = [answer.clone(), edited.clone()];
    assert_eq!(ids(format!("/api/v1/turns/{question}/children")), both);
    assert_eq!(ids(format!("/api/v1/turns/{answer}/siblings")), both);
    assert_eq!(ids(format!("/api/v1/turns/{edited}/versions")), both);
}

#[test]
fn the_turns_of_a_branch_are_listed_in_order_and_by_role() {
    let served = Served::new();
    let (question, answer) = served.trip();
    let all = served.get("/api/v1/conversations/trip/turns").expect(200);
    assert_eq!(all.text("/turns/0/turn_id"), question);
    assert_eq!(all.text("/turns/1/turn_id"), answer);
    assert!(all.header("etag").is_some());
    let one = served.get("/api/v1/conversations/trip/turns?role=assistant&branch=main").expect(200);
    assert_eq!(one.json()["turns"].as_array().map(Vec::len), Some(1));
    served.get("/api/v1/conversations/trip/turns?branch=none").refused(404, "not_found");
    served.get("/api/v1/conversations/trip/turns?role=nobody").refused(400, "invalid");
}

#[test]
fn a_path_is_read_as_a_whole_in_pages_and_as_a_window() {
    let served = Served::new();
    let (question, answer) = served.trip();
    let whole = served.get(&format!("/api/v1/turns/{answer}/path")).expect(200).json();
    assert_eq!(whole["turns"].as_array().map(Vec::len), Some(2));
    let last = served.get(&format!("/api/v1/turns/{answer}/path?last=1")).expect(200);
    assert_eq!(last.text("/turns/0/turn_id"), answer);
    let around = served.get(&format!("/api/v1/turns/{question}/path?window=3")).expect(200).json();
    assert_eq!(around["focus"], 0);
    assert_eq!(around["turns"].as_array().map(Vec::len), Some(2));
    let huge = format!("/api/v1/turns/{question}/path?window=1000000");
    served.get(&huge).refused(413, "too_large");
}

#[test]
fn a_path_is_rendered_for_every_provider() {
    let served = Served::new();
    let (_, answer) = served.trip();
    for format in ["tine", "openai", "anthropic", "gemini", "markdown"] {
        let path = format!("/api/v1/turns/{answer}/path?format={format}&max_tokens=1000");
        assert_eq!(served.get(&path).expect(200).text("/format"), format);
    }
    let other = format!("/api/v1/turns/{answer}/path?format=other");
    served.get(&other).refused(400, "invalid");
    let narrow = format!("/api/v1/turns/{answer}/path?format=openai&max_tokens=1");
    let refused = served.get(&narrow);
    assert!(refused.refused(refused.status, "too_large")["needed_tokens"].is_u64());
}

#[test]
fn topology_tails_log_and_stats_are_returned() {
    let served = Served::new();
    let (question, _) = served.trip();
    let tree = served.get("/api/v1/conversations/trip/topology").expect(200).json();
    assert_eq!(tree["total"], 2);
    served
        .post("/api/v1/conversations/trip/branches/main/revert", json!({"to": question}))
        .expect(200);
    let tails = served.get("/api/v1/conversations/trip/tails").expect(200).json();
    assert_eq!(tails["items"].as_array().map(Vec::len), Some(1));
    let log = served.get("/api/v1/operations?conversation_id=trip").expect(200).json();
    assert_eq!(log["items"][0]["kind"], "revert");
    let stats = served.get("/api/v1/stats?conversation_id=trip").expect(200).json();
    assert_eq!(stats["store"]["turns"], 2);
    assert_eq!(stats["conversation"]["tails"], 1);
    assert!(served.get("/api/v1/stats?usage=true").expect(200).json()["usage"].is_object());
    let verified = served.send("POST", "/api/v1/verify", None).expect(200).json();
    assert_eq!(verified["ok"], true);
}

#[test]
fn a_head_request_is_answered_without_a_body() {
    let served = Served::new();
    let answer = served.send("HEAD", "/api/v1/conversations", None).expect(200);
    assert!(answer.body.is_empty());
}
