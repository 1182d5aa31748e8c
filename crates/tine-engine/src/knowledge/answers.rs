//! What a caller is told of what was learned.

use std::collections::BTreeMap;
use std::ops::Range;

use tine_core::facts::{Endpoint, Relation, Slot, Snapshot};
use tine_core::json::{Json, Object};
use tine_core::{
    ConversationId, Digest, EntityId, InterpretationId, ObservationId, SourceId, Timestamp, TurnId,
};

use crate::{BranchView, Outcome, TurnView};

/// What storing a host's turn did.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredTurn {
    /// The conversation: to be passed back with the next turn.
    pub conversation: ConversationId,
    /// The turn in the tree.
    pub turn: TurnView,
    /// Whether it was made.
    pub outcome: Outcome,
    /// The host's place.
    pub slot: Slot,
    /// The entity whose observation this is.
    pub entity: EntityId,
    /// The observation.
    pub observation: ObservationId,
    /// The turn whose place it took.
    pub superseded: Option<TurnId>,
    /// The branch, as it is now.
    pub branch: BranchView,
    /// The source, where there is one.
    pub source: Option<SourceId>,
    /// The run over it.
    pub interpretation: Option<InterpretationView>,
    /// What the caller should know.
    pub warnings: Vec<String>,
    /// Whether this is the answer of an earlier call with the same key.
    pub replayed: bool,
    /// Whether that earlier work has been undone since.
    pub undone: bool,
}

/// A source without its bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct SourceView {
    /// Its id.
    pub id: SourceId,
    /// The SHA-256 of its bytes.
    pub content_hash: Digest,
    /// How many there are.
    pub size_bytes: u64,
    /// What they are.
    pub mime_type: String,
    /// The name that they came under.
    pub original_filename: Option<String>,
    /// When they came.
    pub stored_at: Timestamp,
    /// From whom.
    pub stored_by: String,
    /// The turn that it is the envelope of.
    pub turn: Option<TurnId>,
    /// Whether the bytes were erased.
    pub purged: bool,
}

/// What keeping bytes did.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredSource {
    /// The source.
    pub source: SourceView,
    /// Whether the bytes were new here.
    pub outcome: Outcome,
    /// The turn, when the bytes were the envelope of one.
    pub turn: Option<Box<StoredTurn>>,
    /// The run over it.
    pub interpretation: Option<InterpretationView>,
    /// What the caller should know.
    pub warnings: Vec<String>,
    /// Whether this is the answer of an earlier call with the same key.
    pub replayed: bool,
}

/// Where a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RunStatus {
    /// Waiting.
    Queued,
    /// At work.
    Running,
    /// Done.
    Completed,
    /// Ended without a result.
    Failed,
}

/// One run of an interpreter over a source.
#[derive(Clone, Debug, PartialEq)]
pub struct InterpretationView {
    /// Its id.
    pub id: InterpretationId,
    /// The source.
    pub source: SourceId,
    /// Where it is.
    pub status: RunStatus,
    /// The interpreter that was asked for.
    pub interpreter: String,
    /// When it was asked for.
    pub queued_at: Timestamp,
    /// When it began.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub finished_at: Option<Timestamp>,
    /// How often it was begun.
    pub attempts: u32,
    /// The failed run that it repeats.
    pub retry_of: Option<InterpretationId>,
    /// What it observed.
    pub observations: Vec<ObservationId>,
    /// Fields that their schemas do not declare, as `type.field`.
    pub unknown_fields: Vec<String>,
    /// What was found and could not be used, one sentence each.
    pub notes: Vec<String>,
    /// Why it failed.
    pub error: Option<String>,
    /// How it worked: version, kind, provider, model, parameters, seed, prompt_hash, input_hash,
    /// model_answered, usage, tries, duration_ms; with `request` and `response` when the whole
    /// is asked for.
    pub detail: Object,
}

/// An observation as shown.
#[derive(Clone, Debug, PartialEq)]
pub struct ObservationView {
    /// The observation, with what its turn says for fields where it is a version of a slot.
    pub observation: tine_core::facts::Observation,
    /// Whether a later one took it back.
    pub retracted: bool,
    /// The text of its span, where it is known.
    pub quote: Option<String>,
}

/// An entity with what holds of it.
#[derive(Clone, Debug, PartialEq)]
pub struct EntityView {
    /// Its id.
    pub id: EntityId,
    /// Its type.
    pub entity_type: String,
    /// What people call it.
    pub name: Option<String>,
    /// What holds.
    pub snapshot: Snapshot,
    /// When the first observation came.
    pub first_seen: Timestamp,
    /// The entity that was asked for, when it was merged into this one.
    pub merged_from: Option<EntityId>,
    /// Since when it is deleted.
    pub deleted_at: Option<Timestamp>,
    /// The conversation that it, or its slot, belongs to.
    pub conversation: Option<ConversationId>,
    /// The host's place that it stands for.
    pub slot: Option<Slot>,
    /// Fields that its schema does not declare.
    pub undeclared: Vec<String>,
}

/// Where the value of a field comes from.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldProvenance {
    /// The field.
    pub field: String,
    /// Its value.
    pub value: Json,
    /// The observations that it comes from, each with its run, its source and its bytes.
    pub evidence: Vec<Evidence>,
}

/// One step from a value back to the bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct Evidence {
    /// The observation.
    pub observation: ObservationView,
    /// The run that made it.
    pub interpretation: Option<InterpretationView>,
    /// The source that was read.
    pub source: Option<SourceView>,
    /// The turn that said it.
    pub turn: Option<TurnId>,
}

/// A relationship as shown.
#[derive(Clone, Debug, PartialEq)]
pub struct RelationshipView {
    /// Its type.
    pub relation: Relation,
    /// From.
    pub source: Endpoint,
    /// What that is: the type of an entity, `turn` or `source`.
    pub source_type: String,
    /// To.
    pub target: Endpoint,
    /// What that is.
    pub target_type: String,
    /// What people read.
    pub label: &'static str,
    /// What is known of it.
    pub metadata: Json,
    /// When it was made.
    pub created_at: Timestamp,
    /// By whom.
    pub created_by: String,
    /// Whether Tine made it along with a turn.
    pub structural: bool,
}

/// What a structured store did.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredFacts {
    /// The source that the facts trace back to.
    pub source: SourceView,
    /// The run that stands for the caller's own work.
    pub interpretation: InterpretationId,
    /// One for each entity, in order.
    pub entities: Vec<StoredFact>,
    /// One for each relationship, in order: itself, and whether it is new.
    pub relationships: Vec<(RelationshipView, Outcome)>,
    /// Fields that their schemas do not declare, as `type.field`.
    pub unknown_fields: Vec<String>,
    /// What the caller should know.
    pub warnings: Vec<String>,
    /// Whether this is the answer of an earlier call with the same key.
    pub replayed: bool,
}

/// One fact that was stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredFact {
    /// The entity.
    pub entity: EntityId,
    /// The observation.
    pub observation: ObservationId,
    /// Whether the entity is new.
    pub outcome: Outcome,
}

/// What a store of several parts did, or would do.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredTogether {
    /// The turn, if one was given; its run is among those of the parts.
    pub turn: Option<StoredTurn>,
    /// Everything else.
    pub parts: StoredParts,
    /// Whether this is the answer of an earlier call with the same key.
    pub replayed: bool,
    /// Whether that earlier work has been undone since.
    pub undone: bool,
    /// Whether nothing was kept: ids of what would be new are none that will come back.
    pub rehearsed: bool,
}

/// What became of bytes and facts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StoredParts {
    /// The bytes, and whether they were new here.
    pub source: Option<(SourceId, Outcome)>,
    /// The source that the facts trace back to.
    pub facts_source: Option<SourceId>,
    /// The run that stands for the caller's own work.
    pub interpretation: Option<InterpretationId>,
    /// One for each entity, in order.
    pub entities: Vec<StoredFact>,
    /// One for each relationship, in order.
    pub relationships: Vec<RelationshipKept>,
    /// Fields that their schemas do not declare, as `type.field`.
    pub unknown_fields: Vec<String>,
    /// Runs that were queued.
    pub runs: Vec<InterpretationId>,
    /// What the caller should know.
    pub warnings: Vec<String>,
}

/// A relationship that was stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RelationshipKept {
    /// Its type.
    pub relation: Relation,
    /// From.
    pub source: Endpoint,
    /// To.
    pub target: Endpoint,
    /// Whether it is new.
    pub outcome: Outcome,
}

/// A dated fact.
#[derive(Clone, Debug, PartialEq)]
pub struct TimelineEntry {
    /// When.
    pub at: Timestamp,
    /// The date as it was given.
    pub date: String,
    /// The field that says so.
    pub field: String,
    /// The entity.
    pub entity: EntityId,
    /// Its type.
    pub entity_type: String,
    /// What people call it.
    pub name: Option<String>,
    /// The observation that says so.
    pub observation: ObservationId,
}

/// How two runs over one source differ.
#[derive(Clone, Debug, PartialEq)]
pub struct RunComparison {
    /// The earlier run.
    pub before: InterpretationId,
    /// The later run.
    pub after: InterpretationId,
    /// Found only by the later one.
    pub gained: Vec<ObservationView>,
    /// Found only by the earlier one.
    pub lost: Vec<ObservationView>,
    /// Found by both, and not the same.
    pub changed: Vec<ChangedFinding>,
    /// Found by both alike.
    pub same: usize,
}

/// One finding of two runs that differs.
#[derive(Clone, Debug, PartialEq)]
pub struct ChangedFinding {
    /// As the earlier run had it.
    pub before: ObservationView,
    /// As the later run has it.
    pub after: ObservationView,
    /// The fields that differ.
    pub fields: Vec<String>,
}

/// How many runs are where.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueueStatus {
    /// Waiting.
    pub queued: usize,
    /// At work.
    pub running: usize,
    /// The interpreters that can be asked for, and what each is.
    pub interpreters: BTreeMap<String, String>,
    /// The one that is asked when none is named.
    pub default: String,
}

/// A stretch of bytes.
pub type Span = Range<u64>;
