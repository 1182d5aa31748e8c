//! `tine watch`: shows every change as it happens, until Ctrl-C.
//!
//! Subscribes to the events of a server, or polls the feed of a store to see changes of other
//! processes. Either way, each operation is shown exactly once and in order.

use std::thread;
use std::time::Duration;

use clap::Args;
use tine_core::{ErrorKind, ProjectId};
use tine_engine::{Engine, FeedEntry, FeedFilter};
use tine_store::{FeedPosition, OpenMode};

use crate::arguments::Globals;
use crate::command_error::{CommandError, Result};
use crate::session::{CliSession, SessionEngine};
use crate::terminal::precise_time;
use crate::terminal::text::{cut, visible};

/// Interval at which the feed of a store is polled.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Maximum number of operations per read.
const PAGE_ENTRIES: usize = 128;

#[derive(Debug, Args)]
#[command(after_help = "\
Shows all projects without --project, and all conversations without -c. Each line of --json has its
position, from which --after continues.

Examples:
  tine server watch
  tine server watch -c trip
  tine server watch --after 0 --json       start with the first change ever made
  tine server watch --server http://127.0.0.1:8000")]
pub(crate) struct WatchArgs {
    /// Start after this position; 0 is the beginning [default: now]
    #[arg(long, value_name = "POSITION")]
    after: Option<u64>,
}

pub(crate) fn watch(globals: &Globals, args: &WatchArgs) -> Result<()> {
    let session = CliSession::open(globals, OpenMode::Existing)?;
    end_on_interrupt()?;
    let project = globals.project().is_some().then(|| session.call.project.clone());
    let conversation = session.named_conversation().cloned();
    let filter = FeedFilter { project, conversation };
    let after = args.after.map(FeedPosition);
    match &session.engine {
        SessionEngine::Local(engine) => poll_feed(&session, engine, &filter, after),
        SessionEngine::Remote(client) => {
            let mut follower = client.follow(filter, after)?;
            loop {
                let entry = follower.wait()?;
                write(&session, entry)?;
            }
        }
    }
}

/// Polls the feed of a store.
fn poll_feed(
    session: &CliSession,
    engine: &Engine,
    filter: &FeedFilter,
    after: Option<FeedPosition>,
) -> Result<()> {
    let mut at = match after {
        Some(at) => at,
        None => engine.feed_end()?,
    };
    loop {
        let (entries, now) = match engine.feed(at, filter, PAGE_ENTRIES) {
            Err(error) if error.kind() == ErrorKind::Busy => (Vec::new(), at),
            read => read?,
        };
        at = at.max(now);
        if entries.is_empty() {
            thread::sleep(POLL_INTERVAL);
        }
        for entry in entries {
            write(session, entry)?;
        }
    }
}

fn write(session: &CliSession, entry: FeedEntry) -> Result<()> {
    let screen = &session.screen;
    if screen.json {
        return screen.document(&entry);
    }
    let (paint, operation) = (screen.paint, entry.operation);
    let mut place = operation.conversation.to_string();
    if entry.project != ProjectId::default() {
        place = format!("{}/{place}", entry.project);
    }
    let place = cut(&place, 24);
    let room = screen.columns.map_or(200, |columns| columns.saturating_sub(60));
    screen.line(&format!(
        "{}  {}  {}  {}",
        paint.dim(&precise_time(operation.at)),
        paint.bold(&visible(&place)),
        cut(&format!("{}: {}", operation.kind, operation.summary), room.max(20)),
        paint.dim(&cut(&operation.actor, 16)),
    ))
}

/// Makes Ctrl-C end the process successfully.
pub(crate) fn end_on_interrupt() -> Result<()> {
    let internal = |error: std::io::Error| {
        CommandError::refused(ErrorKind::Internal, format!("Ctrl-C cannot be waited for: {error}"))
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(internal)?;
    thread::spawn(move || {
        if runtime.block_on(tokio::signal::ctrl_c()).is_ok() {
            std::process::exit(0);
        }
    });
    Ok(())
}
