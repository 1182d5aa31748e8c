//! OpenAI's chat completions: `messages`.
//!
//! Roles need not alternate, and `system` can come anywhere. Calls are `tool_calls` of an assistant
//! message with their arguments as a JSON string, each followed by a message with the role `tool`;
//! `content` is null in a message of calls alone. Only user messages can contain anything but text.

use tine_core::json::object;
use tine_core::{Json, Role};

use super::media::{Media, MediaKind, Source};
use super::notes::Notes;
use super::tool_calls::{NO_OUTPUT, RequestStep, ToolResult};
use super::turn_parts::{Part, PartKind, TurnParts, text_block, text_or_blocks};

pub(super) fn write(steps: Vec<RequestStep>, notes: &mut Notes) -> Json {
    let mut messages = Vec::new();
    for step in steps {
        match step {
            RequestStep::Message(turn) => {
                let role = turn.role;
                let content = content(turn.parts, role, notes);
                if !content.is_empty() {
                    messages.push(message(role.as_str(), text_or_blocks(content)));
                }
            }
            RequestStep::ToolCalls { calls, results } => {
                messages.push(calls_message(calls, notes));
                messages.extend(results.into_iter().map(|result| tool_message(result, notes)));
            }
        }
    }
    object([("messages", Json::Array(messages))])
}

fn message(role: &str, content: Json) -> Json {
    object([("role", role.into()), ("content", content)])
}

/// Returns the content parts that a message with the role can hold.
fn content(parts: Vec<Part>, role: Role, notes: &mut Notes) -> Vec<Json> {
    let mut written = Vec::with_capacity(parts.len());
    for part in parts {
        if let Some(text) = part.as_text(notes) {
            written.push(text_block(&text));
            continue;
        }
        let (json, why) = match &part.kind {
            PartKind::Media(_) if role != Role::User => {
                (None, "only user messages can contain anything but text")
            }
            PartKind::Media(media) => (media_part(media), UNSUPPORTED),
            PartKind::Thinking { .. } => (None, "chat completions do not accept thinking"),
            _ => (None, UNSUPPORTED),
        };
        match (json, part.describe()) {
            (Some(json), _) => written.push(json),
            (None, Some(what)) => notes.left_out(part.at, what, why),
            (None, None) => {}
        }
    }
    written
}

const UNSUPPORTED: &str = "chat completions do not support it";

fn media_part(media: &Media) -> Option<Json> {
    let data_url = |mime: &str, data: &str| format!("data:{mime};base64,{data}");
    match (media.kind, &media.source, media.mime.as_deref()) {
        (MediaKind::Image, Source::Url(url), _) => Some(object([
            ("type", "image_url".into()),
            ("image_url", object([("url", url.as_str().into())])),
        ])),
        (MediaKind::Image, Source::Data(data), mime) => Some(object([
            ("type", "image_url".into()),
            ("image_url", object([("url", data_url(mime.unwrap_or("image/png"), data).into())])),
        ])),
        (MediaKind::Audio, Source::Data(data), Some(mime)) => {
            let format = match mime {
                "audio/wav" | "audio/x-wav" | "audio/wave" => "wav",
                "audio/mp3" | "audio/mpeg" => "mp3",
                _ => return None,
            };
            let sound = object([("data", data.as_str().into()), ("format", format.into())]);
            Some(object([("type", "input_audio".into()), ("input_audio", sound)]))
        }
        (MediaKind::Document, Source::Data(data), Some("application/pdf")) => {
            let name = media.name.as_deref().unwrap_or("document.pdf");
            let file = object([
                ("filename", name.into()),
                ("file_data", data_url("application/pdf", data).into()),
            ]);
            Some(object([("type", "file".into()), ("file", file)]))
        }
        _ => None,
    }
}

fn calls_message(turn: TurnParts, notes: &mut Notes) -> Json {
    let call = |part: &Part| match &part.kind {
        PartKind::Call(call) => Some(object([
            ("id", call.wire_id.as_str().into()),
            ("type", "function".into()),
            (
                "function",
                object([
                    ("name", call.name.as_str().into()),
                    ("arguments", call.parameters.to_canonical().into()),
                ]),
            ),
        ])),
        _ => None,
    };
    let calls: Vec<Json> = turn.parts.iter().filter_map(call).collect();
    let content = content(turn.parts, Role::Assistant, notes);
    let content = if content.is_empty() { Json::Null } else { text_or_blocks(content) };
    object([("role", "assistant".into()), ("content", content), ("tool_calls", Json::Array(calls))])
}

fn tool_message(result: ToolResult, notes: &mut Notes) -> Json {
    let mut parts = content(result.parts, Role::Tool, notes);
    if parts.is_empty() {
        parts.push(text_block(NO_OUTPUT));
    }
    object([
        ("role", "tool".into()),
        ("tool_call_id", result.wire_id.into()),
        ("content", text_or_blocks(parts)),
    ])
}
