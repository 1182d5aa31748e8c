//! Secondary indexes: the list of them, their keys, and what a change of a record does to them.

use std::fmt;

use tine_core::facts::{Endpoint, Slot};
use tine_core::hash::to_hex;
use tine_core::{EntityId, InterpretationId, ObservationId, Role, SourceId, Timestamp, TurnId};

use super::key::{ConversationTag, Edge, KeyReader, RecordKey, observation_bytes, time_bytes};
use super::{Family, Record};

/// A secondary index. The numbers are part of the format; those in between are families'.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum RecordIndex {
    /// Entities by type and first observation.
    EntityByType = 2,
    /// Entities by the entity that they were merged into.
    MergedInto = 3,
    /// Moved observations by the entity that they describe now.
    MovedTo = 5,
    /// Observations by the turn that they are about.
    ObservationOfTurn = 7,
    /// Fields of observations that hold a date, by that date.
    DatedField = 8,
    /// Entities by the slot that they stand for.
    EntityOfSlot = 9,
    /// Sources by the time at which they were stored.
    SourceByTime = 11,
    /// Runs by source.
    RunOfSource = 13,
    /// Queued and running runs by the time at which they are due.
    QueuedRun = 14,
    /// Relationships by target.
    RelationshipTo = 17,
    /// Entities by the conversation that they stand for.
    EntityOfConversation = 26,
}

impl RecordIndex {
    /// Every index.
    pub const ALL: [RecordIndex; 11] = [
        RecordIndex::EntityByType,
        RecordIndex::MergedInto,
        RecordIndex::MovedTo,
        RecordIndex::ObservationOfTurn,
        RecordIndex::DatedField,
        RecordIndex::EntityOfSlot,
        RecordIndex::SourceByTime,
        RecordIndex::RunOfSource,
        RecordIndex::QueuedRun,
        RecordIndex::RelationshipTo,
        RecordIndex::EntityOfConversation,
    ];

    /// Returns the family that is indexed.
    pub fn family(self) -> Family {
        match self {
            RecordIndex::EntityByType
            | RecordIndex::MergedInto
            | RecordIndex::EntityOfSlot
            | RecordIndex::EntityOfConversation => Family::Entity,
            RecordIndex::MovedTo => Family::ObservationMove,
            RecordIndex::ObservationOfTurn | RecordIndex::DatedField => Family::Observation,
            RecordIndex::SourceByTime => Family::Source,
            RecordIndex::RunOfSource | RecordIndex::QueuedRun => Family::Run,
            RecordIndex::RelationshipTo => Family::Relationship,
        }
    }

    /// Returns the number.
    pub fn code(self) -> u8 {
        self as u8
    }
}

/// One key of an index. It names the record that it leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields are named after what they hold")]
pub enum IndexKey {
    EntityByType {
        entity_type: String,
        first_seen: Timestamp,
        entity: EntityId,
    },
    MergedInto {
        into: EntityId,
        entity: EntityId,
    },
    MovedTo {
        to: EntityId,
        observation: ObservationId,
    },
    ObservationOfTurn {
        turn: TurnId,
        observation: ObservationId,
    },
    DatedField {
        at: Timestamp,
        observation: ObservationId,
        field: String,
    },
    EntityOfSlot {
        conversation: ConversationTag,
        slot: Slot,
        entity: EntityId,
    },
    SourceByTime {
        stored_at: Timestamp,
        source: SourceId,
    },
    RunOfSource {
        source: SourceId,
        run: InterpretationId,
    },
    QueuedRun {
        due: Timestamp,
        run: InterpretationId,
        interpreter: String,
    },
    RelationshipTo(Edge),
    EntityOfConversation {
        conversation: ConversationTag,
        entity: EntityId,
    },
    /// Bytes that are no key of their index.
    Unreadable {
        index: RecordIndex,
        bytes: Vec<u8>,
    },
}

fn role_code(role: Role) -> u8 {
    match role {
        Role::System => 0,
        Role::User => 1,
        Role::Assistant => 2,
        Role::Tool => 3,
    }
}

fn role_from(code: u8) -> Option<Role> {
    [Role::System, Role::User, Role::Assistant, Role::Tool].into_iter().nth(usize::from(code))
}

/// The beginning of all slots under one turn id of a host.
pub(super) fn turn_id_prefix(conversation: ConversationTag, turn_id: &str) -> Vec<u8> {
    [conversation.as_bytes().as_slice(), turn_id.as_bytes(), &[0]].concat()
}

/// The beginning of an assistant's slots under one turn id, ordered by part.
pub(super) fn answers_prefix(conversation: ConversationTag, turn_id: &str) -> Vec<u8> {
    let mut bytes = turn_id_prefix(conversation, turn_id);
    bytes.push(role_code(Role::Assistant));
    bytes
}

/// The beginning of the one key of a slot.
pub(super) fn slot_prefix(conversation: ConversationTag, slot: &Slot) -> Vec<u8> {
    let mut bytes = turn_id_prefix(conversation, &slot.turn_id);
    bytes.push(role_code(slot.role));
    bytes.extend(slot.part.to_be_bytes());
    bytes.extend(slot.tool_call_id.as_deref().unwrap_or_default().as_bytes());
    bytes.push(0);
    bytes
}

/// The beginning of all relationships that end at a turn.
pub(super) fn any_turn_prefix() -> Vec<u8> {
    Endpoint::Turn(TurnId::from_bytes([0; 16])).to_bytes()[..1].to_vec()
}

impl IndexKey {
    /// Returns the index.
    pub fn index(&self) -> RecordIndex {
        match self {
            IndexKey::EntityByType { .. } => RecordIndex::EntityByType,
            IndexKey::MergedInto { .. } => RecordIndex::MergedInto,
            IndexKey::MovedTo { .. } => RecordIndex::MovedTo,
            IndexKey::ObservationOfTurn { .. } => RecordIndex::ObservationOfTurn,
            IndexKey::DatedField { .. } => RecordIndex::DatedField,
            IndexKey::EntityOfSlot { .. } => RecordIndex::EntityOfSlot,
            IndexKey::SourceByTime { .. } => RecordIndex::SourceByTime,
            IndexKey::RunOfSource { .. } => RecordIndex::RunOfSource,
            IndexKey::QueuedRun { .. } => RecordIndex::QueuedRun,
            IndexKey::RelationshipTo(_) => RecordIndex::RelationshipTo,
            IndexKey::EntityOfConversation { .. } => RecordIndex::EntityOfConversation,
            IndexKey::Unreadable { index, .. } => *index,
        }
    }

    /// Returns the key of the record that it leads to; `None` when it cannot be read.
    pub fn owner(&self) -> Option<RecordKey> {
        Some(match self {
            IndexKey::EntityByType { entity, .. }
            | IndexKey::MergedInto { entity, .. }
            | IndexKey::EntityOfSlot { entity, .. }
            | IndexKey::EntityOfConversation { entity, .. } => RecordKey::Entity(*entity),
            IndexKey::MovedTo { observation, .. } => RecordKey::ObservationMove(*observation),
            IndexKey::ObservationOfTurn { observation, .. }
            | IndexKey::DatedField { observation, .. } => RecordKey::Observation(*observation),
            IndexKey::SourceByTime { source, .. } => RecordKey::Source(*source),
            IndexKey::RunOfSource { run, .. } | IndexKey::QueuedRun { run, .. } => {
                RecordKey::Run(*run)
            }
            IndexKey::RelationshipTo(edge) => RecordKey::Relationship(*edge),
            IndexKey::Unreadable { .. } => return None,
        })
    }

    /// Returns the bytes; within an index they sort as the keys do.
    pub fn to_bytes(&self) -> Vec<u8> {
        match self {
            IndexKey::EntityByType { entity_type, first_seen, entity } => {
                let first_seen = time_bytes(*first_seen);
                [entity_type.as_bytes(), &[0], &first_seen, entity.as_bytes()].concat()
            }
            IndexKey::MergedInto { into, entity } => {
                [into.as_bytes().as_slice(), entity.as_bytes()].concat()
            }
            IndexKey::MovedTo { to, observation } => {
                [to.as_bytes().as_slice(), &observation_bytes(*observation)].concat()
            }
            IndexKey::ObservationOfTurn { turn, observation } => {
                [turn.as_bytes().as_slice(), &observation_bytes(*observation)].concat()
            }
            IndexKey::DatedField { at, observation, field } => {
                let observation = observation_bytes(*observation);
                [&time_bytes(*at), observation.as_slice(), field.as_bytes()].concat()
            }
            IndexKey::EntityOfSlot { conversation, slot, entity } => {
                [slot_prefix(*conversation, slot).as_slice(), entity.as_bytes()].concat()
            }
            IndexKey::SourceByTime { stored_at, source } => {
                [time_bytes(*stored_at).as_slice(), source.as_bytes()].concat()
            }
            IndexKey::RunOfSource { source, run } => {
                [source.as_bytes().as_slice(), run.as_bytes()].concat()
            }
            IndexKey::QueuedRun { due, run, interpreter } => {
                [time_bytes(*due).as_slice(), run.as_bytes(), interpreter.as_bytes()].concat()
            }
            IndexKey::RelationshipTo(edge) => edge.reversed().to_bytes(),
            IndexKey::EntityOfConversation { conversation, entity } => {
                [conversation.as_bytes().as_slice(), entity.as_bytes()].concat()
            }
            IndexKey::Unreadable { bytes, .. } => bytes.clone(),
        }
    }

    /// Reads the bytes of a key.
    pub fn from_bytes(index: RecordIndex, bytes: &[u8]) -> IndexKey {
        let mut reader = KeyReader(bytes);
        let key = Self::parse(index, &mut reader).filter(|_| reader.0.is_empty());
        key.unwrap_or_else(|| IndexKey::Unreadable { index, bytes: bytes.to_vec() })
    }

    fn parse(index: RecordIndex, reader: &mut KeyReader<'_>) -> Option<IndexKey> {
        Some(match index {
            RecordIndex::EntityByType => IndexKey::EntityByType {
                entity_type: reader.text()?,
                first_seen: reader.time()?,
                entity: reader.entity()?,
            },
            RecordIndex::MergedInto => {
                IndexKey::MergedInto { into: reader.entity()?, entity: reader.entity()? }
            }
            RecordIndex::MovedTo => {
                IndexKey::MovedTo { to: reader.entity()?, observation: reader.observation()? }
            }
            RecordIndex::ObservationOfTurn => IndexKey::ObservationOfTurn {
                turn: reader.turn()?,
                observation: reader.observation()?,
            },
            RecordIndex::DatedField => IndexKey::DatedField {
                at: reader.time()?,
                observation: reader.observation()?,
                field: reader.rest()?,
            },
            RecordIndex::EntityOfSlot => {
                let (conversation, turn_id) = (reader.conversation()?, reader.text()?);
                let role = role_from(u8::from_be_bytes(reader.bytes()?))?;
                let (part, call) = (reader.small()?, reader.text()?);
                let tool_call_id = Some(call).filter(|call| !call.is_empty());
                let slot = Slot { turn_id, role, tool_call_id, part };
                IndexKey::EntityOfSlot { conversation, slot, entity: reader.entity()? }
            }
            RecordIndex::SourceByTime => {
                IndexKey::SourceByTime { stored_at: reader.time()?, source: reader.source()? }
            }
            RecordIndex::RunOfSource => {
                IndexKey::RunOfSource { source: reader.source()?, run: reader.run()? }
            }
            RecordIndex::QueuedRun => IndexKey::QueuedRun {
                due: reader.time()?,
                run: reader.run()?,
                interpreter: reader.rest()?,
            },
            RecordIndex::RelationshipTo => {
                let reversed = Edge::from_bytes(std::mem::take(&mut reader.0))?;
                IndexKey::RelationshipTo(reversed.reversed())
            }
            RecordIndex::EntityOfConversation => IndexKey::EntityOfConversation {
                conversation: reader.conversation()?,
                entity: reader.entity()?,
            },
        })
    }
}

impl fmt::Display for IndexKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "index {:?} {}", self.index(), to_hex(&self.to_bytes()))
    }
}

/// What adding, replacing or removing a record does to the indexes.
#[derive(Debug, Default)]
pub struct IndexChanges {
    /// Keys to remove.
    pub removed: Vec<IndexKey>,
    /// Keys to add.
    pub added: Vec<IndexKey>,
}

/// Compares the index keys of a record before and after a change. Every store calls this, and
/// nothing else, to learn which keys to write.
pub fn index_changes(before: Option<&Record>, after: Option<&Record>) -> IndexChanges {
    let keys = |record: Option<&Record>| {
        record.map_or_else(Vec::new, |record| record.index_keys().into_owned())
    };
    let (mut removed, mut added) = (keys(before), keys(after));
    let kept: Vec<IndexKey> = removed.iter().filter(|key| added.contains(key)).cloned().collect();
    removed.retain(|key| !kept.contains(key));
    added.retain(|key| !kept.contains(key));
    IndexChanges { removed, added }
}
