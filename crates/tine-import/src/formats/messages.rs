//! Lists of messages in the formats of OpenAI and Anthropic, as JSON or JSON Lines.
//!
//! They have no ids and no branches. A conversation is identified by its system prompt and its first
//! message, so that lists with the same beginning become one tree.

use std::path::Path;

use tine_core::{Digest, Json, Role};

use super::ImportFormat;
use crate::draft::{Draft, DraftMessage};
use crate::input::{Input, items, lines};
use crate::json::{self, text};
use crate::parts::{self, MessageInfo, member, present_members, text_or_null};
use crate::{Error, ImportedConversation, Note, Receiver};

pub(crate) fn read(input: &Input, path: &Path, receiver: &mut dyn Receiver) -> Result<(), Error> {
    let mut loose = Vec::new();
    let extension = path.extension().and_then(|it| it.to_str()).unwrap_or_default();
    let mut reader = input.open(path)?;
    if extension == "jsonl" || extension == "ndjson" || extension == "zst" {
        let mut notes = Vec::new();
        lines(
            input,
            path,
            &mut reader,
            &mut notes,
            &mut |line, notes| match json::read(&line.bytes) {
                Ok((json, changed)) => {
                    let changed = changed.map(|what| Note::new(path, Some(line.number), what));
                    notes.extend(changed);
                    take(path, line.number, json, &mut loose, receiver)
                }
                Err(why) => {
                    let what = format!("not JSON ({why}); left out");
                    notes.push(Note::new(path, Some(line.number), what));
                    Ok(())
                }
            },
        )?;
        notes.into_iter().for_each(|note| receiver.note(note));
    } else {
        items(input, path, &mut reader, &mut |item| {
            let Some((json, number)) = super::item(path, item, receiver) else { return Ok(()) };
            take(path, number, json, &mut loose, receiver)
        })?;
    }
    if !loose.is_empty() {
        let all = Json::Array(loose);
        let list = present_members([("messages", all)]);
        receiver.conversation(ImportFormat::Messages, tree(path, 1, &list))?;
    }
    Ok(())
}

/// Imports a list of messages as a conversation, or collects a single message of the file.
fn take(
    path: &Path,
    number: u64,
    json: Json,
    loose: &mut Vec<Json>,
    receiver: &mut dyn Receiver,
) -> Result<(), Error> {
    // Batches wrap a request, call logs hold it next to the answer.
    let json = match ["body", "request"].iter().find_map(|name| json.get(name)) {
        Some(inner) if inner.get("messages").is_some() => inner.clone(),
        _ => json,
    };
    if let Json::Array(messages) = json {
        let list = present_members([("messages", Json::Array(messages))]);
        return receiver.conversation(ImportFormat::Messages, tree(path, number, &list));
    }
    if json.get("messages").and_then(Json::as_array).is_some() {
        return receiver.conversation(ImportFormat::Messages, tree(path, number, &json));
    }
    if text(&json, "role").is_some() {
        loose.push(json);
        return Ok(());
    }
    let what = "neither a message nor a list of them; left out";
    receiver.note(Note::new(path, Some(number), what));
    Ok(())
}

fn tree(path: &Path, number: u64, json: &Json) -> ImportedConversation {
    let line = Some(number);
    let mut draft = Draft::default();
    let model = text(json, "model");
    let mut prompt = match json.get("system") {
        Some(Json::String(prompt)) => Some(prompt.clone()),
        Some(Json::Array(blocks)) => {
            let body: Vec<&str> = blocks.iter().filter_map(|block| text(block, "text")).collect();
            Some(body.join("\n\n"))
        }
        _ => None,
    };
    let messages = json::items(json, "messages");
    let mut before: Option<String> = None;
    let mut seed = String::new();
    for (nth, message) in messages.iter().enumerate() {
        let role = text(message, "role").unwrap_or_default();
        if nth == 0 && matches!(role, "system" | "developer") && prompt.is_none() {
            let body = parts::result(member(message, "content"));
            let body: Vec<&str> = body.iter().filter_map(|block| text(block, "text")).collect();
            prompt = Some(body.join("\n\n"));
            continue;
        }
        if seed.is_empty() {
            seed = message.to_canonical();
        }
        let added = add(&mut draft, nth, before.clone(), message, model, line);
        before = added.or(before);
    }
    let begun = format!("{}\n{seed}", prompt.as_deref().unwrap_or_default());
    let digest = Digest::of(begun.as_bytes()).to_hex();
    let base = ImportedConversation {
        id: text(json, "id").map_or_else(|| digest[..16].to_owned(), str::to_owned),
        title: text(json, "title").map(str::to_owned),
        system_prompt: prompt.filter(|prompt| !prompt.is_empty()),
        ..ImportedConversation::default()
    };
    draft.finish(path, base, before.as_deref(), |_| None)
}

/// Adds a message, and the tool results in it.
fn add(
    draft: &mut Draft,
    nth: usize,
    parent: Option<String>,
    message: &Json,
    model: Option<&str>,
    line: Option<u64>,
) -> Option<String> {
    let role = match text(message, "role") {
        Some("user" | "human") => Role::User,
        Some("assistant" | "model") => Role::Assistant,
        Some("tool" | "function") => Role::Tool,
        Some("system" | "developer") => Role::System,
        other => {
            let what =
                format!("message {}: unknown role `{}`; left out", nth + 1, other.unwrap_or("–"));
            draft.fault(line, what);
            return None;
        }
    };
    let model = model.filter(|_| role == Role::Assistant);
    let about = || {
        MessageInfo::new(
            parts::time(message.get("created_at").or_else(|| message.get("timestamp"))),
            present_members([
                ("model", text_or_null(model)),
                ("name", text_or_null(text(message, "name"))),
            ]),
        )
    };
    let mut read = parts::from_anthropic(member(message, "content"));
    read.faults.into_iter().for_each(|fault| draft.fault(line, fault));
    for call in json::items(message, "tool_calls") {
        let function = call.get("function").unwrap_or(call);
        let arguments = parts::parameters(function.get("arguments"));
        let name = text(function, "name").unwrap_or("?");
        read.blocks.push(parts::call(text(call, "id").unwrap_or("?"), name, arguments));
    }
    let mut parent = parent;
    for (place, result) in read.results.into_iter().enumerate() {
        let id = format!("{nth}/{place}");
        draft.add(DraftMessage {
            call: Some(result.call),
            line,
            ..DraftMessage::new(id.clone(), parent.replace(id), Role::Tool, result.blocks, about())
        });
    }
    let call = text(message, "tool_call_id").or_else(|| text(message, "name"));
    let call = (role == Role::Tool).then(|| call.unwrap_or("?").to_owned());
    if !read.blocks.is_empty() || role == Role::Tool {
        let id = nth.to_string();
        draft.add(DraftMessage {
            call,
            line,
            ..DraftMessage::new(id.clone(), parent.replace(id), role, read.blocks, about())
        });
    }
    parent
}
