//! The types that every project knows.

use super::schema::{Field, FieldKind, Schema, Strategy};

use FieldKind::{Any, Boolean, Date, Key, List, Name, Number, Text, Url};

type Row =
    (&'static str, &'static str, &'static [(&'static str, FieldKind)], &'static [&'static str]);

/// Type, description, fields, identity. Version 1 of each; a change makes version 2.
const TYPES: &[Row] = &[
    (
        "conversation",
        "A conversation.",
        &[("conversation_id", Key), ("title", Text), ("client", Text), ("project", Text)],
        &["conversation_id"],
    ),
    (
        "agent_message",
        "One message of a conversation, in all its versions.",
        &[
            ("turn_key", Key),
            ("conversation_id", Key),
            ("turn_id", Key),
            ("role", Key),
            ("tool_call_id", Key),
            ("part", Number),
            ("content", Any),
            ("turn_hash", Key),
            ("created_at", Date),
            ("model", Key),
        ],
        &["turn_key"],
    ),
    (
        "person",
        "Somebody.",
        &[
            ("name", Name),
            ("email", Key),
            ("phone", Key),
            ("role", Text),
            ("organization", Name),
            ("birthday", Date),
            ("aliases", List),
        ],
        &["name"],
    ),
    (
        "organization",
        "A company, an institution, a team.",
        &[("name", Name), ("url", Url), ("kind", Text), ("place", Name), ("aliases", List)],
        &["name"],
    ),
    (
        "place",
        "A city, a country, a building, a street.",
        &[("name", Name), ("address", Text), ("kind", Text), ("aliases", List)],
        &["name"],
    ),
    (
        "task",
        "Something that somebody has to do.",
        &[("title", Name), ("due", Date), ("assignee", Name), ("status", Text), ("done", Boolean)],
        &["title"],
    ),
    (
        "event",
        "Something that happens at a time.",
        &[
            ("title", Name),
            ("date", Date),
            ("time", Text),
            ("end", Date),
            ("place", Name),
            ("people", List),
        ],
        &["title", "date"],
    ),
    (
        "decision",
        "What was decided.",
        &[("statement", Name), ("decided_at", Date), ("by", Name), ("reason", Text)],
        &["statement"],
    ),
    (
        "preference",
        "What somebody likes, dislikes or wants done in a certain way.",
        &[("statement", Name), ("polarity", Text), ("holder", Name)],
        &["statement"],
    ),
    ("note", "Anything worth keeping.", &[("text", Text), ("title", Text), ("tags", List)], &[]),
    (
        "document",
        "A file or a text with a name.",
        &[("title", Name), ("url", Url), ("mime_type", Key), ("author", Name)],
        &["title"],
    ),
    ("link", "An address on the web.", &[("url", Url), ("label", Text)], &["url"]),
    (
        "amount",
        "Money, or a quantity with its unit.",
        &[("value", Number), ("unit", Key), ("what", Text)],
        &[],
    ),
];

/// Returns the built-in schema of a type.
pub fn schema(entity_type: &str) -> Option<Schema> {
    TYPES.iter().find(|row| row.0 == entity_type).map(build)
}

/// Returns whether Tine alone makes entities of a type, along with turns.
pub fn is_structural(entity_type: &str) -> bool {
    matches!(entity_type, "agent_message" | "conversation")
}

/// Returns all built-in schemas.
pub fn schemas() -> impl Iterator<Item = Schema> {
    TYPES.iter().map(build)
}

fn build((entity_type, description, fields, identity): &Row) -> Schema {
    let field = |(name, kind): &(&str, FieldKind)| {
        let strategy = if *kind == List { Strategy::MergedSet } else { Strategy::LastWrite };
        ((*name).to_owned(), Field { kind: *kind, strategy })
    };
    Schema {
        entity_type: (*entity_type).to_owned(),
        version: 1,
        description: Some((*description).to_owned()),
        fields: fields.iter().map(field).collect(),
        identity: identity.iter().map(|name| (*name).to_owned()).collect(),
    }
}
