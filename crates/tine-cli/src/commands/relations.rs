//! `tine relate`, `relations` and `unrelate`: creates, lists and removes relationships.

use clap::{Args, ValueEnum};
use tine_api::Removed;
use tine_core::Json;
use tine_engine::{Direction, NewRelationship, RelationshipQuery, RelationshipView};

use crate::command_error::Result;
use crate::input;
use crate::record_args;
use crate::session::CliSession;
use crate::terminal::Paging;

const ENDPOINT_FORMS: &str = "an entity (ent_…), a source (src_…), a turn, or conversation:ID";

#[derive(Debug, Args)]
#[command(after_help = "\
There are PART_OF, REFERS_TO, EMBEDS, CORRECTS, SETTLES, DUPLICATE_OF, DEPENDS_ON and \
SUPERSEDES, and no other. What is related already stays as it is.

Examples:
  tine relate DEPENDS_ON ent_0123456789abcdef0123456789abcdef main~2
  tine relate REFERS_TO conversation:trip src_0123456789abcdef0123456789abcdef
  tine relate SETTLES main main~1 --metadata '{\"by\":\"bank transfer\"}'")]
pub(crate) struct RelateArgs {
    /// The type of the relationship
    #[arg(value_name = "TYPE")]
    relation: String,
    #[arg(help = format!("From: {ENDPOINT_FORMS}"))]
    source: String,
    #[arg(help = format!("To: {ENDPOINT_FORMS}"))]
    target: String,
    /// What is known of it: a JSON object
    #[arg(long, value_name = "JSON")]
    metadata: Option<String>,
    /// A key that makes the call safe to repeat
    #[arg(long)]
    key: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
What Tine made along with a turn cannot be removed. `tine undo --project-log` brings back what \
was.

Examples:
  tine unrelate DEPENDS_ON ent_0123456789abcdef0123456789abcdef main~2")]
pub(crate) struct UnrelateArgs {
    /// The type of the relationship
    #[arg(value_name = "TYPE")]
    relation: String,
    #[arg(help = format!("From: {ENDPOINT_FORMS}"))]
    source: String,
    #[arg(help = format!("To: {ENDPOINT_FORMS}"))]
    target: String,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tine relations
  tine relations conversation:trip --type PART_OF
  tine relations ent_0123456789abcdef0123456789abcdef --direction in")]
pub(crate) struct RelationsArgs {
    #[arg(help = format!("Only those of {ENDPOINT_FORMS}"))]
    thing: Option<String>,
    /// Only those of a type
    #[arg(long = "type", value_name = "TYPE")]
    relation: Option<String>,
    /// Only those that lead from it, or to it
    #[arg(long, value_name = "WHICH", default_value = "both", requires = "thing")]
    direction: DirectionChoice,
    /// Only the first N
    #[arg(short = 'n', long = "number", value_name = "N")]
    number: Option<usize>,
}

/// Which way relationships lead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum DirectionChoice {
    Both,
    Out,
    In,
}

/// Converts a relationship type to its canonical spelling in capitals.
fn normalize_type(relation: &str) -> String {
    relation.to_ascii_uppercase().replace('-', "_")
}

pub(crate) fn relate(session: &CliSession, args: RelateArgs) -> Result<()> {
    let knowledge = session.engine.knowledge();
    let metadata = match &args.metadata {
        Some(text) => input::json_argument("--metadata", text, session.limits())?,
        None => Json::Null,
    };
    let request = NewRelationship {
        relation: normalize_type(&args.relation),
        source: record_args::resolve_endpoint(session, &args.source)?,
        target: record_args::resolve_endpoint(session, &args.target)?,
        metadata,
    };
    let call = session.call_with(args.key.as_deref());
    let made = knowledge.create_relationship(&call, request)?;
    if session.answered_json(|| made.clone())? {
        return Ok(());
    }
    session.screen.line(&format!(
        "{}  {}",
        line(session, &made),
        made.outcome.map_or("", tine_api::Outcome::as_str)
    ))
}

pub(crate) fn unrelate(session: &CliSession, args: UnrelateArgs) -> Result<()> {
    let knowledge = session.engine.knowledge();
    let request = NewRelationship {
        relation: normalize_type(&args.relation),
        source: record_args::resolve_endpoint(session, &args.source)?,
        target: record_args::resolve_endpoint(session, &args.target)?,
        metadata: Json::Null,
    };
    knowledge.delete_relationship(&session.call, request)?;
    if session.answered_json(|| Removed { deleted: true })? {
        return Ok(());
    }
    session.screen.line("removed; `tine undo --project-log` brings it back")
}

pub(crate) fn relations(session: &CliSession, args: &RelationsArgs) -> Result<()> {
    let knowledge = session.engine.knowledge();
    let query = RelationshipQuery {
        end: args
            .thing
            .as_deref()
            .map(|thing| record_args::resolve_endpoint(session, thing))
            .transpose()?,
        direction: match args.direction {
            DirectionChoice::Both => Direction::Both,
            DirectionChoice::Out => Direction::Outgoing,
            DirectionChoice::In => Direction::Incoming,
        },
        relation: args.relation.as_deref().map(normalize_type),
    };
    let ask = |page| knowledge.relationships(&session.call, query.clone(), page);
    let found = session.pages(args.number, ask)?;
    if session.answered_json(|| found.clone())? {
        return Ok(());
    }
    session.screen.text(Paging::Paged, |out| {
        for one in &found.items {
            writeln!(out, "{}", line(session, one))?;
        }
        Ok(())
    })
}

fn line(session: &CliSession, one: &RelationshipView) -> String {
    let paint = session.screen.paint;
    let metadata = match &one.metadata {
        Json::Null => String::new(),
        Json::Object(metadata) if metadata.is_empty() => String::new(),
        metadata => format!("  {}", metadata.to_canonical()),
    };
    format!(
        "{}  {}  {}  {}{}",
        paint.hash(&one.source.to_string()),
        paint.bold(one.relation.as_str()),
        paint.hash(&one.target.to_string()),
        paint.dim(&format!("({} → {}: {})", one.source_type, one.target_type, one.label())),
        crate::terminal::text::visible(&metadata),
    )
}
