//! `tine merge`, `resolve` and `inject`: bringing to a branch what was learned or said elsewhere.

use std::io::Write;

use clap::{Arg, ArgAction, ArgMatches, Args, FromArgMatches, value_parser};
use tine_core::commit::Held;
use tine_core::{EntityId, Reference};
use tine_engine::{
    CommitView, Decision, FieldChange, Inject, MergeBranches, Merged, ResolveConflicts, Summary,
    Take,
};
use tine_formats::view;

use super::branches::ends_on;
use super::commits;
use crate::arguments::reference;
use crate::commits::{conflicts_of, write_changes, write_conflicts, write_ways_out};
use crate::editor;
use crate::failure::{Failure, Result};
use crate::input;
use crate::session::Session;
use crate::terminal::Paging;
use crate::terminal::text::{count, cut, visible};
use crate::things;
use crate::transcript::one_line;

#[derive(Debug, Args)]
#[command(after_help = "\
A merge is a commit with two parents on the branch that it goes to. No turn is moved or copied: \
what the other side knows comes over field by field, and what both sides changed differently is \
kept as a conflict until `tine resolve` decides it.

Examples:
  tine merge osaka --dry-run        what would come of it
  tine merge osaka
  tine merge osaka --summary        and say in a turn what was learned there
  tine merge osaka --edit           the same, in your own words
  tine merge osaka --into plan -m 'Take Osaka in'")]
pub(crate) struct MergeArgs {
    /// The other side: a branch, or a commit
    from: String,
    /// The branch that it goes to [default: main]
    #[arg(long, value_name = "BRANCH")]
    into: Option<String>,
    /// What it is about
    #[arg(short, long, visible_alias = "msg", value_name = "TEXT")]
    message: Option<String>,
    /// Who made it [default: whoever calls]
    #[arg(long, value_name = "NAME")]
    author: Option<String>,
    /// Add a turn about the other side: in these words, or in words made from what it knows
    #[arg(long, value_name = "TEXT", num_args = 0..=1, default_missing_value = "")]
    summary: Option<String>,
    /// Write that turn in an editor (VISUAL or EDITOR)
    #[arg(long, conflicts_with_all = ["summary", "dry_run"])]
    edit: bool,
    /// Only say what would come of it
    #[arg(long)]
    dry_run: bool,
    /// A key that makes the call safe to repeat
    #[arg(long)]
    key: Option<String>,
}

pub(crate) fn merge(session: &Session, args: MergeArgs) -> Result<()> {
    let into = args.into.or_else(|| session.other_branch());
    let mut request = MergeBranches {
        conversation: session.conversation()?,
        from: args.from,
        into,
        message: args.message,
        author: args.author,
        summary: match args.summary {
            None => Summary::None,
            Some(none) if none.is_empty() => Summary::Made,
            Some(words) => Summary::Text(words),
        },
        dry_run: args.dry_run,
    };
    let versions = session.engine.versioning();
    if args.edit {
        request.summary = edited(session, &request)?;
    }
    let target = request.into.clone().unwrap_or_else(|| session.branch().to_owned());
    let done = versions.merge(&session.call_with(args.key.as_deref()), request)?;
    if session.answered_json(|| view::Merged::from(done.clone()))? {
        return Ok(());
    }
    session.screen.text(Paging::Direct, |out| write_merged(out, session, &done, &target))
}

/// What the user makes of the words that a merge would say.
fn edited(session: &Session, request: &MergeBranches) -> Result<Summary> {
    let rehearsal = MergeBranches { dry_run: true, ..request.clone() };
    let lines = session.engine.versioning().merge(&session.call, rehearsal)?.summary;
    let mut text = format!("From the branch {}:\n", request.from);
    for line in &lines {
        let turn = line.turn.map(|turn| format!(" [{}]", turn.short())).unwrap_or_default();
        text.push_str(&format!("- {}{turn}\n", line.text));
    }
    let words = editor::edited(&text)?;
    match words.trim() {
        "" => Err(Failure::invalid("the text is empty; nothing was merged")),
        words => Ok(Summary::Text(words.to_owned())),
    }
}

fn write_merged(out: &mut dyn Write, session: &Session, done: &Merged, target: &str) -> Result<()> {
    let (screen, paint) = (&session.screen, session.screen.paint);
    let label = paint.branch(&format!("[{}]", visible(target)));
    if done.up_to_date {
        return Ok(writeln!(out, "{label} has all of it already")?);
    }
    match &done.commit {
        Some(it) => {
            let hash = paint.hash(&it.hash.short());
            writeln!(out, "{label} {hash}  {}", cut(&it.commit.message, 72))?;
        }
        None => writeln!(out, "{label} would get this merge; nothing was written")?,
    }
    for hash in &done.committed {
        writeln!(out, "  committed first: {}", paint.hash(&hash.short()))?;
    }
    if let Some(turn) = done.turn {
        writeln!(out, "  said in turn {turn}")?;
    }
    if done.changes.is_empty() && done.conflicts.is_empty() {
        writeln!(out, "nothing that is known changes")?;
    }
    let is_decided = |it: &&FieldChange| !matches!(it.to, Some(Held::Conflict(_)));
    let decided: Vec<FieldChange> = done.changes.iter().filter(is_decided).cloned().collect();
    if !decided.is_empty() {
        writeln!(out, "changes")?;
        write_changes(out, screen, &decided)?;
    }
    if !done.conflicts.is_empty() {
        write_conflicts(out, screen, &done.conflicts)?;
    }
    if done.turn.is_none() && !done.summary.is_empty() {
        writeln!(out, "the other side")?;
        for line in &done.summary {
            let turn = line.turn.map(|turn| paint.hash(&turn.short())).unwrap_or_default();
            writeln!(out, "{}", format!("  - {}  {turn}", visible(&line.text)).trim_end())?;
        }
    }
    if done.dry_run {
        return Ok(());
    }
    write_ways_out(out, &done.conflicts, target)
}

/// Decisions in the order in which they stand: a field, and what is to hold of it.
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
                    .help("A field; without any, the conflicts of the branch are listed"),
            )
            .arg(
                repeated(SIDE, "N", "Take what this side says, counted from 1")
                    .value_parser(value_parser!(usize)),
            )
            .arg(repeated(VALUE, "JSON", "Take this value").allow_hyphen_values(true))
            .arg(
                Arg::new(NOTHING)
                    .long(NOTHING)
                    .num_args(0)
                    .default_missing_value("true")
                    .action(ArgAction::Append)
                    .help("Take no value"),
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
            let value = input::json_argument("--value", &text, &crate::session::limits());
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
                    let why = "say what is to hold: --side N, --value JSON or --nothing behind it";
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
    override_usage = "tine resolve [OPTIONS]\n       \
        tine resolve ENTITY.FIELD (--side N | --value JSON | --nothing)… [OPTIONS]",
    after_help = "\
All decisions of one call are one commit. `tine merge` and `tine resolve` list conflicts with \
their sides.

Examples:
  tine resolve
  tine resolve ent_0123456789abcdef0123456789abcdef.city --side 2
  tine resolve ent_0123456789abcdef0123456789abcdef.budget --value 3000 \\
               ent_0123456789abcdef0123456789abcdef.hotel --nothing"
)]
pub(crate) struct ResolveArgs {
    #[command(flatten)]
    decisions: Decisions,
    /// The branch [default: main]
    #[arg(short, long)]
    branch: Option<String>,
    /// What the commit is about
    #[arg(short, long, visible_alias = "msg", value_name = "TEXT")]
    message: Option<String>,
    /// Who made it [default: whoever calls]
    #[arg(long, value_name = "NAME")]
    author: Option<String>,
    /// A key that makes the call safe to repeat
    #[arg(long)]
    key: Option<String>,
}

pub(crate) fn resolve(session: &Session, args: ResolveArgs) -> Result<()> {
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
    if session.answered_json(|| view::Commit::from(made.clone()))? {
        return Ok(());
    }
    commits::report(session, &made)
}

fn entity_field(text: &str) -> Result<(EntityId, String)> {
    match text.split_once('.') {
        Some((entity, field)) if !field.is_empty() => Ok((things::id(entity)?, field.to_owned())),
        _ => {
            let why = format!("`{text}` names no field; give one as ent_….city");
            Err(Failure::invalid(why))
        }
    }
}

/// The conflicts that the last commit of a branch holds.
fn list(session: &Session, branch: &str) -> Result<()> {
    let found = commits::listed(session, Some(branch.to_owned()), Some(1))?;
    let last: Option<&CommitView> = found.items.first();
    let facets = last.and_then(|it| it.commit.facets.as_ref());
    let conflicts = facets.map(conflicts_of).unwrap_or_default();
    let views = || conflicts.iter().cloned().map(view::FieldConflict::from).collect();
    if session.answered_json(|| view::Items::<view::FieldConflict>::all(views()))? {
        return Ok(());
    }
    session.screen.text(Paging::Paged, |out| {
        if conflicts.is_empty() {
            return Ok(writeln!(out, "there are no conflicts on {}", visible(branch))?);
        }
        let number = count(conflicts.len() as u64, "field");
        writeln!(out, "{number} to decide on {}", visible(branch))?;
        write_conflicts(out, &session.screen, &conflicts)?;
        write_ways_out(out, &conflicts, branch)
    })
}

#[derive(Debug, Args)]
#[command(after_help = "\
The new turn says the same and names the one that it comes from; the old one stays where it is.

Examples:
  tine inject osaka~2
  tine inject osaka~2 --branch plan
  tine inject 3f2a9c01d7e4 --to notes")]
pub(crate) struct InjectArgs {
    /// The turn
    #[arg(value_name = "TURN", value_parser = reference)]
    turn: Reference,
    /// The branch at whose end it is said [default: main]
    #[arg(short, long)]
    branch: Option<String>,
    /// The conversation that it comes to [default: its own]
    #[arg(long, value_name = "ID")]
    to: Option<String>,
    /// A key that makes the call safe to repeat
    #[arg(long)]
    key: Option<String>,
}

pub(crate) fn inject(session: &Session, args: InjectArgs) -> Result<()> {
    let turn = session.turn(&args.turn)?;
    let (conversation, branch) = match args.to {
        Some(to) => (session.conversation_id(&to)?, args.branch),
        None => {
            let its_own = || Ok(session.engine.turn(&session.call, turn.clone())?.conversation);
            let here = session.named_conversation().cloned().map_or_else(its_own, Result::Ok)?;
            (here, args.branch.or_else(|| session.other_branch()))
        }
    };
    let request = Inject { turn, conversation, branch };
    let call = session.call_with(args.key.as_deref());
    let done = session.engine.versioning().inject(&call, request)?;
    if session.answered_json(|| view::Injected::from(done.clone()))? {
        return Ok(());
    }
    session.screen.text(Paging::Direct, |out| {
        writeln!(out, "{}", one_line(&session.screen, &done.turn, 0))?;
        Ok(writeln!(out, "{}", ends_on(session, &done.branch))?)
    })
}
