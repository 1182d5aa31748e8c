//! Folders of a `FileSystemStore`: `roots.json` and a file for each node.
//!
//! Messages are canonical or in the legacy form. A node that cannot be read is bridged by its
//! parents and children as they name each other; its siblings are not affected.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use tine_core::{Json, Limits, Message, Metadata};

use super::ImportFormat;
use crate::input::{Input, ListItem};
use crate::json::{self, is, text};
use crate::parts::{self, member, present_members};
use crate::tree::{PendingMessage, build_tree, numbered_branches};
use crate::{Error, ImportedConversation, Note, Receiver};

/// Reads the folder that contains a `roots.json`.
pub(crate) fn read(input: &Input, path: &Path, receiver: &mut dyn Receiver) -> Result<(), Error> {
    let folder = path.parent().unwrap_or(Path::new(".")).to_owned();
    let bytes = input.document(path)?;
    let item = ListItem { number: 1, bytes, cut: false };
    let listed = super::item(path, item, receiver).map(|(json, _)| json);
    let listed = listed.as_ref().and_then(Json::as_array).unwrap_or_default();
    let mut known_roots: HashMap<String, &Json> = HashMap::new();
    for root in listed {
        if let Some(id) = text(root, "id") {
            if !is_plain(id) {
                let what =
                    format!("the name of the tree `{id}` is not a plain file name; left out");
                receiver.note(Note::new(path, None, what));
                continue;
            }
            known_roots.insert(id.to_owned(), root);
        }
    }
    // The list may lack trees.
    let mut roots: Vec<String> = folders(&folder);
    roots.extend(known_roots.keys().cloned());
    roots.sort();
    roots.dedup();
    for id in roots {
        let root = known_roots.get(&id).copied();
        if root.is_none() {
            let what = format!("the tree {id} is not in roots.json; imported anyway");
            receiver.note(Note::new(path, None, what));
        }
        if root.is_some_and(|root| is(root, "deleted")) {
            receiver.note(Note::new(path, None, format!("the tree {id} was deleted; left out")));
            continue;
        }
        let tree = tree(input, &folder, &id, root.unwrap_or(&Json::Null));
        receiver.conversation(ImportFormat::Forest, tree)?;
    }
    Ok(())
}

/// Returns whether a name is that of an entry of the folder.
fn is_plain(id: &str) -> bool {
    !id.is_empty() && !id.contains(['/', '\\']) && id != ".." && id != "."
}

fn folders(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let named = entries.filter(|entry| entry.path().join("nodes").is_dir());
    named.filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

/// Returns the files of a tree in the order of their numbers.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|it| it == "json") && path.is_file());
    paths.sort_by_key(|path| {
        let stem = super::stem(path).to_owned();
        let digits: String = stem.chars().filter(char::is_ascii_digit).collect();
        (digits.parse::<u64>().unwrap_or(u64::MAX), stem)
    });
    paths
}

fn tree(input: &Input, folder: &Path, id: &str, root: &Json) -> ImportedConversation {
    let mut notes = Vec::new();
    let mut pending = Vec::new();
    let created_at = parts::time(root.get("createdAt"));
    for path in files(&folder.join(id).join("nodes")) {
        let node = match input.document(&path).map_err(|error| error.to_string()) {
            Ok(bytes) => json::read(&bytes),
            Err(why) => Err(why),
        };
        let node = match node {
            Ok((node, changed)) => {
                notes.extend(changed.map(|what| Note::new(&path, None, what)));
                node
            }
            Err(why) => {
                notes.push(Note::new(&path, None, format!("{why}; left out")));
                continue;
            }
        };
        let own =
            text(&node, "id").map_or_else(|| format!("{id}/{}", super::stem(&path)), str::to_owned);
        let parent = text(&node, "parent_id").filter(|parent| *parent != id).map(str::to_owned);
        let body = match message(&node) {
            Ok(message) => Some(message),
            Err(why) => {
                notes.push(Note::new(&path, None, format!("{why}; bridged")));
                None
            }
        };
        pending.push(PendingMessage::new(own, parent, body, None));
    }
    let mut tree = build_tree(pending);
    tree.fill_times(created_at);
    let place = folder.join(id);
    notes.extend(tree.faults.drain(..).map(|(line, what)| Note::new(&place, line, what)));
    let config = root.get("config").cloned().unwrap_or(Json::Null);
    let paths = tree.paths(None, numbered_branches());
    ImportedConversation {
        id: id.to_owned(),
        system_prompt: text(&config, "systemPrompt").map(str::to_owned),
        created_at,
        messages: tree.nodes,
        paths,
        notes,
        ..ImportedConversation::default()
    }
}

fn message(node: &Json) -> Result<Message, String> {
    let limits = Limits::default();
    let message = member(node, "message");
    let mut message = Message::from_json(message, &limits).map_err(|error| error.to_string())?;
    let about = member(node, "metadata");
    message.created_at = parts::time(about.get("timestamp"));
    let mut info = member(&about, "source_info");
    if let (Json::Object(members), Some(model)) =
        (&mut info, text(&member(&about, "source_info"), "model_name"))
    {
        members.insert("model", model.into());
    }
    let custom = member(&about, "custom_data");
    message.metadata = Metadata {
        source_info: Some(present_members([(
            "client",
            present_members([("name", "forest".into())]),
        )]))
        .map(|base| merged(base, info)),
        title: text(&about, "title").map(str::to_owned),
        auto_title: text(&about, "auto_title").map(str::to_owned),
        tags: json::items(&about, "tags")
            .iter()
            .filter_map(Json::as_str)
            .map(str::to_owned)
            .collect(),
        custom_data: Some(custom).filter(|it| it.as_object().is_some()),
    };
    Ok(message)
}

fn merged(base: Json, more: Json) -> Json {
    match (base, more) {
        (Json::Object(mut base), Json::Object(more)) => {
            more.into_iter().for_each(|(name, value)| {
                base.insert(name, value);
            });
            Json::Object(base)
        }
        (base, _) => base,
    }
}
