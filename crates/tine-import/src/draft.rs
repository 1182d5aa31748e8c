//! A conversation while its file is being read.

use std::path::Path;

use tine_core::{Json, Message, Role, Timestamp};

use crate::parts::{self, MessageInfo};
use crate::tree::{BuiltTree, PendingMessage, build_tree};
use crate::{Attachment, ImportedConversation, Note};

/// Messages and faults in the order in which they are read.
#[derive(Default)]
pub(crate) struct Draft {
    pending: Vec<PendingMessage>,
    pub faults: Vec<(Option<u64>, String)>,
}

/// A message to be added.
pub(crate) struct DraftMessage {
    pub id: String,
    pub parent: Option<String>,
    pub role: Role,
    pub call: Option<String>,
    pub blocks: Vec<Json>,
    pub about: MessageInfo,
    pub attachments: Vec<Attachment>,
    pub line: Option<u64>,
}

impl DraftMessage {
    /// Creates a message without call, attachments and line.
    pub(crate) fn new(
        id: String,
        parent: Option<String>,
        role: Role,
        blocks: Vec<Json>,
        about: MessageInfo,
    ) -> Self {
        let (call, attachments, line) = (None, Vec::new(), None);
        DraftMessage { id, parent, role, call, blocks, about, attachments, line }
    }
}

impl Draft {
    pub(crate) fn fault(&mut self, line: Option<u64>, what: impl Into<String>) {
        self.faults.push((line, what.into()));
    }

    /// Adds a message. One that is empty or invalid becomes a placeholder.
    pub(crate) fn add(&mut self, draft: DraftMessage) {
        let DraftMessage { id, parent, role, call, blocks, about, attachments, line } = draft;
        let message = match parts::message(role, call.as_deref(), blocks, about) {
            Ok(message) => message,
            Err(why) => {
                self.fault(line, format!("the message {id}: {why}; left out"));
                None
            }
        };
        self.pending.push(PendingMessage { id, parent, message, attachments, line });
    }

    /// Adds a message that was already converted.
    pub(crate) fn add_parsed(
        &mut self,
        id: String,
        parent: Option<String>,
        message: Result<Message, String>,
        line: Option<u64>,
    ) {
        if let Err(why) = &message {
            self.fault(line, format!("the message {id}: {why}; left out"));
        }
        self.pending.push(PendingMessage::new(id, parent, message.ok(), line));
    }

    /// Sets a member of a message's `source_info`.
    pub(crate) fn set_source_info(&mut self, id: &str, name: &str, value: Json) {
        let found = self.pending.iter_mut().rev().find(|pending| pending.id == id);
        let message = found.and_then(|pending| pending.message.as_mut());
        if let Some(Json::Object(info)) = message.and_then(|it| it.metadata.source_info.as_mut()) {
            info.insert(name, value);
        }
    }

    /// Adds a message without content, whose children are attached to its parent.
    pub(crate) fn add_placeholder(
        &mut self,
        id: String,
        parent: Option<String>,
        line: Option<u64>,
    ) {
        self.pending.push(PendingMessage::new(id, parent, None, line));
    }

    pub(crate) fn build_tree(&mut self, began: Option<Timestamp>) -> BuiltTree {
        let mut tree = build_tree(std::mem::take(&mut self.pending));
        tree.fill_times(began);
        self.faults.append(&mut tree.faults);
        tree
    }

    /// Returns the conversation, whose active path ends at the message `active`.
    pub(crate) fn finish(
        mut self,
        path: &Path,
        base: ImportedConversation,
        active: Option<&str>,
        name: impl FnMut(usize) -> Option<String>,
    ) -> ImportedConversation {
        let tree = self.build_tree(base.created_at);
        let active = active.and_then(|id| tree.places.get(id).copied().flatten());
        let paths = tree.paths(active, name);
        let noted = self.faults.into_iter().map(|(line, what)| Note::new(path, line, what));
        let mut notes = base.notes;
        notes.extend(noted);
        ImportedConversation { messages: tree.nodes, paths, notes, ..base }
    }
}
