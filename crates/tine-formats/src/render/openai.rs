//! OpenAI's chat completions: `messages`.
//!
//! Roles need not alternate and `system` may come anywhere. Calls are `tool_calls` of an
//! assistant's message with their arguments as a JSON string, each followed by a message of role
//! `tool`; `content` is null where there are calls alone. Only the user's messages take anything
//! but text.

use tine_core::json::object;
use tine_core::{Json, Role};

use super::media::{Media, MediaKind, Source};
use super::notes::Notes;
use super::tool_calls::{NO_OUTPUT, RequestStep, ToolResult};
use super::turn_parts::{Part, PartKind, TurnParts, labeled_summary};

pub(super) fn write(steps: Vec<RequestStep>, notes: &mut Notes) -> Json {
    let mut messages = Vec::new();
    for step in steps {
        match step {
            RequestStep::Say(said) => {
                let role = said.role;
                let content = content(said.parts, role, notes);
                if !content.is_empty() {
                    messages.push(message(role.as_str(), body(content)));
                }
            }
            RequestStep::Exchange { asks, answers } => {
                messages.push(calls(asks, notes));
                messages.extend(answers.into_iter().map(|answer| result(answer, notes)));
            }
        }
    }
    object([("messages", Json::Array(messages))])
}

fn message(role: &str, content: Json) -> Json {
    object([("role", role.into()), ("content", content)])
}

/// A string where one text is all there is, else the parts.
fn body(parts: Vec<Json>) -> Json {
    match parts.as_slice() {
        [only] if only.get("text").is_some() => only.get("text").cloned().unwrap_or(Json::Null),
        _ => Json::Array(parts),
    }
}

fn text(text: &str) -> Json {
    object([("type", "text".into()), ("text", text.into())])
}

/// The content parts that a message of that role can hold.
fn content(parts: Vec<Part>, role: Role, notes: &mut Notes) -> Vec<Json> {
    let mut written = Vec::with_capacity(parts.len());
    for part in parts {
        match part.what {
            PartKind::Text(said) => written.push(text(&said)),
            PartKind::Summary(said) => written.push(text(&labeled_summary(&said))),
            PartKind::Thinking { .. } => {
                notes.left_out(part.at, "thinking", "chat completions do not accept thinking");
            }
            PartKind::Media(media) => match (media.as_text(), role) {
                (Some(said), _) => {
                    notes.changed(part.at, media.describe(), "it is written as text");
                    written.push(text(&said));
                }
                (None, Role::User) => match attached(&media) {
                    Some(json) => written.push(json),
                    None => notes.left_out(part.at, media.describe(), NO_FORM),
                },
                (None, _) => {
                    let why = "only user messages can contain anything but text";
                    notes.left_out(part.at, media.describe(), why);
                }
            },
            PartKind::Other { kind, .. } => {
                notes.left_out(part.at, format!("a block of type `{kind}`"), NO_FORM);
            }
            PartKind::Call(_) => {}
        }
    }
    written
}

const NO_FORM: &str = "chat completions do not support it";

fn attached(media: &Media) -> Option<Json> {
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

/// An assistant's message with calls.
fn calls(asks: TurnParts, notes: &mut Notes) -> Json {
    let call = |part: &Part| match &part.what {
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
    let calls: Vec<Json> = asks.parts.iter().filter_map(call).collect();
    let content = content(asks.parts, Role::Assistant, notes);
    let content = if content.is_empty() { Json::Null } else { body(content) };
    object([("role", "assistant".into()), ("content", content), ("tool_calls", Json::Array(calls))])
}

fn result(answer: ToolResult, notes: &mut Notes) -> Json {
    let mut parts = content(answer.parts, Role::Tool, notes);
    if parts.is_empty() {
        parts.push(text(NO_OUTPUT));
    }
    object([
        ("role", "tool".into()),
        ("tool_call_id", answer.wire_id.into()),
        ("content", body(parts)),
    ])
}
