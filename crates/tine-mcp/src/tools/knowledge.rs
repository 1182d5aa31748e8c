//! Tools for knowledge: entities, provenance, relationships, interpretation runs, sources.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tine_engine::{
    AsOf, Correct, Direction, EntityQuery, NewRelationship, Reinterpret, RelationshipQuery,
    RunQuery,
};

use super::store::{metadata, wait};
use super::{ToolContext, ToolSpec, tools};
use crate::answer::{AnswerPage, ToolAnswer, Truncator, counted, list_or_null, without_nulls};
use crate::mcp_error::McpError;
use crate::record_json;
use crate::shared_arguments::{end, entity, optional_time, source};
use crate::typed_arguments::{Members, arguments, choices};

pub(super) const TOOLS: &[ToolSpec] = tools! {
    ReadOnly retrieve_entities(EntitiesArguments) [core memory_only paged] [("entities", "array")]
        "Find entities (people, tasks, decisions, messages …) by type or text.";
    ReadOnly retrieve_entity_snapshot(SnapshotArguments) [core memory_only]
        [("entity_id", "string"), ("fields", "object")]
        "The fields of one entity, now or as of a time.";
    ReadOnly list_observations(EntityArguments) [core paged]
        [("entity_id", "string"), ("observations", "array")]
        "All observations of an entity, oldest first: every version of a message, on every \
         branch.";
    ReadOnly retrieve_field_provenance(ProvenanceArguments) [memory_only paged]
        [("entity_id", "string"), ("fields", "array")]
        "Where each field of an entity comes from: observation, run, source and quoted text.";
    Idempotent create_relationship(RelationshipArguments) [memory_only]
        [("outcome", "string"), ("type", "string")]
        "Relate two entities, sources, turns or conversations.";
    ReadOnly list_relationships(RelationshipsArguments) [memory_only paged]
        [("relationships", "array")]
        "List relationships, of one record or all.";
    Additive correct(CorrectArguments) [memory_only]
        [("entity_id", "string"), ("observation_id", "string")]
        "Correct fields of an entity when the user says so. Overrides everything except later \
         corrections. For messages use edit_turn.";
    ReadOnly list_interpretations(RunsArguments) [memory_only paged] [("interpretations", "array")]
        "List interpretation runs, of one source or all; with open, only queued and running ones.";
    Additive reinterpret(ReinterpretArguments) [memory_only] [("interpretations", "array")]
        "Interpret sources again. Old runs and their observations are kept.";
    ReadOnly retrieve_source(RetrieveSourceArguments) [memory_only]
        [("source_id", "string"), ("size_bytes", "integer")]
        "Read a source, or a byte range of it (base64 unless it is text).";
};

arguments!(EntitiesArguments {
    entity_type: Option<String>,
    /// Text in its fields
    query: Option<String>,
    include_deleted: Option<bool>,
});

arguments!(EntityArguments {
    /// Id or turn_key
    entity_id: String,
});

arguments!(SnapshotArguments {
    /// Id or turn_key
    entity_id: String,
    /// Observed by this time
    at: Option<String>,
    /// Stored by this time
    at_stored: Option<String>,
});

arguments!(ProvenanceArguments {
    /// Id or turn_key
    entity_id: String,
    field: Option<String>,
});

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub(super) enum Relation {
    PartOf,
    RefersTo,
    Embeds,
    Corrects,
    Settles,
    DuplicateOf,
    DependsOn,
    Supersedes,
}

impl Relation {
    fn name(self) -> String {
        use tine_core::facts::Relation as CoreRelation;
        let relation = match self {
            Relation::PartOf => CoreRelation::PartOf,
            Relation::RefersTo => CoreRelation::RefersTo,
            Relation::Embeds => CoreRelation::Embeds,
            Relation::Corrects => CoreRelation::Corrects,
            Relation::Settles => CoreRelation::Settles,
            Relation::DuplicateOf => CoreRelation::DuplicateOf,
            Relation::DependsOn => CoreRelation::DependsOn,
            Relation::Supersedes => CoreRelation::Supersedes,
        };
        relation.as_str().to_owned()
    }
}

arguments!(RelationshipArguments {
    r#type: Relation,
    /// ent_…, src_…, turn id or conversation:ID
    source: String,
    /// Same forms
    target: String,
    metadata: Option<Members>,
});

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum RelationDirection {
    Both,
    Outgoing,
    Incoming,
}

choices!(Relation, RelationDirection);

arguments!(RelationshipsArguments {
    /// ent_…, src_…, turn id or conversation:ID
    of: Option<String>,
    direction: Option<RelationDirection>,
    r#type: Option<String>,
});

arguments!(CorrectArguments {
    entity_id: String,
    /// Correct values; null clears a field
    fields: Members,
    observed_at: Option<String>,
});

arguments!(RunsArguments {
    source_id: Option<String>,
    open: Option<bool>,
});

arguments!(ReinterpretArguments {
    source_ids: Option<Vec<String>>,
    mime_type: Option<String>,
    since: Option<String>,
    until: Option<String>,
    /// Only sources whose last run failed
    failed: Option<bool>,
    interpreter: Option<String>,
    wait: Option<bool>,
});

arguments!(RetrieveSourceArguments {
    source_id: String,
    /// First byte
    offset: Option<u64>,
    length: Option<u64>,
});

/// Returns a page of rows as an answer.
pub(super) fn listed(name: &str, what: &str, rows: AnswerPage, more: Value) -> ToolAnswer {
    let text = match rows.items.len() {
        0 => format!("No {what}."),
        number if rows.next.is_some() => format!("{} (more available).", counted(number, what)),
        number => format!("{}.", counted(number, what)),
    };
    let mut answer = ToolAnswer::new(text, more).recorded();
    answer.data.insert(name.to_owned(), rows.items.into());
    if let Some(next) = rows.next {
        answer.data.insert("next".to_owned(), next.into());
    }
    if !rows.cut.is_empty() {
        answer.data.insert("cut".to_owned(), rows.cut.into());
    }
    answer
}

fn retrieve_entities(
    context: &ToolContext,
    arguments: EntitiesArguments,
) -> Result<ToolAnswer, McpError> {
    let query = EntityQuery {
        entity_type: arguments.entity_type,
        text: arguments.query,
        deleted: arguments.include_deleted.unwrap_or(false),
    };
    let rows = context.budget.rows(
        |page| {
            let found = context.engine.entities(&context.call, query.clone(), page)?;
            Ok((found.items, found.next))
        },
        record_json::entity,
    )?;
    Ok(listed("entities", "entities", rows, json!({})))
}

fn retrieve_entity_snapshot(
    context: &ToolContext,
    arguments: SnapshotArguments,
) -> Result<ToolAnswer, McpError> {
    let id = entity(context, &arguments.entity_id)?;
    let as_of = AsOf {
        observed: optional_time("at", arguments.at.as_deref())?,
        stored: optional_time("at_stored", arguments.at_stored.as_deref())?,
    };
    let found = context.engine.entity(&context.call, id, as_of)?;
    // Names and types are recorded text: they appear in the fields only.
    let fields = counted(found.snapshot.fields.len(), "fields");
    let observations = counted(found.snapshot.observations, "observations");
    let text = format!("{}: {fields} from {observations}.", found.id);
    let mut truncator = Truncator::new(context.budget.text_bytes());
    let mut form = record_json::entity(found, &mut truncator);
    form["cut"] = truncator.into_field();
    Ok(ToolAnswer::new(text, form).recorded())
}

fn list_observations(
    context: &ToolContext,
    arguments: EntityArguments,
) -> Result<ToolAnswer, McpError> {
    let id = entity(context, &arguments.entity_id)?;
    let rows = context.budget.rows(
        |page| {
            let found = context.engine.observations(&context.call, id, page)?;
            Ok((found.items, found.next))
        },
        record_json::observation,
    )?;
    Ok(listed("observations", "observations", rows, json!({ "entity_id": id.to_string() })))
}

fn retrieve_field_provenance(
    context: &ToolContext,
    arguments: ProvenanceArguments,
) -> Result<ToolAnswer, McpError> {
    let id = entity(context, &arguments.entity_id)?;
    let field = arguments.field;
    let rows = context.budget.rows(
        |page| {
            let all = context.engine.field_provenance(&context.call, id, field.as_deref())?;
            window(all, page.cursor.as_deref(), page.limit)
        },
        |found, truncator| {
            let whole = format!("tine://entity/{id}");
            let evidence = found.evidence.into_iter().take(EVIDENCE_SHOWN);
            let evidence: Vec<_> =
                evidence.map(|one| record_json::evidence(one, truncator)).collect();
            json!({
                "field": found.field,
                "value": truncator.value(record_json::value(&found.value), &whole),
                "evidence": evidence,
            })
        },
    )?;
    Ok(listed("fields", "fields", rows, json!({ "entity_id": id.to_string() })))
}

/// The most pieces of evidence for one value.
const EVIDENCE_SHOWN: usize = 10;

/// Returns a page of a list that is read as a whole.
fn window<T>(
    all: Vec<T>,
    cursor: Option<&str>,
    limit: Option<usize>,
) -> Result<(Vec<T>, Option<String>), McpError> {
    let from: usize = match cursor {
        None => 0,
        Some(cursor) => cursor.parse().map_err(|_| {
            McpError::invalid("unknown `cursor`").next("start again without a cursor")
        })?,
    };
    let limit = limit.unwrap_or(usize::MAX);
    let to = from.saturating_add(limit);
    let next = (all.len() > to).then(|| to.to_string());
    Ok((all.into_iter().skip(from).take(limit).collect(), next))
}

fn create_relationship(
    context: &ToolContext,
    arguments: RelationshipArguments,
) -> Result<ToolAnswer, McpError> {
    let request = NewRelationship {
        relation: arguments.r#type.name(),
        source: end(context, "source", &arguments.source.into())?,
        target: end(context, "target", &arguments.target.into())?,
        metadata: metadata(arguments.metadata),
    };
    let made = context.engine.create_relationship(&context.call, request)?;
    let outcome = record_json::outcome(made.outcome);
    let text = format!("{} {} {}: {outcome}.", made.source, made.relation, made.target);
    let mut form = record_json::relationship(made);
    form["outcome"] = outcome.into();
    Ok(ToolAnswer::new(text, form))
}

fn list_relationships(
    context: &ToolContext,
    arguments: RelationshipsArguments,
) -> Result<ToolAnswer, McpError> {
    let query = RelationshipQuery {
        end: arguments.of.map(|of| end(context, "of", &of.into())).transpose()?,
        direction: match arguments.direction {
            None | Some(RelationDirection::Both) => Direction::Both,
            Some(RelationDirection::Outgoing) => Direction::Outgoing,
            Some(RelationDirection::Incoming) => Direction::Incoming,
        },
        relation: arguments.r#type,
    };
    let rows = context.budget.rows(
        |page| {
            let found = context.engine.relationships(&context.call, query.clone(), page)?;
            Ok((found.items, found.next))
        },
        |found, _| record_json::relationship(found),
    )?;
    Ok(listed("relationships", "relationships", rows, json!({})))
}

fn correct(context: &ToolContext, arguments: CorrectArguments) -> Result<ToolAnswer, McpError> {
    let names = arguments.fields.0.keys().collect::<Vec<_>>().join(", ");
    let request = Correct {
        entity: entity(context, &arguments.entity_id)?,
        fields: arguments.fields.0,
        observed_at: optional_time("observed_at", arguments.observed_at.as_deref())?,
    };
    let made = context.engine.correct(&context.call, request)?;
    let id = made.observation.id;
    let text = format!("Corrected {names} of {}.", id.entity);
    let data = json!({ "entity_id": id.entity.to_string(), "observation_id": id.to_string() });
    Ok(ToolAnswer::new(text, data))
}

fn list_interpretations(
    context: &ToolContext,
    arguments: RunsArguments,
) -> Result<ToolAnswer, McpError> {
    let query = RunQuery {
        source: arguments.source_id.as_deref().map(source).transpose()?,
        open: arguments.open.unwrap_or(false),
    };
    let rows = context.budget.rows(
        |page| {
            let found = context.engine.interpretations(&context.call, query.clone(), page)?;
            Ok((found.items, found.next))
        },
        |run, truncator| record_json::interpretation(&run, truncator),
    )?;
    Ok(listed("interpretations", "runs", rows, json!({})))
}

/// The most runs in an answer.
const RUNS_SHOWN: usize = 20;

fn reinterpret(
    context: &ToolContext,
    arguments: ReinterpretArguments,
) -> Result<ToolAnswer, McpError> {
    let sources = arguments.source_ids.unwrap_or_default();
    let request = Reinterpret {
        sources: sources.iter().map(|id| source(id)).collect::<Result<_, _>>()?,
        mime_type: arguments.mime_type,
        since: optional_time("since", arguments.since.as_deref())?,
        until: optional_time("until", arguments.until.as_deref())?,
        failed: arguments.failed.unwrap_or(false),
        interpreter: arguments.interpreter,
        // Waits here instead, where progress can be reported.
        wait: false,
    };
    let mut runs = context.engine.reinterpret(&context.call, request)?;
    let waited = arguments.wait.unwrap_or(false);
    if waited {
        let ids: Vec<_> = runs.iter().map(|run| run.id).collect();
        runs = wait(context, &ids)?;
    }
    let found: usize = runs.iter().map(|run| run.observations.len()).sum();
    let done = counted(runs.len(), "runs");
    let text = match waited {
        true => format!("{done} done, {}.", counted(found, "observations")),
        false => format!("{done} queued; list_interpretations shows their status."),
    };
    let mut truncator = Truncator::new(500);
    let shown = runs.iter().take(RUNS_SHOWN);
    let shown: Vec<_> = shown.map(|run| record_json::interpretation(run, &mut truncator)).collect();
    let mut notes = truncator.notes;
    if runs.len() > RUNS_SHOWN {
        let left = runs.len() - RUNS_SHOWN;
        notes.push(format!("{left} more runs; list_interpretations shows them"));
    }
    let data = json!({
        "interpretations": shown,
        "runs": runs.len(),
        "cut": list_or_null(notes),
    });
    Ok(ToolAnswer::new(text, data))
}

fn retrieve_source(
    context: &ToolContext,
    arguments: RetrieveSourceArguments,
) -> Result<ToolAnswer, McpError> {
    let id = source(&arguments.source_id)?;
    let found = context.engine.source(&context.call, id)?;
    let offset = arguments.offset.unwrap_or(0);
    let most: u64 = if arguments.length.is_some() { 48_000 } else { 6_000 };
    let length = arguments.length.unwrap_or(most).min(most);
    let mut form = record_json::source(&found);
    if found.purged {
        let text = format!("Source {id} was purged; only its hash is left.");
        return Ok(ToolAnswer::new(text, form));
    }
    let mut bytes = Vec::new();
    let mut at = 0_u64;
    let mut nth = 0;
    // All pieces have the size of the first, so those before the range can be skipped.
    while let Some(piece) = context.engine.source_piece(&context.call, id, nth)? {
        let end = at + piece.len() as u64;
        if end > offset {
            let from = usize::try_from(offset.saturating_sub(at)).unwrap_or(usize::MAX);
            let wanted = usize::try_from(length).unwrap_or(usize::MAX).saturating_sub(bytes.len());
            bytes.extend(piece.into_iter().skip(from).take(wanted));
            if bytes.len() as u64 >= length {
                break;
            }
        } else if nth == 0 && !piece.is_empty() {
            let size = piece.len() as u64;
            nth = u32::try_from(offset / size).unwrap_or(u32::MAX);
            at = u64::from(nth) * size;
            continue;
        }
        at = end;
        nth += 1;
    }
    let (name, said, used) = text_or_base64(bytes);
    let behind = offset + used as u64;
    form[name] = said;
    form["offset"] = offset.into();
    if behind < found.size_bytes {
        form["next_offset"] = behind.into();
        form["cut"] = json!([format!(
            "{} of {} bytes; call again with offset {behind}, or read tine://source/{id}",
            used, found.size_bytes
        )]);
    }
    let text = format!("Source {id}: {} bytes.", found.size_bytes);
    Ok(ToolAnswer::new(text, without_nulls(form)).recorded())
}

/// Returns bytes as text if they are UTF-8, without an incomplete character at the end, otherwise
/// as base64.
fn text_or_base64(bytes: Vec<u8>) -> (&'static str, Value, usize) {
    let used = bytes.len();
    match String::from_utf8(bytes) {
        Ok(text) => ("text", text.into(), used),
        Err(error) => {
            let whole = error.utf8_error().valid_up_to();
            let torn = error.utf8_error().error_len().is_none();
            let bytes = error.into_bytes();
            if torn && whole > 0 {
                let text = String::from_utf8_lossy(&bytes[..whole]).into_owned();
                return ("text", text.into(), whole);
            }
            ("base64", STANDARD.encode(&bytes).into(), used)
        }
    }
}
