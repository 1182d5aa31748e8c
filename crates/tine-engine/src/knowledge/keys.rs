//! How what was learned is found: the keys of the ledger's entries, and what lies under them.
//!
//! Keys are ids and texts one behind the other. A text that is not the last part ends with a
//! zero byte, which no text holds. Numbers are big-endian, so that their order is that of bytes.

use tine_core::facts::{Endpoint, Relation, Slot};
use tine_core::{
    ConversationId, Digest, EntityId, InterpretationId, ObservationId, Role, SourceId, Timestamp,
    TurnId,
};

pub(crate) fn time(at: Timestamp) -> [u8; 8] {
    // Times before 1970 come first.
    (at.as_millis().wrapping_sub(i64::MIN) as u64).to_be_bytes()
}

pub(crate) fn time_from(bytes: [u8; 8]) -> Timestamp {
    Timestamp::from_millis((u64::from_be_bytes(bytes) as i64).wrapping_add(i64::MIN))
}

fn tail<const N: usize>(key: &[u8]) -> Option<[u8; N]> {
    key.last_chunk::<N>().copied()
}

pub(crate) fn observation(id: ObservationId) -> Vec<u8> {
    [id.entity.as_bytes().as_slice(), &id.seq.to_be_bytes()].concat()
}

/// The observation whose key these bytes end with.
pub(crate) fn observation_at_end(key: &[u8]) -> Option<ObservationId> {
    let key = tail::<24>(key)?;
    let (entity, seq) = key.split_first_chunk::<16>()?;
    let seq = u64::from_be_bytes(seq.try_into().ok()?);
    Some(ObservationId { entity: EntityId::from_bytes(*entity), seq })
}

pub(crate) fn observation_of_turn(turn: &TurnId, id: ObservationId) -> Vec<u8> {
    [turn.as_bytes().as_slice(), &observation(id)].concat()
}

pub(crate) fn dated(at: Timestamp, id: ObservationId, field: &str) -> Vec<u8> {
    [&time(at), observation(id).as_slice(), field.as_bytes()].concat()
}

/// When, and by which observation, of which field.
pub(crate) fn dated_parts(key: &[u8]) -> Option<(Timestamp, ObservationId, String)> {
    let (at, rest) = key.split_first_chunk::<8>()?;
    let (id, field) = rest.split_at_checked(24)?;
    let field = String::from_utf8(field.to_vec()).ok()?;
    Some((time_from(*at), observation_at_end(id)?, field))
}

pub(crate) fn dated_from(at: Timestamp) -> Vec<u8> {
    time(at).to_vec()
}

pub(crate) fn type_prefix(entity_type: &str) -> Vec<u8> {
    [entity_type.as_bytes(), &[0]].concat()
}

pub(crate) fn entity_of_type(entity_type: &str, first_seen: Timestamp, id: EntityId) -> Vec<u8> {
    [type_prefix(entity_type).as_slice(), &time(first_seen), id.as_bytes()].concat()
}

pub(crate) fn entity_at_end(key: &[u8]) -> Option<EntityId> {
    tail(key).map(EntityId::from_bytes)
}

pub(crate) fn entity_and(first: EntityId, second: &[u8]) -> Vec<u8> {
    [first.as_bytes().as_slice(), second].concat()
}

/// Under which a conversation's own entity and those of its slots are found. Entities keep their
/// ids when they come to another project; what leads to them must not depend on it.
pub(crate) fn conversation(id: &ConversationId) -> Vec<u8> {
    Digest::of(id.as_str().as_bytes()).0[..16].to_vec()
}

pub(crate) fn slots_of_turn(conversation: &ConversationId, turn_id: &str) -> Vec<u8> {
    [self::conversation(conversation).as_slice(), turn_id.as_bytes(), &[0]].concat()
}

/// The slots of an assistant under one turn id, in order of their parts.
pub(crate) fn answers_of_turn(conversation: &ConversationId, turn_id: &str) -> Vec<u8> {
    let mut key = slots_of_turn(conversation, turn_id);
    key.push(role_code(Role::Assistant));
    key
}

fn role_code(role: Role) -> u8 {
    match role {
        Role::System => 0,
        Role::User => 1,
        Role::Assistant => 2,
        Role::Tool => 3,
    }
}

pub(crate) fn slot(conversation: &ConversationId, slot: &Slot) -> Vec<u8> {
    let mut key = slots_of_turn(conversation, &slot.turn_id);
    key.push(role_code(slot.role));
    key.extend(slot.part.to_be_bytes());
    key.extend(slot.tool_call_id.as_deref().unwrap_or_default().as_bytes());
    key
}

pub(crate) fn source_by_time(at: Timestamp, id: SourceId) -> Vec<u8> {
    [time(at).as_slice(), id.as_bytes()].concat()
}

pub(crate) fn source_at_end(key: &[u8]) -> Option<SourceId> {
    tail(key).map(SourceId::from_bytes)
}

pub(crate) fn run_of_source(source: SourceId, run: InterpretationId) -> Vec<u8> {
    [source.as_bytes().as_slice(), run.as_bytes()].concat()
}

pub(crate) fn run_queued(due: Timestamp, run: InterpretationId) -> Vec<u8> {
    [time(due).as_slice(), run.as_bytes()].concat()
}

pub(crate) fn run_at_end(key: &[u8]) -> Option<InterpretationId> {
    tail(key).map(InterpretationId::from_bytes)
}

pub(crate) fn schema(entity_type: &str, version: u32) -> Vec<u8> {
    [type_prefix(entity_type).as_slice(), &version.to_be_bytes()].concat()
}

/// A relationship as its key says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Edge {
    pub relation: Relation,
    pub source: Endpoint,
    pub target: Endpoint,
}

impl Edge {
    /// Under its source.
    pub(crate) fn key(&self) -> Vec<u8> {
        let relation = [self.relation.code()];
        [self.source.to_bytes().as_slice(), &relation, &self.target.to_bytes()].concat()
    }

    /// Under its target.
    pub(crate) fn key_at_target(&self) -> Vec<u8> {
        let relation = [self.relation.code()];
        [self.target.to_bytes().as_slice(), &relation, &self.source.to_bytes()].concat()
    }

    pub(crate) fn from_key(key: &[u8]) -> Option<Edge> {
        let (source, rest) = key.split_at_checked(17)?;
        let (relation, target) = rest.split_first()?;
        Some(Edge {
            relation: Relation::from_code(*relation)?,
            source: Endpoint::from_bytes(source)?,
            target: Endpoint::from_bytes(target)?,
        })
    }

    pub(crate) fn from_key_at_target(key: &[u8]) -> Option<Edge> {
        let turned = Edge::from_key(key)?;
        Some(Edge { source: turned.target, target: turned.source, ..turned })
    }
}
