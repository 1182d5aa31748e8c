//! `tine undo`, `redo` and `ops`: the operation log.

use clap::Args;
use tine_engine::{OperationView, Page, Undone};
use tine_formats::view;

use crate::failure::Result;
use crate::session::Session;
use crate::terminal::text::{cut, visible};
use crate::terminal::{Paging, short_time};

#[derive(Debug, Args)]
#[command(after_help = "\
Any change that no later one builds on can be taken back, not only the last.

Examples:
  tine undo
  tine undo 17                      a number from `tine ops`")]
pub(crate) struct UndoArgs {
    /// The change [default: the last one]
    #[arg(value_name = "SEQ")]
    operation: Option<u64>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tine redo
  tine redo 17")]
pub(crate) struct RedoArgs {
    /// The change [default: the one undone last]
    #[arg(value_name = "SEQ")]
    operation: Option<u64>,
}

pub(crate) fn undo(session: &Session, args: &UndoArgs) -> Result<()> {
    let conversation = session.conversation()?;
    let done = session.engine.undo(&session.call, &conversation, args.operation)?;
    report(session, &done, "undone")
}

pub(crate) fn redo(session: &Session, args: &RedoArgs) -> Result<()> {
    let conversation = session.conversation()?;
    let done = session.engine.redo(&session.call, &conversation, args.operation)?;
    report(session, &done, "redone")
}

fn report(session: &Session, done: &Undone, verb: &str) -> Result<()> {
    if session.answered_json(|| view::Undone::from(done.clone()))? {
        return Ok(());
    }
    session.screen.line(&format!("operation {} ({}) is {verb}", done.target, visible(&done.kind)))
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tine ops
  tine ops -n 5 --json")]
pub(crate) struct OpsArgs {
    /// Only the last N changes
    #[arg(short = 'n', long = "number", value_name = "N")]
    number: Option<usize>,
}

pub(crate) fn ops(session: &Session, args: &OpsArgs) -> Result<()> {
    let conversation = session.conversation()?;
    let wanted = args.number.unwrap_or(usize::MAX);
    let mut operations: Vec<OperationView> = Vec::new();
    let mut cursor = None;
    while operations.len() < wanted {
        let missing = (wanted - operations.len()).min(session.limits().page_rows);
        let page = Page { cursor: cursor.take(), limit: Some(missing) };
        let listing = session.engine.operations(&session.call, &conversation, page)?;
        operations.extend(listing.items);
        cursor = listing.next;
        if cursor.is_none() {
            break;
        }
    }
    let items = || operations.iter().cloned().map(view::Operation::from).collect();
    if session.answered_json(|| view::Items { items: items(), next: cursor.clone() })? {
        return Ok(());
    }
    let paint = session.screen.paint;
    session.screen.text(Paging::Paged, |out| {
        for operation in &operations {
            let room = session.screen.columns.map_or(200, |columns| columns.saturating_sub(37));
            let state = if operation.undone { paint.warning(" (undone)") } else { String::new() };
            let room = room.saturating_sub(if operation.undone { 9 } else { 0 });
            writeln!(
                out,
                "{:>5}  {}  {:<10}  {}{state}",
                operation.seq,
                paint.dim(&short_time(operation.at)),
                cut(&operation.actor, 10),
                cut(&format!("{}: {}", operation.kind, operation.summary), room),
            )?;
        }
        Ok(())
    })
}
