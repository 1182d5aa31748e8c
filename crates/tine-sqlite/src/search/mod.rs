//! The search index of the embedded store: FTS5 in a file of its own, `search.db`.
//!
//! - Nothing here touches `tine.db` or its locks, and appends do not touch the index.
//! - It is derived. A file that is missing, damaged, of another format or of another program is
//!   rebuilt in place, under SQLite's own locks, so that other processes are not disturbed.
//! - An update holds the index's write lock from before the records are read until the commit: two
//!   processes do not do the same work, and a turn that is erased meanwhile is either not read or
//!   removed afterwards.
//! - Commits are atomic, also if the process is killed, but not durable: what is lost is indexed
//!   again.
//! - A read-only store has a temporary index for each connection, which SQLite deletes with it:
//!   slow, but searches work.
//! - Erased turns leave no byte: their terms are merged away and the file is vacuumed. A process
//!   that dies in between leaves a flag, and the next writer finishes the work.

mod index_writer;
mod query;

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

use self::index_writer::IndexWriter;
use super::{BUSY_TIMEOUT_MS, MAX_IDLE_READERS, OpenOptions, rows};

/// The index within the store's folder.
pub const INDEX_FILE: &str = "search.db";

/// The format of the tables and of the terms in them. Increased when either changes.
const FORMAT: i64 = 1;

/// "TinS" in ASCII.
const APPLICATION_ID: i64 = 0x5469_6e53;

/// Memory for terms before FTS5 writes them: larger batches make a smaller, faster index.
const FTS_HASH_BYTES: i64 = 64 << 20;

/// The page cache of each connection. A word in hundreds of turns is looked up on as many pages, and
/// with SQLite's default of 2 MiB each search would read them again.
const CACHE_KIB: i64 = 8 << 10;

/// How often one call tries again after rebuilding a damaged index.
const MAX_ATTEMPTS: usize = 3;

type SqlResult<T> = rusqlite::Result<T>;

#[derive(Debug)]
pub(super) struct SearchIndex {
    file: PathBuf,
    vfs: Option<String>,
    idle: Mutex<Vec<Connection>>,
    /// Whether the store is read-only, so that no file is created beside it.
    temporary: bool,
}

impl SearchIndex {
    pub(super) fn new(folder: &Path, options: &OpenOptions) -> Self {
        let (file, vfs) = (folder.join(INDEX_FILE), options.vfs.clone());
        SearchIndex { file, vfs, idle: Mutex::default(), temporary: false }
    }

    /// Returns the index of a read-only store.
    pub(super) fn temporary(folder: &Path, options: &OpenOptions) -> Self {
        SearchIndex { temporary: true, ..SearchIndex::new(folder, options) }
    }

    pub(super) fn state(&self) -> Result<IndexState> {
        self.run(|connection| {
            progress(connection).map(|(state, _)| state).map_err(IndexFailure::from)
        })
    }

    pub(super) fn index(&self, body: &mut dyn FnMut(&mut dyn Index) -> Result<()>) -> Result<()> {
        self.run(|connection| {
            connection.execute_batch("BEGIN IMMEDIATE")?;
            let mut writer = IndexWriter::new(connection)?;
            let done = body(&mut writer);
            if let Some(error) = writer.take_failure() {
                return Err(IndexFailure::Index(error));
            }
            if let Err(error) = done {
                connection.execute_batch("ROLLBACK")?;
                return Err(IndexFailure::Records(error));
            }
            writer.finish()?;
            connection.execute_batch("COMMIT")?;
            Ok(purge_erased_terms(connection)?)
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

    /// Runs a closure on a connection. A damaged index is rebuilt, and the closure runs again.
    fn run<T>(
        &self,
        mut work: impl FnMut(&Connection) -> std::result::Result<T, IndexFailure>,
    ) -> Result<T> {
        let mut attempt = 0;
        loop {
            attempt += 1;
            let (error, was_replaced) = match self.take_connection() {
                Err(error) => (error, false),
                Ok(connection) => match work(&connection) {
                    Ok(done) => {
                        self.return_connection(connection);
                        return Ok(done);
                    }
                    Err(IndexFailure::Records(error)) => return Err(error),
                    Err(IndexFailure::Index(error)) => {
                        connection.execute_batch("ROLLBACK").ok();
                        // Another process may have rebuilt it meanwhile.
                        (error, matches!(is_current(&connection), Ok(false)))
                    }
                },
            };
            match error {
                error if attempt >= MAX_ATTEMPTS => return Err(self.to_store_error(error)),
                error if is_damage(&error) => self.rebuild()?,
                _ if was_replaced => self.drop_idle(),
                error => return Err(self.to_store_error(error)),
            }
        }
    }

    fn take_connection(&self) -> SqlResult<Connection> {
        if !self.temporary && !self.file.exists() {
            // The file was deleted: idle connections refer to the deleted file.
            self.drop_idle();
        }
        let idle = self.idle.lock().ok().and_then(|mut idle| idle.pop());
        idle.map_or_else(|| self.open(), Ok)
    }

    fn return_connection(&self, connection: Connection) {
        if let Ok(mut idle) = self.idle.lock()
            && idle.len() < MAX_IDLE_READERS
        {
            idle.push(connection);
        }
    }

    fn drop_idle(&self) {
        if let Ok(mut idle) = self.idle.lock() {
            idle.clear();
        }
    }

    fn open(&self) -> SqlResult<Connection> {
        prepare_with_retry(if self.temporary { Connection::open("")? } else { self.connect()? })
    }

    fn connect(&self) -> SqlResult<Connection> {
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

    /// Replaces the file's content by an empty database. Another process that finds the same damage
    /// may do so again; only work is lost.
    fn rebuild(&self) -> Result<()> {
        self.drop_idle();
        let reset = || -> SqlResult<()> {
            let connection = self.connect()?;
            // A first read, even a failing one, makes SQLite keep the log that others may use.
            let first_read: SqlResult<i64> =
                connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0));
            drop(first_read);
            connection.set_db_config(DbConfig::SQLITE_DBCONFIG_RESET_DATABASE, true)?;
            connection.execute_batch("VACUUM")?;
            connection.set_db_config(DbConfig::SQLITE_DBCONFIG_RESET_DATABASE, false)?;
            Ok(())
        };
        reset().map_err(|error| self.to_store_error(error))
    }

    fn to_store_error(&self, error: rusqlite::Error) -> StoreError {
        match translate(error) {
            StoreError::Corrupt { why, .. } => {
                let record = format!("search index {INDEX_FILE}, which can be deleted");
                StoreError::Corrupt { record, why }
            }
            other => other,
        }
    }
}

/// Why an update failed.
enum IndexFailure {
    /// The index itself failed.
    Index(rusqlite::Error),
    /// The closure that reads records failed.
    Records(StoreError),
}

impl From<rusqlite::Error> for IndexFailure {
    fn from(error: rusqlite::Error) -> Self {
        IndexFailure::Index(error)
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

/// Prepares the tables, retrying while the database is locked.
fn prepare_with_retry(connection: Connection) -> SqlResult<Connection> {
    let started = Instant::now();
    // Switching to a log fails at once, whatever the timeout, while another connection does so.
    loop {
        match prepare(&connection) {
            Err(error) if is_busy(&error) && started.elapsed() < busy_timeout() => {
                std::thread::sleep(Duration::from_millis(5));
            }
            done => return done.map(|()| connection),
        }
    }
}

/// Creates the tables in a new file. A file of another format or program counts as damaged.
fn prepare(connection: &Connection) -> SqlResult<()> {
    connection.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(()))?;
    connection.pragma_update(None, "synchronous", "normal")?;
    connection.pragma_update(None, "cache_size", -CACHE_KIB)?;
    if is_current(connection)? {
        return Ok(());
    }
    connection.execute_batch("BEGIN IMMEDIATE")?;
    let created = create_tables(connection);
    connection.execute_batch(if created.is_ok() { "COMMIT" } else { "ROLLBACK" })?;
    created
}

fn create_tables(connection: &Connection) -> SqlResult<()> {
    // Another process may have created them meanwhile.
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
    connection.execute(sql, [FTS_HASH_BYTES])?;
    connection.pragma_update(None, "application_id", APPLICATION_ID)?;
    connection.pragma_update(None, "user_version", FORMAT)
}

fn is_current(connection: &Connection) -> SqlResult<bool> {
    let number = |pragma: &str| connection.pragma_query_value(None, pragma, |row| row.get(0));
    let sql = "SELECT count(*) FROM sqlite_schema \
               WHERE name IN ('said', 'entry', 'project', 'progress')";
    let tables: i64 = connection.query_row(sql, [], |row| row.get(0))?;
    let (application, format): (i64, i64) = (number("application_id")?, number("user_version")?);
    Ok((application, format, tables) == (APPLICATION_ID, FORMAT, 4))
}

/// Returns how far the index is, and whether erased terms must be purged.
fn progress(connection: &Connection) -> SqlResult<(IndexState, bool)> {
    let sql = "SELECT at, hash, unswept FROM progress";
    connection.prepare_cached(sql)?.query_row([], |row| {
        let (at, hash): (i64, Option<[u8; 32]>) = (row.get(0)?, row.get(1)?);
        let at = FeedPosition(rows::to_u64(at));
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

/// Purges erased terms from the file: they remain in older parts of the index until those are
/// merged, and in free pages and the log until the file is vacuumed.
fn purge_erased_terms(connection: &Connection) -> SqlResult<()> {
    if !progress(connection)?.1 {
        return Ok(());
    }
    connection.execute_batch("INSERT INTO said (said) VALUES ('optimize'); VACUUM")?;
    let truncated: i64 =
        connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
    // A long-running reader prevents this; the next writer tries again.
    if truncated == 0 {
        connection.execute_batch("UPDATE progress SET unswept = 0")?;
    }
    Ok(())
}
