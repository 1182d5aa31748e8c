//! Chats of Gemini CLI: `~/.gemini/tmp/<project>/chats/session-*.jsonl`, older ones `.json`.
//!
//! A message with a repeated id replaces the first. `$rewindTo` takes back a message and everything
//! after it, or everything if the id is unknown; this becomes an abandoned path. `$set.messages`
//! replaces the conversation.

use std::collections::HashMap;
use std::path::Path;

use tine_core::{Json, Role};

use super::ImportFormat;
use crate::draft::{Draft, DraftMessage};
use crate::input::{Input, lines};
use crate::json::{self, text};
use crate::parts::{self, MessageInfo, member, present_members, text_or_null};
use crate::{Error, ImportedConversation, Receiver};

pub(crate) fn read(input: &Input, path: &Path, receiver: &mut dyn Receiver) -> Result<(), Error> {
    let mut chat = Chat::default();
    let mut notes = Vec::new();
    if path.extension().is_some_and(|it| it == "json") {
        let bytes = input.document(path)?;
        let item = crate::input::ListItem { number: 1, bytes, cut: false };
        let Some((json, _)) = super::item(path, item, receiver) else { return Ok(()) };
        chat.about(&json);
        for message in json::items(&json, "messages") {
            chat.message(message, None);
        }
    } else {
        let mut reader = input.open(path)?;
        lines(input, path, &mut reader, &mut notes, &mut |line, notes| {
            if let Some(json) = super::line(path, &line, notes) {
                chat.line(&json, line.number);
            }
            Ok(())
        })?;
    }
    let base = ImportedConversation {
        id: chat.id.clone().unwrap_or_else(|| super::stem(path).to_owned()),
        title: chat.title.clone(),
        folder: chat.folder.clone(),
        created_at: chat.created_at,
        notes,
        ..ImportedConversation::default()
    };
    receiver.conversation(ImportFormat::GeminiCli, chat.finish(path, base))
}

/// A message and its parent.
struct GeminiEntry {
    message: Json,
    parent: Option<String>,
    line: Option<u64>,
}

#[derive(Default)]
struct Chat {
    id: Option<String>,
    title: Option<String>,
    folder: Option<String>,
    created_at: Option<tine_core::Timestamp>,
    entries: Vec<GeminiEntry>,
    places: HashMap<String, usize>,
    tip: Option<String>,
    faults: Vec<(Option<u64>, String)>,
}

impl Chat {
    fn about(&mut self, json: &Json) {
        let own = |name: &str| text(json, name).map(str::to_owned);
        self.id = own("sessionId").or(self.id.take());
        self.title = own("summary").or(self.title.take());
        self.created_at = parts::time(json.get("startTime")).or(self.created_at);
        let folder = json::items(json, "directories").first().and_then(Json::as_str);
        self.folder = folder.map(str::to_owned).or(self.folder.take());
    }

    fn line(&mut self, json: &Json, line: u64) {
        if let Some(target) = text(json, "$rewindTo") {
            match self.places.get(target) {
                Some(place) => self.tip.clone_from(&self.entries[*place].parent),
                None => {
                    let what = format!("rewinds to {target}, which is missing: to the beginning");
                    self.faults.push((Some(line), what));
                    self.tip = None;
                }
            }
        } else if let Some(set) = json.get("$set") {
            self.about(set);
            if let Some(messages) = set.get("messages").and_then(Json::as_array) {
                self.tip = None;
                for message in messages {
                    self.message(message, Some(line));
                }
            }
        } else if text(json, "id").is_some() && text(json, "type").is_some() {
            self.message(json, Some(line));
        } else {
            self.about(json);
        }
    }

    fn message(&mut self, message: &Json, line: Option<u64>) {
        let id = text(message, "id")
            .map_or_else(|| format!("message-{}", self.entries.len()), str::to_owned);
        match self.places.get(&id) {
            Some(place) => {
                let entry = &mut self.entries[*place];
                entry.message = message.clone();
                entry.line = line;
            }
            None => {
                let parent = self.tip.clone();
                self.places.insert(id.clone(), self.entries.len());
                self.entries.push(GeminiEntry { message: message.clone(), parent, line });
            }
        }
        self.tip = Some(id);
    }

    fn finish(self, path: &Path, base: ImportedConversation) -> ImportedConversation {
        let mut draft = Draft::default();
        draft.faults = self.faults;
        for (place, entry) in self.entries.iter().enumerate() {
            let id = text(&entry.message, "id");
            let id = id.map_or_else(|| format!("message-{place}"), str::to_owned);
            add(&mut draft, id, entry);
        }
        draft.finish(path, base, self.tip.as_deref(), |_| None)
    }
}

fn add(draft: &mut Draft, id: String, GeminiEntry { message, parent, line }: &GeminiEntry) {
    let role = match text(message, "type") {
        Some("user") => Role::User,
        Some("gemini") => Role::Assistant,
        // Messages of the program to its user are not part of the conversation.
        _ => return draft.add_placeholder(id, parent.clone(), *line),
    };
    let mut blocks = Vec::new();
    for thought in json::items(message, "thoughts") {
        let body: Vec<&str> =
            ["subject", "description"].iter().filter_map(|name| text(thought, name)).collect();
        blocks.push(parts::thinking(&body.join("\n\n"), None));
    }
    match message.get("content") {
        Some(Json::String(body)) => blocks.push(parts::text(body.as_str())),
        Some(Json::Array(body)) => blocks.extend(body.iter().map(part)),
        Some(part_ @ Json::Object(_)) => blocks.push(part(part_)),
        _ => {}
    }
    let calls = json::items(message, "toolCalls");
    for call in calls {
        let parameters = parts::parameters(call.get("args"));
        let name = text(call, "name").unwrap_or("?");
        blocks.push(parts::call(text(call, "id").unwrap_or("?"), name, parameters));
    }
    let model = text(message, "model").filter(|_| role == Role::Assistant);
    let info = present_members([
        ("client", present_members([("name", "gemini-cli".into())])),
        ("provider", text_or_null(model.map(|_| "google"))),
        ("model", text_or_null(model)),
        ("usage", member(message, "tokens")),
    ]);
    let results: Vec<&Json> =
        calls.iter().filter(|call| call.get("result").is_some_and(|it| !it.is_null())).collect();
    let at = parts::time(message.get("timestamp"));
    let own = if results.is_empty() { id.clone() } else { format!("{id}/call") };
    let about = MessageInfo::new(at, info);
    let answer = DraftMessage::new(own.clone(), parent.clone(), role, blocks, about);
    draft.add(DraftMessage { line: *line, ..answer });
    let mut above = own;
    let count = results.len();
    for (place, call) in results.into_iter().enumerate() {
        let own = if place + 1 == count { id.clone() } else { format!("{id}/{place}") };
        let failed = if text(call, "status") == Some("error") { true.into() } else { Json::Null };
        let info = present_members([
            ("client", present_members([("name", "gemini-cli".into())])),
            ("tool", text_or_null(text(call, "name"))),
            ("is_error", failed),
        ]);
        let about = MessageInfo::new(parts::time(call.get("timestamp")).or(at), info);
        let parent = Some(std::mem::replace(&mut above, own.clone()));
        let blocks = result(member(call, "result"));
        draft.add(DraftMessage {
            call: Some(text(call, "id").unwrap_or("?").to_owned()),
            line: *line,
            ..DraftMessage::new(own, parent, Role::Tool, blocks, about)
        });
    }
}

fn part(part: &Json) -> Json {
    if let Some(body) = part.as_str().or_else(|| text(part, "text")) {
        return parts::text(body);
    }
    match part.get("inlineData") {
        Some(data) => present_members([
            ("type", "image".into()),
            ("data", member(data, "data")),
            ("mimeType", member(data, "mimeType")),
        ]),
        None => present_members([("type", "gemini-part".into()), ("part", part.clone())]),
    }
}

/// Returns the blocks of a tool result: its output, if that is a text.
fn result(result: Json) -> Vec<Json> {
    let Json::Array(items) = &result else { return parts::result(result) };
    let output = |item: &Json| -> Json {
        let response = item.get("functionResponse").and_then(|it| it.get("response"));
        match response.and_then(|it| text(it, "output").or_else(|| text(it, "error"))) {
            Some(body) => parts::text(body),
            None => match item.as_str().or_else(|| text(item, "text")) {
                Some(body) => parts::text(body),
                None => parts::text(item.to_canonical()),
            },
        }
    };
    items.iter().map(output).collect()
}
