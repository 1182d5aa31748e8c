//! Relationships.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tine_core::facts::{Endpoint, Relation};
use tine_core::json::{self, Json};
use tine_core::{EntityId, SourceId, Timestamp, TurnId};

use crate::Outcome;

/// A relationship as shown.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "RelationshipJson", into = "RelationshipJson")]
pub struct RelationshipView {
    /// The type of the relationship.
    pub relation: Relation,
    /// The source.
    pub source: Endpoint,
    /// What the source is: the type of an entity, `turn` or `source`.
    pub source_type: String,
    /// The target.
    pub target: Endpoint,
    /// What the target is.
    pub target_type: String,
    /// Free-form data.
    pub metadata: Json,
    /// When it was created.
    pub created_at: Timestamp,
    /// Who created the relationship.
    pub created_by: String,
    /// Whether Tine created it along with a turn.
    pub structural: bool,
    /// Whether this call created it; `None` in answers of reads.
    pub outcome: Option<Outcome>,
}

impl RelationshipView {
    /// The label for people.
    pub fn label(&self) -> &'static str {
        self.relation.label(&self.source_type, &self.target_type)
    }

    /// Sets whether the call created the relationship.
    pub fn with_outcome(self, outcome: Outcome) -> Self {
        RelationshipView { outcome: Some(outcome), ..self }
    }
}

schema_of!(RelationshipView, RelationshipJson);

/// A relationship. Each end has exactly one id.
#[derive(Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Relationship")]
struct RelationshipJson {
    /// The type of the relationship.
    #[serde(rename = "type")]
    relation: Relation,
    /// The label for people.
    label: String,
    /// The source, if it is an entity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    source_entity_id: Option<EntityId>,
    /// The source, if it is a turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    source_turn_id: Option<TurnId>,
    /// The source, if it is a source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    source_source_id: Option<SourceId>,
    /// What the source is: the type of an entity, `turn` or `source`.
    source_type: String,
    /// The target, if it is an entity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    target_entity_id: Option<EntityId>,
    /// The target, if it is a turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    target_turn_id: Option<TurnId>,
    /// The target, if it is a source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    target_source_id: Option<SourceId>,
    /// What the target is.
    target_type: String,
    /// Free-form data.
    #[serde(with = "json::exact")]
    #[schemars(with = "serde_json::Value")]
    metadata: Json,
    /// When it was created.
    created_at: Timestamp,
    /// Who created the relationship.
    created_by: String,
    /// Whether Tine created it along with a turn.
    structural: bool,
    /// `created` or `reused`, in the answer of the call that did so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    outcome: Option<Outcome>,
}

/// The ids of an entity, a turn and a source, of which one is present.
type EndpointIds = (Option<EntityId>, Option<TurnId>, Option<SourceId>);

fn ids(end: Endpoint) -> EndpointIds {
    match end {
        Endpoint::Entity(id) => (Some(id), None, None),
        Endpoint::Turn(id) => (None, Some(id), None),
        Endpoint::Source(id) => (None, None, Some(id)),
    }
}

fn endpoint(end: EndpointIds) -> Result<Endpoint, &'static str> {
    match end {
        (Some(id), None, None) => Ok(Endpoint::Entity(id)),
        (None, Some(id), None) => Ok(Endpoint::Turn(id)),
        (None, None, Some(id)) => Ok(Endpoint::Source(id)),
        _ => Err("each end of a relationship needs exactly one id"),
    }
}

impl From<RelationshipView> for RelationshipJson {
    fn from(view: RelationshipView) -> Self {
        let (source_entity_id, source_turn_id, source_source_id) = ids(view.source);
        let (target_entity_id, target_turn_id, target_source_id) = ids(view.target);
        RelationshipJson {
            relation: view.relation,
            label: view.label().to_owned(),
            source_entity_id,
            source_turn_id,
            source_source_id,
            source_type: view.source_type,
            target_entity_id,
            target_turn_id,
            target_source_id,
            target_type: view.target_type,
            metadata: view.metadata,
            created_at: view.created_at,
            created_by: view.created_by,
            structural: view.structural,
            outcome: view.outcome,
        }
    }
}

impl TryFrom<RelationshipJson> for RelationshipView {
    type Error = &'static str;

    fn try_from(form: RelationshipJson) -> Result<Self, Self::Error> {
        let source = (form.source_entity_id, form.source_turn_id, form.source_source_id);
        let target = (form.target_entity_id, form.target_turn_id, form.target_source_id);
        Ok(RelationshipView {
            relation: form.relation,
            source: endpoint(source)?,
            target: endpoint(target)?,
            source_type: form.source_type,
            target_type: form.target_type,
            metadata: form.metadata,
            created_at: form.created_at,
            created_by: form.created_by,
            structural: form.structural,
            outcome: form.outcome,
        })
    }
}

/// What a removal did.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Removed {
    /// Always `true`.
    pub deleted: bool,
}
