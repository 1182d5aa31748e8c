//! `tine commit` and `commits`: creates and lists commits.

use clap::Args;
use tine_core::Reference;
use tine_engine::{CommitQuery, CommitView, FieldConflict, Listing, NewCommit, WindowRef};

use super::keys;
use crate::arguments::reference;
use crate::command_error::Result;
use crate::commit_view::{commit_line, window, write_conflicts};
use crate::session::CliSession;
use crate::terminal::Paging;
use crate::terminal::text::{cut, visible};

#[derive(Debug, Args)]
#[command(after_help = "\
A commit seals an unbroken stretch of turns with what it is about: names, keywords, topics, and \
what is known at its end. Without START and END it seals all that no commit of the branch covers \
yet.

Examples:
  tine commit -m 'Research complete'
  tine commit main~4 main~2 -m 'Where to'
  tine commit --branch osaka -m 'Osaka instead' --sign")]
pub(crate) struct CommitArgs {
    /// The first turn [default: all that is new]
    #[arg(value_parser = reference, requires = "end")]
    start: Option<Reference>,
    /// The last turn
    #[arg(value_parser = reference)]
    end: Option<Reference>,
    /// What it is about
    #[arg(short, long, visible_alias = "msg", value_name = "TEXT")]
    message: String,
    /// The branch [default: main, or the one on which the turns lie]
    #[arg(short, long)]
    branch: Option<String>,
    /// Who made it [default: whoever calls]
    #[arg(long, value_name = "NAME")]
    author: Option<String>,
    /// Vouch for it with a key of `tine key` [default: the key `default`]
    #[arg(long, value_name = "KEY", num_args = 0..=1, default_missing_value = keys::DEFAULT)]
    sign: Option<String>,
    /// A key that makes the call safe to repeat
    #[arg(long)]
    key: Option<String>,
}

pub(crate) fn commit(session: &CliSession, args: CommitArgs) -> Result<()> {
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
        message: args.message,
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
  tine commits
  tine commits --branch osaka -n 5
  tine log --graph                  the same as a graph")]
pub(crate) struct CommitsArgs {
    /// Only those that the last commit of this branch builds on
    #[arg(short, long)]
    branch: Option<String>,
    /// Only the last N
    #[arg(short = 'n', long = "number", alias = "n", value_name = "N")]
    number: Option<usize>,
}

pub(crate) fn commits(session: &CliSession, args: CommitsArgs) -> Result<()> {
    let found = listed(session, args.branch, args.number)?;
    if answered(session, &found)? {
        return Ok(());
    }
    session.screen.text(Paging::Paged, |out| {
        for it in &found.items {
            writeln!(out, "{}", commit_line(&session.screen, it, 0))?;
        }
        Ok(())
    })
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
