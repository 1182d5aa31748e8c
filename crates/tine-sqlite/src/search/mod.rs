//! The index of the embedded store: FTS5 in a file of its own, `search.db`.
//!
//! - Nothing here touches `tine.db` or its locks. The append path knows nothing of the index.
//! - It is derived. A file that is missing, damaged, of another format or of another program is
//!   made anew, in place and under SQLite's own locks, so that other processes go on unharmed.
//! - Whoever brings it forward holds its write lock from before the records are read until the
//!   commit: two processes do not do the same work, and a turn that was erased meanwhile is
//!   either not read or removed afterwards.
//! - Commits need not be durable: what is lost is indexed again. They are atomic, also when the
//!   process is killed.
//! - Of a store that may only be read, each connection has an index of its own, in a file that
//!   SQLite deletes with it: slow, and better than no answer.
//! - Erased turns leave no byte: their terms are merged away and the file is written anew. A
//!   process that dies in between leaves a note, and the next one that writes finishes the work.

mod query;
mod writing;

use crate::error::translate;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use tine_store::{
    FeedPosition, Index, IndexMark, IndexState, Ranked, Result, SearchFilter, StoreError,
    TextQuery, TurnLoc,
};

use self::writing::Writing;
use super::{BUSY_TIMEOUT_MS, IDLE_READERS, OpenOptions, rows};

/// The index within the store's folder.
pub const INDEX_FILE: &str = "search.db";

/// The form of the tables and of the terms in them. Raise it when either changes.
const FORMAT: i64 = 1;

/// "TinS" in the file's header.
const APPLICATION_ID: i64 = 0x5469_6e53;

/// Terms gathered in memory before they are written: larger batches make a smaller, faster index.
const GATHERED_BYTES: i64 = 64 << 20;

/// Memory for pages of each connection: a word that is in hundreds of turns is looked up on as
/// many pages, and with SQLite's own two megabytes each search would read them all anew.
const CACHE_KIB: i64 = 8 << 10;

/// Times that a damaged index is made anew within one call.
const ATTEMPTS: usize = 3;

type Sql<T> = rusqlite::Result<T>;

/// The index of one store.
#[derive(Debug)]
pub(super) struct SearchIndex {
    file: PathBuf,
    vfs: Option<String>,
    idle: Mutex<Vec<Connection>>,
    /// The store may only be read: nothing is written beside it.
    in_passing: bool,
}

impl SearchIndex {
    pub(super) fn new(folder: &Path, options: &OpenOptions) -> Self {
        let (file, vfs) = (folder.join(INDEX_FILE), options.vfs.clone());
        SearchIndex { file, vfs, idle: Mutex::default(), in_passing: false }
    }

    /// The index of a store that may only be read.
    pub(super) fn in_passing(folder: &Path, options: &OpenOptions) -> Self {
        SearchIndex { in_passing: true, ..SearchIndex::new(folder, options) }
    }

    pub(super) fn state(&self) -> Result<IndexState> {
        self.run(|connection| progress(connection).map(|(state, _)| state).map_err(Failed::from))
    }

    pub(super) fn index(&self, body: &mut dyn FnMut(&mut dyn Index) -> Result<()>) -> Result<()> {
        self.run(|connection| {
            connection.execute_batch("BEGIN IMMEDIATE")?;
            let mut writing = Writing::new(connection)?;
            let done = body(&mut writing);
            if let Some(error) = writing.take_failure() {
                return Err(Failed::Index(error));
            }
            if let Err(error) = done {
                connection.execute_batch("ROLLBACK")?;
                return Err(Failed::Records(error));
            }
            writing.finish()?;
            connection.execute_batch("COMMIT")?;
            Ok(sweep(connection)?)
        })
    }

    pub(super) fn unindex(&self, turns: &[TurnLoc]) -> Result<()> {
        if !self.file.exists() {
            return Ok(());
        }
        self.index(&mut |index| turns.iter().try_for_each(|turn| index.erase(*turn)))?;
        match self.run(|connection| Ok(progress(connection)?))? {
            (_, false) => Ok(()),
            (_, true) => Err(StoreError::Busy { waited_ms: BUSY_TIMEOUT_MS }),
        }
    }

    pub(super) fn search(
        &self,
        query: &TextQuery,
        filter: &SearchFilter,
        through: FeedPosition,
    ) -> Result<Option<Ranked>> {
        self.run(|connection| {
            connection.execute_batch("BEGIN")?;
            let found = match progress(connection)?.0 {
                IndexState::Through(mark) if mark.at >= through => {
                    query::search(connection, query, filter).map(Some)
                }
                _ => Ok(None),
            };
            connection.execute_batch("COMMIT")?;
            Ok(found?)
        })
    }

    /// Runs something on a connection. A damaged index is made anew, and the work done once more.
    fn run<T>(
        &self,
        mut work: impl FnMut(&Connection) -> std::result::Result<T, Failed>,
    ) -> Result<T> {
        let mut attempt = 0;
        loop {
            attempt += 1;
            let (error, lost) = match self.take() {
                Err(error) => (error, false),
                Ok(connection) => match work(&connection) {
                    Ok(done) => {
                        self.give_back(connection);
                        return Ok(done);
                    }
                    Err(Failed::Records(error)) => return Err(error),
                    Err(Failed::Index(error)) => {
                        connection.execute_batch("ROLLBACK").ok();
                        // Another process may have made it anew under this connection.
                        (error, matches!(is_current(&connection), Ok(false)))
                    }
                },
            };
            match error {
                error if attempt >= ATTEMPTS => return Err(self.told(error)),
                error if is_damage(&error) => self.make_anew()?,
                _ if lost => self.drop_idle(),
                error => return Err(self.told(error)),
            }
        }
    }

    fn take(&self) -> Sql<Connection> {
        if !self.in_passing && !self.file.exists() {
            // Somebody threw it away: what is still open is nobody's.
            self.drop_idle();
        }
        let idle = self.idle.lock().ok().and_then(|mut idle| idle.pop());
        idle.map_or_else(|| self.open(), Ok)
    }

    fn give_back(&self, connection: Connection) {
        if let Ok(mut idle) = self.idle.lock()
            && idle.len() < IDLE_READERS
        {
            idle.push(connection);
        }
    }

    fn drop_idle(&self) {
        if let Ok(mut idle) = self.idle.lock() {
            idle.clear();
        }
    }

    fn open(&self) -> Sql<Connection> {
        prepared(if self.in_passing { Connection::open("")? } else { self.connect()? })
    }

    fn connect(&self) -> Sql<Connection> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = match &self.vfs {
            Some(vfs) => Connection::open_with_flags_and_vfs(&self.file, flags, vfs.as_str())?,
            None => Connection::open_with_flags(&self.file, flags)?,
        };
        connection.busy_timeout(busy_timeout())?;
        Ok(connection)
    }

    /// Makes an empty database of whatever the file is. Another process that finds the same
    /// damage at the same time may do it again: nothing is lost but work.
    fn make_anew(&self) -> Result<()> {
        self.drop_idle();
        let again = || -> Sql<()> {
            let connection = self.connect()?;
            // A first look, whatever comes of it, lets SQLite keep the log that others may use.
            let look: Sql<i64> =
                connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0));
            drop(look);
            connection.set_db_config(DbConfig::SQLITE_DBCONFIG_RESET_DATABASE, true)?;
            connection.execute_batch("VACUUM")?;
            connection.set_db_config(DbConfig::SQLITE_DBCONFIG_RESET_DATABASE, false)?;
            Ok(())
        };
        again().map_err(|error| self.told(error))
    }

    fn told(&self, error: rusqlite::Error) -> StoreError {
        match translate(error) {
            StoreError::Corrupt { why, .. } => {
                let record = format!("search index {INDEX_FILE}, which can be deleted");
                StoreError::Corrupt { record, why }
            }
            other => other,
        }
    }
}

/// Whose failure it was.
enum Failed {
    /// The index's own.
    Index(rusqlite::Error),
    /// That of the records that were to be indexed.
    Records(StoreError),
}

impl From<rusqlite::Error> for Failed {
    fn from(error: rusqlite::Error) -> Self {
        Failed::Index(error)
    }
}

fn busy_timeout() -> Duration {
    Duration::from_millis(BUSY_TIMEOUT_MS)
}

fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}

fn is_damage(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase))
}

/// A connection over tables that are there.
fn prepared(connection: Connection) -> Sql<Connection> {
    let started = Instant::now();
    // Switching to a log is refused at once, whatever the timeout, when somebody else is at it.
    loop {
        match prepare(&connection) {
            Err(error) if is_busy(&error) && started.elapsed() < busy_timeout() => {
                std::thread::sleep(Duration::from_millis(5));
            }
            done => return done.map(|()| connection),
        }
    }
}

/// Makes the tables in a new file. A file of another format or of another program counts as
/// damaged.
fn prepare(connection: &Connection) -> Sql<()> {
    connection.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(()))?;
    connection.pragma_update(None, "synchronous", "normal")?;
    connection.pragma_update(None, "cache_size", -CACHE_KIB)?;
    if is_current(connection)? {
        return Ok(());
    }
    connection.execute_batch("BEGIN IMMEDIATE")?;
    let made = make_tables(connection);
    connection.execute_batch(if made.is_ok() { "COMMIT" } else { "ROLLBACK" })?;
    made
}

fn make_tables(connection: &Connection) -> Sql<()> {
    // Another process may have been quicker.
    if is_current(connection)? {
        return Ok(());
    }
    let tables: i64 =
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    if tables > 0 {
        let code = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_NOTADB);
        let why = format!("{INDEX_FILE} has another format");
        return Err(rusqlite::Error::SqliteFailure(code, Some(why)));
    }
    connection.execute_batch(include_str!("schema.sql"))?;
    let sql = "INSERT INTO said (said, rank) VALUES ('hashsize', ?1)";
    connection.execute(sql, [GATHERED_BYTES])?;
    connection.pragma_update(None, "application_id", APPLICATION_ID)?;
    connection.pragma_update(None, "user_version", FORMAT)
}

fn is_current(connection: &Connection) -> Sql<bool> {
    let number = |pragma: &str| connection.pragma_query_value(None, pragma, |row| row.get(0));
    let sql = "SELECT count(*) FROM sqlite_schema \
               WHERE name IN ('said', 'entry', 'project', 'progress')";
    let tables: i64 = connection.query_row(sql, [], |row| row.get(0))?;
    let (application, format): (i64, i64) = (number("application_id")?, number("user_version")?);
    Ok((application, format, tables) == (APPLICATION_ID, FORMAT, 4))
}

/// How far the index is, and whether it has to be swept.
fn progress(connection: &Connection) -> Sql<(IndexState, bool)> {
    let sql = "SELECT at, hash, unswept FROM progress";
    connection.prepare_cached(sql)?.query_row([], |row| {
        let (at, hash): (i64, Option<[u8; 32]>) = (row.get(0)?, row.get(1)?);
        let at = FeedPosition(rows::unsigned(at));
        let state = match hash {
            Some(hash) => {
                let hash = tine_core::OperationHash(tine_core::Digest(hash));
                IndexState::Through(IndexMark { at, hash })
            }
            None => IndexState::Empty,
        };
        Ok((state, row.get(2)?))
    })
}

/// Rids the file of terms that are in it no more: they lie in older parts of the index until
/// those are merged, and in free pages and the log until the file is written anew.
fn sweep(connection: &Connection) -> Sql<()> {
    if !progress(connection)?.1 {
        return Ok(());
    }
    connection.execute_batch("INSERT INTO said (said) VALUES ('optimize'); VACUUM")?;
    let truncated: i64 =
        connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
    // A reader of long breath keeps the log alive; whoever writes next tries again.
    if truncated == 0 {
        connection.execute_batch("UPDATE progress SET unswept = 0")?;
    }
    Ok(())
}
