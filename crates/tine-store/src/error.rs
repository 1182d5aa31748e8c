//! Errors of stores.

use std::path::PathBuf;

use tine_core::ErrorKind;

/// A failure of the store itself, as opposed to a request that the engine rejects.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say what the variants mean")]
pub enum StoreError {
    #[error("there is no store at {path}")]
    Missing { path: PathBuf },
    #[error("{path} is not a Tine store ({why}); give a new or an empty folder")]
    NotAStore { path: PathBuf, why: String },
    #[error(
        "the store at {path} has format {found}, and this release knows formats up to {known}; \
         install a newer release"
    )]
    NewerFormat { path: PathBuf, found: i64, known: i64 },
    #[error("the store is busy: another program has held it for {waited_ms} ms; try again")]
    Busy { waited_ms: u64 },
    #[error("the store at {path} is in use; stop every program that has it open, and try again")]
    InUse { path: PathBuf },
    #[error("the record {record} is damaged: {why}")]
    Corrupt { record: String, why: String },
    #[error("{path} is damaged: {why}; restore the whole folder from a backup, or repair it")]
    DamagedFile { path: PathBuf, why: String },
    /// The disk is full. Nothing was stored.
    #[error("the disk is full; free some space and try again")]
    DiskFull,
    /// An earlier commit failed, and its outcome is unknown until the store is reopened.
    #[error("the store stopped after a failed write ({why}); reopen it")]
    Stopped { why: String },
    #[error("the store at {path} is read-only; change its permissions, or copy it elsewhere")]
    ReadOnly { path: PathBuf },
    #[error("the store was changed while it was read without write access; try again")]
    ChangedMeanwhile,
    /// The database does not answer. Nothing was stored.
    #[error("the database cannot be reached ({why}); nothing was stored; try again in a moment")]
    Unreachable { why: String },
    #[error(
        "the database went away before it said whether the call was stored ({why}); repeat it \
         with the same idempotency key"
    )]
    InDoubt { why: String },
    #[error("the database failed: {why}")]
    Database { why: String },
    #[error("the address of the database is wrong: {why}")]
    Address { why: String },
    #[error("{0}")]
    Unsupported(&'static str),
    /// The engine violated the store's contract: a defect in Tine.
    #[error("defect: {0}")]
    Contract(String),
    #[error("{doing} {path}: {source}")]
    Io {
        /// The action, as a verb in -ing.
        doing: &'static str,
        path: PathBuf,
        source: std::io::Error,
    },
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
