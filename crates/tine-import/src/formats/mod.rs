//! The formats, with a module for each, and shared functions.

mod chatgpt;
mod claude_ai;
mod claude_code;
mod codex;
mod forest;
mod gemini_cli;
mod librechat;
mod messages;
mod open_webui;
mod opencode;
mod pi;

use std::fs::File;
use std::io::Read;
use std::path::Path;

use tine_core::Json;

use crate::input::{Archive, Input, ListItem, LogLine};
use crate::{Error, Note, Receiver, json};

/// The format of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ImportFormat {
    /// Tine's bundles, also those in an exported page.
    Bundle,
    /// The export of ChatGPT.
    ChatGpt,
    /// The export of Claude.ai.
    ClaudeAi,
    /// Sessions of Claude Code.
    ClaudeCode,
    /// Rollouts of Codex.
    Codex,
    /// Folders of a `FileSystemStore`.
    Forest,
    /// Chats of Gemini CLI.
    GeminiCli,
    /// Conversations of LibreChat.
    LibreChat,
    /// Lists of messages in the format of a request.
    Messages,
    /// Chats of Open WebUI.
    OpenWebUi,
    /// Sessions of OpenCode.
    OpenCode,
    /// Sessions of pi and oh-my-pi.
    Pi,
}

impl ImportFormat {
    const NAMES: &[(ImportFormat, &str, &str)] = &[
        (ImportFormat::Bundle, "tine", "Tine bundle"),
        (ImportFormat::ChatGpt, "chatgpt", "ChatGPT export"),
        (ImportFormat::ClaudeAi, "claude-ai", "Claude.ai export"),
        (ImportFormat::ClaudeCode, "claude-code", "Claude Code"),
        (ImportFormat::Codex, "codex", "Codex"),
        (ImportFormat::Forest, "forest", "FileSystemStore folder"),
        (ImportFormat::GeminiCli, "gemini-cli", "Gemini CLI"),
        (ImportFormat::LibreChat, "librechat", "LibreChat"),
        (ImportFormat::Messages, "messages", "OpenAI or Anthropic messages"),
        (ImportFormat::OpenWebUi, "open-webui", "Open WebUI"),
        (ImportFormat::OpenCode, "opencode", "OpenCode"),
        (ImportFormat::Pi, "pi", "pi, oh-my-pi"),
    ];

    /// Returns all formats.
    pub fn all() -> impl Iterator<Item = ImportFormat> {
        ImportFormat::NAMES.iter().map(|(format, ..)| *format)
    }

    fn names(self) -> (&'static str, &'static str) {
        let found = ImportFormat::NAMES.iter().find(|(format, ..)| *format == self);
        found.map_or(("", ""), |(_, name, title)| (name, title))
    }

    /// Returns the name, which is also the prefix of conversation ids.
    pub fn name(self) -> &'static str {
        self.names().0
    }

    /// Returns the name for display.
    pub fn title(self) -> &'static str {
        self.names().1
    }

    /// Returns the format with a name.
    pub fn named(name: &str) -> Option<ImportFormat> {
        ImportFormat::all().find(|format| format.name() == name)
    }

    /// Returns whether a file holds one conversation, to which lines are only added: it is not read
    /// again until it changes.
    pub fn is_log(self) -> bool {
        matches!(
            self,
            ImportFormat::ClaudeCode
                | ImportFormat::Codex
                | ImportFormat::GeminiCli
                | ImportFormat::Pi
        )
    }
}

/// Reads a file of a known format.
pub(crate) fn read(
    format: ImportFormat,
    input: &Input,
    path: &Path,
    receiver: &mut dyn Receiver,
) -> Result<(), Error> {
    let read = match format {
        ImportFormat::Bundle => return Err(Error::Unknown { file: path.to_owned() }),
        ImportFormat::ChatGpt => chatgpt::read,
        ImportFormat::ClaudeAi => claude_ai::read,
        ImportFormat::ClaudeCode => claude_code::read,
        ImportFormat::Codex => codex::read,
        ImportFormat::Forest => forest::read,
        ImportFormat::GeminiCli => gemini_cli::read,
        ImportFormat::LibreChat => librechat::read,
        ImportFormat::Messages => messages::read,
        ImportFormat::OpenWebUi => open_webui::read,
        ImportFormat::OpenCode => opencode::read,
        ImportFormat::Pi => pi::read,
    };
    read(input, path, receiver)
}

/// Returns whether a file is a ZIP archive.
fn is_zip(path: &Path) -> bool {
    let mut magic = [0; 2];
    File::open(path).and_then(|mut file| file.read_exact(&mut magic)).is_ok() && magic == *b"PK"
}

/// Returns the members of an export that contain conversations.
pub(crate) fn shards(archive: &Archive) -> Vec<String> {
    let is_shard = |name: &String| {
        let file = name.rsplit('/').next().unwrap_or(name);
        file.starts_with("conversations") && file.ends_with(".json")
    };
    archive.names().into_iter().filter(is_shard).collect()
}

/// Parses an item of a list and returns it with its number; a broken one is noted.
fn item(path: &Path, item: ListItem, receiver: &mut dyn Receiver) -> Option<(Json, u64)> {
    let mut note = |what: String| receiver.note(Note::new(path, Some(item.number), what));
    if item.cut {
        note("the file is cut off here; left out".to_owned());
        return None;
    }
    Some((parse(&item.bytes, &mut note)?, item.number))
}

/// Parses a line of a log; a broken one is noted.
fn line(path: &Path, line: &LogLine, notes: &mut Vec<Note>) -> Option<Json> {
    let mut note = |what: String| notes.push(Note::new(path, Some(line.number), what));
    if !line.ended && json::read(&line.bytes).is_err() {
        note("the last line is cut off; left out".to_owned());
        return None;
    }
    parse(&line.bytes, &mut note)
}

fn parse(bytes: &[u8], note: &mut dyn FnMut(String)) -> Option<Json> {
    match json::read(bytes) {
        Ok((json, changed)) => {
            changed.into_iter().for_each(|what| note(what.to_owned()));
            Some(json)
        }
        Err(why) => {
            note(format!("not JSON ({why}); left out"));
            None
        }
    }
}

/// Returns the name of a file up to its first dot.
fn stem(path: &Path) -> &str {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or("conversation");
    name.split('.').next().filter(|stem| !stem.is_empty()).unwrap_or(name)
}

/// Returns the MIME type of a file, judging by its name.
fn mime_type(name: &str) -> &'static str {
    match name.rsplit('.').next().unwrap_or_default().to_ascii_lowercase().as_str() {
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "webp" => "image/webp",
        "gif" => "image/gif",
        "wav" => "audio/wav",
        "mp3" => "audio/mpeg",
        "pdf" => "application/pdf",
        "txt" | "md" | "csv" => "text/plain",
        "json" => "application/json",
        _ => "application/octet-stream",
    }
}
