//! Knowledge read in types, and what a mutation adds to it.

use std::collections::BTreeSet;

use tine_core::facts::reduce::unretracted;
use tine_core::facts::{Observation, ObservationOrigin, Schema, Slot, builtin};
use tine_core::json::{self, Json};
use tine_core::{
    ConversationId, Digest, EntityId, InterpretationId, ObservationId, ProjectId, SourceId,
    Timestamp, TurnId,
};
use tine_store::{
    Edge, EntityRecord, FamilyRecord, IndexKey, IndexQuery, ObservationMove, ObservationRecord,
    Read, ReadFamilies, Record, RecordKey, RecordQuery, RelationshipRecord, RunRecord,
    SchemaRecord, SourceRecord, WriteFamilies, required,
};

use crate::log::change::LoggedChange;
use crate::log::mutation::Mutation;
use crate::{Error, Result};

/// Observations of one entity that are read at most: a bound on what one snapshot can cost.
pub(crate) const OBSERVATIONS_READ: usize = 100_000;

/// Entities that were merged into one another are followed this far.
const MERGES_FOLLOWED: usize = 64;

/// The knowledge of one project.
#[derive(Clone, Copy)]
pub(crate) struct KnowledgeReader<'r> {
    pub records: &'r dyn Read,
    pub project: &'r ProjectId,
}

impl<'r> KnowledgeReader<'r> {
    pub(crate) fn new(records: &'r dyn Read, project: &'r ProjectId) -> Self {
        KnowledgeReader { records, project }
    }

    fn get<R: FamilyRecord>(&self, id: &R::Id) -> Result<Option<R>> {
        Ok(self.records.get(self.project, id)?)
    }

    /// Returns the keys of an index, as many as one snapshot may read.
    pub(crate) fn indexed(&self, query: &IndexQuery) -> Result<Vec<IndexKey>> {
        Ok(self.records.index_keys(self.project, query, OBSERVATIONS_READ)?)
    }

    pub(crate) fn entity(&self, id: EntityId) -> Result<Option<EntityRecord>> {
        self.get(&id)
    }

    /// Returns the entity of a conversation, once it has one.
    pub(crate) fn conversation_entity(&self, id: &ConversationId) -> Result<Option<EntityId>> {
        self.entity_by(&IndexQuery::entity_of_conversation(id))
    }

    /// Returns the entity of a slot, once it has one.
    pub(crate) fn slot_entity(&self, id: &ConversationId, slot: &Slot) -> Result<Option<EntityId>> {
        self.entity_by(&IndexQuery::entity_of_slot(id, slot))
    }

    fn entity_by(&self, query: &IndexQuery) -> Result<Option<EntityId>> {
        let found = self.records.index_keys(self.project, query, 1)?.pop();
        found.map(|key| Ok(entity_of(&key)?)).transpose()
    }

    /// Returns an entity that a caller names.
    pub(crate) fn require_entity(&self, id: EntityId) -> Result<EntityRecord> {
        self.entity(id)?.ok_or_else(|| Error::not_found("entity", id))
    }

    /// Returns the entity that this one was merged into, or itself.
    pub(crate) fn canonical_entity(&self, entity: EntityRecord) -> Result<EntityRecord> {
        self.canonical_entity_at(entity, None)
    }

    /// Returns the entity that this one was merged into by a point in time, or itself.
    pub(crate) fn canonical_entity_at(
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
        Err(Error::invalid("these entities were merged in too many steps"))
    }

    /// Returns all entities that are the same as this one, the one that stands for them first.
    pub(crate) fn merged_with(&self, entity: EntityRecord) -> Result<Vec<EntityRecord>> {
        let mut same = vec![self.canonical_entity(entity)?];
        let mut at = 0;
        while let Some(entity) = same.get(at) {
            for key in self.indexed(&IndexQuery::merged_into(entity.id))? {
                let merged = self.entity(entity_of(&key)?)?;
                same.extend(merged.filter(|it| same.iter().all(|listed| listed.id != it.id)));
            }
            at += 1;
        }
        Ok(same)
    }

    pub(crate) fn source(&self, id: SourceId) -> Result<Option<SourceRecord>> {
        self.get(&id)
    }

    pub(crate) fn require_source(&self, id: SourceId) -> Result<SourceRecord> {
        self.source(id)?.ok_or_else(|| Error::not_found("source", id))
    }

    pub(crate) fn run(&self, id: InterpretationId) -> Result<Option<RunRecord>> {
        self.get(&id)
    }

    pub(crate) fn require_run(&self, id: InterpretationId) -> Result<RunRecord> {
        self.run(id)?.ok_or_else(|| Error::not_found("interpretation", id))
    }

    pub(crate) fn relationship(&self, edge: &Edge) -> Result<Option<RelationshipRecord>> {
        self.get(edge)
    }

    /// Returns an observation; `None` also for one that was erased.
    pub(crate) fn observation(&self, id: ObservationId) -> Result<Option<Observation>> {
        Ok(self.get::<ObservationRecord>(&id)?.and_then(ObservationRecord::made))
    }

    /// Returns where an observation was moved to, if it was.
    pub(crate) fn moved(&self, id: ObservationId) -> Result<Option<ObservationMove>> {
        self.get(&id)
    }

    /// Returns the observations that were made of an entity itself after one of them, in order.
    pub(crate) fn own_observations(
        &self,
        entity: EntityId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<Observation>> {
        self.observations_in(&RecordQuery::observations_after(entity, after), limit)
    }

    /// Returns the last observations that were made of an entity itself, the newest first.
    pub(crate) fn last_observations(
        &self,
        entity: EntityId,
        limit: usize,
    ) -> Result<Vec<Observation>> {
        self.observations_in(&RecordQuery::observations_of(entity).backwards(), limit)
    }

    fn observations_in(&self, query: &RecordQuery, limit: usize) -> Result<Vec<Observation>> {
        let found = self.records.list::<ObservationRecord>(self.project, query, limit)?;
        Ok(found.into_iter().filter_map(ObservationRecord::made).collect())
    }

    /// Returns the place of an entity's last observation; 0 when it has none.
    pub(crate) fn last_seq(&self, entity: EntityId) -> Result<u64> {
        let query = RecordQuery::observations_of(entity).backwards();
        let last = self.records.records(self.project, &query, 1)?;
        Ok(match last.first().map(Record::key) {
            Some(RecordKey::Observation(id)) => id.seq,
            _ => 0,
        })
    }

    /// Returns all observations that speak of an entity now: its own without those that were moved
    /// away, those that were moved to it, and those of the entities that were merged into it.
    pub(crate) fn observations(&self, entity: EntityId) -> Result<Vec<Observation>> {
        self.observations_at(entity, None)
    }

    /// Returns all observations that spoke of an entity at a time, by the merges and moves made
    /// until then.
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
            let moves = RecordQuery::moves_of(id);
            let away: Vec<ObservationMove> =
                self.records.list(self.project, &moves, OBSERVATIONS_READ)?;
            let away: BTreeSet<ObservationId> =
                away.iter().filter(|it| was_moved(it, at)).map(|it| it.observation).collect();
            let own = self.own_observations(id, 0, OBSERVATIONS_READ - found.len())?;
            found.extend(own.into_iter().filter(|one| !away.contains(&one.id)));
            for key in self.indexed(&IndexQuery::moved_to(id))? {
                let IndexKey::MovedTo { observation, .. } = key else { continue };
                let moved =
                    at.is_none() || self.moved(observation)?.is_none_or(|it| was_moved(&it, at));
                if moved {
                    found.extend(self.with_retractions(observation)?);
                }
            }
            for key in self.indexed(&IndexQuery::merged_into(id))? {
                let id = entity_of(&key)?;
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

    /// Returns an observation that was moved, with its retractions, which move along.
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

    /// Returns whether an observation is not retracted.
    pub(crate) fn is_in_effect(&self, one: &Observation) -> Result<bool> {
        let with = self.with_retractions(one.id)?;
        Ok(unretracted(&with).iter().any(|standing| standing.id == one.id))
    }

    /// Returns the observations about a turn.
    pub(crate) fn about_turn(&self, turn: &TurnId) -> Result<Vec<Observation>> {
        let mut found = Vec::new();
        for id in self.ids_about_turn(turn)? {
            found.extend(self.observation(id)?);
        }
        Ok(found)
    }

    /// Returns the ids of the observations about a turn.
    pub(crate) fn ids_about_turn(&self, turn: &TurnId) -> Result<Vec<ObservationId>> {
        let keys = self.indexed(&IndexQuery::about_turn(turn))?.into_iter();
        Ok(keys
            .filter_map(|key| match key {
                IndexKey::ObservationOfTurn { observation, .. } => Some(observation),
                _ => None,
            })
            .collect())
    }

    /// Returns the schema of a type in one version.
    pub(crate) fn schema(&self, entity_type: &str, version: u32) -> Result<Schema> {
        if version == 0 {
            return Ok(Schema::open(entity_type));
        }
        let id = (entity_type.to_owned(), version);
        let registered = self.get::<SchemaRecord>(&id)?.map(|it| it.0);
        let builtin = || builtin::schema(entity_type).filter(|schema| schema.version == version);
        let what = || format!("schema {entity_type} {version}");
        Ok(required(registered.or_else(builtin), what)?)
    }

    /// Returns the newest schema of a type: registered, built in, or open.
    pub(crate) fn newest_schema(&self, entity_type: &str) -> Result<Schema> {
        let query = RecordQuery::schemas_of(entity_type).backwards();
        let last = self.records.list::<SchemaRecord>(self.project, &query, 1)?.pop();
        if let Some(SchemaRecord(schema)) = last {
            return Ok(schema);
        }
        Ok(builtin::schema(entity_type).unwrap_or_else(|| Schema::open(entity_type)))
    }
}

/// Returns the entity that an index key leads to.
pub(super) fn entity_of(key: &IndexKey) -> tine_store::Result<EntityId> {
    let id = match key.owner() {
        Some(RecordKey::Entity(id)) => Some(id),
        _ => None,
    };
    required(id, || key.to_string())
}

/// Returns whether an observation was moved by a time. Older records do not say when.
fn was_moved(moved: &ObservationMove, at: Option<Timestamp>) -> bool {
    moved.at.zip(at).is_none_or(|(moved, at)| moved <= at)
}

/// Returns whether an entity, written like this, would be merged into one that is merged into it.
pub(crate) fn has_merge_cycle(
    knowledge: &KnowledgeReader<'_>,
    wanted: &EntityRecord,
) -> Result<bool> {
    let mut next = wanted.merged.map(|(into, _)| into);
    for _ in 0..MERGES_FOLLOWED {
        match next {
            None => return Ok(false),
            Some(into) if into == wanted.id => return Ok(true),
            Some(into) => next = knowledge.entity(into)?.and_then(|it| it.merged).map(|(it, _)| it),
        }
    }
    Ok(true)
}

/// Returns what seals an observation: the digest of its text, or the one that an erasure left.
pub(crate) fn sealed(record: &Record) -> Option<Digest> {
    match record.decode()? {
        ObservationRecord::Made(_) => Some(Digest::of(record.text().as_bytes())),
        ObservationRecord::Purged(_, digest) => Some(digest),
    }
}

impl Mutation<'_> {
    pub(crate) fn knowledge(&self) -> KnowledgeReader<'_> {
        KnowledgeReader::new(self.reader(), &self.call.project)
    }

    /// Returns an observation without fields.
    pub(crate) fn draft(
        &self,
        entity: EntityId,
        entity_type: &str,
        origin: ObservationOrigin,
    ) -> Observation {
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

    /// Adds an observation after the others of its entity, and logs it.
    pub(crate) fn observe(&mut self, mut draft: Observation) -> Result<ObservationId> {
        let last = self.knowledge().last_seq(draft.id.entity)?;
        draft.id.seq = self.new_seq().max(last + 1);
        let id = draft.id;
        let record = Record::of(&ObservationRecord::Made(draft));
        let digest = Digest::of(record.text().as_bytes());
        self.records.insert_record(&self.call.project, &record)?;
        self.changed(LoggedChange::Observed { id, digest });
        Ok(id)
    }

    /// Retracts an observation, or a retraction of it, with a reason.
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
            origin: ObservationOrigin::Server,
            correction: false,
            retracts: Some(seq),
            ..of.clone()
        })?;
        Ok(())
    }

    /// Adds or replaces a record, and logs how it was.
    pub(crate) fn set_record<R: FamilyRecord>(&mut self, value: &R) -> Result<()> {
        let record = Record::of(value);
        self.change_record(record.key().clone(), Some(record))
    }

    /// Removes a record, and logs how it was.
    pub(crate) fn remove_record(&mut self, key: RecordKey) -> Result<()> {
        self.change_record(key, None)
    }

    fn change_record(&mut self, key: RecordKey, after: Option<Record>) -> Result<()> {
        let project = &self.call.project;
        let before = self.reader().record(project, &key)?;
        // One that cannot be read is logged as null.
        let logged = |record: &Record| record.json().unwrap_or(Json::Null);
        let (old, new) = (before.as_ref().map(logged), after.as_ref().map(logged));
        if old == new {
            return Ok(());
        }
        match (&before, &after) {
            (None, Some(after)) => self.records.insert_record(project, after)?,
            (Some(_), Some(after)) => self.records.put_record(project, after)?,
            (_, None) => self.records.delete_record(project, &key)?,
        }
        self.changed(LoggedChange::Record { key, before: old, after: new });
        Ok(())
    }

    /// Makes an entity unless it is there.
    pub(crate) fn ensure_entity(&mut self, entity: EntityRecord) -> Result<EntityRecord> {
        if let Some(existing) = self.knowledge().entity(entity.id)? {
            return Ok(existing);
        }
        self.records.insert(&self.call.project, &entity)?;
        Ok(entity)
    }

    /// Relates two things unless they are; answers whether this is new. What Tine makes along
    /// with a turn follows from the turn and is not noted.
    pub(crate) fn relate(&mut self, edge: &Edge, metadata: Json, structural: bool) -> Result<bool> {
        if let Some(existing) = self.knowledge().relationship(edge)? {
            if let Some((log, operation)) = existing.made
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
            edge: *edge,
            created_at: self.now,
            created_by: self.call.actor.clone(),
            metadata,
            structural,
            made: Some(made).filter(|_| !structural),
        };
        match structural {
            true => self.records.insert(&self.call.project, &record)?,
            false => self.set_record(&record)?,
        }
        Ok(true)
    }
}
