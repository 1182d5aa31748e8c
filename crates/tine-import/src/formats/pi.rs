//! Sessions of pi and oh-my-pi: `~/.pi/agent/sessions/--<folder>--/<time>_<id>.jsonl`.
//!
//! Entries name their parents; the active path ends at the last line. The first version had no ids:
//! each entry follows the one before. Ids are unique within a file only.

use std::collections::HashMap;
use std::path::Path;

use tine_core::{Json, Role};

use super::ImportFormat;
use crate::draft::{Draft, DraftMessage};
use crate::input::{Input, lines};
use crate::json::{is, text};
use crate::parts::{self, MessageInfo, member, present_members, text_or_null};
use crate::{Error, ImportedConversation, Receiver};

pub(crate) fn read(input: &Input, path: &Path, receiver: &mut dyn Receiver) -> Result<(), Error> {
    let mut session = PiSession::default();
    let mut notes = Vec::new();
    let mut reader = input.open(path)?;
    lines(input, path, &mut reader, &mut notes, &mut |line, notes| {
        if let Some(entry) = super::line(path, &line, notes) {
            session.entry(&entry, line.number);
        }
        Ok(())
    })?;
    let own = session.id.unwrap_or_else(|| super::stem(path).to_owned());
    let base = ImportedConversation {
        id: own,
        forked_from: session.parent,
        title: session.title,
        folder: session.cwd,
        notes,
        ..ImportedConversation::default()
    };
    let mut tree = session.draft.finish(path, base, session.last.as_deref(), |_| None);
    for node in &mut tree.messages {
        node.message.metadata.title = session.labels.remove(&node.id);
    }
    receiver.conversation(ImportFormat::Pi, tree)
}

#[derive(Default)]
struct PiSession {
    draft: Draft,
    id: Option<String>,
    parent: Option<String>,
    cwd: Option<String>,
    title: Option<String>,
    last: Option<String>,
    /// The labels of messages, by id.
    labels: HashMap<String, String>,
}

impl PiSession {
    fn entry(&mut self, entry: &Json, line: u64) {
        let kind = text(entry, "type").unwrap_or_default();
        if kind == "session" {
            let own = |name: &str| text(entry, name).map(str::to_owned);
            (self.id, self.cwd) = (own("id"), own("cwd"));
            // The parent is given as a path; its id is the last part of the name.
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
        let plain = |blocks, role, tags| {
            let client = present_members([("name", "pi".into())]);
            let workspace = present_members([("cwd", text_or_null(self.cwd.as_deref()))]);
            let info = present_members([("client", client), ("workspace", workspace)]);
            let about = MessageInfo { tags, ..MessageInfo::new(at, info) };
            let message = DraftMessage::new(id.clone(), parent.clone(), role, blocks, about);
            DraftMessage { line: Some(line), ..message }
        };
        match kind {
            "message" => {
                let message = entry.get("message").cloned().unwrap_or(Json::Null);
                let body = self.message(&id, parent, &message, at, line);
                self.draft.add(body);
            }
            "compaction" | "branch_summary" => {
                let summary = text(entry, "summary").unwrap_or_default();
                let body = plain(vec![parts::summary(summary)], Role::User, Vec::new());
                self.draft.add(body);
            }
            "custom_message" => {
                let blocks = parts::result(member(entry, "content"));
                let shown = entry.get("display").and_then(Json::as_bool) != Some(false);
                let body = plain(blocks, Role::User, if shown { vec![] } else { vec!["hidden"] });
                self.draft.add(body);
            }
            "label" => {
                if let (Some(target), Some(label)) = (text(entry, "targetId"), text(entry, "label"))
                {
                    self.labels.insert(target.to_owned(), label.to_owned());
                }
                self.draft.add_placeholder(id.clone(), parent, Some(line));
            }
            "session_info" => {
                self.title = text(entry, "name").map(str::to_owned);
                self.draft.add_placeholder(id.clone(), parent, Some(line));
            }
            _ => self.draft.add_placeholder(id.clone(), parent, Some(line)),
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
    ) -> DraftMessage {
        let role = match text(message, "role") {
            Some("assistant") => Role::Assistant,
            Some("toolResult" | "tool") => Role::Tool,
            Some("system") => Role::System,
            _ => Role::User,
        };
        let blocks = match message.get("content") {
            Some(Json::Array(parts)) => parts.iter().map(block).collect(),
            Some(Json::String(body)) => vec![parts::text(body.as_str())],
            _ => match (text(message, "command"), text(message, "output")) {
                (Some(command), output) => {
                    vec![parts::text(format!("$ {command}\n{}", output.unwrap_or_default()))]
                }
                _ => Vec::new(),
            },
        };
        let failed = if is(message, "isError") { true.into() } else { Json::Null };
        let info = present_members([
            ("client", present_members([("name", "pi".into())])),
            ("workspace", present_members([("cwd", text_or_null(self.cwd.as_deref()))])),
            ("provider", text_or_null(text(message, "provider"))),
            ("model", text_or_null(text(message, "model"))),
            ("usage", member(message, "usage")),
            ("tool", text_or_null(text(message, "toolName"))),
            ("is_error", failed),
        ]);
        let partial = matches!(text(message, "stopReason"), Some("aborted" | "error"));
        let call = text(message, "toolCallId").unwrap_or("?").to_owned();
        let at = parts::time(message.get("timestamp")).or(at);
        let about = MessageInfo { partial, ..MessageInfo::new(at, info) };
        DraftMessage {
            call: (role == Role::Tool).then_some(call),
            line: Some(line),
            ..DraftMessage::new(id.to_owned(), parent, role, blocks, about)
        }
    }
}

fn block(part: &Json) -> Json {
    match text(part, "type").unwrap_or_default() {
        "text" => parts::text(text(part, "text").unwrap_or_default()),
        "thinking" => {
            let body = text(part, "thinking").unwrap_or_default();
            parts::thinking(body, text(part, "thinkingSignature"))
        }
        "toolCall" => {
            let arguments = parts::parameters(part.get("arguments"));
            parts::call(
                text(part, "id").unwrap_or("?"),
                text(part, "name").unwrap_or("?"),
                arguments,
            )
        }
        _ => part.clone(),
    }
}
