//! Sessions of Claude Code: one log for each, in `~/.claude/projects/<folder>/`.
//!
//! A line is an event with `uuid` and `parentUuid`. What takes care here:
//!
//! - An answer is written as one line for each block; they share `message.id` and are one turn.
//! - Results of tools are lines of the user. Those of calls that ran side by side hang on the line
//!   of their call; in the tree they follow one another.
//! - A rewind leaves no trace but a second child; the line that the log ends on is the active one.
//! - A compaction cuts the chain: `logicalParentUuid`, or the line before, says where it goes on.
//! - Subagents have logs of their own (`<session>/subagents/agent-*.jsonl`), or, in older versions,
//!   lines marked `isSidechain`. Each becomes a conversation.
//! - A log that was forked off another repeats its lines, with the same ids.

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
    /// The subagent whose result it brings.
    agent: Option<String>,
}

enum EventKind {
    /// Something a person, a hook or a tool says.
    User(Json),
    /// One piece of an answer.
    Answer { id: Option<String>, content: Json, model: Json, usage: Json },
    /// Nothing to say, but it leads on.
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

    /// Leaves out the answer that the log ends on.
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
            if !QUIET.contains(&kind.as_str()) {
                let what = format!("{count} lines of type `{kind}`, which is not known; left out");
                notes.push(Note::new(path, None, what));
            }
        }
        let session = self.session.clone().unwrap_or_else(|| stem.to_owned());
        // A subagent's own log has nothing but its lines, all of them marked.
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
        // Lines of another session are repeated with its id, or say where they come from.
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

/// Types of lines that hold no messages.
const QUIET: &[&str] = &[
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

/// Returns the subagents of an older log: each begins with a line that follows none.
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

/// Lines that are one answer: one piece each, the same `message.id`.
fn gather(events: Vec<Event>) -> (Vec<Event>, HashMap<String, String>) {
    let mut alias = HashMap::new();
    let mut open: HashMap<String, usize> = HashMap::new();
    let mut seen = HashSet::new();
    let mut gathered: Vec<Event> = Vec::new();
    for event in events {
        let id = match &event.kind {
            EventKind::Answer { id: Some(id), .. } => id.clone(),
            _ => {
                gathered.push(event);
                continue;
            }
        };
        if !seen.insert(event.uuid.clone()) {
            continue;
        }
        let parent = event.parent.as_deref().unwrap_or_default();
        let place = open.get(&id).copied().filter(|place| {
            // A copy of the answer on another line is an answer of its own.
            let first: &Event = &gathered[*place];
            let goes_on = |uuid: &str| first.uuid == uuid || alias.get(uuid) == Some(&first.uuid);
            goes_on(parent) || first.parent.as_deref() == Some(parent)
        });
        match place {
            None => {
                open.insert(id, gathered.len());
                gathered.push(event);
            }
            Some(place) => {
                alias.insert(event.uuid, gathered[place].uuid.clone());
                let more = event.kind;
                if let (
                    EventKind::Answer { content: Json::Array(blocks), usage, .. },
                    EventKind::Answer { content: Json::Array(more), usage: last, .. },
                ) = (&mut gathered[place].kind, more)
                {
                    blocks.extend(more);
                    *usage = last;
                }
            }
        }
    }
    (gathered, alias)
}

fn conversation(
    path: &Path,
    id: String,
    events: Vec<Event>,
    last: Option<&str>,
    started: &mut Vec<(String, String)>,
) -> ImportedConversation {
    let (events, alias) = gather(events);
    let named = |uuid: &str| alias.get(uuid).cloned().unwrap_or_else(|| uuid.to_owned());
    let mut faults: Vec<(Option<u64>, String)> = Vec::new();
    let mut pending = Vec::new();
    // Results of one answer's calls, by answer: the last one, and the calls that are answered.
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
                let attachments = Vec::new();
                pending.push(PendingMessage {
                    id: event.uuid,
                    parent,
                    message: None,
                    attachments,
                    line,
                });
            }
            EventKind::Answer { content, model, usage, .. } => {
                if let Some(end) = parent.as_ref().and_then(|it| result_of.get(it)) {
                    parent = answered.get(end).map(|(last, _)| last.clone());
                }
                let read = parts::from_anthropic(content);
                faults.extend(read.faults.into_iter().map(|fault| (line, fault)));
                let provider = if model.is_null() { Json::Null } else { "anthropic".into() };
                let info =
                    with(event.about, [("provider", provider), ("model", model), ("usage", usage)]);
                let about =
                    MessageInfo { at: event.at, source_info: Some(info), ..MessageInfo::default() };
                let body = keep(
                    parts::message(Role::Assistant, None, read.blocks, about),
                    line,
                    &mut faults,
                );
                let attachments = Vec::new();
                pending.push(PendingMessage {
                    id: event.uuid,
                    parent,
                    message: body,
                    attachments,
                    line,
                });
            }
            EventKind::User(content) => {
                let mut read = parts::from_anthropic(content);
                faults.extend(read.faults.into_iter().map(|fault| (line, fault)));
                let count = read.results.len();
                let more = !read.blocks.is_empty();
                for (nth, result) in read.results.into_iter().enumerate() {
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
                            let whole = nth + 1 == count && !more;
                            entry.0 = if whole {
                                event.uuid.clone()
                            } else {
                                format!("{}/{nth}", event.uuid)
                            };
                            result_of.insert(entry.0.clone(), answer);
                        }
                    }
                    let id = if nth + 1 == count && !more {
                        event.uuid.clone()
                    } else {
                        format!("{}/{nth}", event.uuid)
                    };
                    let failed = if result.failed { true.into() } else { Json::Null };
                    let info = with(event.about.clone(), [("is_error", failed)]);
                    let about = MessageInfo {
                        at: event.at,
                        source_info: Some(info),
                        ..MessageInfo::default()
                    };
                    let body = parts::message(Role::Tool, Some(&result.call), result.blocks, about);
                    let body = keep(body, line, &mut faults);
                    let attachments = Vec::new();
                    pending.push(PendingMessage {
                        id: id.clone(),
                        parent,
                        message: body,
                        attachments,
                        line,
                    });
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
                let about = MessageInfo {
                    at: event.at,
                    source_info: Some(event.about),
                    tags,
                    partial: false,
                };
                let body =
                    keep(parts::message(Role::User, None, read.blocks, about), line, &mut faults);
                let attachments = Vec::new();
                pending.push(PendingMessage {
                    id: event.uuid,
                    parent,
                    message: body,
                    attachments,
                    line,
                });
            }
        }
    }
    let mut tree = build_tree(pending);
    tree.fill_times(None);
    faults.append(&mut tree.faults);
    let active = last.and_then(|uuid| tree.places.get(&named(uuid)).copied().flatten());
    let lines = tree.lines(active, |_| None);
    let notes = faults.into_iter().map(|(line, what)| Note::new(path, line, what)).collect();
    ImportedConversation {
        id,
        messages: tree.nodes,
        lines,
        notes,
        ..ImportedConversation::default()
    }
}

fn with<const N: usize>(info: Json, more: [(&str, Json); N]) -> Json {
    let mut members = match info {
        Json::Object(members) => members,
        _ => tine_core::json::Object::new(),
    };
    for (name, value) in more.into_iter().filter(|(_, value)| !value.is_null()) {
        members.insert(name, value);
    }
    Json::Object(members)
}

fn keep(
    message: Result<Option<tine_core::Message>, String>,
    line: Option<u64>,
    faults: &mut Vec<(Option<u64>, String)>,
) -> Option<tine_core::Message> {
    message.unwrap_or_else(|why| {
        faults.push((line, format!("{why}; left out")));
        None
    })
}

/// Says which messages started which subagents: by the call that brought their result, or, in
/// older logs, by the call that asked for what the subagent was asked.
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
