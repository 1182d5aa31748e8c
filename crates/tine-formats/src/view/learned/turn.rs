//! What storing a host's turn answers. It stays small: what was said is not said again unless it
//! is asked for.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tine_core::{ConversationId, facts};
use tine_engine as engine;

use super::RunInBrief;
use crate::view::reading::{self, Unreadable, parse, parse_option};
use crate::view::{Branch, Turn, outcome_name, text};

/// A host's place in its chat, whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Slot {
    /// The host's id of the turn.
    pub turn_id: String,
    /// Who speaks there.
    pub role: String,
    /// The call that a tool's place answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
    /// Counts an assistant's further messages under one turn id, from 0.
    pub part: u32,
}

impl From<facts::Slot> for Slot {
    fn from(slot: facts::Slot) -> Self {
        Slot {
            turn_id: slot.turn_id,
            role: slot.role.as_str().to_owned(),
            tool_call_id: slot.tool_call_id,
            part: slot.part,
        }
    }
}

impl TryFrom<Slot> for facts::Slot {
    type Error = Unreadable;

    fn try_from(view: Slot) -> Result<Self, Unreadable> {
        Ok(facts::Slot {
            turn_id: view.turn_id,
            role: reading::role(&view.role)?,
            tool_call_id: view.tool_call_id,
            part: view.part,
        })
    }
}

/// What storing a host's turn did.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct StoredTurn {
    /// The conversation: to be passed back with the next turn.
    pub conversation_id: String,
    /// The turn in the tree.
    pub turn_id: String,
    /// Its hash.
    pub turn_hash: String,
    /// The key of the host's place, for people.
    pub turn_key: String,
    /// The entity whose observation this is.
    pub entity_id: String,
    /// The observation.
    pub observation_id: String,
    /// `created` or `reused`.
    pub outcome: String,
    /// The host's place.
    pub slot: Slot,
    /// The turn whose place it took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub superseded: Option<String>,
    /// The branch, as it is now.
    pub branch: Branch,
    /// The turn that it ends on.
    pub tip: Option<String>,
    /// The source, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_id: Option<String>,
    /// The run over it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interpretation: Option<RunInBrief>,
    /// What the caller should know.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// Whether this is the answer of an earlier call with the same key.
    pub replayed: bool,
    /// Whether that earlier work has been undone since.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub undone: bool,
    /// How many secrets of each kind were taken out of what was sent, where any were.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub redacted: BTreeMap<String, u64>,
    /// The turn itself, where it was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<Box<Turn>>,
}

impl StoredTurn {
    /// The answer, with the turn itself or without.
    pub fn new(done: engine::StoredTurn, with_turn: bool) -> Self {
        let branch = Branch::from(done.branch);
        StoredTurn {
            turn_id: text(done.turn.id),
            turn_hash: text(done.turn.hash),
            turn_key: done.slot.turn_key(&done.conversation),
            conversation_id: text(done.conversation),
            entity_id: text(done.entity),
            observation_id: text(done.observation),
            outcome: outcome_name(done.outcome).to_owned(),
            slot: done.slot.into(),
            superseded: done.superseded.map(text),
            tip: branch.tip.clone(),
            branch,
            source_id: done.source.map(text),
            interpretation: done.interpretation.as_ref().map(RunInBrief::from),
            warnings: done.warnings,
            replayed: done.replayed,
            undone: done.undone,
            redacted: BTreeMap::new(),
            turn: with_turn.then(|| Box::new(done.turn.into())),
        }
    }

    /// What the engine said, from an answer with the turn itself. The whole of the run is not
    /// part of this answer and comes from elsewhere.
    pub fn read(
        self,
        interpretation: Option<engine::InterpretationView>,
    ) -> Result<engine::StoredTurn, Unreadable> {
        let turn = self.turn.ok_or_else(|| Unreadable::new("turn", "it is not there"))?;
        Ok(engine::StoredTurn {
            conversation: ConversationId::from_stored(self.conversation_id),
            turn: (*turn).try_into()?,
            outcome: reading::outcome(Some(&self.outcome))?,
            slot: self.slot.try_into()?,
            entity: parse("entity_id", &self.entity_id)?,
            observation: parse("observation_id", &self.observation_id)?,
            superseded: parse_option("superseded", self.superseded)?,
            branch: self.branch.try_into()?,
            source: parse_option("source_id", self.source_id)?,
            interpretation,
            warnings: self.warnings,
            replayed: self.replayed,
            undone: self.undone,
        })
    }
}
