//! Conversations of LibreChat, flat or nested.
//!
//! Messages lie in `messages` or `messagesTree`; either may be nested by `children`. A message
//! without a text is bridged, and what is below it stays.

use std::path::Path;

use tine_core::{Json, Role};

use super::ImportFormat;
use crate::draft::{Draft, DraftMessage};
use crate::input::{Input, ListItem, items};
use crate::json::{self, is, text};
use crate::parts::{self, MessageInfo, member, present_members, text_or_null};
use crate::tree::numbered;
use crate::{Error, ImportedConversation, Note, Receiver};

/// The parent of a first message.
const NOBODY: &str = "00000000-0000-0000-0000-000000000000";

pub(crate) fn read(input: &Input, path: &Path, receiver: &mut dyn Receiver) -> Result<(), Error> {
    let mut reader = input.open(path)?;
    items(input, path, &mut reader, &mut |item| conversation(path, item, receiver))
}

fn conversation(path: &Path, item: ListItem, receiver: &mut dyn Receiver) -> Result<(), Error> {
    let Some((json, number)) = super::item(path, item, receiver) else { return Ok(()) };
    let listed = ["messagesTree", "messages"].iter().find_map(|name| json.get(name));
    let Some(messages) = listed.and_then(Json::as_array) else {
        receiver.note(Note::new(path, Some(number), "no `messages`, so no conversation; left out"));
        return Ok(());
    };
    let mut draft = Draft::default();
    let mut last = None;
    // Nested as deep as the conversation is long: no recursion here.
    let mut open: Vec<(&Json, Option<&str>)> = messages.iter().rev().map(|it| (it, None)).collect();
    let mut nth = 0;
    while let Some((message, above)) = open.pop() {
        nth += 1;
        let id = text(message, "messageId").map_or_else(|| format!("message-{nth}"), str::to_owned);
        let parent = text(message, "parentMessageId").or(above).filter(|it| *it != NOBODY);
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
    let tree = draft.finish(path, base, last.as_deref(), numbered());
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
    let say = |id: String, parent, role, call: Option<String>, blocks| DraftMessage {
        id,
        parent,
        role,
        call,
        blocks,
        about: MessageInfo {
            at,
            source_info: Some(info.clone()),
            tags: Vec::new(),
            partial: is(message, "unfinished"),
        },
        attachments: Vec::new(),
        line,
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
                let parameters = match call.get("args") {
                    Some(Json::String(args)) => parts::arguments(args),
                    Some(args @ Json::Object(_)) => args.clone(),
                    _ => parts::arguments(""),
                };
                blocks.push(parts::call(key, name, parameters));
                if call.get("output").is_some_and(|output| !output.is_null()) {
                    let own = format!("{id}/{nth}");
                    draft.add(say(
                        own.clone(),
                        parent.take(),
                        role,
                        None,
                        std::mem::take(&mut blocks),
                    ));
                    let result = format!("{id}/{nth}/result");
                    let body = parts::result(member(&call, "output"));
                    draft.add(say(
                        result.clone(),
                        Some(own),
                        Role::Tool,
                        Some(key.to_owned()),
                        body,
                    ));
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
    draft.add(say(id.to_owned(), parent, role, None, blocks));
}
