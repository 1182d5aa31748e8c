//! Entities: what holds of them, since when, and by which bytes.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use tine_core::facts::reduce::{schema_version, unretracted};
use tine_core::facts::{
    Observation, ObservationOrder, ObservationOrigin, Schema, Snapshot, reduce, schema,
};
use tine_core::json::{Json, Object, object};
use tine_core::{ConversationId, EntityId, ObservationId, Timestamp};
use tine_store::{Content, EntityRecord, IndexKey, IndexQuery, ObservationMove, required};

use super::facts::check_fields;
use super::pages::{self, resume};
use super::reader::{KnowledgeReader, entity_of};
use crate::log::change::text;
use crate::log::mutation::{Mutation, Receipt};
use crate::ops::conversation::bad_cursor;
use crate::tree::resolve;
use crate::{
    AsOf, Correct, EntityQuery, EntityView, Merge, ObservationView, Separate, TimelineEntry,
};
use crate::{Call, Engine, Error, Listing, Page, Result};

/// Messages under one turn id of a host that are shown.
const SLOTS_SHOWN: usize = 1_000;

/// Fields used as display names if the schema declares none.
const NAMES: [&str; 6] = ["name", "title", "statement", "turn_key", "text", "url"];

impl Engine {
    /// Returns an entity and what holds of it. One that was merged is shown as the one it was
    /// merged into.
    pub fn entity(&self, call: &Call, id: EntityId, as_of: AsOf) -> Result<EntityView> {
        self.read(|records| {
            let knowledge = KnowledgeReader::new(records, &call.project);
            let requested = knowledge.require_entity(id)?;
            // Before it was merged it was one of its own.
            let canonical = knowledge.canonical_entity_at(requested, as_of.stored)?;
            let mut view = view(&knowledge, &canonical, as_of)?;
            view.merged_from = (canonical.id != id).then_some(id);
            Ok(view)
        })
    }

    /// Entities in the order in which they were first seen, type by type.
    pub fn entities(
        &self,
        call: &Call,
        query: EntityQuery,
        page: Page,
    ) -> Result<Listing<EntityView>> {
        let limit = self.page_limit(page.limit)?;
        if let Some(entity_type) = &query.entity_type {
            schema::check_name("a type", entity_type)?;
        }
        let of_type = IndexQuery::entities(query.entity_type.as_deref());
        let of_type = resume(of_type, page.cursor.as_deref())?;
        let text = query.text.as_deref().map(str::to_lowercase);
        self.read(|records| {
            let knowledge = KnowledgeReader::new(records, &call.project);
            pages::page(&knowledge, of_type.clone(), limit, |key| {
                let record = knowledge.require_entity(entity_of(key)?)?;
                if record.merged.is_some() || (record.deleted_at.is_some() && !query.deleted) {
                    return Ok(None);
                }
                let Some(view) = within_bounds(view(&knowledge, &record, AsOf::default()))? else {
                    // Its fields are unknown; its existence is not.
                    let bare = bare_view(&record, Snapshot::default());
                    return Ok(text.is_none().then_some(bare));
                };
                let matches = text.as_ref().is_none_or(|text| {
                    let fields = Json::Object(view.snapshot.fields.clone());
                    fields.to_canonical().to_lowercase().contains(text)
                });
                let holds = view.snapshot.observations > 0 || query.deleted;
                Ok(Some(view).filter(|_| matches && holds))
            })
        })
    }

    /// Returns the messages that a host stored under its id of a turn of a conversation, by role
    /// and then in order; none where it stored none. Deleted ones are there too: they can be stored
    /// again.
    pub fn slots(
        &self,
        call: &Call,
        conversation: &ConversationId,
        turn_id: &str,
    ) -> Result<Vec<EntityView>> {
        let slots = IndexQuery::slots_of_turn(conversation, turn_id);
        self.read(|records| {
            let knowledge = KnowledgeReader::new(records, &call.project);
            resolve::conversation(records, call, conversation)?;
            let found = records.index_keys(&call.project, &slots, SLOTS_SHOWN)?;
            let shown = found.iter().map(|key| {
                let record = knowledge.require_entity(entity_of(key)?)?;
                view(&knowledge, &record, AsOf::default())
            });
            shown.collect()
        })
    }

    /// Everything that was ever observed of an entity, in the order in which it came.
    pub fn observations(
        &self,
        call: &Call,
        id: EntityId,
        page: Page,
    ) -> Result<Listing<ObservationView>> {
        let limit = self.page_limit(page.limit)?;
        let skip: usize = match &page.cursor {
            None => 0,
            Some(cursor) => cursor.parse().map_err(|_| bad_cursor(cursor))?,
        };
        self.read(|records| {
            let knowledge = KnowledgeReader::new(records, &call.project);
            let entity = knowledge.canonical_entity(knowledge.require_entity(id)?)?;
            let mut all = knowledge.observations(entity.id)?;
            let stands: BTreeSet<ObservationId> =
                unretracted(&all).into_iter().map(|one| one.id).collect();
            all.sort_by_key(|one| (one.id.seq, one.id.entity));
            let next = (all.len() > skip.saturating_add(limit)).then(|| (skip + limit).to_string());
            let mut items = Vec::new();
            for mut one in all.into_iter().skip(skip).take(limit) {
                fill(&knowledge, &entity, &mut one)?;
                let retracted = one.retracts.is_none() && !stands.contains(&one.id);
                items.push(ObservationView { observation: one, retracted, quote: None });
            }
            Ok(Listing { items, next })
        })
    }

    /// Returns what has a date, in order, from one time to another.
    pub fn timeline(
        &self,
        call: &Call,
        from: Option<Timestamp>,
        to: Option<Timestamp>,
        page: Page,
    ) -> Result<Listing<TimelineEntry>> {
        let limit = self.page_limit(page.limit)?;
        let query = resume(IndexQuery::dated(from, to), page.cursor.as_deref())?;
        self.read(|records| {
            let knowledge = KnowledgeReader::new(records, &call.project);
            let mut seen = BTreeMap::new();
            pages::page(&knowledge, query.clone(), limit, |key| dated(&knowledge, &mut seen, key))
        })
    }

    /// Says what is right. Nothing but a later correction outranks it.
    pub fn correct(&self, call: &Call, request: Correct) -> Result<ObservationView> {
        if request.fields.is_empty() {
            return Err(Error::invalid("give at least one field to correct"));
        }
        check_fields(&request.fields)?;
        let payload = |request: &Correct| {
            object([
                ("entity_id", text(&request.entity)),
                ("fields", Json::Object(request.fields.clone())),
                ("observed_at", request.observed_at.as_ref().map(text).into()),
            ])
        };
        let (made, _) = self.mutate(call, "correct", request, payload, |mutation, request| {
            mutation.open_project_log()?;
            let knowledge = mutation.knowledge();
            let entity = knowledge.canonical_entity(knowledge.require_entity(request.entity)?)?;
            if entity.slot.is_some() {
                return Err(Error::Unsupported(
                    "a message is not corrected but edited; edit the turn".to_owned(),
                ));
            }
            let schema = knowledge.newest_schema(&entity.entity_type)?;
            refuse_misfit(&schema, &request.fields)?;
            let draft = mutation.draft(entity.id, &entity.entity_type, ObservationOrigin::Human);
            let observation_id = mutation.observe(Observation {
                fields: request.fields.clone(),
                observed_at: request.observed_at.unwrap_or(mutation.now),
                correction: true,
                schema_version: schema.version,
                ..draft
            })?;
            Ok(CorrectReceipt { observation_id })
        })?;
        let found = self.observations_by_id(call, &[made.observation_id])?.pop();
        Ok(required(found, || format!("observation {}", made.observation_id))?)
    }

    /// Makes two entities one. Their observations stay as they are; an undo parts them again.
    pub fn merge_entities(&self, call: &Call, request: Merge) -> Result<EntityView> {
        let payload = |request: &Merge| {
            object([("from", text(&request.from)), ("into", text(&request.into))])
        };
        self.mutate(call, "merge_entities", request, payload, |mutation, request| {
            mutation.open_project_log()?;
            let knowledge = mutation.knowledge();
            let from = knowledge.require_entity(request.from)?;
            let into = knowledge.canonical_entity(knowledge.require_entity(request.into)?)?;
            if from.merged.is_some() {
                return Err(Error::invalid(format!("{} is already merged", from.id)));
            }
            if from.id == into.id {
                return Err(Error::invalid(
                    "an entity cannot be merged into itself; name two entities",
                ));
            }
            refuse_structural(&from)?;
            refuse_structural(&into)?;
            if from.entity_type != into.entity_type {
                return Err(Error::invalid(format!(
                    "{} is a {}, {} is a {}; only entities of one type can be merged",
                    from.id, from.entity_type, into.id, into.entity_type
                )));
            }
            let merged = Some((into.id, mutation.now));
            mutation.set_record(&EntityRecord { merged, ..from })
        })?;
        self.entity(call, request.into, AsOf::default())
    }

    /// Makes one entity two: some of its observations speak of another. They stay where they
    /// are; only what they speak of is noted, and an undo takes the note back.
    pub fn separate_entity(&self, call: &Call, request: Separate) -> Result<EntityView> {
        if request.observations.is_empty() {
            return Err(Error::invalid("name the observations that belong to the other entity"));
        }
        let payload = |request: &Separate| {
            let ids = request.observations.iter().map(text).collect();
            object([
                ("entity_id", text(&request.entity)),
                ("observations", Json::Array(ids)),
                ("into", request.into.as_ref().map(text).into()),
            ])
        };
        let (made, _) = self.mutate(call, "separate_entity", request, payload, separate)?;
        self.entity(call, made, AsOf::default())
    }

    /// Hides an entity from listings, or shows it again. What is stored of it later does not
    /// bring it back.
    pub fn set_entity_deleted(
        &self,
        call: &Call,
        id: EntityId,
        deleted: bool,
    ) -> Result<EntityView> {
        let kind = if deleted { "delete_entity" } else { "restore_entity" };
        let payload = |id: &EntityId| object([("entity_id", text(id))]);
        self.mutate(call, kind, id, payload, move |mutation, id| {
            mutation.open_project_log()?;
            let knowledge = mutation.knowledge();
            let entity = knowledge.canonical_entity(knowledge.require_entity(*id)?)?;
            refuse_structural(&entity)?;
            if entity.deleted_at.is_some() == deleted {
                return Ok(());
            }
            let deleted_at = deleted.then_some(mutation.now);
            mutation.set_record(&EntityRecord { deleted_at, ..entity })
        })?;
        self.entity(call, id, AsOf::default())
    }
}

/// Messages and conversations are what the tree says they are.
fn refuse_structural(entity: &EntityRecord) -> Result<()> {
    if entity.slot.is_some() || entity.conversation.is_some() {
        return Err(Error::Unsupported(format!(
            "{} represents a {}; change it through its conversation",
            entity.id, entity.entity_type
        )));
    }
    Ok(())
}

pub(super) fn refuse_misfit(schema: &Schema, fields: &Object) -> Result<()> {
    if let Some((name, kind)) = schema.misfit(fields) {
        let given = fields.get(name).cloned().unwrap_or(Json::Null);
        return Err(Error::invalid(format!(
            "{}.{name} takes {}, not {}; nothing was stored",
            schema.entity_type,
            kind.wants(),
            given.to_canonical()
        )));
    }
    Ok(())
}

fn separate(mutation: &mut Mutation<'_>, request: &Separate) -> Result<EntityId> {
    mutation.open_project_log()?;
    let knowledge = mutation.knowledge();
    let entity = knowledge.canonical_entity(knowledge.require_entity(request.entity)?)?;
    refuse_structural(&entity)?;
    let here = knowledge.observations(entity.id)?;
    for id in &request.observations {
        match here.iter().find(|one| one.id == *id) {
            None => {
                return Err(Error::invalid(format!("{id} is not an observation of {}", entity.id)));
            }
            Some(one) if one.retracts.is_some() => {
                return Err(Error::invalid(format!(
                    "{id} retracts another observation and moves with it; name that one"
                )));
            }
            Some(_) => {}
        }
    }
    let other = match request.into {
        Some(into) => {
            let other = knowledge.canonical_entity(knowledge.require_entity(into)?)?;
            if other.entity_type != entity.entity_type || other.id == entity.id {
                return Err(Error::invalid(format!(
                    "{into} is not another {}; omit it to create a new one",
                    entity.entity_type
                )));
            }
            other.id
        }
        None => {
            let id = mutation.new_entity_id();
            let (key, now) = (Json::Null, mutation.now);
            mutation.ensure_entity(EntityRecord::new(id, &entity.entity_type, key, now))?;
            id
        }
    };
    for id in &request.observations {
        let (observation, at) = (*id, Some(mutation.now));
        mutation.set_record(&ObservationMove { observation, to: other, at })?;
    }
    Ok(other)
}

#[derive(Serialize, Deserialize)]
struct CorrectReceipt {
    observation_id: ObservationId,
}

impl Receipt for CorrectReceipt {}

/// Returns the view of an entity at a point in time.
pub(super) fn view(
    knowledge: &KnowledgeReader<'_>,
    record: &EntityRecord,
    as_of: AsOf,
) -> Result<EntityView> {
    let mut observations = match &record.slot {
        Some(_) => slot_observations(knowledge, record, as_of)?,
        None => knowledge.observations_at(record.id, as_of.stored)?,
    };
    observations.retain(|one| {
        as_of.observed.is_none_or(|at| one.observed_at <= at)
            && as_of.stored.is_none_or(|at| one.stored_at <= at)
    });
    if record.slot.is_some() {
        // What a slot says is its last store, and nothing of an earlier one.
        observations =
            unretracted(&observations).last().map(|last| (*last).clone()).into_iter().collect();
    }
    for one in &mut observations {
        fill(knowledge, record, one)?;
    }
    let schema = knowledge.schema(&record.entity_type, schema_version(&observations))?;
    let order = if record.slot.is_some() {
        ObservationOrder::Sequence
    } else {
        ObservationOrder::ObservedTime
    };
    let snapshot = reduce(&schema, order, &observations);
    let undeclared = snapshot.fields.keys().filter(|name| !schema.declares(name));
    let undeclared = undeclared.map(str::to_owned).collect();
    Ok(EntityView {
        name: name(&schema, &snapshot.fields),
        deleted_at: record.deleted_at.filter(|at| as_of.stored.is_none_or(|then| *at <= then)),
        undeclared,
        ..bare_view(record, snapshot)
    })
}

/// Returns an entity without what follows from its schema.
fn bare_view(record: &EntityRecord, snapshot: Snapshot) -> EntityView {
    let conversation = match (&record.slot, &record.conversation) {
        (Some((conversation, _)), _) => Some(conversation.clone()),
        (None, conversation) => conversation.clone(),
    };
    EntityView {
        id: record.id,
        entity_type: record.entity_type.clone(),
        name: None,
        snapshot,
        first_seen: record.first_seen,
        merged_from: None,
        deleted_at: record.deleted_at,
        conversation,
        slot: record.slot.as_ref().map(|(_, slot)| slot.clone()),
        undeclared: Vec::new(),
    }
}

/// Turns an exceeded limit into `None`: a listing continues without the entry.
fn within_bounds<T>(worked_out: Result<T>) -> Result<Option<T>> {
    match worked_out {
        Err(Error::TooLarge { .. }) => Ok(None),
        other => other.map(Some),
    }
}

/// Of a slot only the end counts, unless it was retracted or a time is asked for: the last few
/// observations are enough.
fn slot_observations(
    knowledge: &KnowledgeReader<'_>,
    record: &EntityRecord,
    as_of: AsOf,
) -> Result<Vec<Observation>> {
    const ENOUGH: usize = 16;
    if as_of == AsOf::default() {
        let few = knowledge.last_observations(record.id, ENOUGH)?;
        let first = few.last().map_or(0, |one| one.id.seq);
        let whole = few.iter().all(|one| one.retracts.is_none_or(|seq| seq >= first));
        if whole && !unretracted(&few).is_empty() {
            return Ok(few);
        }
    }
    knowledge.own_observations(record.id, 0, super::reader::OBSERVATIONS_READ)
}

pub(crate) fn name(schema: &Schema, fields: &Object) -> Option<String> {
    let identity = schema.identity.iter().map(String::as_str);
    let named = identity.chain(NAMES).find_map(|name| fields.get(name)?.as_str());
    named.map(str::to_owned)
}

/// Gives a version of a slot the fields that its turn says.
pub(super) fn fill(
    knowledge: &KnowledgeReader<'_>,
    record: &EntityRecord,
    one: &mut Observation,
) -> Result<()> {
    let (Some((conversation, slot)), Some(turn)) = (&record.slot, one.turn) else {
        return Ok(());
    };
    if one.origin != ObservationOrigin::Turn {
        return Ok(());
    }
    let found = knowledge.records.find_turn(knowledge.project, &turn)?;
    let (_, loc) = required(found, || format!("turn {turn}"))?;
    let turn = required(knowledge.records.turn(loc)?, || format!("turn {turn}"))?;
    let fields = &mut one.fields;
    fields.insert("turn_key", slot.turn_key(conversation).into());
    fields.insert("conversation_id", conversation.as_str().into());
    fields.insert("turn_id", slot.turn_id.as_str().into());
    fields.insert("role", slot.role.as_str().into());
    fields.insert("turn_hash", text(&turn.hash));
    fields.insert("created_at", text(&turn.created_at));
    if let Some(call) = &slot.tool_call_id {
        fields.insert("tool_call_id", call.as_str().into());
    }
    if slot.part > 0 {
        fields.insert("part", slot.part.into());
    }
    let info = turn.metadata.to_json();
    if let Some(model) = info.get("source_info").and_then(|info| info.get("model")) {
        fields.insert("model", model.clone());
    }
    if let Content::Kept(body) = &turn.content {
        let content = match body.text_only() {
            Some(text_only) => text_only.into(),
            None => Json::Array(body.blocks()?),
        };
        fields.insert("content", content);
    }
    Ok(())
}

/// Returns a dated fact, if it is still what holds. `seen` are the entities that were looked at so
/// far.
fn dated(
    knowledge: &KnowledgeReader<'_>,
    seen: &mut BTreeMap<EntityId, Option<EntityView>>,
    key: &IndexKey,
) -> Result<Option<TimelineEntry>> {
    let IndexKey::DatedField { at, observation, field } = key else {
        return Ok(None);
    };
    let entity = knowledge.moved(*observation)?.map_or(observation.entity, |moved| moved.to);
    let entity = knowledge.canonical_entity(knowledge.require_entity(entity)?)?;
    if entity.deleted_at.is_some() {
        return Ok(None);
    }
    let view = match seen.entry(entity.id) {
        Entry::Occupied(cached) => cached.into_mut(),
        Entry::Vacant(place) => {
            place.insert(within_bounds(view(knowledge, &entity, AsOf::default()))?)
        }
    };
    let Some(view) = view else {
        return Ok(None);
    };
    let holds = view.snapshot.provenance.get(field).is_some_and(|from| from.contains(observation));
    let date = view.snapshot.fields.get(field).and_then(Json::as_str);
    Ok(date.filter(|_| holds).map(|date| TimelineEntry {
        at: *at,
        date: date.to_owned(),
        field: field.clone(),
        entity: view.id,
        entity_type: view.entity_type.clone(),
        name: view.name.clone(),
        observation: *observation,
    }))
}
