//! `tine relate`, `relations` and `unrelate`: creates, lists and removes relationships.

use clap::{Args, ValueEnum};
use tine_api::Removed;
use tine_core::Json;
use tine_engine::{Direction, NewRelationship, RelationshipQuery, RelationshipView};

use crate::command_error::Result;
use crate::input;
use crate::record_args;
use crate::session::CliSession;

const ENDPOINT_FORMS: &str = "an entity (ent_…), a source (src_…), a turn, or conversation:ID";

/// A relationship, by its type and ends.
#[derive(Debug, Args)]
struct RelationEnds {
    /// Type of the relationship
    #[arg(value_name = "TYPE")]
    relation: String,
    #[arg(help = format!("From: {ENDPOINT_FORMS}"))]
    source: String,
    #[arg(help = format!("To: {ENDPOINT_FORMS}"))]
    target: String,
}

impl RelationEnds {
    fn request(&self, session: &CliSession, metadata: Json) -> Result<NewRelationship> {
        Ok(NewRelationship {
            relation: normalize_type(&self.relation),
            source: record_args::resolve_endpoint(session, &self.source)?,
            target: record_args::resolve_endpoint(session, &self.target)?,
            metadata,
        })
    }
}

#[derive(Debug, Args)]
#[command(after_help = "\
Types are PART_OF, REFERS_TO, EMBEDS, CORRECTS, SETTLES, DUPLICATE_OF, DEPENDS_ON and SUPERSEDES. \
A relationship that exists stays as it is.

Examples:
  tine relation add DEPENDS_ON ent_0123456789abcdef0123456789abcdef main~2
  tine relation add REFERS_TO conversation:trip src_0123456789abcdef0123456789abcdef
  tine relation add SETTLES main main~1 --metadata '{\"by\":\"bank transfer\"}'")]
pub(crate) struct RelateArgs {
    #[command(flatten)]
    ends: RelationEnds,
    /// Metadata: a JSON object
    #[arg(long, value_name = "JSON")]
    metadata: Option<String>,
    /// Idempotency key: repeating the call with it changes nothing
    #[arg(long)]
    key: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Relationships that were created with a turn cannot be removed. `tine undo --project-log` undoes a \
removal.

Examples:
  tine relation remove DEPENDS_ON ent_0123456789abcdef0123456789abcdef main~2")]
pub(crate) struct UnrelateArgs {
    #[command(flatten)]
    ends: RelationEnds,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tine relation list
  tine relation list conversation:trip --type PART_OF
  tine relation list ent_0123456789abcdef0123456789abcdef --direction in")]
pub(crate) struct RelationsArgs {
    #[arg(help = format!("Only relationships of {ENDPOINT_FORMS}"))]
    thing: Option<String>,
    /// Only relationships of this type
    #[arg(long = "type", value_name = "TYPE")]
    relation: Option<String>,
    /// Only relationships from it (out) or to it (in)
    #[arg(long, value_name = "WHICH", default_value = "both", requires = "thing")]
    direction: DirectionChoice,
    /// Show at most N
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

pub(crate) fn relate(session: &CliSession, args: &RelateArgs) -> Result<()> {
    let knowledge = session.engine.knowledge();
    let metadata = match &args.metadata {
        Some(text) => input::json_argument("--metadata", text, session.limits())?,
        None => Json::Null,
    };
    let request = args.ends.request(session, metadata)?;
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

pub(crate) fn unrelate(session: &CliSession, args: &UnrelateArgs) -> Result<()> {
    let knowledge = session.engine.knowledge();
    let request = args.ends.request(session, Json::Null)?;
    knowledge.delete_relationship(&session.call, request)?;
    if session.answered_json(|| Removed { deleted: true })? {
        return Ok(());
    }
    session.screen.line("removed; `tine undo --project-log` restores it")
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
    session.list(&found, |one| line(session, one))
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
