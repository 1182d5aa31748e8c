//! `tine log` and `path`: reading turns in a row.

use clap::{Args, ValueEnum};
use tine_core::{Json, Reference};
use tine_engine::{PathPage, PathQuery, Selection, TurnView, WindowQuery};
use tine_formats::view;
use tine_store::Content;

use crate::arguments::reference;
use crate::failure::{Failure, Result};
use crate::labels::Labels;
use crate::session::Session;
use crate::terminal::Paging;
use crate::transcript::{one_line, wrapped, write_turn};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tine log
  tine log other -n 5
  tine log --oneline main~10")]
pub(crate) struct LogArgs {
    /// Where the path ends: a turn, a branch, a bookmark [default: main]
    #[arg(value_name = "REF", value_parser = reference)]
    to: Option<Reference>,
    /// Only the last N turns
    #[arg(short = 'n', long = "number", value_name = "N")]
    number: Option<usize>,
    /// One line for each turn
    #[arg(long)]
    oneline: bool,
}

pub(crate) fn log(session: &Session, args: LogArgs) -> Result<()> {
    let mut path = whole_path(session, args.to, args.number)?;
    path.turns.reverse();
    if session.answered_json(|| view::Path::from(path.clone()))? {
        return Ok(());
    }
    let labels = Labels::of(session, &path.conversation)?;
    session.screen.text(Paging::Paged, |out| {
        for (index, turn) in path.turns.iter().enumerate() {
            if args.oneline {
                writeln!(out, "{}", one_line(&session.screen, turn, 0))?;
                continue;
            }
            if index > 0 {
                writeln!(out)?;
            }
            write_turn(out, &session.screen, turn, &labels)?;
        }
        Ok(())
    })
}

/// All pages of a path, or of its last turns.
fn whole_path(session: &Session, to: Option<Reference>, last: Option<usize>) -> Result<PathPage> {
    // A branch or turn that is named can be looked for everywhere; `main` alone cannot.
    let conversation = match &to {
        Some(_) => session.scope()?,
        None => Some(session.conversation()?),
    };
    let selection = last.map_or(Selection::Whole, Selection::Last);
    let mut query = PathQuery { conversation, to, selection, cursor: None, limit: None };
    let mut path = session.engine.path(&session.call, query.clone())?;
    while let Some(cursor) = path.next.take() {
        query.cursor = Some(cursor);
        let page = session.engine.path(&session.call, query.clone())?;
        path.turns.extend(page.turns);
        path.next = page.next;
    }
    Ok(path)
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tine path
  tine path other --last 10
  tine path --around a9d2e63be84c --before 2 --after 2
  tine path --format tine --no-system > messages.jsonl")]
pub(crate) struct PathArgs {
    /// Where the path ends: a turn, a branch, a bookmark [default: main]
    #[arg(value_name = "REF", value_parser = reference, conflicts_with = "around")]
    to: Option<Reference>,
    /// Only the last N turns
    #[arg(long, value_name = "N", conflicts_with = "around")]
    last: Option<usize>,
    /// Only the turns around this one
    #[arg(long, value_name = "TURN", value_parser = reference)]
    around: Option<Reference>,
    /// Turns before it
    #[arg(long, value_name = "N", default_value_t = 3, requires = "around")]
    before: usize,
    /// Turns behind it
    #[arg(long, value_name = "N", default_value_t = 3, requires = "around")]
    after: usize,
    /// The branch whose line is followed behind it
    #[arg(long, requires = "around")]
    branch: Option<String>,
    /// text: for people; tine: canonical messages as JSON Lines, as `append --messages` takes them
    #[arg(long, default_value = "text", hide_possible_values = true)]
    format: Format,
    /// Leave the system prompt out
    #[arg(long)]
    no_system: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    Text,
    Tine,
}

pub(crate) fn path(session: &Session, args: PathArgs) -> Result<()> {
    if args.around.is_some() {
        return window(session, &args);
    }
    let path = whole_path(session, args.to, args.last)?;
    if args.format == Format::Text && session.answered_json(|| view::Path::from(path.clone()))? {
        return Ok(());
    }
    let prompt = path.root.as_ref().and_then(|root| root.system_prompt.as_deref());
    let prompt = prompt.filter(|_| !args.no_system);
    if args.format == Format::Tine {
        return write_messages(session, prompt, &path.turns);
    }
    let labels = Labels::of(session, &path.conversation)?;
    session.screen.text(Paging::Paged, |out| {
        let mut first = true;
        if let Some(prompt) = prompt {
            let root = session.screen.paint.role(tine_core::Role::System, "system (root)");
            writeln!(out, "{root}")?;
            wrapped(out, &session.screen, prompt, None)?;
            first = false;
        }
        for turn in &path.turns {
            if !first {
                writeln!(out)?;
            }
            first = false;
            write_turn(out, &session.screen, turn, &labels)?;
        }
        Ok(())
    })
}

fn window(session: &Session, args: &PathArgs) -> Result<()> {
    let Some(around) = &args.around else { return Ok(()) };
    let query = WindowQuery {
        turn: session.turn(around)?,
        branch: args.branch.clone(),
        before: args.before,
        after: args.after,
    };
    let window = session.engine.window(&session.call, query)?;
    if args.format == Format::Tine {
        return write_messages(session, None, &window.turns);
    }
    if session.answered_json(|| view::Window::from(window.clone()))? {
        return Ok(());
    }
    let labels = Labels::of(session, &window.conversation)?;
    let paint = session.screen.paint;
    session.screen.text(Paging::Paged, |out| {
        if window.more_before {
            writeln!(out, "{}\n", paint.dim("… earlier turns"))?;
        }
        for (index, turn) in window.turns.iter().enumerate() {
            if index > 0 {
                writeln!(out)?;
            }
            write_turn(out, &session.screen, turn, &labels)?;
        }
        if window.more_after {
            writeln!(out, "\n{}", paint.dim("… later turns"))?;
        }
        Ok(())
    })
}

/// One canonical message on each line, in the form that `append --messages` takes.
fn write_messages(session: &Session, prompt: Option<&str>, turns: &[TurnView]) -> Result<()> {
    session.screen.text(Paging::Direct, |out| {
        if let Some(prompt) = prompt {
            let content = Json::from(prompt);
            let line = tine_core::json::object([("role", "system".into()), ("content", content)]);
            writeln!(out, "{}", line.to_canonical())?;
        }
        for turn in turns {
            let Content::Kept(body) = &turn.content else {
                let why = format!(
                    "the turn {} is purged and cannot be written as a message; --json shows what \
                     is left of it",
                    turn.hash.short()
                );
                return Err(Failure::refused(tine_core::Kind::Unsupported, why));
            };
            let mut members = vec![
                ("role".to_owned(), turn.role.as_str().into()),
                ("content".to_owned(), Json::Array(body.blocks()?)),
                ("created_at".to_owned(), turn.created_at.to_string().into()),
            ];
            if let Some(call) = &turn.tool_call_id {
                members.push(("tool_call_id".to_owned(), call.as_str().into()));
            }
            if turn.status == tine_core::Status::Partial {
                members.push(("status".to_owned(), turn.status.as_str().into()));
            }
            if !turn.metadata.is_empty() {
                members.push(("metadata".to_owned(), turn.metadata.to_json()));
            }
            let message = Json::Object(members.into_iter().collect());
            writeln!(out, "{}", message.to_canonical())?;
        }
        Ok(())
    })
}
