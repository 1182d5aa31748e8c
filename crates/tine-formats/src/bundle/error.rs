//! Why a bundle cannot be written or read: where, what is wrong, and what to do.

use std::io;

use tine_core::json::JsonError;
use tine_core::{ConversationId, Digest, ErrorKind, TurnId};
use tine_engine::Imported;

/// Why a bundle cannot be written or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages explain the fields")]
pub enum BundleError {
    /// A line is invalid. Nothing was imported.
    #[error("line {line} of the bundle: {fault}")]
    Line {
        line: u64,
        #[source]
        fault: Fault,
    },
    /// The input failed after a line.
    #[error("the bundle could not be read beyond line {line}: {source}; nothing was imported")]
    Read { line: u64, source: io::Error },
    /// The output failed; what was written lacks its end line, so that it is recognised as truncated.
    #[error(
        "the bundle could not be written: {source}; remove the incomplete file and export again"
    )]
    Write { source: io::Error },
    /// The temporary copy of a bundle from a stream failed.
    #[error(
        "the temporary copy of the bundle failed: {source}; free disk space, or save the bundle as a \
         file and import that"
    )]
    Spool { source: io::Error },
    /// A record of the store does not match its hash, or refers to a missing record.
    #[error("the {record} cannot be exported: {fault}")]
    Damaged {
        record: String,
        #[source]
        fault: Fault,
    },
    #[error(transparent)]
    Engine(#[from] tine_engine::Error),
    /// The bundle is valid, but the store rejected a conversation.
    #[error(
        "the conversation `{conversation}` (line {line} of the bundle) was rejected: {source}; \
         nothing of it was stored; the {} before it were imported",
        imported.conversations + imported.extended + imported.unchanged
    )]
    Refused {
        conversation: ConversationId,
        line: u64,
        imported: Imported,
        source: Box<tine_engine::Error>,
    },
}

impl BundleError {
    /// Returns the kind of the error.
    pub fn kind(&self) -> ErrorKind {
        match self {
            BundleError::Line { fault, .. } | BundleError::Damaged { fault, .. }
                if fault.is_too_large() =>
            {
                ErrorKind::TooLarge
            }
            BundleError::Line { .. } => ErrorKind::Invalid,
            BundleError::Damaged { .. } => ErrorKind::Corrupt,
            BundleError::Read { .. } | BundleError::Write { .. } | BundleError::Spool { .. } => {
                ErrorKind::Internal
            }
            BundleError::Engine(source) => source.kind(),
            BundleError::Refused { source, .. } => source.kind(),
        }
    }
}

/// What is wrong with a line, or with its record.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages explain the fields")]
pub enum Fault {
    #[error(
        "this is not a Tine bundle: one begins with the line \
         {{\"format\":\"tine-bundle\",\"version\":{}}}",
        super::VERSION
    )]
    NotABundle,
    /// The input is not a delta.
    #[error("this is not a delta of a log; sync again")]
    NotADelta,
    /// A delta does not match its header.
    #[error("it does not match its first line: {what}; sync again")]
    OtherDelta { what: &'static str },
    /// The version of the format is not supported.
    #[error(
        "the bundle has version {found} and this release reads version {}; import it with the \
         release that wrote it, or with a newer one",
        super::VERSION
    )]
    Version { found: u64 },
    /// The line is not JSON.
    #[error("it is not valid JSON: {0}; get the bundle again")]
    Json(#[from] JsonError),
    #[error("it must be an object, not {found}")]
    NotAnObject { found: &'static str },
    #[error(
        "it is not in canonical form (RFC 8785: keys sorted, no spaces, shortest numbers and \
         escapes); import the bundle exactly as it was exported"
    )]
    NotCanonical,
    #[error("it is longer than the limit of {limit} bytes for a line; raise body_bytes")]
    TooLong { limit: usize },
    /// The input ends before the end line, or within a line.
    #[error("the bundle ends here, before its end line: it is truncated; get it again")]
    Cut,
    /// There is input after the end line.
    #[error("there is input after the end line; a file contains exactly one bundle")]
    AfterEnd,
    #[error("unknown record type `{record}`; it may come from a newer release")]
    UnknownRecord { record: String },
    #[error("`{key}` is not a key of this {record}; it may come from a newer release")]
    UnknownKey { record: &'static str, key: String },
    #[error("the {record} lacks the key `{key}`")]
    MissingKey { record: &'static str, key: &'static str },
    /// The value of a key has the wrong type.
    #[error("`{key}` must be {expected}, not {found}")]
    WrongType { key: &'static str, expected: &'static str, found: &'static str },
    #[error("`{key}`: {source}")]
    Value { key: &'static str, too_large: bool, source: Box<dyn std::error::Error + Send + Sync> },
    /// The value of a key is not in canonical form.
    #[error("`{key}` is `{given}`, which must be written `{canonical}`")]
    Spelling { key: &'static str, given: String, canonical: String },
    /// A record comes before its conversation.
    #[error("this {record} comes before its conversation")]
    Homeless { record: &'static str },
    /// The records of a conversation are out of order.
    #[error("this {record} must come before every {after} of its conversation")]
    Order { record: &'static str, after: &'static str },
    /// A turn is missing, or comes later.
    #[error("`{key}` names the turn {turn}, which does not come before it in the conversation")]
    UnknownTurn { key: &'static str, turn: TurnId },
    /// Two turns have the same id or hash.
    #[error("the turn {turn}, or another one with its hash, occurs twice")]
    RepeatedTurn { turn: TurnId },
    /// Names are not sorted, or occur twice.
    #[error("the {record} `{name}` is repeated or out of order; they are sorted by name")]
    Unsorted { record: &'static str, name: String },
    /// The operation log has a gap.
    #[error("the operation has seq {found} and must have seq {expected}")]
    Seq { expected: u64, found: u64 },
    /// A conversation has no log.
    #[error("the conversation `{conversation}` has no operations, not even its creation")]
    NoOperation { conversation: ConversationId },
    /// A record refers to an operation beyond the end of the log.
    #[error("a record names operation {named}, but the conversation's log ends at {last}")]
    UnknownOperation { named: u64, last: u64 },
    #[error("the {what} has the hash {computed}, but the record states {stated}: it was altered")]
    Hash { what: String, computed: Digest, stated: Digest },
    /// The hash of an earlier record is stated wrongly.
    #[error("`{key}` is {}, but the record has {}", or_null(stated), or_null(actual))]
    Link { key: &'static str, stated: Option<Digest>, actual: Option<Digest> },
    /// A count in the end line is wrong.
    #[error("the end line counts {stated} {what}, but there are {counted}: lines are missing")]
    Count { what: &'static str, stated: u64, counted: u64 },
    /// The digest in the end line is wrong.
    #[error("the end line's sha256 does not match the lines before it: the bundle was altered")]
    EndDigest,
}

impl Fault {
    /// Returns whether a limit was exceeded, as opposed to an invalid record.
    pub fn is_too_large(&self) -> bool {
        match self {
            Fault::TooLong { .. } => true,
            Fault::Json(error) => error.is_too_deep(),
            Fault::Value { too_large, .. } => *too_large,
            _ => false,
        }
    }
}

fn or_null(digest: &Option<Digest>) -> String {
    digest.map_or_else(|| "null".to_owned(), |digest| digest.to_string())
}

impl From<BundleError> for tine_api::Error {
    fn from(error: BundleError) -> Self {
        tine_api::Error::new(error.kind(), error.to_string())
    }
}
