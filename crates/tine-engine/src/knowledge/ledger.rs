//! The ledger read and written in types.
//!
//! Look-ups follow from entries: whoever writes an entry through [`set`] writes them too, also
//! when an undo puts an earlier form back.

use std::collections::BTreeSet;

use tine_core::facts::reduce::standing;
use tine_core::facts::{Observation, Origin, Schema, Slot, builtin};
use tine_core::json::{self, Json};
use tine_core::{
    ConversationId, Digest, EntityId, ObservationId, ProjectId, SourceId, Timestamp, TurnId,
};
use tine_store::{EntryKind, KeyRange, Read, StoreError, Write, required};

use super::keys::{self, Edge};
use super::look_ups::{self, LookUp};
use super::record::{EntityRecord, RelationshipRecord, SourceRecord};
use crate::log::change::{Change, parsed};
use crate::log::mutation::Mutation;
use crate::{Error, Result};

/// Observations of one entity that are read at most: a bound on what one snapshot can cost.
pub(crate) const OBSERVATIONS_READ: usize = 100_000;

/// Entities that were merged into one another are followed this far.
const MERGES_FOLLOWED: usize = 64;

/// What was learned in one project.
#[derive(Clone, Copy)]
pub(crate) struct Ledger<'r> {
    pub records: &'r dyn Read,
    pub project: &'r ProjectId,
}

fn damaged<T>(what: impl FnOnce() -> String) -> impl FnOnce() -> Result<T> {
    move || {
        Err(Error::Store(StoreError::Corrupt {
            record: what(),
            why: "it cannot be read".to_owned(),
        }))
    }
}

pub(crate) fn parse(text: &str) -> Option<Json> {
    json::parse(text.as_bytes(), json::MAX_DEPTH).ok()
}

impl<'r> Ledger<'r> {
    pub(crate) fn new(records: &'r dyn Read, project: &'r ProjectId) -> Self {
        Ledger { records, project }
    }

    fn get<T>(
        &self,
        kind: EntryKind,
        key: &[u8],
        what: impl FnOnce() -> String,
        read: impl FnOnce(&Json) -> Option<T>,
    ) -> Result<Option<T>> {
        match self.records.entry(self.project, kind, key)? {
            None => Ok(None),
            Some(text) => {
                let found = parse(&text).and_then(|json| read(&json));
                found.map_or_else(damaged(what), |found| Ok(Some(found)))
            }
        }
    }

    /// An entry as it is; one that cannot be read is none.
    pub(crate) fn entry(&self, kind: EntryKind, key: &[u8]) -> Result<Option<Json>> {
        Ok(self.records.entry(self.project, kind, key)?.as_deref().and_then(parse))
    }

    pub(crate) fn entity(&self, id: EntityId) -> Result<Option<EntityRecord>> {
        let read = |json: &Json| EntityRecord::from_json(id, json);
        self.get(EntryKind::Entity, id.as_bytes(), || format!("entity {id}"), read)
    }

    /// The entity of a conversation, once it has one.
    pub(crate) fn conversation_entity(&self, id: &ConversationId) -> Result<Option<EntityId>> {
        self.entity_under(&keys::conversation(id))
    }

    /// The entity of a slot, once it has one.
    pub(crate) fn slot_entity(&self, id: &ConversationId, slot: &Slot) -> Result<Option<EntityId>> {
        self.entity_under(&keys::slot(id, slot))
    }

    fn entity_under(&self, key: &[u8]) -> Result<Option<EntityId>> {
        match self.records.entry(self.project, EntryKind::Slot, key)? {
            None => Ok(None),
            Some(text) => Ok(Some(required(text.parse().ok(), || format!("slot {text}"))?)),
        }
    }

    /// An entity that somebody names.
    pub(crate) fn known_entity(&self, id: EntityId) -> Result<EntityRecord> {
        self.entity(id)?.ok_or_else(|| Error::NotFound {
            what: "entity",
            name: id.to_string(),
            advice: "; `tine entity list` lists them",
        })
    }

    /// The entity that stands for this one: itself, unless it was merged.
    pub(crate) fn standing_for(&self, entity: EntityRecord) -> Result<EntityRecord> {
        self.stood_for(entity, None)
    }

    /// The entity that stood for this one at a time.
    pub(crate) fn stood_for(
        &self,
        mut entity: EntityRecord,
        at: Option<Timestamp>,
    ) -> Result<EntityRecord> {
        for _ in 0..MERGES_FOLLOWED {
            let Some((into, merged)) = entity.merged else {
                return Ok(entity);
            };
            if at.is_some_and(|at| merged > at) {
                return Ok(entity);
            }
            entity = required(self.entity(into)?, || format!("entity {into}"))?;
        }
        Err(Error::invalid("these entities are merged in too many steps"))
    }

    /// All entities that are the same as this one, the one that stands for them first.
    pub(crate) fn merged_with(&self, entity: EntityRecord) -> Result<Vec<EntityRecord>> {
        let mut same = vec![self.standing_for(entity)?];
        let mut at = 0;
        while let Some(entity) = same.get(at) {
            for key in self.under(EntryKind::MergedInto, entity.id.as_bytes())? {
                let merged = keys::entity_at_end(&key).map(|id| self.entity(id)).transpose()?;
                let merged = merged.flatten();
                same.extend(merged.filter(|it| same.iter().all(|known| known.id != it.id)));
            }
            at += 1;
        }
        Ok(same)
    }

    pub(crate) fn source(&self, id: SourceId) -> Result<Option<SourceRecord>> {
        let read = |json: &Json| SourceRecord::from_json(id, json);
        self.get(EntryKind::Source, id.as_bytes(), || format!("source {id}"), read)
    }

    pub(crate) fn known_source(&self, id: SourceId) -> Result<SourceRecord> {
        self.source(id)?.ok_or_else(|| Error::NotFound {
            what: "source",
            name: id.to_string(),
            advice: "; `tine source list` lists them",
        })
    }

    pub(crate) fn relationship(&self, edge: &Edge) -> Result<Option<RelationshipRecord>> {
        let what = || format!("relationship {} of {}", edge.relation, edge.source);
        self.get(EntryKind::Relationship, &edge.key(), what, RelationshipRecord::from_json)
    }

    /// An observation. One that was erased has neither fields nor anything else, and is `None`.
    pub(crate) fn observation(&self, id: ObservationId) -> Result<Option<Observation>> {
        let key = keys::observation(id);
        let Some(text) = self.records.entry(self.project, EntryKind::Observation, &key)? else {
            return Ok(None);
        };
        read_observation(id, &text)
    }

    /// The observations that were made of an entity itself behind one of them, in order.
    pub(crate) fn own_observations(
        &self,
        entity: EntityId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<Observation>> {
        let first = keys::observation(ObservationId { entity, seq: after + 1 });
        let range = KeyRange { from: first, ..KeyRange::prefix(entity.as_bytes()) };
        self.observations_in(entity, &range, limit)
    }

    /// The last observations that were made of an entity itself, the newest first.
    pub(crate) fn last_observations(
        &self,
        entity: EntityId,
        limit: usize,
    ) -> Result<Vec<Observation>> {
        let range = KeyRange::prefix(entity.as_bytes()).backwards();
        self.observations_in(entity, &range, limit)
    }

    fn observations_in(
        &self,
        entity: EntityId,
        range: &KeyRange,
        limit: usize,
    ) -> Result<Vec<Observation>> {
        let found = self.records.entries(self.project, EntryKind::Observation, range, limit)?;
        let mut observations = Vec::with_capacity(found.len());
        for entry in found {
            let id = keys::observation_at_end(&entry.key);
            let id = required(id, || format!("observation of {entity}"))?;
            observations.extend(read_observation(id, &entry.text)?);
        }
        Ok(observations)
    }

    /// The place of an entity's last observation; 0 when it has none.
    pub(crate) fn last_seq(&self, entity: EntityId) -> Result<u64> {
        let range = KeyRange::prefix(entity.as_bytes()).backwards();
        let last = self.records.entries(self.project, EntryKind::Observation, &range, 1)?;
        Ok(last.first().and_then(|last| keys::observation_at_end(&last.key)).map_or(0, |id| id.seq))
    }

    /// All observations that speak of an entity now: its own without those that were moved away,
    /// those that were moved to it, and those of the entities that were merged into it.
    pub(crate) fn observations(&self, entity: EntityId) -> Result<Vec<Observation>> {
        self.observations_at(entity, None)
    }

    /// All observations that spoke of an entity at a time, by the merges and moves made until
    /// then.
    pub(crate) fn observations_at(
        &self,
        entity: EntityId,
        at: Option<Timestamp>,
    ) -> Result<Vec<Observation>> {
        let mut found = Vec::new();
        let mut seen = BTreeSet::new();
        let mut pending = vec![entity];
        while let Some(id) = pending.pop() {
            if !seen.insert(id) {
                continue;
            }
            let mut away = BTreeSet::new();
            for key in self.under(EntryKind::Moved, id.as_bytes())? {
                if self.is_moved(&key, at)? {
                    away.extend(keys::observation_at_end(&key));
                }
            }
            let own = self.own_observations(id, 0, OBSERVATIONS_READ - found.len())?;
            found.extend(own.into_iter().filter(|one| !away.contains(&one.id)));
            for key in self.under(EntryKind::MovedHere, id.as_bytes())? {
                if let Some(id) = keys::observation_at_end(&key)
                    && self.is_moved(&keys::observation(id), at)?
                {
                    found.extend(self.with_retractions(id)?);
                }
            }
            for key in self.under(EntryKind::MergedInto, id.as_bytes())? {
                let Some(id) = keys::entity_at_end(&key) else {
                    continue;
                };
                let merged = self.entity(id)?.and_then(|entity| entity.merged);
                if merged.is_some_and(|(_, merged)| at.is_none_or(|at| merged <= at)) {
                    pending.push(id);
                }
            }
            if found.len() >= OBSERVATIONS_READ {
                let (what, limit) = ("observations of one entity", OBSERVATIONS_READ);
                return Err(Error::TooLarge { what, limit, given: found.len() });
            }
        }
        Ok(found)
    }

    /// Whether the observation under a key was moved by a time.
    fn is_moved(&self, key: &[u8], at: Option<Timestamp>) -> Result<bool> {
        let Some(at) = at else {
            return Ok(true);
        };
        let moved = self.records.entry(self.project, EntryKind::Moved, key)?;
        let moved = moved.as_deref().and_then(parse).and_then(|moved| parsed(&moved, "at"));
        Ok(moved.is_none_or(|moved: Timestamp| moved <= at))
    }

    /// An observation that was moved, with what took it back: that goes where it goes.
    fn with_retractions(&self, id: ObservationId) -> Result<Vec<Observation>> {
        let Some(one) = self.observation(id)? else {
            return Ok(Vec::new());
        };
        let mut about = BTreeSet::from([id.seq]);
        let mut found = vec![one];
        for later in self.own_observations(id.entity, id.seq, OBSERVATIONS_READ)? {
            if later.retracts.is_some_and(|seq| about.contains(&seq)) {
                about.insert(later.id.seq);
                found.push(later);
            }
        }
        Ok(found)
    }

    /// Whether nobody has taken an observation back.
    pub(crate) fn stands(&self, one: &Observation) -> Result<bool> {
        let with = self.with_retractions(one.id)?;
        Ok(standing(&with).iter().any(|standing| standing.id == one.id))
    }

    /// The keys of a kind that begin with these bytes.
    pub(crate) fn under(&self, kind: EntryKind, prefix: &[u8]) -> Result<Vec<Vec<u8>>> {
        let range = KeyRange::prefix(prefix);
        let found = self.records.entries(self.project, kind, &range, OBSERVATIONS_READ)?;
        Ok(found.into_iter().map(|entry| entry.key).collect())
    }

    /// Observations that name a turn.
    pub(crate) fn about_turn(&self, turn: &TurnId) -> Result<Vec<Observation>> {
        let mut found = Vec::new();
        for key in self.under(EntryKind::ObservationOfTurn, turn.as_bytes())? {
            if let Some(id) = keys::observation_at_end(&key) {
                found.extend(self.observation(id)?);
            }
        }
        Ok(found)
    }

    /// The schema of a type in one version.
    pub(crate) fn schema(&self, entity_type: &str, version: u32) -> Result<Schema> {
        if version == 0 {
            return Ok(Schema::open(entity_type));
        }
        let key = keys::schema(entity_type, version);
        let what = || format!("schema {entity_type} {version}");
        let registered =
            self.get(EntryKind::Schema, &key, what, |json| Schema::from_json(json).ok())?;
        let builtin = || builtin::schema(entity_type).filter(|schema| schema.version == version);
        Ok(required(registered.or_else(builtin), what)?)
    }

    /// The newest schema of a type: registered, built in, or open.
    pub(crate) fn newest_schema(&self, entity_type: &str) -> Result<Schema> {
        let range = KeyRange::prefix(&keys::type_prefix(entity_type)).backwards();
        let last = self.records.entries(self.project, EntryKind::Schema, &range, 1)?;
        if let Some(last) = last.first() {
            let schema = parse(&last.text).and_then(|json| Schema::from_json(&json).ok());
            return Ok(required(schema, || format!("schema {entity_type}"))?);
        }
        Ok(builtin::schema(entity_type).unwrap_or_else(|| Schema::open(entity_type)))
    }
}

fn read_observation(id: ObservationId, text: &str) -> Result<Option<Observation>> {
    let Some(json) = parse(text) else {
        return damaged(|| format!("observation {id}"))();
    };
    if json.get("purged").is_some() {
        return Ok(None);
    }
    match Observation::from_json(id, &json) {
        Some(found) => Ok(Some(found)),
        None => damaged(|| format!("observation {id}"))(),
    }
}

/// Whether an entity, written like this, would be merged into one that is merged into it.
pub(crate) fn merges_in_a_circle(ledger: &Ledger<'_>, key: &[u8], wanted: &Json) -> Result<bool> {
    let wanted = keys::entity_at_end(key).and_then(|id| EntityRecord::from_json(id, wanted));
    let Some(EntityRecord { id, merged: Some((into, _)), .. }) = wanted else {
        return Ok(false);
    };
    let mut next = Some(into);
    for _ in 0..MERGES_FOLLOWED {
        match next {
            None => return Ok(false),
            Some(into) if into == id => return Ok(true),
            Some(into) => next = ledger.entity(into)?.and_then(|it| it.merged).map(|(it, _)| it),
        }
    }
    Ok(true)
}

/// Writes an entry that may change, or removes it, together with the look-ups that follow from
/// it.
pub(crate) fn set(
    records: &mut dyn Write,
    project: &ProjectId,
    kind: EntryKind,
    key: &[u8],
    value: Option<&Json>,
) -> Result<()> {
    let before = before(records, project, kind, key)?;
    replace(records, project, (kind, key), before.as_ref(), value)
}

/// An entry as it is; one that cannot be read is `null`.
fn before(
    records: &dyn Write,
    project: &ProjectId,
    kind: EntryKind,
    key: &[u8],
) -> Result<Option<Json>> {
    let before = records.entry(project, kind, key)?;
    Ok(before.map(|text| parse(&text).unwrap_or(Json::Null)))
}

/// The same for an entry of which is known how it is.
fn replace(
    records: &mut dyn Write,
    project: &ProjectId,
    (kind, key): (EntryKind, &[u8]),
    before: Option<&Json>,
    after: Option<&Json>,
) -> Result<()> {
    let led = before.map_or_else(Vec::new, |before| look_ups::of(kind, key, before));
    let leading = after.map_or_else(Vec::new, |after| look_ups::of(kind, key, after));
    for (kind, key, _) in led.iter().filter(|it| !leading.contains(it)) {
        records.delete_entry(project, *kind, key)?;
    }
    match after {
        Some(after) => records.put_entry(project, kind, key, &after.to_canonical())?,
        None if before.is_some() => records.delete_entry(project, kind, key)?,
        None => {}
    }
    let new = leading.into_iter().filter(|it| !led.contains(it));
    put_look_ups(records, project, new)
}

fn put_look_ups(
    records: &mut dyn Write,
    project: &ProjectId,
    leading: impl IntoIterator<Item = LookUp>,
) -> Result<()> {
    for (kind, key, text) in leading {
        records.put_entry(project, kind, &key, &text)?;
    }
    Ok(())
}

/// Writes an entry as it was kept elsewhere, together with its look-ups.
pub(crate) fn restore(
    records: &mut dyn Write,
    project: &ProjectId,
    kind: EntryKind,
    key: &[u8],
    text: &str,
) -> Result<()> {
    records.put_entry(project, kind, key, text)?;
    let value = parse(text).unwrap_or(Json::Null);
    put_look_ups(records, project, look_ups::of(kind, key, &value))
}

/// Writes an observation and its look-ups.
pub(crate) fn put_observation(
    records: &mut dyn Write,
    project: &ProjectId,
    one: &Observation,
    text: &str,
) -> Result<()> {
    records.put_entry(project, EntryKind::Observation, &keys::observation(one.id), text)?;
    put_look_ups(records, project, look_ups::of_observation(one))
}

/// What seals an observation: its bytes, or the digest that an erasure left.
pub(crate) fn sealed(text: &str) -> Option<Digest> {
    let json = parse(text)?;
    match json.get("purged") {
        Some(purged) => purged.as_str().and_then(|text| text.parse().ok()),
        None => Some(Digest::of(text.as_bytes())),
    }
}

impl Mutation<'_> {
    pub(crate) fn ledger(&self) -> Ledger<'_> {
        Ledger::new(self.reader(), &self.call.project)
    }

    /// An observation with nothing said yet.
    pub(crate) fn draft(&self, entity: EntityId, entity_type: &str, origin: Origin) -> Observation {
        Observation {
            id: ObservationId { entity, seq: 0 },
            entity_type: entity_type.to_owned(),
            fields: json::Object::new(),
            source: None,
            interpretation: None,
            turn: None,
            span: None,
            observed_at: self.now,
            stored_at: self.now,
            priority: tine_core::facts::observation::PRIORITY,
            specificity: 0,
            origin,
            correction: false,
            retracts: None,
            schema_version: 1,
        }
    }

    /// Adds an observation behind the others of its entity, and notes it.
    pub(crate) fn observe(&mut self, mut draft: Observation) -> Result<ObservationId> {
        let project = &self.call.project;
        let last = self.ledger().last_seq(draft.id.entity)?;
        draft.id.seq = self.new_seq().max(last + 1);
        let text = draft.to_json().to_canonical();
        let digest = Digest::of(text.as_bytes());
        put_observation(self.records, project, &draft, &text)?;
        self.changed(Change::Observed { id: draft.id, digest });
        Ok(draft.id)
    }

    /// Takes an observation back, or a retraction of it, and says why.
    pub(crate) fn retract(&mut self, seq: u64, of: &Observation, why: &str) -> Result<()> {
        let mut fields = json::Object::new();
        fields.insert("because", why.into());
        let now = self.now;
        self.observe(Observation {
            fields,
            source: None,
            interpretation: None,
            turn: None,
            span: None,
            observed_at: now,
            stored_at: now,
            origin: Origin::Server,
            correction: false,
            retracts: Some(seq),
            ..of.clone()
        })?;
        Ok(())
    }

    /// Writes an entry that may change, and notes how it was.
    pub(crate) fn set_entry(
        &mut self,
        kind: EntryKind,
        key: &[u8],
        after: Option<Json>,
    ) -> Result<()> {
        let project = &self.call.project;
        let before = before(self.records, project, kind, key)?;
        if before == after {
            return Ok(());
        }
        replace(self.records, project, (kind, key), before.as_ref(), after.as_ref())?;
        self.changed(Change::Entry { kind, key: key.to_vec(), before, after });
        Ok(())
    }

    /// Makes an entity unless it is there.
    pub(crate) fn ensure_entity(&mut self, entity: EntityRecord) -> Result<EntityRecord> {
        if let Some(known) = self.ledger().entity(entity.id)? {
            return Ok(known);
        }
        let at = (EntryKind::Entity, entity.id.as_bytes().as_slice());
        replace(self.records, &self.call.project, at, None, Some(&entity.to_json()))?;
        Ok(entity)
    }

    /// Relates two things unless they are; answers whether this is new. What Tine makes along
    /// with a turn follows from the turn and is not noted.
    pub(crate) fn relate(&mut self, edge: &Edge, metadata: Json, structural: bool) -> Result<bool> {
        if let Some(known) = self.ledger().relationship(edge)? {
            if let Some((log, operation)) = known.made
                && log == self.conversation().id
            {
                self.depends_on(operation);
            }
            return Ok(false);
        }
        let metadata = match metadata {
            Json::Null => Json::Object(json::Object::new()),
            noted => noted,
        };
        let made = (self.conversation().id.clone(), self.seq());
        let record = RelationshipRecord {
            created_at: self.now,
            created_by: self.call.actor.clone(),
            metadata,
            structural,
            made: Some(made).filter(|_| !structural),
        };
        let (key, json) = (edge.key(), record.to_json());
        if structural {
            let at = (EntryKind::Relationship, key.as_slice());
            replace(self.records, &self.call.project, at, None, Some(&json))?;
        } else {
            self.set_entry(EntryKind::Relationship, &key, Some(json))?;
        }
        Ok(true)
    }
}
