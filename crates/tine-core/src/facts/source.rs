//! Sources: bytes that facts come from.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Digest, SourceId, Timestamp, TurnId};

/// A source without its bytes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Source {
    /// Its id.
    #[serde(rename = "source_id")]
    pub id: SourceId,
    /// The SHA-256 of its bytes.
    pub content_hash: Digest,
    /// The number of bytes.
    pub size_bytes: u64,
    /// Their media type.
    pub mime_type: String,
    /// The file name.
    pub original_filename: Option<String>,
    /// When it was stored.
    pub stored_at: Timestamp,
    /// Who stored it.
    pub stored_by: String,
    /// The turn that it is the envelope of.
    #[serde(rename = "turn_id", default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<TurnId>,
    /// Whether the bytes were purged.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub purged: bool,
}
