//! Entities, what was observed of them, and the way back to the bytes.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tine_core::facts::{self, Snapshot};
use tine_core::json::Json;
use tine_core::{ConversationId, ObservationId};
use tine_engine as engine;

use super::run::object;
use super::{Interpretation, Slot, Source};
use crate::view::reading::{self, Unreadable, count, each, parse, parse_all, parse_option};
use crate::view::{Raw, raw, text, texts};

/// One observation.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Observation {
    /// Its id.
    pub observation_id: String,
    /// Its entity.
    pub entity_id: String,
    /// The entity's type.
    pub entity_type: String,
    /// What was said; `null` clears a field.
    #[schemars(with = "BTreeMap<String, serde_json::Value>")]
    pub fields: Raw,
    /// Where it was said.
    pub source_id: Option<String>,
    /// The run that found it.
    pub interpretation_id: Option<String>,
    /// The turn that said it.
    pub turn_id: Option<String>,
    /// The bytes of the source's text that say it: from, and up to.
    pub span: Option<[u64; 2]>,
    /// The text there, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quote: Option<String>,
    /// When it was said.
    pub observed_at: String,
    /// When it came here.
    pub stored_at: String,
    /// What counts more, where a schema asks for that.
    pub priority: i64,
    /// How specific it is, where a schema asks for that.
    pub specificity: i64,
    /// `turn`, `agent`, `rules`, `model`, `human` or `server`.
    pub origin: String,
    /// Whether it corrects what others say.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub correction: bool,
    /// The observation that it takes back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retracts: Option<String>,
    /// Whether a later one took it back.
    pub retracted: bool,
    /// The version of the schema in force.
    pub schema_version: u32,
}

impl From<engine::ObservationView> for Observation {
    fn from(view: engine::ObservationView) -> Self {
        let one = view.observation;
        let entity = one.id.entity;
        Observation {
            observation_id: text(one.id),
            entity_id: text(entity),
            entity_type: one.entity_type,
            fields: raw(&Json::Object(one.fields)),
            source_id: one.source.map(text),
            interpretation_id: one.interpretation.map(text),
            turn_id: one.turn.map(text),
            span: one.span.map(|span| [span.start, span.end]),
            quote: view.quote,
            observed_at: text(one.observed_at),
            stored_at: text(one.stored_at),
            priority: one.priority,
            specificity: one.specificity,
            origin: one.origin.as_str().to_owned(),
            correction: one.correction,
            retracts: one.retracts.map(|seq| text(ObservationId { entity, seq })),
            retracted: view.retracted,
            schema_version: one.schema_version,
        }
    }
}

impl TryFrom<Observation> for engine::ObservationView {
    type Error = Unreadable;

    fn try_from(view: Observation) -> Result<Self, Unreadable> {
        let retracts: Option<ObservationId> = parse_option("retracts", view.retracts)?;
        let origin = facts::Origin::parse(&view.origin);
        let observation = facts::Observation {
            id: parse("observation_id", &view.observation_id)?,
            entity_type: view.entity_type,
            fields: object("fields", &view.fields)?,
            source: parse_option("source_id", view.source_id)?,
            interpretation: parse_option("interpretation_id", view.interpretation_id)?,
            turn: parse_option("turn_id", view.turn_id)?,
            span: view.span.map(|[start, end]| start..end),
            observed_at: parse("observed_at", &view.observed_at)?,
            stored_at: parse("stored_at", &view.stored_at)?,
            priority: view.priority,
            specificity: view.specificity,
            origin: origin.ok_or_else(|| Unreadable::new("origin", "it is unknown"))?,
            correction: view.correction,
            retracts: retracts.map(|id| id.seq),
            schema_version: view.schema_version,
        };
        Ok(engine::ObservationView { observation, retracted: view.retracted, quote: view.quote })
    }
}

/// An entity with what holds of it.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Entity {
    /// Its id.
    pub entity_id: String,
    /// Its type.
    pub entity_type: String,
    /// What people call it.
    pub name: Option<String>,
    /// What holds.
    #[schemars(with = "BTreeMap<String, serde_json::Value>")]
    pub fields: Raw,
    /// For each field the observations that it comes from.
    pub provenance: BTreeMap<String, Vec<String>>,
    /// Observations that were taken into account.
    pub observations: u64,
    /// When the last of them was made.
    pub last_observed_at: Option<String>,
    /// The version of the schema that was used.
    pub schema_version: u32,
    /// When the first observation came.
    pub first_seen: String,
    /// The entity that was asked for, when it was merged into this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merged_from: Option<String>,
    /// Since when it is deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deleted_at: Option<String>,
    /// The conversation that it, or its place, belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation_id: Option<String>,
    /// The host's place that it stands for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slot: Option<Slot>,
    /// Fields that its schema does not declare.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub undeclared: Vec<String>,
}

impl From<engine::EntityView> for Entity {
    fn from(view: engine::EntityView) -> Self {
        let snapshot = view.snapshot;
        let provenance = snapshot.provenance.into_iter();
        Entity {
            entity_id: text(view.id),
            entity_type: view.entity_type,
            name: view.name,
            fields: raw(&Json::Object(snapshot.fields)),
            provenance: provenance.map(|(field, from)| (field, texts(from))).collect(),
            observations: snapshot.observations as u64,
            last_observed_at: snapshot.last_observed_at.map(text),
            schema_version: snapshot.schema_version,
            first_seen: text(view.first_seen),
            merged_from: view.merged_from.map(text),
            deleted_at: view.deleted_at.map(text),
            conversation_id: view.conversation.map(text),
            slot: view.slot.map(Slot::from),
            undeclared: view.undeclared,
        }
    }
}

impl TryFrom<Entity> for engine::EntityView {
    type Error = Unreadable;

    fn try_from(view: Entity) -> Result<Self, Unreadable> {
        let provenance = view.provenance.into_iter();
        let provenance =
            provenance.map(|(field, from)| Ok((field, parse_all("provenance", from)?)));
        Ok(engine::EntityView {
            id: parse("entity_id", &view.entity_id)?,
            entity_type: view.entity_type,
            name: view.name,
            snapshot: Snapshot {
                fields: object("fields", &view.fields)?,
                provenance: provenance.collect::<Result<_, Unreadable>>()?,
                observations: count("observations", view.observations)?,
                last_observed_at: parse_option("last_observed_at", view.last_observed_at)?,
                schema_version: view.schema_version,
            },
            first_seen: parse("first_seen", &view.first_seen)?,
            merged_from: parse_option("merged_from", view.merged_from)?,
            deleted_at: parse_option("deleted_at", view.deleted_at)?,
            conversation: view.conversation_id.map(ConversationId::from_stored),
            slot: view.slot.map(facts::Slot::try_from).transpose()?,
            undeclared: view.undeclared,
        })
    }
}

/// Where the value of a field comes from.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct FieldProvenance {
    /// The field.
    pub field: String,
    /// Its value.
    pub value: Raw,
    /// The observations that it comes from, each with its run, its source and its bytes.
    pub evidence: Vec<Evidence>,
}

/// One step from a value back to the bytes.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Evidence {
    /// The observation.
    pub observation: Observation,
    /// The run that made it.
    pub interpretation: Option<Interpretation>,
    /// The source that was read.
    pub source: Option<Source>,
    /// The turn that said it.
    pub turn_id: Option<String>,
}

impl From<engine::FieldProvenance> for FieldProvenance {
    fn from(found: engine::FieldProvenance) -> Self {
        let evidence = found.evidence.into_iter().map(|step| Evidence {
            observation: step.observation.into(),
            interpretation: step.interpretation.map(Interpretation::from),
            source: step.source.map(Source::from),
            turn_id: step.turn.map(text),
        });
        FieldProvenance {
            field: found.field,
            value: raw(&found.value),
            evidence: evidence.collect(),
        }
    }
}

impl TryFrom<Evidence> for engine::Evidence {
    type Error = Unreadable;

    fn try_from(view: Evidence) -> Result<Self, Unreadable> {
        let run = view.interpretation.map(engine::InterpretationView::try_from);
        Ok(engine::Evidence {
            observation: view.observation.try_into()?,
            interpretation: run.transpose()?,
            source: view.source.map(engine::SourceView::try_from).transpose()?,
            turn: parse_option("turn_id", view.turn_id)?,
        })
    }
}

impl TryFrom<FieldProvenance> for engine::FieldProvenance {
    type Error = Unreadable;

    fn try_from(view: FieldProvenance) -> Result<Self, Unreadable> {
        Ok(engine::FieldProvenance {
            field: view.field,
            value: reading::json("value", &view.value)?,
            evidence: each(view.evidence)?,
        })
    }
}

/// A dated fact.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct TimelineEntry {
    /// When.
    pub at: String,
    /// The date as it was given.
    pub date: String,
    /// The field that says so.
    pub field: String,
    /// The entity.
    pub entity_id: String,
    /// Its type.
    pub entity_type: String,
    /// What people call it.
    pub name: Option<String>,
    /// The observation that says so.
    pub observation_id: String,
}

impl From<engine::TimelineEntry> for TimelineEntry {
    fn from(entry: engine::TimelineEntry) -> Self {
        TimelineEntry {
            at: text(entry.at),
            date: entry.date,
            field: entry.field,
            entity_id: text(entry.entity),
            entity_type: entry.entity_type,
            name: entry.name,
            observation_id: text(entry.observation),
        }
    }
}

impl TryFrom<TimelineEntry> for engine::TimelineEntry {
    type Error = Unreadable;

    fn try_from(view: TimelineEntry) -> Result<Self, Unreadable> {
        Ok(engine::TimelineEntry {
            at: parse("at", &view.at)?,
            date: view.date,
            field: view.field,
            entity: parse("entity_id", &view.entity_id)?,
            entity_type: view.entity_type,
            name: view.name,
            observation: parse("observation_id", &view.observation_id)?,
        })
    }
}
