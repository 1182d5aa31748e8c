//! Sessions of Claude Code: one log for each, in `~/.claude/projects/<folder>/`.
//!
//! A line is an event with `uuid` and `parentUuid`. Peculiarities:
//!
//! - An answer is written as one line for each block; they share `message.id` and are one turn.
//! - Tool results are user lines. Results of parallel calls are children of the lines of their
//!   calls; in the tree they follow one another.
//! - A rewind leaves no trace but a second child; the path of the last line is the active one.
//! - A compaction cuts the chain: it continues at `logicalParentUuid`, or at the line before.
//! - Subagents have logs of their own (`<session>/subagents/agent-*.jsonl`), or, in older versions,
//!   lines marked `isSidechain`. Each becomes a conversation.
//! - A forked log repeats the lines of the original, with the same ids.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use tine_core::{Json, Role, Timestamp};

use super::ImportFormat;
use crate::input::{Input, LogLine, lines};
use crate::json::{is, text};
use crate::parts::{self, MessageInfo, member, present_members, text_or_null};
use crate::tree::{PendingMessage, build_tree};
use crate::{Error, ImportedConversation, Note, Receiver, SpawnedConversation};

pub(crate) fn read(input: &Input, path: &Path, receiver: &mut dyn Receiver) -> Result<(), Error> {
    let mut log = Log::default();
    let mut notes = Vec::new();
    let mut reader = input.open(path)?;
    lines(input, path, &mut reader, &mut notes, &mut |line, notes| {
        log.line(path, line, notes);
        Ok(())
    })?;
    if input.growing {
        log.hold_back();
    }
    for conversation in log.finish(path, super::stem(path), notes, receiver) {
        receiver.conversation(ImportFormat::ClaudeCode, conversation)?;
    }
    Ok(())
}

/// A line that is part of the tree.
struct Event {
    line: u64,
    uuid: String,
    parent: Option<String>,
    kind: EventKind,
    sidechain: bool,
    at: Option<Timestamp>,
    about: Json,
    hidden: bool,
    compacted: bool,
    /// The subagent whose result it contains.
    agent: Option<String>,
}

enum EventKind {
    /// A user message, the output of a hook, or tool results.
    User(Json),
    /// A block of an answer.
    Answer { id: Option<String>, content: Json, model: Json, usage: Json },
    /// An event without content that others follow.
    Bridge,
}

#[derive(Default)]
struct Log {
    events: Vec<Event>,
    summary: Option<String>,
    ai_title: Option<String>,
    custom_title: Option<String>,
    session: Option<String>,
    forked_from: Option<String>,
    agent: Option<String>,
    folder: Option<String>,
    skipped: HashMap<String, u64>,
    seen: HashSet<String>,
    last: Option<String>,
}

impl Log {
    fn line(&mut self, path: &Path, line: LogLine, notes: &mut Vec<Note>) {
        let Some(event) = super::line(path, &line, notes) else { return };
        let mut note = |what: String| notes.push(Note::new(path, Some(line.number), what));
        let kind = text(&event, "type").unwrap_or_default().to_owned();
        match kind.as_str() {
            "summary" => self.summary = text(&event, "summary").map(str::to_owned),
            "ai-title" => self.ai_title = text(&event, "aiTitle").map(str::to_owned),
            "custom-title" => self.custom_title = text(&event, "customTitle").map(str::to_owned),
            "user" | "assistant" | "system" | "attachment" | "progress" => {
                self.event(&kind, event, line.number, &mut note);
            }
            other => *self.skipped.entry(other.to_owned()).or_default() += 1,
        }
    }

    fn event(&mut self, kind: &str, mut event: Json, line: u64, note: &mut dyn FnMut(String)) {
        let Some(uuid) = text(&event, "uuid").map(str::to_owned) else {
            if kind == "user" || kind == "assistant" {
                note(format!("a line of type {kind} without `uuid`; left out"));
            }
            return;
        };
        let own = |name: &str| text(&event, name).map(str::to_owned);
        self.session = self.session.take().or_else(|| own("sessionId"));
        self.folder = self.folder.take().or_else(|| own("cwd"));
        let from = event.get("forkedFrom").and_then(|from| text(from, "sessionId"));
        self.forked_from = self.forked_from.take().or_else(|| from.map(str::to_owned));
        let sidechain = is(&event, "isSidechain");
        if sidechain {
            self.agent = self.agent.take().or_else(|| own("agentId"));
        }
        let agent = event.get("toolUseResult").and_then(|result| text(result, "agentId"));
        let agent = agent.map(str::to_owned);
        let parent = own("parentUuid").or_else(|| own("logicalParentUuid"));
        let about = present_members([
            (
                "client",
                present_members([
                    ("name", "claude-code".into()),
                    ("version", member(&event, "version")),
                ]),
            ),
            (
                "workspace",
                present_members([
                    ("cwd", member(&event, "cwd")),
                    ("git_branch", text_or_null(text(&event, "gitBranch"))),
                ]),
            ),
        ]);
        let at = parts::time(event.get("timestamp"));
        let (hidden, compacted) = (is(&event, "isMeta"), is(&event, "isCompactSummary"));
        let message = match &mut event {
            Json::Object(members) => members.remove("message").unwrap_or(Json::Null),
            _ => Json::Null,
        };
        let kind = match kind {
            "user" => EventKind::User(content(message)),
            "assistant" => EventKind::Answer {
                id: text(&message, "id").map(str::to_owned),
                model: text_or_null(text(&message, "model")),
                usage: member(&message, "usage"),
                content: content(message),
            },
            _ => EventKind::Bridge,
        };
        let new = self.seen.insert(uuid.clone());
        if new && !matches!(kind, EventKind::Bridge) && !sidechain {
            self.last = Some(uuid.clone());
        }
        self.events.push(Event {
            line,
            uuid,
            parent,
            kind,
            sidechain,
            at,
            about,
            hidden,
            compacted,
            agent,
        });
    }

    /// Leaves out the last answer, which may be incomplete.
    fn hold_back(&mut self) {
        let id_of = |event: Option<&Event>| match event.map(|event| &event.kind) {
            Some(EventKind::Answer { id, .. }) => id.clone(),
            _ => None,
        };
        if let Some(open) = id_of(self.events.last()) {
            while id_of(self.events.last()).as_ref() == Some(&open) {
                self.events.pop();
            }
            let body =
                |event: &&Event| !matches!(event.kind, EventKind::Bridge) && !event.sidechain;
            self.last = self.events.iter().rev().find(body).map(|event| event.uuid.clone());
        }
    }

    /// Returns the session and, of older logs, the subagents in it.
    fn finish(
        self,
        path: &Path,
        stem: &str,
        mut notes: Vec<Note>,
        receiver: &mut dyn Receiver,
    ) -> Vec<ImportedConversation> {
        for (kind, count) in &self.skipped {
            if !IGNORED_TYPES.contains(&kind.as_str()) {
                let what = format!("{count} lines of the unknown type `{kind}`; left out");
                notes.push(Note::new(path, None, what));
            }
        }
        let session = self.session.clone().unwrap_or_else(|| stem.to_owned());
        // In a subagent's own log, all lines are marked.
        let own = self.events.iter().all(|event| event.sidechain);
        let (side, main): (Vec<Event>, Vec<Event>) =
            self.events.into_iter().partition(|event| event.sidechain && !own);
        let mut conversations = Vec::new();
        for (id, prompt, events) in chains(&session, side) {
            let mut conversation = conversation(path, id, events, None, &mut Vec::new());
            conversation.folder.clone_from(&self.folder);
            conversation.title = Some(prompt);
            conversations.push(conversation);
        }
        let mut started = Vec::new();
        let id = match (&self.agent, own) {
            (Some(agent), true) => format!("{session}/agent-{agent}"),
            _ if stem.len() == session.len() => stem.to_owned(),
            _ => session.clone(),
        };
        let mut whole = conversation(path, id, main, self.last.as_deref(), &mut started);
        whole.shares_ids = !own;
        whole.title = self.custom_title.or(self.ai_title).or(self.summary);
        whole.folder = self.folder;
        // Repeated lines have the id of the original session, or name it.
        let from = self.forked_from.or(Some(session.clone()));
        whole.forked_from = from.filter(|from| *from != whole.id && !own);
        link(&mut whole, &conversations, &session, &started);
        whole.notes.splice(0..0, notes);
        if whole.messages.is_empty() {
            whole.notes.into_iter().for_each(|note| receiver.note(note));
        } else {
            conversations.insert(0, whole);
        }
        conversations
    }
}

/// Types of lines without messages.
const IGNORED_TYPES: &[&str] = &[
    "",
    "agent-name",
    "agent-setting",
    "file-history-snapshot",
    "last-prompt",
    "mode",
    "permission-mode",
    "pr-link",
    "queue-operation",
    "saved_hook_context",
    "tag",
];

fn content(message: Json) -> Json {
    match message {
        Json::Object(mut members) => members.remove("content").unwrap_or(Json::Null),
        other => other,
    }
}

/// Splits the sidechains of an older log by subagent: each begins with a line without parent.
fn chains(session: &str, side: Vec<Event>) -> Vec<(String, String, Vec<Event>)> {
    let mut of: HashMap<String, usize> = HashMap::new();
    let mut chains: Vec<(String, String, Vec<Event>)> = Vec::new();
    for event in side {
        let known = event.parent.as_ref().and_then(|parent| of.get(parent)).copied();
        let place = known.unwrap_or_else(|| {
            let prompt = match &event.kind {
                EventKind::User(Json::String(prompt)) => prompt.clone(),
                _ => String::new(),
            };
            let id = format!("{session}/side-{}", event.uuid);
            chains.push((id, prompt, Vec::new()));
            chains.len() - 1
        });
        of.insert(event.uuid.clone(), place);
        chains[place].2.push(event);
    }
    chains
}

/// Merges the lines of each answer, which share `message.id`.
fn merge_answers(events: Vec<Event>) -> (Vec<Event>, HashMap<String, String>) {
    let mut alias = HashMap::new();
    let mut open: HashMap<String, usize> = HashMap::new();
    let mut seen = HashSet::new();
    let mut merged: Vec<Event> = Vec::new();
    for event in events {
        let id = match &event.kind {
            EventKind::Answer { id: Some(id), .. } => id.clone(),
            _ => {
                merged.push(event);
                continue;
            }
        };
        if !seen.insert(event.uuid.clone()) {
            continue;
        }
        let parent = event.parent.as_deref().unwrap_or_default();
        let place = open.get(&id).copied().filter(|place| {
            // A copy of the answer on another path is separate.
            let first: &Event = &merged[*place];
            let continues = |uuid: &str| first.uuid == uuid || alias.get(uuid) == Some(&first.uuid);
            continues(parent) || first.parent.as_deref() == Some(parent)
        });
        match place {
            None => {
                open.insert(id, merged.len());
                merged.push(event);
            }
            Some(place) => {
                alias.insert(event.uuid, merged[place].uuid.clone());
                let more = event.kind;
                if let (
                    EventKind::Answer { content: Json::Array(blocks), usage, .. },
                    EventKind::Answer { content: Json::Array(more), usage: last, .. },
                ) = (&mut merged[place].kind, more)
                {
                    blocks.extend(more);
                    *usage = last;
                }
            }
        }
    }
    (merged, alias)
}

fn conversation(
    path: &Path,
    id: String,
    events: Vec<Event>,
    last: Option<&str>,
    started: &mut Vec<(String, String)>,
) -> ImportedConversation {
    let (events, alias) = merge_answers(events);
    let named = |uuid: &str| alias.get(uuid).cloned().unwrap_or_else(|| uuid.to_owned());
    let mut faults: Vec<(Option<u64>, String)> = Vec::new();
    let mut pending = Vec::new();
    // For each answer, its last result and the calls that have results.
    let mut answered: HashMap<String, (String, HashSet<String>)> = HashMap::new();
    let mut result_of: HashMap<String, String> = HashMap::new();
    let answers: HashSet<String> = events
        .iter()
        .filter(|event| matches!(event.kind, EventKind::Answer { .. }))
        .map(|event| event.uuid.clone())
        .collect();
    for event in events {
        let line = Some(event.line);
        let mut parent = event.parent.as_deref().map(named);
        match event.kind {
            EventKind::Bridge => {
                pending.push(PendingMessage::new(event.uuid, parent, None, line));
            }
            EventKind::Answer { content, model, usage, .. } => {
                if let Some(end) = parent.as_ref().and_then(|it| result_of.get(it)) {
                    parent = answered.get(end).map(|(last, _)| last.clone());
                }
                let read = parts::from_anthropic(content);
                faults.extend(read.faults.into_iter().map(|fault| (line, fault)));
                let provider = if model.is_null() { Json::Null } else { "anthropic".into() };
                let info = with_members(
                    event.about,
                    [("provider", provider), ("model", model), ("usage", usage)],
                );
                let about = MessageInfo::new(event.at, info);
                let body = message_or_fault(
                    parts::message(Role::Assistant, None, read.blocks, about),
                    line,
                    &mut faults,
                );
                pending.push(PendingMessage::new(event.uuid, parent, body, line));
            }
            EventKind::User(content) => {
                let mut read = parts::from_anthropic(content);
                faults.extend(read.faults.into_iter().map(|fault| (line, fault)));
                let count = read.results.len();
                let more = !read.blocks.is_empty();
                for (nth, result) in read.results.into_iter().enumerate() {
                    let is_last = nth + 1 == count && !more;
                    let id = match is_last {
                        true => event.uuid.clone(),
                        false => format!("{}/{nth}", event.uuid),
                    };
                    if let Some(agent) = &event.agent {
                        started.push((agent.clone(), result.call.clone()));
                    }
                    // Other results of the same answer precede it: append it to the last of them.
                    let answer = parent.clone().map(|it| result_of.get(&it).cloned().unwrap_or(it));
                    if let Some(answer) = answer.filter(|it| answers.contains(it)) {
                        let entry = answered.entry(answer.clone()).or_default();
                        if entry.1.insert(result.call.clone()) {
                            if !entry.0.is_empty() {
                                parent = Some(entry.0.clone());
                            }
                            entry.0.clone_from(&id);
                            result_of.insert(id.clone(), answer);
                        }
                    }
                    let failed = if result.failed { true.into() } else { Json::Null };
                    let info = with_members(event.about.clone(), [("is_error", failed)]);
                    let about = MessageInfo::new(event.at, info);
                    let body = parts::message(Role::Tool, Some(&result.call), result.blocks, about);
                    let body = message_or_fault(body, line, &mut faults);
                    pending.push(PendingMessage::new(id.clone(), parent, body, line));
                    parent = Some(id);
                }
                if count > 0 && !more {
                    continue;
                }
                if event.compacted
                    && let [block] = read.blocks.as_slice()
                    && let Some(body) = text(block, "text")
                {
                    read.blocks = vec![parts::summary(body)];
                }
                if let Some(end) = parent.as_ref().and_then(|it| result_of.get(it)) {
                    parent = answered.get(end).map(|(last, _)| last.clone());
                }
                let tags = if event.hidden { vec!["hidden"] } else { Vec::new() };
                let about = MessageInfo { tags, ..MessageInfo::new(event.at, event.about) };
                let body = message_or_fault(
                    parts::message(Role::User, None, read.blocks, about),
                    line,
                    &mut faults,
                );
                pending.push(PendingMessage::new(event.uuid, parent, body, line));
            }
        }
    }
    let mut tree = build_tree(pending);
    tree.fill_times(None);
    faults.append(&mut tree.faults);
    let active = last.and_then(|uuid| tree.places.get(&named(uuid)).copied().flatten());
    let paths = tree.paths(active, |_| None);
    let notes = faults.into_iter().map(|(line, what)| Note::new(path, line, what)).collect();
    ImportedConversation {
        id,
        messages: tree.nodes,
        paths,
        notes,
        ..ImportedConversation::default()
    }
}

fn with_members<const N: usize>(info: Json, more: [(&str, Json); N]) -> Json {
    let mut members = match info {
        Json::Object(members) => members,
        _ => tine_core::json::Object::new(),
    };
    for (name, value) in more.into_iter().filter(|(_, value)| !value.is_null()) {
        members.insert(name, value);
    }
    Json::Object(members)
}

fn message_or_fault(
    message: Result<Option<tine_core::Message>, String>,
    line: Option<u64>,
    faults: &mut Vec<(Option<u64>, String)>,
) -> Option<tine_core::Message> {
    message.unwrap_or_else(|why| {
        faults.push((line, format!("{why}; left out")));
        None
    })
}

/// Finds the messages that started subagents: by the call whose result names the subagent or, in
/// older logs, by the call with the subagent's prompt.
fn link(
    whole: &mut ImportedConversation,
    side: &[ImportedConversation],
    session: &str,
    started: &[(String, String)],
) {
    let mut calls: HashMap<String, usize> = HashMap::new();
    let mut prompts: HashMap<String, usize> = HashMap::new();
    for (place, node) in whole.messages.iter().enumerate() {
        if node.message.role != Role::Assistant {
            continue;
        }
        for block in node.message.body.blocks().unwrap_or_default() {
            if let (Some("tool-use"), Some(id)) = (text(&block, "type"), text(&block, "id")) {
                calls.insert(id.to_owned(), place);
                if let Some(prompt) = block.get("parameters").and_then(|it| text(it, "prompt")) {
                    prompts.insert(prompt.to_owned(), place);
                }
            }
        }
    }
    for (agent, call) in started {
        if let Some(by) = calls.get(call) {
            let conversation = format!("{session}/agent-{agent}");
            whole.started.push(SpawnedConversation { conversation, by: *by });
        }
    }
    for chain in side {
        if let Some(by) = chain.title.as_ref().and_then(|prompt| prompts.get(prompt)) {
            whole.started.push(SpawnedConversation { conversation: chain.id.clone(), by: *by });
        }
    }
}
