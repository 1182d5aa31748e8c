//! What can go wrong underneath the rules.

use std::path::PathBuf;

use tine_core::Kind;

/// A failure of the store itself, as opposed to a request that the rules refuse.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// There is nothing at this place.
    #[error("there is no store at {path}")]
    Missing {
        /// Where it was looked for.
        path: PathBuf,
    },
    /// Something else lives there.
    #[error("{path} is not a Tine store ({why}); give a new or an empty folder")]
    NotAStore {
        /// Where it was looked for.
        path: PathBuf,
        /// How that was seen.
        why: String,
    },
    /// Written by a later release.
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
    /// Somebody else holds the store for longer than anybody should.
    #[error("the store is busy: another program has held it for {waited_ms} ms; try again")]
    Busy {
        /// How long this call waited.
        waited_ms: u64,
    },
    /// Something needs the store for itself, and somebody has it open.
    #[error("the store at {path} is in use; stop every program that has it open, and try again")]
    InUse {
        /// The store.
        path: PathBuf,
    },
    /// A record is not what it must be.
    #[error("the record {record} is damaged: {why}")]
    Corrupt {
        /// Which one.
        record: String,
        /// How that was seen.
        why: String,
    },
    /// A file of the store is not what it must be, and nothing in it can be relied on.
    #[error("{path} is damaged: {why}; restore the whole folder from a backup, or repair it")]
    DamagedFile {
        /// Which one.
        path: PathBuf,
        /// How that was seen.
        why: String,
    },
    /// The disk is full. Nothing of the call was stored.
    #[error("the disk is full; free some space and try again")]
    DiskFull,
    /// An earlier write failed half-way and the outcome is unknown until the store is reopened.
    #[error("the store stopped after a failed write ({why}); reopen it")]
    Stopped {
        /// The first failure.
        why: String,
    },
    /// The store may not be changed.
    #[error("the store at {path} is read-only; change its permissions, or copy it elsewhere")]
    ReadOnly {
        /// The store.
        path: PathBuf,
    },
    /// A store that is read without any right to write was changed by somebody who has it.
    #[error("the store was changed while it was read without write access; try again")]
    ChangedMeanwhile,
    /// The database does not answer. Nothing of the call was stored.
    #[error("the database cannot be reached ({why}); nothing was stored; try again in a moment")]
    Unreachable {
        /// What was seen.
        why: String,
    },
    /// The database went away in the middle of a commit and did not come back in time.
    #[error(
        "the database went away before it said whether the call was stored ({why}); repeat it \
         with the same idempotency key"
    )]
    InDoubt {
        /// What was seen.
        why: String,
    },
    /// The database said no.
    #[error("the database failed: {why}")]
    Database {
        /// What it said.
        why: String,
    },
    /// An address that leads nowhere.
    #[error("the address of the database is wrong: {why}")]
    Address {
        /// What is wrong with it.
        why: String,
    },
    /// This sort of store cannot do that.
    #[error("{0}")]
    Unsupported(&'static str),
    /// The rules asked for something that the contract forbids: a defect in Tine.
    #[error("defect: {0}")]
    Contract(String),
    /// The file system said no.
    #[error("{doing} {path}: {source}")]
    Io {
        /// What was being done.
        doing: &'static str,
        /// To what.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The storage engine failed in a way that no other variant describes.
    #[error("the embedded store failed: {0}")]
    Backend(Box<dyn std::error::Error + Send + Sync>),
}

impl StoreError {
    /// The kind that surfaces report.
    pub fn kind(&self) -> Kind {
        match self {
            StoreError::Missing { .. } => Kind::NotFound,
            StoreError::NotAStore { .. }
            | StoreError::NewerFormat { .. }
            | StoreError::Address { .. } => Kind::Invalid,
            StoreError::Busy { .. }
            | StoreError::InUse { .. }
            | StoreError::ChangedMeanwhile
            | StoreError::Unreachable { .. }
            | StoreError::InDoubt { .. } => Kind::Busy,
            StoreError::Unsupported(_) => Kind::Unsupported,
            StoreError::Corrupt { .. } | StoreError::DamagedFile { .. } => Kind::Corrupt,
            StoreError::ReadOnly { .. } => Kind::Forbidden,
            StoreError::Io { source, .. }
                if source.kind() == std::io::ErrorKind::PermissionDenied =>
            {
                Kind::Forbidden
            }
            StoreError::DiskFull
            | StoreError::Stopped { .. }
            | StoreError::Contract(_)
            | StoreError::Database { .. }
            | StoreError::Io { .. }
            | StoreError::Backend(_) => Kind::Internal,
        }
    }
}
