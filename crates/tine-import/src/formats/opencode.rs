//! Sessions of OpenCode: a tree of small JSON files, or since 1.2 an SQLite database.
//!
//! A session is a list of messages, each with parts. `revert` names the message from which on it was
//! taken back, which becomes an abandoned path. A session with a parent is a subagent's.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags};
use tine_core::{Json, Role};

use super::ImportFormat;
use crate::draft::{Draft, DraftMessage};
use crate::input::Input;
use crate::json::{self, is, text};
use crate::parts::{self, MessageInfo, member, present_members, text_or_null};
use crate::{Error, ImportedConversation, Note, Receiver, SpawnedConversation};

/// A message and its parts, in order.
struct OpenCodeEntry {
    id: String,
    message: Json,
    parts: Vec<(String, Json)>,
}

struct OpenCodeSession {
    id: String,
    about: Json,
    entries: Vec<OpenCodeEntry>,
    notes: Vec<Note>,
}

/// Reads a session's file of the JSON tree, or a database.
pub(crate) fn read(input: &Input, path: &Path, receiver: &mut dyn Receiver) -> Result<(), Error> {
    if path.extension().is_some_and(|it| it == "json") {
        return read_tree(input, path, receiver);
    }
    read_database(path, receiver)
}

fn read_tree(input: &Input, path: &Path, receiver: &mut dyn Receiver) -> Result<(), Error> {
    let document = |path: &Path, notes: &mut Vec<Note>| -> Option<Json> {
        let read = input.document(path).map_err(|error| error.to_string());
        match read.and_then(|bytes| json::read(&bytes)) {
            Ok((json, changed)) => {
                notes.extend(changed.map(|what| Note::new(path, None, what)));
                Some(json)
            }
            Err(why) => {
                notes.push(Note::new(path, None, format!("{why}; left out")));
                None
            }
        }
    };
    let mut notes = Vec::new();
    let Some(about) = document(path, &mut notes) else {
        notes.into_iter().for_each(|note| receiver.note(note));
        return Ok(());
    };
    let id = text(&about, "id").unwrap_or(super::stem(path)).to_owned();
    // `storage/session/<project>/<id>.json` beside `storage/message` and `storage/part`; older
    // versions have `session/info`, `session/message/<id>` and `session/part/<id>`.
    let session = path.parent().and_then(Path::parent).map(Path::to_owned).unwrap_or_default();
    let storage = session.parent().map(Path::to_owned).unwrap_or_default();
    let inner = session.join("message").join(&id);
    let old = inner.is_dir();
    let messages = if old { inner } else { storage.join("message").join(&id) };
    let mut entries = Vec::new();
    for file in sorted(&messages) {
        let Some(message) = document(&file, &mut notes) else { continue };
        let own = text(&message, "id").unwrap_or(super::stem(&file)).to_owned();
        let folder = match old {
            true => session.join("part").join(&id).join(&own),
            false => storage.join("part").join(&own),
        };
        let mut found = Vec::new();
        for file in sorted(&folder) {
            let part = document(&file, &mut notes);
            found.extend(part.map(|part| (super::stem(&file).to_owned(), part)));
        }
        entries.push(OpenCodeEntry { id: own, message, parts: found });
    }
    receiver.conversation(
        ImportFormat::OpenCode,
        tree(path, OpenCodeSession { id, about, entries, notes }),
    )
}

fn sorted(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|it| it == "json") && path.is_file());
    paths.sort();
    paths
}

fn read_database(path: &Path, receiver: &mut dyn Receiver) -> Result<(), Error> {
    let broken = |error: rusqlite::Error| Error::Malformed {
        file: path.to_owned(),
        what: format!("not a database of OpenCode: {error}"),
    };
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let database = Connection::open_with_flags(path, flags).map_err(broken)?;
    let mut sessions = database.prepare("SELECT * FROM session ORDER BY id").map_err(broken)?;
    let names: Vec<String> = sessions.column_names().map(str::to_owned).collect();
    let mut rows = sessions.query([]).map_err(broken)?;
    while let Some(row) = rows.next().map_err(broken)? {
        let mut about = tine_core::json::Object::new();
        for (place, name) in names.iter().enumerate() {
            let value = match row.get_ref(place).map_err(broken)? {
                rusqlite::types::ValueRef::Integer(number) => number.into(),
                rusqlite::types::ValueRef::Text(text) => {
                    let text = String::from_utf8_lossy(text).into_owned();
                    match name.as_str() {
                        "revert" => parts::arguments(&text),
                        _ => text.into(),
                    }
                }
                _ => Json::Null,
            };
            about.insert(name.as_str(), value);
        }
        let about = Json::Object(about);
        let Some(id) = text(&about, "id").map(str::to_owned) else { continue };
        let mut notes = Vec::new();
        let entries = entries(&database, path, &id, &mut notes).map_err(broken)?;
        receiver.conversation(
            ImportFormat::OpenCode,
            tree(path, OpenCodeSession { id, about, entries, notes }),
        )?;
    }
    Ok(())
}

fn entries(
    database: &Connection,
    path: &Path,
    session: &str,
    notes: &mut Vec<Note>,
) -> rusqlite::Result<Vec<OpenCodeEntry>> {
    let mut parse = |id: &str, data: &str| match json::read(data.as_bytes()) {
        Ok((json, _)) => Some(json),
        Err(why) => {
            notes.push(Note::new(path, None, format!("the record {id}: {why}; left out")));
            None
        }
    };
    let mut found: BTreeMap<String, Vec<(String, Json)>> = BTreeMap::new();
    let mut query = database
        .prepare("SELECT message_id, id, data FROM part WHERE session_id = ?1 ORDER BY id")?;
    let mut rows = query.query([session])?;
    while let Some(row) = rows.next()? {
        let (message, id, data): (String, String, String) = (row.get(0)?, row.get(1)?, row.get(2)?);
        if let Some(part) = parse(&id, &data) {
            found.entry(message).or_default().push((id, part));
        }
    }
    let mut query = database
        .prepare("SELECT id, data FROM message WHERE session_id = ?1 ORDER BY time_created, id")?;
    let mut rows = query.query([session])?;
    let mut entries = Vec::new();
    while let Some(row) = rows.next()? {
        let (id, data): (String, String) = (row.get(0)?, row.get(1)?);
        if let Some(message) = parse(&id, &data) {
            let parts = found.remove(&id).unwrap_or_default();
            entries.push(OpenCodeEntry { id, message, parts });
        }
    }
    Ok(entries)
}

fn tree(path: &Path, session: OpenCodeSession) -> ImportedConversation {
    let OpenCodeSession { id, about, entries, notes } = session;
    let time = about.get("time").cloned().unwrap_or(Json::Null);
    let at = |new: &str, old: &str| parts::time(about.get(new).or_else(|| time.get(old)));
    let directory = text(&about, "directory");
    let mut draft = Draft::default();
    let mut before: Option<String> = None;
    let reverted = about
        .get("revert")
        .and_then(|revert| text(revert, "messageID").or_else(|| text(revert, "message_id")));
    let mut active = None;
    let mut started: Vec<(String, String)> = Vec::new();
    for entry in &entries {
        if reverted == Some(entry.id.as_str()) {
            active.clone_from(&before);
        }
        before = add(&mut draft, before, entry, directory, &mut started);
    }
    let active = if reverted.is_some() { active } else { before };
    let base = ImportedConversation {
        id,
        title: text(&about, "title").map(str::to_owned),
        folder: directory.map(str::to_owned),
        created_at: at("time_created", "created"),
        notes,
        ..ImportedConversation::default()
    };
    let mut tree = draft.finish(path, base, active.as_deref(), |_| None);
    for (message, child) in started {
        if let Some(by) = tree.messages.iter().position(|node| node.id == message) {
            tree.started.push(SpawnedConversation { conversation: child, by });
        }
    }
    tree
}

/// Adds a message: the blocks up to a tool result are one turn, the result is another.
fn add(
    draft: &mut Draft,
    parent: Option<String>,
    entry: &OpenCodeEntry,
    directory: Option<&str>,
    started: &mut Vec<(String, String)>,
) -> Option<String> {
    let OpenCodeEntry { id, message, parts: found } = entry;
    let role = match text(message, "role") {
        Some("user") => Role::User,
        _ => Role::Assistant,
    };
    let at = message.get("time").and_then(|time| parts::time(time.get("created")));
    let cwd = message.get("path").and_then(|path| text(path, "cwd")).or(directory);
    let usage = match (message.get("tokens"), message.get("cost")) {
        (Some(Json::Object(tokens)), cost) => {
            let mut usage = tokens.clone();
            cost.into_iter().for_each(|cost| {
                usage.insert("cost", cost.clone());
            });
            Json::Object(usage)
        }
        _ => Json::Null,
    };
    let info = |usage: Json, failed: bool| {
        present_members([
            ("client", present_members([("name", "opencode".into())])),
            ("workspace", present_members([("cwd", text_or_null(cwd))])),
            ("provider", text_or_null(text(message, "providerID"))),
            ("model", text_or_null(text(message, "modelID"))),
            ("usage", usage),
            ("is_error", if failed { true.into() } else { Json::Null }),
        ])
    };
    let mut usage = Some(usage);
    let mut parent = parent;
    let mut blocks: Vec<Json> = Vec::new();
    let mut results: Vec<(String, String, bool)> = Vec::new();
    let mut nth = 0;
    let mut flush = |blocks: &mut Vec<Json>,
                     results: &mut Vec<(String, String, bool)>,
                     parent: &mut Option<String>,
                     nth: &mut usize,
                     draft: &mut Draft| {
        if blocks.is_empty() && results.is_empty() {
            return;
        }
        let own = if *nth == 0 { id.clone() } else { format!("{id}/{nth}") };
        let about = MessageInfo::new(at, info(usage.take().unwrap_or(Json::Null), false));
        let (before, blocks) = (parent.replace(own.clone()), std::mem::take(blocks));
        draft.add(DraftMessage::new(own, before, role, blocks, about));
        for (call, body, failed) in results.drain(..) {
            let own = format!("{id}/{nth}/{call}");
            let about = MessageInfo::new(at, info(Json::Null, failed));
            let (before, blocks) = (parent.replace(own.clone()), vec![parts::text(body)]);
            let result = DraftMessage::new(own, before, Role::Tool, blocks, about);
            draft.add(DraftMessage { call: Some(call), ..result });
        }
        *nth += 1;
    };
    for (_, part) in found {
        let kind = text(part, "type").unwrap_or_default();
        if kind != "tool"
            && !results.is_empty()
            && !matches!(kind, "step-finish" | "snapshot" | "patch")
        {
            flush(&mut blocks, &mut results, &mut parent, &mut nth, draft);
        }
        match kind {
            "text" if !is(part, "ignored") => {
                blocks.push(parts::text(text(part, "text").unwrap_or_default()));
            }
            "reasoning" => {
                blocks.push(parts::thinking(text(part, "text").unwrap_or_default(), None));
            }
            "file" => blocks.push(present_members([
                ("type", "file".into()),
                ("url", member(part, "url")),
                ("mimeType", text_or_null(text(part, "mime"))),
                ("name", text_or_null(text(part, "filename"))),
            ])),
            "tool" => {
                let state = member(part, "state");
                let call = text(part, "callID").unwrap_or("?");
                let input = parts::parameters(state.get("input"));
                blocks.push(parts::call(call, text(part, "tool").unwrap_or("?"), input));
                if let Some(child) = state.get("metadata").and_then(|it| text(it, "sessionId")) {
                    let own = if nth == 0 { id.clone() } else { format!("{id}/{nth}") };
                    started.push((own, child.to_owned()));
                }
                let failed = text(&state, "status") == Some("error");
                let body = if failed { text(&state, "error") } else { text(&state, "output") };
                let ended = matches!(text(&state, "status"), Some("completed" | "error"));
                if ended {
                    results.push((call.to_owned(), body.unwrap_or_default().to_owned(), failed));
                }
            }
            _ => {}
        }
    }
    flush(&mut blocks, &mut results, &mut parent, &mut nth, draft);
    parent
}
