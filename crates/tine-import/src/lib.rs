//! Conversations out of other programs' files.
//!
//! Each module of [`formats`] knows one format and nothing else: it reads files and hands out
//! [`Conversation`]s, trees in a form that belongs to nobody. [`detect`] tells which format a file
//! has, and [`land`] puts a tree into a store.
//!
//! Invariants:
//!
//! - A conversation is handed out whole or not at all, and one is held at a time: memory does not
//!   grow with the number of conversations in a file.
//! - Whatever a file leaves out, repeats or contradicts is a [`Note`] with file and line; nothing
//!   is guessed silently, and no input is a reason to panic.
//! - Nothing is written but by [`land`], and no name in a file or an archive leads to a path.
//!
//! Deliberately absent: the terminal, and any rule of the tree.

pub mod detect;
mod draft;
mod formats;
mod input;
mod json;
pub mod land;
mod parts;
mod tree;

use std::path::{Path, PathBuf};

use tine_core::{Message, Timestamp};

pub use formats::Format;
pub use input::{Bounds, Counter};

/// A conversation as some program kept it.
#[derive(Clone, Debug, Default)]
pub struct Conversation {
    /// Its id there.
    pub id: String,
    /// The conversation that it was forked off and repeats the beginning of: it goes on there, if
    /// that is known.
    pub forked_from: Option<String>,
    /// Ids of messages are the same wherever they are repeated: it goes on where its first message
    /// is known.
    pub shares_ids: bool,
    /// Times are those of the file and not of the messages: a message that is repeated has another.
    pub timeless: bool,
    /// Its title.
    pub title: Option<String>,
    /// The folder that it was about.
    pub folder: Option<String>,
    /// What the model was told before the first message.
    pub system_prompt: Option<String>,
    /// When it began.
    pub created_at: Option<Timestamp>,
    /// When it was last changed.
    pub updated_at: Option<Timestamp>,
    /// Its messages, parents first.
    pub messages: Vec<Node>,
    /// Its lines.
    pub lines: Vec<Line>,
    /// Other conversations that it started.
    pub started: Vec<Started>,
    /// What had to be left out or made up.
    pub notes: Vec<Note>,
}

/// One message.
#[derive(Clone, Debug)]
pub struct Node {
    /// Its id in its file.
    pub id: String,
    /// The place of the message before it; `None` for a first one.
    pub parent: Option<usize>,
    /// What was said, by whom and when.
    pub message: Message,
    /// Files that came with it.
    pub attachments: Vec<Attachment>,
}

/// A file that came with a message.
#[derive(Clone, Debug)]
pub struct Attachment {
    /// Its name.
    pub name: Option<String>,
    /// What it is.
    pub mime_type: String,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// A line from the first message to one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The place of its last message.
    pub tip: usize,
    /// What the branch is called; a line without a name was left behind.
    pub branch: Option<String>,
}

/// A conversation that a message started, such as a subagent's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Started {
    /// The id of that conversation.
    pub conversation: String,
    /// The place of the message.
    pub by: usize,
}

/// Something that a file left out, repeated or contradicted, and what was made of it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Note {
    /// The file; of an archive also the member.
    pub file: PathBuf,
    /// The line, from 1; of a conversation in a larger document the conversation's number.
    pub line: Option<u64>,
    /// What it is.
    pub what: String,
}

impl Note {
    pub(crate) fn new(file: &Path, line: Option<u64>, what: impl Into<String>) -> Self {
        Note { file: file.to_owned(), line, what: what.into() }
    }
}

/// Takes what is read.
pub trait Receiver {
    /// One whole conversation. Its file says which program it comes from.
    fn conversation(&mut self, format: Format, conversation: Conversation) -> Result<(), Error>;
    /// Something that belongs to no conversation.
    fn note(&mut self, note: Note);
}

/// Why reading stopped.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file could not be read.
    #[error("{} cannot be read: {source}", file.display())]
    Read {
        /// The file.
        file: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file is not what it seemed to be.
    #[error("{}: {what}", file.display())]
    Malformed {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// Nothing here reads such a file.
    #[error(
        "{}: no format that Tine reads; `tine import --help` lists them, --format names one",
        file.display()
    )]
    Unknown {
        /// The file.
        file: PathBuf,
    },
    /// More than may be unpacked.
    #[error(
        "{}: more than {limit} bytes come out of it; unpack it yourself if you trust it, and \
         import what is inside",
        file.display()
    )]
    TooLarge {
        /// The file.
        file: PathBuf,
        /// The bound.
        limit: u64,
    },
    /// The store refused.
    #[error(transparent)]
    Refused(#[from] tine_engine::Error),
}
