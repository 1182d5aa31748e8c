//! Why a call was refused, with what a caller needs to continue.

use std::any::Any;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tine_core::json::JsonError;
use tine_core::message::MessageError;
use tine_core::metadata::MetadataError;
use tine_core::{CommitHash, ConversationId, ErrorKind, Name, TurnHash, TurnId};

/// What every operation returns.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a call was refused: a kind, a sentence, and details for programs.
///
/// This is the form in which every surface reports errors; the same refusal reads the same
/// whether the engine runs in this process or behind a server.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Error {
    /// The stable code of its kind.
    #[serde(rename = "code")]
    pub kind: ErrorKind,
    /// A sentence that says what is wrong and what to do.
    pub message: String,
    /// What a caller needs to continue.
    #[serde(flatten)]
    pub details: Box<ErrorDetails>,
    /// The error as the engine or the store reported it, if it happened in this process.
    #[serde(skip)]
    pub source: Option<Arc<dyn std::error::Error + Send + Sync>>,
}

impl Error {
    /// Returns an error with a sentence and nothing else.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        let (message, details) = (message.into(), Box::default());
        Error { kind, message, details, source: None }
    }

    /// Returns an error about the request itself.
    pub fn invalid(message: impl Into<String>) -> Self {
        Error::new(ErrorKind::Invalid, message)
    }

    /// The kind that surfaces report.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Returns the error that caused this one, if it is of a type.
    pub fn source_as<T: std::error::Error + 'static>(&self) -> Option<&T> {
        self.source.as_deref().and_then(|source| source.downcast_ref())
    }
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}

/// Implements conversion from errors of the core, which describe themselves.
macro_rules! from_core_errors {
    ($($type:ty: |$error:ident| $kind:expr;)*) => {
        $(impl From<$type> for Error {
            fn from($error: $type) -> Self {
                Error::new($kind, $error.to_string())
            }
        })*

        impl Error {
            /// Returns the refusal of a value that [`tine_core::request`] kept, if it is an error
            /// of the core or of this crate.
            pub fn of_refused_value(refused: Box<dyn Any + Send>) -> Option<Self> {
                let refused = match refused.downcast::<Error>() {
                    Ok(error) => return Some(*error),
                    Err(other) => other,
                };
                $(let refused = match refused.downcast::<$type>() {
                    Ok(error) => return Some(Error::from(*error)),
                    Err(other) => other,
                };)*
                refused.downcast::<JsonError>().ok().map(|error| Error::from(*error))
            }
        }
    };
}

from_core_errors! {
    tine_core::ids::NameError: |error| match error.is_too_long() {
        true => ErrorKind::TooLarge,
        false => ErrorKind::Invalid,
    };
    tine_core::reference::ReferenceError: |error| ErrorKind::Invalid;
    tine_core::time::TimestampError: |error| ErrorKind::Invalid;
    tine_core::hash::DigestError: |error| ErrorKind::Invalid;
    tine_core::metadata::MetadataError: |error| match &error {
        MetadataError::Name(error) if error.is_too_long() => ErrorKind::TooLarge,
        _ => ErrorKind::Invalid,
    };
    tine_core::message::MessageError: |error| match error.is_too_large() {
        true => ErrorKind::TooLarge,
        false => ErrorKind::Invalid,
    };
    tine_core::facts::SchemaError: |error| ErrorKind::Invalid;
}

impl From<JsonError> for Error {
    fn from(error: JsonError) -> Self {
        let kind = if error.is_too_deep() { ErrorKind::TooLarge } else { ErrorKind::Invalid };
        Error::new(kind, format!("invalid JSON: {error}"))
    }
}

impl Error {
    /// Returns an error about one message of a call.
    pub fn message(index: usize, error: &MessageError) -> Self {
        let kind = if error.is_too_large() { ErrorKind::TooLarge } else { ErrorKind::Invalid };
        let mut refusal = Error::new(kind, format!("message {index}: {error}"));
        refusal.details.message_index = Some(index);
        refusal
    }
}

/// What a caller needs to continue after a refusal; each field is present only where it applies.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Particulars")]
pub struct ErrorDetails {
    /// Index of the refused message in the call, from 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_index: Option<usize>,
    /// The kind of record that does not exist, such as `conversation`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<String>,
    /// Everything that an ambiguous reference could mean.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub candidates: Vec<Candidate>,
    /// The actual tip of the branch, if the expected one is wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actual_tip: Option<ActualTip>,
    /// The records that refer to the one to be removed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub references: Vec<Referrer>,
    /// Later operations that depend on the one that should be undone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub depended_on_by: Vec<u64>,
    /// The operation that deleted the named turn; undoing it restores the turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deleted_by: Option<u64>,
    /// The title that is set already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub present_title: Option<String>,
    /// Whether the root was named where a turn is required.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_root: bool,
    /// Tool calls without results that prevent a path from being rendered.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub open_calls: Vec<TurnOpenCalls>,
    /// The token limit that the end of a path would fit in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub needed_tokens: Option<u64>,
}

/// A turn with tool calls that have no result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "OpenCalls")]
pub struct TurnOpenCalls {
    /// The turn.
    #[serde(rename = "turn_id")]
    pub turn: TurnId,
    /// The ids of its open calls.
    #[serde(rename = "call_ids")]
    pub calls: Vec<String>,
}

/// One of several records that a reference could mean.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Candidate {
    /// The conversation it lies in.
    #[serde(rename = "conversation_id")]
    pub conversation: ConversationId,
    /// The turn; `null` is the root.
    #[serde(rename = "turn_id")]
    pub turn: Option<TurnId>,
    /// The turn's hash.
    #[serde(rename = "turn_hash")]
    pub hash: Option<TurnHash>,
    /// The commit, where commits were looked for.
    #[serde(rename = "commit_hash", default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<CommitHash>,
}

/// Where a branch ends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ActualTip {
    /// The branch.
    pub branch: Name,
    /// The turn; `null` is the root.
    #[serde(rename = "turn_id")]
    pub turn: Option<TurnId>,
    /// The turn's hash.
    #[serde(rename = "turn_hash")]
    pub hash: Option<TurnHash>,
}

/// A record that refers to a turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Pointer")]
pub struct Referrer {
    /// The kind of record.
    pub what: String,
    /// The name or id of the record.
    pub name: String,
}
