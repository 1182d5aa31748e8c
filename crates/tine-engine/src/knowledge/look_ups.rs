//! Look-ups: entries that only lead to others and follow from them, so that they can be made
//! again, and checked.

use tine_core::facts::Observation;
use tine_core::facts::schema::moment;
use tine_core::json::Json;
use tine_core::{EntityId, InterpretationId};
use tine_store::EntryKind;

use super::keys::{self, Edge};
use super::record::{EntityRecord, SourceRecord};
use crate::RunStatus;
use crate::log::change::parsed;

/// A look-up: its kind, its key and its text.
pub(crate) type LookUp = (EntryKind, Vec<u8>, String);

/// The look-ups that an entry has.
pub(crate) fn of(kind: EntryKind, key: &[u8], value: &Json) -> Vec<LookUp> {
    let none = String::new;
    match kind {
        EntryKind::Entity => {
            let entity = keys::entity_at_end(key).and_then(|id| EntityRecord::from_json(id, value));
            entity.map_or_else(Vec::new, |entity| of_entity(&entity))
        }
        EntryKind::Moved => {
            let to: Option<EntityId> = parsed(value, "to");
            let found = to.map(|to| (EntryKind::MovedHere, keys::entity_and(to, key), none()));
            found.into_iter().collect()
        }
        EntryKind::Observation => {
            let one =
                keys::observation_at_end(key).and_then(|id| Observation::from_json(id, value));
            one.map_or_else(Vec::new, |one| of_observation(&one))
        }
        EntryKind::Relationship => {
            let edge = Edge::from_key(key);
            let found = edge.map(|edge| (EntryKind::RelationshipTo, edge.key_at_target(), none()));
            found.into_iter().collect()
        }
        EntryKind::Source => {
            let source = keys::source_at_end(key).and_then(|id| SourceRecord::from_json(id, value));
            let found = source.map(|it| {
                (EntryKind::SourceByTime, keys::source_by_time(it.stored_at, it.id), none())
            });
            found.into_iter().collect()
        }
        EntryKind::Run => {
            let id = keys::run_at_end(key);
            id.map_or_else(Vec::new, |id| of_run(id, value))
        }
        _ => Vec::new(),
    }
}

pub(super) fn of_observation(one: &Observation) -> Vec<LookUp> {
    let about = one.turn.map(|turn| keys::observation_of_turn(&turn, one.id));
    let about = about.map(|key| (EntryKind::ObservationOfTurn, key, String::new()));
    let dates = one.fields.iter().filter_map(|(field, value)| {
        let key = keys::dated(moment(value.as_str()?)?, one.id, field);
        Some((EntryKind::Dated, key, String::new()))
    });
    about.into_iter().chain(dates).collect()
}

fn of_entity(entity: &EntityRecord) -> Vec<LookUp> {
    let of_type = keys::entity_of_type(&entity.entity_type, entity.first_seen, entity.id);
    let mut found = vec![(EntryKind::EntityOfType, of_type, String::new())];
    if let Some((into, _)) = entity.merged {
        let key = keys::entity_and(into, entity.id.as_bytes());
        found.push((EntryKind::MergedInto, key, String::new()));
    }
    if let Some((conversation, slot)) = &entity.slot {
        let key = keys::slot(conversation, slot);
        found.push((EntryKind::Slot, key, entity.id.to_string()));
    }
    if let Some(conversation) = &entity.conversation {
        let key = keys::conversation(conversation);
        found.push((EntryKind::Slot, key, entity.id.to_string()));
    }
    found
}

/// A run under its source, and in the queue as long as it waits or works.
fn of_run(id: InterpretationId, run: &Json) -> Vec<LookUp> {
    let of_source = parsed(run, "source_id")
        .map(|source| (EntryKind::RunOfSource, keys::run_of_source(source, id), String::new()));
    let status = run.get("status").and_then(Json::as_str).and_then(RunStatus::parse);
    let open = status.is_some_and(RunStatus::is_open);
    let asked = run.get("interpreter").and_then(Json::as_str);
    let queued = parsed(run, "due").zip(asked).filter(|_| open);
    let queued = queued
        .map(|(due, asked)| (EntryKind::RunQueued, keys::run_queued(due, id), asked.to_owned()));
    of_source.into_iter().chain(queued).collect()
}

/// Whether entries of a kind are look-ups.
pub(crate) fn is_look_up(kind: EntryKind) -> bool {
    matches!(
        kind,
        EntryKind::EntityOfType
            | EntryKind::MergedInto
            | EntryKind::MovedHere
            | EntryKind::ObservationOfTurn
            | EntryKind::Dated
            | EntryKind::Slot
            | EntryKind::SourceByTime
            | EntryKind::RunOfSource
            | EntryKind::RunQueued
            | EntryKind::RelationshipTo
    )
}

/// The entry that a look-up leads to.
pub(crate) fn owner(kind: EntryKind, key: &[u8], text: &str) -> Option<(EntryKind, Vec<u8>)> {
    Some(match kind {
        EntryKind::EntityOfType | EntryKind::MergedInto => {
            (EntryKind::Entity, keys::entity_at_end(key)?.as_bytes().to_vec())
        }
        EntryKind::Slot => {
            let id: EntityId = text.parse().ok()?;
            (EntryKind::Entity, id.as_bytes().to_vec())
        }
        EntryKind::MovedHere => {
            (EntryKind::Moved, keys::observation(keys::observation_at_end(key)?))
        }
        EntryKind::ObservationOfTurn => {
            (EntryKind::Observation, keys::observation(keys::observation_at_end(key)?))
        }
        EntryKind::Dated => (EntryKind::Observation, keys::observation(keys::dated_parts(key)?.1)),
        EntryKind::SourceByTime => {
            (EntryKind::Source, keys::source_at_end(key)?.as_bytes().to_vec())
        }
        EntryKind::RunOfSource | EntryKind::RunQueued => {
            (EntryKind::Run, keys::run_at_end(key)?.as_bytes().to_vec())
        }
        EntryKind::RelationshipTo => {
            (EntryKind::Relationship, Edge::from_key_at_target(key)?.key())
        }
        _ => return None,
    })
}
