//! Requests about knowledge: host turns, sources, facts, entities, relationships, runs.

use std::io;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use tine_core::facts::Schema;
use tine_core::json::{self, Object};
use tine_core::request::refuse;
use tine_core::{
    EntityId, InterpretationId, Json, Message, ObservationId, Reference, SourceId, Timestamp,
};

use crate::bodies::{converted, moment, observed_at};
use crate::{Error, unset_entity};

/// Whether stored content is interpreted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Interpret {
    /// Not at all.
    #[default]
    None,
    /// Later, in the background.
    Queue,
    /// Now; the call returns when it is done.
    Wait,
}

impl Interpret {
    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Interpret::None => "none",
            Interpret::Queue => "queue",
            Interpret::Wait => "wait",
        }
    }
}

/// A turn of a host that tracks no branches.
#[derive(Clone, Debug)]
pub struct StoreTurn {
    /// The conversation's id, or its entity's. It is created if missing; by default an id
    /// is minted.
    pub conversation: Option<String>,
    /// The host's id of the turn; by default the call's key, or a minted id.
    pub turn_id: Option<String>,
    /// The message.
    pub message: Message,
    /// The branch to store on, by name or id; created if missing; `main` by default.
    pub branch: Option<String>,
    /// The turn that it follows; overrides the placement rules.
    pub parent: Option<Reference>,
    /// The host's id of the message that it follows, or that turn.
    pub parent_message: Option<String>,
    /// All messages before it, from the root; placed first.
    pub history: Vec<Message>,
    /// Sources that came with it.
    pub attachments: Vec<SourceId>,
    /// A title for a new conversation.
    pub title: Option<String>,
    /// A system prompt for a new conversation.
    pub system_prompt: Option<String>,
    /// Whether it is interpreted.
    pub interpret: Interpret,
    /// The interpreter to use; the default one if `None`.
    pub interpreter: Option<String>,
}

impl StoreTurn {
    /// Returns a request for one message of a host's turn.
    pub fn new(
        conversation: impl Into<String>,
        turn_id: impl Into<String>,
        message: Message,
    ) -> Self {
        StoreTurn {
            conversation: Some(conversation.into()),
            turn_id: Some(turn_id.into()),
            message,
            branch: None,
            parent: None,
            parent_message: None,
            history: Vec::new(),
            attachments: Vec::new(),
            title: None,
            system_prompt: None,
            interpret: Interpret::None,
            interpreter: None,
        }
    }
}

/// Bytes that can be read more than once.
pub trait SourceBytes: Send + Sync {
    /// Starts reading from the beginning.
    fn open(&self) -> io::Result<Box<dyn io::Read + '_>>;
}

impl SourceBytes for Vec<u8> {
    fn open(&self) -> io::Result<Box<dyn io::Read + '_>> {
        Ok(Box::new(self.as_slice()))
    }
}

/// Bytes to be stored as a source.
#[derive(Clone)]
pub struct NewSource {
    /// The bytes.
    pub content: Arc<dyn SourceBytes>,
    /// Their media type.
    pub mime_type: String,
    /// The file name.
    pub original_filename: Option<String>,
    /// Whether they are interpreted.
    pub interpret: Interpret,
    /// The interpreter to use; the default one if `None`.
    pub interpreter: Option<String>,
}

impl std::fmt::Debug for NewSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NewSource").field("mime_type", &self.mime_type).finish_non_exhaustive()
    }
}

/// Facts that a caller structured itself.
#[derive(Clone, Debug)]
pub struct StoreFacts {
    /// The facts, by entity.
    pub entities: Vec<NewFact>,
    /// Relationships between entities.
    pub relationships: Vec<NewRelationship>,
    /// The source that they were taken from; by default the request itself becomes one.
    pub source: Option<SourceId>,
    /// What produced them: name, model and other data about the caller.
    pub agent: Json,
}

impl Default for StoreFacts {
    fn default() -> Self {
        StoreFacts {
            entities: Vec::new(),
            relationships: Vec::new(),
            source: None,
            agent: Json::Null,
        }
    }
}

/// A turn, bytes and facts stored in one transaction; at least one part.
#[derive(Clone, Debug, Default)]
pub struct StoreCombined {
    /// The turn.
    pub turn: Option<StoreTurn>,
    /// Bytes that came with it.
    pub source: Option<NewSource>,
    /// Facts that the caller extracted.
    pub facts: Option<StoreFacts>,
    /// Reports what would happen and stores nothing.
    pub dry_run: bool,
}

/// Fields of one entity.
#[derive(Clone, Debug)]
pub struct NewFact {
    /// The type of the entity.
    pub entity_type: String,
    /// The entity, if the caller knows it.
    pub entity: Option<EntityId>,
    /// The values.
    pub fields: Object,
    /// When it was observed; now by default.
    pub observed_at: Option<Timestamp>,
    /// The turn that states it.
    pub turn: Option<Reference>,
    /// The bytes of the source's text that state it.
    pub span: Option<(u64, u64)>,
    /// Ranks observations, where the schema uses priority.
    pub priority: Option<i64>,
    /// Ranks observations, where the schema uses specificity.
    pub specificity: Option<i64>,
}

impl NewFact {
    /// Returns fields of an entity of a type.
    pub fn of(entity_type: impl Into<String>, fields: Object) -> Self {
        NewFact {
            entity_type: entity_type.into(),
            entity: None,
            fields,
            observed_at: None,
            turn: None,
            span: None,
            priority: None,
            specificity: None,
        }
    }
}

/// One end of a relationship, as a caller names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// An entity.
    Entity(EntityId),
    /// A source.
    Source(SourceId),
    /// A turn.
    Turn(Reference),
    /// A conversation.
    Conversation(String),
    /// An entity of the same call, by its place in it.
    InCall(usize),
}

/// A relationship to be made.
#[derive(Clone, Debug)]
pub struct NewRelationship {
    /// The type: one of the eight.
    pub relation: String,
    /// The source.
    pub source: End,
    /// The target.
    pub target: End,
    /// Free-form data; `null` or an object.
    pub metadata: Json,
}

/// Which relationships.
#[derive(Clone, Debug, Default)]
pub struct RelationshipQuery {
    /// Only those with this end.
    pub end: Option<End>,
    /// Which end it must be.
    pub direction: Direction,
    /// Only those of a type.
    pub relation: Option<String>,
}

/// The direction of a relationship.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// Either.
    #[default]
    Both,
    /// From here.
    Outgoing,
    /// To here.
    Incoming,
}

impl Direction {
    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Direction::Both => "both",
            Direction::Outgoing => "outgoing",
            Direction::Incoming => "incoming",
        }
    }
}

/// Which entities.
#[derive(Clone, Debug, Default)]
pub struct EntityQuery {
    /// Only those of a type.
    pub entity_type: Option<String>,
    /// Only those whose fields contain these words.
    pub text: Option<String>,
    /// Includes deleted ones.
    pub deleted: bool,
}

/// A point in time for a historical read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AsOf {
    /// Only what was observed by then.
    pub observed: Option<Timestamp>,
    /// Only what was stored by then.
    pub stored: Option<Timestamp>,
}

/// A correction of an entity's fields.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Correct {
    /// The entity.
    #[serde(skip, default = "unset_entity")]
    pub entity: EntityId,
    /// The correct values; `null` clears a field.
    #[serde(serialize_with = "json::exact::object::serialize", deserialize_with = "corrected")]
    #[schemars(with = "std::collections::BTreeMap<String, serde_json::Value>")]
    pub fields: Object,
    /// When it was observed; now by default.
    #[serde(
        default,
        deserialize_with = "correction_time",
        skip_serializing_if = "Option::is_none"
    )]
    pub observed_at: Option<Timestamp>,
}

fn corrected<'de, D: Deserializer<'de>>(input: D) -> Result<Object, D::Error> {
    match json::exact::deserialize(input)? {
        Json::Object(members) => Ok(members),
        other => {
            let why = format!("`fields` is an object, not {}", other.type_name());
            Err(refuse(Error::invalid(why)))
        }
    }
}

fn correction_time<'de, D: Deserializer<'de>>(input: D) -> Result<Option<Timestamp>, D::Error> {
    converted(input, observed_at)
}

/// Two entities to be merged.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "MergeEntity")]
pub struct Merge {
    /// The entity that is merged away.
    #[serde(skip, default = "unset_entity")]
    pub from: EntityId,
    /// The entity that remains.
    pub into: EntityId,
}

/// An entity to be separated into two.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "SeparateEntity")]
pub struct Separate {
    /// The entity.
    #[serde(skip, default = "unset_entity")]
    pub entity: EntityId,
    /// The observations that belong to the other entity.
    pub observations: Vec<ObservationId>,
    /// The other entity; a new one by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub into: Option<EntityId>,
}

/// Which sources to interpret again: those listed, or all that match the filters.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Reinterpret {
    /// The ids of the sources.
    #[serde(rename = "source_ids", default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<SourceId>,
    /// All sources of this media type.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// All sources stored at this time or later.
    #[serde(default, deserialize_with = "since", skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// All sources stored before this time.
    #[serde(default, deserialize_with = "until", skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// All sources whose last run failed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub failed: bool,
    /// The interpreter; the configured default if omitted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interpreter: Option<String>,
    /// Whether to answer only once the runs have ended.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub wait: bool,
}

fn since<'de, D: Deserializer<'de>>(input: D) -> Result<Option<Timestamp>, D::Error> {
    converted(input, |text| moment("since", text))
}

fn until<'de, D: Deserializer<'de>>(input: D) -> Result<Option<Timestamp>, D::Error> {
    converted(input, |text| moment("until", text))
}

/// A schema to be registered.
#[derive(Clone, Debug)]
pub struct NewSchema {
    /// The schema; its version is ignored.
    pub schema: Schema,
}

/// Which runs.
#[derive(Clone, Debug, Default)]
pub struct RunQuery {
    /// Only those of a source.
    pub source: Option<SourceId>,
    /// Only queued and running ones.
    pub open: bool,
}

/// Two runs to be compared.
#[derive(Clone, Copy, Debug)]
pub struct RunPair {
    /// The earlier one.
    pub before: InterpretationId,
    /// The later one.
    pub after: InterpretationId,
}

impl RelationshipQuery {
    /// Returns a query for all relationships of an entity.
    pub fn of(entity: EntityId) -> Self {
        RelationshipQuery { end: Some(End::Entity(entity)), ..RelationshipQuery::default() }
    }
}
