//! Builds blocks and messages in Tine's form.

use tine_core::json::{Object, object};
use tine_core::message::anthropic::{self, AnthropicBlock};
use tine_core::{Body, Json, Limits, Message, Metadata, Role, Status, Timestamp};

pub(crate) fn text(text: impl Into<String>) -> Json {
    object([("type", "text".into()), ("text", text.into().into())])
}

pub(crate) fn thinking(text: &str, signature: Option<&str>) -> Json {
    let mut block = Object::new();
    block.insert("type", "thinking".into());
    block.insert("text", text.into());
    if let Some(signature) = signature.filter(|it| !it.is_empty()) {
        block.insert("signature", signature.into());
    }
    Json::Object(block)
}

/// Returns a block of a tool call.
pub(crate) fn call(id: &str, name: &str, parameters: Json) -> Json {
    object([
        ("type", "tool-use".into()),
        ("id", id.into()),
        ("name", name.into()),
        ("parameters", parameters),
    ])
}

/// Parses arguments that are given as a string; invalid JSON is kept as a string.
pub(crate) fn arguments(text: &str) -> Json {
    if text.trim().is_empty() {
        return Json::Object(Object::new());
    }
    match crate::json::read(text.as_bytes()) {
        Ok((json @ Json::Object(_), _)) => json,
        Ok((json, _)) => object([("arguments", json)]),
        Err(_) => object([("arguments", text.into())]),
    }
}

/// Returns the parameters of a call that are given as an object or as a string.
pub(crate) fn parameters(given: Option<&Json>) -> Json {
    match given {
        Some(Json::String(text)) => arguments(text),
        Some(object @ Json::Object(_)) => object.clone(),
        _ => Json::Object(Object::new()),
    }
}

/// Returns a summary block, which replaces earlier messages.
pub(crate) fn summary(text: &str) -> Json {
    object([("type", "summary".into()), ("text", text.into())])
}

/// Returns an object of the members that are not empty.
pub(crate) fn present_members<const N: usize>(members: [(&str, Json); N]) -> Json {
    let is_present = |(_, value): &(&str, Json)| match value {
        Json::Null => false,
        Json::Object(object) => !object.is_empty(),
        _ => true,
    };
    members
        .into_iter()
        .filter(is_present)
        .map(|(name, value)| (name.to_owned(), value))
        .collect::<Object>()
        .into()
}

/// Returns a member's value, or null.
pub(crate) fn member(json: &Json, name: &str) -> Json {
    json.get(name).cloned().unwrap_or(Json::Null)
}

/// Returns a text that may be absent.
pub(crate) fn text_or_null(text: Option<&str>) -> Json {
    text.filter(|text| !text.is_empty()).map_or(Json::Null, Json::from)
}

/// Time, status and metadata of a message.
#[derive(Clone, Debug, Default)]
pub(crate) struct MessageInfo {
    pub at: Option<Timestamp>,
    pub source_info: Option<Json>,
    pub tags: Vec<&'static str>,
    pub partial: bool,
}

impl MessageInfo {
    /// Creates the information on a complete message without tags.
    pub(crate) fn new(at: Option<Timestamp>, source_info: Json) -> Self {
        MessageInfo { at, source_info: Some(source_info), tags: Vec::new(), partial: false }
    }
}

/// Builds a message of blocks; `None` if it is empty, an error if it is invalid.
pub(crate) fn message(
    role: Role,
    call: Option<&str>,
    blocks: Vec<Json>,
    about: MessageInfo,
) -> Result<Option<Message>, String> {
    let content: Vec<Json> = blocks.into_iter().filter(|block| !is_blank(block)).collect();
    let limits = Limits::default();
    let body = match content.len() {
        0 if role == Role::Tool => Body::Text(String::new()),
        0 => return Ok(None),
        _ => Body::from_content(Json::Array(content), role, &limits)
            .map_err(|error| error.to_string())?,
    };
    let info = about.source_info.filter(|info| info.as_object().is_some_and(|it| !it.is_empty()));
    let metadata = Metadata {
        source_info: info,
        tags: about.tags.into_iter().map(str::to_owned).collect(),
        ..Metadata::default()
    };
    let message = Message {
        role,
        body,
        tool_call_id: call.map(str::to_owned),
        created_at: about.at,
        status: if about.partial { Status::Partial } else { Status::Complete },
        metadata,
    };
    message.check(&limits).map_err(|error| error.to_string())?;
    Ok(Some(message))
}

/// Returns whether a block is an empty text.
fn is_blank(block: &Json) -> bool {
    block.get("type").and_then(Json::as_str) == Some("text")
        && block.get("text").and_then(Json::as_str).is_some_and(str::is_empty)
}

/// Returns a time as RFC 3339 text, or as seconds or milliseconds since the epoch.
pub(crate) fn time(json: Option<&Json>) -> Option<Timestamp> {
    match json? {
        Json::String(text) => text.parse().ok(),
        Json::Number(number) => {
            let value = number.as_f64();
            // Seconds until the year 5138, milliseconds since 1973.
            let millis = if value.abs() < 1e11 { value * 1000.0 } else { value };
            #[allow(clippy::cast_possible_truncation, reason = "later times are clamped")]
            (value > 0.0).then(|| Timestamp::from_millis(millis.round() as i64))
        }
        _ => None,
    }
}

pub(crate) struct ToolResult {
    pub call: String,
    pub blocks: Vec<Json>,
    pub failed: bool,
}

/// Content in Anthropic's form, with tool results separated from the other blocks.
pub(crate) struct AnthropicContent {
    pub blocks: Vec<Json>,
    pub results: Vec<ToolResult>,
    pub faults: Vec<String>,
}

/// Reads Anthropic's `content`: a text or blocks.
pub(crate) fn from_anthropic(content: Json) -> AnthropicContent {
    let mut read = AnthropicContent { blocks: Vec::new(), results: Vec::new(), faults: Vec::new() };
    let blocks = match content {
        Json::String(body) => return AnthropicContent { blocks: vec![text(body)], ..read },
        Json::Array(blocks) => blocks,
        Json::Null => return read,
        other => {
            read.faults.push(format!("content that is {}; left out", other.type_name()));
            return read;
        }
    };
    for block in blocks {
        match anthropic::block(block) {
            AnthropicBlock::Call { id, name, input, .. } => {
                let or_unknown =
                    |it: Option<String>| it.filter(|it| !it.is_empty()).unwrap_or("?".to_owned());
                let parameters = match input {
                    Json::Object(_) => input,
                    Json::Null => Json::Object(Object::new()),
                    Json::String(input) => arguments(&input),
                    other => object([("arguments", other)]),
                };
                read.blocks.push(call(&or_unknown(id), &or_unknown(name), parameters));
            }
            AnthropicBlock::Result(anthropic::ToolResult {
                call: Some(call),
                content,
                failed,
                ..
            }) if !call.is_empty() => {
                read.results.push(ToolResult { call, blocks: result(content), failed });
            }
            AnthropicBlock::Result(_) => {
                read.faults.push("a tool result without the id of its call; left out".into());
            }
            AnthropicBlock::Thinking { text, signature, .. } => {
                if !text.is_empty() || signature.is_some() {
                    read.blocks.push(thinking(&text, signature.as_deref()));
                }
            }
            AnthropicBlock::Other(block) => match block.get("type").and_then(Json::as_str) {
                None | Some("") => read.faults.push("a block without a type; left out".to_owned()),
                Some("thinking") if crate::json::text(&block, "text").is_none() => {}
                Some(_) => read.blocks.push(block),
            },
        }
    }
    read
}

/// Returns the blocks of a tool result.
pub(crate) fn result(content: Json) -> Vec<Json> {
    match content {
        Json::Null => Vec::new(),
        Json::String(body) => vec![text(body)],
        Json::Array(blocks)
            if blocks.iter().all(|block| crate::json::text(block, "type").is_some()) =>
        {
            blocks
        }
        other => vec![text(other.to_canonical())],
    }
}
