//! `tine revert`, `restore` and `tails`: moves branches and lists the turns that no branch reaches.

use clap::Args;
use tine_api::{Listing, Tail};
use tine_core::{ErrorKind, Reference};
use tine_engine::{BranchView, MoveBranch};

use crate::arguments::reference;
use crate::command_error::Result;
use crate::commands::branches::ends_on;
use crate::session::CliSession;
use crate::terminal::text::{count, cut};
use crate::terminal::{Paging, short_time};

#[derive(Debug, Args)]
#[command(
    override_usage = "tine revert [OPTIONS] [BRANCH] <REF>",
    after_help = "\
What the branch leaves behind stays in the tree; `tine tails` lists it and \
`tine restore` goes back to it.

Examples:
  tine revert main~2
  tine revert osaka a9d2e63be84c"
)]
pub(crate) struct RevertArgs {
    /// The branch, if it is not main, and the turn to go back to
    #[arg(value_name = "REF", num_args = 1..=2, required = true)]
    words: Vec<String>,
    /// Refuse if the branch does not end here
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
    override_usage = "tine restore [OPTIONS] [BRANCH] [REF]",
    after_help = "\
Without a turn, the branch goes back to where its last revert found it.

Examples:
  tine restore
  tine restore osaka
  tine restore main a9d2e63be84c"
)]
pub(crate) struct RestoreArgs {
    /// The branch, if it is not main, and the turn to go forward to
    #[arg(value_name = "REF", num_args = 0..=2)]
    words: Vec<String>,
    /// Refuse if the branch does not end here
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
  tine tails
  tine restore main a9d2e63be84c    take one up again
  tine fork a9d2e63be84c            or give it a branch of its own")]
pub(crate) struct TailsArgs {}

pub(crate) fn tails(session: &CliSession) -> Result<()> {
    let conversation = session.conversation()?;
    let tails = session.engine.tails(&session.call, &conversation)?;
    let views = || tails.to_vec();
    if session.answered_json(|| Listing::<Tail>::all(views()))? {
        return Ok(());
    }
    let paint = session.screen.paint;
    session.screen.text(Paging::Paged, |out| {
        for tail in &tails {
            let hash = paint.hash(&tail.leaf_hash.short());
            let turns = count(tail.turns, "turn");
            let time = paint.dim(&short_time(tail.created_at));
            let room = session.screen.columns.map_or(80, |columns| columns.saturating_sub(44));
            writeln!(out, "{hash}  {turns:>10}  {time}  {}", cut(&tail.preview, room))?;
        }
        Ok(())
    })
}
