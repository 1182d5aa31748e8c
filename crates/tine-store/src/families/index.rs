//! Secondary indexes: the list of them, their keys, and what a change of a record does to them.

use std::fmt;

use tine_core::facts::Slot;
use tine_core::hash::to_hex;
use tine_core::{EntityId, InterpretationId, ObservationId, SourceId, Timestamp, TurnId};

use super::codec::{KeyPart, KeyTail, key_codec};
use super::key::{ConversationTag, Edge, RecordKey};
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

key_codec! { IndexKey, index: RecordIndex;
    EntityByType { entity_type, first_seen, entity } = [entity_type, first_seen, entity];
    MergedInto { into, entity } = [into, entity];
    MovedTo { to, observation } = [to, observation];
    ObservationOfTurn { turn, observation } = [turn, observation];
    DatedField { at, observation, field } = [at, observation, field as tail];
    EntityOfSlot { conversation, slot, entity } = [conversation, slot, entity];
    SourceByTime { stored_at, source } = [stored_at, source];
    RunOfSource { source, run } = [source, run];
    QueuedRun { due, run, interpreter } = [due, run, interpreter as tail];
    RelationshipTo(edge) = [edge as reversed];
    EntityOfConversation { conversation, entity } = [conversation, entity];
}

impl IndexKey {
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
