//! Chats of Open WebUI: a list of chats, each with a map of messages.
//!
//! `content` contains reasoning and tools as HTML; the structured `output` is preferred.

use std::path::Path;

use tine_core::{Json, Role};

use super::ImportFormat;
use crate::draft::{Draft, DraftMessage};
use crate::input::{Input, ListItem, items};
use crate::json::{self, text};
use crate::parts::{self, MessageInfo, member, present_members, text_or_null};
use crate::tree::numbered_branches;
use crate::{Error, ImportedConversation, Note, Receiver};

pub(crate) fn read(input: &Input, path: &Path, receiver: &mut dyn Receiver) -> Result<(), Error> {
    let mut reader = input.open(path)?;
    items(input, path, &mut reader, &mut |item| conversation(path, item, receiver))
}

fn conversation(path: &Path, item: ListItem, receiver: &mut dyn Receiver) -> Result<(), Error> {
    let Some((json, number)) = super::item(path, item, receiver) else { return Ok(()) };
    let chat = json.get("chat").unwrap_or(&json);
    let Some(history) = chat.get("history") else {
        receiver.note(Note::new(path, Some(number), "there is no `history`; left out"));
        return Ok(());
    };
    let mut draft = Draft::default();
    let none = tine_core::json::Object::new();
    let messages = history.get("messages").and_then(Json::as_object).unwrap_or(&none);
    for (id, message) in messages.iter() {
        add(&mut draft, id, message, Some(number));
    }
    let own = text(&json, "id").or_else(|| text(chat, "id"));
    let base = ImportedConversation {
        id: own.map_or_else(|| format!("{}-{number}", super::stem(path)), str::to_owned),
        title: text(&json, "title").or_else(|| text(chat, "title")).map(str::to_owned),
        folder: text(&json, "folder_id").map(str::to_owned),
        system_prompt: text(chat, "system").map(str::to_owned),
        created_at: parts::time(json.get("created_at")),
        updated_at: parts::time(json.get("updated_at")),
        ..ImportedConversation::default()
    };
    let tree = draft.finish(path, base, text(history, "currentId"), numbered_branches());
    receiver.conversation(ImportFormat::OpenWebUi, tree)
}

fn add(draft: &mut Draft, id: &str, message: &Json, line: Option<u64>) {
    let parent = text(message, "parentId").map(str::to_owned);
    let role = match text(message, "role") {
        Some("user") => Role::User,
        Some("system") => Role::System,
        _ => Role::Assistant,
    };
    let at = parts::time(message.get("timestamp"));
    let info = present_members([
        ("client", present_members([("name", "open-webui".into())])),
        ("model", text_or_null(text(message, "model").filter(|_| role == Role::Assistant))),
        ("usage", member(message, "usage")),
    ]);
    let draft_message = |id: String, parent, role, call: Option<String>, blocks| DraftMessage {
        call,
        line,
        ..DraftMessage::new(id, parent, role, blocks, MessageInfo::new(at, info.clone()))
    };
    let output = json::items(message, "output");
    if output.is_empty() {
        let mut blocks = vec![parts::text(text(message, "content").unwrap_or_default())];
        for file in json::items(message, "files") {
            let url = text(file, "url").filter(|_| text(file, "type") == Some("image"));
            blocks.push(match url {
                Some(url) => present_members([("type", "image".into()), ("url", url.into())]),
                None => present_members([
                    ("type", "resource".into()),
                    ("uri", format!("open-webui-file:{}", text(file, "id").unwrap_or("?")).into()),
                    ("name", text_or_null(text(file, "name"))),
                ]),
            });
        }
        return draft.add(draft_message(id.to_owned(), parent, role, None, blocks));
    }
    let mut parent = parent;
    let mut blocks = Vec::new();
    let mut nth = 0;
    for item in output {
        let joined = || {
            let body = json::items(item, "content").iter().chain(json::items(item, "summary"));
            body.filter_map(|part| text(part, "text")).collect::<Vec<_>>().join("")
        };
        match text(item, "type").unwrap_or_default() {
            "message" => blocks.push(parts::text(joined())),
            "reasoning" => blocks.push(parts::thinking(&joined(), None)),
            "function_call" => {
                let call = text(item, "call_id").or_else(|| text(item, "id")).unwrap_or("?");
                let arguments = parts::arguments(text(item, "arguments").unwrap_or_default());
                blocks.push(parts::call(call, text(item, "name").unwrap_or("?"), arguments));
            }
            "function_call_output" => {
                let call = text(item, "call_id").unwrap_or("?").to_owned();
                if !blocks.is_empty() {
                    let own = format!("{id}/{nth}");
                    let before = std::mem::take(&mut blocks);
                    draft.add(draft_message(own.clone(), parent.take(), role, None, before));
                    parent = Some(own);
                }
                let own = format!("{id}/{nth}/result");
                let body = match member(item, "output") {
                    Json::Array(parts) => parts
                        .iter()
                        .filter_map(|part| text(part, "text"))
                        .map(parts::text)
                        .collect(),
                    other => parts::result(other),
                };
                draft.add(draft_message(own.clone(), parent.take(), Role::Tool, Some(call), body));
                parent = Some(own);
                nth += 1;
            }
            _ => blocks.push(item.clone()),
        }
    }
    draft.add(draft_message(id.to_owned(), parent, role, None, blocks));
}
