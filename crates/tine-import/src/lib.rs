//! Imports conversations from files of other programs.
//!
//! Each module of [`formats`] reads one format and produces [`ImportedConversation`]s: trees in a
//! format-independent form. [`detect`] recognises the format of a file, and [`importer`] writes the
//! trees into a store.
//!
//! Invariants:
//!
//! - A conversation is passed on completely or not at all, and one is in memory at a time.
//! - Whatever a file leaves out, repeats or contradicts is a [`Note`] with file and line; nothing
//!   is guessed silently, and no input is a reason to panic.
//! - Only [`importer`] writes, and no name in a file or an archive is used as a path.
//!
//! Not included: terminal output and rules of the tree.

pub mod detect;
mod draft;
mod formats;
pub mod importer;
mod input;
mod json;
mod parts;
mod tree;

use std::path::{Path, PathBuf};

use tine_core::{Message, Timestamp};

pub use formats::ImportFormat;
pub use input::{Bounds, ByteCounter};

/// A conversation read from a file.
#[derive(Clone, Debug, Default)]
pub struct ImportedConversation {
    /// The id in the program that wrote it.
    pub id: String,
    /// The conversation that it was forked from, whose beginning it repeats. It is imported into
    /// that conversation if it was imported before.
    pub forked_from: Option<String>,
    /// Whether repeated messages keep their ids. The conversation is then imported into the one that
    /// already has its first message.
    pub shares_ids: bool,
    /// Whether times are those of the file rather than of the messages, so that a repeated message
    /// has another time.
    pub timeless: bool,
    /// The title.
    pub title: Option<String>,
    /// The working folder.
    pub folder: Option<String>,
    /// The system prompt.
    pub system_prompt: Option<String>,
    /// The start time.
    pub created_at: Option<Timestamp>,
    /// The time of the last change.
    pub updated_at: Option<Timestamp>,
    /// Messages, parents first.
    pub messages: Vec<ImportedMessage>,
    /// Paths that become branches or abandoned tails.
    pub paths: Vec<ImportedPath>,
    /// Other conversations that it started.
    pub started: Vec<SpawnedConversation>,
    /// What was left out or assumed.
    pub notes: Vec<Note>,
}

/// One message of an imported conversation.
#[derive(Clone, Debug)]
pub struct ImportedMessage {
    /// The id in the file.
    pub id: String,
    /// The index of the parent; `None` for a first message.
    pub parent: Option<usize>,
    /// Content, role and time.
    pub message: Message,
    /// Files that came with it.
    pub attachments: Vec<Attachment>,
}

/// A file that came with a message.
#[derive(Clone, Debug)]
pub struct Attachment {
    /// The file name.
    pub name: Option<String>,
    /// The media type.
    pub mime_type: String,
    /// The content.
    pub bytes: Vec<u8>,
}

/// A path from a first message to a tip.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportedPath {
    /// The index of its last message.
    pub tip: usize,
    /// The name of the branch; an abandoned path has none.
    pub branch: Option<String>,
}

/// A conversation that a message started, such as a subagent's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpawnedConversation {
    /// The id of that conversation.
    pub conversation: String,
    /// The index of the message.
    pub by: usize,
}

/// Something that a file left out, repeated or contradicted, and how it was imported.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Note {
    /// The file; for an archive, with the member.
    pub file: PathBuf,
    /// The line, from 1; in a list of conversations, the number of the conversation.
    pub line: Option<u64>,
    /// The text of the note.
    pub what: String,
}

impl Note {
    pub(crate) fn new(file: &Path, line: Option<u64>, what: impl Into<String>) -> Self {
        Note { file: file.to_owned(), line, what: what.into() }
    }
}

/// Receives what a format module reads.
pub trait Receiver {
    /// Receives a whole conversation and its format.
    fn conversation(
        &mut self,
        format: ImportFormat,
        conversation: ImportedConversation,
    ) -> Result<(), Error>;
    /// Receives a note that belongs to no conversation.
    fn note(&mut self, note: Note);
}

/// Why reading stopped.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages explain the fields")]
pub enum Error {
    /// A file could not be read.
    #[error("{} cannot be read: {source}", file.display())]
    Read { file: PathBuf, source: std::io::Error },
    /// A file is not what it seemed to be.
    #[error("{}: {what}", file.display())]
    Malformed { file: PathBuf, what: String },
    #[error(
        "{}: unknown format; `tine import --help` lists the formats, --format selects one",
        file.display()
    )]
    Unknown { file: PathBuf },
    /// A file is too large, plain or decompressed.
    #[error(
        "{}: larger than the limit of {limit} bytes; if you trust it, unpack it or split it and \
         import the parts",
        file.display()
    )]
    TooLarge { file: PathBuf, limit: u64 },
    /// The store rejected a conversation.
    #[error(transparent)]
    Refused(#[from] tine_engine::Error),
}
