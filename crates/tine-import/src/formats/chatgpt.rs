//! Exports of ChatGPT: `conversations.json` or shards of it, in a ZIP or alone.
//!
//! A conversation is a `mapping` of nodes. Peculiarities:
//!
//! - `children` may be missing; `parent` alone counts, `children` only orders siblings.
//! - The root has no message, or is missing; hidden and empty system nodes are in the middle of
//!   paths. All of them are bridged.
//! - A tool call is a message to a recipient other than `all`; the tool's message below it is the
//!   result.
//! - Times may be null.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;

use tine_core::json::{Object, object};
use tine_core::{Json, Role};

use super::ImportFormat;
use crate::draft::{Draft, DraftMessage};
use crate::input::{Archive, Input, ListItem, items};
use crate::json::{self, is, text};
use crate::parts::{self, MessageInfo, present_members, text_or_null};
use crate::tree::numbered_branches;
use crate::{Attachment, Error, ImportedConversation, ImportedPath, Note, Receiver};

/// The maximum size of an attachment.
const ATTACHMENT_BYTES: usize = 64 << 20;

pub(crate) fn read(input: &Input, path: &Path, receiver: &mut dyn Receiver) -> Result<(), Error> {
    if !super::is_zip(path) {
        let mut reader = input.open(path)?;
        return items(input, path, &mut reader, &mut |item| {
            conversation(path, item, &mut |_| None, receiver)
        });
    }
    let mut files = Files::of(input.archive(path)?);
    let mut shards = input.archive(path)?;
    for name in super::shards(&shards) {
        let place = shards.place(&name);
        let mut reader = shards.open(&name)?;
        let done = items(input, &place, &mut reader, &mut |item| {
            conversation(&place, item, &mut |id| files.find(id), receiver)
        });
        drop(reader);
        done?;
    }
    Ok(())
}

/// The files of an archive by name, without folders.
struct Files {
    archive: Archive,
    names: BTreeMap<String, String>,
}

impl Files {
    fn of(archive: Archive) -> Self {
        let file = |name: String| (name.rsplit('/').next().unwrap_or_default().to_owned(), name);
        let names = archive.names().into_iter().map(file).filter(|(file, _)| !file.is_empty());
        Files { names: names.collect(), archive }
    }

    /// Returns the file of an asset: one whose name begins with its id.
    fn find(&mut self, id: &str) -> Option<Attachment> {
        let (file, name) = self.names.range(id.to_owned()..).next()?;
        if id.is_empty() || !file.starts_with(id) {
            return None;
        }
        let bytes = self.archive.document(name).ok()?;
        let bytes = Some(bytes).filter(|bytes| bytes.len() <= ATTACHMENT_BYTES)?;
        let mime_type = super::mime_type(file).to_owned();
        Some(Attachment { mime_type, name: Some(file.clone()), bytes })
    }
}

/// Finds the file of an asset by its id.
type Find<'f> = &'f mut dyn FnMut(&str) -> Option<Attachment>;

fn conversation(
    path: &Path,
    item: ListItem,
    find: Find<'_>,
    receiver: &mut dyn Receiver,
) -> Result<(), Error> {
    let Some((json, number)) = super::item(path, item, receiver) else { return Ok(()) };
    // The list may be a member of an object.
    let named = ["conversations", "items"].iter().find_map(|name| json.get(name)?.as_array());
    if let Some(list) = named {
        for (number, each) in (1..).zip(list) {
            receiver.conversation(ImportFormat::ChatGpt, tree(path, number, each, find))?;
        }
        return Ok(());
    }
    if json.get("mapping").is_none() {
        receiver.note(Note::new(path, Some(number), "there is no `mapping`; left out"));
        return Ok(());
    }
    receiver.conversation(ImportFormat::ChatGpt, tree(path, number, &json, find))
}

fn tree(path: &Path, number: u64, json: &Json, find: Find<'_>) -> ImportedConversation {
    let line = Some(number);
    let mut draft = Draft::default();
    let nodes = nodes(json);
    let mut calls: HashMap<String, String> = HashMap::new();
    for (id, node) in &nodes {
        let parent = text(node, "parent").map(str::to_owned);
        let message = node.get("message").filter(|message| message.as_object().is_some());
        if let Some(read) = message.and_then(own) {
            draft.add_parsed((*id).to_owned(), parent, read, line);
            continue;
        }
        match message {
            Some(message) => {
                let calling = parent.as_ref().and_then(|parent| calls.get(parent)).cloned();
                let body =
                    draft_message(id, parent.clone(), message, calling.as_deref(), line, find);
                // A message after a call that is not its result belongs to the call as well.
                if let Some(call) =
                    body.as_ref().and_then(calls_for).or(calling
                        .filter(|_| body.as_ref().is_none_or(|body| body.role == Role::Tool)))
                {
                    calls.insert((*id).to_owned(), call);
                }
                match body {
                    Some(body) => draft.add(body),
                    None => draft.add_placeholder((*id).to_owned(), parent, line),
                }
            }
            None => draft.add_placeholder((*id).to_owned(), parent, line),
        }
    }
    let own = text(json, "conversation_id").or_else(|| text(json, "id"));
    let exported = json.get("tine");
    let base = ImportedConversation {
        system_prompt: exported.and_then(|it| text(it, "system_prompt")).map(str::to_owned),
        id: own.map_or_else(|| format!("{}-{number}", super::stem(path)), str::to_owned),
        title: text(json, "title").map(str::to_owned),
        created_at: parts::time(json.get("create_time")),
        updated_at: parts::time(json.get("update_time")),
        ..ImportedConversation::default()
    };
    let Some(branches) = exported.and_then(|it| it.get("branches")?.as_object()) else {
        return draft.finish(path, base, text(json, "current_node"), numbered_branches());
    };
    let mut tree = draft.finish(path, base, text(json, "current_node"), |_| None);
    name_branches(&mut tree, branches);
    tree
}

/// Restores the branch names of a tree that Tine exported.
fn name_branches(tree: &mut ImportedConversation, branches: &Object) {
    let places: HashMap<&str, usize> =
        tree.messages.iter().enumerate().map(|(place, node)| (node.id.as_str(), place)).collect();
    tree.paths.iter_mut().for_each(|line| line.branch = None);
    for (name, tip) in branches.iter() {
        let Some(tip) = tip.as_str().and_then(|tip| places.get(tip).copied()) else { continue };
        let free = |line: &&mut ImportedPath| line.tip == tip && line.branch.is_none();
        match tree.paths.iter_mut().find(free) {
            Some(line) => line.branch = Some(name.to_owned()),
            None => tree.paths.push(ImportedPath { tip, branch: Some(name.to_owned()) }),
        }
    }
}

/// Returns the message in the member that Tine adds to its exports.
fn own(message: &Json) -> Option<Result<tine_core::Message, String>> {
    let own = message.get("metadata")?.get("tine")?;
    let mut members = own.as_object()?.clone();
    let role = message.get("author").and_then(|author| text(author, "role"));
    members.insert("role", role.unwrap_or_default().into());
    let read = tine_core::Message::from_json(Json::Object(members), &tine_core::Limits::default());
    let at = parts::time(message.get("create_time"));
    let read = read.map(|message| tine_core::Message { created_at: at, ..message });
    Some(read.map_err(|error| error.to_string()))
}

/// Returns the nodes, so that parents come before children and siblings in their order.
fn nodes(json: &Json) -> Vec<(&str, &Json)> {
    let Some(mapping) = json.get("mapping").and_then(Json::as_object) else { return Vec::new() };
    let mut below: HashMap<&str, Vec<&str>> = HashMap::new();
    for (id, node) in mapping.iter() {
        if let Some(parent) = text(node, "parent") {
            below.entry(parent).or_default().push(id);
        }
    }
    for (parent, children) in &mut below {
        let order = mapping.get(parent).map_or(&[][..], |node| json::items(node, "children"));
        let place = |id: &str| order.iter().position(|child| child.as_str() == Some(id));
        let time = |id: &str| {
            let message = mapping.get(id).and_then(|node| node.get("message"));
            message.and_then(|message| parts::time(message.get("create_time")))
        };
        children.sort_by_cached_key(|id| (place(id).unwrap_or(usize::MAX), time(id)));
    }
    let mut ordered = Vec::with_capacity(mapping.len());
    let mut seen = HashSet::new();
    let known = |id: &str| mapping.get(id).is_some();
    let first = |node: &Json| !text(node, "parent").is_some_and(known);
    let roots = mapping.iter().filter(|(_, node)| first(node)).map(|(id, _)| id);
    // Nodes that no root leads to form a cycle, which the tree reports.
    for start in roots.chain(mapping.keys()) {
        let mut open = vec![start];
        while let Some(id) = open.pop() {
            if seen.insert(id)
                && let Some(node) = mapping.get(id)
            {
                ordered.push((id, node));
                open.extend(below.get(id).into_iter().flatten().rev());
            }
        }
    }
    ordered
}

fn calls_for(body: &DraftMessage) -> Option<String> {
    let call = body.blocks.iter().find(|block| text(block, "type") == Some("tool-use"))?;
    text(call, "id").map(str::to_owned)
}

fn draft_message(
    id: &str,
    parent: Option<String>,
    message: &Json,
    call: Option<&str>,
    line: Option<u64>,
    find: Find<'_>,
) -> Option<DraftMessage> {
    let author = message.get("author");
    let role = author.and_then(|author| text(author, "role")).unwrap_or("assistant");
    let name = author.and_then(|author| text(author, "name"));
    let metadata = message.get("metadata").cloned().unwrap_or(Json::Null);
    if is(&metadata, "is_visually_hidden_from_conversation") {
        return None;
    }
    let mut attachments = Vec::new();
    let mut blocks = message
        .get("content")
        .map_or_else(Vec::new, |content| blocks(content, &mut attachments, find));
    for file in json::items(&metadata, "attachments") {
        if let Some(id) = text(file, "id") {
            let already =
                blocks.iter().any(|block| text(block, "uri").is_some_and(|uri| uri.ends_with(id)));
            attachments.extend(find(id).filter(|_| !already));
            if !already {
                blocks.push(present_members([
                    ("type", "resource".into()),
                    ("uri", format!("chatgpt-file:{id}").into()),
                    ("name", text_or_null(text(file, "name"))),
                    (
                        "mimeType",
                        text_or_null(text(file, "mime_type").or_else(|| text(file, "mimeType"))),
                    ),
                ]));
            }
        }
    }
    let recipient = text(message, "recipient").unwrap_or("all");
    let (role, call) = match role {
        "user" => (Role::User, None),
        "system" => (Role::System, None),
        "tool" => (Role::Tool, Some(call.unwrap_or(id).to_owned())),
        _ => (Role::Assistant, None),
    };
    if role == Role::System && blocks.iter().all(|block| text(block, "text").is_none()) {
        return None;
    }
    if role == Role::Assistant && recipient != "all" && recipient != "assistant" {
        let body: Vec<&str> = blocks.iter().filter_map(|block| text(block, "text")).collect();
        let parameters = match json::read(body.join("").as_bytes()) {
            Ok((json @ Json::Object(_), _)) => json,
            _ => object([("input", body.join("").into())]),
        };
        blocks = vec![parts::call(id, recipient, parameters)];
    }
    let model = text(&metadata, "model_slug").filter(|_| role == Role::Assistant);
    let info = present_members([
        ("client", present_members([("name", "chatgpt".into())])),
        ("provider", text_or_null(model.map(|_| "openai"))),
        ("model", text_or_null(model)),
        ("tool", text_or_null(name.filter(|_| role == Role::Tool))),
    ]);
    let partial = text(message, "status") == Some("in_progress");
    let at = parts::time(message.get("create_time"));
    let about = MessageInfo { partial, ..MessageInfo::new(at, info) };
    Some(DraftMessage {
        call,
        attachments,
        line,
        ..DraftMessage::new(id.to_owned(), parent, role, blocks, about)
    })
}

fn blocks(content: &Json, attachments: &mut Vec<Attachment>, find: Find<'_>) -> Vec<Json> {
    let kind = text(content, "content_type").unwrap_or("text");
    match kind {
        "text" | "multimodal_text" => {
            let part = |part: &Json| match part {
                Json::String(body) => Some(parts::text(body.as_str())),
                Json::Object(_) => Some(asset(part, attachments, find)),
                _ => None,
            };
            json::items(content, "parts").iter().filter_map(part).collect()
        }
        "thoughts" => {
            let thought = |thought: &Json| {
                let body = [text(thought, "summary"), text(thought, "content")];
                let body: Vec<&str> = body.into_iter().flatten().collect();
                (!body.is_empty()).then(|| parts::thinking(&body.join("\n\n"), None))
            };
            json::items(content, "thoughts").iter().filter_map(thought).collect()
        }
        "reasoning_recap" => {
            text(content, "content").map(|body| parts::thinking(body, None)).into_iter().collect()
        }
        _ => {
            let body = ["text", "result", "content"].iter().find_map(|name| text(content, name));
            match body {
                Some(body) => vec![parts::text(body)],
                None => {
                    let mut block = content.as_object().cloned().unwrap_or_default();
                    block.remove("content_type");
                    block.insert("type", kind.into());
                    let empty = block.iter().all(|(name, value)| name == "type" || value.is_null());
                    if empty { Vec::new() } else { vec![Json::Object(block)] }
                }
            }
        }
    }
}

/// Returns an image, audio or a transcript.
fn asset(part: &Json, attachments: &mut Vec<Attachment>, find: Find<'_>) -> Json {
    let kind = text(part, "content_type").unwrap_or("asset");
    if kind == "audio_transcription" {
        return parts::text(text(part, "text").unwrap_or_default());
    }
    let inner = part.get("audio_asset_pointer").unwrap_or(part);
    let Some(pointer) = text(inner, "asset_pointer") else {
        let mut block = part.as_object().cloned().unwrap_or_default();
        block.remove("content_type");
        block.insert("type", kind.into());
        return Json::Object(block);
    };
    let id = pointer.rsplit('/').next().unwrap_or(pointer);
    let file = find(id);
    let mime = file.as_ref().map(|file| file.mime_type.clone());
    let name = file.as_ref().and_then(|file| file.name.clone());
    attachments.extend(file);
    present_members([
        ("type", "resource".into()),
        ("uri", format!("chatgpt-file:{id}").into()),
        ("name", text_or_null(name.as_deref())),
        ("mimeType", text_or_null(mime.as_deref())),
    ])
}
