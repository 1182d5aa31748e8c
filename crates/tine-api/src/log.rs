//! The operation log: entries, the change feed, undo, purge.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;
use tine_core::{
    ConversationId, FeedPosition, OperationHash, ProjectId, SourceId, Timestamp, TurnId,
};

use crate::TurnRef;

/// One entry of the operation log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Operation")]
pub struct OperationView {
    /// The conversation.
    #[serde(rename = "conversation_id")]
    pub conversation: ConversationId,
    /// The number of the operation in the log of the conversation, from 1.
    pub seq: u64,
    /// The kind of operation.
    pub kind: String,
    /// Who performed the operation.
    pub actor: String,
    /// When the operation was performed.
    pub at: Timestamp,
    /// A line for people.
    pub summary: String,
    /// Canonical JSON of what it did; `null` once purged.
    #[serde(serialize_with = "write_detail", deserialize_with = "read_detail")]
    #[schemars(with = "Option<serde_json::Value>")]
    pub detail: Option<String>,
    /// The chain hash.
    pub hash: OperationHash,
    /// Whether it is undone at present.
    pub undone: bool,
}

/// A damaged detail is left out, so that the rest of the log can be shown.
fn write_detail<S: Serializer>(detail: &Option<String>, out: S) -> Result<S::Ok, S::Error> {
    detail.clone().and_then(|detail| RawValue::from_string(detail).ok()).serialize(out)
}

fn read_detail<'de, D: serde::Deserializer<'de>>(input: D) -> Result<Option<String>, D::Error> {
    let detail = Option::<Box<RawValue>>::deserialize(input)?;
    Ok(detail.map(|detail| detail.get().to_owned()))
}

/// One entry of the change feed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "Event")]
pub struct FeedEntry {
    /// The position in the feed of the whole store; followers continue after it.
    pub position: FeedPosition,
    /// The project.
    #[serde(rename = "project_id")]
    pub project: ProjectId,
    /// The operation.
    #[serde(flatten)]
    pub operation: OperationView,
}

impl FeedEntry {
    /// Parses an entry. In two steps, because serde cannot pass raw JSON through flattened fields.
    pub fn from_json(text: &str) -> serde_json::Result<Self> {
        #[derive(Deserialize)]
        struct FeedKey {
            position: FeedPosition,
            project_id: ProjectId,
        }
        let FeedKey { position, project_id } = serde_json::from_str(text)?;
        let operation = serde_json::from_str(text)?;
        Ok(FeedEntry { position, project: project_id, operation })
    }
}

/// Which entries of the change feed.
#[derive(Clone, Debug, Default)]
pub struct FeedFilter {
    /// Only of this project.
    pub project: Option<ProjectId>,
    /// Only of this conversation.
    pub conversation: Option<ConversationId>,
}

/// What an undo or redo did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Undone {
    /// The operation that was undone or redone.
    pub target: u64,
    /// The kind of that operation.
    pub kind: String,
    /// The new entry of the log.
    pub seq: u64,
}

/// Something to be erased for good.
#[derive(Clone, Debug)]
pub struct Purge {
    /// What to erase.
    pub target: PurgeTarget,
    /// The confirmation code that a first call without it returned.
    pub confirm: Option<String>,
}

/// What can be erased.
#[derive(Clone, Debug)]
pub enum PurgeTarget {
    /// The content of one turn.
    Turn(TurnRef),
    /// The content of a conversation.
    Conversation(ConversationId),
    /// The bytes of a source and everything derived from them.
    Source(SourceId),
}

/// What a purge did, or would do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Purged {
    /// Turns whose content is erased: the named one and the halves that share its text, or all of
    /// the conversation.
    pub turns: Vec<TurnId>,
    /// Other turns that hold the same content and keep it.
    pub other_holders: Vec<Holder>,
    /// Entries of the log whose detail is erased.
    pub operations: u64,
    /// Sources whose bytes are erased.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<SourceId>,
    /// Observations that are erased with them.
    #[serde(default)]
    pub observations: u64,
    /// The code to confirm with; nothing was erased yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirm: Option<String>,
}

/// A turn that holds the same content as an erased one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Holder {
    /// The conversation.
    #[serde(rename = "conversation_id")]
    pub conversation: ConversationId,
    /// The id of the turn.
    #[serde(rename = "turn_id")]
    pub turn: TurnId,
}
