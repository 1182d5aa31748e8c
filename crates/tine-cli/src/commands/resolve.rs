//! `tine resolve`: lists and resolves merge conflicts.

use clap::{Arg, ArgAction, ArgMatches, Args, FromArgMatches, value_parser};
use tine_api::Listing;
use tine_core::EntityId;
use tine_engine::{CommitView, Decision, FieldConflict, ResolveConflicts, Take};

use super::commits;
use crate::command_error::{CommandError, Result};
use crate::commit_view::{write_conflicts, write_resolve_hints};
use crate::input;
use crate::record_args;
use crate::session::{self, CliSession};
use crate::terminal::Paging;
use crate::terminal::text::{count, visible};

/// Resolutions in the order of the arguments: a field and its value.
#[derive(Clone, Debug, Default)]
struct Decisions(Vec<(String, Take)>);

const FIELD: &str = "field";
const SIDE: &str = "side";
const VALUE: &str = "value";
const NOTHING: &str = "nothing";

impl Args for Decisions {
    fn augment_args(command: clap::Command) -> clap::Command {
        let repeated = |name: &'static str, what: &'static str, help: &'static str| {
            Arg::new(name).long(name).value_name(what).action(ArgAction::Append).help(help)
        };
        command
            .arg(
                Arg::new(FIELD)
                    .value_name("ENTITY.FIELD")
                    .action(ArgAction::Append)
                    .help("Field to resolve; without it, conflicts are listed"),
            )
            .arg(
                repeated(SIDE, "N", "Use the value of this side, counted from 1")
                    .value_parser(value_parser!(usize)),
            )
            .arg(repeated(VALUE, "JSON", "Use this value").allow_hyphen_values(true))
            .arg(
                Arg::new(NOTHING)
                    .long(NOTHING)
                    .num_args(0)
                    .default_missing_value("true")
                    .action(ArgAction::Append)
                    .help("Clear the field"),
            )
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Decisions {
    fn from_arg_matches(matches: &ArgMatches) -> std::result::Result<Self, clap::Error> {
        fn all<T: Clone + Send + Sync + 'static>(
            matches: &ArgMatches,
            name: &str,
        ) -> Vec<(usize, T)> {
            let places = matches.indices_of(name).into_iter().flatten();
            places.zip(matches.get_many::<T>(name).into_iter().flatten().cloned()).collect()
        }
        let refused = |why: String| clap::Error::raw(clap::error::ErrorKind::ValueValidation, why);
        let mut takes: Vec<(usize, Take)> = Vec::new();
        takes.extend(all::<usize>(matches, SIDE).into_iter().map(|(at, it)| (at, Take::Side(it))));
        for (at, text) in all::<String>(matches, VALUE) {
            let value = input::json_argument("--value", &text, &session::limits());
            takes.push((at, Take::Value(value.map_err(|why| refused(format!("{why}\n")))?)));
        }
        takes
            .extend(all::<String>(matches, NOTHING).into_iter().map(|(at, _)| (at, Take::Nothing)));
        let mut fields = all::<String>(matches, FIELD);
        fields.sort_by_key(|(at, _)| *at);
        let mut decisions = Vec::new();
        for (place, (at, field)) in fields.iter().enumerate() {
            let next = fields.get(place + 1).map_or(usize::MAX, |(next, _)| *next);
            let mut own = takes.iter().filter(|(it, _)| at < it && *it < next);
            match (own.next(), own.next()) {
                (Some((_, take)), None) => decisions.push((field.clone(), take.clone())),
                (None, _) => {
                    let why = "pass --side N, --value JSON or --nothing after it";
                    return Err(refused(format!("{field}: {why}\n")));
                }
                (Some(_), Some(_)) => {
                    return Err(refused(format!(
                        "{field}: only one of --side, --value and --nothing\n"
                    )));
                }
            }
        }
        if takes.len() != decisions.len() {
            return Err(refused("name the field before --side, --value or --nothing\n".to_owned()));
        }
        Ok(Decisions(decisions))
    }

    fn update_from_arg_matches(
        &mut self,
        matches: &ArgMatches,
    ) -> std::result::Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

#[derive(Debug, Args)]
#[command(
    override_usage = "tine commit resolve [OPTIONS]\n       \
        tine commit resolve ENTITY.FIELD (--side N | --value JSON | --nothing)… [OPTIONS]",
    after_help = "\
All decisions of one call are one commit. `tine merge` and `tine commit resolve` list conflicts with \
their sides.

Examples:
  tine commit resolve
  tine commit resolve ent_0123456789abcdef0123456789abcdef.city --side 2
  tine commit resolve ent_0123456789abcdef0123456789abcdef.budget --value 3000 \\
               ent_0123456789abcdef0123456789abcdef.hotel --nothing"
)]
pub(crate) struct ResolveArgs {
    #[command(flatten)]
    decisions: Decisions,
    /// Branch to use [default: main]
    #[arg(short, long)]
    branch: Option<String>,
    /// Message of the commit
    #[arg(short, long, visible_alias = "msg", value_name = "TEXT")]
    message: Option<String>,
    /// Author of the commit [default: the actor]
    #[arg(long, value_name = "NAME")]
    author: Option<String>,
    /// Idempotency key: repeating the call with it changes nothing
    #[arg(long)]
    key: Option<String>,
}

pub(crate) fn resolve(session: &CliSession, args: ResolveArgs) -> Result<()> {
    let branch = args.branch.or_else(|| session.other_branch());
    if args.decisions.0.is_empty() {
        return list(session, branch.as_deref().unwrap_or(session.branch()));
    }
    let decisions = args.decisions.0.into_iter().map(|(field, take)| {
        let (entity, field) = entity_field(&field)?;
        Ok(Decision { entity, field, take })
    });
    let request = ResolveConflicts {
        conversation: session.conversation()?,
        branch,
        decisions: decisions.collect::<Result<_>>()?,
        message: args.message,
        author: args.author,
    };
    let call = session.call_with(args.key.as_deref());
    let made = session.engine.versioning().resolve_conflicts(&call, request)?;
    if session.answered_json(|| made.clone())? {
        return Ok(());
    }
    commits::report(session, &made)
}

fn entity_field(text: &str) -> Result<(EntityId, String)> {
    match text.split_once('.') {
        Some((entity, field)) if !field.is_empty() => {
            Ok((record_args::parse_id(entity)?, field.to_owned()))
        }
        _ => {
            let why = format!("expected a field such as ent_….city, got `{text}`");
            Err(CommandError::invalid(why))
        }
    }
}

/// Lists the conflicts in the last commit of a branch.
fn list(session: &CliSession, branch: &str) -> Result<()> {
    let found = commits::listed(session, Some(branch.to_owned()), Some(1))?;
    let last: Option<&CommitView> = found.items.first();
    let facets = last.and_then(|it| it.commit.facets.as_ref());
    let conflicts = facets.map(|facets| FieldConflict::all_of(&facets.state)).unwrap_or_default();
    let views = || conflicts.to_vec();
    if session.answered_json(|| Listing::<FieldConflict>::all(views()))? {
        return Ok(());
    }
    session.screen.text(Paging::Paged, |out| {
        if conflicts.is_empty() {
            return Ok(writeln!(out, "there are no conflicts on {}", visible(branch))?);
        }
        let number = count(conflicts.len() as u64, "field");
        writeln!(out, "{number} to resolve on {}", visible(branch))?;
        write_conflicts(out, &session.screen, &conflicts)?;
        write_resolve_hints(out, &conflicts, branch)
    })
}
