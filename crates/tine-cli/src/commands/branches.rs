//! `tine branch` and `fork`: lists, creates, renames and deletes branches.

use clap::{Args, Subcommand};
use tine_api::Listing;
use tine_core::{ConversationId, Reference};
use tine_engine::{BranchView, Fork, ForkPoint};

use crate::arguments::{names_root, reference};
use crate::command_error::Result;
use crate::session::CliSession;
use crate::terminal::text::{visible, width};
use crate::terminal::{Paging, short_time};

#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    override_usage = "tine branch [OPTIONS] [NAME]\n       tine branch list|rename|delete …",
    after_help = "\
Examples:
  tine branch                       list them
  tine branch osaka --at main~4     make one
  tine branch rename osaka kansai   or: tine branch -m osaka kansai
  tine branch delete kansai         or: tine branch -d kansai"
)]
pub(crate) struct BranchArgs {
    #[command(subcommand)]
    subcommand: Option<BranchCommand>,
    /// The branch to make; without it, all are listed
    name: Option<String>,
    /// The turn it ends on
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
    /// Rename a branch; its id stays
    Rename {
        /// Its name or id
        old: String,
        /// Its new name
        new: String,
    },
    /// Delete a branch; its turns stay
    Delete {
        /// Its name or id
        name: String,
    },
}

pub(crate) fn branch(session: &CliSession, args: BranchArgs) -> Result<()> {
    match (args.subcommand, args.delete, args.rename.as_deref(), args.name) {
        (Some(BranchCommand::Rename { old, new }), ..) => rename(session, &old, &new),
        (_, _, Some([old, new]), _) => rename(session, old, new),
        (Some(BranchCommand::Delete { name }), ..) | (_, Some(name), ..) => delete(session, &name),
        (None, None, _, Some(name)) => {
            let at = match args.at {
                Some(at) => at,
                None => session.tip()?,
            };
            make(session, ForkPoint::At(at), Some(&name), None)
        }
        _ => list(session),
    }
}

fn list(session: &CliSession) -> Result<()> {
    let conversation = session.conversation()?;
    let branches = session.engine.branches(&session.call, &conversation)?;
    let views = || branches.to_vec();
    if session.answered_json(|| Listing::<BranchView>::all(views()))? {
        return Ok(());
    }
    let paint = session.screen.paint;
    let column = branches.iter().map(|it| width(it.name.as_str())).max().unwrap_or(0);
    session.screen.text(Paging::Paged, |out| {
        for branch in &branches {
            let gap = " ".repeat(column.saturating_sub(width(branch.name.as_str())));
            let name = paint.branch(&visible(branch.name.as_str()));
            let time = paint.dim(&short_time(branch.created_at));
            writeln!(out, "{name}{gap}  {}  {time}", tip(session, branch))?;
        }
        Ok(())
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
        "deleted the branch {} (it ended on {}); its turns stay",
        visible(gone.name.as_str()),
        was.trim_end()
    ))
}

#[derive(Debug, Args)]
#[command(after_help = "\
Nothing is copied: a fork is a new name for a place in the tree.

Examples:
  tine fork main~4 --name osaka     with that turn
  tine fork main~4 --before         without it, to say something else there
  tine append --branch osaka 'And from Osaka?'")]
pub(crate) struct ForkArgs {
    /// The turn at which to fork [default: main]
    #[arg(value_name = "REF", value_parser = reference)]
    turn: Option<Reference>,
    /// The new branch's name [default: fork-1, fork-2 …]
    #[arg(short, long)]
    name: Option<String>,
    /// Leave the turn itself out
    #[arg(long)]
    before: bool,
    /// A key that makes the call safe to repeat
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
    let conversation =
        if names_root(at) { Some(session.conversation()?) } else { session.scope()? };
    let name = name.map(|name| session.name(name)).transpose()?;
    let request = Fork { conversation, point, name };
    let done = session.engine.fork(&session.call_with(key), request)?;
    if session.answered_json(|| done.clone())? {
        return Ok(());
    }
    session.screen.line(&ends_on(session, &done))
}
