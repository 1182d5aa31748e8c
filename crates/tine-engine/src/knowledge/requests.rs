//! What a caller asks of what was learned.

use std::io;
use std::sync::Arc;

use tine_core::facts::Schema;
use tine_core::json::{Object, object};
use tine_core::{
    EntityId, InterpretationId, Json, Message, ObservationId, Reference, SourceId, Timestamp,
};

/// Whether a store is followed by an interpretation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Interpret {
    /// No.
    #[default]
    None,
    /// Later, in the background.
    Queue,
    /// At once; the answer comes when it is done.
    Wait,
}

impl Interpret {
    /// Adds to what a key stands for that something is interpreted, and by whom. Waiting for it
    /// makes no difference to what is stored.
    pub(super) fn told(self, interpreter: Option<&str>, payload: &mut Object) {
        if self != Interpret::None {
            payload.insert("interpret", object([("by", interpreter.into())]));
        }
    }
}

/// A turn of a host that tracks no branches.
#[derive(Clone, Debug)]
pub struct StoreTurn {
    /// The conversation's id, or its entity's. It is made if it is not there; without one, an id
    /// is minted.
    pub conversation: Option<String>,
    /// The host's id of the turn. Without it the call's key, or a minted one.
    pub turn_id: Option<String>,
    /// What was said.
    pub message: Message,
    /// The branch to store on, by name or id; made if it is not there. `main` without it.
    pub branch: Option<String>,
    /// The turn that it follows, come what may.
    pub parent: Option<Reference>,
    /// The host's id of the message that it follows, or that turn.
    pub parent_message: Option<String>,
    /// Everything that was said before, from the root on: it is placed first.
    pub history: Vec<Message>,
    /// Sources that came with it.
    pub attachments: Vec<SourceId>,
    /// A title for a conversation that is made.
    pub title: Option<String>,
    /// A system prompt for a conversation that is made.
    pub system_prompt: Option<String>,
    /// Whether it is interpreted.
    pub interpret: Interpret,
    /// By which interpreter; the default one without it.
    pub interpreter: Option<String>,
}

impl StoreTurn {
    /// One message of a host's turn, and nothing else.
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
    /// Begins to read them.
    fn open(&self) -> io::Result<Box<dyn io::Read + '_>>;
}

impl SourceBytes for Vec<u8> {
    fn open(&self) -> io::Result<Box<dyn io::Read + '_>> {
        Ok(Box::new(self.as_slice()))
    }
}

/// Bytes to be kept.
#[derive(Clone)]
pub struct NewSource {
    /// The bytes.
    pub content: Arc<dyn SourceBytes>,
    /// What they are.
    pub mime_type: String,
    /// The name that they came under.
    pub original_filename: Option<String>,
    /// Whether they are interpreted.
    pub interpret: Interpret,
    /// By which interpreter; the default one without it.
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
    /// What is known of which entities.
    pub entities: Vec<NewFact>,
    /// How they hang together.
    pub relationships: Vec<NewRelationship>,
    /// The source that they were taken from; without it, what was sent becomes one.
    pub source: Option<SourceId>,
    /// What made them: name, model and whatever else the caller tells of itself.
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

/// Everything that one exchange brings: at least one part.
#[derive(Clone, Debug, Default)]
pub struct StoreTogether {
    /// What was said.
    pub turn: Option<StoreTurn>,
    /// Bytes that came with it.
    pub source: Option<NewSource>,
    /// What the caller took from them.
    pub facts: Option<StoreFacts>,
    /// Only to see what would happen: nothing is kept.
    pub rehearse: bool,
}

/// What is known of one entity.
#[derive(Clone, Debug)]
pub struct NewFact {
    /// Its type.
    pub entity_type: String,
    /// The entity, where the caller knows it.
    pub entity: Option<EntityId>,
    /// What is said of it.
    pub fields: Object,
    /// When it was said; now without it.
    pub observed_at: Option<Timestamp>,
    /// The turn that said it.
    pub turn: Option<Reference>,
    /// The bytes of the source's text that say it.
    pub span: Option<(u64, u64)>,
    /// What counts more, where a schema asks for that.
    pub priority: Option<i64>,
    /// How specific it is, where a schema asks for that.
    pub specificity: Option<i64>,
}

impl NewFact {
    /// Fields of an entity of a type.
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
    /// Its type, one of the eight.
    pub relation: String,
    /// From.
    pub source: End,
    /// To.
    pub target: End,
    /// What is known of it; `null` or an object.
    pub metadata: Json,
}

/// Which relationships.
#[derive(Clone, Debug, Default)]
pub struct RelationshipQuery {
    /// At this end.
    pub end: Option<End>,
    /// Only those that begin there, or only those that end there.
    pub direction: Direction,
    /// Only those of a type.
    pub relation: Option<String>,
}

/// Which way a relationship leads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Direction {
    /// Either.
    #[default]
    Both,
    /// From here.
    Outgoing,
    /// To here.
    Incoming,
}

/// Which entities.
#[derive(Clone, Debug, Default)]
pub struct EntityQuery {
    /// Only those of a type.
    pub entity_type: Option<String>,
    /// Only those whose fields hold these words.
    pub text: Option<String>,
    /// Deleted ones too.
    pub deleted: bool,
}

/// As of when.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AsOf {
    /// Only what was observed by then.
    pub observed: Option<Timestamp>,
    /// Only what was stored by then.
    pub stored: Option<Timestamp>,
}

/// What a person knows better.
#[derive(Clone, Debug)]
pub struct Correct {
    /// The entity.
    pub entity: EntityId,
    /// The fields that are wrong, as they should be; `null` clears one.
    pub fields: Object,
    /// When it was known; now without it.
    pub observed_at: Option<Timestamp>,
}

/// Two entities that are one.
#[derive(Clone, Copy, Debug)]
pub struct Merge {
    /// The one that goes.
    pub from: EntityId,
    /// The one that stays.
    pub into: EntityId,
}

/// One entity that is two.
#[derive(Clone, Debug)]
pub struct Separate {
    /// The entity.
    pub entity: EntityId,
    /// The observations that speak of the other one.
    pub observations: Vec<ObservationId>,
    /// The other one; a new one without it.
    pub into: Option<EntityId>,
}

/// Which sources are read again.
#[derive(Clone, Debug, Default)]
pub struct Reinterpret {
    /// These.
    pub sources: Vec<SourceId>,
    /// All of a mime type.
    pub mime_type: Option<String>,
    /// All that came at this time or later.
    pub since: Option<Timestamp>,
    /// All that came before this time.
    pub until: Option<Timestamp>,
    /// All whose last run failed.
    pub failed: bool,
    /// By which interpreter; the default one without it.
    pub interpreter: Option<String>,
    /// At once, or in the background.
    pub wait: bool,
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
    /// Only those over a source.
    pub source: Option<SourceId>,
    /// Only those that wait or work.
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
    /// Everything that an entity is related to.
    pub fn of(entity: EntityId) -> Self {
        RelationshipQuery { end: Some(End::Entity(entity)), ..RelationshipQuery::default() }
    }
}
