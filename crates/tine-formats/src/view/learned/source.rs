//! Sources, and what storing them and facts answers.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tine_engine as engine;

use super::{Relationship, RunInBrief, StoredTurn};
use crate::view::reading::{self, Unreadable, each, parse, parse_option};
use crate::view::{outcome_name, text};

/// A source without its bytes.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Source {
    /// Its id.
    pub source_id: String,
    /// The SHA-256 of its bytes.
    pub content_hash: String,
    /// How many there are.
    pub size_bytes: u64,
    /// What they are.
    pub mime_type: String,
    /// The name that they came under.
    pub original_filename: Option<String>,
    /// When they came.
    pub stored_at: String,
    /// From whom.
    pub stored_by: String,
    /// The turn that it is the envelope of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn_id: Option<String>,
    /// Whether the bytes were erased.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub purged: bool,
}

impl From<engine::SourceView> for Source {
    fn from(view: engine::SourceView) -> Self {
        Source {
            source_id: text(view.id),
            content_hash: text(view.content_hash),
            size_bytes: view.size_bytes,
            mime_type: view.mime_type,
            original_filename: view.original_filename,
            stored_at: text(view.stored_at),
            stored_by: view.stored_by,
            turn_id: view.turn.map(text),
            purged: view.purged,
        }
    }
}

impl TryFrom<Source> for engine::SourceView {
    type Error = Unreadable;

    fn try_from(view: Source) -> Result<Self, Unreadable> {
        Ok(engine::SourceView {
            id: parse("source_id", &view.source_id)?,
            content_hash: parse("content_hash", &view.content_hash)?,
            size_bytes: view.size_bytes,
            mime_type: view.mime_type,
            original_filename: view.original_filename,
            stored_at: parse("stored_at", &view.stored_at)?,
            stored_by: view.stored_by,
            turn: parse_option("turn_id", view.turn_id)?,
            purged: view.purged,
        })
    }
}

/// What keeping bytes did.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct StoredSource {
    /// The source's id.
    pub source_id: String,
    /// The source.
    pub source: Source,
    /// `created`, or `reused` when the bytes were here already.
    pub outcome: String,
    /// The turn, when the bytes were the envelope of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<Box<StoredTurn>>,
    /// The run over it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interpretation: Option<RunInBrief>,
    /// What the caller should know.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// Whether this is the answer of an earlier call with the same key.
    pub replayed: bool,
}

impl StoredSource {
    /// The answer, with the turn itself or without, where the bytes were the envelope of one.
    pub fn new(done: engine::StoredSource, with_turn: bool) -> Self {
        StoredSource {
            source_id: text(done.source.id),
            source: done.source.into(),
            outcome: outcome_name(done.outcome).to_owned(),
            turn: done.turn.map(|turn| Box::new(StoredTurn::new(*turn, with_turn))),
            interpretation: done.interpretation.as_ref().map(RunInBrief::from),
            warnings: done.warnings,
            replayed: done.replayed,
        }
    }

    /// What the engine said, from an answer with the turn itself. The whole of the run is not
    /// part of this answer and comes from elsewhere.
    pub fn read(
        self,
        interpretation: Option<engine::InterpretationView>,
    ) -> Result<engine::StoredSource, Unreadable> {
        let turn = self.turn.map(|turn| turn.read(None).map(Box::new)).transpose()?;
        Ok(engine::StoredSource {
            source: self.source.try_into()?,
            outcome: reading::outcome(Some(&self.outcome))?,
            turn,
            interpretation,
            warnings: self.warnings,
            replayed: self.replayed,
        })
    }
}

/// One fact that was stored.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct StoredFact {
    /// The entity.
    pub entity_id: String,
    /// The observation.
    pub observation_id: String,
    /// `created` when the entity is new, else `reused`.
    pub outcome: String,
}

impl From<engine::StoredFact> for StoredFact {
    fn from(fact: engine::StoredFact) -> Self {
        StoredFact {
            entity_id: text(fact.entity),
            observation_id: text(fact.observation),
            outcome: outcome_name(fact.outcome).to_owned(),
        }
    }
}

impl TryFrom<StoredFact> for engine::StoredFact {
    type Error = Unreadable;

    fn try_from(view: StoredFact) -> Result<Self, Unreadable> {
        Ok(engine::StoredFact {
            entity: parse("entity_id", &view.entity_id)?,
            observation: parse("observation_id", &view.observation_id)?,
            outcome: reading::outcome(Some(&view.outcome))?,
        })
    }
}

/// What a store of facts, of a file, or of both did.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct StoredFacts {
    /// The source that the facts trace back to.
    pub source: Source,
    /// The run that stands for the caller's own work; `null` where there was a file alone.
    pub interpretation_id: Option<String>,
    /// One for each entity, in order.
    pub entities: Vec<StoredFact>,
    /// One for each relationship, in order.
    pub relationships: Vec<Relationship>,
    /// Fields that their schemas do not declare, as `type.field`.
    pub unknown_fields: Vec<String>,
    /// What keeping the file did, where there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<StoredSource>,
    /// A run over the source, where one was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interpretation: Option<RunInBrief>,
    /// What the caller should know.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// Whether this is the answer of an earlier call with the same key.
    pub replayed: bool,
    /// How many secrets of each kind were taken out of what was sent, where any were.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub redacted: BTreeMap<String, u64>,
}

impl StoredFacts {
    /// The answer to a store of a file alone.
    pub fn of_file(file: StoredSource) -> Self {
        StoredFacts {
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
}

impl From<engine::StoredFacts> for StoredFacts {
    fn from(done: engine::StoredFacts) -> Self {
        StoredFacts {
            source: done.source.into(),
            interpretation_id: Some(text(done.interpretation)),
            entities: done.entities.into_iter().map(StoredFact::from).collect(),
            relationships: done.relationships.into_iter().map(Relationship::from).collect(),
            unknown_fields: done.unknown_fields,
            file: None,
            interpretation: None,
            warnings: done.warnings,
            replayed: done.replayed,
            redacted: BTreeMap::new(),
        }
    }
}

impl TryFrom<StoredFacts> for engine::StoredFacts {
    type Error = Unreadable;

    fn try_from(view: StoredFacts) -> Result<Self, Unreadable> {
        let run = view.interpretation_id.unwrap_or_default();
        Ok(engine::StoredFacts {
            source: view.source.try_into()?,
            interpretation: parse("interpretation_id", &run)?,
            entities: each(view.entities)?,
            relationships: each(view.relationships)?,
            unknown_fields: view.unknown_fields,
            warnings: view.warnings,
            replayed: view.replayed,
        })
    }
}
