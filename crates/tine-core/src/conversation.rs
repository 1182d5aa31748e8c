//! The root of a conversation.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::json::{self, Json};
use crate::{ConversationId, TurnId};

/// What a conversation begins with; it never changes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Root {
    /// Rendered as the message of role `system`.
    pub system_prompt: Option<String>,
    /// Whatever else the conversation was set up with.
    #[serde(with = "json::exact")]
    #[schemars(with = "serde_json::Value")]
    pub config: Json,
}

/// Where a derived conversation comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DerivedFrom {
    /// The original, in the same project.
    #[serde(rename = "conversation_id")]
    pub conversation: ConversationId,
    /// The turn whose path was taken over, if one was.
    #[serde(rename = "turn_id")]
    pub turn: Option<TurnId>,
}
