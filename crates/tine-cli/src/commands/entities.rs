//! `tine entity`: lists, shows, corrects and merges entities, and manages schemas.

use std::io::Write;
use std::path::PathBuf;
use tine_api::Listing;

use clap::{Args, Subcommand};
use tine_core::facts::Schema;
use tine_core::json::Object;
use tine_core::{Json, Timestamp};
use tine_engine::{
    AsOf, Correct, EntityQuery, EntityView, Error, Evidence, FieldProvenance, Merge, NewSchema,
    Separate,
};

use crate::arguments::day_or_time;
use crate::command_error::{CommandError, Result};
use crate::commands::{observations, timeline};
use crate::input::{self, InputSource};
use crate::knowledge_view::{entity_line, field_rows, room, row, value, write_rows};
use crate::record_args;
use crate::session::CliSession;
use crate::terminal::text::{count, cut, visible};
use crate::terminal::{Paging, precise_time, short_time};

#[derive(Debug, Args)]
#[command(after_help = "\
An entity is named by its id, such as ent_…; the message of a turn also by CONVERSATION:TURN. The \
fields of an entity are computed from its observations, which never change.

Examples:
  tine entity list --type person
  tine entity list --text tokyo
  tine entity show ent_0123456789abcdef0123456789abcdef
  tine entity show ent_0123456789abcdef0123456789abcdef --at 2025-03-01
  tine entity provenance ent_0123456789abcdef0123456789abcdef email
  tine entity correct ent_0123456789abcdef0123456789abcdef email=ada@example.org
  tine entity merge ent_0123456789abcdef0123456789abcdef ent_fedcba9876543210fedcba9876543210
  tine entity register contract.json")]
pub(crate) struct EntityArgs {
    #[command(subcommand)]
    subcommand: EntityCommand,
}

#[derive(Debug, Subcommand)]
enum EntityCommand {
    /// List entities by type, in order of first observation
    List(EntityListArgs),
    /// Show the fields of an entity
    Show(EntityShowArgs),
    /// Show where values come from: observation, run, source and bytes
    Provenance(EntityProvenanceArgs),
    /// Correct fields; only a later correction overrides them
    Correct(EntityCorrectArgs),
    /// Merge two entities into one
    Merge(EntityMergeArgs),
    /// Move observations of an entity to another one
    Separate(EntitySeparateArgs),
    /// Hide an entity from lists
    Delete(EntityIdArgs),
    /// Show a deleted entity again
    Restore(EntityIdArgs),
    /// List the newest schema of every type
    Schemas,
    /// Show the schema of a type
    Schema(SchemaArgs),
    /// Register a schema as the next version of its type
    Register(RegisterArgs),
    /// List all observations of an entity or a turn
    Observations(observations::ObservationsArgs),
    /// List dated facts in order
    Timeline(timeline::TimelineArgs),
}

#[derive(Debug, Args)]
struct EntityListArgs {
    /// Only entities of this type
    #[arg(long = "type", value_name = "TYPE")]
    entity_type: Option<String>,
    /// Only entities whose fields contain these words
    #[arg(long, value_name = "WORDS")]
    text: Option<String>,
    /// Include deleted entities
    #[arg(long)]
    deleted: bool,
    /// Show at most N
    #[arg(short = 'n', long = "number", value_name = "N")]
    number: Option<usize>,
}

#[derive(Debug, Args)]
struct EntityShowArgs {
    /// Entity, such as ent_…
    entity: String,
    /// Use only observations made up to this day or time
    #[arg(long, value_name = "TIME", value_parser = day_or_time)]
    at: Option<Timestamp>,
    /// Use only observations stored up to this day or time
    #[arg(long, value_name = "TIME", value_parser = day_or_time)]
    at_stored: Option<Timestamp>,
}

#[derive(Debug, Args)]
struct EntityProvenanceArgs {
    /// Entity, such as ent_…
    entity: String,
    /// Only this field
    field: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tine entity correct ent_0123456789abcdef0123456789abcdef email=ada@example.org
  tine entity correct ent_0123456789abcdef0123456789abcdef --json-value amount=12.5 paid=true
  tine entity correct ent_0123456789abcdef0123456789abcdef --json-value email=null    clears it")]
struct EntityCorrectArgs {
    /// Entity, such as ent_…
    entity: String,
    /// Fields and their correct values
    #[arg(value_name = "FIELD=VALUE", required = true)]
    fields: Vec<String>,
    /// Parse values as JSON: 12.5, true, null, ["a"], "text"
    #[arg(long)]
    json_value: bool,
    /// Time of the observation, as RFC 3339 [default: now]
    #[arg(long, value_name = "TIME")]
    at: Option<Timestamp>,
    /// Idempotency key: repeating the call with it changes nothing
    #[arg(long)]
    key: Option<String>,
}

#[derive(Debug, Args)]
struct EntityMergeArgs {
    /// Entity that is merged
    from: String,
    /// Entity that remains
    into: String,
}

#[derive(Debug, Args)]
struct EntitySeparateArgs {
    /// Entity, such as ent_…
    entity: String,
    /// Observations to move: ids, or the short forms of `tine entity observations`
    #[arg(required = true)]
    observations: Vec<String>,
    /// Entity to move them to [default: a new one]
    #[arg(long, value_name = "ENTITY")]
    into: Option<String>,
}

#[derive(Debug, Args)]
struct EntityIdArgs {
    /// Entity, such as ent_…
    entity: String,
}

#[derive(Debug, Args)]
struct SchemaArgs {
    /// Entity type
    #[arg(value_name = "TYPE")]
    entity_type: String,
    /// Version to show [default: the newest]
    #[arg(long, value_name = "N")]
    version: Option<u32>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
A schema is {\"entity_type\", \"fields\": {NAME: KIND or {\"kind\", \"strategy\"}}, \"identity\": [NAME …], \
\"description\"?}. Kinds: text, name, key, number, boolean, date, url, list, any. Strategies: \
last_write, highest_priority, most_specific, merged_set. Earlier observations keep the version \
that they were made with.

Examples:
  tine entity register contract.json
  echo '{\"entity_type\":\"ship\",\"fields\":{\"name\":\"name\"},\"identity\":[\"name\"]}' | tine entity register -")]
struct RegisterArgs {
    /// File with the schema; `-` reads standard input
    file: PathBuf,
}

pub(crate) fn entity(session: &CliSession, args: EntityArgs) -> Result<()> {
    match args.subcommand {
        EntityCommand::List(args) => list(session, args),
        EntityCommand::Show(args) => show(session, &args),
        EntityCommand::Provenance(args) => provenance(session, &args),
        EntityCommand::Correct(args) => correct(session, &args),
        EntityCommand::Merge(args) => merge(session, &args),
        EntityCommand::Separate(args) => separate(session, &args),
        EntityCommand::Delete(args) => set_deleted(session, &args, true),
        EntityCommand::Restore(args) => set_deleted(session, &args, false),
        EntityCommand::Schemas => schemas(session),
        EntityCommand::Schema(args) => schema(session, &args),
        EntityCommand::Register(args) => register(session, &args),
        EntityCommand::Observations(args) => observations::observations(session, &args),
        EntityCommand::Timeline(args) => timeline::timeline(session, &args),
    }
}

fn list(session: &CliSession, args: EntityListArgs) -> Result<()> {
    let knowledge = session.engine.knowledge();
    let EntityListArgs { entity_type, text, deleted, number } = args;
    let query = EntityQuery { entity_type, text, deleted };
    let ask = |page| knowledge.entities(&session.call, query.clone(), page);
    let found = session.pages(number, ask)?;
    session.list(&found, |one| entity_line(&session.screen, one))
}

fn show(session: &CliSession, args: &EntityShowArgs) -> Result<()> {
    let knowledge = session.engine.knowledge();
    let id = record_args::resolve_entity(session, &args.entity)?;
    let as_of = AsOf { observed: args.at, stored: args.at_stored };
    let found = knowledge.entity(&session.call, id, as_of)?;
    report(session, &found)
}

/// Writes an entity with its fields.
fn report(session: &CliSession, it: &EntityView) -> Result<()> {
    if session.answered_json(|| it.clone())? {
        return Ok(());
    }
    session.screen.text(Paging::Paged, |out| {
        writeln!(out, "{}", entity_line(&session.screen, it))?;
        let mut facts = vec![
            count(it.snapshot.observations as u64, "observation"),
            format!("first seen {}", short_time(it.first_seen)),
        ];
        if let Some(last) = it.snapshot.last_observed_at {
            facts.push(format!("last observed {}", short_time(last)));
        }
        facts.push(match it.snapshot.schema_version {
            0 => "no schema".to_owned(),
            version => format!("schema {version}"),
        });
        if let Some(from) = it.merged_from {
            facts.push(format!("merged from {from}"));
        }
        writeln!(out, "{}", session.screen.paint.dim(&facts.join(" · ")))?;
        let mut rows = field_rows(&session.screen, &it.snapshot.fields);
        for (name, value) in &mut rows {
            if it.undeclared.contains(name) {
                value.push_str("  (not in the schema)");
            }
        }
        write_rows(out, &session.screen, 2, &rows)
    })
}

fn provenance(session: &CliSession, args: &EntityProvenanceArgs) -> Result<()> {
    let knowledge = session.engine.knowledge();
    let id = record_args::resolve_entity(session, &args.entity)?;
    let found = knowledge.field_provenance(&session.call, id, args.field.as_deref())?;
    let items = || found.to_vec();
    if session.answered_json(|| Listing::<FieldProvenance>::all(items()))? {
        return Ok(());
    }
    let about = knowledge.entity(&session.call, id, AsOf::default())?;
    session.screen.text(Paging::Paged, |out| {
        writeln!(out, "{}", entity_line(&session.screen, &about))?;
        for field in &found {
            write_provenance(out, session, field)?;
        }
        Ok(())
    })
}

/// Writes a value and its provenance, one line per step.
fn write_provenance(out: &mut dyn Write, session: &CliSession, it: &FieldProvenance) -> Result<()> {
    let screen = &session.screen;
    let value = value(&it.value, room(screen, it.field.len() + 3));
    writeln!(out, "\n{} = {value}", screen.paint.bold(&visible(&it.field)))?;
    for evidence in &it.evidence {
        write_evidence(out, session, evidence)?;
    }
    Ok(())
}

fn write_evidence(out: &mut dyn Write, session: &CliSession, it: &Evidence) -> Result<()> {
    let (screen, one) = (&session.screen, &it.observation.observation);
    let how = if one.correction { ", a correction" } else { "" };
    let at = precise_time(one.observed_at);
    writeln!(out, "  ← observation {}  {}{how}, observed {at}", one.id, one.origin.as_str())?;
    if let Some(run) = &it.interpretation {
        let detail = |name: &str| run.detail.get(name).and_then(Json::as_str).unwrap_or_default();
        let version = [detail("kind"), detail("version"), detail("model")]
            .into_iter()
            .filter(|text| !text.is_empty())
            .collect::<Vec<_>>()
            .join(" ");
        let name = visible(&run.interpreter);
        let status = run.status.as_str();
        writeln!(out, "  ← run {}  {name} ({}), {status}", run.id, visible(&version))?;
    }
    if let Some(source) = &it.source {
        let sha = source.content_hash.to_hex();
        let size = count(source.size_bytes, "byte");
        let mime = visible(&source.mime_type);
        writeln!(out, "  ← source {}  {mime}, {size}, sha256 {}", source.id, &sha[..12])?;
    }
    if let Some(turn) = it.turn {
        writeln!(out, "  ← turn {turn}")?;
    }
    match (&one.span, &it.observation.quote) {
        (Some(span), Some(quote)) => {
            let (start, end) = (span.start, span.end);
            let quote = cut(quote, room(screen, 30));
            writeln!(out, "    bytes {start}–{end}: “{quote}”")?;
        }
        (Some(span), None) => writeln!(out, "    bytes {}–{}", span.start, span.end)?,
        (None, _) => {}
    }
    Ok(())
}

fn correct(session: &CliSession, args: &EntityCorrectArgs) -> Result<()> {
    let knowledge = session.engine.knowledge();
    let mut fields = Object::new();
    for given in &args.fields {
        let Some((name, value)) = given.split_once('=') else {
            let why = format!("`{given}` is no FIELD=VALUE");
            return Err(CommandError::invalid(why));
        };
        let value = match args.json_value {
            true => input::json_argument(name, value, session.limits())?,
            false => value.into(),
        };
        if fields.insert(name, value).is_some() {
            return Err(CommandError::invalid(format!("`{name}` is given twice")));
        }
    }
    let entity = record_args::resolve_entity(session, &args.entity)?;
    let call = session.call_with(args.key.as_deref());
    let request = Correct { entity, fields, observed_at: args.at };
    let made = knowledge.correct(&call, request)?;
    if session.answered_json(|| made.clone())? {
        return Ok(());
    }
    session.screen.text(Paging::Direct, |out| {
        let rows = [row("entity", entity), row("observation", made.observation.id)];
        write_rows(out, &session.screen, 0, &rows)?;
        write_rows(out, &session.screen, 2, &field_rows(&session.screen, &made.observation.fields))
    })
}

fn merge(session: &CliSession, args: &EntityMergeArgs) -> Result<()> {
    let knowledge = session.engine.knowledge();
    let from = record_args::resolve_entity(session, &args.from)?;
    let into = record_args::resolve_entity(session, &args.into)?;
    let done = knowledge.merge_entities(&session.call, Merge { from, into })?;
    report(session, &done)
}

fn separate(session: &CliSession, args: &EntitySeparateArgs) -> Result<()> {
    let knowledge = session.engine.knowledge();
    let entity = record_args::resolve_entity(session, &args.entity)?;
    let ids = args.observations.iter().map(|id| record_args::parse_observation(entity, id));
    let request = Separate {
        entity,
        observations: ids.collect::<Result<_>>()?,
        into: args
            .into
            .as_deref()
            .map(|into| record_args::resolve_entity(session, into))
            .transpose()?,
    };
    let done = knowledge.separate_entity(&session.call, request)?;
    report(session, &done)
}

fn set_deleted(session: &CliSession, args: &EntityIdArgs, deleted: bool) -> Result<()> {
    let knowledge = session.engine.knowledge();
    let id = record_args::resolve_entity(session, &args.entity)?;
    let done = knowledge.set_entity_deleted(&session.call, id, deleted)?;
    if session.answered_json(|| done.clone())? {
        return Ok(());
    }
    session.screen.line(&entity_line(&session.screen, &done))
}

fn schemas(session: &CliSession) -> Result<()> {
    let found = session.engine.knowledge().schemas(&session.call)?;
    session.list(&Listing::all(found), |one| {
        let names: Vec<&str> = one.fields.keys().map(String::as_str).collect();
        let line = format!("{:<16}  {:>3}  {}", one.entity_type, one.version, names.join(" "));
        cut(&line, room(&session.screen, 0))
    })
}

fn schema(session: &CliSession, args: &SchemaArgs) -> Result<()> {
    let knowledge = session.engine.knowledge();
    let found = knowledge.schema(&session.call, &args.entity_type, args.version)?;
    report_schema(session, &found)
}

fn register(session: &CliSession, args: &RegisterArgs) -> Result<()> {
    let knowledge = session.engine.knowledge();
    let json = input::read_json(&InputSource::from_path(&args.file), session.limits())?;
    let schema = Schema::from_json(&json).map_err(Error::from)?;
    let made = knowledge.register_schema(&session.call, NewSchema { schema })?;
    report_schema(session, &made)
}

fn report_schema(session: &CliSession, it: &Schema) -> Result<()> {
    if session.answered_json(|| it.clone())? {
        return Ok(());
    }
    session.screen.text(Paging::Paged, |out| {
        let name = session.screen.paint.bold(&it.entity_type);
        writeln!(out, "{name}, version {}", it.version)?;
        if let Some(what) = &it.description {
            writeln!(out, "{}", visible(what))?;
        }
        let rows: Vec<_> = it
            .fields
            .iter()
            .map(|(name, field)| {
                let place = it.identity.iter().position(|it| it == name);
                let mark = if place.is_some() { ", identity" } else { "" };
                let (kind, strategy) = (field.kind.as_str(), field.strategy.as_str());
                row(name, format!("{kind}, {strategy}{mark}"))
            })
            .collect();
        write_rows(out, &session.screen, 2, &rows)
    })
}
