//! Entities, their observations, and the provenance of their fields.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tine_core::facts::{self, Slot, Snapshot};
use tine_core::json::{self, Json, Object};
use tine_core::{
    ConversationId, EntityId, InterpretationId, ObservationId, SourceId, Timestamp, TurnId,
};

use super::{InterpretationView, SourceView};

/// An observation as shown.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "ObservationJson", into = "ObservationJson")]
pub struct ObservationView {
    /// The observation; its fields are the turn's content where it is a version of a slot.
    pub observation: facts::Observation,
    /// Whether a later observation retracted it.
    pub retracted: bool,
    /// The text of its span, if known.
    pub quote: Option<String>,
}

schema_of!(ObservationView, ObservationJson);

/// One observation.
#[derive(Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Observation")]
struct ObservationJson {
    /// The id of the observation.
    observation_id: ObservationId,
    /// The entity.
    entity_id: EntityId,
    /// The entity's type.
    entity_type: String,
    /// The values; `null` clears a field.
    #[serde(with = "json::exact::object")]
    #[schemars(with = "BTreeMap<String, serde_json::Value>")]
    fields: Object,
    /// The source that states it.
    source_id: Option<SourceId>,
    /// The run that found it.
    interpretation_id: Option<InterpretationId>,
    /// The turn that states it.
    turn_id: Option<TurnId>,
    /// The bytes of the source's text that state it: start and end.
    span: Option<[u64; 2]>,
    /// The text there, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    quote: Option<String>,
    /// When it was observed.
    observed_at: Timestamp,
    /// When it was stored.
    stored_at: Timestamp,
    /// Ranks observations, where the schema uses priority.
    priority: i64,
    /// Ranks observations, where the schema uses specificity.
    specificity: i64,
    /// `turn`, `agent`, `rules`, `model`, `human` or `server`.
    origin: facts::ObservationOrigin,
    /// Whether it corrects other observations.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    correction: bool,
    /// The observation that it retracts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    retracts: Option<ObservationId>,
    /// Whether a later observation retracted it.
    retracted: bool,
    /// The schema version in force.
    schema_version: u32,
}

impl From<ObservationView> for ObservationJson {
    fn from(view: ObservationView) -> Self {
        let one = view.observation;
        let entity = one.id.entity;
        ObservationJson {
            observation_id: one.id,
            entity_id: entity,
            entity_type: one.entity_type,
            fields: one.fields,
            source_id: one.source,
            interpretation_id: one.interpretation,
            turn_id: one.turn,
            span: one.span.map(|span| [span.start, span.end]),
            quote: view.quote,
            observed_at: one.observed_at,
            stored_at: one.stored_at,
            priority: one.priority,
            specificity: one.specificity,
            origin: one.origin,
            correction: one.correction,
            retracts: one.retracts.map(|seq| ObservationId { entity, seq }),
            retracted: view.retracted,
            schema_version: one.schema_version,
        }
    }
}

impl From<ObservationJson> for ObservationView {
    fn from(form: ObservationJson) -> Self {
        let observation = facts::Observation {
            id: form.observation_id,
            entity_type: form.entity_type,
            fields: form.fields,
            source: form.source_id,
            interpretation: form.interpretation_id,
            turn: form.turn_id,
            span: form.span.map(|[start, end]| start..end),
            observed_at: form.observed_at,
            stored_at: form.stored_at,
            priority: form.priority,
            specificity: form.specificity,
            origin: form.origin,
            correction: form.correction,
            retracts: form.retracts.map(|id| id.seq),
            schema_version: form.schema_version,
        };
        ObservationView { observation, retracted: form.retracted, quote: form.quote }
    }
}

/// An entity with its current fields.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "EntityJson", into = "EntityJson")]
pub struct EntityView {
    /// The id of the entity.
    pub id: EntityId,
    /// The type of the entity.
    pub entity_type: String,
    /// The display name of the entity.
    pub name: Option<String>,
    /// The current fields of the entity.
    pub snapshot: Snapshot,
    /// When it was first observed.
    pub first_seen: Timestamp,
    /// The requested entity, if it was merged into this one.
    pub merged_from: Option<EntityId>,
    /// When it was deleted.
    pub deleted_at: Option<Timestamp>,
    /// The conversation that it, or its slot, belongs to.
    pub conversation: Option<ConversationId>,
    /// The host's slot that it stands for.
    pub slot: Option<Slot>,
    /// Fields that its schema does not declare.
    pub undeclared: Vec<String>,
}

schema_of!(EntityView, EntityJson);

/// An entity with its current fields.
#[derive(Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Entity")]
struct EntityJson {
    /// The id of the entity.
    entity_id: EntityId,
    /// The type of the entity.
    entity_type: String,
    /// The display name of the entity.
    name: Option<String>,
    /// The current fields of the entity.
    #[serde(with = "json::exact::object")]
    #[schemars(with = "BTreeMap<String, serde_json::Value>")]
    fields: Object,
    /// For each field the observations that it comes from.
    provenance: BTreeMap<String, Vec<ObservationId>>,
    /// The number of observations taken into account.
    observations: usize,
    /// When the last of them was made.
    last_observed_at: Option<Timestamp>,
    /// The schema version that was used.
    schema_version: u32,
    /// When it was first observed.
    first_seen: Timestamp,
    /// The requested entity, if it was merged into this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    merged_from: Option<EntityId>,
    /// When it was deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    deleted_at: Option<Timestamp>,
    /// The conversation that it, or its slot, belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    conversation_id: Option<ConversationId>,
    /// The host's slot that it stands for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    slot: Option<Slot>,
    /// Fields that its schema does not declare.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    undeclared: Vec<String>,
}

impl From<EntityView> for EntityJson {
    fn from(view: EntityView) -> Self {
        let snapshot = view.snapshot;
        EntityJson {
            entity_id: view.id,
            entity_type: view.entity_type,
            name: view.name,
            fields: snapshot.fields,
            provenance: snapshot.provenance,
            observations: snapshot.observations,
            last_observed_at: snapshot.last_observed_at,
            schema_version: snapshot.schema_version,
            first_seen: view.first_seen,
            merged_from: view.merged_from,
            deleted_at: view.deleted_at,
            conversation_id: view.conversation,
            slot: view.slot,
            undeclared: view.undeclared,
        }
    }
}

impl From<EntityJson> for EntityView {
    fn from(form: EntityJson) -> Self {
        EntityView {
            id: form.entity_id,
            entity_type: form.entity_type,
            name: form.name,
            snapshot: Snapshot {
                fields: form.fields,
                provenance: form.provenance,
                observations: form.observations,
                last_observed_at: form.last_observed_at,
                schema_version: form.schema_version,
            },
            first_seen: form.first_seen,
            merged_from: form.merged_from,
            deleted_at: form.deleted_at,
            conversation: form.conversation_id,
            slot: form.slot,
            undeclared: form.undeclared,
        }
    }
}

/// Where the value of a field comes from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FieldProvenance {
    /// The field.
    pub field: String,
    /// The value of the field.
    #[serde(with = "json::exact")]
    #[schemars(with = "serde_json::Value")]
    pub value: Json,
    /// The observations that it comes from, each with its run, its source and its bytes.
    pub evidence: Vec<Evidence>,
}

/// One step from a value back to the bytes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Evidence {
    /// The observation.
    pub observation: ObservationView,
    /// The run that made it.
    pub interpretation: Option<InterpretationView>,
    /// The source that was read.
    pub source: Option<SourceView>,
    /// The turn that states it.
    #[serde(rename = "turn_id")]
    pub turn: Option<TurnId>,
}

/// A dated fact.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TimelineEntry {
    /// The time of the fact.
    pub at: Timestamp,
    /// The date as it was given.
    pub date: String,
    /// The field that holds it.
    pub field: String,
    /// The entity.
    #[serde(rename = "entity_id")]
    pub entity: EntityId,
    /// The type of the entity.
    pub entity_type: String,
    /// The display name of the entity.
    pub name: Option<String>,
    /// The observation that states it.
    #[serde(rename = "observation_id")]
    pub observation: ObservationId,
}
