//! Facts that a caller structured itself: logged as the caller's own interpretation, with what
//! was sent as the source unless another one is named.

use serde::{Deserialize, Serialize};
use tine_core::facts::{Observation, ObservationOrigin, builtin, identity, observation, schema};
use tine_core::json::{Json, Object, object};
use tine_core::{EntityId, InterpretationId, ObservationId, SourceId, TurnId};
use tine_store::{EntityRecord, RunRecord, WriteFamilies};

use super::entities::refuse_misfit;
use super::relations::{self, EdgeReceipt, edge_from};
use super::runs::new_run;
use super::sources::{self, PreparedSource};
use crate::log::change::text;
use crate::log::mutation::{Mutation, Receipt};
use crate::tree::{resolve, views};
use crate::{Call, Engine, Error, Outcome, Result, TurnRef};
use crate::{NewFact, RunStatus, StoreFacts, StoredFact, StoredFacts};

/// The mime type of what a caller structured.
pub(super) const FACTS_MIME: &str = "application/vnd.tine.facts+json";

/// The name under which a caller's own work is logged.
const AGENT: &str = "agent";

impl Engine {
    /// Stores facts and the relationships between them, all or nothing.
    pub fn store_facts(&self, call: &Call, request: StoreFacts) -> Result<StoredFacts> {
        self.check_facts(&request)?;
        let prepared = PreparedSource::from_bytes(as_sent(&request).to_canonical().into_bytes());
        let (receipt, replay) =
            self.mutate(call, "store", request, as_sent, move |mutation, request| {
                store(mutation, request, &prepared)
            })?;
        let mut relationships = Vec::new();
        for EdgeReceipt { edge, outcome } in receipt.relationships {
            relationships.push(self.relationship_of(call, &edge)?.with_outcome(outcome));
        }
        Ok(StoredFacts {
            source: self.source(call, receipt.source)?,
            interpretation: receipt.run,
            entities: receipt.entities.into_iter().map(StoredFact::from).collect(),
            relationships,
            unknown_fields: self.interpretation(call, receipt.run)?.unknown_fields,
            warnings: receipt.warnings,
            replayed: replay.replayed,
        })
    }

    pub(super) fn check_facts(&self, request: &StoreFacts) -> Result<()> {
        let (limit, given) =
            (self.limits().facts_per_store, request.entities.len() + request.relationships.len());
        if given == 0 {
            return Err(Error::invalid(
                "there is nothing to store; give an entity or a relationship",
            ));
        }
        if given > limit {
            return Err(Error::TooLarge { what: "facts in one store", limit, given });
        }
        for fact in &request.entities {
            schema::check_name("a type", &fact.entity_type)?;
            if builtin::is_structural(&fact.entity_type) {
                return Err(Error::invalid(format!(
                    "entities of type `{}` are created by Tine; store the turn instead",
                    fact.entity_type
                )));
            }
            check_fields(&fact.fields)?;
            if fact.fields.is_empty() {
                let what = &fact.entity_type;
                return Err(Error::invalid(format!("the {what} has no fields; give at least one")));
            }
        }
        Ok(())
    }
}

/// Refuses what cannot be the name of a field.
pub(super) fn check_fields(fields: &Object) -> Result<()> {
    for name in fields.keys() {
        schema::check_name("a field", name)?;
        if observation::reserved(name) {
            return Err(Error::invalid(format!(
                "`{name}` is reserved and cannot be a field; choose another name"
            )));
        }
    }
    Ok(())
}

/// Everything that was sent, in one form.
pub(super) fn as_sent(request: &StoreFacts) -> Json {
    let fact = |fact: &NewFact| {
        object([
            ("entity_type", fact.entity_type.as_str().into()),
            ("entity_id", fact.entity.as_ref().map(text).into()),
            ("fields", Json::Object(fact.fields.clone())),
            ("observed_at", fact.observed_at.as_ref().map(text).into()),
            ("turn", fact.turn.as_ref().map(|turn| Json::from(turn.as_str())).into()),
            (
                "span",
                fact.span.map(|(start, end)| Json::Array(vec![start.into(), end.into()])).into(),
            ),
            ("priority", fact.priority.into()),
            ("specificity", fact.specificity.into()),
        ])
    };
    object([
        ("entities", Json::Array(request.entities.iter().map(fact).collect())),
        (
            "relationships",
            Json::Array(request.relationships.iter().map(relations::as_sent).collect()),
        ),
        ("source_id", request.source.as_ref().map(text).into()),
        ("agent", request.agent.clone()),
    ])
}

#[derive(Serialize, Deserialize)]
pub(super) struct StoreReceipt {
    #[serde(rename = "source_id")]
    pub source: SourceId,
    pub run: InterpretationId,
    pub entities: Vec<FactReceipt>,
    pub relationships: Vec<EdgeReceipt>,
    /// What callers called fields is content: a repeated call finds it in the run.
    #[serde(skip)]
    pub unknown_fields: Vec<String>,
    pub warnings: Vec<String>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct FactReceipt {
    #[serde(rename = "entity_id")]
    pub entity: EntityId,
    #[serde(rename = "observation_id")]
    observation: ObservationId,
    #[serde(rename = "created", with = "views::created")]
    outcome: Outcome,
}

impl From<FactReceipt> for StoredFact {
    fn from(made: FactReceipt) -> Self {
        let FactReceipt { entity, observation, outcome } = made;
        StoredFact { entity, observation, outcome }
    }
}

impl Receipt for StoreReceipt {}

pub(super) fn store(
    mutation: &mut Mutation<'_>,
    request: &StoreFacts,
    prepared: &PreparedSource,
) -> Result<StoreReceipt> {
    mutation.open_project_log()?;
    let source = match request.source {
        Some(source) => mutation.knowledge().require_source(source)?,
        None => sources::keep(mutation, prepared, FACTS_MIME, None, None)?.0,
    };
    // The run's id comes first, since observations name it; it is written when they are made.
    let run = mutation.new_interpretation_id();
    let mut receipt = StoreReceipt {
        source: source.id,
        run,
        entities: Vec::new(),
        relationships: Vec::new(),
        unknown_fields: Vec::new(),
        warnings: Vec::new(),
    };
    for fact in &request.entities {
        store_fact(mutation, fact, &mut receipt)?;
    }
    receipt.unknown_fields.sort();
    receipt.unknown_fields.dedup();
    let made: Vec<EntityId> = receipt.entities.iter().map(|fact| fact.entity).collect();
    for wanted in &request.relationships {
        let edge = edge_from(mutation, wanted, &made)?;
        let created = mutation.relate(&edge, wanted.metadata.clone(), false)?;
        let outcome = Outcome::from_created(created);
        receipt.relationships.push(EdgeReceipt { edge, outcome });
    }
    let mut detail = Object::new();
    detail.insert("kind", AGENT.into());
    detail.insert("agent", request.agent.clone());
    detail.insert("input_hash", source.content_hash.to_hex().into());
    let kept = RunRecord {
        status: RunStatus::Completed,
        started_at: Some(mutation.now),
        finished_at: Some(mutation.now),
        attempts: 1,
        observations: receipt.entities.iter().map(|fact| fact.observation).collect(),
        unknown_fields: receipt.unknown_fields.clone(),
        detail,
        ..new_run(mutation, run, source.id, AGENT)
    };
    mutation.records.insert(&mutation.call.project, &kept)?;
    mutation.fact_also("interpretation_id", text(&run));
    Ok(receipt)
}

fn store_fact(
    mutation: &mut Mutation<'_>,
    fact: &NewFact,
    receipt: &mut StoreReceipt,
) -> Result<()> {
    let schema = mutation.knowledge().newest_schema(&fact.entity_type)?;
    refuse_misfit(&schema, &fact.fields)?;
    let unknown = fact.fields.keys().filter(|name| !schema.declares(name));
    receipt.unknown_fields.extend(unknown.map(|name| format!("{}.{name}", fact.entity_type)));
    let entity = entity_of(mutation, fact, &schema)?;
    let knowledge = mutation.knowledge();
    let created = entity.merged.is_none() && knowledge.last_seq(entity.id)? == 0;
    let stands = knowledge.canonical_entity(entity.clone())?;
    if stands.deleted_at.is_some() {
        receipt
            .warnings
            .push(format!("{} is deleted and stays so; restore it to see it again", stands.id));
    }
    let turn = turn_of(mutation, fact)?;
    let draft = mutation.draft(entity.id, &fact.entity_type, ObservationOrigin::Agent);
    let observation = mutation.observe(Observation {
        fields: fact.fields.clone(),
        source: Some(receipt.source),
        interpretation: Some(receipt.run),
        turn,
        span: fact.span.map(|(start, end)| start..end),
        observed_at: fact.observed_at.unwrap_or(mutation.now),
        priority: fact.priority.unwrap_or(observation::PRIORITY),
        specificity: fact.specificity.unwrap_or(0),
        schema_version: schema.version,
        ..draft
    })?;
    let outcome = Outcome::from_created(created);
    receipt.entities.push(FactReceipt { entity: entity.id, observation, outcome });
    Ok(())
}

/// Returns the entity that a fact is about: the one it names, the one its fields identify, or a new
/// one. One that was merged keeps what is said of it, and has it when that is undone.
fn entity_of(
    mutation: &mut Mutation<'_>,
    fact: &NewFact,
    schema: &tine_core::facts::Schema,
) -> Result<EntityRecord> {
    if let Some(id) = fact.entity {
        let existing = mutation.knowledge().require_entity(id)?;
        if existing.entity_type != fact.entity_type {
            return Err(Error::invalid(format!(
                "{id} is a {}, not a {}; nothing was stored",
                existing.entity_type, fact.entity_type
            )));
        }
        return Ok(existing);
    }
    let key = identity::key(schema, &fact.fields);
    let id = match &key {
        Some(key) => identity::entity_id(&mutation.call.project, &fact.entity_type, key),
        None => mutation.new_entity_id(),
    };
    let key = key.unwrap_or(Json::Null);
    mutation.ensure_entity(EntityRecord::new(id, &fact.entity_type, key, mutation.now))
}

fn turn_of(mutation: &Mutation<'_>, fact: &NewFact) -> Result<Option<TurnId>> {
    let Some(reference) = &fact.turn else {
        return Ok(None);
    };
    let wanted = TurnRef { conversation: None, turn: reference.clone() };
    let place = resolve::place(mutation.reader(), mutation.call, &wanted)?;
    let loc = place.require_turn()?;
    Ok(mutation.reader().turn(loc)?.map(|turn| turn.id))
}
