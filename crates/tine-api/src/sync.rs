//! How far logs have come, and what was received from another store.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tine_core::{ConversationId, Name, OperationHash, TurnId};

/// A position in a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LogMark {
    /// The number of an entry.
    pub seq: u64,
    /// The hash of the entry, which covers all entries before it.
    pub hash: OperationHash,
}

/// How far the log of a conversation has come.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LogEnd {
    /// The conversation.
    #[serde(rename = "conversation_id")]
    pub conversation: ConversationId,
    /// The last entry of the log.
    #[serde(flatten)]
    pub end: LogMark,
}

/// Hashes of entries of a log.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct LogHashes {
    /// In the order of the request; `null` for an entry that the log does not have.
    pub hashes: Vec<Option<OperationHash>>,
}

/// An entry that merged turns of another log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LogMerge {
    /// The number of the entry.
    pub seq: u64,
    /// How far the other log had come: all turns up to there had arrived then.
    pub of: LogMark,
}

/// What a log records about other logs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LogMerges {
    /// The entries that merged turns of others, oldest first; only the newest, if there are very
    /// many.
    pub merges: Vec<LogMerge>,
    /// How far other logs were compared that had nothing new. No entry records it; `seq` is where
    /// this log ended then.
    #[serde(default)]
    pub compared: Vec<LogMerge>,
    /// The last undo or redo, 0 if there is none. Turns that were left out before it may be
    /// wanted since.
    pub turned: u64,
    /// The turns that its entries erased.
    #[serde(default)]
    pub erased: Vec<TurnId>,
}

/// A bookmark that arrived under another name, because its own names another turn here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Renamed {
    /// The name in the other store.
    pub from: Name,
    /// The name in this store.
    pub to: Name,
}

/// What was done with a conversation received from another store.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Pulled {
    /// The conversation is new here.
    pub new: bool,
    /// Both sides had changed independently.
    pub diverged: bool,
    /// Turns that are new here.
    pub turns: u64,
    /// Operations that are new here.
    pub operations: u64,
    /// Turns that were left out because they, or an ancestor, are deleted here.
    pub withheld: u64,
    /// Turns that were erased in the other store after the logs diverged, and are still here.
    #[serde(skip)]
    pub unerased: u64,
    /// Bookmarks whose names mean other turns here.
    #[serde(default)]
    pub renamed: Vec<Renamed>,
    /// Idempotency keys that are in use for something else here, and were left out.
    #[serde(default)]
    pub keys: u64,
    /// Bytes transferred; an estimate where they did not travel.
    pub bytes: u64,
}
