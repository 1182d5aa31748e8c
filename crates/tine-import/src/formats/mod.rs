//! One module for each format, and what several of them share.

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

use crate::input::{Archive, Input, Item, LogLine};
use crate::{Error, Note, Receiver, json};

/// Whose files they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Format {
    /// Bundles of Tine itself, also those within an exported page.
    Bundle,
    /// The export of ChatGPT.
    ChatGpt,
    /// The export of Claude.ai.
    ClaudeAi,
    /// Sessions of Claude Code.
    ClaudeCode,
    /// Rollouts of Codex.
    Codex,
    /// Folders of the tree specification's store.
    Forest,
    /// Chats of Gemini CLI.
    GeminiCli,
    /// Conversations of LibreChat.
    LibreChat,
    /// Lists of messages as they are sent to a model.
    Messages,
    /// Chats of Open WebUI.
    OpenWebUi,
    /// Sessions of OpenCode.
    OpenCode,
    /// Sessions of pi and oh-my-pi.
    Pi,
}

impl Format {
    const NAMES: &[(Format, &str, &str)] = &[
        (Format::Bundle, "tine", "Tine bundle"),
        (Format::ChatGpt, "chatgpt", "ChatGPT export"),
        (Format::ClaudeAi, "claude-ai", "Claude.ai export"),
        (Format::ClaudeCode, "claude-code", "Claude Code"),
        (Format::Codex, "codex", "Codex"),
        (Format::Forest, "forest", "FileSystemStore folder"),
        (Format::GeminiCli, "gemini-cli", "Gemini CLI"),
        (Format::LibreChat, "librechat", "LibreChat"),
        (Format::Messages, "messages", "OpenAI or Anthropic messages"),
        (Format::OpenWebUi, "open-webui", "Open WebUI"),
        (Format::OpenCode, "opencode", "OpenCode"),
        (Format::Pi, "pi", "pi, oh-my-pi"),
    ];

    /// Every format.
    pub fn all() -> impl Iterator<Item = Format> {
        Format::NAMES.iter().map(|(format, ..)| *format)
    }

    fn names(self) -> (&'static str, &'static str) {
        let found = Format::NAMES.iter().find(|(format, ..)| *format == self);
        found.map_or(("", ""), |(_, name, title)| (name, title))
    }

    /// Its name, which also begins the ids of its conversations.
    pub fn name(self) -> &'static str {
        self.names().0
    }

    /// What it is, for people.
    pub fn title(self) -> &'static str {
        self.names().1
    }

    /// The format of that name.
    pub fn named(name: &str) -> Option<Format> {
        Format::all().find(|format| format.name() == name)
    }

    /// Whether a file holds one conversation, which only ever grows: what was read of it need not
    /// be read again as long as the file is as it was.
    pub(crate) fn is_log(self) -> bool {
        matches!(self, Format::ClaudeCode | Format::Codex | Format::GeminiCli | Format::Pi)
    }
}

/// Reads a file of a known format.
pub(crate) fn read(
    format: Format,
    input: &Input,
    path: &Path,
    receiver: &mut dyn Receiver,
) -> Result<(), Error> {
    let read = match format {
        Format::Bundle => return Err(Error::Unknown { file: path.to_owned() }),
        Format::ChatGpt => chatgpt::read,
        Format::ClaudeAi => claude_ai::read,
        Format::ClaudeCode => claude_code::read,
        Format::Codex => codex::read,
        Format::Forest => forest::read,
        Format::GeminiCli => gemini_cli::read,
        Format::LibreChat => librechat::read,
        Format::Messages => messages::read,
        Format::OpenWebUi => open_webui::read,
        Format::OpenCode => opencode::read,
        Format::Pi => pi::read,
    };
    read(input, path, receiver)
}

/// Whether a file is a ZIP archive.
fn is_zip(path: &Path) -> bool {
    let mut magic = [0; 2];
    File::open(path).and_then(|mut file| file.read_exact(&mut magic)).is_ok() && magic == *b"PK"
}

/// The members of an export that hold conversations.
pub(crate) fn shards(archive: &Archive) -> Vec<String> {
    let is_shard = |name: &String| {
        let file = name.rsplit('/').next().unwrap_or(name);
        file.starts_with("conversations") && file.ends_with(".json")
    };
    archive.names().into_iter().filter(is_shard).collect()
}

/// One item of a list as JSON and its number; a broken one is noted.
fn item(path: &Path, item: Item, receiver: &mut dyn Receiver) -> Option<(Json, u64)> {
    let mut note = |what: String| receiver.note(Note::new(path, Some(item.number), what));
    if item.cut {
        note("the file is cut off here; left out".to_owned());
        return None;
    }
    match json::read(&item.bytes) {
        Ok((json, changed)) => {
            changed.into_iter().for_each(|what| note(what.to_owned()));
            Some((json, item.number))
        }
        Err(why) => {
            note(format!("no JSON ({why}); left out"));
            None
        }
    }
}

/// One line of a log as JSON; a broken one is noted.
fn line(path: &Path, line: &LogLine, notes: &mut Vec<Note>) -> Option<Json> {
    let mut note = |what: String| notes.push(Note::new(path, Some(line.number), what));
    match json::read(&line.bytes) {
        Ok((json, changed)) => {
            changed.into_iter().for_each(|what| note(what.to_owned()));
            Some(json)
        }
        Err(_) if !line.ended => {
            note("the last line is cut off; left out".to_owned());
            None
        }
        Err(why) => {
            note(format!("no JSON ({why}); left out"));
            None
        }
    }
}

/// The name of a file without what follows its first dot.
fn stem(path: &Path) -> &str {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or("conversation");
    name.split('.').next().filter(|stem| !stem.is_empty()).unwrap_or(name)
}

/// What a file is by its name.
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
