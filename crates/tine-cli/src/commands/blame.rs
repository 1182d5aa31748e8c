//! `tine blame` and `bisect`: finds the origin of a text or fact, and the first turn that matches.

use std::io::{self, Write};
use std::process::{Command, Stdio};
use tine_api::Listing;

use clap::{Args, Subcommand};
use tine_core::{EntityId, Json, Reference};
use tine_engine::{
    BisectQuery, BisectVerdict, Bisected, BlameOf, BlameQuery, Blamed, NoFirst, PathPage,
    PathQuery, Predicate, Selection, TurnRef, TurnView, bisect_range,
};
use tine_formats::render::whole_path;

use crate::arguments::reference;
use crate::command_error::{CommandError, Result};
use crate::input;
use crate::knowledge_view::{room, row, value, write_rows};
use crate::record_args;
use crate::session::CliSession;
use crate::terminal::text::{count, cut, visible};
use crate::terminal::{Paging, short_time};
use crate::transcript::one_line;

#[derive(Debug, Args)]
#[command(after_help = "\
Shows the first turn on the path that contains the text, the commit that covers the turn, and the \
merge that brought it if it came from another branch.

Examples:
  tine commit blame 'cherry blossom'
  tine commit blame 'cherry blossom' --at osaka
  tine commit blame --entity ent_0123456789abcdef0123456789abcdef --field budget")]
pub(crate) struct BlameArgs {
    /// Text to look for, matched exactly
    #[arg(required_unless_present = "entity", conflicts_with = "entity")]
    text: Option<String>,
    /// Entity that has the field
    #[arg(long, value_name = "ENTITY", requires = "field")]
    entity: Option<String>,
    /// Field to look for
    #[arg(long, requires = "entity")]
    field: Option<String>,
    /// End of the path [default: main]
    #[arg(long, value_name = "REF", value_parser = reference)]
    at: Option<Reference>,
}

pub(crate) fn blame(session: &CliSession, args: BlameArgs) -> Result<()> {
    let of = match (args.entity, args.field, args.text) {
        (Some(entity), Some(field), _) => {
            BlameOf::Field { entity: record_args::resolve_entity(session, &entity)?, field }
        }
        (_, _, text) => BlameOf::Text(text.unwrap_or_default()),
    };
    let query = BlameQuery { at: end(session, args.at)?, of };
    let found = session.engine.versioning().blame(&session.call, query)?;
    let views = || found.to_vec();
    if session.answered_json(|| Listing::<Blamed>::all(views()))? {
        return Ok(());
    }
    session.screen.text(Paging::Paged, |out| {
        for (index, it) in found.iter().enumerate() {
            if index > 0 {
                writeln!(out)?;
            }
            write_blamed(out, session, it)?;
        }
        Ok(())
    })
}

fn write_blamed(out: &mut dyn Write, session: &CliSession, it: &Blamed) -> Result<()> {
    let paint = session.screen.paint;
    let mut facts = Vec::new();
    if let Some(said) = &it.value {
        facts.push(row("value", value(said, room(&session.screen, 14))));
    }
    match (it.turn, it.role, it.said_at) {
        (Some(turn), Some(role), Some(at)) => {
            let (hash, role) = (paint.hash(&turn.short()), paint.role(role, role.as_str()));
            facts.push(row("turn", format!("{hash}  {role}  {}", paint.dim(&short_time(at)))));
        }
        _ => facts.push(row("turn", "none: it was stored without a turn")),
    }
    if let (Some(quote), Some((start, end))) = (&it.quote, it.span) {
        let quote = cut(quote, room(&session.screen, 34));
        facts.push(row("words", format!("“{quote}” at {start}–{end}")));
    }
    if let Some(observation) = it.observation {
        facts.push(row("observation", observation));
    }
    for (name, hash) in [("commit", it.commit), ("merge", it.merge)] {
        if let Some(hash) = hash {
            facts.push(row(name, paint.hash(&hash.short())));
        }
    }
    write_rows(out, &session.screen, 0, &facts)
}

/// Returns the end of the path to search.
fn end(session: &CliSession, at: Option<Reference>) -> Result<TurnRef> {
    match at {
        Some(at) => session.turn(&at),
        None => Ok(TurnRef::within(session.conversation()?, session.tip()?)),
    }
}

#[derive(Debug, Args)]
#[command(
    override_usage = "tine commit bisect --contains TEXT\n       \
        tine commit bisect --entity E --field F [--value JSON]\n       \
        tine commit bisect run COMMAND…",
    after_help = "\
The command of `run` gets the path so far as JSON on standard input, and TINE_TURN_ID and \
TINE_TURN_HASH in its environment. It exits with 0 if the path is good, with 125 if it cannot \
be tested, and with any other code below 128 if it is bad. Its output goes to standard error.

Examples:
  tine commit bisect --contains Osaka
  tine commit bisect --entity ent_0123456789abcdef0123456789abcdef --field budget --value 3000
  tine commit bisect run sh -c '! grep -q Osaka'
  tine commit bisect --at osaka run ./check.py"
)]
pub(crate) struct BisectArgs {
    #[command(subcommand)]
    run: Option<BisectRun>,
    /// Match turns that contain this text
    #[arg(long, value_name = "TEXT", conflicts_with_all = ["entity", "field", "value"])]
    contains: Option<String>,
    /// Entity that has the field
    #[arg(long, value_name = "ENTITY", requires = "field")]
    entity: Option<String>,
    /// Match when this field has a value
    #[arg(long, requires = "entity")]
    field: Option<String>,
    /// Match when the field has this value
    #[arg(long, value_name = "JSON", requires = "field", allow_hyphen_values = true)]
    value: Option<String>,
    /// End of the path [default: main]
    #[arg(long, value_name = "REF", value_parser = reference)]
    at: Option<Reference>,
}

#[derive(Debug, Subcommand)]
enum BisectRun {
    /// Test paths with a command: exit code 0 is good
    Run {
        /// Command and its arguments
        #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
        command: Vec<String>,
    },
}

pub(crate) fn bisect(session: &CliSession, args: BisectArgs) -> Result<()> {
    let at = end(session, args.at)?;
    let entity = |text: &str| -> Result<EntityId> { record_args::resolve_entity(session, text) };
    let predicate = match (args.run, args.contains, args.entity, args.field) {
        (Some(BisectRun::Run { command }), None, None, None) => return run(session, at, &command),
        (None, Some(text), ..) => Predicate::Contains(text),
        (None, None, Some(of), Some(field)) => {
            let read = |text: String| input::json_argument("--value", &text, session.limits());
            let value: Option<Json> = args.value.map(read).transpose()?;
            Predicate::Fact { entity: entity(&of)?, field, value }
        }
        _ => {
            let why = "pass --contains TEXT, --entity E --field F, or run COMMAND";
            return Err(CommandError::invalid(why));
        }
    };
    let query = BisectQuery { at, predicate };
    let found = session.engine.versioning().bisect(&session.call, query)?;
    report(session, &found, "the first match is")
}

fn report(session: &CliSession, found: &Bisected, what: &str) -> Result<()> {
    if session.answered_json(|| found.clone())? {
        return Ok(());
    }
    session.screen.text(Paging::Direct, |out| {
        writeln!(out, "{what}  {}", one_line(&session.screen, &found.turn, what.len() + 2))?;
        let (looked, path) = (found.tested, count(found.path as u64, "turn"));
        Ok(writeln!(out, "tested {looked} of {path}")?)
    })
}

/// Bisects with a command that judges each path.
fn run(session: &CliSession, at: TurnRef, command: &[String]) -> Result<()> {
    let TurnRef { conversation, turn } = at;
    let query = PathQuery {
        conversation,
        to: Some(turn),
        selection: Selection::Whole,
        cursor: None,
        limit: None,
    };
    let path = whole_path(&*session.engine, &session.call, query)?;
    let found = bisect_range(path.turns.len(), |index| {
        let verdict = judge_prefix(&path, index, command)?;
        let label = match verdict {
            BisectVerdict::Holds => "bad ",
            BisectVerdict::DoesNot => "good",
            BisectVerdict::Skip => "skip",
        };
        session
            .screen
            .aside(&format!("{label}  {}", one_line(&session.screen, &path.turns[index], 6)));
        Ok::<_, CommandError>(verdict)
    })?;
    let (first, tested) = found.map_err(|why| match why {
        NoFirst::Never => CommandError::invalid(
            "the command exits with 0 at the end of the path; nothing to find",
        ),
        NoFirst::Skipped => CommandError::invalid(
            "the command skipped too many turns; the first bad turn is one of them",
        ),
    })?;
    let turn: TurnView = path.turns[first].clone();
    report(session, &Bisected { turn, path: path.turns.len(), tested }, "the first bad turn is")
}

/// Runs the command on the path up to a turn and returns its verdict.
fn judge_prefix(path: &PathPage, index: usize, command: &[String]) -> Result<BisectVerdict> {
    let turn = &path.turns[index];
    let so_far = PathPage {
        conversation: path.conversation.clone(),
        root: path.root.clone(),
        to: Some(turn.id),
        turns: path.turns[..=index].to_vec(),
        next: None,
    };
    let document = serde_json::to_vec(&so_far).map_err(io::Error::from)?;
    let (program, arguments) = command.split_first().expect("the parser asks for a command");
    let unusable = |why: String| CommandError::invalid(format!("`{}`: {why}", visible(program)));
    let mut child = Command::new(program)
        .args(arguments)
        .env("TINE_TURN_ID", turn.id.to_string())
        .env("TINE_TURN_HASH", turn.hash.to_string())
        .stdin(Stdio::piped())
        .stdout(io::stderr())
        .spawn()
        .map_err(|error| unusable(format!("cannot start it: {error}")))?;
    let mut stdin = child.stdin.take().expect("it was piped");
    // The command need not read its input, so write errors are ignored.
    let writer = std::thread::spawn(move || stdin.write_all(&document));
    let status = child.wait().map_err(|error| unusable(error.to_string()))?;
    let _ = writer.join();
    match status.code() {
        Some(0) => Ok(BisectVerdict::DoesNot),
        Some(125) => Ok(BisectVerdict::Skip),
        Some(1..=127) => Ok(BisectVerdict::Holds),
        _ => Err(unusable(format!("it ended with {status} at turn {}", turn.hash.short()))),
    }
}
