//! Builds the prompts of the interpreter.
//!
//! The system prompt is the same for every text of one kind, so that it is stored once. The text is
//! in a message of its own, between marker lines that it cannot contain: they carry its digest.

use serde_json::{Value, json};
use tine_analysis::{Material, Subject};
use tine_core::Digest;

const TURN: &str = include_str!("../prompts/turn.md");
const DOCUMENT: &str = include_str!("../prompts/document.md");

/// The placeholder of the types in a prompt.
const TYPES: &str = "{{types}}";

/// The number of hexadecimal digits of the digest in a marker.
const MARK: usize = 16;

/// A type of entity that a model may find.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntityType {
    /// `person`, `task` …: lower-case letters, digits and `_`.
    pub name: String,
    /// The usual fields.
    pub fields: Vec<String>,
}

impl EntityType {
    /// Creates a type.
    pub fn new(name: &str, fields: &[&str]) -> EntityType {
        let fields = fields.iter().map(|&field| field.to_owned()).collect();
        EntityType { name: name.to_owned(), fields }
    }
}

/// Returns the types that every prompt names.
pub(super) fn built_in() -> Vec<EntityType> {
    vec![
        EntityType::new("person", &["name", "email", "role"]),
        EntityType::new("organization", &["name"]),
        EntityType::new("place", &["name"]),
        EntityType::new("task", &["title", "due", "assignee"]),
        EntityType::new("event", &["title", "date", "time", "place"]),
        EntityType::new("decision", &["statement"]),
        EntityType::new("preference", &["statement", "polarity"]),
        EntityType::new("note", &["text"]),
        EntityType::new("document", &["title"]),
        EntityType::new("link", &["url", "label"]),
        EntityType::new("amount", &["value", "unit", "what"]),
    ]
}

/// Builds the system prompt.
pub(super) fn prompt(subject: Subject, types: &[EntityType]) -> String {
    let template = match subject {
        Subject::Turn(_) => TURN,
        Subject::Document => DOCUMENT,
    };
    let line = |it: &EntityType| format!("  - {}: {}", it.name, it.fields.join(", "));
    let types: Vec<String> = types.iter().map(line).collect();
    template.replace(TYPES, &types.join("\n"))
}

/// Builds the message that contains the text.
pub(super) fn message(material: &Material<'_>) -> String {
    let mark = &Digest::of(material.text.as_bytes()).to_hex()[..MARK];
    let mut message = String::with_capacity(material.text.len() + 256);
    if let Subject::Turn(role) = material.subject {
        message.push_str(&format!("Said by: {}\n", role.as_str()));
    }
    if let Some(time) = material.authored_at {
        message.push_str(&format!("Said or written at: {time}\n"));
    }
    message.push_str(&format!("===== text {mark} =====\n"));
    message.push_str(material.text);
    message.push_str(&format!("\n===== end of text {mark} =====\n"));
    message
}

/// Returns the schema of the answer: closed objects with every property required, as strict
/// endpoints demand; hence fields are pairs.
pub(super) fn schema(types: &[EntityType]) -> Value {
    let names: Vec<&str> = types.iter().map(|it| it.name.as_str()).collect();
    let closed = |properties: Value| {
        let required: Vec<&String> =
            properties.as_object().into_iter().flatten().map(|it| it.0).collect();
        json!({
            "type": "object",
            "required": required,
            "properties": properties,
            "additionalProperties": false,
        })
    };
    let text = json!({ "type": "string" });
    let value = json!({ "anyOf": [
        text,
        { "type": "number" },
        { "type": "boolean" },
        { "type": "array", "items": text },
    ] });
    let field = closed(json!({ "name": text, "value": value }));
    let finding = closed(json!({
        "entity_type": { "type": "string", "enum": names },
        "fields": { "type": "array", "items": field },
        "quote": text,
    }));
    closed(json!({ "findings": { "type": "array", "items": finding } }))
}
