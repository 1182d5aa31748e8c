//! `tine migrate`: copies a whole store, or upgrades a database to the current format.

use std::io::{IsTerminal, Write, stderr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Args;
use serde::Serialize;
use tine_core::ErrorKind;
use tine_engine::{Engine, SystemClock, SystemEntropy};
use tine_postgres::PostgresStore;
use tine_store::copy::{CopyProgress, copy};
use tine_store::{OpenMode, Store};

use crate::arguments::Globals;
use crate::command_error::{CommandError, Result};
use crate::session::limits;
use crate::store_location::StoreLocation;
use crate::terminal::Screen;
use crate::terminal::text::count;

/// Minimum time between redraws.
const DRAW_INTERVAL: Duration = Duration::from_millis(100);

/// Width of the bar.
const BAR_COLUMNS: u64 = 30;

#[derive(Debug, Args)]
#[command(after_help = "\
The target must be empty or from an interrupted run, which continues. At the end all records of
both are compared. Stop programs that write to the source first; later changes are copied by the
next run.

Examples:
  tine store migrate ~/.local/share/tine postgres://tine@db1,db2,db3/tine
  tine store migrate postgres://tine@db/tine /mnt/backup/tine
  tine store migrate --dry-run postgres://tine@db/tine     show the format of a store")]
pub(crate) struct MigrateArgs {
    /// Store to copy: a folder or a postgres:// URL
    #[arg(value_name = "STORE")]
    from: PathBuf,
    /// Store to copy to; without it, the format of the first is upgraded
    #[arg(value_name = "STORE")]
    to: Option<PathBuf>,
    /// Show what would be done, and change nothing
    #[arg(long)]
    dry_run: bool,
}

/// The format of a store before and after.
#[derive(Serialize)]
struct StoreFormat {
    store: String,
    /// `None` if there is no store.
    format: Option<i32>,
    /// The current format; `None` for a folder, which is upgraded whenever it is opened.
    newest: Option<i32>,
}

#[derive(Serialize)]
struct Migrated {
    from: String,
    to: String,
    operations: u64,
    found: u64,
    turns: u64,
    conversations: u64,
    entries: u64,
}

pub(crate) fn migrate(globals: &Globals, args: &MigrateArgs) -> Result<()> {
    globals.require_local("tine store migrate", "name both stores")?;
    let screen = Screen::new(globals);
    let from = StoreLocation::parse(&args.from)?;
    let to = args.to.as_deref().map(StoreLocation::parse).transpose()?;
    match (to, args.dry_run) {
        (to, true) => {
            let all = [Some(from), to].into_iter().flatten().map(|location| format(&location));
            let all = all.collect::<Result<Vec<_>>>()?;
            if screen.json {
                return screen.document(&all);
            }
            all.iter().try_for_each(|format| screen.line(&describe_format(format)))
        }
        (None, false) => {
            from.open(OpenMode::Existing)?;
            let format = format(&from)?;
            if screen.json {
                return screen.document(&format);
            }
            screen.line(&describe_format(&format))
        }
        (Some(to), false) => copy_store(&screen, &from, &to),
    }
}

fn format(location: &StoreLocation) -> Result<StoreFormat> {
    let (format, newest) = match location {
        StoreLocation::Folder(_) => (None, None),
        StoreLocation::Database(address) => {
            let found = PostgresStore::pending_migration(address)?;
            (found.from, Some(found.to))
        }
    };
    Ok(StoreFormat { store: location.to_string(), format, newest })
}

fn describe_format(format: &StoreFormat) -> String {
    let StoreFormat { store, format, newest } = format;
    match (format, newest) {
        (_, None) => format!("{store}: a folder, upgraded whenever it is opened"),
        (None, Some(_)) => format!("{store}: no store; it would be created"),
        (Some(now), Some(newest)) if now == newest => format!("{store}: format {now}, the newest"),
        (Some(now), Some(newest)) => {
            format!("{store}: format {now}; it would be upgraded to format {newest}")
        }
    }
}

fn copy_store(screen: &Screen, from: &StoreLocation, to: &StoreLocation) -> Result<()> {
    let source = from.open(OpenMode::Existing)?;
    let target = to.open(OpenMode::Create)?;
    let mut bar = CopyProgressBar::new();
    let done = copy(&*source, &*target, &mut |done| bar.draw(done));
    bar.clear();
    let done = done?;
    verify(target)?;
    if screen.json {
        let CopyProgress { operations, found, turns, conversations, entries, .. } = done;
        let (from, to) = (from.to_string(), to.to_string());
        return screen.document(&Migrated {
            from,
            to,
            operations,
            found,
            turns,
            conversations,
            entries,
        });
    }
    let before = match done.found {
        0 => String::new(),
        found => format!(" ({found} of them existed)"),
    };
    screen.line(&format!(
        "{}, {}{before} and {} of what was learned are in {to}, compared and verified",
        count(done.conversations, "conversation"),
        count(done.operations, "operation"),
        match done.entries {
            1 => "1 entry".to_owned(),
            more => format!("{more} entries"),
        }
    ))
}

fn verify(store: Arc<dyn Store>) -> Result<()> {
    let engine = Engine::with(store, Arc::new(SystemClock), Arc::new(SystemEntropy), limits());
    let found = engine.verify()?;
    match found.problems.first() {
        None => Ok(()),
        Some(problem) => Err(CommandError::refused(
            ErrorKind::Corrupt,
            format!(
                "the copy is as damaged as the source: {}: {}; `tine store verify` lists all damage",
                problem.record, problem.why
            ),
        )),
    }
}

/// A progress bar on standard error, if it is a terminal.
struct CopyProgressBar {
    shown: bool,
    drawn: Option<Instant>,
}

impl CopyProgressBar {
    fn new() -> Self {
        CopyProgressBar { shown: stderr().is_terminal(), drawn: None }
    }

    fn draw(&mut self, done: &CopyProgress) {
        if !self.shown || self.drawn.is_some_and(|drawn| drawn.elapsed() < DRAW_INTERVAL) {
            return;
        }
        self.drawn = Some(Instant::now());
        let of = done.source_operations.max(done.operations).max(1);
        let full = usize::try_from(BAR_COLUMNS * done.operations / of).unwrap_or(0);
        let bar = format!("{}{}", "█".repeat(full), "░".repeat(BAR_COLUMNS as usize - full));
        let doing = match done.conversations {
            0 => format!("{} of {of} operations", done.operations),
            compared => format!("compared {}", count(compared, "conversation")),
        };
        write!(stderr(), "\r\x1b[K{bar} {doing}").ok();
    }

    fn clear(&self) {
        if self.shown {
            write!(stderr(), "\r\x1b[K").ok();
        }
    }
}
