//! Entities, observations, sources, runs, relationships and schemas.

pub use tine_core::facts::Source as SourceRecord;
use tine_core::facts::observation::purged_form;
use tine_core::facts::schema::moment;
use tine_core::facts::{Observation, RunStatus, Schema, Slot};
use tine_core::json::text_fields::{all_parsed, optional, parsed, text, texts};
use tine_core::json::{Json, Object, object};
use tine_core::{
    ConversationId, Digest, EntityId, InterpretationId, ObservationId, SourceId, Timestamp,
};

use super::{ConversationTag, Edge, FamilyRecord, IndexKey, RecordKey, parse};

/// An entity without its observations.
#[derive(Clone, Debug, PartialEq)]
pub struct EntityRecord {
    /// The id.
    pub id: EntityId,
    /// The type.
    pub entity_type: String,
    /// What the id was derived from; null when it was minted.
    pub key: Json,
    /// When the first observation was stored.
    pub first_seen: Timestamp,
    /// The entity that it was merged into, and when.
    pub merged: Option<(EntityId, Timestamp)>,
    /// When it was deleted.
    pub deleted_at: Option<Timestamp>,
    /// The slot that it stands for.
    pub slot: Option<(ConversationId, Slot)>,
    /// The conversation that it stands for.
    pub conversation: Option<ConversationId>,
}

impl EntityRecord {
    /// Makes an entity that is neither merged nor deleted.
    pub fn new(id: EntityId, entity_type: &str, key: Json, first_seen: Timestamp) -> Self {
        EntityRecord {
            id,
            entity_type: entity_type.to_owned(),
            key,
            first_seen,
            merged: None,
            deleted_at: None,
            slot: None,
            conversation: None,
        }
    }
}

impl FamilyRecord for EntityRecord {
    type Id = EntityId;

    fn key_of(id: &EntityId) -> RecordKey {
        RecordKey::Entity(*id)
    }

    fn key(&self) -> RecordKey {
        RecordKey::Entity(self.id)
    }

    fn to_text(&self) -> String {
        let mut members = Object::new();
        members.insert("entity_type", self.entity_type.as_str().into());
        members.insert("first_seen", text(&self.first_seen));
        if !self.key.is_null() {
            members.insert("key", self.key.clone());
        }
        if let Some((into, at)) = &self.merged {
            members.insert("merged_into", text(into));
            members.insert("merged_at", text(at));
        }
        if let Some(at) = &self.deleted_at {
            members.insert("deleted_at", text(at));
        }
        if let Some((conversation, slot)) = &self.slot {
            members.insert("slot", slot.to_json());
            members.insert("conversation_id", text(conversation));
        }
        if let Some(conversation) = &self.conversation {
            members.insert("conversation_id", text(conversation));
        }
        Json::Object(members).to_canonical()
    }

    fn read(key: &RecordKey, text: &str) -> Option<Self> {
        let (RecordKey::Entity(id), json) = (key, &parse(text)?) else {
            return None;
        };
        let conversation =
            json.get("conversation_id").and_then(Json::as_str).map(ConversationId::from_stored);
        let slot = match json.get("slot") {
            Some(slot) => Some((conversation.clone()?, Slot::from_json(slot)?)),
            None => None,
        };
        let merged = match optional(json, "merged_into")? {
            Some(into) => Some((into, parsed(json, "merged_at")?)),
            None => None,
        };
        Some(EntityRecord {
            id: *id,
            entity_type: json.get("entity_type")?.as_str()?.to_owned(),
            key: json.get("key").cloned().unwrap_or(Json::Null),
            first_seen: parsed(json, "first_seen")?,
            merged,
            deleted_at: optional(json, "deleted_at")?,
            conversation: conversation.filter(|_| slot.is_none()),
            slot,
        })
    }

    fn index_keys(&self) -> Vec<IndexKey> {
        let entity = self.id;
        let (entity_type, first_seen) = (self.entity_type.clone(), self.first_seen);
        let mut keys = vec![IndexKey::EntityByType { entity_type, first_seen, entity }];
        if let Some((into, _)) = self.merged {
            keys.push(IndexKey::MergedInto { into, entity });
        }
        if let Some((conversation, slot)) = &self.slot {
            let conversation = ConversationTag::of(conversation);
            // Keys do not distinguish an empty id of a tool call from none.
            let tool_call_id = slot.tool_call_id.clone().filter(|call| !call.is_empty());
            let slot = Slot { tool_call_id, ..slot.clone() };
            keys.push(IndexKey::EntityOfSlot { conversation, slot, entity });
        }
        if let Some(conversation) = &self.conversation {
            let conversation = ConversationTag::of(conversation);
            keys.push(IndexKey::EntityOfConversation { conversation, entity });
        }
        keys
    }
}

/// An observation. Its text is what the operation log seals by digest.
#[derive(Clone, Debug, PartialEq)]
pub enum ObservationRecord {
    /// As it was made.
    Made(Observation),
    /// What an erasure left: the digest of the text.
    Purged(ObservationId, Digest),
}

impl ObservationRecord {
    /// Returns what was observed, unless it was erased.
    pub fn made(self) -> Option<Observation> {
        match self {
            ObservationRecord::Made(observation) => Some(observation),
            ObservationRecord::Purged(..) => None,
        }
    }
}

impl FamilyRecord for ObservationRecord {
    type Id = ObservationId;

    fn key_of(id: &ObservationId) -> RecordKey {
        RecordKey::Observation(*id)
    }

    fn key(&self) -> RecordKey {
        match self {
            ObservationRecord::Made(Observation { id, .. }) | ObservationRecord::Purged(id, _) => {
                RecordKey::Observation(*id)
            }
        }
    }

    fn to_text(&self) -> String {
        match self {
            ObservationRecord::Made(observation) => observation.to_json().to_canonical(),
            ObservationRecord::Purged(_, digest) => purged_form(digest).to_canonical(),
        }
    }

    fn read(key: &RecordKey, text: &str) -> Option<Self> {
        let (RecordKey::Observation(id), json) = (key, parse(text)?) else {
            return None;
        };
        match json.get("purged") {
            Some(_) => Some(ObservationRecord::Purged(*id, parsed(&json, "purged")?)),
            None => Observation::from_json(*id, &json).map(ObservationRecord::Made),
        }
    }

    fn index_keys(&self) -> Vec<IndexKey> {
        let ObservationRecord::Made(one) = self else {
            return Vec::new();
        };
        let observation = one.id;
        let about = one.turn.map(|turn| IndexKey::ObservationOfTurn { turn, observation });
        let dates = one.fields.iter().filter_map(|(field, value)| {
            let at = moment(value.as_str()?)?;
            Some(IndexKey::DatedField { at, observation, field: field.to_owned() })
        });
        about.into_iter().chain(dates).collect()
    }
}

/// A note that an observation describes another entity than the one it was made of.
#[derive(Clone, Debug, PartialEq)]
pub struct ObservationMove {
    /// The observation.
    pub observation: ObservationId,
    /// The entity that it describes.
    pub to: EntityId,
    /// When it was moved; older records do not say.
    pub at: Option<Timestamp>,
}

impl FamilyRecord for ObservationMove {
    type Id = ObservationId;

    fn key_of(id: &ObservationId) -> RecordKey {
        RecordKey::ObservationMove(*id)
    }

    fn key(&self) -> RecordKey {
        RecordKey::ObservationMove(self.observation)
    }

    fn to_text(&self) -> String {
        let mut members = Object::new();
        members.insert("to", text(&self.to));
        if let Some(at) = &self.at {
            members.insert("at", text(at));
        }
        Json::Object(members).to_canonical()
    }

    fn read(key: &RecordKey, text: &str) -> Option<Self> {
        let (RecordKey::ObservationMove(id), json) = (key, parse(text)?) else {
            return None;
        };
        let (to, at) = (parsed(&json, "to")?, optional(&json, "at")?);
        Some(ObservationMove { observation: *id, to, at })
    }

    fn index_keys(&self) -> Vec<IndexKey> {
        vec![IndexKey::MovedTo { to: self.to, observation: self.observation }]
    }
}

impl FamilyRecord for SourceRecord {
    type Id = SourceId;

    fn key_of(id: &SourceId) -> RecordKey {
        RecordKey::Source(*id)
    }

    fn key(&self) -> RecordKey {
        RecordKey::Source(self.id)
    }

    fn to_text(&self) -> String {
        let mut members = Object::new();
        members.insert("content_hash", self.content_hash.to_hex().into());
        members.insert("size_bytes", self.size_bytes.into());
        members.insert("mime_type", self.mime_type.as_str().into());
        members.insert("stored_at", text(&self.stored_at));
        members.insert("stored_by", self.stored_by.as_str().into());
        if let Some(name) = &self.original_filename {
            members.insert("original_filename", name.as_str().into());
        }
        if let Some(turn) = &self.turn {
            members.insert("turn_id", text(turn));
        }
        if self.purged {
            members.insert("purged", true.into());
        }
        Json::Object(members).to_canonical()
    }

    fn read(key: &RecordKey, text: &str) -> Option<Self> {
        let (RecordKey::Source(id), json) = (key, &parse(text)?) else {
            return None;
        };
        Some(SourceRecord {
            id: *id,
            content_hash: parsed(json, "content_hash")?,
            size_bytes: json.get("size_bytes")?.as_u64()?,
            mime_type: json.get("mime_type")?.as_str()?.to_owned(),
            original_filename: optional(json, "original_filename")?,
            stored_at: parsed(json, "stored_at")?,
            stored_by: json.get("stored_by")?.as_str()?.to_owned(),
            turn: optional(json, "turn_id")?,
            purged: json.get("purged").and_then(Json::as_bool).unwrap_or(false),
        })
    }

    fn index_keys(&self) -> Vec<IndexKey> {
        vec![IndexKey::SourceByTime { stored_at: self.stored_at, source: self.id }]
    }
}

/// A run of an interpreter over a source.
#[derive(Clone, Debug, PartialEq)]
pub struct RunRecord {
    /// The id.
    pub id: InterpretationId,
    /// The source.
    pub source: SourceId,
    /// Where it is.
    pub status: RunStatus,
    /// The interpreter's name.
    pub interpreter: String,
    /// When it was queued.
    pub queued_at: Timestamp,
    /// When it was last started.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub finished_at: Option<Timestamp>,
    /// How often it was started.
    pub attempts: u32,
    /// The failed run that it repeats.
    pub retry_of: Option<InterpretationId>,
    /// The observations that it made.
    pub observations: Vec<ObservationId>,
    /// Fields that its schemas do not declare.
    pub unknown_fields: Vec<String>,
    /// Remarks on what was left out.
    pub notes: Vec<String>,
    /// Why it failed.
    pub error: Option<String>,
    /// How it was done: interpreter, usage, request and response.
    pub detail: Object,
    /// When it is due; while it is running, when its lease expires.
    pub due: Timestamp,
    /// The process that has leased it.
    pub owner: Option<String>,
    /// Who asked for it.
    pub requested_by: String,
}

impl FamilyRecord for RunRecord {
    type Id = InterpretationId;

    fn key_of(id: &InterpretationId) -> RecordKey {
        RecordKey::Run(*id)
    }

    fn key(&self) -> RecordKey {
        RecordKey::Run(self.id)
    }

    fn to_text(&self) -> String {
        let json = object([
            ("source_id", text(&self.source)),
            ("status", self.status.as_str().into()),
            ("interpreter", self.interpreter.as_str().into()),
            ("queued_at", text(&self.queued_at)),
            ("started_at", self.started_at.as_ref().map(text).into()),
            ("finished_at", self.finished_at.as_ref().map(text).into()),
            ("attempts", self.attempts.into()),
            ("retry_of", self.retry_of.as_ref().map(text).into()),
            ("observations", texts(&self.observations)),
            ("unknown_fields", texts(&self.unknown_fields)),
            ("notes", texts(&self.notes)),
            ("error", self.error.clone().into()),
            ("detail", Json::Object(self.detail.clone())),
            ("due", text(&self.due)),
            ("owner", self.owner.clone().into()),
            ("requested_by", self.requested_by.as_str().into()),
        ]);
        json.to_canonical()
    }

    fn read(key: &RecordKey, text: &str) -> Option<Self> {
        let (RecordKey::Run(id), json) = (key, &parse(text)?) else {
            return None;
        };
        Some(RunRecord {
            id: *id,
            source: parsed(json, "source_id")?,
            status: RunStatus::parse(json.get("status")?.as_str()?)?,
            interpreter: json.get("interpreter")?.as_str()?.to_owned(),
            queued_at: parsed(json, "queued_at")?,
            started_at: optional(json, "started_at")?,
            finished_at: optional(json, "finished_at")?,
            attempts: u32::try_from(json.get("attempts")?.as_u64()?).ok()?,
            retry_of: optional(json, "retry_of")?,
            observations: all_parsed(json, "observations")?,
            unknown_fields: all_parsed(json, "unknown_fields")?,
            notes: all_parsed(json, "notes")?,
            error: optional(json, "error")?,
            detail: json.get("detail")?.as_object()?.clone(),
            due: parsed(json, "due")?,
            owner: optional(json, "owner")?,
            requested_by: json.get("requested_by")?.as_str()?.to_owned(),
        })
    }

    fn index_keys(&self) -> Vec<IndexKey> {
        let (run, interpreter) = (self.id, self.interpreter.clone());
        let mut keys = vec![IndexKey::RunOfSource { source: self.source, run }];
        if self.status.is_open() {
            keys.push(IndexKey::QueuedRun { due: self.due, run, interpreter });
        }
        keys
    }
}

/// A relationship between two ends.
#[derive(Clone, Debug, PartialEq)]
pub struct RelationshipRecord {
    /// Its type and its ends.
    pub edge: Edge,
    /// When it was made.
    pub created_at: Timestamp,
    /// Who made it.
    pub created_by: String,
    /// Metadata; an object.
    pub metadata: Json,
    /// Whether it follows from a turn rather than from a request.
    pub structural: bool,
    /// The log and the number of the operation that made it: later operations depend on it.
    pub made: Option<(ConversationId, u64)>,
}

impl FamilyRecord for RelationshipRecord {
    type Id = Edge;

    fn key_of(edge: &Edge) -> RecordKey {
        RecordKey::Relationship(*edge)
    }

    fn key(&self) -> RecordKey {
        RecordKey::Relationship(self.edge)
    }

    fn to_text(&self) -> String {
        let mut members = Object::new();
        members.insert("created_at", text(&self.created_at));
        members.insert("created_by", self.created_by.as_str().into());
        members.insert("metadata", self.metadata.clone());
        members.insert("structural", self.structural.into());
        if let Some((log, operation)) = &self.made {
            members.insert("log", text(log));
            members.insert("operation", (*operation).into());
        }
        Json::Object(members).to_canonical()
    }

    fn read(key: &RecordKey, text: &str) -> Option<Self> {
        let (RecordKey::Relationship(edge), json) = (key, parse(text)?) else {
            return None;
        };
        let log = json.get("log").and_then(Json::as_str).map(ConversationId::from_stored);
        Some(RelationshipRecord {
            edge: *edge,
            created_at: parsed(&json, "created_at")?,
            created_by: json.get("created_by")?.as_str()?.to_owned(),
            metadata: json.get("metadata").cloned().unwrap_or(Json::Null),
            structural: json.get("structural").and_then(Json::as_bool).unwrap_or(false),
            made: log.zip(json.get("operation").and_then(Json::as_u64)),
        })
    }

    fn index_keys(&self) -> Vec<IndexKey> {
        vec![IndexKey::RelationshipTo(self.edge)]
    }
}

/// One version of a type's schema.
#[derive(Clone, Debug, PartialEq)]
pub struct SchemaRecord(pub Schema);

impl FamilyRecord for SchemaRecord {
    type Id = (String, u32);

    fn key_of((entity_type, version): &(String, u32)) -> RecordKey {
        RecordKey::Schema { entity_type: entity_type.clone(), version: *version }
    }

    fn key(&self) -> RecordKey {
        Self::key_of(&(self.0.entity_type.clone(), self.0.version))
    }

    fn to_text(&self) -> String {
        self.0.to_json().to_canonical()
    }

    fn read(key: &RecordKey, text: &str) -> Option<Self> {
        match key {
            RecordKey::Schema { .. } => Schema::from_json(&parse(text)?).ok().map(SchemaRecord),
            _ => None,
        }
    }
}
