//! What the ledger's entries hold, in types.

use tine_core::facts::Slot;
use tine_core::json::{Json, Object};
use tine_core::{ConversationId, Digest, EntityId, SourceId, Timestamp};

use crate::log::change::{optional, parsed, text};

/// An entity without its observations.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct EntityRecord {
    pub id: EntityId,
    pub entity_type: String,
    /// What its id was made from; `null` when it was minted.
    pub key: Json,
    /// When the first observation came.
    pub first_seen: Timestamp,
    /// The entity that it is the same as, since when.
    pub merged: Option<(EntityId, Timestamp)>,
    /// Since when it is deleted.
    pub deleted_at: Option<Timestamp>,
    /// The slot that it stands for.
    pub slot: Option<(ConversationId, Slot)>,
    /// The conversation that it stands for.
    pub conversation: Option<ConversationId>,
}

impl EntityRecord {
    pub(crate) fn new(id: EntityId, entity_type: &str, key: Json, first_seen: Timestamp) -> Self {
        EntityRecord {
            id,
            entity_type: entity_type.to_owned(),
            key,
            first_seen,
            merged: None,
            deleted_at: None,
            slot: None,
            conversation: None,
        }
    }

    pub(crate) fn to_json(&self) -> Json {
        let mut members = Object::new();
        members.insert("entity_type", self.entity_type.as_str().into());
        members.insert("first_seen", text(&self.first_seen));
        if !self.key.is_null() {
            members.insert("key", self.key.clone());
        }
        if let Some((into, at)) = &self.merged {
            members.insert("merged_into", text(into));
            members.insert("merged_at", text(at));
        }
        if let Some(at) = &self.deleted_at {
            members.insert("deleted_at", text(at));
        }
        if let Some((conversation, slot)) = &self.slot {
            members.insert("slot", slot.to_json());
            members.insert("conversation_id", text(conversation));
        }
        if let Some(conversation) = &self.conversation {
            members.insert("conversation_id", text(conversation));
        }
        Json::Object(members)
    }

    pub(crate) fn from_json(id: EntityId, json: &Json) -> Option<Self> {
        let conversation =
            json.get("conversation_id").and_then(Json::as_str).map(ConversationId::from_stored);
        let slot = match json.get("slot") {
            Some(slot) => Some((conversation.clone()?, Slot::from_json(slot)?)),
            None => None,
        };
        let merged = match optional(json, "merged_into")? {
            Some(into) => Some((into, parsed(json, "merged_at")?)),
            None => None,
        };
        Some(EntityRecord {
            id,
            entity_type: json.get("entity_type")?.as_str()?.to_owned(),
            key: json.get("key").cloned().unwrap_or(Json::Null),
            first_seen: parsed(json, "first_seen")?,
            merged,
            deleted_at: optional(json, "deleted_at")?,
            conversation: conversation.filter(|_| slot.is_none()),
            slot,
        })
    }
}

/// A source without its bytes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SourceRecord {
    pub id: SourceId,
    pub content_hash: Digest,
    pub size_bytes: u64,
    pub mime_type: String,
    pub original_filename: Option<String>,
    pub stored_at: Timestamp,
    pub stored_by: String,
    /// The turn that it is the envelope of.
    pub turn: Option<tine_core::TurnId>,
    /// Whether its bytes were erased.
    pub purged: bool,
}

impl SourceRecord {
    pub(crate) fn to_json(&self) -> Json {
        let mut members = Object::new();
        members.insert("content_hash", self.content_hash.to_hex().into());
        members.insert("size_bytes", self.size_bytes.into());
        members.insert("mime_type", self.mime_type.as_str().into());
        members.insert("stored_at", text(&self.stored_at));
        members.insert("stored_by", self.stored_by.as_str().into());
        if let Some(name) = &self.original_filename {
            members.insert("original_filename", name.as_str().into());
        }
        if let Some(turn) = &self.turn {
            members.insert("turn_id", text(turn));
        }
        if self.purged {
            members.insert("purged", true.into());
        }
        Json::Object(members)
    }

    pub(crate) fn from_json(id: SourceId, json: &Json) -> Option<Self> {
        Some(SourceRecord {
            id,
            content_hash: parsed(json, "content_hash")?,
            size_bytes: json.get("size_bytes")?.as_u64()?,
            mime_type: json.get("mime_type")?.as_str()?.to_owned(),
            original_filename: optional(json, "original_filename")?,
            stored_at: parsed(json, "stored_at")?,
            stored_by: json.get("stored_by")?.as_str()?.to_owned(),
            turn: optional(json, "turn_id")?,
            purged: json.get("purged").and_then(Json::as_bool).unwrap_or(false),
        })
    }
}

/// A relationship besides its ends.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RelationshipRecord {
    pub created_at: Timestamp,
    pub created_by: String,
    /// What is known of it; an object.
    pub metadata: Json,
    /// Whether Tine made it along with a turn.
    pub structural: bool,
    /// The log that tells of its making, and the number of the entry: whoever finds it there
    /// already builds on that.
    pub made: Option<(ConversationId, u64)>,
}

impl RelationshipRecord {
    pub(crate) fn to_json(&self) -> Json {
        let mut members = Object::new();
        members.insert("created_at", text(&self.created_at));
        members.insert("created_by", self.created_by.as_str().into());
        members.insert("metadata", self.metadata.clone());
        members.insert("structural", self.structural.into());
        if let Some((log, operation)) = &self.made {
            members.insert("log", text(log));
            members.insert("operation", (*operation).into());
        }
        Json::Object(members)
    }

    pub(crate) fn from_json(json: &Json) -> Option<Self> {
        let log = json.get("log").and_then(Json::as_str).map(ConversationId::from_stored);
        Some(RelationshipRecord {
            created_at: parsed(json, "created_at")?,
            created_by: json.get("created_by")?.as_str()?.to_owned(),
            metadata: json.get("metadata").cloned().unwrap_or(Json::Null),
            structural: json.get("structural").and_then(Json::as_bool).unwrap_or(false),
            made: log.zip(json.get("operation").and_then(Json::as_u64)),
        })
    }
}
