//! Tools about what was learned: entities, where their fields come from, how they hang together,
//! and the runs that found them.

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
use super::{Effect, Spec, ToolContext, typed};
use crate::answer::{Answer, Cuts, Rows, count, lean, list_or_null};
use crate::arguments::{end, entity, source, times};
use crate::forms;
use crate::refusal::Refusal;
use crate::schema;
use crate::typed::{Members, arguments, choices};

pub(super) const TOOLS: &[Spec] = &[
    Spec {
        name: "retrieve_entities",
        about: "Find what is known: people, tasks, decisions, messages … by type or words.",
        effect: Effect::Reads,
        core: true,
        memory: Some(true),
        paged: true,
        input: schema::of::<EntitiesArguments>,
        output: &[("entities", "array")],
        run: typed!(EntitiesArguments, retrieve_entities),
    },
    Spec {
        name: "retrieve_entity_snapshot",
        about: "What holds of one entity, now or as of a time.",
        effect: Effect::Reads,
        core: true,
        memory: Some(true),
        paged: false,
        input: schema::of::<SnapshotArguments>,
        output: &[("entity_id", "string"), ("fields", "object")],
        run: typed!(SnapshotArguments, retrieve_entity_snapshot),
    },
    Spec {
        name: "list_observations",
        about: "Everything ever observed of an entity, oldest first: all versions of a message, \
                on every branch.",
        effect: Effect::Reads,
        core: true,
        memory: None,
        paged: true,
        input: schema::of::<EntityArguments>,
        output: &[("entity_id", "string"), ("observations", "array")],
        run: typed!(EntityArguments, list_observations),
    },
    Spec {
        name: "retrieve_field_provenance",
        about: "For each field of an entity: the observation, run, source and words it comes from.",
        effect: Effect::Reads,
        core: false,
        memory: Some(true),
        paged: true,
        input: schema::of::<ProvenanceArguments>,
        output: &[("entity_id", "string"), ("fields", "array")],
        run: typed!(ProvenanceArguments, retrieve_field_provenance),
    },
    Spec {
        name: "create_relationship",
        about: "Relate two things.",
        effect: Effect::Settles,
        core: false,
        memory: Some(true),
        paged: false,
        input: schema::of::<RelationshipArguments>,
        output: &[("outcome", "string"), ("type", "string")],
        run: typed!(RelationshipArguments, create_relationship),
    },
    Spec {
        name: "list_relationships",
        about: "Relationships of one thing, or all.",
        effect: Effect::Reads,
        core: false,
        memory: Some(true),
        paged: true,
        input: schema::of::<RelationshipsArguments>,
        output: &[("relationships", "array")],
        run: typed!(RelationshipsArguments, list_relationships),
    },
    Spec {
        name: "correct",
        about: "Say what is right of an entity, when the user has said so. Outranks everything \
                but a later correction. A message is not corrected but edited (edit_turn).",
        effect: Effect::Adds,
        core: false,
        memory: Some(true),
        paged: false,
        input: schema::of::<CorrectArguments>,
        output: &[("entity_id", "string"), ("observation_id", "string")],
        run: typed!(CorrectArguments, correct),
    },
    Spec {
        name: "list_interpretations",
        about: "Runs of interpreters over a source, or all; with open, those that wait or work.",
        effect: Effect::Reads,
        core: false,
        memory: Some(true),
        paged: true,
        input: schema::of::<RunsArguments>,
        output: &[("interpretations", "array")],
        run: typed!(RunsArguments, list_interpretations),
    },
    Spec {
        name: "reinterpret",
        about: "Read sources again. Old runs stay; two runs can be compared by their observations.",
        effect: Effect::Adds,
        core: false,
        memory: Some(true),
        paged: false,
        input: schema::of::<ReinterpretArguments>,
        output: &[("interpretations", "array")],
        run: typed!(ReinterpretArguments, reinterpret),
    },
    Spec {
        name: "retrieve_source",
        about: "A source and a stretch of its text (base64 where it is none).",
        effect: Effect::Reads,
        core: false,
        memory: Some(true),
        paged: false,
        input: schema::of::<SourceArguments>,
        output: &[("source_id", "string"), ("size_bytes", "integer")],
        run: typed!(SourceArguments, retrieve_source),
    },
];

arguments!(EntitiesArguments {
    entity_type: Option<String>,
    /// Words in its fields
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
    /// As observed by this time
    at: Option<String>,
    /// As stored by this time
    at_stored: Option<String>,
});

arguments!(ProvenanceArguments {
    /// Id or turn_key
    entity_id: String,
    field: Option<String>,
});

/// The types of relationship there are.
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
    /// The same
    target: String,
    metadata: Option<Members>,
});

/// Which way.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum Way {
    Both,
    Outgoing,
    Incoming,
}

choices!(Relation, Way);

arguments!(RelationshipsArguments {
    /// ent_…, src_…, turn id or conversation:ID
    of: Option<String>,
    direction: Option<Way>,
    r#type: Option<String>,
});

arguments!(CorrectArguments {
    entity_id: String,
    /// As they should be; null clears one
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
    /// Those whose last run failed
    failed: Option<bool>,
    interpreter: Option<String>,
    wait: Option<bool>,
});

arguments!(SourceArguments {
    source_id: String,
    /// First byte
    offset: Option<u64>,
    length: Option<u64>,
});

/// A listing as an answer.
pub(super) fn listed(name: &str, what: &str, rows: Rows, more: Value) -> Answer {
    let text = match rows.items.len() {
        0 => format!("No {what}."),
        number if rows.next.is_some() => format!("{}; there are more.", count(number, what)),
        number => format!("{}.", count(number, what)),
    };
    let mut answer = Answer::new(text, more).recorded();
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
) -> Result<Answer, Refusal> {
    let query = EntityQuery {
        entity_type: arguments.entity_type,
        text: arguments.query,
        deleted: arguments.include_deleted.unwrap_or(false),
    };
    let rows = context.room.rows(
        |page| {
            let found = context.engine.entities(&context.call, query.clone(), page)?;
            Ok((found.items, found.next))
        },
        forms::entity,
    )?;
    Ok(listed("entities", "entities", rows, json!({})))
}

fn retrieve_entity_snapshot(
    context: &ToolContext,
    arguments: SnapshotArguments,
) -> Result<Answer, Refusal> {
    let id = entity(context, &arguments.entity_id)?;
    let as_of = AsOf {
        observed: times("at", arguments.at.as_deref())?,
        stored: times("at_stored", arguments.at_stored.as_deref())?,
    };
    let found = context.engine.entity(&context.call, id, as_of)?;
    // Names and types are words of whoever recorded them: they stand in the fields alone.
    let fields = count(found.snapshot.fields.len(), "fields");
    let observations = count(found.snapshot.observations, "observations");
    let text = format!("{}: {fields} from {observations}.", found.id);
    let mut cuts = Cuts::new(context.room.text_bytes());
    let mut form = forms::entity(found, &mut cuts);
    form["cut"] = cuts.into_field();
    Ok(Answer::new(text, form).recorded())
}

fn list_observations(context: &ToolContext, arguments: EntityArguments) -> Result<Answer, Refusal> {
    let id = entity(context, &arguments.entity_id)?;
    let rows = context.room.rows(
        |page| {
            let found = context.engine.observations(&context.call, id, page)?;
            Ok((found.items, found.next))
        },
        forms::observation,
    )?;
    Ok(listed("observations", "observations", rows, json!({ "entity_id": id.to_string() })))
}

fn retrieve_field_provenance(
    context: &ToolContext,
    arguments: ProvenanceArguments,
) -> Result<Answer, Refusal> {
    let id = entity(context, &arguments.entity_id)?;
    let field = arguments.field;
    let rows = context.room.rows(
        |page| {
            let all = context.engine.field_provenance(&context.call, id, field.as_deref())?;
            window(all, page.cursor.as_deref(), page.limit)
        },
        |found, cuts| {
            let whole = format!("tine://entity/{id}");
            let evidence = found.evidence.into_iter().take(EVIDENCE_SHOWN);
            let evidence: Vec<_> = evidence.map(|one| forms::evidence(one, cuts)).collect();
            json!({
                "field": found.field,
                "value": cuts.value(forms::value(&found.value), &whole),
                "evidence": evidence,
            })
        },
    )?;
    Ok(listed("fields", "fields", rows, json!({ "entity_id": id.to_string() })))
}

/// Pieces of evidence for one value that are shown.
const EVIDENCE_SHOWN: usize = 10;

/// A page of something that is read as a whole.
fn window<T>(
    all: Vec<T>,
    cursor: Option<&str>,
    limit: Option<usize>,
) -> Result<(Vec<T>, Option<String>), Refusal> {
    let from: usize = match cursor {
        None => 0,
        Some(cursor) => cursor.parse().map_err(|_| {
            Refusal::invalid("this cursor is none of this tool's").next("begin without a cursor")
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
) -> Result<Answer, Refusal> {
    let request = NewRelationship {
        relation: arguments.r#type.name(),
        source: end(context, "source", &arguments.source.into())?,
        target: end(context, "target", &arguments.target.into())?,
        metadata: metadata(arguments.metadata),
    };
    let made = context.engine.create_relationship(&context.call, request)?;
    let outcome = forms::outcome(made.outcome);
    let text = format!("{} {} {}: {outcome}.", made.source, made.relation, made.target);
    let mut form = forms::relationship(made);
    form["outcome"] = outcome.into();
    Ok(Answer::new(text, form))
}

fn list_relationships(
    context: &ToolContext,
    arguments: RelationshipsArguments,
) -> Result<Answer, Refusal> {
    let query = RelationshipQuery {
        end: arguments.of.map(|of| end(context, "of", &of.into())).transpose()?,
        direction: match arguments.direction {
            None | Some(Way::Both) => Direction::Both,
            Some(Way::Outgoing) => Direction::Outgoing,
            Some(Way::Incoming) => Direction::Incoming,
        },
        relation: arguments.r#type,
    };
    let rows = context.room.rows(
        |page| {
            let found = context.engine.relationships(&context.call, query.clone(), page)?;
            Ok((found.items, found.next))
        },
        |found, _| forms::relationship(found),
    )?;
    Ok(listed("relationships", "relationships", rows, json!({})))
}

fn correct(context: &ToolContext, arguments: CorrectArguments) -> Result<Answer, Refusal> {
    let names = arguments.fields.0.keys().collect::<Vec<_>>().join(", ");
    let request = Correct {
        entity: entity(context, &arguments.entity_id)?,
        fields: arguments.fields.0,
        observed_at: times("observed_at", arguments.observed_at.as_deref())?,
    };
    let made = context.engine.correct(&context.call, request)?;
    let id = made.observation.id;
    let text = format!("Corrected {names} of {}.", id.entity);
    let data = json!({ "entity_id": id.entity.to_string(), "observation_id": id.to_string() });
    Ok(Answer::new(text, data))
}

fn list_interpretations(
    context: &ToolContext,
    arguments: RunsArguments,
) -> Result<Answer, Refusal> {
    let query = RunQuery {
        source: arguments.source_id.as_deref().map(source).transpose()?,
        open: arguments.open.unwrap_or(false),
    };
    let rows = context.room.rows(
        |page| {
            let found = context.engine.interpretations(&context.call, query.clone(), page)?;
            Ok((found.items, found.next))
        },
        |run, cuts| forms::interpretation(&run, cuts),
    )?;
    Ok(listed("interpretations", "runs", rows, json!({})))
}

/// Runs whose whole account is in the answer of the call that made them.
const RUNS_SHOWN: usize = 20;

fn reinterpret(context: &ToolContext, arguments: ReinterpretArguments) -> Result<Answer, Refusal> {
    let sources = arguments.source_ids.unwrap_or_default();
    let request = Reinterpret {
        sources: sources.iter().map(|id| source(id)).collect::<Result<_, _>>()?,
        mime_type: arguments.mime_type,
        since: times("since", arguments.since.as_deref())?,
        until: times("until", arguments.until.as_deref())?,
        failed: arguments.failed.unwrap_or(false),
        interpreter: arguments.interpreter,
        // Waiting is done here, where it can be told how far it is.
        wait: false,
    };
    let mut runs = context.engine.reinterpret(&context.call, request)?;
    let waited = arguments.wait.unwrap_or(false);
    if waited {
        let ids: Vec<_> = runs.iter().map(|run| run.id).collect();
        runs = wait(context, &ids)?;
    }
    let found: usize = runs.iter().map(|run| run.observations.len()).sum();
    let done = count(runs.len(), "runs");
    let text = match waited {
        true => format!("{done} done, {}.", count(found, "observations")),
        false => format!("{done} queued; list_interpretations tells how they go."),
    };
    let mut cuts = Cuts::new(500);
    let shown = runs.iter().take(RUNS_SHOWN);
    let shown: Vec<_> = shown.map(|run| forms::interpretation(run, &mut cuts)).collect();
    let mut told = cuts.told;
    if runs.len() > RUNS_SHOWN {
        let left = runs.len() - RUNS_SHOWN;
        told.push(format!("{left} more runs: list_interpretations shows them"));
    }
    let data = json!({
        "interpretations": shown,
        "runs": runs.len(),
        "cut": list_or_null(told),
    });
    Ok(Answer::new(text, data))
}

fn retrieve_source(context: &ToolContext, arguments: SourceArguments) -> Result<Answer, Refusal> {
    let id = source(&arguments.source_id)?;
    let found = context.engine.source(&context.call, id)?;
    let offset = arguments.offset.unwrap_or(0);
    let most: u64 = if arguments.length.is_some() { 48_000 } else { 6_000 };
    let length = arguments.length.unwrap_or(most).min(most);
    let mut form = forms::source(&found);
    if found.purged {
        let text = format!("Source {id} was erased; its hash is left.");
        return Ok(Answer::new(text, form));
    }
    let mut bytes = Vec::new();
    let mut at = 0_u64;
    let mut nth = 0;
    // Pieces have one size; those before the stretch are passed over by reading the first.
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
    let (name, said, used) = stretch(bytes);
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
    Ok(Answer::new(text, lean(form)).recorded())
}

/// Bytes as text, if they are one: without a character that is torn at the end.
fn stretch(bytes: Vec<u8>) -> (&'static str, Value, usize) {
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
