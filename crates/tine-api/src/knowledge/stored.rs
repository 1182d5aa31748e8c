//! What storing turns, sources and facts did.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tine_core::facts::{Endpoint, Relation, Slot};
use tine_core::{
    ConversationId, EntityId, InterpretationId, ObservationId, SourceId, TurnHash, TurnId,
};

use super::{InterpretationView, RelationshipView, RunSummary, SourceView};
use crate::{BranchView, Outcome, TurnView};

/// What storing a host's turn did.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredTurn {
    /// The conversation: pass it back with the next turn.
    pub conversation: ConversationId,
    /// The turn in the tree.
    pub turn: TurnView,
    /// Whether it was created.
    pub outcome: Outcome,
    /// The host's slot.
    pub slot: Slot,
    /// The entity of the slot.
    pub entity: EntityId,
    /// The observation.
    pub observation: ObservationId,
    /// The turn that it replaced.
    pub superseded: Option<TurnId>,
    /// The branch, as it is now.
    pub branch: BranchView,
    /// The source, if there is one.
    pub source: Option<SourceId>,
    /// The run over it.
    pub interpretation: Option<InterpretationView>,
    /// Warnings for the caller.
    pub warnings: Vec<String>,
    /// Whether this is the answer of an earlier call with the same key.
    pub replayed: bool,
    /// Whether that earlier work has been undone since.
    pub undone: bool,
}

/// What storing a host's turn did.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "StoredTurn")]
pub struct StoredTurnAnswer {
    /// The conversation: pass it back with the next turn.
    pub conversation_id: ConversationId,
    /// The turn in the tree.
    pub turn_id: TurnId,
    /// The hash of the turn.
    pub turn_hash: TurnHash,
    /// The key of the host's slot, for people.
    pub turn_key: String,
    /// The entity of the slot.
    pub entity_id: EntityId,
    /// The observation.
    pub observation_id: ObservationId,
    /// `created` or `reused`.
    pub outcome: Outcome,
    /// The host's slot.
    pub slot: Slot,
    /// The turn that it replaced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub superseded: Option<TurnId>,
    /// The branch, as it is now.
    pub branch: BranchView,
    /// The turn that the branch ends on.
    pub tip: Option<TurnId>,
    /// The source, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_id: Option<SourceId>,
    /// The run over it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interpretation: Option<RunSummary>,
    /// Warnings for the caller.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// Whether this is the answer of an earlier call with the same key.
    pub replayed: bool,
    /// Whether that earlier work has been undone since.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub undone: bool,
    /// How many secrets of each kind were redacted.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub redacted: BTreeMap<String, u64>,
    /// The turn itself, on request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<Box<TurnView>>,
}

impl StoredTurnAnswer {
    /// Returns the answer, with the turn itself or without.
    pub fn new(done: StoredTurn, with_turn: bool) -> Self {
        StoredTurnAnswer {
            turn_id: done.turn.id,
            turn_hash: done.turn.hash,
            turn_key: done.slot.turn_key(&done.conversation),
            conversation_id: done.conversation,
            entity_id: done.entity,
            observation_id: done.observation,
            outcome: done.outcome,
            slot: done.slot,
            superseded: done.superseded,
            tip: done.branch.tip,
            branch: done.branch,
            source_id: done.source,
            interpretation: done.interpretation.as_ref().map(RunSummary::from),
            warnings: done.warnings,
            replayed: done.replayed,
            undone: done.undone,
            redacted: BTreeMap::new(),
            turn: with_turn.then(|| Box::new(done.turn)),
        }
    }

    /// Returns what the engine answered, given an answer with the turn itself. The run is not part
    /// of this answer and is fetched separately.
    pub fn into_stored(self, run: Option<InterpretationView>) -> Result<StoredTurn, &'static str> {
        Ok(StoredTurn {
            conversation: self.conversation_id,
            turn: *self.turn.ok_or("the answer has no `turn`")?,
            outcome: self.outcome,
            slot: self.slot,
            entity: self.entity_id,
            observation: self.observation_id,
            superseded: self.superseded,
            branch: self.branch,
            source: self.source_id,
            interpretation: run,
            warnings: self.warnings,
            replayed: self.replayed,
            undone: self.undone,
        })
    }
}

/// What storing bytes did.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredSource {
    /// The source.
    pub source: SourceView,
    /// Whether the bytes are new.
    pub outcome: Outcome,
    /// The turn, if the bytes are the envelope of one.
    pub turn: Option<Box<StoredTurn>>,
    /// The run over it.
    pub interpretation: Option<InterpretationView>,
    /// Warnings for the caller.
    pub warnings: Vec<String>,
    /// Whether this is the answer of an earlier call with the same key.
    pub replayed: bool,
}

/// What storing bytes did.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "StoredSource")]
pub struct StoredSourceAnswer {
    /// The source's id.
    pub source_id: SourceId,
    /// The source.
    pub source: SourceView,
    /// `created`, or `reused` if the bytes were stored before.
    pub outcome: Outcome,
    /// The turn, if the bytes are the envelope of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<Box<StoredTurnAnswer>>,
    /// The run over it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interpretation: Option<RunSummary>,
    /// Warnings for the caller.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// Whether this is the answer of an earlier call with the same key.
    pub replayed: bool,
}

impl StoredSourceAnswer {
    /// Returns the answer, with the turn itself or without.
    pub fn new(done: StoredSource, with_turn: bool) -> Self {
        StoredSourceAnswer {
            source_id: done.source.id,
            source: done.source,
            outcome: done.outcome,
            turn: done.turn.map(|turn| Box::new(StoredTurnAnswer::new(*turn, with_turn))),
            interpretation: done.interpretation.as_ref().map(RunSummary::from),
            warnings: done.warnings,
            replayed: done.replayed,
        }
    }

    /// Returns what the engine answered; see [`StoredTurnAnswer::into_stored`].
    pub fn into_stored(
        self,
        run: Option<InterpretationView>,
    ) -> Result<StoredSource, &'static str> {
        Ok(StoredSource {
            source: self.source,
            outcome: self.outcome,
            turn: self.turn.map(|turn| turn.into_stored(None).map(Box::new)).transpose()?,
            interpretation: run,
            warnings: self.warnings,
            replayed: self.replayed,
        })
    }
}

/// What a structured store did.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredFacts {
    /// The source of the facts.
    pub source: SourceView,
    /// The run that stands for the caller's own work.
    pub interpretation: InterpretationId,
    /// One for each entity, in order.
    pub entities: Vec<StoredFact>,
    /// One for each relationship, in order, each with its outcome.
    pub relationships: Vec<RelationshipView>,
    /// Fields that their schemas do not declare, as `type.field`.
    pub unknown_fields: Vec<String>,
    /// Warnings for the caller.
    pub warnings: Vec<String>,
    /// Whether this is the answer of an earlier call with the same key.
    pub replayed: bool,
}

/// What storing facts, a file, or both did.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "StoredFacts")]
pub struct StoredFactsAnswer {
    /// The source of the facts.
    pub source: SourceView,
    /// The run that stands for the caller's own work; `null` for a file alone.
    pub interpretation_id: Option<InterpretationId>,
    /// One for each entity, in order.
    pub entities: Vec<StoredFact>,
    /// One for each relationship, in order.
    pub relationships: Vec<RelationshipView>,
    /// Fields that their schemas do not declare, as `type.field`.
    pub unknown_fields: Vec<String>,
    /// What storing the file did, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<StoredSourceAnswer>,
    /// A run over the source, on request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interpretation: Option<RunSummary>,
    /// Warnings for the caller.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// Whether this is the answer of an earlier call with the same key.
    pub replayed: bool,
    /// How many secrets of each kind were redacted.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub redacted: BTreeMap<String, u64>,
}

impl StoredFactsAnswer {
    /// Returns the answer to a store of a file alone.
    pub fn of_file(file: StoredSourceAnswer) -> Self {
        StoredFactsAnswer {
            source: file.source.clone(),
            interpretation_id: None,
            entities: Vec::new(),
            relationships: Vec::new(),
            unknown_fields: Vec::new(),
            interpretation: None,
            warnings: Vec::new(),
            replayed: file.replayed,
            redacted: BTreeMap::new(),
            file: Some(file),
        }
    }

    /// Returns what the engine answered.
    pub fn into_stored(self) -> Result<StoredFacts, &'static str> {
        Ok(StoredFacts {
            source: self.source,
            interpretation: self.interpretation_id.ok_or("the answer has no run")?,
            entities: self.entities,
            relationships: self.relationships,
            unknown_fields: self.unknown_fields,
            warnings: self.warnings,
            replayed: self.replayed,
        })
    }
}

impl From<StoredFacts> for StoredFactsAnswer {
    fn from(done: StoredFacts) -> Self {
        StoredFactsAnswer {
            source: done.source,
            interpretation_id: Some(done.interpretation),
            entities: done.entities,
            relationships: done.relationships,
            unknown_fields: done.unknown_fields,
            file: None,
            interpretation: None,
            warnings: done.warnings,
            replayed: done.replayed,
            redacted: BTreeMap::new(),
        }
    }
}

/// One fact that was stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StoredFact {
    /// The entity.
    #[serde(rename = "entity_id")]
    pub entity: EntityId,
    /// The observation.
    #[serde(rename = "observation_id")]
    pub observation: ObservationId,
    /// `created` if the entity is new, else `reused`.
    pub outcome: Outcome,
}

/// What a store of several parts did, or would do.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredCombined {
    /// The turn, if one was given; its run is among those of the parts.
    pub turn: Option<StoredTurn>,
    /// Everything else.
    pub parts: StoredParts,
    /// Whether this is the answer of an earlier call with the same key.
    pub replayed: bool,
    /// Whether that earlier work has been undone since.
    pub undone: bool,
    /// Whether nothing was stored: ids of new records are not the ones a real call would return.
    pub dry_run: bool,
}

/// What became of bytes and facts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StoredParts {
    /// The bytes, and whether they are new.
    pub source: Option<(SourceId, Outcome)>,
    /// The source of the facts.
    pub facts_source: Option<SourceId>,
    /// The run that stands for the caller's own work.
    pub interpretation: Option<InterpretationId>,
    /// One for each entity, in order.
    pub entities: Vec<StoredFact>,
    /// One for each relationship, in order.
    pub relationships: Vec<StoredRelationship>,
    /// Fields that their schemas do not declare, as `type.field`.
    pub unknown_fields: Vec<String>,
    /// Runs that were queued.
    pub runs: Vec<InterpretationId>,
    /// Warnings for the caller.
    pub warnings: Vec<String>,
}

/// A relationship that was stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredRelationship {
    /// The type of the relationship.
    pub relation: Relation,
    /// The source.
    pub source: Endpoint,
    /// The target.
    pub target: Endpoint,
    /// Whether it is new.
    pub outcome: Outcome,
}
