//! Why a bundle cannot be written or read: where, what, and what to do about it.

use std::io;

use tine_core::json::JsonError;
use tine_core::{ConversationId, Digest, ErrorKind, TurnId};
use tine_engine::Imported;

/// A bundle that cannot be written or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BundleError {
    /// A line is not what it must be. Nothing of the bundle was imported.
    #[error("line {line} of the bundle: {fault}")]
    Line {
        /// Counted from 1.
        line: u64,
        /// What is wrong with it.
        #[source]
        fault: Fault,
    },
    /// The input failed.
    #[error("the bundle could not be read beyond line {line}: {source}; nothing was imported")]
    Read {
        /// The last whole line.
        line: u64,
        /// What the system said.
        source: io::Error,
    },
    /// The output failed; what is there lacks its end line and is recognised as cut.
    #[error("the bundle could not be written: {source}; remove what is there and export again")]
    Write {
        /// What the system said.
        source: io::Error,
    },
    /// The copy that a bundle needs that can be read only once.
    #[error(
        "the temporary copy of the bundle failed: {source}; make room, or save the bundle as a \
         file and import that"
    )]
    Spool {
        /// What the system said.
        source: io::Error,
    },
    /// A record of the store contradicts its hash or points nowhere.
    #[error("the {record} cannot be exported: {fault}")]
    Damaged {
        /// Which one.
        record: String,
        /// What is wrong with it.
        #[source]
        fault: Fault,
    },
    /// The engine could not export.
    #[error(transparent)]
    Engine(#[from] tine_engine::Error),
    /// The bundle is sound, but a conversation does not fit into this store.
    #[error(
        "the conversation `{conversation}` (line {line} of the bundle) was refused: {source}; \
         nothing of it was stored, and the {} before it stay as imported",
        imported.conversations + imported.extended + imported.unchanged
    )]
    Refused {
        /// Which one.
        conversation: ConversationId,
        /// Where it begins.
        line: u64,
        /// What was imported before it.
        imported: Imported,
        /// Why.
        source: Box<tine_engine::Error>,
    },
}

impl BundleError {
    /// Returns the kind that surfaces report.
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

/// What is wrong with one line, or with the record that it would hold.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// Something else than a bundle.
    #[error(
        "this is not a Tine bundle: one begins with the line \
         {{\"format\":\"tine-bundle\",\"version\":{}}}",
        super::VERSION
    )]
    NotABundle,
    /// Something else than a delta.
    #[error("this is not what came behind an entry of a log; ask the other side again")]
    NotADelta,
    /// A delta that does not tell what its header says.
    #[error("it does not hold exactly what its first line says: {what}; ask the other side again")]
    OtherDelta {
        /// In which way.
        what: &'static str,
    },
    /// A bundle of another release.
    #[error(
        "the bundle has version {found} and this release reads version {}; import it with the \
         release that wrote it, or with a newer one",
        super::VERSION
    )]
    Version {
        /// What the header says.
        found: u64,
    },
    /// No JSON.
    #[error("it is not valid JSON: {0}; get the bundle again")]
    Json(#[from] JsonError),
    /// JSON, and no object.
    #[error("it must hold an object, not {found}")]
    NotAnObject {
        /// What it holds.
        found: &'static str,
    },
    /// Valid JSON in another spelling.
    #[error(
        "it is not in canonical form (RFC 8785: keys sorted, no spaces, shortest numbers and \
         escapes); a bundle is taken byte for byte, so import it as it was exported"
    )]
    NotCanonical,
    /// A line that does not end.
    #[error("it is longer than {limit} bytes, which is the limit for a line; raise body_bytes")]
    TooLong {
        /// The limit in force.
        limit: usize,
    },
    /// The input stops before the end line, or within a line.
    #[error("the bundle ends here, before its end line: it was cut off; get it again")]
    Cut,
    /// Something follows the end line.
    #[error("something follows the end line; a file holds exactly one bundle")]
    AfterEnd,
    /// A record type of which nothing is known.
    #[error("unknown record type `{record}`; it may come from a newer release")]
    UnknownRecord {
        /// What was found.
        record: String,
    },
    /// A key of which nothing is known.
    #[error("`{key}` is not a key of this {record}; it may come from a newer release")]
    UnknownKey {
        /// The record's type.
        record: &'static str,
        /// The key.
        key: String,
    },
    /// A key is missing.
    #[error("the {record} lacks the key `{key}`")]
    MissingKey {
        /// The record's type.
        record: &'static str,
        /// The key.
        key: &'static str,
    },
    /// A key holds the wrong type.
    #[error("`{key}` must be {expected}, not {found}")]
    WrongType {
        /// The key.
        key: &'static str,
        /// What it should hold.
        expected: &'static str,
        /// What it holds.
        found: &'static str,
    },
    /// A key holds something that it cannot hold.
    #[error("`{key}`: {source}")]
    Value {
        /// The key.
        key: &'static str,
        /// Whether a limit was exceeded.
        too_large: bool,
        /// What is wrong with it.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A key holds the right thing in another spelling than the one that is hashed.
    #[error("`{key}` is spelled `{given}` and must be spelled `{canonical}`")]
    Spelling {
        /// The key.
        key: &'static str,
        /// What it holds.
        given: String,
        /// What it should hold.
        canonical: String,
    },
    /// A record before the conversation that it belongs to.
    #[error("this {record} stands before the conversation that it belongs to")]
    Homeless {
        /// The record's type.
        record: &'static str,
    },
    /// Records of a conversation in another order than the one of the format.
    #[error("this {record} must stand before every {after} of its conversation")]
    Order {
        /// The record's type.
        record: &'static str,
        /// The type of the record before it.
        after: &'static str,
    },
    /// A turn that is not there, or comes only later.
    #[error("`{key}` names the turn {turn}, which does not come before it in the conversation")]
    UnknownTurn {
        /// The key.
        key: &'static str,
        /// The turn.
        turn: TurnId,
    },
    /// Two turns of one id or one hash.
    #[error("the turn {turn}, or another one with its hash, was there before")]
    RepeatedTurn {
        /// The turn.
        turn: TurnId,
    },
    /// Names that are not sorted or occur twice.
    #[error("the {record} `{name}` is repeated or out of order; they are sorted by name")]
    Unsorted {
        /// The record's type.
        record: &'static str,
        /// Its name.
        name: String,
    },
    /// A gap in the operation log.
    #[error("the operation has seq {found} and must have seq {expected}")]
    Seq {
        /// What must come next.
        expected: u64,
        /// What comes.
        found: u64,
    },
    /// A conversation without a log.
    #[error("the conversation `{conversation}` has no operation, not even the one that made it")]
    NoOperation {
        /// Which one.
        conversation: ConversationId,
    },
    /// A record that was made by an operation beyond the end of the log.
    #[error("a record names operation {named}, and the conversation's log ends at {last}")]
    UnknownOperation {
        /// The operation that is named.
        named: u64,
        /// The last operation of the conversation.
        last: u64,
    },
    /// The bytes do not have the hash that stands beside them.
    #[error("the {what} hashes to {computed}, and the record says {stated}: it was altered")]
    Hash {
        /// What was hashed.
        what: String,
        /// What its bytes give.
        computed: Digest,
        /// What stands beside them.
        stated: Digest,
    },
    /// A hash of an earlier record is repeated wrongly.
    #[error("`{key}` is {}, and the record that it means has {}", or_null(stated), or_null(actual))]
    Link {
        /// The key.
        key: &'static str,
        /// What it says.
        stated: Option<Digest>,
        /// What it should say.
        actual: Option<Digest>,
    },
    /// The end line counts something else.
    #[error("the end line counts {stated} {what}, and there are {counted}: lines are missing")]
    Count {
        /// What is counted.
        what: &'static str,
        /// What the end line says.
        stated: u64,
        /// What was seen.
        counted: u64,
    },
    /// The end line's digest is that of other bytes.
    #[error("the end line's sha256 is not that of the lines before it: the bundle was altered")]
    EndDigest,
}

impl Fault {
    /// Returns whether a limit was exceeded, as opposed to a malformed record.
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
