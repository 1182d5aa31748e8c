//! One turn, as shown.

use schemars::JsonSchema;
use serde::ser::SerializeStruct;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;
use tine_core::facts::Slot;
use tine_core::json::{self, Json};
use tine_core::{
    Body, Content, ConversationId, Digest, Limits, Metadata, Role, Status, Timestamp, TurnHash,
    TurnId, TurnOrigin,
};

use crate::Outcome;

/// Whether a turn is shown, and why not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline, with = "String")]
pub enum Presence {
    /// Shown.
    #[default]
    Live,
    /// Deleted, or created by an operation that was undone.
    Deleted,
    /// Replaced by its two halves.
    Split,
}

/// A turn as shown.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(try_from = "TurnJson")]
pub struct TurnView {
    /// The conversation.
    pub conversation: ConversationId,
    /// The id of the turn.
    pub id: TurnId,
    /// The hash of the turn.
    pub hash: TurnHash,
    /// The hash of its raw parent; `None` for a first turn.
    pub parent_hash: Option<TurnHash>,
    /// The parent as shown; `None` is the root.
    pub parent: Option<TurnId>,
    /// Raw distance from the root.
    pub depth: u32,
    /// The speaker.
    pub role: Role,
    /// The content, or the digest that is left of it.
    pub content: Content,
    /// The call that a tool turn answers.
    pub tool_call_id: Option<String>,
    /// When the message was sent.
    pub created_at: Timestamp,
    /// Whether it is complete.
    pub status: Status,
    /// Title, tags and other data beside the content.
    pub metadata: Metadata,
    /// The turn that it was edited, copied or split from.
    pub origin: TurnOrigin,
    /// The half of a split that directly precedes this one: the two texts join without a gap.
    pub continues: Option<TurnId>,
    /// Whether it is shown.
    pub presence: Presence,
    /// Whether this call created it; `None` in answers of reads.
    pub outcome: Option<Outcome>,
}

impl TurnView {
    /// Sets whether the call created the turn.
    pub fn with_outcome(self, outcome: Outcome) -> Self {
        TurnView { outcome: Some(outcome), ..self }
    }
}

/// A turn.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "Turn")]
#[expect(dead_code, reason = "`purged` is part of the form and follows from `content`")]
struct TurnJson {
    /// The conversation.
    conversation_id: ConversationId,
    /// The id of the turn.
    turn_id: TurnId,
    /// The hash of the turn.
    turn_hash: TurnHash,
    /// The hash of its raw parent; `null` for a first turn.
    parent_turn_hash: Option<TurnHash>,
    /// The parent as shown; `null` is the root.
    parent_id: Option<TurnId>,
    /// Raw distance from the root.
    depth: u32,
    /// The speaker.
    role: Role,
    /// The canonical blocks; `null` once they were purged.
    content: Option<Box<RawValue>>,
    /// The call that a tool turn answers.
    #[serde(default)]
    tool_call_id: Option<String>,
    /// When the message was sent.
    created_at: Timestamp,
    /// `complete` or `partial`.
    status: Status,
    /// Title, tags and other data beside the content.
    metadata: Box<RawValue>,
    /// The turn that it is an edited version of.
    #[serde(default)]
    edited_from: Option<TurnId>,
    /// The turn that it is a copy of.
    #[serde(default)]
    derived_from: Option<TurnId>,
    /// The turn that it is one half of.
    #[serde(default)]
    part_of: Option<TurnId>,
    /// The half of a split that directly precedes this one: the two texts join without a gap.
    #[serde(default)]
    continues: Option<TurnId>,
    /// The host's slot, of which this turn is a version.
    #[serde(default)]
    slot: Option<TurnSlot>,
    /// `live`, `deleted`, or `split` when its halves are shown instead.
    presence: Presence,
    /// Whether its content was purged.
    #[serde(default)]
    purged: bool,
    /// The digest that is left of purged content.
    #[serde(default)]
    message_digest: Option<Digest>,
    /// `created` or `reused`, in the answer of the call that did so.
    #[serde(default)]
    outcome: Option<Outcome>,
}

/// A host's slot. Role and tool call are those of the turn.
#[derive(Serialize, Deserialize, JsonSchema)]
struct TurnSlot {
    /// The host's id of the turn.
    turn_id: String,
    /// Counts an assistant's further messages under one turn id, from 0.
    part: u32,
}

impl JsonSchema for TurnView {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        TurnJson::schema_name()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        TurnJson::json_schema(generator)
    }
}

impl Serialize for TurnView {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut turn = serializer.serialize_struct("Turn", 21)?;
        turn.serialize_field("conversation_id", &self.conversation)?;
        turn.serialize_field("turn_id", &self.id)?;
        turn.serialize_field("turn_hash", &self.hash)?;
        turn.serialize_field("parent_turn_hash", &self.parent_hash)?;
        turn.serialize_field("parent_id", &self.parent)?;
        turn.serialize_field("depth", &self.depth)?;
        turn.serialize_field("role", &self.role)?;
        match &self.content {
            Content::Kept(body) => turn.serialize_field("content", &Blocks(body))?,
            Content::Purged(_) => turn.serialize_field("content", &())?,
        }
        if let Some(call) = &self.tool_call_id {
            turn.serialize_field("tool_call_id", call)?;
        }
        turn.serialize_field("created_at", &self.created_at)?;
        turn.serialize_field("status", &self.status)?;
        turn.serialize_field("metadata", &MetadataJson(&self.metadata))?;
        for (name, from) in [
            ("edited_from", &self.origin.edited_from),
            ("derived_from", &self.origin.derived_from),
            ("part_of", &self.origin.part_of),
            ("continues", &self.continues),
        ] {
            if let Some(from) = from {
                turn.serialize_field(name, from)?;
            }
        }
        if let Some(slot) = &self.origin.slot {
            let slot = TurnSlot { turn_id: slot.turn_id.clone(), part: slot.part };
            turn.serialize_field("slot", &slot)?;
        }
        turn.serialize_field("presence", &self.presence)?;
        if let Content::Purged(digest) = &self.content {
            turn.serialize_field("purged", &true)?;
            turn.serialize_field("message_digest", digest)?;
        }
        if let Some(outcome) = self.outcome {
            turn.serialize_field("outcome", &outcome)?;
        }
        turn.end()
    }
}

/// The canonical block array of a body.
struct Blocks<'b>(&'b Body);

impl Serialize for Blocks<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            // Escaping a long text takes `serde_json` several times as long as the core.
            Body::Text(_) => json::exact::raw(&self.0.to_blocks_string(), serializer),
            Body::Blocks(canonical) => json::exact::raw(canonical, serializer),
        }
    }
}

/// Metadata as an object, also when it is empty.
struct MetadataJson<'m>(&'m Metadata);

impl Serialize for MetadataJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.0.is_empty() {
            return serializer.collect_map(std::iter::empty::<((), ())>());
        }
        json::exact::serialize(&self.0.to_json(), serializer)
    }
}

impl TryFrom<TurnJson> for TurnView {
    type Error = String;

    fn try_from(turn: TurnJson) -> Result<Self, String> {
        let read = |raw: &RawValue| -> Result<Json, String> {
            json::parse(raw.get().as_bytes(), json::MAX_DEPTH).map_err(|error| error.to_string())
        };
        let content = match (turn.content, turn.message_digest) {
            (Some(blocks), _) => {
                let body = Body::from_content(read(&blocks)?, turn.role, &Limits::STORED);
                Content::Kept(body.map_err(|error| error.to_string())?)
            }
            (None, Some(digest)) => Content::Purged(digest),
            (None, None) => return Err("a turn needs `content` or `message_digest`".to_owned()),
        };
        // It was checked against the limits when it was stored.
        let metadata = Metadata::from_json(&read(&turn.metadata)?, &Limits::STORED);
        let (role, tool_call_id) = (turn.role, turn.tool_call_id);
        let slot = turn.slot.map(|slot| Slot {
            turn_id: slot.turn_id,
            role,
            tool_call_id: tool_call_id.clone(),
            part: slot.part,
        });
        Ok(TurnView {
            conversation: turn.conversation_id,
            id: turn.turn_id,
            hash: turn.turn_hash,
            parent_hash: turn.parent_turn_hash,
            parent: turn.parent_id,
            depth: turn.depth,
            role,
            content,
            tool_call_id,
            created_at: turn.created_at,
            status: turn.status,
            metadata: metadata.map_err(|error| error.to_string())?,
            origin: TurnOrigin {
                edited_from: turn.edited_from,
                derived_from: turn.derived_from,
                part_of: turn.part_of,
                slot,
            },
            continues: turn.continues,
            presence: turn.presence,
            outcome: turn.outcome,
        })
    }
}
