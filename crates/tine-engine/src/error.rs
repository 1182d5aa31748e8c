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
#[expect(missing_docs, reason = "the messages say what the variants mean")]
pub enum Error {
    #[error("{0}")]
    Invalid(String),
    #[error("message {index}: {source}")]
    Message {
        /// Its position in the call, from 0.
        index: usize,
        source: MessageError,
    },
    #[error(transparent)]
    Name(#[from] NameError),
    #[error(transparent)]
    Reference(#[from] ReferenceError),
    #[error(transparent)]
    Metadata(#[from] MetadataError),
    #[error("invalid JSON: {0}")]
    Json(#[from] JsonError),
    #[error(transparent)]
    Split(#[from] SplitError),
    #[error("there is no {what} `{name}`{advice}")]
    NotFound {
        what: &'static str,
        name: String,
        /// What to do about it: empty, or a clause that begins with a semicolon.
        advice: &'static str,
    },
    #[error("the turn {turn} is deleted; undo operation {operation} to restore it")]
    DeletedTurn { turn: TurnId, operation: u64 },
    #[error(
        "`{name}` could mean {} different things; {advice}",
        candidates.len()
    )]
    Ambiguous {
        name: String,
        candidates: Vec<Candidate>,
        /// How to tell them apart.
        advice: &'static str,
    },
    /// The branch does not end where the caller thought.
    #[error(
        "the branch `{branch}` ends at {}, not at {}; read it again, or append with \
         on_conflict: fork",
        turn_or_root(actual),
        turn_or_root(expected)
    )]
    Conflict {
        branch: Name,
        /// Where the caller thought that it ends.
        expected: Option<TurnId>,
        actual: Option<TurnId>,
        /// The hash of that turn.
        actual_hash: Option<TurnHash>,
    },
    #[error("the branch `{branch}` has been changed since it was read; read it again")]
    Stale {
        branch: Name,
        actual: Option<TurnId>,
        /// The hash of that turn.
        actual_hash: Option<TurnHash>,
    },
    #[error("there is already a {what} `{name}`{advice}")]
    Exists {
        what: &'static str,
        name: String,
        /// What to do about it: empty, or a clause that begins with a semicolon.
        advice: &'static str,
    },
    /// Titles are stable once set.
    #[error("the title is already `{title}`; use force to replace it")]
    TitleSet { title: String },
    #[error(
        "the idempotency key `{key}` was used before for a different request; a new request needs \
         a new key"
    )]
    IdempotencyMismatch { key: String },
    #[error("the root is not a turn and cannot be {0}; archive or purge the conversation instead")]
    Root(&'static str),
    #[error("the root of the conversation is not a turn; name a turn")]
    NotATurn,
    #[error("{} reference{} to it ({}); remove what refers to it first, or force the deletion",
        references.len(),
        if references.len() == 1 { "" } else { "s" },
        list(references.iter().map(|found| format!("{} {}", found.what, found.name))))]
    Referenced { references: Vec<Referrer> },
    #[error(
        "operation {operation} cannot be {verb}: operation{} {} build{} on it; undo {} first",
        if by.len() == 1 { "" } else { "s" },
        list(by.iter()),
        if by.len() == 1 { "s" } else { "" },
        if by.len() == 1 { "that one" } else { "those" }
    )]
    DependedOn { operation: u64, verb: &'static str, by: Vec<u64> },
    /// What an operation wrote has been changed from elsewhere since.
    #[error("operation {operation} cannot be {verb}: {what} has been changed since")]
    ChangedSince { operation: u64, verb: &'static str, what: String },
    #[error("{0}")]
    Unsupported(String),
    /// Over a limit.
    #[error("{what}: at most {limit}, not {given}; nothing was stored")]
    TooLarge { what: &'static str, limit: usize, given: usize },
    #[error(
        "the changes take more than {}, the most that can be sent to or from a server at once; \
         nothing was stored; sync with the store's folder or database instead, or export and \
         import a bundle",
        mebibytes(*limit)
    )]
    LongDelta {
        /// The limit in force, in bytes.
        limit: usize,
    },
    #[error(
        "the other store has purged content that this one still has ({turns} turns, {sources} \
         sources); nothing was changed"
    )]
    WouldErase { turns: usize, sources: usize },
    /// An erasure is stored, but bytes of it may linger in free pages.
    #[error(
        "the content is purged, but the store could not clear its free pages ({0}); fix that, then \
         purge or sync in this project, or restart the server, to finish"
    )]
    NotSwept(StoreError),
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

    /// Returns what a caller needs to continue.
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
