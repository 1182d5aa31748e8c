//! Messages and content in requests, and the forms that describe them.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde_json::Value;
use tine_core::json::{self, Json, Object};
use tine_core::{Body, Limits, Message};

use super::Speaker;
use crate::{Error, Result};

/// The content of a turn: a text, or blocks, each an object with a `type`.
#[derive(JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "describes a field that is carried as JSON")]
pub(crate) enum ContentForm {
    Text(String),
    Blocks(Vec<BTreeMap<String, Value>>),
}

/// One message, as clients of chat models send it.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "describes a field that is carried as JSON")]
pub(crate) struct MessageForm {
    /// The role of the sender.
    role: Speaker,
    /// A text or blocks. Anthropic's form is accepted too: each `tool_result` in a user message
    /// becomes a turn of role `tool`. May be `null` beside `tool_calls`.
    #[serde(default)]
    content: Option<ContentForm>,
    /// The id of the tool call that this message answers; for role `tool` only.
    #[serde(default)]
    tool_call_id: Option<String>,
    /// Tool calls in OpenAI's form; converted to blocks of type `tool-use`.
    #[serde(default)]
    tool_calls: Option<Vec<Value>>,
    /// When the message was sent; the current time by default.
    #[serde(default)]
    created_at: Option<String>,
    /// `complete`, or `partial` for a stream that was interrupted.
    #[serde(default)]
    status: Option<String>,
    /// Additional metadata.
    #[serde(default)]
    metadata: Option<BTreeMap<String, Value>>,
}

/// Parses messages, canonical or in a provider's form. An Anthropic user message with tool results
/// becomes several messages.
pub fn messages(given: Vec<Json>, limits: &Limits) -> Result<Vec<Message>> {
    let mut turns = Vec::with_capacity(given.len());
    for (index, json) in given.into_iter().enumerate() {
        let received = Message::from_request(json, limits);
        turns.extend(received.map_err(|error| Error::message(index, &error))?);
    }
    Ok(turns)
}

/// Parses one message that becomes one turn.
pub fn message(given: Json, index: usize, limits: &Limits) -> Result<Message> {
    Message::single_from_request(given, limits).map_err(|error| Error::message(index, &error))
}

/// Returns an object of the members that are present.
pub(crate) fn object_of<const N: usize>(members: [(&str, Option<Json>); N]) -> Json {
    let mut object = Object::new();
    for (name, value) in members {
        if let Some(value) = value {
            object.insert(name, value);
        }
    }
    Json::Object(object)
}

/// Returns a message in the form in which requests hold it.
pub(crate) fn message_json(message: &Message) -> Json {
    let metadata = (!message.metadata.is_empty()).then(|| message.metadata.to_json());
    object_of([
        ("role", Some(message.role.as_str().into())),
        ("content", Some(content_json(&message.body))),
        ("tool_call_id", message.tool_call_id.as_deref().map(Json::from)),
        ("created_at", message.created_at.map(|at| at.to_string().into())),
        ("status", Some(message.status.as_str().into())),
        ("metadata", metadata),
    ])
}

/// Returns the content of a body: plain text as a string, so that it does not grow.
pub(crate) fn content_json(body: &Body) -> Json {
    match body {
        Body::Text(text) if !text.is_empty() => text.as_str().into(),
        body => {
            let blocks = body.to_blocks_string();
            json::parse(blocks.as_bytes(), json::MAX_DEPTH).expect("a body's blocks are JSON")
        }
    }
}
