//! `tine edit`, `split` and `delete`: changes what is shown; recorded turns stay.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use tine_core::{Body, Reference, Role};
use tine_engine::{Delete, DeleteMode, Deleted, Edit, Outcome, SplitTurn, TurnRef};
use tine_formats::redact::{self, Redacted};

use crate::arguments::reference;
use crate::command_error::Result;
use crate::commands::append::write_redacted;
use crate::commands::branches::ends_on;
use crate::input::{self, InputSource};
use crate::session::CliSession;
use crate::terminal::Paging;
use crate::terminal::text::{count, visible};
use crate::transcript::one_line;

#[derive(Debug, Args)]
#[command(after_help = "\
The new version is a sibling of the old one. Without --branch no branch moves to it.

Examples:
  tine edit main 'Late March, or November' --branch main
  tine edit main~2 < question.txt
  tine edit main --content blocks.json --branch main")]
pub(crate) struct EditArgs {
    /// Turn to edit
    #[arg(value_name = "REF", value_parser = reference)]
    turn: Reference,
    /// Text of the new version [default: standard input, if it is not a terminal]
    #[arg(value_name = "TEXT")]
    text: Vec<String>,
    /// JSON file with content blocks (`-` for standard input) instead of a text
    #[arg(long, value_name = "FILE", conflicts_with = "text")]
    content: Option<PathBuf>,
    /// Branch to move to the new version
    #[arg(short, long)]
    branch: Option<String>,
    /// Add a new version even if an equal one exists
    #[arg(long)]
    no_reuse: bool,
    /// Replace text that looks like a secret before it is recorded
    #[arg(long)]
    redact: bool,
    /// Idempotency key: repeating the call with it changes nothing
    #[arg(long)]
    key: Option<String>,
}

impl EditArgs {
    /// Returns whether the text comes from standard input without being asked for with `-`.
    pub(crate) fn reads_stdin_unasked(&self) -> bool {
        self.text.is_empty() && self.content.is_none()
    }
}

pub(crate) fn edit(session: &CliSession, args: EditArgs) -> Result<()> {
    let named = session.turn(&args.turn)?;
    // The role determines which content is valid.
    let original = session.engine.turn(&session.call, named)?;
    let mut body = body(session, &args, original.role)?;
    let redacted = if args.redact { redact::body(&mut body) } else { Redacted::new() };
    let request = Edit {
        body,
        turn: TurnRef::within(original.conversation, original.id),
        branch: args.branch,
        reuse: !args.no_reuse,
    };
    let call = session.call_with(args.key.as_deref()).with_redacted(redacted);
    let done = session.engine.edit(&call, request)?;
    if session.answered_json(|| done.clone())? {
        return Ok(());
    }
    session.screen.text(Paging::Direct, |out| {
        let line = one_line(&session.screen, &done.turn, 16);
        match done.turn.outcome {
            Some(Outcome::Reused) => writeln!(out, "{line} (reused)")?,
            _ => writeln!(out, "{line}")?,
        }
        match &done.branch {
            Some(branch) => writeln!(out, "{}", ends_on(session, branch))?,
            None => writeln!(out, "no branch moved; --branch NAME moves one to the new version")?,
        }
        write_redacted(out, &done.redacted)
    })
}

fn body(session: &CliSession, args: &EditArgs, role: Role) -> Result<Body> {
    let limits = session.limits();
    match &args.content {
        None => input::body(input::text_or_stdin(&args.text, limits)?, role, limits),
        Some(file) => {
            let content = input::read_json(&InputSource::from_path(file), limits)?;
            input::content(content, role, limits)
        }
    }
}

#[derive(Debug, Args)]
#[command(after_help = "\
The offset counts Unicode characters (scalar values) that the first half keeps, and must not \
lie inside an emoji or another composed character.

Examples:
  tine turn split main 12")]
pub(crate) struct SplitArgs {
    /// Turn, which must contain only text
    #[arg(value_name = "REF", value_parser = reference)]
    turn: Reference,
    /// Number of characters in the first half
    offset: usize,
}

pub(crate) fn split(session: &CliSession, args: &SplitArgs) -> Result<()> {
    let request = SplitTurn { turn: session.turn(&args.turn)?, offset: args.offset };
    let done = session.engine.split(&session.call, request)?;
    if session.answered_json(|| done.clone())? {
        return Ok(());
    }
    session.screen.text(Paging::Direct, |out| {
        writeln!(out, "{}", one_line(&session.screen, &done.left, 0))?;
        Ok(writeln!(out, "{}", one_line(&session.screen, &done.right, 0))?)
    })
}

#[derive(Debug, Args)]
#[command(after_help = "\
A deleted turn is hidden: `tine undo` restores it. `tine store purge` erases its content.

Examples:
  tine delete a9d2e63be84c --dry-run
  tine delete a9d2e63be84c
  tine delete main~3 --mode reparent")]
pub(crate) struct DeleteArgs {
    /// Turn to delete
    #[arg(value_name = "REF", value_parser = reference)]
    turn: Reference,
    /// cascade: delete everything below too; reparent: attach what follows to the previous turn
    #[arg(long, default_value = "cascade", hide_possible_values = true)]
    mode: DeleteModeChoice,
    /// Delete it even if something outside its subtree refers to it
    #[arg(long)]
    force: bool,
    /// Show what would be deleted, and delete nothing
    #[arg(short = 'n', long)]
    dry_run: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum DeleteModeChoice {
    Cascade,
    Reparent,
}

pub(crate) fn delete(session: &CliSession, args: &DeleteArgs) -> Result<()> {
    session.require_whole_id("delete")?;
    let request = Delete {
        turn: session.turn(&args.turn)?,
        mode: match args.mode {
            DeleteModeChoice::Cascade => DeleteMode::Cascade,
            DeleteModeChoice::Reparent => DeleteMode::Reparent,
        },
        force: args.force,
        dry_run: args.dry_run,
    };
    let done = session.engine.delete(&session.call, request)?;
    if session.answered_json(|| done.clone())? {
        return Ok(());
    }
    report(session, &done)
}

fn report(session: &CliSession, done: &Deleted) -> Result<()> {
    session.screen.text(Paging::Direct, |out| {
        let verb = if done.dry_run { "would delete" } else { "deleted" };
        writeln!(out, "{verb} {}", count(done.turns as u64, "turn"))?;
        for branch in &done.moved_branches {
            writeln!(out, "{}", ends_on(session, branch))?;
        }
        for name in &done.moved_bookmarks {
            writeln!(out, "the bookmark {} moves to the previous turn", visible(name.as_str()))?;
        }
        for name in &done.removed_bookmarks {
            writeln!(out, "the bookmark {} is deleted too", visible(name.as_str()))?;
        }
        if !done.dry_run {
            writeln!(out, "`tine undo` restores everything")?;
        }
        Ok(())
    })
}
