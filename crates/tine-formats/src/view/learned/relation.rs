//! How things hang together, and what types of entities hold.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tine_core::facts::{self, Endpoint, FieldKind, Relation, Strategy};
use tine_engine as engine;

use crate::view::reading::{self, Unreadable, parse};
use crate::view::{Raw, outcome_name, raw, text};

/// A relationship. Of each end exactly one id is there.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Relationship {
    /// Its type.
    #[serde(rename = "type")]
    pub relation: String,
    /// What people read.
    pub label: String,
    /// From this entity …
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_entity_id: Option<String>,
    /// … or this turn …
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_turn_id: Option<String>,
    /// … or this source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_source_id: Option<String>,
    /// What that is: the type of an entity, `turn` or `source`.
    pub source_type: String,
    /// To this entity …
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_entity_id: Option<String>,
    /// … or this turn …
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_turn_id: Option<String>,
    /// … or this source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_source_id: Option<String>,
    /// What that is.
    pub target_type: String,
    /// What is known of it.
    pub metadata: Raw,
    /// When it was made.
    pub created_at: String,
    /// By whom.
    pub created_by: String,
    /// Whether Tine made it along with a turn.
    pub structural: bool,
    /// `created` or `reused`, in the answer of the call that did so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
}

/// The ids of an entity, a turn and a source, of which one is there.
type End = (Option<String>, Option<String>, Option<String>);

fn end(end: Endpoint) -> End {
    match end {
        Endpoint::Entity(id) => (Some(text(id)), None, None),
        Endpoint::Turn(id) => (None, Some(text(id)), None),
        Endpoint::Source(id) => (None, None, Some(text(id))),
    }
}

fn read_end(field: &'static str, end: End) -> Result<Endpoint, Unreadable> {
    match end {
        (Some(id), None, None) => Ok(Endpoint::Entity(parse(field, &id)?)),
        (None, Some(id), None) => Ok(Endpoint::Turn(parse(field, &id)?)),
        (None, None, Some(id)) => Ok(Endpoint::Source(parse(field, &id)?)),
        _ => Err(Unreadable::new(field, "one id should be there")),
    }
}

impl From<engine::RelationshipView> for Relationship {
    fn from(view: engine::RelationshipView) -> Self {
        let (source_entity_id, source_turn_id, source_source_id) = end(view.source);
        let (target_entity_id, target_turn_id, target_source_id) = end(view.target);
        Relationship {
            relation: text(view.relation),
            label: view.label.to_owned(),
            source_entity_id,
            source_turn_id,
            source_source_id,
            source_type: view.source_type,
            target_entity_id,
            target_turn_id,
            target_source_id,
            target_type: view.target_type,
            metadata: raw(&view.metadata),
            created_at: text(view.created_at),
            created_by: view.created_by,
            structural: view.structural,
            outcome: None,
        }
    }
}

impl TryFrom<Relationship> for engine::RelationshipView {
    type Error = Unreadable;

    fn try_from(view: Relationship) -> Result<Self, Unreadable> {
        let relation: Relation = parse("type", &view.relation)?;
        let source = (view.source_entity_id, view.source_turn_id, view.source_source_id);
        let target = (view.target_entity_id, view.target_turn_id, view.target_source_id);
        Ok(engine::RelationshipView {
            relation,
            source: read_end("source", source)?,
            target: read_end("target", target)?,
            label: relation.label(&view.source_type, &view.target_type),
            source_type: view.source_type,
            target_type: view.target_type,
            metadata: reading::json("metadata", &view.metadata)?,
            created_at: parse("created_at", &view.created_at)?,
            created_by: view.created_by,
            structural: view.structural,
        })
    }
}

impl From<(engine::RelationshipView, engine::Outcome)> for Relationship {
    fn from((view, outcome): (engine::RelationshipView, engine::Outcome)) -> Self {
        Relationship { outcome: Some(outcome_name(outcome).to_owned()), ..view.into() }
    }
}

impl TryFrom<Relationship> for (engine::RelationshipView, engine::Outcome) {
    type Error = Unreadable;

    fn try_from(view: Relationship) -> Result<Self, Unreadable> {
        let outcome = reading::outcome(view.outcome.as_deref())?;
        Ok((view.try_into()?, outcome))
    }
}

/// What was removed.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Removed {
    /// That it is gone.
    pub deleted: bool,
}

/// A type of entity, in one version.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct EntitySchema {
    /// The type.
    pub entity_type: String,
    /// Counts from 1.
    pub version: u32,
    /// What it is, in a sentence.
    pub description: Option<String>,
    /// Its fields.
    pub fields: BTreeMap<String, SchemaField>,
    /// Fields that together say which one it is.
    pub identity: Vec<String>,
}

/// One field of a type.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct SchemaField {
    /// What it holds.
    pub kind: String,
    /// Which of several statements counts.
    pub strategy: String,
}

impl From<facts::Schema> for EntitySchema {
    fn from(schema: facts::Schema) -> Self {
        let field = |(name, field): (String, facts::Field)| {
            let (kind, strategy) = (field.kind.as_str(), field.strategy.as_str());
            (name, SchemaField { kind: kind.to_owned(), strategy: strategy.to_owned() })
        };
        EntitySchema {
            entity_type: schema.entity_type,
            version: schema.version,
            description: schema.description,
            fields: schema.fields.into_iter().map(field).collect(),
            identity: schema.identity,
        }
    }
}

impl TryFrom<EntitySchema> for facts::Schema {
    type Error = Unreadable;

    fn try_from(view: EntitySchema) -> Result<Self, Unreadable> {
        let field = |(name, field): (String, SchemaField)| {
            let kind = FieldKind::parse(&field.kind);
            let kind = kind.ok_or_else(|| Unreadable::new("kind", "it is unknown"))?;
            let strategy = Strategy::parse(&field.strategy);
            let strategy = strategy.ok_or_else(|| Unreadable::new("strategy", "it is unknown"))?;
            Ok((name, facts::Field { kind, strategy }))
        };
        Ok(facts::Schema {
            entity_type: view.entity_type,
            version: view.version,
            description: view.description,
            fields: view.fields.into_iter().map(field).collect::<Result<_, Unreadable>>()?,
            identity: view.identity,
        })
    }
}
