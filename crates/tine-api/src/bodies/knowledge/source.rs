//! Bytes and facts to be kept.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::{self as api, Error, Result};
use base64::Engine as _;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use schemars::JsonSchema;
use tine_core::facts::observation;
use tine_core::json::{Json, Object};
use tine_core::{EntityId, ErrorKind, Limits, Reference};

use super::{Ends, Interpret, id, time};
use crate::bodies::FreeForm;
use crate::bodies::{reference, request};

/// Base64 of the ordinary alphabet; padding may be missing.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

fn decoded(text: &str) -> Result<Vec<u8>> {
    BASE64.decode(text).map_err(|error| {
        Error::invalid(format!("`file_content` is not base64: {error}; nothing was stored"))
    })
}

request! {
    /// Bytes to be kept: in base64, or as text.
    NewSource {
        /// The bytes, in base64.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        file_content: Option<String>,
        /// A text instead, kept in UTF-8.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text: Option<String>,
        /// What they are, such as `text/plain`.
        #[schemars(length(min = 1, max = 512))]
        mime_type: String,
        /// The name that they came under.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        original_filename: Option<String>,
        /// Whether they are interpreted; `queue` without it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        interpret: Option<Interpret>,
        /// By which interpreter; the default one without it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        interpreter: Option<String>,
        /// Whether the answer holds the turn itself, where the bytes are the envelope of one.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        return_turn: bool,
    }
}

impl NewSource {
    /// What the engine is asked.
    pub fn into_request(self) -> Result<api::NewSource> {
        let content = match (self.file_content, self.text) {
            (Some(content), None) => decoded(&content)?,
            (None, Some(text)) => text.into_bytes(),
            _ => {
                let why = "give either `file_content` in base64 or `text`";
                return Err(Error::invalid(why));
            }
        };
        Ok(api::NewSource {
            content: Arc::new(content),
            mime_type: self.mime_type,
            original_filename: self.original_filename,
            interpret: self.interpret.unwrap_or(Interpret::Queue).into(),
            interpreter: self.interpreter,
        })
    }
}

/// What is known of one entity. Without `fields`, members besides these are its fields.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "it describes the form of a field that is carried as bytes")]
struct FactForm {
    /// Its type.
    #[schemars(length(min = 1, max = 64), regex(pattern = "^[a-z][a-z0-9_]*$"))]
    entity_type: String,
    /// The entity, where the caller knows it.
    #[serde(default)]
    entity_id: Option<String>,
    /// What is said of it; `null` clears a field.
    #[serde(default)]
    fields: Option<BTreeMap<String, serde_json::Value>>,
    /// When it was said; now without it.
    #[serde(default)]
    observed_at: Option<String>,
    /// The turn that said it.
    #[serde(default)]
    turn: Option<String>,
    /// The bytes of the source's text that say it: from, and up to.
    #[serde(default)]
    span: Option<[u64; 2]>,
    /// What counts more, where a schema asks for that.
    #[serde(default)]
    #[schemars(with = "serde_json::Value")]
    priority: Option<i64>,
    /// How specific it is, where a schema asks for that.
    #[serde(default)]
    #[schemars(with = "serde_json::Value")]
    specificity: Option<i64>,
}

request! {
    /// Facts that a caller structured itself, a file, or both.
    Store {
        /// What is known of which entities.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        #[schemars(with = "Vec<FactForm>")]
        entities: Vec<FreeForm>,
        /// How they hang together.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        relationships: Vec<Ends>,
        /// The source that they were taken from; without it, what was sent becomes one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        source_id: Option<String>,
        /// What made them: name, model and whatever else the caller tells of itself.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schemars(with = "Option<serde_json::Value>")]
        agent: Option<FreeForm>,
        /// The bytes of a file that they were taken from, in base64.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        file_content: Option<String>,
        /// What the file is.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mime_type: Option<String>,
        /// The name that it came under.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        original_filename: Option<String>,
        /// Whether the source is interpreted; without it a file is queued, and facts are not.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        interpret: Option<Interpret>,
        /// By which interpreter; the default one without it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        interpreter: Option<String>,
        /// How many secrets of each kind the sender has taken out already: noted with the
        /// operation.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        redacted: BTreeMap<String, u64>,
    }
}

/// What a store asks of the engine: to keep a file, to store facts, or both.
#[derive(Debug, Default)]
pub struct StoreParts {
    /// The file.
    pub file: Option<api::NewSource>,
    /// The facts.
    pub facts: Option<api::StoreFacts>,
    /// The run over the facts' source, where one is asked for.
    pub run: Option<(api::Interpret, Option<String>)>,
}

impl Store {
    /// What the engine is asked. The facts' source is the file, where there is one.
    pub fn into_parts(self, limits: &Limits) -> Result<StoreParts> {
        let invalid = |why: &str| Err(Error::invalid(why));
        if self.file_content.is_none()
            && (self.mime_type.is_some() || self.original_filename.is_some())
        {
            return invalid("`mime_type` and `original_filename` are those of `file_content`");
        }
        if self.file_content.is_some() && self.source_id.is_some() {
            return invalid(
                "the facts come from `source_id` or from `file_content`, not from both",
            );
        }
        let file = match (self.file_content, self.mime_type) {
            (None, _) => None,
            (Some(_), None) => return invalid("a file needs its `mime_type`"),
            (Some(content), Some(mime_type)) => Some(api::NewSource {
                content: Arc::new(decoded(&content)?),
                mime_type,
                original_filename: self.original_filename,
                interpret: self.interpret.unwrap_or(Interpret::Queue).into(),
                interpreter: self.interpreter.clone(),
            }),
        };
        let wanted = self.interpret.map(api::Interpret::from).unwrap_or_default();
        let run = (file.is_none() && wanted != api::Interpret::None)
            .then_some((wanted, self.interpreter));
        if self.entities.is_empty() && self.relationships.is_empty() && file.is_some() {
            return Ok(StoreParts { file, facts: None, run });
        }
        let facts = api::StoreFacts {
            entities: placed("entities", self.entities, |given| fact(given, limits))?,
            relationships: placed("relationships", self.relationships, |ends| {
                ends.into_request(limits)
            })?,
            source: self.source_id.as_deref().map(id).transpose()?,
            agent: self.agent.unwrap_or_default().within(limits)?,
        };
        Ok(StoreParts { file, facts: Some(facts), run })
    }
}

impl From<api::StoreFacts> for Store {
    fn from(request: api::StoreFacts) -> Self {
        Store {
            entities: request.entities.into_iter().map(fact_bytes).collect(),
            relationships: request.relationships.into_iter().map(Ends::from).collect(),
            source_id: request.source.map(|id| id.to_string()),
            agent: (!request.agent.is_null()).then_some(FreeForm(request.agent)),
            ..Store::default()
        }
    }
}

/// Reads each item of a list; an error names the item by its index.
fn placed<S, T>(
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

fn fact(given: FreeForm, limits: &Limits) -> Result<api::NewFact> {
    let mut members = match given.within(limits)? {
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
    let entity: Option<EntityId> =
        text(&mut members, "entity_id")?.as_deref().map(id).transpose()?;
    let observed_at = time("observed_at", text(&mut members, "observed_at")?.as_deref())?;
    let turn = reference(text(&mut members, "turn")?.as_deref())?;
    let span = match members.remove("span") {
        None | Some(Json::Null) => None,
        Some(span) => Some(
            observation::span_from(&span)
                .ok_or_else(|| Error::invalid("`span` is two byte offsets, [start, end]"))?,
        ),
    };
    let inside = members.remove("fields");
    // In the flat form a `priority` that is no number is a field like any other: "high".
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
                    "`{other}` stands beside `fields`; what is said of the entity goes into them"
                )));
            }
            fields
        }
        Some(other) => {
            let why = format!("`fields` is an object, not {}", other.type_name());
            return Err(Error::invalid(why));
        }
    };
    Ok(api::NewFact {
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

fn fact_bytes(fact: api::NewFact) -> FreeForm {
    let mut members = Object::new();
    let mut put = |name: &str, value: Option<Json>| {
        if let Some(value) = value {
            members.insert(name, value);
        }
    };
    put("entity_type", Some(fact.entity_type.into()));
    put("entity_id", fact.entity.map(|id| id.to_string().into()));
    put("fields", Some(Json::Object(fact.fields)));
    put("observed_at", fact.observed_at.map(|at| at.to_string().into()));
    put("turn", fact.turn.as_ref().map(Reference::as_str).map(Json::from));
    put("span", fact.span.map(|(start, end)| observation::span_json(&(start..end))));
    put("priority", fact.priority.map(Json::from));
    put("specificity", fact.specificity.map(Json::from));
    FreeForm(Json::Object(members))
}
