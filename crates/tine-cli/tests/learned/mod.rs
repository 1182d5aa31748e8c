//! What was learned, from outside: stored, read, put right, traced back to its bytes.

mod entities;
mod models;
mod relations;
mod runs;
mod storing;

use serde_json::Value;

use crate::harness::{Home, stable};

/// A sentence in which the rules find a task and a place.
const SAID: &str = "I need to book a hotel in Kyoto by 2025-03-14.";

/// When everything was said.
const AT: &str = "2025-03-01T09:00:00Z";

/// A store with one turn that was interpreted.
pub fn with_task() -> Home {
    let home = Home::new();
    home.ok(&[
        "store",
        "turn",
        "trip",
        "--turn-id",
        "1",
        "--created-at",
        AT,
        "--interpret",
        "wait",
        SAID,
    ]);
    home
}

/// A text of a document, by its path.
fn text(document: &Value, path: &str) -> String {
    let found = document.pointer(path).and_then(Value::as_str);
    found.unwrap_or_else(|| panic!("no text at {path} in {document}")).to_owned()
}

/// The items of a list.
fn items(home: &Home, arguments: &[&str]) -> Vec<Value> {
    home.json(arguments)["items"].as_array().expect("a list").clone()
}

/// The only entity of a type.
fn only(home: &Home, entity_type: &str) -> String {
    let found = items(home, &["entity", "list", "--type", entity_type]);
    assert_eq!(found.len(), 1, "{found:?}");
    text(&found[0], "/entity_id")
}

fn shown(home: &Home, arguments: &[&str]) -> String {
    stable(&home.ok(arguments), &home.path(""))
}

/// Stores a person with an e-mail address; returns the id.
fn person(home: &Home, name: &str, email: &str) -> String {
    let facts = format!(
        r#"{{"entities":[{{"entity_type":"person","fields":{{"name":"{name}","email":"{email}"}},
        "observed_at":"{AT}"}}]}}"#
    );
    let out = home.ok_with(&["--json", "store", "facts"], facts.as_bytes());
    text(&serde_json::from_str(&out).expect("a document"), "/entities/0/entity_id")
}
