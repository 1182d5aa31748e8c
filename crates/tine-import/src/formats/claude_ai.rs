//! Exports of Claude.ai: a ZIP with `conversations.json`, or that file alone.
//!
//! Newer files name the parent of each message (`parent_message_uuid`); older ones have only the
//! order of the list. No file names the model.

use std::path::Path;

use tine_core::{Json, Role};

use super::ImportFormat;
use crate::draft::{Draft, DraftMessage};
use crate::input::{Input, ListItem, items};
use crate::json::{self, text};
use crate::parts::{self, MessageInfo, present_members, text_or_null};
use crate::tree::numbered_branches;
use crate::{Attachment, Error, ImportedConversation, Note, Receiver};

/// The parent of a first message.
const NO_PARENT: &str = "00000000-0000-4000-8000-000000000000";

pub(crate) fn read(input: &Input, path: &Path, receiver: &mut dyn Receiver) -> Result<(), Error> {
    if !super::is_zip(path) {
        let mut reader = input.open(path)?;
        return items(input, path, &mut reader, &mut |item| conversation(path, item, receiver));
    }
    let mut archive = input.archive(path)?;
    for name in super::shards(&archive) {
        let place = archive.place(&name);
        let mut reader = archive.open(&name)?;
        items(input, &place, &mut reader, &mut |item| conversation(&place, item, receiver))?;
    }
    Ok(())
}

fn conversation(path: &Path, item: ListItem, receiver: &mut dyn Receiver) -> Result<(), Error> {
    let Some((json, number)) = super::item(path, item, receiver) else { return Ok(()) };
    if json.get("chat_messages").is_none() {
        let what = "there are no `chat_messages`; left out";
        receiver.note(Note::new(path, Some(number), what));
        return Ok(());
    }
    receiver.conversation(ImportFormat::ClaudeAi, tree(path, number, &json))
}

fn tree(path: &Path, number: u64, json: &Json) -> ImportedConversation {
    let line = Some(number);
    let mut draft = Draft::default();
    let messages = json::items(json, "chat_messages");
    let named = messages.iter().any(|message| text(message, "parent_message_uuid").is_some());
    let mut before: Option<String> = None;
    for (nth, message) in messages.iter().enumerate() {
        let id = text(message, "uuid").map_or_else(|| format!("message-{nth}"), str::to_owned);
        let parent = match named {
            true => text(message, "parent_message_uuid").filter(|it| *it != NO_PARENT),
            false => before.as_deref(),
        };
        let parent = parent.map(str::to_owned);
        add(&mut draft, &id, parent, message, line);
        before = Some(id);
    }
    let base = ImportedConversation {
        id: text(json, "uuid")
            .map_or_else(|| format!("{}-{number}", super::stem(path)), str::to_owned),
        title: text(json, "name").map(str::to_owned),
        created_at: parts::time(json.get("created_at")),
        updated_at: parts::time(json.get("updated_at")),
        ..ImportedConversation::default()
    };
    let active = text(json, "current_leaf_message_uuid").map(str::to_owned).or(before);
    draft.finish(path, base, active.as_deref(), numbered_branches())
}

/// Adds a user message, or an answer with its tool calls and results.
fn add(draft: &mut Draft, id: &str, parent: Option<String>, message: &Json, line: Option<u64>) {
    let role = match text(message, "sender") {
        Some("human") => Role::User,
        _ => Role::Assistant,
    };
    let content = match message.get("content").and_then(Json::as_array) {
        Some(blocks) if !blocks.is_empty() => Json::Array(blocks.iter().map(plain).collect()),
        _ => text(message, "text").map_or(Json::Null, Json::from),
    };
    let at = parts::time(message.get("created_at"));
    let info = || {
        let provider = if role == Role::Assistant { "anthropic".into() } else { Json::Null };
        present_members([
            ("client", present_members([("name", "claude.ai".into())])),
            ("provider", provider),
        ])
    };
    let mut attachments = Vec::new();
    let mut extra = Vec::new();
    for file in json::items(message, "attachments").iter().chain(json::items(message, "files")) {
        let name = text(file, "file_name");
        extra.push(present_members([
            ("type", "resource".into()),
            ("uri", format!("claude-file:{}", name.unwrap_or("unnamed")).into()),
            ("name", text_or_null(name)),
            ("mimeType", text_or_null(text(file, "file_type"))),
        ]));
        if let Some(content) = text(file, "extracted_content") {
            attachments.push(Attachment {
                name: name.map(str::to_owned),
                mime_type: "text/plain".to_owned(),
                bytes: content.as_bytes().to_vec(),
            });
        }
    }
    // Calls and results are in one list: the blocks up to the next results are a turn.
    let mut runs: Vec<(Vec<Json>, Vec<parts::ToolResult>)> = vec![Default::default()];
    let blocks = match content {
        Json::Array(blocks) => blocks,
        other => parts::from_anthropic(other).blocks,
    };
    for block in blocks {
        let read = parts::from_anthropic(Json::Array(vec![block]));
        read.faults.into_iter().for_each(|fault| draft.fault(line, fault));
        if !read.blocks.is_empty() && runs.last().is_some_and(|(_, results)| !results.is_empty()) {
            runs.push(Default::default());
        }
        if let Some((body, results)) = runs.last_mut() {
            body.extend(read.blocks);
            results.extend(read.results);
        }
    }
    let last = runs.len() - 1;
    let mut parent = parent;
    for (nth, (mut blocks, results)) in runs.into_iter().enumerate() {
        if nth == 0 {
            blocks.splice(0..0, extra.drain(..));
        }
        let ends = nth == last && results.is_empty();
        let own = if ends { id.to_owned() } else { format!("{id}/{nth}") };
        let about = MessageInfo::new(at, info());
        draft.add(DraftMessage {
            attachments: std::mem::take(&mut attachments),
            line,
            ..DraftMessage::new(own.clone(), parent.take(), role, blocks, about)
        });
        parent = Some(own);
        let count = results.len();
        for (place, result) in results.into_iter().enumerate() {
            let ends = nth == last && place + 1 == count;
            let own = if ends { id.to_owned() } else { format!("{id}/{nth}/{place}") };
            let failed = if result.failed { true.into() } else { Json::Null };
            let info = present_members([
                ("client", present_members([("name", "claude.ai".into())])),
                ("is_error", failed),
            ]);
            let about = MessageInfo::new(at, info);
            draft.add(DraftMessage {
                call: Some(result.call),
                line,
                ..DraftMessage::new(own.clone(), parent.take(), Role::Tool, result.blocks, about)
            });
            parent = Some(own);
        }
    }
}

/// Returns a block without the members that the export adds to every one, so that plain text stays
/// plain.
fn plain(block: &Json) -> Json {
    match (text(block, "type"), text(block, "text")) {
        (Some("text"), Some(body)) if json::items(block, "citations").is_empty() => {
            parts::text(body)
        }
        _ => block.clone(),
    }
}
