//! `tine undo`, `redo` and `ops`: the operation log.

use clap::Args;
use tine_core::ConversationId;
use tine_engine::{OperationView, Undone};

use crate::command_error::Result;
use crate::session::CliSession;
use crate::terminal::text::{cut, visible};
use crate::terminal::{Paging, short_time};

/// Id of the project's own log, for changes that belong to no conversation.
const PROJECT_LOG: &str = "~project";

#[derive(Debug, Args)]
#[command(after_help = "\
Any change can be undone, not only the last, unless a later change depends on it.

Examples:
  tine undo
  tine undo 17                      a number from `tine ops`
  tine undo --project-log           a change of facts, entities or schemas")]
pub(crate) struct UndoArgs {
    /// Number of the change [default: the last]
    #[arg(value_name = "SEQ")]
    operation: Option<u64>,
    /// Use the log of the project: changes of facts, entities and schemas
    #[arg(long)]
    project_log: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tine redo
  tine redo 17
  tine redo --project-log")]
pub(crate) struct RedoArgs {
    /// Number of the change [default: the last that was undone]
    #[arg(value_name = "SEQ")]
    operation: Option<u64>,
    /// Use the log of the project: changes of facts, entities and schemas
    #[arg(long)]
    project_log: bool,
}

pub(crate) fn undo(session: &CliSession, args: &UndoArgs) -> Result<()> {
    let conversation = log(session, args.project_log)?;
    let done = session.engine.undo(&session.call, &conversation, args.operation)?;
    report(session, &done, "undone")
}

pub(crate) fn redo(session: &CliSession, args: &RedoArgs) -> Result<()> {
    let conversation = log(session, args.project_log)?;
    let done = session.engine.redo(&session.call, &conversation, args.operation)?;
    report(session, &done, "redone")
}

/// Returns the log of the conversation, or the project's own.
fn log(session: &CliSession, of_project: bool) -> Result<ConversationId> {
    match of_project {
        true => Ok(ConversationId::from_stored(PROJECT_LOG)),
        false => session.conversation(),
    }
}

fn report(session: &CliSession, done: &Undone, verb: &str) -> Result<()> {
    if session.answered_json(|| done.clone())? {
        return Ok(());
    }
    session.screen.line(&format!("operation {} ({}) is {verb}", done.target, visible(&done.kind)))
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tine ops
  tine ops -n 5 --json
  tine ops --project-log            changes of facts, entities and schemas")]
pub(crate) struct OpsArgs {
    /// Show only the last N
    #[arg(short = 'n', long = "number", value_name = "N")]
    number: Option<usize>,
    /// Use the log of the project: changes of facts, entities and schemas
    #[arg(long)]
    project_log: bool,
}

pub(crate) fn ops(session: &CliSession, args: &OpsArgs) -> Result<()> {
    let conversation = log(session, args.project_log)?;
    let ask = |page| session.engine.operations(&session.call, &conversation, page);
    let operations = session.pages(args.number, ask)?;
    if session.answered_json(|| operations.clone())? {
        return Ok(());
    }
    let paint = session.screen.paint;
    session.screen.text(Paging::Paged, |out| {
        for operation in &operations.items {
            let room = session.screen.columns.map_or(200, |columns| columns.saturating_sub(37));
            let state = if operation.undone { paint.warning(" (undone)") } else { String::new() };
            let room = room.saturating_sub(if operation.undone { 9 } else { 0 });
            writeln!(
                out,
                "{:>5}  {}  {:<10}  {}{state}",
                operation.seq,
                paint.dim(&short_time(operation.at)),
                cut(&operation.actor, 10),
                cut(&describe(operation), room),
            )?;
        }
        Ok(())
    })
}

/// Formats an operation's kind and summary.
fn describe(operation: &OperationView) -> String {
    match operation.summary.as_str() {
        "" => operation.kind.clone(),
        summary => format!("{}: {summary}", operation.kind),
    }
}
