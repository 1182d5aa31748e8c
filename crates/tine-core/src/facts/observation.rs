//! One thing that was once said of an entity. Append-only: what turns out wrong is corrected or
//! retracted by a later one.

use std::ops::Range;

use crate::json::text_fields::{optional, parsed};
use crate::json::{Json, Object, object};
use crate::{InterpretationId, ObservationId, SourceId, Timestamp, TurnId};

/// Who or what made an observation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ObservationOrigin {
    /// A recorded turn: a version of its slot.
    Turn,
    /// A caller who structured it.
    Agent,
    /// The rules that are built in.
    Rules,
    /// A model.
    Model,
    /// A person, by a correction.
    Human,
    /// Tine itself.
    Server,
}

impl ObservationOrigin {
    const ALL: [(ObservationOrigin, &'static str); 6] = [
        (ObservationOrigin::Turn, "turn"),
        (ObservationOrigin::Agent, "agent"),
        (ObservationOrigin::Rules, "rules"),
        (ObservationOrigin::Model, "model"),
        (ObservationOrigin::Human, "human"),
        (ObservationOrigin::Server, "server"),
    ];

    /// Returns the name on the wire.
    pub fn as_str(self) -> &'static str {
        Self::ALL.iter().find(|(origin, _)| *origin == self).map_or("", |(_, name)| name)
    }

    /// Returns the origin with this name.
    pub fn parse(name: &str) -> Option<ObservationOrigin> {
        Self::ALL.iter().find(|(_, known)| *known == name).map(|(origin, _)| *origin)
    }
}

/// One observation.
#[derive(Clone, Debug, PartialEq)]
pub struct Observation {
    /// Its id: its entity and its place among the entity's observations.
    pub id: ObservationId,
    /// The type of its entity.
    pub entity_type: String,
    /// The observed field values; `null` clears a field. For a version of a slot they come from its
    /// turn.
    pub fields: Object,
    /// The source that it comes from.
    pub source: Option<SourceId>,
    /// The run that found it.
    pub interpretation: Option<InterpretationId>,
    /// The turn that it comes from.
    pub turn: Option<TurnId>,
    /// The bytes of the source's text that say it.
    pub span: Option<Range<u64>>,
    /// When the observed statement was made.
    pub observed_at: Timestamp,
    /// When it came here.
    pub stored_at: Timestamp,
    /// What counts more, where a schema asks for that.
    pub priority: i64,
    /// How specific it is, where a schema asks for that.
    pub specificity: i64,
    /// Who made it.
    pub origin: ObservationOrigin,
    /// Whether it corrects what others say.
    pub correction: bool,
    /// The observation of the same entity that it takes back.
    pub retracts: Option<u64>,
    /// The version of the schema in force.
    pub schema_version: u32,
}

/// The default priority.
pub const PRIORITY: i64 = 100;

impl Observation {
    /// Returns the stored JSON form, which does not contain the id.
    pub fn to_json(&self) -> Json {
        let mut members = Object::new();
        let mut put = |name: &str, value: Json| {
            members.insert(name, value);
        };
        put("entity_type", self.entity_type.as_str().into());
        put("observed_at", self.observed_at.to_string().into());
        put("stored_at", self.stored_at.to_string().into());
        put("origin", self.origin.as_str().into());
        put("schema_version", self.schema_version.into());
        if !self.fields.is_empty() {
            put("fields", Json::Object(self.fields.clone()));
        }
        if let Some(source) = self.source {
            put("source_id", source.to_string().into());
        }
        if let Some(run) = self.interpretation {
            put("interpretation_id", run.to_string().into());
        }
        if let Some(turn) = self.turn {
            put("turn_id", turn.to_string().into());
        }
        if let Some(span) = &self.span {
            put("span", span_json(span));
        }
        if self.priority != PRIORITY {
            put("priority", self.priority.into());
        }
        if self.specificity != 0 {
            put("specificity", self.specificity.into());
        }
        if self.correction {
            put("correction", true.into());
        }
        if let Some(seq) = self.retracts {
            put("retracts", seq.into());
        }
        Json::Object(members)
    }

    /// Reads an observation from its stored JSON form.
    pub fn from_json(id: ObservationId, json: &Json) -> Option<Observation> {
        let number =
            |name: &str| -> Option<i64> { json.get(name)?.as_number()?.to_string().parse().ok() };
        let fields = match json.get("fields") {
            None => Object::new(),
            Some(fields) => fields.as_object()?.clone(),
        };
        let span = match json.get("span") {
            None | Some(Json::Null) => None,
            Some(span) => Some(span_from(span)?),
        };
        Some(Observation {
            id,
            entity_type: parsed(json, "entity_type")?,
            fields,
            source: optional(json, "source_id")?,
            interpretation: optional(json, "interpretation_id")?,
            turn: optional(json, "turn_id")?,
            span,
            observed_at: parsed(json, "observed_at")?,
            stored_at: parsed(json, "stored_at")?,
            priority: number("priority").unwrap_or(PRIORITY),
            specificity: number("specificity").unwrap_or(0),
            origin: ObservationOrigin::parse(json.get("origin")?.as_str()?)?,
            correction: json.get("correction").and_then(Json::as_bool).unwrap_or(false),
            retracts: json.get("retracts").and_then(Json::as_u64),
            schema_version: u32::try_from(json.get("schema_version")?.as_u64()?).ok()?,
        })
    }
}

/// Returns a span as JSON: `[start, end]`.
pub fn span_json(span: &Range<u64>) -> Json {
    Json::Array(vec![span.start.into(), span.end.into()])
}

/// Reads a span from its JSON form.
pub fn span_from(json: &Json) -> Option<Range<u64>> {
    match json.as_array()? {
        [start, end] => Some(start.as_u64()?..end.as_u64()?),
        _ => None,
    }
}

/// Returns whether a name is reserved and cannot be a field.
pub fn reserved(name: &str) -> bool {
    matches!(name, "entity_type" | "entity_id" | "observation_id")
}

/// Returns the JSON form that replaces a purged observation.
pub fn purged_form(digest: &crate::Digest) -> Json {
    object([("purged", digest.to_hex().into())])
}
