//! The embedded store: one folder, one SQLite file, any number of processes.
//!
//! - WAL with full sync: a write is acknowledged after it is on disk.
//! - One writer at a time, chosen fairly across threads and processes ([`writer_lock`]); writers
//!   that arrive while another commits share the next sync ([`writer`]).
//! - Readers never wait for writers: each has its own connection and snapshot.
//! - Only SQLite opens its files while the store is open; the first process to open the store
//!   inspects them before ([`access_lock`], [`files`]).
//! - Below this module there is only SQLite; tests can replace its file layer with
//!   [`OpenOptions::vfs`].
//!
//! The rules of the tree are in the engine, not here.

mod access_lock;
mod chunk_codec;
mod error;
mod files;
mod operation_codec;
mod packing;
mod pending_index;
mod pending_rows;
mod rows;
mod salvage;
mod schema;
mod search;
mod txn;
mod wal;
mod writer;
mod writer_lock;

use crate::error::{StoreErr as _, execute};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use tine_store::{
    DamagedRecord, FeedPosition, Index, IndexState, Job, OpenMode, PackOptions, Packed, Ranked,
    Read, Result, SearchFilter, Store, StoreCheck, StoreError, TextQuery, TurnLoc,
};

pub use self::salvage::{Salvaged, salvage};
pub use self::search::INDEX_FILE;

use self::access_lock::{SharedAccess, StoreLock};
use self::pending_index::{IndexView, PendingIndex};
use self::search::SearchIndex;
use self::txn::SqliteTxn;
use self::writer::BatchWriter;
use self::writer_lock::WriterLock;

/// How long a call waits for a program that locks the database without the writer lock.
pub const BUSY_TIMEOUT_MS: u64 = 30_000;

/// The database file within the store's folder.
pub const DATABASE_FILE: &str = "tine.db";

/// Idle connections kept for readers; further ones are opened and closed as needed.
const MAX_IDLE_READERS: usize = 8;

/// Prepared statements cached per connection: enough for all that transactions use.
const CACHED_STATEMENTS: usize = 128;

/// How to open a store.
#[derive(Clone, Debug)]
pub struct OpenOptions {
    /// Whether a missing store is created.
    pub mode: OpenMode,
    /// The name of a registered SQLite VFS to use instead of the default.
    pub vfs: Option<String>,
}

impl Default for OpenOptions {
    fn default() -> Self {
        OpenOptions { mode: OpenMode::Create, vfs: None }
    }
}

/// A store in a folder.
#[derive(Debug)]
pub struct SqliteStore {
    folder: PathBuf,
    options: OpenOptions,
    pending_index: Arc<PendingIndex>,
    /// `None` if the store is read-only.
    writer: Option<BatchWriter>,
    readers: Mutex<Vec<Connection>>,
    search: SearchIndex,
    /// Dropped after every connection; `None` if there is no lock file and none can be created.
    _access: Option<SharedAccess>,
}

impl SqliteStore {
    /// Opens the store in a folder, creating it if there is none.
    ///
    /// ```
    /// # let folder = std::env::temp_dir().join(format!("tine-doc-{}", std::process::id()));
    /// use tine_sqlite::SqliteStore;
    /// use tine_store::{Read, Store};
    /// let store = SqliteStore::open(&folder)?;
    /// store.read(&mut |records| {
    ///     assert_eq!(records.totals()?.turns, 0);
    ///     Ok(())
    /// })?;
    /// # drop(store);
    /// # std::fs::remove_dir_all(&folder).ok();
    /// # Ok::<(), tine_store::StoreError>(())
    /// ```
    pub fn open(folder: &Path) -> Result<Self> {
        Self::open_with(folder, OpenOptions::default())
    }

    /// Opens the store in a folder. If its files are not writable, it is opened read-only, and
    /// writes fail with [`StoreError::ReadOnly`].
    pub fn open_with(folder: &Path, options: OpenOptions) -> Result<Self> {
        prepare_folder(folder, options.mode)?;
        match Self::open_read_write(folder, &options) {
            Err(error)
                if files::is_denied(&error)
                    && options.vfs.is_none()
                    && folder.join(DATABASE_FILE).is_file() =>
            {
                Self::open_read_only(folder, options)
            }
            opened => opened,
        }
    }

    fn open_read_write(folder: &Path, options: &OpenOptions) -> Result<Self> {
        let mut writer_lock = WriterLock::open(folder)?;
        let guard = writer_lock.acquire()?;
        let access = StoreLock::open(folder)?.acquire_shared(&guard, |exclusive| {
            if options.mode == OpenMode::Create {
                files::create_database(folder, exclusive)?;
            }
            match options.vfs {
                None => files::inspect(folder, options.mode, exclusive),
                // Another VFS may keep its files elsewhere.
                Some(_) => Ok(()),
            }
        })?;
        let connection = connect(folder, options, true)?;
        if connection.is_readonly("main").store_err()? {
            return Err(StoreError::ReadOnly { path: folder.to_owned() });
        }
        // A store that is rejected is left unchanged.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).store_err()?;
        schema::prepare(&connection, folder)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false).store_err()?;
        drop(guard);
        if options.vfs.is_none() {
            files::mark_as_created(folder);
        }
        let pending_index = Arc::new(PendingIndex::default());
        let writer = BatchWriter::new(connection, writer_lock, Arc::clone(&pending_index));
        Ok(SqliteStore {
            folder: folder.to_owned(),
            options: options.clone(),
            pending_index,
            writer: Some(writer),
            readers: Mutex::default(),
            search: SearchIndex::new(folder, options),
            _access: Some(access),
        })
    }

    fn open_read_only(folder: &Path, options: OpenOptions) -> Result<Self> {
        let access = match access_lock::open_locks(folder)? {
            Some((mut writer_lock, store_lock)) => {
                let guard = writer_lock.acquire()?;
                Some(store_lock.acquire_shared(&guard, |exclusive| {
                    files::inspect(folder, OpenMode::Existing, exclusive)
                })?)
            }
            // This process may have it open elsewhere, so the files are not inspected.
            None => None,
        };
        let store = SqliteStore {
            folder: folder.to_owned(),
            search: SearchIndex::temporary(folder, &options),
            options,
            pending_index: Arc::default(),
            writer: None,
            readers: Mutex::default(),
            _access: access,
        };
        schema::prepare(&store.take_reader()?, folder)?;
        Ok(store)
    }

    /// Returns the store's folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    fn writer(&self) -> Result<&BatchWriter> {
        self.writer.as_ref().ok_or_else(|| StoreError::ReadOnly { path: self.folder.clone() })
    }

    fn take_reader(&self) -> Result<Connection> {
        if self.writer.is_none() {
            return Ok(self.take_unlocked_reader()?.0);
        }
        let idle = self.readers.lock().ok().and_then(|mut readers| readers.pop());
        match idle {
            Some(connection) => Ok(connection),
            None => {
                let connection = connect(&self.folder, &self.options, false)?;
                connection.pragma_update(None, "query_only", true).store_err()?;
                Ok(connection)
            }
        }
    }

    /// Opens a connection to a read-only store. If the files cannot be locked either, returns their
    /// state, to be compared after reading.
    fn take_unlocked_reader(&self) -> Result<(Connection, Option<files::FileStamps>)> {
        let before = files::FileStamps::of(&self.folder);
        let (connection, locked) = files::connect_read_only(&self.folder)?;
        Ok((configure(connection)?, (!locked).then_some(before)))
    }

    fn return_reader(&self, connection: Connection) {
        // A connection to files that cannot be locked is valid for one state of them.
        if let Ok(mut readers) = self.readers.lock()
            && readers.len() < MAX_IDLE_READERS
            && self.writer.is_some()
        {
            readers.push(connection);
        }
    }
}

impl Store for SqliteStore {
    fn read(&self, body: &mut dyn FnMut(&dyn Read) -> Result<()>) -> Result<()> {
        let (connection, before) = match &self.writer {
            Some(_) => (self.take_reader()?, None),
            None => self.take_unlocked_reader()?,
        };
        let answer = {
            execute(&connection, "BEGIN", [])?;
            let answer = self.pending_index.catch_up(&connection).and_then(|horizon| {
                let view = IndexView::new(&self.pending_index, horizon, None, &connection);
                body(&SqliteTxn::new(&connection, view, Some(&self.folder)))
            });
            execute(&connection, "COMMIT", [])?;
            answer
        };
        self.return_reader(connection);
        if before.is_some_and(|before| before != files::FileStamps::of(&self.folder)) {
            return Err(StoreError::ChangedMeanwhile);
        }
        answer
    }

    fn write(&self, job: Job) -> Result<()> {
        self.writer()?.write(job)
    }

    fn check(&self) -> Result<StoreCheck> {
        let connection = self.take_reader()?;
        let lines = connection.prepare("PRAGMA integrity_check(1000)").and_then(|mut statement| {
            statement.query_map([], |row| row.get::<_, String>(0))?.collect()
        });
        let lines: Vec<String> = match lines.store_err() {
            // The check itself may fail on a damaged file.
            Err(StoreError::Corrupt { why, .. }) => vec![why],
            other => other?,
        };
        self.return_reader(connection);
        let problems = lines
            .into_iter()
            .filter(|line| line != "ok")
            .map(|why| DamagedRecord { record: DATABASE_FILE.to_owned(), why })
            .collect();
        Ok(StoreCheck { problems })
    }

    fn pack(&self, options: PackOptions) -> Result<Packed> {
        let mut packed = Packed::default();
        let mut next = Some(0);
        // One transaction at a time, so that other writers can get in between.
        while let Some(from) = next {
            let (batch, continue_at) = self.writer()?.pack(options, from)?;
            next = continue_at;
            packed.turns += batch.turns;
            packed.chunks += batch.chunks;
            packed.raw_bytes += batch.raw_bytes;
            packed.packed_bytes += batch.packed_bytes;
        }
        Ok(packed)
    }

    fn scrub(&self) -> Result<()> {
        // Idle connections could prevent the log from being truncated.
        if let Ok(mut readers) = self.readers.lock() {
            readers.clear();
        }
        self.writer()?.exclusively(&mut |connection| {
            connection.execute_batch("VACUUM; PRAGMA wal_checkpoint(TRUNCATE)").store_err()?;
            Ok(())
        })
    }

    fn backup(&self, to: &Path) -> Result<()> {
        let file = to.join(DATABASE_FILE);
        if file.exists() {
            let why = "there is a store already".to_owned();
            return Err(StoreError::NotAStore { path: to.to_owned(), why });
        }
        prepare_folder(to, OpenMode::Create)?;
        let mut writer_lock = WriterLock::open(to)?;
        let guard = writer_lock.acquire()?;
        let store_lock = StoreLock::open(to)?;
        let _exclusive = store_lock.acquire_exclusive(&guard, to)?;
        let connection = self.take_reader()?;
        connection.pragma_update(None, "query_only", false).store_err()?;
        let target = file.to_string_lossy().into_owned();
        connection.execute("VACUUM INTO ?1", [target]).store_err()?;
        sync(&file)?;
        sync(to)
    }

    fn index_state(&self) -> Result<IndexState> {
        self.search.state()
    }

    fn index(&self, body: &mut dyn FnMut(&mut dyn Index) -> Result<()>) -> Result<()> {
        self.search.index(body)
    }

    fn unindex(&self, turns: &[TurnLoc]) -> Result<()> {
        self.search.unindex(turns)
    }

    fn search(
        &self,
        query: &TextQuery,
        filter: &SearchFilter,
        through: FeedPosition,
    ) -> Result<Option<Ranked>> {
        self.search.search(query, filter, through)
    }
}

fn connect(folder: &Path, options: &OpenOptions, writer: bool) -> Result<Connection> {
    let file = folder.join(DATABASE_FILE);
    let mut flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    if writer && options.mode == OpenMode::Create {
        flags |= OpenFlags::SQLITE_OPEN_CREATE;
    }
    let connection = match &options.vfs {
        Some(vfs) => Connection::open_with_flags_and_vfs(&file, flags, vfs.as_str()).store_err()?,
        None => Connection::open_with_flags(&file, flags).store_err()?,
    };
    configure(connection)
}

fn configure(connection: Connection) -> Result<Connection> {
    connection.busy_timeout(Duration::from_millis(BUSY_TIMEOUT_MS)).store_err()?;
    connection.set_prepared_statement_cache_capacity(CACHED_STATEMENTS);
    // Otherwise a statement is planned again for each set of parameters.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true).store_err()?;
    Ok(connection)
}

/// Creates the store's folder if needed. A folder with other files is rejected, so that a mistyped
/// path neither fills up a home folder nor hides an existing store.
fn prepare_folder(folder: &Path, mode: OpenMode) -> Result<()> {
    let not_a_store =
        |why: &str| StoreError::NotAStore { path: folder.to_owned(), why: why.to_owned() };
    if files::database_exists(folder)? {
        return Ok(());
    }
    if folder.exists() && !folder.is_dir() {
        return Err(not_a_store("it is a file"));
    }
    let new = files::is_new(folder)?;
    // Another process may have created the store since the first check.
    if !new && folder.join(DATABASE_FILE).is_file() {
        return Ok(());
    }
    if !new {
        return Err(not_a_store("it holds other files and no tine.db"));
    }
    if mode == OpenMode::Existing {
        return Err(StoreError::Missing { path: folder.to_owned() });
    }
    create_private_folder(folder).map_err(|source| io("making", folder, source))?;
    // The folder's own directory entry must survive a power loss too.
    match folder.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => sync(parent),
        _ => sync(Path::new(".")),
    }
}

/// Creates a folder that only its owner can access.
fn create_private_folder(folder: &Path) -> std::io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    if let Some(parent) = folder.parent() {
        fs::create_dir_all(parent)?;
    }
    match builder.create(folder) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
        made => made,
    }
}

/// Syncs a file, or the entries of a folder.
fn sync(path: &Path) -> Result<()> {
    let synced = File::open(path).and_then(|file| file.sync_all());
    synced.map_err(|source| io("syncing", path, source))
}

fn io(doing: &'static str, path: &Path, source: std::io::Error) -> StoreError {
    StoreError::Io { doing, path: path.to_owned(), source }
}
