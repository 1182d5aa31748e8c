//! Anthropic's Messages API: `system` and `messages`.
//!
//! Two roles alternate, beginning with the user. Results are blocks of the user message right after
//! the calls and come first in it; calls come last in their message. Thinking is sent back only
//! with its signature, and never last. The leading system turns become `system`; later ones are
//! marked user messages.

use tine_core::json::object;
use tine_core::{Json, Role};

use super::media::{Media, MediaKind, Source};
use super::notes::{BlockRef, Notes};
use super::tool_calls::{NO_OUTPUT, RequestStep, ToolResult};
use super::turn_parts::{Part, PartKind, TurnParts, text_block, text_or_blocks};
use super::{Format, alternating_roles};

struct Block {
    at: BlockRef,
    json: Json,
}

struct Message {
    role: Role,
    blocks: Vec<Block>,
}

pub(super) fn write(steps: Vec<RequestStep>, notes: &mut Notes) -> Json {
    let (system, steps) = alternating_roles::leading_system(steps, notes);
    let mut messages: Vec<Message> = Vec::new();
    for step in steps {
        match step {
            RequestStep::Message(turn) => {
                let turn = alternating_roles::with_user_role(turn, notes);
                let role = turn.role;
                push(&mut messages, role, blocks(turn, notes));
            }
            RequestStep::ToolCalls { calls, results } => {
                push(&mut messages, Role::Assistant, calls_last(blocks(calls, notes), notes));
                let results =
                    results.into_iter().map(|result| tool_result(result, notes)).collect();
                push(&mut messages, Role::User, results);
            }
        }
    }
    let mut messages = without_trailing_thinking(messages, notes);
    if messages.first().is_some_and(|first| first.role == Role::Assistant) {
        let json = text_block(alternating_roles::BEGINNING);
        let blocks = vec![Block { at: BlockRef::default(), json }];
        notes.added(BlockRef::default(), "a user message", alternating_roles::FIRST_IS_USER);
        messages.insert(0, Message { role: Role::User, blocks });
    }
    trim_end(&mut messages, notes);
    let messages = Json::Array(messages.into_iter().map(Message::into_json).collect());
    match system {
        Some(system) => object([("system", system.into()), ("messages", messages)]),
        None => object([("messages", messages)]),
    }
}

impl Message {
    fn into_json(self) -> Json {
        let blocks = self.blocks.into_iter().map(|block| block.json).collect();
        object([("role", self.role.as_str().into()), ("content", text_or_blocks(blocks))])
    }
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

fn blocks(turn: TurnParts, notes: &mut Notes) -> Vec<Block> {
    let (role, provider) = (turn.role, turn.provider);
    turn.parts.into_iter().filter_map(|part| block(part, role, provider, notes)).collect()
}

fn block(part: Part, role: Role, provider: Option<Format>, notes: &mut Notes) -> Option<Block> {
    let at = part.at;
    if let Some(text) = part.as_text(notes) {
        return Some(Block { at, json: text_block(&text) });
    }
    let what = part.describe().unwrap_or_default();
    let own = provider.is_none_or(|provider| provider == Format::Anthropic);
    let json = match part.kind {
        PartKind::Call(call) => Ok(object([
            ("type", "tool_use".into()),
            ("id", call.wire_id.into()),
            ("name", call.name.into()),
            ("input", call.parameters),
        ])),
        PartKind::Thinking { text, signature: Some(signature) }
            if own && role == Role::Assistant =>
        {
            Ok(object([
                ("type", "thinking".into()),
                ("thinking", text.into()),
                ("signature", signature.into()),
            ]))
        }
        PartKind::Thinking { signature: Some(_), .. } => {
            Err("its signature is from another provider")
        }
        PartKind::Thinking { .. } => Err("thinking without a signature is rejected"),
        PartKind::Other { kind, json }
            if kind == "redacted_thinking" && role == Role::Assistant =>
        {
            Ok(json)
        }
        PartKind::Media(_) if role == Role::Assistant => {
            Err("assistant messages cannot contain media")
        }
        PartKind::Media(media) => media_block(&media).ok_or(UNSUPPORTED),
        _ => Err(UNSUPPORTED),
    };
    match json {
        Ok(json) => Some(Block { at, json }),
        Err(why) => {
            notes.left_out(at, what, why);
            None
        }
    }
}

const UNSUPPORTED: &str = "the Messages API does not support it";

fn media_block(media: &Media) -> Option<Json> {
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

/// Moves the calls of a message to its end: a text after a call is rejected.
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

fn tool_result(result: ToolResult, notes: &mut Notes) -> Block {
    let parts = result.parts.into_iter();
    let blocks = parts.filter_map(|part| block(part, Role::Tool, None, notes));
    let mut blocks: Vec<Json> = blocks.map(|block| block.json).collect();
    if blocks.is_empty() {
        blocks.push(text_block(NO_OUTPUT));
    }
    let mut members = vec![
        ("type".to_owned(), "tool_result".into()),
        ("tool_use_id".to_owned(), result.wire_id.into()),
        ("content".to_owned(), text_or_blocks(blocks)),
    ];
    if result.is_error {
        members.push(("is_error".to_owned(), true.into()));
    }
    Block { at: result.at, json: Json::Object(members.into_iter().collect()) }
}

/// Removes thinking at the end of messages, which is rejected.
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

/// Removes white space at the end of a final assistant text, which is rejected.
fn trim_end(messages: &mut [Message], notes: &mut Notes) {
    let Some(last) = messages.last_mut().filter(|last| last.role == Role::Assistant) else {
        return;
    };
    let Some(block) = last.blocks.last_mut() else { return };
    notes.kept(
        BlockRef::turn(block.at.turn),
        "the last turn",
        alternating_roles::LAST_IS_ASSISTANT,
    );
    let text = block.json.get("text").and_then(Json::as_str);
    if let Some(text) = text.filter(|text| text.trim_end() != *text) {
        block.json = text_block(text.trim_end());
        let why = "a final assistant text that ends in white space is rejected";
        notes.changed(block.at, "white space at the end", why);
    }
}
