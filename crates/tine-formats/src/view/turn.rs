//! One turn.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tine_core::facts::Slot;
use tine_core::{Body, ConversationId, Limits};
use tine_engine as engine;
use tine_store::{Content, Origin};

use super::reading::{self, Unreadable, parse, parse_option};
use super::{Raw, raw, raw_text, text};

/// A turn.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Turn {
    /// Its conversation.
    pub conversation_id: String,
    /// Its id.
    pub turn_id: String,
    /// Its hash.
    pub turn_hash: String,
    /// The hash of its raw parent; `null` for a first turn.
    pub parent_turn_hash: Option<String>,
    /// The parent as shown; `null` is the root.
    pub parent_id: Option<String>,
    /// Raw distance from the root.
    pub depth: u32,
    /// Who spoke.
    pub role: String,
    /// The canonical blocks; `null` once they were purged.
    pub content: Option<Raw>,
    /// The call that a tool turn answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
    /// When.
    pub created_at: String,
    /// `complete` or `partial`.
    pub status: String,
    /// What is known besides.
    pub metadata: Raw,
    /// The turn that it is an edited version of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edited_from: Option<String>,
    /// The turn that it is a copy of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub derived_from: Option<String>,
    /// The turn that it is one half of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part_of: Option<String>,
    /// The half that it goes on from without anything between, where that one is right before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continues: Option<String>,
    /// The host's own place in its chat, of which this turn is a version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slot: Option<TurnSlot>,
    /// `live`, `deleted`, or `split` when its halves are shown instead.
    pub presence: String,
    /// Whether its content was erased.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub purged: bool,
    /// What is left of erased content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_digest: Option<String>,
    /// `created` or `reused`, in the answer of the call that did so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
}

/// A host's place in its chat. Role and call are those of the turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TurnSlot {
    /// The host's id of the turn.
    pub turn_id: String,
    /// Counts an assistant's further messages under one turn id, from 0.
    pub part: u32,
}

impl From<engine::TurnView> for Turn {
    fn from(view: engine::TurnView) -> Self {
        let (content, message_digest) = match view.content {
            Content::Kept(body) => (Some(raw_text(body.to_blocks_string())), None),
            Content::Purged(digest) => (None, Some(text(digest))),
        };
        Turn {
            conversation_id: text(view.conversation),
            turn_id: text(view.id),
            turn_hash: text(view.hash),
            parent_turn_hash: view.parent_hash.map(text),
            parent_id: view.parent.map(text),
            depth: view.depth,
            role: view.role.as_str().to_owned(),
            content,
            tool_call_id: view.tool_call_id,
            created_at: text(view.created_at),
            status: view.status.as_str().to_owned(),
            metadata: raw(&view.metadata.to_json()),
            edited_from: view.origin.edited_from.map(text),
            derived_from: view.origin.derived_from.map(text),
            part_of: view.origin.part_of.map(text),
            continues: view.continues.map(text),
            slot: view.origin.slot.map(|slot| TurnSlot { turn_id: slot.turn_id, part: slot.part }),
            presence: presence(view.presence).to_owned(),
            purged: message_digest.is_some(),
            message_digest,
            outcome: None,
        }
    }
}

impl From<(engine::TurnView, engine::Outcome)> for Turn {
    fn from((view, outcome): (engine::TurnView, engine::Outcome)) -> Self {
        let outcome = Some(outcome_name(outcome).to_owned());
        Turn { outcome, ..Turn::from(view) }
    }
}

impl TryFrom<Turn> for engine::TurnView {
    type Error = Unreadable;

    fn try_from(view: Turn) -> Result<Self, Unreadable> {
        let role = reading::role(&view.role)?;
        let content = match (&view.content, &view.message_digest) {
            (Some(raw), _) => {
                let content = reading::json("content", raw)?;
                let body = Body::from_content(content, role, &Limits::STORED);
                Content::Kept(body.map_err(|error| Unreadable::new("content", error))?)
            }
            (None, Some(digest)) => Content::Purged(parse("message_digest", digest)?),
            (None, None) => return Err(Unreadable::new("content", "it is not there")),
        };
        Ok(engine::TurnView {
            conversation: ConversationId::from_stored(view.conversation_id),
            id: parse("turn_id", &view.turn_id)?,
            hash: parse("turn_hash", &view.turn_hash)?,
            parent_hash: parse_option("parent_turn_hash", view.parent_turn_hash)?,
            parent: parse_option("parent_id", view.parent_id)?,
            depth: view.depth,
            role,
            content,
            tool_call_id: view.tool_call_id.clone(),
            created_at: parse("created_at", &view.created_at)?,
            status: reading::status(&view.status)?,
            metadata: reading::metadata(&view.metadata)?,
            origin: Origin {
                edited_from: parse_option("edited_from", view.edited_from)?,
                derived_from: parse_option("derived_from", view.derived_from)?,
                part_of: parse_option("part_of", view.part_of)?,
                slot: view.slot.map(|slot| Slot {
                    turn_id: slot.turn_id,
                    role,
                    tool_call_id: view.tool_call_id.clone(),
                    part: slot.part,
                }),
            },
            continues: parse_option("continues", view.continues)?,
            presence: reading::presence(&view.presence)?,
        })
    }
}

impl TryFrom<Turn> for (engine::TurnView, engine::Outcome) {
    type Error = Unreadable;

    fn try_from(view: Turn) -> Result<Self, Unreadable> {
        let outcome = reading::outcome(view.outcome.as_deref())?;
        Ok((view.try_into()?, outcome))
    }
}

/// The wire name of a turn's presence.
pub fn presence(presence: engine::Presence) -> &'static str {
    match presence {
        engine::Presence::Live => "live",
        engine::Presence::Deleted => "deleted",
        engine::Presence::Split => "split",
    }
}

/// The wire name of an outcome.
pub fn outcome_name(outcome: engine::Outcome) -> &'static str {
    match outcome {
        engine::Outcome::Created => "created",
        engine::Outcome::Reused => "reused",
    }
}
