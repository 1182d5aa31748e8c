//! Rollouts of Codex: `~/.codex/sessions/YYYY/MM/DD/rollout-*.jsonl`, plain or compressed.
//!
//! A line is `{timestamp, type, payload}`; the messages are the `response_item`s, which
//! `event_msg`s repeat. Peculiarities:
//!
//! - A fork names its original (`forked_from_id`) and either repeats the lines of it, with the header
//!   and with other times, or refers to another file (`history_base`), which may refer to a third.
//! - `thread_rolled_back` takes back a number of user turns; they become an abandoned path.
//! - A compaction is a summary of everything before it.

use std::fs;
use std::path::{Path, PathBuf};

use tine_core::json::object;
use tine_core::{Json, Role};

use super::ImportFormat;
use crate::draft::{Draft, DraftMessage};
use crate::input::{Input, lines};
use crate::json::{self, text};
use crate::parts::{self, MessageInfo, member, present_members, text_or_null};
use crate::{Error, ImportedConversation, Note, Receiver};

/// The maximum number of files that a history leads through.
const BASES: usize = 64;

pub(crate) fn read(input: &Input, path: &Path, receiver: &mut dyn Receiver) -> Result<(), Error> {
    let mut rollout = Rollout::default();
    let mut notes = Vec::new();
    rollout.read(input, path, None, BASES, &mut notes)?;
    let own = rollout.own.unwrap_or_default();
    let base = ImportedConversation {
        id: own.id.unwrap_or_else(|| super::stem(path).to_owned()),
        forked_from: own.forked_from,
        timeless: rollout.copied,
        folder: own.cwd,
        system_prompt: own.instructions,
        title: rollout.title,
        notes,
        ..ImportedConversation::default()
    };
    let tree = rollout.draft.finish(path, base, rollout.tip.as_deref(), |_| None);
    receiver.conversation(ImportFormat::Codex, tree)
}

#[derive(Default)]
struct Header {
    id: Option<String>,
    forked_from: Option<String>,
    cwd: Option<String>,
    instructions: Option<String>,
}

#[derive(Default)]
struct Rollout {
    draft: Draft,
    own: Option<Header>,
    title: Option<String>,
    /// Whether the file repeats the lines of another.
    copied: bool,
    tip: Option<String>,
    /// The last assistant message.
    answer: Option<String>,
    /// For each user turn of the path, the message before it.
    turns: Vec<Option<String>>,
    workspace: Json,
    client: Json,
    provider: Json,
    model: Json,
    count: u64,
}

impl Rollout {
    /// Reads a file up to an ordinal, after the files that it continues.
    fn read(
        &mut self,
        input: &Input,
        path: &Path,
        end: Option<u64>,
        bases: usize,
        notes: &mut Vec<Note>,
    ) -> Result<(), Error> {
        let mut reader = input.open(path)?;
        let mut headed = false;
        let mut place = 0;
        lines(input, path, &mut reader, notes, &mut |line, notes| {
            let number = line.number;
            let Some(json) = super::line(path, &line, notes) else { return Ok(()) };
            let ordinal = json.get("ordinal").and_then(Json::as_u64).unwrap_or(place);
            place += 1;
            if end.is_some_and(|end| ordinal >= end) {
                return Ok(());
            }
            let payload = json.get("payload").unwrap_or(&json);
            match text(&json, "type").unwrap_or_default() {
                "session_meta" if headed => self.copied = true,
                "session_meta" => {
                    headed = true;
                    self.header(input, path, payload, bases, notes)?;
                }
                // The oldest files have neither an envelope nor a type in their header.
                "" if text(&json, "id").is_some() && !headed => {
                    headed = true;
                    self.header(input, path, &json, bases, notes)?;
                }
                _ => self.event(&json, payload, number),
            }
            Ok(())
        })
    }

    fn header(
        &mut self,
        input: &Input,
        path: &Path,
        meta: &Json,
        bases: usize,
        notes: &mut Vec<Note>,
    ) -> Result<(), Error> {
        let git = meta.get("git").cloned().unwrap_or(Json::Null);
        let own = |name: &str| text(meta, name).map(str::to_owned);
        let base = meta.get("history_base").and_then(|base| {
            let end = base.get("end_ordinal_exclusive").and_then(Json::as_u64)?;
            Some((text(base, "thread_id")?.to_owned(), end))
        });
        if self.own.is_none() {
            let from = own("forked_from_id").or_else(|| base.as_ref().map(|(id, _)| id.clone()));
            let instructions = match meta.get("base_instructions") {
                Some(inner) => text(inner, "text").map(str::to_owned),
                None => own("instructions"),
            };
            self.own =
                Some(Header { id: own("id"), forked_from: from, cwd: own("cwd"), instructions });
        }
        if let Some((id, end)) = base {
            match rollout_of(path, &id).filter(|_| bases > 0) {
                Some(other) => self.read(input, &other, Some(end), bases - 1, notes)?,
                None => {
                    let what = format!("the rollout {id}, which it continues, is missing");
                    notes.push(Note::new(path, Some(1), what));
                }
            }
        }
        self.workspace = present_members([
            ("cwd", member(meta, "cwd")),
            ("git_branch", text_or_null(text(&git, "branch"))),
            ("git_commit", text_or_null(text(&git, "commit_hash"))),
            ("repository", text_or_null(text(&git, "repository_url"))),
        ]);
        self.client =
            present_members([("name", "codex".into()), ("version", member(meta, "cli_version"))]);
        self.provider = text_or_null(text(meta, "model_provider").or(Some("openai")));
        Ok(())
    }

    fn event(&mut self, json: &Json, payload: &Json, line: u64) {
        let kind = text(payload, "type").unwrap_or_default();
        match text(json, "type").unwrap_or_default() {
            "turn_context" => {
                self.model = text_or_null(text(payload, "model"));
                if let (Json::Object(workspace), Some(cwd)) =
                    (&mut self.workspace, text(payload, "cwd"))
                {
                    workspace.insert("cwd", cwd.into());
                }
            }
            "event_msg" => match kind {
                "thread_rolled_back" => {
                    let count = payload.get("num_turns").and_then(Json::as_u64).unwrap_or(0);
                    for _ in 0..count {
                        match self.turns.pop() {
                            Some(before) => self.tip = before,
                            None => {
                                let what = format!("rolls back {count} turns, more than there are");
                                self.draft.fault(Some(line), what);
                                break;
                            }
                        }
                    }
                }
                "token_count" => {
                    let usage = payload.get("info").and_then(|info| info.get("last_token_usage"));
                    if let (Some(usage), Some(id)) = (usage, &self.answer) {
                        self.draft.set_source_info(id, "usage", usage.clone());
                    }
                }
                "thread_name_updated" => {
                    self.title = text(payload, "thread_name").map(str::to_owned);
                }
                _ => {}
            },
            "compacted" => {
                let body = text(payload, "message").unwrap_or("The conversation was compacted.");
                self.add(json, line, Role::User, None, vec![parts::summary(body)], Vec::new());
            }
            "response_item" => self.item(json, payload, kind, line),
            // The oldest files have items without an envelope.
            "message"
            | "reasoning"
            | "function_call"
            | "function_call_output"
            | "local_shell_call" => self.item(json, payload, kind, line),
            _ => {}
        }
    }

    fn item(&mut self, json: &Json, payload: &Json, kind: &str, line: u64) {
        let call = || text(payload, "call_id").or_else(|| text(payload, "id")).unwrap_or("?");
        let name = |other: &'static str| text(payload, "name").unwrap_or(other).to_owned();
        match kind {
            "message" => {
                let blocks: Vec<Json> = json::items(payload, "content").iter().map(part).collect();
                let body = blocks.first().and_then(|block| text(block, "text")).unwrap_or_default();
                let hidden = GENERATED.iter().any(|start| body.trim_start().starts_with(start));
                let tags = if hidden { vec!["hidden"] } else { Vec::new() };
                let role = match text(payload, "role") {
                    Some("user") => Role::User,
                    Some("assistant") => Role::Assistant,
                    _ => Role::System,
                };
                if role == Role::User && !hidden {
                    self.turns.push(self.tip.clone());
                }
                self.add(json, line, role, None, blocks, tags);
            }
            "reasoning" => {
                let parts =
                    json::items(payload, "summary").iter().chain(json::items(payload, "content"));
                let body: Vec<&str> = parts.filter_map(|part| text(part, "text")).collect();
                let seal = text(payload, "encrypted_content");
                if !body.is_empty() || seal.is_some() {
                    let block = parts::thinking(&body.join("\n\n"), seal);
                    self.add(json, line, Role::Assistant, None, vec![block], Vec::new());
                }
            }
            "function_call" => {
                let arguments = parts::arguments(text(payload, "arguments").unwrap_or_default());
                let block = parts::call(call(), &name("?"), arguments);
                self.add(json, line, Role::Assistant, None, vec![block], Vec::new());
            }
            "custom_tool_call" => {
                let parameters = object([("input", member(payload, "input"))]);
                let block = parts::call(call(), &name("?"), parameters);
                self.add(json, line, Role::Assistant, None, vec![block], Vec::new());
            }
            "local_shell_call"
            | "web_search_call"
            | "tool_search_call"
            | "image_generation_call" => {
                let parameters = parts::parameters(payload.get("action"));
                let tool = kind.trim_end_matches("_call");
                let block = parts::call(call(), tool, parameters);
                self.add(json, line, Role::Assistant, None, vec![block], Vec::new());
            }
            "function_call_output" | "custom_tool_call_output" | "tool_search_output" => {
                let output = member(payload, "output");
                let output = match output.get("content") {
                    Some(content) => content.clone(),
                    None => output,
                };
                let body = match output {
                    Json::Array(parts) => parts.iter().map(part).collect(),
                    other => parts::result(other),
                };
                let call = call().to_owned();
                self.add(json, line, Role::Tool, Some(call), body, Vec::new());
            }
            "ghost_snapshot" | "compaction" | "" => {}
            other => {
                let what = format!("an item of the unknown type `{other}`; kept as it is");
                self.draft.fault(Some(line), what);
                self.add(json, line, Role::Assistant, None, vec![payload.clone()], Vec::new());
            }
        }
    }

    fn add(
        &mut self,
        json: &Json,
        line: u64,
        role: Role,
        call: Option<String>,
        blocks: Vec<Json>,
        tags: Vec<&'static str>,
    ) {
        self.count += 1;
        let id = self.count.to_string();
        let (provider, model) = match role {
            Role::Assistant => (self.provider.clone(), self.model.clone()),
            _ => (Json::Null, Json::Null),
        };
        let info = present_members([
            ("client", self.client.clone()),
            ("workspace", self.workspace.clone()),
            ("provider", provider),
            ("model", model),
        ]);
        if role == Role::Assistant {
            self.answer = Some(id.clone());
        }
        let at = parts::time(json.get("timestamp"));
        let about = MessageInfo { tags, ..MessageInfo::new(at, info) };
        let parent = self.tip.replace(id.clone());
        let attachments = Vec::new();
        self.draft.add(DraftMessage {
            call,
            attachments,
            line: Some(line),
            ..DraftMessage::new(id, parent, role, blocks, about)
        });
    }
}

/// Beginnings of user messages that Codex generates.
const GENERATED: &[&str] = &[
    "<environment_context>",
    "<user_instructions>",
    "# AGENTS.md",
    "<turn_aborted>",
    "<INSTRUCTIONS>",
];

fn part(part: &Json) -> Json {
    match text(part, "type").unwrap_or_default() {
        "input_text" | "output_text" | "text" | "summary_text" | "reasoning_text" => {
            parts::text(text(part, "text").unwrap_or_default())
        }
        "input_image" => {
            present_members([("type", "image".into()), ("url", member(part, "image_url"))])
        }
        _ => part.clone(),
    }
}

/// Finds the file of a rollout in the folder tree of another.
fn rollout_of(path: &Path, id: &str) -> Option<PathBuf> {
    let top = path.ancestors().find(|folder| {
        folder.file_name().is_some_and(|name| name == "sessions" || name == "archived_sessions")
    });
    let mut open = vec![(top.or_else(|| path.parent())?.to_owned(), 0)];
    while let Some((folder, depth)) = open.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let Ok(kind) = entry.file_type() else { continue };
            let name = entry.file_name().to_string_lossy().into_owned();
            if kind.is_dir() && depth < 4 {
                open.push((entry.path(), depth + 1));
            } else if kind.is_file() && name.contains(id) && entry.path() != path {
                return Some(entry.path());
            }
        }
    }
    None
}
