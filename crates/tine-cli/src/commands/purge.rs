//! `tine purge`: erases content permanently. The engine returns a confirmation word with the list
//! of what would be erased, and erases nothing until the word is sent back.

use std::io::{self, BufRead, IsTerminal, Write};

use clap::Args;
use tine_core::Reference;
use tine_engine::{Purge, PurgeTarget, Purged, TurnRef};

use crate::arguments::reference;
use crate::command_error::{CommandError, Result};
use crate::session::CliSession;
use crate::terminal::Paging;
use crate::terminal::text::{count, visible};
use crate::transcript::one_line;

/// Maximum number of turns listed one by one.
const LISTED: usize = 10;

#[derive(Debug, Args)]
#[command(after_help = "\
Erases content everywhere in the store; hashes and the shape of the tree stay. This cannot be undone. \
Earlier exports and backups are not changed. To hide turns instead, use `tine delete`.

Examples:
  tine store purge a9d2e63be84c           list what would be erased, and ask
  tine store purge --whole -c trip --yes  erase a whole conversation without asking
  tine store purge src_0123456789abcdef0123456789abcdef   a source and all facts found in it")]
pub(crate) struct PurgeArgs {
    /// Turn, or a source such as src_…
    #[arg(value_name = "REF", value_parser = reference, required_unless_present = "whole")]
    turn: Option<Reference>,
    /// Erase the whole conversation
    #[arg(long, conflicts_with = "turn")]
    whole: bool,
    /// Do not ask for confirmation
    #[arg(short, long)]
    yes: bool,
}

pub(crate) fn purge(session: &CliSession, args: &PurgeArgs) -> Result<()> {
    session.require_whole_id("purge")?;
    let target = match &args.turn {
        Some(named) => match named.as_str().parse() {
            Ok(source) => PurgeTarget::Source(source),
            Err(_) => PurgeTarget::Turn(session.turn(named)?),
        },
        None => PurgeTarget::Conversation(session.named_or_only()?),
    };
    let ask = Purge { target: target.clone(), confirm: None };
    let plan = session.engine.purge(&session.call, ask)?;
    let Some(word) = plan.confirm.clone() else { return report(session, &plan, "erased") };
    if !args.yes {
        report(session, &plan, "would erase")?;
        if !confirmed(session, &word)? {
            return Err(CommandError::invalid("nothing was erased; --yes erases without asking"));
        }
    }
    let done = session.engine.purge(&session.call, Purge { target, confirm: Some(word) })?;
    report(session, &done, "erased")
}

/// Asks on a terminal for the confirmation word.
fn confirmed(session: &CliSession, word: &str) -> Result<bool> {
    if session.screen.json || !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return Ok(false);
    }
    let mut stderr = io::stderr();
    write!(stderr, "This cannot be undone. Type {word} to erase: ")?;
    stderr.flush()?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    Ok(answer.trim() == word)
}

fn report(session: &CliSession, plan: &Purged, verb: &str) -> Result<()> {
    if session.answered_json(|| plan.clone())? {
        return Ok(());
    }
    session.screen.text(Paging::Direct, |out| {
        let turns = count(plan.turns.len() as u64, "turn");
        let operations = count(plan.operations, "operation");
        writeln!(out, "{verb} the content of {turns}, and of {operations}")?;
        for turn in plan.turns.iter().take(LISTED) {
            match session.engine.turn(&session.call, TurnRef::of(*turn)) {
                Ok(turn) => writeln!(out, "  {}", one_line(&session.screen, &turn, 2))?,
                // Deleted turns are erased as well, although they are not shown.
                Err(_) => writeln!(out, "  {turn} (not shown)")?,
            }
        }
        more(out, plan.turns.len())?;
        if !plan.sources.is_empty() {
            let observations = count(plan.observations, "observation");
            writeln!(out, "and {observations}, with the bytes of:")?;
        }
        for source in plan.sources.iter().take(LISTED) {
            writeln!(out, "  {source}")?;
        }
        more(out, plan.sources.len())?;
        if !plan.other_holders.is_empty() {
            writeln!(out, "turns with the same content, which keep it:")?;
        }
        for tine_api::Holder { conversation, turn } in plan.other_holders.iter().take(LISTED) {
            writeln!(out, "  {turn} in {}", visible(conversation.as_str()))?;
        }
        more(out, plan.other_holders.len())
    })
}

fn more(out: &mut dyn Write, all: usize) -> Result<()> {
    if all > LISTED {
        writeln!(out, "  … and {} more", all - LISTED)?;
    }
    Ok(())
}
