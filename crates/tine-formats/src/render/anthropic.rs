//! Anthropic's Messages API: `system` and `messages`.
//!
//! Two roles that alternate, the user's first. Results are blocks of the user's message right
//! behind the calls and come first in it; calls come last in theirs. Thinking goes back with its
//! signature or not at all, and never last. There is no system message in between: the system's
//! first turns join `system`, later ones are the user's, marked as what they are.

use tine_core::json::object;
use tine_core::{Json, Role};

use super::media::{Media, MediaKind, Source};
use super::notes::{BlockRef, Notes};
use super::tool_calls::{NO_OUTPUT, RequestStep, ToolResult};
use super::turn_parts::{Part, PartKind, TurnParts, labeled_summary};
use super::{Format, alternating};

struct Block {
    at: BlockRef,
    json: Json,
}

struct Message {
    role: Role,
    blocks: Vec<Block>,
}

pub(super) fn write(steps: Vec<RequestStep>, notes: &mut Notes) -> Json {
    let (system, steps) = alternating::leading_system(steps, notes);
    let mut messages: Vec<Message> = Vec::new();
    for step in steps {
        match step {
            RequestStep::Say(said) => {
                let said = alternating::system_as_user(said, notes);
                let role = said.role;
                push(&mut messages, role, blocks(said, notes));
            }
            RequestStep::Exchange { asks, answers } => {
                push(&mut messages, Role::Assistant, calls_last(blocks(asks, notes), notes));
                let results = answers.into_iter().map(|answer| result(answer, notes)).collect();
                push(&mut messages, Role::User, results);
            }
        }
    }
    let mut messages = without_trailing_thinking(messages, notes);
    if messages.first().is_some_and(|first| first.role == Role::Assistant) {
        let json = text(alternating::BEGINNING);
        let blocks = vec![Block { at: BlockRef::default(), json }];
        notes.added(BlockRef::default(), "a user message", alternating::FIRST_IS_USER);
        messages.insert(0, Message { role: Role::User, blocks });
    }
    end(&mut messages, notes);
    let messages = Json::Array(messages.into_iter().map(Message::into_json).collect());
    match system {
        Some(system) => object([("system", system.into()), ("messages", messages)]),
        None => object([("messages", messages)]),
    }
}

impl Message {
    fn into_json(self) -> Json {
        let blocks = self.blocks.into_iter().map(|block| block.json).collect();
        object([("role", self.role.as_str().into()), ("content", content(blocks))])
    }
}

/// A string where one text is all there is, else the blocks.
fn content(blocks: Vec<Json>) -> Json {
    let kind = |block: &Json| block.get("type").and_then(Json::as_str).map(str::to_owned);
    match blocks.as_slice() {
        [only] if kind(only).as_deref() == Some("text") => {
            only.get("text").cloned().unwrap_or(Json::Null)
        }
        _ => Json::Array(blocks),
    }
}

fn text(text: &str) -> Json {
    object([("type", "text".into()), ("text", text.into())])
}

fn push(messages: &mut Vec<Message>, role: Role, blocks: Vec<Block>) {
    if blocks.is_empty() {
        return;
    }
    match messages.last_mut() {
        Some(last) if last.role == role => last.blocks.extend(blocks),
        _ => messages.push(Message { role, blocks }),
    }
}

fn blocks(said: TurnParts, notes: &mut Notes) -> Vec<Block> {
    let (role, provider) = (said.role, said.provider);
    said.parts.into_iter().filter_map(|part| block(part, role, provider, notes)).collect()
}

fn block(part: Part, role: Role, provider: Option<Format>, notes: &mut Notes) -> Option<Block> {
    let at = part.at;
    let own = provider.is_none_or(|provider| provider == Format::Anthropic);
    let json = match part.what {
        PartKind::Text(said) => text(&said),
        PartKind::Summary(said) => text(&labeled_summary(&said)),
        PartKind::Call(call) => object([
            ("type", "tool_use".into()),
            ("id", call.wire_id.into()),
            ("name", call.name.into()),
            ("input", call.parameters),
        ]),
        PartKind::Thinking { text, signature: Some(signature) }
            if own && role == Role::Assistant =>
        {
            object([
                ("type", "thinking".into()),
                ("thinking", text.into()),
                ("signature", signature.into()),
            ])
        }
        PartKind::Thinking { signature, .. } => {
            let why = match signature {
                Some(_) => "its signature is from another provider",
                None => "thinking without a signature is rejected",
            };
            notes.left_out(at, "thinking", why);
            return None;
        }
        PartKind::Other { kind, json }
            if kind == "redacted_thinking" && role == Role::Assistant =>
        {
            json
        }
        PartKind::Other { kind, .. } => {
            notes.left_out(at, format!("a block of type `{kind}`"), NO_FORM);
            return None;
        }
        PartKind::Media(media) => {
            if let Some(said) = media.as_text() {
                notes.changed(at, media.describe(), "it is written as text");
                text(&said)
            } else if role == Role::Assistant {
                let why = "assistant messages cannot contain media";
                notes.left_out(at, media.describe(), why);
                return None;
            } else if let Some(json) = attached(&media) {
                json
            } else {
                notes.left_out(at, media.describe(), NO_FORM);
                return None;
            }
        }
    };
    Some(Block { at, json })
}

const NO_FORM: &str = "the Messages API does not support it";

fn attached(media: &Media) -> Option<Json> {
    let kind = match (media.kind, media.mime.as_deref()) {
        (
            MediaKind::Image,
            None | Some("image/jpeg" | "image/png" | "image/gif" | "image/webp"),
        ) => "image",
        (MediaKind::Document, Some("application/pdf")) => "document",
        _ => return None,
    };
    let source = match &media.source {
        Source::Url(url) => object([("type", "url".into()), ("url", url.as_str().into())]),
        Source::Data(data) => object([
            ("type", "base64".into()),
            ("media_type", media.mime.as_deref().unwrap_or("image/png").into()),
            ("data", data.as_str().into()),
        ]),
        Source::Text { .. } | Source::Link(_) => return None,
    };
    Some(object([("type", kind.into()), ("source", source)]))
}

/// The calls of a message behind all else: a text behind a call is refused.
fn calls_last(blocks: Vec<Block>, notes: &mut Notes) -> Vec<Block> {
    let is_call = |block: &Block| block.json.get("type").and_then(Json::as_str) == Some("tool_use");
    let in_order = blocks.is_sorted_by_key(is_call);
    let (calls, mut blocks): (Vec<Block>, Vec<Block>) = blocks.into_iter().partition(is_call);
    if !in_order && let Some(call) = calls.first() {
        notes.changed(BlockRef::turn(call.at.turn), "the order of blocks", "calls come last");
    }
    blocks.extend(calls);
    blocks
}

fn result(answer: ToolResult, notes: &mut Notes) -> Block {
    let parts = answer.parts.into_iter();
    let blocks = parts.filter_map(|part| block(part, Role::Tool, None, notes));
    let mut blocks: Vec<Json> = blocks.map(|block| block.json).collect();
    if blocks.is_empty() {
        blocks.push(text(NO_OUTPUT));
    }
    let mut members = vec![
        ("type".to_owned(), "tool_result".into()),
        ("tool_use_id".to_owned(), answer.wire_id.into()),
        ("content".to_owned(), content(blocks)),
    ];
    if answer.is_error {
        members.push(("is_error".to_owned(), true.into()));
    }
    Block { at: answer.at, json: Json::Object(members.into_iter().collect()) }
}

/// A message that ends in thinking is refused.
fn without_trailing_thinking(messages: Vec<Message>, notes: &mut Notes) -> Vec<Message> {
    let mut kept: Vec<Message> = Vec::with_capacity(messages.len());
    for mut message in messages {
        while let Some(last) = message.blocks.last()
            && let Some("thinking" | "redacted_thinking") =
                last.json.get("type").and_then(Json::as_str)
        {
            notes.left_out(last.at, "thinking", "a message that ends in thinking is rejected");
            message.blocks.pop();
        }
        push(&mut kept, message.role, message.blocks);
    }
    kept
}

/// The end of a request: an assistant's last text must not end in white space.
fn end(messages: &mut [Message], notes: &mut Notes) {
    let Some(last) = messages.last_mut().filter(|last| last.role == Role::Assistant) else {
        return;
    };
    let Some(block) = last.blocks.last_mut() else { return };
    notes.kept(BlockRef::turn(block.at.turn), "the last turn", alternating::LAST_IS_ASSISTANT);
    let said = block.json.get("text").and_then(Json::as_str);
    if let Some(said) = said.filter(|said| said.trim_end() != *said) {
        block.json = text(said.trim_end());
        let why = "a final assistant text that ends in white space is rejected";
        notes.changed(block.at, "white space at the end", why);
    }
}
