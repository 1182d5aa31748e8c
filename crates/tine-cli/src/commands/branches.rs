//! `tine branch` and `fork`: lists, creates, renames and deletes branches.

use clap::{Args, Subcommand};
use tine_api::Listing;
use tine_core::{ConversationId, Reference};
use tine_engine::{BranchView, Fork, ForkPoint};

use crate::arguments::{names_root, reference};
use crate::command_error::Result;
use crate::commands::branch_moves::{self, RestoreArgs, TailsArgs};
use crate::session::CliSession;
use crate::terminal::short_time;
use crate::terminal::text::{visible, width};

#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    override_usage = "tine branch [NAME] [--at REF]\n       tine branch COMMAND",
    after_help = "\
Examples:
  tine branch                       list branches
  tine branch osaka --at main~4     create one
  tine branch rename osaka kansai   or: tine branch -m osaka kansai
  tine branch delete kansai         or: tine branch -d kansai"
)]
pub(crate) struct BranchArgs {
    #[command(subcommand)]
    subcommand: Option<BranchCommand>,
    /// Branch to create; without it, branches are listed
    name: Option<String>,
    /// Turn where it ends [default: main]
    #[arg(long, value_name = "REF", value_parser = reference, requires = "name")]
    at: Option<Reference>,
    /// Delete a branch; its turns stay
    #[arg(short, long, value_name = "NAME", conflicts_with_all = ["name", "rename"])]
    delete: Option<String>,
    /// Rename a branch
    #[arg(short = 'm', long, num_args = 2, value_names = ["OLD", "NEW"], conflicts_with = "name")]
    rename: Option<Vec<String>>,
}

#[derive(Debug, Subcommand)]
enum BranchCommand {
    /// List branches
    List,
    /// Create a branch
    Create {
        /// Name of the branch
        name: String,
        /// Turn where it ends [default: main]
        #[arg(long, value_name = "REF", value_parser = reference)]
        at: Option<Reference>,
    },
    /// Rename a branch; its id stays
    Rename {
        /// Name or id of the branch
        old: String,
        /// New name
        new: String,
    },
    /// Delete a branch; its turns stay
    Delete {
        /// Name or id of the branch
        name: String,
    },
    /// Move a branch forward again after a revert
    Restore(RestoreArgs),
    /// List lines of turns that no branch reaches
    Tails(TailsArgs),
}

pub(crate) fn branch(session: &CliSession, args: BranchArgs) -> Result<()> {
    match args.subcommand {
        Some(BranchCommand::List) => return list(session),
        Some(BranchCommand::Create { name, at }) => return create(session, &name, at),
        Some(BranchCommand::Rename { old, new }) => return rename(session, &old, &new),
        Some(BranchCommand::Delete { name }) => return delete(session, &name),
        Some(BranchCommand::Restore(args)) => return branch_moves::restore(session, args),
        Some(BranchCommand::Tails(_)) => return branch_moves::tails(session),
        None => {}
    }
    match (args.delete, args.rename.as_deref(), args.name) {
        (Some(name), ..) => delete(session, &name),
        (_, Some([old, new]), _) => rename(session, old, new),
        (.., Some(name)) => create(session, &name, args.at),
        _ => list(session),
    }
}

fn create(session: &CliSession, name: &str, at: Option<Reference>) -> Result<()> {
    let at = match at {
        Some(at) => at,
        None => session.tip()?,
    };
    make(session, ForkPoint::At(at), Some(name), None)
}

fn list(session: &CliSession) -> Result<()> {
    let conversation = session.conversation()?;
    let branches = session.engine.branches(&session.call, &conversation)?;
    let paint = session.screen.paint;
    let column = branches.iter().map(|it| width(it.name.as_str())).max().unwrap_or(0);
    session.list(&Listing::all(branches), |branch| {
        let gap = " ".repeat(column.saturating_sub(width(branch.name.as_str())));
        let name = paint.branch(&visible(branch.name.as_str()));
        let time = paint.dim(&short_time(branch.created_at));
        format!("{name}{gap}  {}  {time}", tip(session, branch))
    })
}

/// Formats the tip of a branch in twelve columns.
fn tip(session: &CliSession, branch: &BranchView) -> String {
    match branch.tip_hash {
        Some(hash) => session.screen.paint.hash(&hash.short()),
        None => format!("{:12}", "root"),
    }
}

/// Describes where a branch ends.
pub(crate) fn ends_on(session: &CliSession, branch: &BranchView) -> String {
    let label = session.screen.paint.branch(&format!("[{}]", visible(branch.name.as_str())));
    format!("{label} ends on {}", tip(session, branch).trim_end())
}

fn rename(session: &CliSession, old: &str, new: &str) -> Result<()> {
    let conversation = session.conversation()?;
    let name = session.name(new)?;
    let done = session.engine.rename_branch(&session.call, &conversation, old, name)?;
    if session.answered_json(|| done.clone())? {
        return Ok(());
    }
    session.screen.line(&ends_on(session, &done))
}

fn delete(session: &CliSession, name: &str) -> Result<()> {
    let conversation: ConversationId = session.conversation()?;
    let gone = session.engine.delete_branch(&session.call, &conversation, name)?;
    if session.answered_json(|| gone.clone())? {
        return Ok(());
    }
    let was = tip(session, &gone);
    session.screen.line(&format!(
        "deleted the branch {} (its tip was {}); its turns stay",
        visible(gone.name.as_str()),
        was.trim_end()
    ))
}

#[derive(Debug, Args)]
#[command(after_help = "\
No turn is copied: a fork adds a branch at an existing turn.

Examples:
  tine fork main~4 --name osaka     the branch ends with that turn
  tine fork main~4 --before         the branch ends before it
  tine append --branch osaka 'And from Osaka?'")]
pub(crate) struct ForkArgs {
    /// Turn to fork at [default: main]
    #[arg(value_name = "REF", value_parser = reference)]
    turn: Option<Reference>,
    /// Name of the branch [default: fork-1, fork-2 …]
    #[arg(short, long)]
    name: Option<String>,
    /// End the branch before the turn
    #[arg(long)]
    before: bool,
    /// Idempotency key: repeating the call with it changes nothing
    #[arg(long)]
    key: Option<String>,
}

pub(crate) fn fork(session: &CliSession, args: ForkArgs) -> Result<()> {
    let turn = match args.turn {
        Some(turn) => turn,
        None => session.tip()?,
    };
    let point = if args.before { ForkPoint::Before(turn) } else { ForkPoint::At(turn) };
    make(session, point, args.name.as_deref(), args.key.as_deref())
}

fn make(
    session: &CliSession,
    point: ForkPoint,
    name: Option<&str>,
    key: Option<&str>,
) -> Result<()> {
    let (ForkPoint::At(at) | ForkPoint::Before(at)) = &point;
    // `root` alone is ambiguous: every conversation has one.
    let conversation = if names_root(at) {
        Some(session.conversation()?)
    } else {
        session.scope_of([at.as_str()])?
    };
    let name = name.map(|name| session.name(name)).transpose()?;
    let request = Fork { conversation, point, name };
    let done = session.engine.fork(&session.call_with(key), request)?;
    if session.answered_json(|| done.clone())? {
        return Ok(());
    }
    session.screen.line(&ends_on(session, &done))
}
