//! `tine merge` and `inject`: merges knowledge into a branch and copies turns to it.

use std::io::Write;

use clap::Args;
use tine_core::Reference;
use tine_core::commit::FieldState;
use tine_engine::{FieldChange, Inject, MergeBranches, Merged, Summary};

use super::branches::ends_on;
use crate::arguments::reference;
use crate::command_error::{CommandError, Result};
use crate::commit_view::{write_changes, write_conflicts, write_resolve_hints};
use crate::editor;
use crate::session::CliSession;
use crate::terminal::Paging;
use crate::terminal::text::{cut, visible};
use crate::transcript::one_line;

#[derive(Debug, Args)]
#[command(after_help = "\
A merge is a commit with two parents. No turn is moved or copied: known facts are merged field by \
field, and a field that both sides changed differently is kept as a conflict until `tine commit \
resolve` decides it.

Examples:
  tine merge osaka --dry-run        show the result, and change nothing
  tine merge osaka
  tine merge osaka --summary        also append a turn that sums up the other side
  tine merge osaka --edit           write that turn in an editor
  tine merge osaka --into plan -m 'Take Osaka in'")]
pub(crate) struct MergeArgs {
    /// Branch or commit to merge
    from: String,
    /// Branch to merge into [default: main]
    #[arg(long, value_name = "BRANCH")]
    into: Option<String>,
    /// Message of the commit
    #[arg(short, long, visible_alias = "msg", value_name = "TEXT")]
    message: Option<String>,
    /// Author of the commit [default: the actor]
    #[arg(long, value_name = "NAME")]
    author: Option<String>,
    /// Append a turn about the other side: this text, or a generated one
    #[arg(long, value_name = "TEXT", num_args = 0..=1, default_missing_value = "")]
    summary: Option<String>,
    /// Write that turn in an editor ($VISUAL or $EDITOR)
    #[arg(long, conflicts_with_all = ["summary", "dry_run"])]
    edit: bool,
    /// Show the result, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Idempotency key: repeating the call with it changes nothing
    #[arg(long)]
    key: Option<String>,
}

pub(crate) fn merge(session: &CliSession, args: MergeArgs) -> Result<()> {
    let into = args.into.or_else(|| session.other_branch());
    let mut request = MergeBranches {
        conversation: session.conversation()?,
        from: args.from,
        into,
        message: args.message,
        author: args.author,
        summary: match args.summary {
            None => Summary::None,
            Some(none) if none.is_empty() => Summary::Generated,
            Some(text) => Summary::Text(text),
        },
        dry_run: args.dry_run,
    };
    let versions = session.engine.versioning();
    if args.edit {
        request.summary = edited(session, &request)?;
    }
    let target = request.into.clone().unwrap_or_else(|| session.branch().to_owned());
    let done = versions.merge(&session.call_with(args.key.as_deref()), request)?;
    if session.answered_json(|| done.clone())? {
        return Ok(());
    }
    session.screen.text(Paging::Direct, |out| write_merged(out, session, &done, &target))
}

/// Opens the generated summary in an editor and returns the result.
fn edited(session: &CliSession, request: &MergeBranches) -> Result<Summary> {
    let rehearsal = MergeBranches { dry_run: true, ..request.clone() };
    let rehearsed = session.engine.versioning().merge(&session.call, rehearsal)?;
    if rehearsed.up_to_date {
        return Ok(Summary::None);
    }
    let mut text = format!("From the branch {}:\n", request.from);
    for line in &rehearsed.summary {
        let turn = line.turn.map(|turn| format!(" [{}]", turn.short())).unwrap_or_default();
        text.push_str(&format!("- {}{turn}\n", line.text));
    }
    let summary = editor::edit_text(&text)?;
    match summary.trim() {
        "" => Err(CommandError::invalid("the text is empty; nothing was merged")),
        summary => Ok(Summary::Text(summary.to_owned())),
    }
}

fn write_merged(
    out: &mut dyn Write,
    session: &CliSession,
    done: &Merged,
    target: &str,
) -> Result<()> {
    let (screen, paint) = (&session.screen, session.screen.paint);
    let label = paint.branch(&format!("[{}]", visible(target)));
    if done.up_to_date {
        return Ok(writeln!(out, "{label} is up to date")?);
    }
    match &done.commit {
        Some(it) => {
            let hash = paint.hash(&it.hash.short());
            writeln!(out, "{label} {hash}  {}", cut(&it.commit.message, 72))?;
        }
        None => writeln!(out, "{label} would get this merge; nothing was changed")?,
    }
    for hash in &done.committed {
        writeln!(out, "  committed first: {}", paint.hash(&hash.short()))?;
    }
    if let Some(turn) = done.turn {
        writeln!(out, "  said in turn {turn}")?;
    }
    if done.changes.is_empty() && done.conflicts.is_empty() {
        writeln!(out, "no known fact changes")?;
    }
    let is_decided = |it: &&FieldChange| !matches!(it.to, Some(FieldState::Conflict(_)));
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
    write_resolve_hints(out, &done.conflicts, target)
}

#[derive(Debug, Args)]
#[command(after_help = "\
The copy records which turn it comes from; the original stays where it is.

Examples:
  tine turn inject osaka~2
  tine turn inject osaka~2 --branch plan
  tine turn inject 3f2a9c01d7e4 --to notes")]
pub(crate) struct InjectArgs {
    /// Turn to copy
    #[arg(value_name = "TURN", value_parser = reference)]
    turn: Reference,
    /// Branch to append to [default: main]
    #[arg(short, long)]
    branch: Option<String>,
    /// Conversation to append to [default: that of the turn]
    #[arg(long, value_name = "ID")]
    to: Option<String>,
    /// Idempotency key: repeating the call with it changes nothing
    #[arg(long)]
    key: Option<String>,
}

pub(crate) fn inject(session: &CliSession, args: InjectArgs) -> Result<()> {
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
    if session.answered_json(|| done.clone())? {
        return Ok(());
    }
    session.screen.text(Paging::Direct, |out| {
        writeln!(out, "{}", one_line(&session.screen, &done.turn, 0))?;
        Ok(writeln!(out, "{}", ends_on(session, &done.branch))?)
    })
}
