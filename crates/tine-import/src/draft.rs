//! A conversation while its file is being read.

use std::path::Path;

use tine_core::{Json, Message, Role, Timestamp};

use crate::parts::{self, About};
use crate::tree::{Grown, Sprout, grow};
use crate::{Attachment, Conversation, Note};

/// Messages and faults, as they are met.
#[derive(Default)]
pub(crate) struct Draft {
    sprouts: Vec<Sprout>,
    pub faults: Vec<(Option<u64>, String)>,
}

/// One message to be added.
pub(crate) struct Said {
    pub id: String,
    pub parent: Option<String>,
    pub role: Role,
    pub call: Option<String>,
    pub blocks: Vec<Json>,
    pub about: About,
    pub attachments: Vec<Attachment>,
    pub line: Option<u64>,
}

impl Draft {
    pub(crate) fn fault(&mut self, line: Option<u64>, what: impl Into<String>) {
        self.faults.push((line, what.into()));
    }

    /// Adds a message; one that says nothing, or cannot be kept, is bridged.
    pub(crate) fn say(&mut self, said: Said) {
        let Said { id, parent, role, call, blocks, about, attachments, line } = said;
        let said = match parts::message(role, call.as_deref(), blocks, about) {
            Ok(said) => said,
            Err(why) => {
                self.fault(line, format!("the message {id}: {why}; left out"));
                None
            }
        };
        self.sprouts.push(Sprout { id, parent, said, attachments, line });
    }

    /// Adds a message that is in Tine's form already.
    pub(crate) fn keep(
        &mut self,
        id: String,
        parent: Option<String>,
        said: Result<Message, String>,
        line: Option<u64>,
    ) {
        let said = match said {
            Ok(said) => Some(said),
            Err(why) => {
                self.fault(line, format!("the message {id}: {why}; left out"));
                None
            }
        };
        self.sprouts.push(Sprout { id, parent, said, attachments: Vec::new(), line });
    }

    /// Tells more about how a message came about.
    pub(crate) fn tell(&mut self, id: &str, name: &str, value: Json) {
        let found = self.sprouts.iter_mut().rev().find(|sprout| sprout.id == id);
        let said = found.and_then(|sprout| sprout.said.as_mut());
        if let Some(Json::Object(info)) = said.and_then(|it| it.metadata.source_info.as_mut()) {
            info.insert(name, value);
        }
    }

    /// Adds a message that only leads on.
    pub(crate) fn bridge(&mut self, id: String, parent: Option<String>, line: Option<u64>) {
        self.sprouts.push(Sprout { id, parent, said: None, attachments: Vec::new(), line });
    }

    /// The tree.
    pub(crate) fn grow(&mut self, began: Option<Timestamp>) -> Grown {
        let mut grown = grow(std::mem::take(&mut self.sprouts));
        grown.fill_times(began);
        self.faults.append(&mut grown.faults);
        grown
    }

    /// The conversation, whose active line ends on the message of an id.
    pub(crate) fn finish(
        mut self,
        path: &Path,
        base: Conversation,
        active: Option<&str>,
        name: impl FnMut(usize) -> Option<String>,
    ) -> Conversation {
        let grown = self.grow(base.created_at);
        let active = active.and_then(|id| grown.places.get(id).copied().flatten());
        let lines = grown.lines(active, name);
        let noted = self.faults.into_iter().map(|(line, what)| Note::new(path, line, what));
        let mut notes = base.notes;
        notes.extend(noted);
        Conversation { messages: grown.nodes, lines, notes, ..base }
    }
}
