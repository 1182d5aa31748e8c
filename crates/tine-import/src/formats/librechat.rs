//! Conversations of LibreChat, flat or nested.
//!
//! Messages are in `messages` or `messagesTree`; either may be nested by `children`. A message
//! without text is bridged.

use std::path::Path;

use tine_core::{Json, Role};

use super::ImportFormat;
use crate::draft::{Draft, DraftMessage};
use crate::input::{Input, ListItem, items};
use crate::json::{self, is, text};
use crate::parts::{self, MessageInfo, member, present_members, text_or_null};
use crate::tree::numbered_branches;
use crate::{Error, ImportedConversation, Note, Receiver};

/// The parent of a first message.
const NO_PARENT: &str = "00000000-0000-0000-0000-000000000000";

pub(crate) fn read(input: &Input, path: &Path, receiver: &mut dyn Receiver) -> Result<(), Error> {
    let mut reader = input.open(path)?;
    items(input, path, &mut reader, &mut |item| conversation(path, item, receiver))
}

fn conversation(path: &Path, item: ListItem, receiver: &mut dyn Receiver) -> Result<(), Error> {
    let Some((json, number)) = super::item(path, item, receiver) else { return Ok(()) };
    let listed = ["messagesTree", "messages"].iter().find_map(|name| json.get(name));
    let Some(messages) = listed.and_then(Json::as_array) else {
        receiver.note(Note::new(path, Some(number), "there are no `messages`; left out"));
        return Ok(());
    };
    let mut draft = Draft::default();
    let mut last = None;
    // The nesting is as deep as the conversation is long, so there is no recursion.
    let mut open: Vec<(&Json, Option<&str>)> = messages.iter().rev().map(|it| (it, None)).collect();
    let mut nth = 0;
    while let Some((message, above)) = open.pop() {
        nth += 1;
        let id = text(message, "messageId").map_or_else(|| format!("message-{nth}"), str::to_owned);
        let parent = text(message, "parentMessageId").or(above).filter(|it| *it != NO_PARENT);
        add(&mut draft, &id, parent.map(str::to_owned), message, Some(number));
        let own = text(message, "messageId");
        open.extend(json::items(message, "children").iter().rev().map(|child| (child, own)));
        last = Some(id);
    }
    let own = text(&json, "conversationId");
    let options = json.get("options").cloned().unwrap_or(Json::Null);
    let base = ImportedConversation {
        id: own.map_or_else(|| format!("{}-{number}", super::stem(path)), str::to_owned),
        title: text(&json, "title").map(str::to_owned),
        system_prompt: text(&options, "promptPrefix").map(str::to_owned),
        ..ImportedConversation::default()
    };
    let tree = draft.finish(path, base, last.as_deref(), numbered_branches());
    receiver.conversation(ImportFormat::LibreChat, tree)
}

fn add(draft: &mut Draft, id: &str, parent: Option<String>, message: &Json, line: Option<u64>) {
    let role = if is(message, "isCreatedByUser") { Role::User } else { Role::Assistant };
    let at = parts::time(message.get("createdAt"));
    let info = present_members([
        ("client", present_members([("name", "librechat".into())])),
        ("provider", text_or_null(text(message, "endpoint").filter(|_| role == Role::Assistant))),
        ("model", text_or_null(text(message, "model").filter(|_| role == Role::Assistant))),
    ]);
    let partial = is(message, "unfinished");
    let draft_message = |id: String, parent, role, call: Option<String>, blocks| {
        let about = MessageInfo { partial, ..MessageInfo::new(at, info.clone()) };
        DraftMessage { call, line, ..DraftMessage::new(id, parent, role, blocks, about) }
    };
    let mut parent = parent;
    let mut blocks = Vec::new();
    let mut nth = 0;
    for part in json::items(message, "content") {
        let body = |name: &str| {
            let inner = part.get(name);
            let value =
                inner.and_then(|it| text(it, "value")).or_else(|| inner.and_then(Json::as_str));
            value.unwrap_or_default().to_owned()
        };
        match text(part, "type").unwrap_or_default() {
            "text" => blocks.push(parts::text(body("text"))),
            "think" => blocks.push(parts::thinking(&body("think"), None)),
            "error" => blocks.push(parts::text(body("error"))),
            "tool_call" => {
                let call = part.get("tool_call").cloned().unwrap_or(Json::Null);
                let (key, name) =
                    (text(&call, "id").unwrap_or("?"), text(&call, "name").unwrap_or("?"));
                let parameters = parts::parameters(call.get("args"));
                blocks.push(parts::call(key, name, parameters));
                if call.get("output").is_some_and(|output| !output.is_null()) {
                    let own = format!("{id}/{nth}");
                    let before = std::mem::take(&mut blocks);
                    draft.add(draft_message(own.clone(), parent.take(), role, None, before));
                    let result = format!("{id}/{nth}/result");
                    let body = parts::result(member(&call, "output"));
                    let key = Some(key.to_owned());
                    draft.add(draft_message(result.clone(), Some(own), Role::Tool, key, body));
                    parent = Some(result);
                    nth += 1;
                }
            }
            "" => {}
            _ => blocks.push(part.clone()),
        }
    }
    if json::items(message, "content").is_empty() {
        blocks.push(parts::text(text(message, "text").unwrap_or_default()));
    }
    for file in json::items(message, "files") {
        blocks.push(present_members([
            ("type", "resource".into()),
            ("uri", format!("librechat-file:{}", text(file, "file_id").unwrap_or("?")).into()),
            ("name", text_or_null(text(file, "filename"))),
            ("mimeType", text_or_null(text(file, "type"))),
        ]));
    }
    draft.add(draft_message(id.to_owned(), parent, role, None, blocks));
}
