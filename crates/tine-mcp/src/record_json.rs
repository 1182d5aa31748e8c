//! The JSON of records in answers to agents.
//!
//! Leaner than the answers over HTTP: empty members are left out, a plain text is a `text` instead
//! of a list of blocks, and long texts are truncated with a note where the full text is.

use serde_json::{Map, Value, json};
use tine_core::json::{Json, Number, Object};
use tine_core::{Body, Status};
use tine_engine::{
    BranchView, ConversationView, EntityView, Evidence, InterpretationView, ObservationView,
    Outcome, Presence, RelationshipView, SearchHit, SourceView, StoredTurn, TopologyRow, TurnView,
};
use tine_store::Content;

use crate::answer::{Truncator, list_or_null, members_of, without_nulls};
use crate::exact_integers;

/// Converts a value to the SDK's form, in which integers beyond 64 bits are marked strings.
pub(crate) fn value(json: &Json) -> Value {
    match json {
        Json::Null => Value::Null,
        Json::Bool(truth) => Value::Bool(*truth),
        Json::String(text) => Value::String(text.clone()),
        Json::Array(items) => items.iter().map(value).collect(),
        Json::Object(members) => object(members),
        Json::Number(number) => match (number.as_u64(), number.as_i64()) {
            (Some(integer), _) => integer.into(),
            (_, Some(integer)) => integer.into(),
            _ => match Number::try_from(number.as_f64()) {
                Ok(nearest) if nearest == *number => number.as_f64().into(),
                _ => exact_integers::marked(number),
            },
        },
    }
}

/// Converts an object in the same way.
pub(crate) fn object(members: &Object) -> Value {
    members.iter().map(|(name, member)| (name.to_owned(), value(member))).collect()
}

fn some(text: Option<impl ToString>) -> Value {
    text.map_or(Value::Null, |text| text.to_string().into())
}

/// Returns `true`, or `null` instead of `false`.
pub(crate) fn true_or_null(flag: bool) -> Value {
    if flag { true.into() } else { Value::Null }
}

/// Returns the URI of the resource that has the whole turn.
pub(crate) fn turn_uri(id: impl std::fmt::Display) -> String {
    format!("tine://turn/{id}")
}

pub(crate) fn turn(turn: TurnView, truncator: &mut Truncator) -> Value {
    let whole = turn_uri(turn.id);
    let (mut text, mut blocks, mut purged) = (Value::Null, Value::Null, false);
    match &turn.content {
        Content::Kept(body) => match body.text_only() {
            Some(said) => text = truncator.text(said, &whole).into(),
            None => blocks = self::blocks(body, truncator, &whole),
        },
        Content::Purged(_) => purged = true,
    }
    let metadata = value(&turn.metadata.to_json());
    let given = |name: &str| metadata.get(name).filter(|it| !is_empty(it)).cloned();
    without_nulls(json!({
        "turn_id": turn.id.to_string(),
        "turn_hash": turn.hash.to_string(),
        "parent_id": some(turn.parent),
        "role": turn.role.as_str(),
        "text": text,
        "content": blocks,
        "purged": true_or_null(purged),
        "tool_call_id": turn.tool_call_id,
        "created_at": turn.created_at.to_string(),
        "status": if turn.status == Status::Complete { Value::Null } else { turn.status.as_str().into() },
        "turn_key": some(turn.origin.slot.as_ref().map(|slot| slot.turn_key(&turn.conversation))),
        "edited_from": some(turn.origin.edited_from),
        "derived_from": some(turn.origin.derived_from),
        "title": given("title"),
        "tags": given("tags"),
        "presence": match turn.presence {
            Presence::Live => Value::Null,
            other => json!(other),
        },
    }))
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        Value::String(text) => text.is_empty(),
        _ => false,
    }
}

/// Returns the blocks with long strings truncated.
fn blocks(body: &Body, truncator: &mut Truncator, whole: &str) -> Value {
    let blocks = body.blocks().unwrap_or_default();
    let mut blocks: Value = blocks.iter().map(value).collect();
    shorten(&mut blocks, truncator, whole);
    blocks
}

fn shorten(value: &mut Value, truncator: &mut Truncator, whole: &str) {
    match value {
        Value::String(text) => *text = truncator.text(std::mem::take(text), whole),
        Value::Array(items) => items.iter_mut().for_each(|item| shorten(item, truncator, whole)),
        Value::Object(members) => {
            members.values_mut().for_each(|item| shorten(item, truncator, whole));
        }
        _ => {}
    }
}

/// Returns the fields of an entity with long strings truncated.
fn fields(fields: &Object, truncator: &mut Truncator, whole: &str) -> Value {
    let mut fields = object(fields);
    shorten(&mut fields, truncator, whole);
    fields
}

pub(crate) fn branch(branch: &BranchView) -> Value {
    without_nulls(json!({
        "name": branch.name.as_str(),
        "branch_id": branch.id.to_string(),
        "tip": some(branch.tip),
        "forked_from": some(branch.forked_from),
    }))
}

pub(crate) fn conversation(found: &ConversationView) -> Value {
    without_nulls(json!({
        "conversation_id": found.id.as_str(),
        "title": found.label(),
        "turns": found.overview.as_ref().map(|it| it.turns),
        "program": found.overview.as_ref().and_then(|it| it.program.clone()),
        "folder": found.overview.as_ref().and_then(|it| it.folder.clone()),
        "active_at": found.active_at.to_string(),
        "system_prompt": found.root.as_ref().and_then(|root| root.system_prompt.clone()),
        "created_at": found.created_at.to_string(),
        "changed_at": found.changed_at.to_string(),
        "archived": true_or_null(found.archived),
        "root_hash": found.root_hash.to_string(),
    }))
}

/// Returns the name of an outcome; empty if there is none.
pub(crate) fn outcome(outcome: impl Into<Option<Outcome>>) -> &'static str {
    outcome.into().map_or("", Outcome::as_str)
}

pub(crate) fn stored_turn(done: &StoredTurn) -> Map<String, Value> {
    let form = without_nulls(json!({
        "conversation_id": done.conversation.as_str(),
        "turn_id": done.turn.id.to_string(),
        "turn_hash": done.turn.hash.to_string(),
        "turn_key": done.slot.turn_key(&done.conversation),
        "entity_id": done.entity.to_string(),
        "observation_id": done.observation.to_string(),
        "outcome": outcome(done.outcome),
        "parent_id": some(done.turn.parent),
        "branch": done.branch.name.as_str(),
        "tip": some(done.branch.tip),
        "superseded": some(done.superseded),
        "source_id": some(done.source),
        "interpretation": done.interpretation.as_ref().map(|run| interpretation(run, &mut Truncator::new(1_000))),
        "warnings": list_or_null(done.warnings.clone()),
        "replayed": true_or_null(done.replayed),
        "undone": true_or_null(done.undone),
    }));
    members_of(form)
}

pub(crate) fn topology_row(row: TopologyRow, level_of_first: u32) -> Value {
    let names = |names: &[tine_core::Name]| {
        list_or_null(names.iter().map(|name| name.as_str().to_owned()).collect())
    };
    without_nulls(json!({
        "turn_id": row.id.to_string(),
        "parent_id": some(row.parent),
        "depth": row.level.saturating_sub(level_of_first),
        "role": row.role.as_str(),
        "preview": row.preview,
        "title": row.title,
        "tags": list_or_null(row.tags),
        "children": if row.children.len() == 1 { Value::Null } else { row.children.len().into() },
        "branches": names(&row.branches),
        "bookmarks": names(&row.bookmarks),
        "deleted": true_or_null(row.presence != Presence::Live),
    }))
}

pub(crate) fn hit(hit: SearchHit) -> Value {
    without_nulls(json!({
        "turn_id": hit.turn.to_string(),
        "conversation_id": hit.conversation.as_str(),
        "conversation_title": hit.conversation_title,
        "role": hit.role.as_str(),
        "created_at": hit.created_at.to_string(),
        "snippet": hit.snippet,
        "branches": list_or_null(
            hit.branches.iter().take(5).map(|name| name.as_str().to_owned()).collect()
        ),
    }))
}

pub(crate) fn entity(found: EntityView, truncator: &mut Truncator) -> Value {
    let whole = format!("tine://entity/{}", found.id);
    without_nulls(json!({
        "entity_id": found.id.to_string(),
        "entity_type": found.entity_type,
        "name": found.name.filter(|name| name.len() <= 200),
        "fields": fields(&found.snapshot.fields, truncator, &whole),
        "observations": found.snapshot.observations,
        "last_observed_at": some(found.snapshot.last_observed_at),
        "conversation_id": some(found.conversation.as_ref()),
        "merged_from": some(found.merged_from),
        "deleted_at": some(found.deleted_at),
        "undeclared": list_or_null(found.undeclared),
    }))
}

pub(crate) fn observation(found: ObservationView, truncator: &mut Truncator) -> Value {
    let one = &found.observation;
    let whole = match one.turn {
        Some(turn) => turn_uri(turn),
        None => format!("tine://entity/{}", one.id.entity),
    };
    without_nulls(json!({
        "observation_id": one.id.to_string(),
        "fields": if one.fields.is_empty() { Value::Null } else { fields(&one.fields, truncator, &whole) },
        "turn_id": some(one.turn),
        "source_id": some(one.source),
        "interpretation_id": some(one.interpretation),
        "span": one.span.as_ref().map(|span| vec![span.start, span.end]),
        "quote": found.quote.map(|quote| truncator.text(quote, &whole)),
        "observed_at": one.observed_at.to_string(),
        "origin": one.origin.as_str(),
        "correction": true_or_null(one.correction),
        "retracts": some(one.retracts.map(|seq| tine_core::ObservationId { entity: one.id.entity, seq })),
        "retracted": true_or_null(found.retracted),
    }))
}

pub(crate) fn evidence(found: Evidence, truncator: &mut Truncator) -> Value {
    without_nulls(json!({
        "observation": observation(found.observation, truncator),
        "interpretation": found.interpretation.as_ref().map(|run| without_nulls(json!({
            "interpretation_id": run.id.to_string(),
            "interpreter": run.interpreter,
            "status": run.status.as_str(),
        }))),
        "source": found.source.as_ref().map(source),
        "turn_id": some(found.turn),
    }))
}

pub(crate) fn source(found: &SourceView) -> Value {
    without_nulls(json!({
        "source_id": found.id.to_string(),
        "content_hash": found.content_hash.to_string(),
        "size_bytes": found.size_bytes,
        "mime_type": found.mime_type,
        "original_filename": found.original_filename,
        "stored_at": found.stored_at.to_string(),
        "turn_id": some(found.turn),
        "purged": true_or_null(found.purged),
    }))
}

pub(crate) fn interpretation(run: &InterpretationView, truncator: &mut Truncator) -> Value {
    let mut detail = run.detail.clone();
    for bytes in ["request", "response"] {
        detail.remove(bytes);
    }
    without_nulls(json!({
        "interpretation_id": run.id.to_string(),
        "source_id": run.source.to_string(),
        "status": run.status.as_str(),
        "interpreter": run.interpreter,
        "queued_at": run.queued_at.to_string(),
        "finished_at": some(run.finished_at),
        "observations": run.observations.len(),
        "unknown_fields": list_or_null(run.unknown_fields.clone()),
        "notes": list_or_null(run.notes.clone()),
        "error": run.error.clone().map(|why| truncator.text(why, "the server's log")),
        "detail": if detail.is_empty() { Value::Null } else { truncator.value(object(&detail), "the command line: tine interpret") },
    }))
}

pub(crate) fn relationship(found: RelationshipView) -> Value {
    let metadata = value(&found.metadata);
    without_nulls(json!({
        "type": found.relation.as_str(),
        "source": found.source.to_string(),
        "source_type": found.source_type,
        "target": found.target.to_string(),
        "target_type": found.target_type,
        "label": found.label(),
        "metadata": if is_empty(&metadata) { Value::Null } else { metadata },
        "created_at": found.created_at.to_string(),
        "structural": true_or_null(found.structural),
    }))
}
