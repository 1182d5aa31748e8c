//! Why the engine refuses a call, with what the caller needs to continue.

use tine_api::{ActualTip, Candidate, ErrorDetails, Referrer};
use tine_core::ids::NameError;
use tine_core::json::JsonError;
use tine_core::message::MessageError;
use tine_core::metadata::MetadataError;
use tine_core::reference::ReferenceError;
use tine_core::text::SplitError;
use tine_core::{ErrorKind, Name, TurnHash, TurnId};
use tine_store::StoreError;

/// A refused request or a failed store.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The request is wrong in itself.
    #[error("{0}")]
    Invalid(String),
    /// A message cannot be taken; nothing of its call was stored.
    #[error("message {index}: {source}")]
    Message {
        /// Its position in the call, from 0.
        index: usize,
        /// What is wrong with it.
        source: MessageError,
    },
    /// A name or an id cannot be used.
    #[error(transparent)]
    Name(#[from] NameError),
    /// A reference cannot mean anything.
    #[error(transparent)]
    Reference(#[from] ReferenceError),
    /// Metadata cannot be used.
    #[error(transparent)]
    Metadata(#[from] MetadataError),
    /// JSON that is none.
    #[error("invalid JSON: {0}")]
    Json(#[from] JsonError),
    /// A text cannot be cut there.
    #[error(transparent)]
    Split(#[from] SplitError),
    /// Nothing has this name.
    #[error("there is no {what} `{name}`{advice}")]
    NotFound {
        /// What was looked for.
        what: &'static str,
        /// Under which name.
        name: String,
        /// What to do about it: empty, or a clause that begins with a semicolon.
        advice: &'static str,
    },
    /// The turn was deleted.
    #[error("the turn {turn} is deleted; `undo` of operation {operation} brings it back")]
    DeletedTurn {
        /// Which one.
        turn: TurnId,
        /// The operation that deleted it.
        operation: u64,
    },
    /// Several things have this name.
    #[error(
        "`{name}` could mean {} different things; {advice}",
        candidates.len()
    )]
    Ambiguous {
        /// What was looked for.
        name: String,
        /// All that it could mean.
        candidates: Vec<Candidate>,
        /// How to tell them apart.
        advice: &'static str,
    },
    /// The branch does not end where the caller thought.
    #[error(
        "the branch `{branch}` ends on {}, not on {}; read it again, or append with \
         on_conflict: fork",
        turn_or_root(actual),
        turn_or_root(expected)
    )]
    Conflict {
        /// The branch.
        branch: Name,
        /// Where the caller thought that it ends.
        expected: Option<TurnId>,
        /// Where it ends.
        actual: Option<TurnId>,
        /// The hash of that turn.
        actual_hash: Option<TurnHash>,
    },
    /// The branch has changed since the caller has seen it.
    #[error("the branch `{branch}` has been changed since it was read; read it again")]
    Stale {
        /// The branch.
        branch: Name,
        /// Where it ends.
        actual: Option<TurnId>,
        /// The hash of that turn.
        actual_hash: Option<TurnHash>,
    },
    /// Something of this name is there already.
    #[error("there is a {what} `{name}` already{advice}")]
    Exists {
        /// What.
        what: &'static str,
        /// Its name.
        name: String,
        /// What to do about it: empty, or a clause that begins with a semicolon.
        advice: &'static str,
    },
    /// Titles are stable once set.
    #[error("the title is already `{title}`; force replaces it")]
    TitleSet {
        /// The present title.
        title: String,
    },
    /// The key was used for something else.
    #[error(
        "the idempotency key `{key}` was used before for a different request; a new request needs \
         a new key"
    )]
    IdempotencyMismatch {
        /// The key.
        key: String,
    },
    /// The root is not given up.
    #[error(
        "the root is not a turn and cannot be {0}; to be rid of it all, archive or purge the conversation"
    )]
    Root(&'static str),
    /// A turn was asked for, and the root was named.
    #[error("that is the root of the conversation, not a turn")]
    NotATurn,
    /// Something from elsewhere points at what should go.
    #[error("{} point{} at it ({}); take that back first, or delete by force",
        references.len(),
        if references.len() == 1 { "er" } else { "ers" },
        list(references.iter().map(|found| format!("{} {}", found.what, found.name))))]
    Referenced {
        /// All of them.
        references: Vec<Referrer>,
    },
    /// Later work builds on what should be undone.
    #[error(
        "operation {operation} cannot be {verb}: operation{} {} build{} on it; undo {} first",
        if by.len() == 1 { "" } else { "s" },
        list(by.iter()),
        if by.len() == 1 { "s" } else { "" },
        if by.len() == 1 { "that one" } else { "those" }
    )]
    DependedOn {
        /// The operation.
        operation: u64,
        /// `undone` or `redone`.
        verb: &'static str,
        /// The later ones.
        by: Vec<u64>,
    },
    /// What an operation wrote has been changed from elsewhere since.
    #[error("operation {operation} cannot be {verb}: {what} has been changed since")]
    ChangedSince {
        /// The operation.
        operation: u64,
        /// `undone` or `redone`.
        verb: &'static str,
        /// What was changed.
        what: String,
    },
    /// The operation makes no sense here.
    #[error("{0}")]
    Unsupported(String),
    /// Over a limit.
    #[error("{what}: at most {limit}, not {given}; nothing was stored")]
    TooLarge {
        /// Which limit.
        what: &'static str,
        /// The limit in force.
        limit: usize,
        /// What was given.
        given: usize,
    },
    /// More of a conversation is new than travels at once.
    #[error(
        "what is new of it takes more than {}, which is more than travels to or from a server at \
         once; nothing was stored. Sync with the store itself, by its folder or address, where \
         this has no bound, or take it there as a bundle (export, import)",
        mebibytes(*limit)
    )]
    LongDelta {
        /// The limit in force, in bytes.
        limit: usize,
    },
    /// Something is here that was erased on the other side.
    #[error(
        "the other side has erased something of it for ever ({turns} turns, {sources} sources); \
         what is here was kept, and nothing was taken over"
    )]
    WouldErase {
        /// Turns that would say nothing any more.
        turns: usize,
        /// Sources whose bytes would go.
        sources: usize,
    },
    /// An erasure is stored, but bytes of it may linger in free pages.
    #[error(
        "it is erased, but the store could not sweep its free pages ({0}); once that is mended, \
         the next purge or sync in this project does, or the start of a server"
    )]
    NotSwept(StoreError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A server refused, on the other side of a sync.
    #[error(transparent)]
    Remote(#[from] tine_api::Error),
}

impl From<tine_core::facts::SchemaError> for Error {
    fn from(error: tine_core::facts::SchemaError) -> Self {
        Error::Invalid(error.why)
    }
}

fn mebibytes(bytes: usize) -> String {
    match bytes >> 20 {
        0 => format!("{bytes} bytes"),
        whole => format!("{whole} MiB"),
    }
}

/// Refuses to take away what something from elsewhere points at.
pub(crate) fn refuse_referenced(references: Vec<Referrer>) -> Result<(), Error> {
    if references.is_empty() { Ok(()) } else { Err(Error::Referenced { references }) }
}

impl Error {
    /// Returns the kind that surfaces report.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Error::Name(error) if error.is_too_long() => ErrorKind::TooLarge,
            Error::Message { source, .. } if source.is_too_large() => ErrorKind::TooLarge,
            Error::Metadata(MetadataError::Name(error)) if error.is_too_long() => {
                ErrorKind::TooLarge
            }
            Error::Json(error) if error.is_too_deep() => ErrorKind::TooLarge,
            Error::Invalid(_)
            | Error::Message { .. }
            | Error::Name(_)
            | Error::Reference(_)
            | Error::Metadata(_)
            | Error::Json(_)
            | Error::Split(_)
            | Error::NotATurn => ErrorKind::Invalid,
            Error::NotFound { .. } | Error::DeletedTurn { .. } => ErrorKind::NotFound,
            Error::Ambiguous { .. } => ErrorKind::Ambiguous,
            Error::Conflict { .. }
            | Error::Stale { .. }
            | Error::Exists { .. }
            | Error::TitleSet { .. } => ErrorKind::Conflict,
            Error::IdempotencyMismatch { .. } => ErrorKind::IdempotencyMismatch,
            Error::Root(_)
            | Error::Referenced { .. }
            | Error::DependedOn { .. }
            | Error::ChangedSince { .. }
            | Error::WouldErase { .. } => ErrorKind::Protected,
            Error::Unsupported(_) => ErrorKind::Unsupported,
            Error::TooLarge { .. } | Error::LongDelta { .. } => ErrorKind::TooLarge,
            Error::Store(error) | Error::NotSwept(error) => error.kind(),
            Error::Remote(error) => error.kind,
        }
    }

    /// Returns what a caller needs to go on.
    pub fn details(&self) -> ErrorDetails {
        let mut found = ErrorDetails::default();
        match self {
            Error::Message { index, .. } => found.message_index = Some(*index),
            Error::Ambiguous { candidates, .. } => found.candidates.clone_from(candidates),
            Error::Conflict { branch, actual, actual_hash, .. }
            | Error::Stale { branch, actual, actual_hash } => {
                let (branch, turn, hash) = (branch.clone(), *actual, *actual_hash);
                found.actual_tip = Some(ActualTip { branch, turn, hash });
            }
            Error::Referenced { references } => found.references.clone_from(references),
            Error::DependedOn { by, .. } => found.depended_on_by.clone_from(by),
            Error::DeletedTurn { operation, .. } => found.deleted_by = Some(*operation),
            Error::TitleSet { title } => found.present_title = Some(title.clone()),
            Error::NotATurn => found.is_root = true,
            Error::NotFound { what, .. } => found.missing = Some((*what).to_owned()),
            Error::Store(StoreError::Missing { .. }) => found.missing = Some("store".to_owned()),
            Error::Remote(error) => return (*error.details).clone(),
            _ => {}
        }
        found
    }

    pub(crate) fn invalid(why: impl Into<String>) -> Self {
        Error::Invalid(why.into())
    }

    pub(crate) fn not_found(what: &'static str, name: impl ToString) -> Self {
        Error::NotFound { what, name: name.to_string(), advice: "" }
    }
}

fn turn_or_root(turn: &Option<TurnId>) -> String {
    turn.map_or_else(|| "the root".to_owned(), |turn| turn.to_string())
}

fn list(items: impl Iterator<Item = impl ToString>) -> String {
    items.map(|item| item.to_string()).collect::<Vec<_>>().join(", ")
}

impl From<Error> for tine_api::Error {
    fn from(error: Error) -> Self {
        match error {
            Error::Remote(error) => error,
            error => tine_api::Error {
                kind: error.kind(),
                message: error.to_string(),
                details: Box::new(error.details()),
                source: Some(std::sync::Arc::new(error)),
            },
        }
    }
}
