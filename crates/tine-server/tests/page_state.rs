//! What the page needs beside the tree: recent conversations, last viewed leaves, the example.

use serde_json::json;
use tine_server::Options;

use crate::harness::{Client, Served};

fn listed(client: &Client, query: &str) -> Vec<String> {
    let rows = client.walk(&format!("/api/v1/conversations?order=activity{query}"), "items");
    rows.iter().map(|row| row["conversation_id"].as_str().expect("an id").to_owned()).collect()
}

#[test]
fn conversations_are_listed_by_activity() {
    let served = Served::new();
    for (id, title, tags) in [
        ("a", "A week in Tokyo", json!(["trip", "2024"])),
        ("b", "Taxes", json!(["money"])),
        ("c", "Tokyo again", json!(["trip"])),
    ] {
        let body = json!({"conversation_id": id, "title": title, "metadata": {"tags": tags}});
        served.post("/api/v1/conversations", body).expect(201);
    }
    // Changes need distinct times, in milliseconds.
    let change = |id: &str| {
        std::thread::sleep(std::time::Duration::from_millis(3));
        served.say(id, "more").expect(201);
    };
    ["c", "a", "b"].into_iter().for_each(change);
    assert_eq!(listed(&served, ""), ["b", "a", "c"]);
    change("c");
    assert_eq!(listed(&served, ""), ["c", "b", "a"]);
    assert_eq!(listed(&served, "&limit=1"), ["c", "b", "a"], "page by page");
    assert_eq!(listed(&served, "&q=tOK"), ["c", "a"], "as somebody types");
    assert_eq!(listed(&served, "&q=week%20tok"), ["a"]);
    assert_eq!(listed(&served, "&tag=trip"), ["c", "a"]);
    assert_eq!(listed(&served, "&tag=trip&q=again"), ["c"]);
    assert_eq!(listed(&served, "&q=none"), [""; 0]);
    served.post("/api/v1/conversations/a/archive", json!({})).expect(200);
    assert_eq!(listed(&served, ""), ["c", "b"]);
    // Archiving is no activity.
    assert_eq!(listed(&served, "&archived=true"), ["c", "b", "a"]);
    for bad in
        ["?q=x", "?tag=x", "?order=activity&cursor=x", "?order=none", "?order=activity&limit=0"]
    {
        served.get(&format!("/api/v1/conversations{bad}")).refused(400, "invalid");
    }
}

const VISITED: &str = "/api/v1/conversations/trip/visited";

#[test]
fn last_viewed_leaves_are_stored_and_enter_no_log() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("tine.visited");
    let options = Options { visited: Some(file.clone()), ..Options::default() };
    let served = Served::with(options.clone());
    let (question, answer) = served.trip();
    assert_eq!(served.get(VISITED).expect(200).json()["leaves"], json!({}));
    let log = served.get("/api/v1/operations?conversation_id=trip").expect(200).json();
    let leaves = json!({"leaves": {"": answer, question.as_str(): answer}});
    served.put(VISITED, leaves).expect(200);
    let changed = json!({"leaves": {"": question, question.as_str(): null}});
    let kept = served.put(VISITED, changed).expect(200).json();
    assert_eq!(kept["leaves"], json!({"": question}));
    let after = served.get("/api/v1/operations?conversation_id=trip").expect(200).json();
    assert_eq!(log, after);
    let store = served.stop();
    let again = Served::over(store, options, tine_core::Limits::default());
    assert_eq!(again.get(VISITED).expect(200).json()["leaves"], json!({"": question}));
    for bad in [json!({"leaves": {"x": question}}), json!({"leaves": {"": "main"}}), json!({})] {
        again.put(VISITED, bad).refused(400, "invalid");
    }
    let none = "/api/v1/conversations/none/visited";
    again.put(none, json!({"leaves": {"": question}})).refused(404, "not_found");
}

#[test]
fn the_example_is_created_once_and_complete() {
    let served = Served::new();
    let made = served.post("/api/v1/demo", json!({})).expect(201).json();
    assert_eq!(made["conversation_id"], "tokyo-trip");
    let again = served.post("/api/v1/demo", json!({})).expect(200).json();
    assert_eq!(again, made);
    served.post("/api/v1/demo", json!({"project_id": "other"})).expect(201);
    let outline = served.get("/api/v1/conversations/tokyo-trip/outline").expect(200).json();
    let kinds = outline["kinds"].as_str().expect("letters");
    for kind in "tbr".chars() {
        assert!(kinds.contains(kind), "{kinds}");
    }
    assert_eq!(outline["branches"].as_array().expect("a list").len(), 5);
    let commits = served.get("/api/v1/commits?conversation_id=tokyo-trip").expect(200).json();
    assert_eq!(commits["items"].as_array().expect("a list").len(), 5);
    let people = served.get("/api/v1/entities?entity_type=person").expect(200).json();
    let people = people["items"].as_array().expect("a list");
    let anna = people.iter().find(|it| it["name"] == "Anna Berg");
    let anna = anna.unwrap_or_else(|| panic!("{people:?}"));
    let id = anna["entity_id"].as_str().expect("an id");
    let from = served.get(&format!("/api/v1/entities/{id}/provenance")).expect(200).json();
    assert!(from.to_string().contains("src_"), "{from}");
    assert_eq!(served.post("/api/v1/verify", json!({})).expect(200).json()["ok"], true);
}
