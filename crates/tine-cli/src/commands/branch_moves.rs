//! `tine revert`, `restore` and `tails`: moves branches and lists the turns that no branch reaches.

use clap::Args;
use tine_api::Listing;
use tine_core::{ErrorKind, Reference};
use tine_engine::{BranchView, MoveBranch};

use crate::arguments::reference;
use crate::command_error::Result;
use crate::commands::branches::ends_on;
use crate::session::CliSession;
use crate::terminal::short_time;
use crate::terminal::text::{count, cut};

#[derive(Debug, Args)]
#[command(
    override_usage = "tine revert [OPTIONS] [BRANCH] <REF>",
    after_help = "\
Turns after REF stay in the tree; `tine branch tails` lists them and `tine branch restore` moves the \
branch back to them.

Examples:
  tine revert main~2
  tine revert osaka a9d2e63be84c"
)]
pub(crate) struct RevertArgs {
    /// Branch (main if omitted) and the turn to move it to
    #[arg(value_name = "REF", num_args = 1..=2, required = true)]
    words: Vec<String>,
    /// Refuse if this is not the tip of the branch
    #[arg(long, alias = "expect-tip", value_name = "REF", value_parser = reference)]
    expected_tip: Option<Reference>,
}

pub(crate) fn revert(session: &CliSession, args: RevertArgs) -> Result<()> {
    let (branch, to) = match args.words.as_slice() {
        [branch, to] => (branch.as_str(), to),
        words => ("main", &words[0]),
    };
    let request = MoveBranch {
        conversation: session.conversation()?,
        branch: branch.to_owned(),
        to: Some(Reference::parse(to)?),
        expected_tip: args.expected_tip,
    };
    let done = session.engine.revert(&session.call, request)?;
    moved(session, &done)
}

fn moved(session: &CliSession, branch: &BranchView) -> Result<()> {
    if session.answered_json(|| branch.clone())? {
        return Ok(());
    }
    session.screen.line(&ends_on(session, branch))
}

#[derive(Debug, Args)]
#[command(
    override_usage = "tine branch restore [OPTIONS] [BRANCH] [REF]",
    after_help = "\
Without REF, the branch moves back to its tip before the last revert.

Examples:
  tine branch restore
  tine branch restore osaka
  tine branch restore main a9d2e63be84c"
)]
pub(crate) struct RestoreArgs {
    /// Branch (main if omitted) and the turn to move it to
    #[arg(value_name = "REF", num_args = 0..=2)]
    words: Vec<String>,
    /// Refuse if this is not the tip of the branch
    #[arg(long, alias = "expect-tip", value_name = "REF", value_parser = reference)]
    expected_tip: Option<Reference>,
}

pub(crate) fn restore(session: &CliSession, args: RestoreArgs) -> Result<()> {
    let conversation = session.conversation()?;
    let (branch, to) = match args.words.as_slice() {
        [] => ("main", None),
        [branch, to] => (branch.as_str(), Some(to)),
        words => match session.engine.branch(&session.call, &conversation, &words[0]) {
            Ok(_) => (words[0].as_str(), None),
            // A single argument that is not a branch is the turn.
            Err(error) if error.kind() == ErrorKind::NotFound => ("main", Some(&words[0])),
            Err(error) => return Err(error.into()),
        },
    };
    let branch = branch.to_owned();
    let to = to.map(|to| Reference::parse(to)).transpose()?;
    let expected_tip = args.expected_tip;
    let request = MoveBranch { conversation, branch, to, expected_tip };
    let done = session.engine.restore(&session.call, request)?;
    moved(session, &done)
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tine branch tails
  tine branch restore main a9d2e63be84c   move main to the end of one
  tine fork a9d2e63be84c                  create a branch for it")]
pub(crate) struct TailsArgs {}

pub(crate) fn tails(session: &CliSession) -> Result<()> {
    let conversation = session.conversation()?;
    let tails = session.engine.tails(&session.call, &conversation)?;
    let paint = session.screen.paint;
    session.list(&Listing::all(tails), |tail| {
        let hash = paint.hash(&tail.leaf_hash.short());
        let turns = count(tail.turns, "turn");
        let time = paint.dim(&short_time(tail.created_at));
        let room = session.screen.columns.map_or(80, |columns| columns.saturating_sub(44));
        format!("{hash}  {turns:>10}  {time}  {}", cut(&tail.preview, room))
    })
}
