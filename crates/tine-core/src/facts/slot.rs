//! Slots: the logical turns of agents that do not track branches.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::json::{Json, object};
use crate::{ConversationId, EntityId, ProjectId, Role};

use super::identity;

/// One place in a host's chat, of which there may be many versions. Compared byte for byte.
#[derive(
    Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub struct Slot {
    /// The host's id of the turn.
    pub turn_id: String,
    /// Who spoke: one role never overwrites another.
    pub role: Role,
    /// The call that a tool's slot answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
    /// Counts an assistant's further messages under one turn id, from 0.
    pub part: u32,
}

impl Slot {
    /// Returns the key for display. It is not unique, because ids may contain colons.
    pub fn turn_key(&self, conversation: &ConversationId) -> String {
        let mut key = format!("{conversation}:{}", self.turn_id);
        if self.role != Role::User {
            key.push(':');
            key.push_str(self.role.as_str());
        }
        if let Some(call) = &self.tool_call_id {
            key.push(':');
            key.push_str(call);
        }
        if self.part > 0 {
            key.push_str(&format!(":{}", self.part));
        }
        key
    }

    /// Returns the entity that the slot's versions are observations of.
    pub fn entity(&self, project: &ProjectId, conversation: &ConversationId) -> EntityId {
        let key = Json::Array(vec![
            conversation.as_str().into(),
            self.turn_id.as_str().into(),
            self.role.as_str().into(),
            self.tool_call_id.clone().into(),
            self.part.into(),
        ]);
        identity::entity_id(project, "agent_message", &key)
    }

    /// Returns the slot as JSON.
    pub fn to_json(&self) -> Json {
        object([
            ("turn_id", self.turn_id.as_str().into()),
            ("role", self.role.as_str().into()),
            ("tool_call_id", self.tool_call_id.clone().into()),
            ("part", self.part.into()),
        ])
    }

    /// Reads a slot from its JSON form.
    pub fn from_json(json: &Json) -> Option<Slot> {
        Some(Slot {
            turn_id: json.get("turn_id")?.as_str()?.to_owned(),
            role: json.get("role")?.as_str()?.parse().ok()?,
            tool_call_id: json.get("tool_call_id").and_then(Json::as_str).map(str::to_owned),
            part: u32::try_from(json.get("part")?.as_u64()?).ok()?,
        })
    }
}
