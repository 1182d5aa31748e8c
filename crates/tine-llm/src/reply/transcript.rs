//! A path as what a model is asked.
//!
//! Models are asked in plain text, so whatever else was said is told in words: calls and results,
//! linked and embedded files. Neighbours of one speaker become one message, with a blank line
//! between them, since not every provider takes two.

use crate::{Chat, Said, Speaker};
use tine_core::{Json, Role, TurnId};
use tine_engine::{Call, Engine, PathQuery, Result, TurnView};
use tine_store::Content;

/// What a model is asked.
#[derive(Default)]
pub struct Asked {
    /// The conversation up to the question.
    pub chat: Chat,
    /// The question alone, in words.
    pub question: String,
}

/// The conversation up to a turn, which is the question.
pub(crate) fn of(engine: &Engine, call: &Call, to: TurnId) -> Result<Asked> {
    let Asked { mut chat, mut question } = Asked::default();
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
            question = words(turn);
            add(&mut chat.messages, turn, &question);
        }
        chat.system = page.root.and_then(|root| root.system_prompt);
        if page.next.is_none() {
            return Ok(Asked { chat, question });
        }
        query.cursor = page.next;
    }
}

/// What a turn says, in words; nothing of it where it was erased.
fn words(turn: &TurnView) -> String {
    let Content::Kept(body) = &turn.content else { return String::new() };
    let blocks = body.blocks().unwrap_or_default();
    let text = blocks.iter().filter_map(told).collect::<Vec<String>>().join("\n\n");
    match &turn.tool_call_id {
        Some(call) => format!("[result of {call}]\n{text}"),
        None => text,
    }
}

fn add(messages: &mut Vec<Said>, turn: &TurnView, text: &str) {
    if text.is_empty() {
        return;
    }
    let speaker = match turn.role {
        Role::Assistant => Speaker::Assistant,
        Role::User | Role::Tool | Role::System => Speaker::User,
    };
    match messages.last_mut() {
        Some(last) if last.speaker == speaker => {
            // Halves of a text that was split belong together as they are.
            if turn.continues.is_none() {
                last.text.push_str("\n\n");
            }
            last.text.push_str(text);
        }
        _ => messages.push(Said::by(speaker, text)),
    }
}

/// A block in words; thoughts are nobody's business.
fn told(block: &Json) -> Option<String> {
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
