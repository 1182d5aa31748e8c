//! One module for each format.

mod claude_code;

use std::path::Path;

use crate::input::Input;
use crate::{Error, Receiver};

/// Whose files they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Format {
    /// Sessions of Claude Code.
    ClaudeCode,
}

impl Format {
    /// Every format.
    pub const ALL: &[Format] = &[Format::ClaudeCode];

    /// Its name, which also begins the ids of its conversations.
    pub fn name(self) -> &'static str {
        match self {
            Format::ClaudeCode => "claude-code",
        }
    }

    /// What it is, for people.
    pub fn title(self) -> &'static str {
        match self {
            Format::ClaudeCode => "Claude Code",
        }
    }

    /// The format of that name.
    pub fn named(name: &str) -> Option<Format> {
        Format::ALL.iter().copied().find(|format| format.name() == name)
    }

    /// Whether a file holds one conversation, which only ever grows: what was read of it need not
    /// be read again as long as the file is as it was.
    pub(crate) fn is_log(self) -> bool {
        matches!(self, Format::ClaudeCode)
    }
}

/// Reads a file or a folder of a known format.
pub(crate) fn read(
    format: Format,
    input: &Input,
    path: &Path,
    receiver: &mut dyn Receiver,
) -> Result<(), Error> {
    match format {
        Format::ClaudeCode => claude_code::read(input, path, receiver),
    }
}
