//! Errors of stores.

use std::path::PathBuf;

use tine_core::ErrorKind;

/// A failure of the store itself, as opposed to a request that the engine rejects.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// There is no store here.
    #[error("there is no store at {path}")]
    Missing {
        /// The store's path.
        path: PathBuf,
    },
    /// The path holds something else.
    #[error("{path} is not a Tine store ({why}); give a new or an empty folder")]
    NotAStore {
        /// The store's path.
        path: PathBuf,
        /// The evidence.
        why: String,
    },
    /// The store was written by a later release.
    #[error(
        "the store at {path} has format {found}, and this release knows formats up to {known}; \
         install a newer release"
    )]
    NewerFormat {
        /// The store.
        path: PathBuf,
        /// Its format.
        found: i64,
        /// The newest format that this release knows.
        known: i64,
    },
    /// Another program has locked the store for too long.
    #[error("the store is busy: another program has held it for {waited_ms} ms; try again")]
    Busy {
        /// How long this call waited.
        waited_ms: u64,
    },
    /// The call needs exclusive access, and the store is open.
    #[error("the store at {path} is in use; stop every program that has it open, and try again")]
    InUse {
        /// The store.
        path: PathBuf,
    },
    /// A record is damaged.
    #[error("the record {record} is damaged: {why}")]
    Corrupt {
        /// A description of the record.
        record: String,
        /// The evidence.
        why: String,
    },
    /// A file of the store is damaged, and nothing in it can be relied on.
    #[error("{path} is damaged: {why}; restore the whole folder from a backup, or repair it")]
    DamagedFile {
        /// The file.
        path: PathBuf,
        /// The evidence.
        why: String,
    },
    /// The disk is full. Nothing was stored.
    #[error("the disk is full; free some space and try again")]
    DiskFull,
    /// An earlier commit failed, and its outcome is unknown until the store is reopened.
    #[error("the store stopped after a failed write ({why}); reopen it")]
    Stopped {
        /// The first failure.
        why: String,
    },
    /// The store is read-only.
    #[error("the store at {path} is read-only; change its permissions, or copy it elsewhere")]
    ReadOnly {
        /// The store.
        path: PathBuf,
    },
    /// Another process changed the store while it was read without locks.
    #[error("the store was changed while it was read without write access; try again")]
    ChangedMeanwhile,
    /// The database does not answer. Nothing was stored.
    #[error("the database cannot be reached ({why}); nothing was stored; try again in a moment")]
    Unreachable {
        /// The failure.
        why: String,
    },
    /// The connection was lost during a commit, and the database did not answer again in time.
    #[error(
        "the database went away before it said whether the call was stored ({why}); repeat it \
         with the same idempotency key"
    )]
    InDoubt {
        /// The failure.
        why: String,
    },
    /// The database rejected the request.
    #[error("the database failed: {why}")]
    Database {
        /// Its message.
        why: String,
    },
    /// The address of the database is invalid.
    #[error("the address of the database is wrong: {why}")]
    Address {
        /// What is wrong with it.
        why: String,
    },
    /// This kind of store does not support the call.
    #[error("{0}")]
    Unsupported(&'static str),
    /// The engine violated the store's contract: a defect in Tine.
    #[error("defect: {0}")]
    Contract(String),
    /// A file operation failed.
    #[error("{doing} {path}: {source}")]
    Io {
        /// The action, as a verb in -ing.
        doing: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// The storage engine failed in a way that no other variant describes.
    #[error("the embedded store failed: {0}")]
    Backend(Box<dyn std::error::Error + Send + Sync>),
}

impl StoreError {
    /// Returns the kind of error that surfaces report.
    pub fn kind(&self) -> ErrorKind {
        match self {
            StoreError::Missing { .. } => ErrorKind::NotFound,
            StoreError::NotAStore { .. }
            | StoreError::NewerFormat { .. }
            | StoreError::Address { .. } => ErrorKind::Invalid,
            StoreError::Busy { .. }
            | StoreError::InUse { .. }
            | StoreError::ChangedMeanwhile
            | StoreError::Unreachable { .. }
            | StoreError::InDoubt { .. } => ErrorKind::Busy,
            StoreError::Unsupported(_) => ErrorKind::Unsupported,
            StoreError::Corrupt { .. } | StoreError::DamagedFile { .. } => ErrorKind::Corrupt,
            StoreError::ReadOnly { .. } => ErrorKind::Forbidden,
            StoreError::Io { source, .. }
                if source.kind() == std::io::ErrorKind::PermissionDenied =>
            {
                ErrorKind::Forbidden
            }
            StoreError::DiskFull
            | StoreError::Stopped { .. }
            | StoreError::Contract(_)
            | StoreError::Database { .. }
            | StoreError::Io { .. }
            | StoreError::Backend(_) => ErrorKind::Internal,
        }
    }
}
