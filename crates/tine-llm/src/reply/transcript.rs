//! Builds a prompt from the path to a turn.
//!
//! Prompts are plain text, so other blocks are described: tool calls and results, linked and
//! embedded files. Adjacent turns of one speaker become one message, separated by a blank line,
//! since not every provider accepts two in a row.

use crate::{Chat, ChatMessage, Speaker};
use tine_core::{Json, Role, TurnId};
use tine_engine::{Call, Engine, PathQuery, Result, TurnView};
use tine_store::Content;

/// The prompt of a reply.
#[derive(Default)]
pub struct ReplyPrompt {
    /// The conversation up to the question.
    pub chat: Chat,
    /// The text of the question alone.
    pub question: String,
}

/// Builds the prompt of a turn, the question, with the conversation before it.
pub(crate) fn build(engine: &Engine, call: &Call, to: TurnId) -> Result<ReplyPrompt> {
    let ReplyPrompt { mut chat, mut question } = ReplyPrompt::default();
    let mut query = PathQuery {
        conversation: None,
        to: Some(to.into()),
        selection: tine_engine::Selection::Whole,
        cursor: None,
        limit: None,
    };
    loop {
        let page = engine.path(call, query.clone())?;
        for turn in &page.turns {
            question = turn_text(turn);
            add(&mut chat.messages, turn, &question);
        }
        chat.system = page.root.and_then(|root| root.system_prompt);
        if page.next.is_none() {
            return Ok(ReplyPrompt { chat, question });
        }
        query.cursor = page.next;
    }
}

/// Returns the text of a turn; empty if it was purged.
fn turn_text(turn: &TurnView) -> String {
    let Content::Kept(body) = &turn.content else { return String::new() };
    let blocks = body.blocks().unwrap_or_default();
    let text = blocks.iter().filter_map(block_text).collect::<Vec<String>>().join("\n\n");
    match &turn.tool_call_id {
        Some(call) => format!("[result of {call}]\n{text}"),
        None => text,
    }
}

fn add(messages: &mut Vec<ChatMessage>, turn: &TurnView, text: &str) {
    if text.is_empty() {
        return;
    }
    let speaker = match turn.role {
        Role::Assistant => Speaker::Assistant,
        Role::User | Role::Tool | Role::System => Speaker::User,
    };
    match messages.last_mut() {
        Some(last) if last.speaker == speaker => {
            // The halves of a split turn are joined without a separator.
            if turn.continues.is_none() {
                last.text.push_str("\n\n");
            }
            last.text.push_str(text);
        }
        _ => messages.push(ChatMessage::text(speaker, text)),
    }
}

/// Describes a block in text; thinking is left out.
fn block_text(block: &Json) -> Option<String> {
    let member = |name: &str| block.get(name).and_then(Json::as_str).unwrap_or_default();
    match member("type") {
        "text" | "summary" => Some(member("text").to_owned()),
        "thinking" => None,
        "tool-use" => {
            let given = block.get("parameters").map(Json::to_canonical).unwrap_or_default();
            Some(format!("[call {} of {} with {given}]", member("id"), member("name")))
        }
        "resource_link" => Some(format!("[{}]({})", member("name"), member("uri"))),
        "resource" => {
            let resource = block.get("resource")?;
            let uri = resource.get("uri").and_then(Json::as_str).unwrap_or_default();
            let text = resource.get("text").and_then(Json::as_str);
            Some(format!("[{uri}]\n{}", text.unwrap_or("(no text)")))
        }
        other => Some(format!("[{other}]")),
    }
}
