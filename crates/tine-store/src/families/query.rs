//! Which records of a family, or which keys of an index, in order.

use tine_core::facts::{Endpoint, Slot};
use tine_core::{ConversationId, Digest, EntityId, SourceId, Timestamp, TurnId};

use super::index::{answers_prefix, any_turn_prefix, slot_prefix, turn_id_prefix};
use super::key::{observation_bytes, time_bytes};
use super::{ConversationTag, Family, IndexKey, RecordIndex, RecordKey};

/// A range of key bytes. Stores read it; only the queries of this module make one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyRange {
    /// The first key.
    pub from: Vec<u8>,
    /// The end, exclusive; `None` for no end.
    pub to: Option<Vec<u8>>,
    /// Whether the last key comes first.
    pub backwards: bool,
}

impl KeyRange {
    fn prefix(prefix: &[u8]) -> KeyRange {
        KeyRange { from: prefix.to_vec(), to: successor(prefix), backwards: false }
    }
}

/// Returns the first key after all that begin with these bytes.
fn successor(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|byte| *byte != u8::MAX)?;
    let mut next = prefix[..=last].to_vec();
    next[last] += 1;
    Some(next)
}

/// A range of a family's records or of an index's keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyScan<T> {
    /// The family or the index.
    pub of: T,
    /// The keys.
    pub range: KeyRange,
}

/// Records of one family, by key.
pub type RecordQuery = KeyScan<Family>;

/// Keys of one index.
pub type IndexQuery = KeyScan<RecordIndex>;

impl<T> KeyScan<T> {
    /// Selects everything.
    pub fn all(of: T) -> Self {
        KeyScan { of, range: KeyRange::default() }
    }

    fn prefix(of: T, prefix: &[u8]) -> Self {
        KeyScan { of, range: KeyRange::prefix(prefix) }
    }

    fn between(of: T, from: &[u8], through: &[u8]) -> Self {
        let range = KeyRange { from: from.to_vec(), to: successor(through), backwards: false };
        KeyScan { of, range }
    }

    /// Lists the last key first.
    pub fn backwards(mut self) -> Self {
        self.range.backwards = true;
        self
    }

    /// Leaves out everything up to these bytes of a key, in the direction of the query.
    pub fn after_bytes(mut self, key: &[u8]) -> Self {
        match self.range.backwards {
            true => self.range.to = Some(key.to_vec()),
            false => self.range.from = [key, &[0]].concat(),
        }
        self
    }

    /// Returns whether the bytes of a key lie in the range.
    pub fn contains(&self, key: &[u8]) -> bool {
        key >= self.range.from.as_slice() && self.range.to.as_deref().is_none_or(|to| key < to)
    }
}

impl RecordQuery {
    /// Leaves out everything up to a key.
    pub fn after(self, key: &RecordKey) -> Self {
        self.after_bytes(&key.to_bytes())
    }

    /// Ends the range after a key.
    pub fn through(mut self, key: &RecordKey) -> Self {
        self.range.to = Some([key.to_bytes().as_slice(), &[0]].concat());
        self
    }

    /// Selects the observations that were made of an entity.
    pub fn observations_of(entity: EntityId) -> Self {
        KeyScan::prefix(Family::Observation, entity.as_bytes())
    }

    /// Selects the observations of an entity after one of them.
    pub fn observations_after(entity: EntityId, seq: u64) -> Self {
        let last = observation_bytes(tine_core::ObservationId { entity, seq });
        Self::observations_of(entity).after_bytes(&last)
    }

    /// Selects the moves of observations that were made of an entity.
    pub fn moves_of(entity: EntityId) -> Self {
        KeyScan::prefix(Family::ObservationMove, entity.as_bytes())
    }

    /// Selects the versions of a type's schema.
    pub fn schemas_of(entity_type: &str) -> Self {
        KeyScan::prefix(Family::Schema, &[entity_type.as_bytes(), &[0]].concat())
    }

    /// Selects the relationships that start at an end.
    pub fn relationships_from(source: &Endpoint) -> Self {
        KeyScan::prefix(Family::Relationship, &source.to_bytes())
    }

    /// Selects the commits whose hashes lie between two, both included.
    pub fn commits_between(low: &Digest, high: &Digest) -> Self {
        KeyScan::between(Family::Commit, &low.0, &high.0)
    }

    /// Selects the listed commits of a conversation, the oldest first.
    pub fn listings_of(id: &ConversationId) -> Self {
        KeyScan::prefix(Family::CommitListing, ConversationTag::of(id).as_bytes())
    }

    /// Selects the last commits of a conversation's branches.
    pub fn heads_of(id: &ConversationId) -> Self {
        KeyScan::prefix(Family::CommitHead, ConversationTag::of(id).as_bytes())
    }

    /// Selects the rings of turns between two, both included.
    pub fn rings_between(first: &TurnId, last: &TurnId) -> Self {
        KeyScan::between(Family::Rings, first.as_bytes(), last.as_bytes())
    }
}

impl IndexQuery {
    /// Leaves out everything up to a key.
    pub fn after(self, key: &IndexKey) -> Self {
        self.after_bytes(&key.to_bytes())
    }

    /// Selects one key, if it exists.
    pub fn exactly(key: &IndexKey) -> Self {
        let from = key.to_bytes();
        let to = Some([from.as_slice(), &[0]].concat());
        KeyScan { of: key.index(), range: KeyRange { from, to, backwards: false } }
    }

    /// Selects the entities of a type, or of every type.
    pub fn entities(entity_type: Option<&str>) -> Self {
        match entity_type {
            None => KeyScan::all(RecordIndex::EntityByType),
            Some(name) => {
                KeyScan::prefix(RecordIndex::EntityByType, &[name.as_bytes(), &[0]].concat())
            }
        }
    }

    /// Selects the entities that were merged into one.
    pub fn merged_into(entity: EntityId) -> Self {
        KeyScan::prefix(RecordIndex::MergedInto, entity.as_bytes())
    }

    /// Selects the observations that were moved to an entity.
    pub fn moved_to(entity: EntityId) -> Self {
        KeyScan::prefix(RecordIndex::MovedTo, entity.as_bytes())
    }

    /// Selects the observations about a turn.
    pub fn about_turn(turn: &TurnId) -> Self {
        Self::about_turns(turn, turn)
    }

    /// Selects the observations about turns between two, both included.
    pub fn about_turns(first: &TurnId, last: &TurnId) -> Self {
        KeyScan::between(RecordIndex::ObservationOfTurn, first.as_bytes(), last.as_bytes())
    }

    /// Selects the dated fields from one time, inclusive, to another, exclusive.
    pub fn dated(from: Option<Timestamp>, to: Option<Timestamp>) -> Self {
        let mut query = KeyScan::all(RecordIndex::DatedField);
        query.range.from = from.map_or_else(Vec::new, |from| time_bytes(from).to_vec());
        query.range.to = to.map(|to| time_bytes(to).to_vec());
        query
    }

    /// Selects the entity of a conversation.
    pub fn entity_of_conversation(id: &ConversationId) -> Self {
        KeyScan::prefix(RecordIndex::EntityOfConversation, ConversationTag::of(id).as_bytes())
    }

    /// Selects the entity of a slot.
    pub fn entity_of_slot(id: &ConversationId, slot: &Slot) -> Self {
        KeyScan::prefix(RecordIndex::EntityOfSlot, &slot_prefix(ConversationTag::of(id), slot))
    }

    /// Selects the entities of all slots under a host's turn id.
    pub fn slots_of_turn(id: &ConversationId, turn_id: &str) -> Self {
        KeyScan::prefix(
            RecordIndex::EntityOfSlot,
            &turn_id_prefix(ConversationTag::of(id), turn_id),
        )
    }

    /// Selects the entities of an assistant's slots under a host's turn id, ordered by part.
    pub fn answers_of_turn(id: &ConversationId, turn_id: &str) -> Self {
        KeyScan::prefix(
            RecordIndex::EntityOfSlot,
            &answers_prefix(ConversationTag::of(id), turn_id),
        )
    }

    /// Selects the runs over a source, the oldest first.
    pub fn runs_of(source: &SourceId) -> Self {
        KeyScan::prefix(RecordIndex::RunOfSource, source.as_bytes())
    }

    /// Selects the runs that are due at a time.
    pub fn runs_due(at: Timestamp) -> Self {
        let mut query = KeyScan::all(RecordIndex::QueuedRun);
        query.range.to = Some(time_bytes(at.next()).to_vec());
        query
    }

    /// Selects the relationships that end at an end.
    pub fn relationships_to(target: &Endpoint) -> Self {
        KeyScan::prefix(RecordIndex::RelationshipTo, &target.to_bytes())
    }

    /// Selects the relationships that end at any turn.
    pub fn relationships_to_turns() -> Self {
        KeyScan::prefix(RecordIndex::RelationshipTo, &any_turn_prefix())
    }
}
