//! Sessions of pi and oh-my-pi: `~/.pi/agent/sessions/--<folder>--/<time>_<id>.jsonl`.
//!
//! Entries name their parent; which one is the end is not written down, so the last line is. The
//! first version had no ids: each entry follows the one before. Ids are those of one file only.

use std::collections::HashMap;
use std::path::Path;

use tine_core::{Json, Role};

use super::Format;
use crate::draft::{Draft, Said};
use crate::input::{Input, lines};
use crate::json::{is, text};
use crate::parts::{self, About, known, maybe, member};
use crate::{Conversation, Error, Receiver};

pub(crate) fn read(input: &Input, path: &Path, receiver: &mut dyn Receiver) -> Result<(), Error> {
    let mut session = Session::default();
    let mut notes = Vec::new();
    let mut reader = input.open(path)?;
    lines(input, path, &mut reader, &mut notes, &mut |line, notes| {
        if let Some(entry) = super::line(path, &line, notes) {
            session.entry(&entry, line.number);
        }
        Ok(())
    })?;
    let own = session.id.unwrap_or_else(|| super::stem(path).to_owned());
    let base = Conversation {
        id: own,
        forked_from: session.parent,
        title: session.title,
        folder: session.cwd,
        notes,
        ..Conversation::default()
    };
    let mut tree = session.draft.finish(path, base, session.last.as_deref(), |_| None);
    for node in &mut tree.messages {
        node.message.metadata.title = session.labels.remove(&node.id);
    }
    receiver.conversation(Format::Pi, tree)
}

#[derive(Default)]
struct Session {
    draft: Draft,
    id: Option<String>,
    parent: Option<String>,
    cwd: Option<String>,
    title: Option<String>,
    last: Option<String>,
    /// What people called messages, by id.
    labels: HashMap<String, String>,
}

impl Session {
    fn entry(&mut self, entry: &Json, line: u64) {
        let kind = text(entry, "type").unwrap_or_default();
        if kind == "session" {
            let own = |name: &str| text(entry, name).map(str::to_owned);
            (self.id, self.cwd) = (own("id"), own("cwd"));
            // The parent is told as a path; its id is the last part of the name.
            self.parent = text(entry, "parentSession").map(|path| {
                let name = path.rsplit(['/', '\\']).next().unwrap_or(path);
                let name = name.trim_end_matches(".jsonl");
                name.rsplit('_').next().unwrap_or(name).to_owned()
            });
            return;
        }
        let id = text(entry, "id").map_or_else(|| format!("line-{line}"), str::to_owned);
        let parent = match text(entry, "id") {
            Some(_) => text(entry, "parentId").map(str::to_owned),
            None => self.last.clone(),
        };
        let at = parts::time(entry.get("timestamp"));
        let client = || known([("name", "pi".into())]);
        let plain = |blocks, role, tags| Said {
            id: id.clone(),
            parent: parent.clone(),
            role,
            call: None,
            blocks,
            about: About {
                at,
                source_info: Some(known([
                    ("client", client()),
                    ("workspace", known([("cwd", maybe(self.cwd.as_deref()))])),
                ])),
                tags,
                partial: false,
            },
            attachments: Vec::new(),
            line: Some(line),
        };
        match kind {
            "message" => {
                let message = entry.get("message").cloned().unwrap_or(Json::Null);
                let said = self.message(&id, parent, &message, at, line);
                self.draft.say(said);
            }
            "compaction" | "branch_summary" => {
                let summary = text(entry, "summary").unwrap_or_default();
                let said = plain(vec![parts::summary(summary)], Role::User, Vec::new());
                self.draft.say(said);
            }
            "custom_message" => {
                let blocks = parts::result(member(entry, "content"));
                let shown = entry.get("display").and_then(Json::as_bool) != Some(false);
                let said = plain(blocks, Role::User, if shown { vec![] } else { vec!["hidden"] });
                self.draft.say(said);
            }
            "label" => {
                if let (Some(target), Some(label)) = (text(entry, "targetId"), text(entry, "label"))
                {
                    self.labels.insert(target.to_owned(), label.to_owned());
                }
                self.draft.bridge(id.clone(), parent, Some(line));
            }
            "session_info" => {
                self.title = text(entry, "name").map(str::to_owned);
                self.draft.bridge(id.clone(), parent, Some(line));
            }
            _ => self.draft.bridge(id.clone(), parent, Some(line)),
        }
        self.last = Some(id);
    }

    fn message(
        &self,
        id: &str,
        parent: Option<String>,
        message: &Json,
        at: Option<tine_core::Timestamp>,
        line: u64,
    ) -> Said {
        let role = match text(message, "role") {
            Some("assistant") => Role::Assistant,
            Some("toolResult" | "tool") => Role::Tool,
            Some("system") => Role::System,
            _ => Role::User,
        };
        let blocks = match message.get("content") {
            Some(Json::Array(parts)) => parts.iter().map(block).collect(),
            Some(Json::String(said)) => vec![parts::text(said.as_str())],
            _ => match (text(message, "command"), text(message, "output")) {
                (Some(command), output) => {
                    vec![parts::text(format!("$ {command}\n{}", output.unwrap_or_default()))]
                }
                _ => Vec::new(),
            },
        };
        let failed = if is(message, "isError") { true.into() } else { Json::Null };
        let info = known([
            ("client", known([("name", "pi".into())])),
            ("workspace", known([("cwd", maybe(self.cwd.as_deref()))])),
            ("provider", maybe(text(message, "provider"))),
            ("model", maybe(text(message, "model"))),
            ("usage", member(message, "usage")),
            ("tool", maybe(text(message, "toolName"))),
            ("is_error", failed),
        ]);
        let partial = matches!(text(message, "stopReason"), Some("aborted" | "error"));
        let call = text(message, "toolCallId").unwrap_or("?").to_owned();
        Said {
            id: id.to_owned(),
            parent,
            role,
            call: (role == Role::Tool).then_some(call),
            blocks,
            about: About {
                at: parts::time(message.get("timestamp")).or(at),
                source_info: Some(info),
                tags: Vec::new(),
                partial,
            },
            attachments: Vec::new(),
            line: Some(line),
        }
    }
}

fn block(part: &Json) -> Json {
    match text(part, "type").unwrap_or_default() {
        "text" => parts::text(text(part, "text").unwrap_or_default()),
        "thinking" => {
            let said = text(part, "thinking").unwrap_or_default();
            parts::thinking(said, text(part, "thinkingSignature"))
        }
        "toolCall" => {
            let arguments = match part.get("arguments") {
                Some(Json::String(arguments)) => parts::arguments(arguments),
                Some(arguments @ Json::Object(_)) => arguments.clone(),
                _ => parts::arguments(""),
            };
            parts::call(
                text(part, "id").unwrap_or("?"),
                text(part, "name").unwrap_or("?"),
                arguments,
            )
        }
        _ => part.clone(),
    }
}
