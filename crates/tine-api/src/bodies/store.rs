//! The body of a store: structured facts, a file, or both.

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tine_core::facts::observation;
use tine_core::json::{Json, Object};
use tine_core::{ErrorKind, Reference, SourceId};

use super::{FreeForm, object_of, object_or_null, observed_at};
use crate::knowledge::RelationshipOfStore;
use crate::{Error, Interpret, NewFact, NewRelationship, NewSource, Result, StoreFacts};

/// Base64 with the standard alphabet; padding is optional.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

pub(crate) fn decoded(text: &str) -> Result<Vec<u8>> {
    BASE64.decode(text).map_err(|error| {
        Error::invalid(format!("`file_content` is not base64: {error}; nothing was stored"))
    })
}

/// One fact: fields of one entity. Without `fields`, all other members are its fields.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "describes a field that is carried as JSON")]
struct FactForm {
    /// The type of the entity.
    #[schemars(length(min = 1, max = 64), regex(pattern = "^[a-z][a-z0-9_]*$"))]
    entity_type: String,
    /// The id of the entity, if known.
    #[serde(default)]
    entity_id: Option<String>,
    /// The values; `null` clears a field.
    #[serde(default)]
    fields: Option<BTreeMap<String, serde_json::Value>>,
    /// When it was observed; the current time by default.
    #[serde(default)]
    observed_at: Option<String>,
    /// The turn that states it.
    #[serde(default)]
    turn: Option<String>,
    /// The byte range of the source's text that states it: start and end.
    #[serde(default)]
    span: Option<[u64; 2]>,
    /// Ranks observations, if the schema uses priority.
    #[serde(default)]
    #[schemars(with = "serde_json::Value")]
    priority: Option<i64>,
    /// Ranks observations, if the schema uses specificity.
    #[serde(default)]
    #[schemars(with = "serde_json::Value")]
    specificity: Option<i64>,
}

/// Facts that the caller extracted, a file, or both.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Store {
    /// The facts, by entity.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<FactForm>")]
    pub(crate) entities: Vec<FreeForm>,
    /// Relationships between the entities.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) relationships: Vec<RelationshipOfStore>,
    /// The source of the facts; by default the request itself is stored as one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_id: Option<SourceId>,
    /// What extracted the facts, such as its name, model and version.
    #[serde(default, with = "object_or_null", skip_serializing_if = "Json::is_null")]
    #[schemars(with = "Option<serde_json::Value>")]
    pub agent: Json,
    /// A file that the facts come from, in base64.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_content: Option<String>,
    /// The media type of the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// The name of the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub original_filename: Option<String>,
    /// Whether to interpret the source; by default a file is queued and facts are not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interpret: Option<Interpret>,
    /// The interpreter; the configured default if omitted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interpreter: Option<String>,
}

/// The operations of a store: keeping a file, storing facts, or both.
#[derive(Debug, Default)]
pub struct StoreParts {
    /// The file.
    pub file: Option<NewSource>,
    /// The facts.
    pub facts: Option<StoreFacts>,
    /// The requested run over the source of the facts.
    pub run: Option<(Interpret, Option<String>)>,
}

impl Store {
    /// Returns the operations. The file, if there is one, is the source of the facts.
    pub fn into_parts(self) -> Result<StoreParts> {
        let invalid = |why: &str| Err(Error::invalid(why));
        if self.file_content.is_none()
            && (self.mime_type.is_some() || self.original_filename.is_some())
        {
            return invalid("`mime_type` and `original_filename` need `file_content`");
        }
        if self.file_content.is_some() && self.source_id.is_some() {
            return invalid("give either `source_id` or `file_content` as the source of the facts");
        }
        let file = match (self.file_content, self.mime_type) {
            (None, _) => None,
            (Some(_), None) => return invalid("a file needs its `mime_type`"),
            (Some(content), Some(mime_type)) => Some(NewSource {
                content: Arc::new(decoded(&content)?),
                mime_type,
                original_filename: self.original_filename,
                interpret: self.interpret.unwrap_or(Interpret::Queue),
                interpreter: self.interpreter.clone(),
            }),
        };
        let interpret = self.interpret.unwrap_or_default();
        let run = (file.is_none() && interpret != Interpret::None)
            .then_some((interpret, self.interpreter));
        if self.entities.is_empty() && self.relationships.is_empty() && file.is_some() {
            return Ok(StoreParts { file, facts: None, run });
        }
        let facts = StoreFacts {
            entities: each("entities", self.entities, fact)?,
            relationships: each("relationships", self.relationships, NewRelationship::try_from)?,
            source: self.source_id,
            agent: self.agent,
        };
        Ok(StoreParts { file, facts: Some(facts), run })
    }
}

impl From<StoreFacts> for Store {
    fn from(request: StoreFacts) -> Self {
        Store {
            entities: request.entities.into_iter().map(fact_json).collect(),
            relationships: request.relationships.iter().map(RelationshipOfStore::from).collect(),
            source_id: request.source,
            agent: request.agent,
            ..Store::default()
        }
    }
}

/// Reads each item of a list; an error names the item by its index.
fn each<S, T>(
    list: &str,
    given: impl IntoIterator<Item = S>,
    read: impl Fn(S) -> Result<T>,
) -> Result<Vec<T>> {
    let each = given.into_iter().enumerate().map(|(nth, it)| {
        read(it).map_err(|error| match error.kind {
            ErrorKind::Invalid => Error { message: format!("{list}[{nth}]: {error}"), ..error },
            _ => error,
        })
    });
    each.collect()
}

fn fact(FreeForm(given): FreeForm) -> Result<NewFact> {
    let mut members = match given {
        Json::Object(members) => members,
        other => {
            let why = format!("an entity is an object, not {}", other.type_name());
            return Err(Error::invalid(why));
        }
    };
    let text = |members: &mut Object, name: &str| match members.remove(name) {
        None | Some(Json::Null) => Ok(None),
        Some(Json::String(text)) => Ok(Some(text)),
        Some(other) => {
            Err(Error::invalid(format!("`{name}` is a string, not {}", other.type_name())))
        }
    };
    let entity_type = text(&mut members, "entity_type")?;
    let entity_type =
        entity_type.ok_or_else(|| Error::invalid("an entity needs its `entity_type`, a string"))?;
    let entity = text(&mut members, "entity_id")?.map(|id| id.parse()).transpose()?;
    let observed_at = text(&mut members, "observed_at")?.as_deref().map(observed_at).transpose()?;
    let turn = text(&mut members, "turn")?.as_deref().map(Reference::parse).transpose()?;
    let span = match members.remove("span") {
        None | Some(Json::Null) => None,
        Some(span) => Some(
            observation::span_from(&span)
                .ok_or_else(|| Error::invalid("`span` is two byte offsets, [start, end]"))?,
        ),
    };
    let inside = members.remove("fields");
    // In the flat form, a `priority` that is not a number ("high") is an ordinary field.
    let flat = inside.is_none();
    let mut weight = |name: &str| match members.get(name) {
        None | Some(Json::Null) => Ok(None),
        Some(Json::Number(number)) => match number.to_string().parse::<i64>() {
            Ok(number) => {
                members.remove(name);
                Ok(Some(number))
            }
            Err(_) if flat => Ok(None),
            Err(_) => Err(Error::invalid(format!("`{name}` is a whole number"))),
        },
        Some(_) if flat => Ok(None),
        Some(_) => Err(Error::invalid(format!("`{name}` is a whole number"))),
    };
    let (priority, specificity) = (weight("priority")?, weight("specificity")?);
    let fields = match inside {
        None => members,
        Some(Json::Object(fields)) => {
            for name in ["priority", "specificity"] {
                members.remove(name);
            }
            if let Some(other) = members.keys().next() {
                return Err(Error::invalid(format!(
                    "`{other}` stands beside `fields`; move it into `fields`"
                )));
            }
            fields
        }
        Some(other) => {
            let why = format!("`fields` is an object, not {}", other.type_name());
            return Err(Error::invalid(why));
        }
    };
    Ok(NewFact {
        entity_type,
        entity,
        fields,
        observed_at,
        turn,
        span: span.map(|span| (span.start, span.end)),
        priority,
        specificity,
    })
}

fn fact_json(fact: NewFact) -> FreeForm {
    FreeForm(object_of([
        ("entity_type", Some(fact.entity_type.into())),
        ("entity_id", fact.entity.map(|id| id.to_string().into())),
        ("fields", Some(Json::Object(fact.fields))),
        ("observed_at", fact.observed_at.map(|at| at.to_string().into())),
        ("turn", fact.turn.as_ref().map(Reference::as_str).map(Json::from)),
        ("span", fact.span.map(|(start, end)| observation::span_json(&(start..end)))),
        ("priority", fact.priority.map(Json::from)),
        ("specificity", fact.specificity.map(Json::from)),
    ]))
}
