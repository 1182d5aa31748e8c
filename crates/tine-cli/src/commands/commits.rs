//! `tine commit` and `commits`: creates and lists commits.

use clap::{Args, Subcommand};
use tine_core::Reference;
use tine_engine::{CommitQuery, CommitView, FieldConflict, Listing, NewCommit, WindowRef};
use tine_store::OpenMode;

use super::{blame, drift, keys, resolve};
use crate::arguments::{Globals, reference};
use crate::command_error::Result;
use crate::commit_view::{commit_line, window, write_conflicts};
use crate::session::CliSession;
use crate::terminal::Paging;
use crate::terminal::text::{cut, visible};

#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    override_usage = "tine commit [OPTIONS] --message <TEXT> [START END]\n       tine commit COMMAND",
    after_help = "\
A commit seals an unbroken range of turns, with its names, keywords and topics and what is known \
at its end. Without START and END it seals all turns of the branch that no commit covers yet.

Examples:
  tine commit -m 'Research complete'
  tine commit main~4 main~2 -m 'Where to'
  tine commit --branch osaka -m 'Osaka instead' --sign
  tine commit list"
)]
pub(crate) struct CommitArgs {
    #[command(subcommand)]
    subcommand: Option<CommitCommand>,
    /// First turn [default: the first that no commit covers]
    #[arg(value_parser = reference, requires = "end")]
    start: Option<Reference>,
    /// Last turn [default: the tip of the branch]
    #[arg(value_parser = reference)]
    end: Option<Reference>,
    /// Message of the commit
    #[arg(short, long, visible_alias = "msg", value_name = "TEXT", required = true)]
    message: Option<String>,
    /// Branch to commit on [default: main, or the branch of START and END]
    #[arg(short, long)]
    branch: Option<String>,
    /// Author of the commit [default: the actor]
    #[arg(long, value_name = "NAME")]
    author: Option<String>,
    /// Sign with a key of `tine commit key` [default: the key `default`]
    #[arg(long, value_name = "KEY", num_args = 0..=1, default_missing_value = keys::DEFAULT)]
    sign: Option<String>,
    /// Idempotency key: repeating the call with it changes nothing
    #[arg(long)]
    key: Option<String>,
}

#[derive(Debug, Subcommand)]
enum CommitCommand {
    /// List commits, newest first
    List(CommitsArgs),
    /// List or resolve the conflicts of merges
    Resolve(resolve::ResolveArgs),
    /// Find the turn that a text or a fact comes from
    Blame(blame::BlameArgs),
    /// Binary-search for the first turn that matches
    Bisect(blame::BisectArgs),
    /// Show how far the topic has moved, commit by commit
    Drift(drift::DriftArgs),
    /// Create and show keys that sign commits
    Key(keys::KeyArgs),
}

pub(crate) fn run(globals: &Globals, mut args: CommitArgs) -> Result<()> {
    let open = || CliSession::open(globals, OpenMode::Existing);
    match args.subcommand.take() {
        None => commit(&open()?, args),
        Some(CommitCommand::List(args)) => commits(&open()?, args),
        Some(CommitCommand::Resolve(args)) => resolve::resolve(&open()?, args),
        Some(CommitCommand::Blame(args)) => blame::blame(&open()?, args),
        Some(CommitCommand::Bisect(args)) => blame::bisect(&open()?, args),
        Some(CommitCommand::Drift(args)) => drift::drift(&open()?, &args),
        Some(CommitCommand::Key(args)) => keys::key(globals, args),
    }
}

fn commit(session: &CliSession, args: CommitArgs) -> Result<()> {
    // Load the signing key first: if it is unusable, no commit is created.
    let key = args.sign.as_deref().map(keys::load_private_key).transpose()?;
    let window = args.start.zip(args.end).map(|(start, end)| WindowRef { start, end });
    // An explicit window determines the branch.
    let branch = match &window {
        Some(_) => args.branch,
        None => args.branch.or_else(|| session.other_branch()),
    };
    let request = NewCommit {
        conversation: session.conversation()?,
        branch,
        window,
        message: args.message.unwrap_or_default(),
        author: args.author,
    };
    let versions = session.engine.versioning();
    let mut made = versions.commit(&session.call_with(args.key.as_deref()), request)?;
    if let Some(key) = key {
        let hash = made.hash.to_string();
        made = versions.sign_commit(&session.call, &hash, &key.public(), &key.sign(&hash))?;
    }
    if session.answered_json(|| made.clone())? {
        return Ok(());
    }
    report(session, &made)
}

/// Writes a summary of the new commit.
pub(super) fn report(session: &CliSession, made: &CommitView) -> Result<()> {
    let screen = &session.screen;
    screen.text(Paging::Direct, |out| {
        let label = screen.paint.branch(&format!("[{}]", visible(made.commit.branch.as_str())));
        let hash = screen.paint.hash(&made.hash.short());
        writeln!(out, "{label} {hash}  {}", cut(&made.commit.message, 72))?;
        writeln!(out, "  {}", window(made))?;
        let Some(facets) = &made.commit.facets else { return Ok(()) };
        for (name, set) in [("entities", &facets.entities), ("topics", &facets.topics)] {
            let terms: Vec<&str> = set.values().map(|seen| seen.text.as_str()).collect();
            if !terms.is_empty() {
                writeln!(out, "  {name}: {}", cut(&terms.join(", "), 90))?;
            }
        }
        if let Some(signature) = &made.signature {
            writeln!(out, "  signed by {}", signature.public_key)?;
        }
        let conflicts = FieldConflict::all_of(&facets.state);
        if conflicts.is_empty() { Ok(()) } else { write_conflicts(out, screen, &conflicts) }
    })
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tine commit list
  tine commit list --branch osaka -n 5
  tine log --graph                  draw the graph of commits")]
pub(crate) struct CommitsArgs {
    /// Only commits that this branch contains
    #[arg(short, long)]
    branch: Option<String>,
    /// Show only the last N
    #[arg(short = 'n', long = "number", alias = "n", value_name = "N")]
    number: Option<usize>,
}

pub(crate) fn commits(session: &CliSession, args: CommitsArgs) -> Result<()> {
    let found = listed(session, args.branch, args.number)?;
    session.list(&found, |it| commit_line(&session.screen, it, 0))
}

/// Lists the commits of the conversation, newest first.
pub(super) fn listed(
    session: &CliSession,
    branch: Option<String>,
    number: Option<usize>,
) -> Result<Listing<CommitView>> {
    let query = CommitQuery { conversation: Some(session.conversation()?), branch };
    let versions = session.engine.versioning();
    session.pages(number, |page| versions.commits(&session.call, query.clone(), page))
}

/// Writes commits as JSON if `--json` is set, and returns whether it did.
pub(super) fn answered(session: &CliSession, found: &Listing<CommitView>) -> Result<bool> {
    session.answered_json(|| found.clone())
}
