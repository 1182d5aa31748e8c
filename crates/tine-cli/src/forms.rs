//! What was learned as JSON, in the names of the contract.
//!
//! Invariants: those of [`tine_formats::view`]. Free-form values are passed on as canonical bytes,
//! what a record always has is always there, and nothing is rounded.

use serde::{Serialize, Serializer};
use tine_core::facts::{Endpoint, Schema, Slot, observation::span_json};
use tine_core::json::Object;
use tine_core::{Json, ObservationId};
use tine_engine::{
    EntityView, Evidence, FieldProvenance, InterpretationView, ObservationView, Outcome,
    QueueStatus, RelationshipView, RunComparison, SourceView, StoredFacts, StoredSource,
    StoredTurn, TimelineEntry,
};
use tine_formats::view::{self, Raw};
use tine_interpret::Finding;

/// An object whose members are written in the order in which they were put.
#[derive(Clone, Debug, Default)]
pub(crate) struct Form(Vec<(&'static str, Raw)>);

impl Form {
    fn put(mut self, name: &'static str, value: impl Into<Json>) -> Self {
        self.0.push((name, view::raw(&value.into())));
        self
    }

    /// A member that only some have.
    fn some(self, name: &'static str, value: Option<impl Into<Json>>) -> Self {
        match value {
            Some(value) => self.put(name, value),
            None => self,
        }
    }

    fn some_with(self, name: &'static str, value: Option<Form>) -> Self {
        match value {
            Some(value) => self.with(name, &value),
            None => self,
        }
    }

    fn with(mut self, name: &'static str, value: &impl Serialize) -> Self {
        let raw = serde_json::value::to_raw_value(value).expect("forms are JSON");
        self.0.push((name, raw));
        self
    }
}

impl Form {
    /// The same with what became of it.
    pub(crate) fn with_outcome(self, made: Outcome) -> Self {
        self.put("outcome", outcome(made))
    }
}

/// Something was removed.
pub(crate) fn removed() -> Form {
    Form::default().put("deleted", true)
}

impl Serialize for Form {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

fn text(value: impl ToString) -> Json {
    Json::String(value.to_string())
}

fn maybe(value: Option<impl ToString>) -> Json {
    value.map_or(Json::Null, text)
}

fn listed(values: &[String]) -> Option<Json> {
    (!values.is_empty()).then(|| texts(values))
}

fn texts<T: std::fmt::Display>(values: &[T]) -> Json {
    Json::Array(values.iter().map(text).collect())
}

/// `created` or `reused`.
pub(crate) fn outcome(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Created => "created",
        Outcome::Reused => "reused",
    }
}

fn slot(it: &Slot) -> Form {
    Form::default()
        .put("turn_id", it.turn_id.as_str())
        .put("role", it.role.as_str())
        .some("tool_call_id", it.tool_call_id.clone())
        .put("part", it.part)
}

/// What storing a host's turn did.
pub(crate) fn stored_turn(done: &StoredTurn) -> Form {
    Form::default()
        .put("conversation_id", text(&done.conversation))
        .put("turn_id", text(done.turn.id))
        .put("turn_hash", text(done.turn.hash))
        .put("turn_key", done.slot.turn_key(&done.conversation))
        .put("entity_id", text(done.entity))
        .put("observation_id", text(done.observation))
        .put("outcome", outcome(done.outcome))
        .with("slot", &slot(&done.slot))
        .some("superseded", done.superseded.map(text))
        .with("branch", &view::Branch::from(done.branch.clone()))
        .put("tip", maybe(done.branch.tip))
        .some("source_id", done.source.map(text))
        .some_with("interpretation", done.interpretation.as_ref().map(brief))
        .some("warnings", listed(&done.warnings))
        .put("replayed", done.replayed)
        .some("undone", done.undone.then_some(true))
}

/// A source without its bytes.
pub(crate) fn source(it: &SourceView) -> Form {
    Form::default()
        .put("source_id", text(it.id))
        .put("content_hash", text(it.content_hash))
        .put("size_bytes", it.size_bytes)
        .put("mime_type", it.mime_type.as_str())
        .put("original_filename", it.original_filename.clone())
        .put("stored_at", text(it.stored_at))
        .put("stored_by", it.stored_by.as_str())
        .some("turn_id", it.turn.map(text))
        .some("purged", it.purged.then_some(true))
}

/// What keeping bytes did.
pub(crate) fn stored_source(done: &StoredSource) -> Form {
    Form::default()
        .put("source_id", text(done.source.id))
        .with("source", &source(&done.source))
        .put("outcome", outcome(done.outcome))
        .some_with("turn", done.turn.as_deref().map(stored_turn))
        .some_with("interpretation", done.interpretation.as_ref().map(brief))
        .some("warnings", listed(&done.warnings))
        .put("replayed", done.replayed)
}

/// What a structured store did.
pub(crate) fn stored_facts(done: &StoredFacts) -> Form {
    let entities = done.entities.iter().map(|fact| {
        Form::default()
            .put("entity_id", text(fact.entity))
            .put("observation_id", text(fact.observation))
            .put("outcome", outcome(fact.outcome))
    });
    let relationships =
        done.relationships.iter().map(|(one, made)| relationship(one).with_outcome(*made));
    Form::default()
        .with("source", &source(&done.source))
        .put("interpretation_id", text(done.interpretation))
        .with("entities", &entities.collect::<Vec<_>>())
        .with("relationships", &relationships.collect::<Vec<_>>())
        .put("unknown_fields", texts(&done.unknown_fields))
        .some("warnings", listed(&done.warnings))
        .put("replayed", done.replayed)
}

/// One run.
pub(crate) fn interpretation(run: &InterpretationView) -> Form {
    Form::default()
        .put("interpretation_id", text(run.id))
        .put("source_id", text(run.source))
        .put("status", run.status.as_str())
        .put("interpreter", run.interpreter.as_str())
        .put("queued_at", text(run.queued_at))
        .put("started_at", maybe(run.started_at))
        .put("finished_at", maybe(run.finished_at))
        .put("attempts", run.attempts)
        .some("retry_of", run.retry_of.map(text))
        .put("observations", texts(&run.observations))
        .put("unknown_fields", texts(&run.unknown_fields))
        .put("notes", texts(&run.notes))
        .some("error", run.error.clone())
        .put("detail", Json::Object(run.detail.clone()))
}

/// One run as the answer to a store has it.
fn brief(run: &InterpretationView) -> Form {
    Form::default()
        .put("interpretation_id", text(run.id))
        .put("status", run.status.as_str())
        .put("interpreter", run.interpreter.as_str())
        .put("observations", run.observations.len() as u64)
        .some("error", run.error.clone())
}

/// What waits and what works, and which runs these are.
pub(crate) fn queue(status: &QueueStatus, open: &[InterpretationView]) -> Form {
    let named = |(name, about): (&String, &String)| (name.clone(), about.as_str().into());
    let interpreters: Object = status.interpreters.iter().map(named).collect();
    Form::default()
        .put("queued", status.queued as u64)
        .put("running", status.running as u64)
        .put("interpreters", Json::Object(interpreters))
        .put("default", status.default.as_str())
        .with("runs", &open.iter().map(interpretation).collect::<Vec<_>>())
}

/// An observation.
pub(crate) fn observation(it: &ObservationView) -> Form {
    let one = &it.observation;
    let retracts = one.retracts.map(|seq| text(ObservationId { seq, ..one.id }));
    Form::default()
        .put("observation_id", text(one.id))
        .put("entity_id", text(one.id.entity))
        .put("entity_type", one.entity_type.as_str())
        .put("fields", Json::Object(one.fields.clone()))
        .put("source_id", maybe(one.source))
        .put("interpretation_id", maybe(one.interpretation))
        .put("turn_id", maybe(one.turn))
        .put("span", one.span.as_ref().map_or(Json::Null, span_json))
        .some("quote", it.quote.clone())
        .put("observed_at", text(one.observed_at))
        .put("stored_at", text(one.stored_at))
        .put("priority", one.priority)
        .put("specificity", one.specificity)
        .put("origin", one.origin.as_str())
        .some("correction", one.correction.then_some(true))
        .some("retracts", retracts)
        .put("retracted", it.retracted)
        .put("schema_version", one.schema_version)
}

/// An entity and what holds of it.
pub(crate) fn entity(it: &EntityView) -> Form {
    let from = it.snapshot.provenance.iter();
    let from: Object = from.map(|(field, ids)| (field.clone(), texts(ids))).collect();
    Form::default()
        .put("entity_id", text(it.id))
        .put("entity_type", it.entity_type.as_str())
        .put("name", it.name.clone())
        .put("fields", Json::Object(it.snapshot.fields.clone()))
        .put("provenance", Json::Object(from))
        .put("observations", it.snapshot.observations as u64)
        .put("last_observed_at", maybe(it.snapshot.last_observed_at))
        .put("schema_version", it.snapshot.schema_version)
        .put("first_seen", text(it.first_seen))
        .some("merged_from", it.merged_from.map(text))
        .some("deleted_at", it.deleted_at.map(text))
        .some("conversation_id", it.conversation.as_ref().map(text))
        .some_with("slot", it.slot.as_ref().map(slot))
        .some("undeclared", listed(&it.undeclared))
}

/// The key that people know a message's entity by.
pub(crate) fn turn_key(it: &EntityView) -> Option<String> {
    Some(it.slot.as_ref()?.turn_key(it.conversation.as_ref()?))
}

/// Where the value of a field comes from.
pub(crate) fn provenance(it: &FieldProvenance) -> Form {
    let evidence = |it: &Evidence| {
        Form::default()
            .with("observation", &observation(&it.observation))
            .with("interpretation", &it.interpretation.as_ref().map(interpretation))
            .with("source", &it.source.as_ref().map(source))
            .put("turn_id", maybe(it.turn))
    };
    Form::default()
        .put("field", it.field.as_str())
        .put("value", it.value.clone())
        .with("evidence", &it.evidence.iter().map(evidence).collect::<Vec<_>>())
}

/// A relationship. Of each end one id is there.
pub(crate) fn relationship(it: &RelationshipView) -> Form {
    let name = |end: &Endpoint, names: [&'static str; 3]| match end {
        Endpoint::Entity(_) => names[0],
        Endpoint::Turn(_) => names[1],
        Endpoint::Source(_) => names[2],
    };
    let source = name(&it.source, ["source_entity_id", "source_turn_id", "source_source_id"]);
    let target = name(&it.target, ["target_entity_id", "target_turn_id", "target_source_id"]);
    Form::default()
        .put("type", text(it.relation))
        .put("label", it.label)
        .put(source, text(it.source))
        .put("source_type", it.source_type.as_str())
        .put(target, text(it.target))
        .put("target_type", it.target_type.as_str())
        .put("metadata", it.metadata.clone())
        .put("created_at", text(it.created_at))
        .put("created_by", it.created_by.as_str())
        .put("structural", it.structural)
}

/// A dated fact.
pub(crate) fn dated(it: &TimelineEntry) -> Form {
    Form::default()
        .put("at", text(it.at))
        .put("date", it.date.as_str())
        .put("field", it.field.as_str())
        .put("entity_id", text(it.entity))
        .put("entity_type", it.entity_type.as_str())
        .put("name", it.name.clone())
        .put("observation_id", text(it.observation))
}

/// How two runs differ.
pub(crate) fn comparison(it: &RunComparison) -> Form {
    let all = |found: &[ObservationView]| found.iter().map(observation).collect::<Vec<_>>();
    let changed = it.changed.iter().map(|one| {
        Form::default()
            .with("before", &observation(&one.before))
            .with("after", &observation(&one.after))
            .put("fields", texts(&one.fields))
    });
    Form::default()
        .put("before", text(it.before))
        .put("after", text(it.after))
        .with("gained", &all(&it.gained))
        .with("lost", &all(&it.lost))
        .with("changed", &changed.collect::<Vec<_>>())
        .put("same", it.same as u64)
}

/// What a run found, read again.
pub(crate) fn finding(it: &Finding) -> Form {
    let span = it.span.as_ref().map(|span| span_json(&(span.start as u64..span.end as u64)));
    Form::default()
        .put("entity_type", it.entity_type.as_str())
        .put("fields", Json::Object(it.fields.clone()))
        .put("span", span)
}

/// A schema.
pub(crate) fn schema(it: &Schema) -> Form {
    let form = it.to_json();
    let member = |name: &str| form.get(name).cloned().unwrap_or(Json::Null);
    Form::default()
        .put("entity_type", member("entity_type"))
        .put("version", member("version"))
        .put("description", member("description"))
        .put("fields", member("fields"))
        .put("identity", member("identity"))
}
