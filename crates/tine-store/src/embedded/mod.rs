//! The embedded store: one folder, one SQLite file, any number of processes.
//!
//! - WAL with full sync: a write is acknowledged after it is on disk.
//! - One writer at a time, chosen fairly across threads and processes ([`turnstile`]); writers
//!   that arrive while another commits share the next sync ([`writer`]).
//! - Readers never wait for writers: each has a connection and a snapshot of its own.
//! - Below this module there is only SQLite; a test can put a faulty file layer under it with
//!   [`OpenOptions::vfs`].
//!
//! No rule of the tree lives here.

mod chunk;
mod compact;
mod fresh;
mod packing;
mod recent;
mod rows;
mod schema;
mod search;
mod turnstile;
mod txn;
mod writer;

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use crate::records::{FeedPosition, TurnLoc};
use crate::search::{Index, IndexState, Ranked, SearchFilter, TextQuery};
use crate::traits::{Check, Job, PackOptions, Packed, Problem, Read, Store};
use crate::{Result, StoreError};

pub use self::search::INDEX_FILE;

use self::recent::{Recent, View};
use self::search::SearchIndex;
use self::turnstile::Turnstile;
use self::txn::Txn;
use self::writer::Writer;

/// How long a call waits for somebody who holds the file outside of the turnstile.
pub const BUSY_TIMEOUT_MS: u64 = 30_000;

/// The database file within the store's folder.
pub const DATABASE_FILE: &str = "tine.db";

/// Connections kept for readers; further ones are opened and closed as needed.
const IDLE_READERS: usize = 8;

/// Statements kept ready on each connection: all that the transactions use.
const CACHED_STATEMENTS: usize = 128;

/// What to do when there is no store yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Make one.
    Create,
    /// Refuse.
    Existing,
}

/// How to open a store.
#[derive(Clone, Debug)]
pub struct OpenOptions {
    /// What to do when there is none.
    pub mode: Mode,
    /// The name of a registered SQLite file layer to use instead of the system's.
    pub vfs: Option<String>,
}

impl Default for OpenOptions {
    fn default() -> Self {
        OpenOptions { mode: Mode::Create, vfs: None }
    }
}

/// A store in a folder.
#[derive(Debug)]
pub struct EmbeddedStore {
    folder: PathBuf,
    options: OpenOptions,
    recent: Arc<Recent>,
    writer: Writer,
    readers: Mutex<Vec<Connection>>,
    search: SearchIndex,
}

impl EmbeddedStore {
    /// Opens the store in a folder, making it if there is none.
    ///
    /// ```
    /// # let folder = std::env::temp_dir().join(format!("tine-doc-{}", std::process::id()));
    /// use tine_store::{EmbeddedStore, Read, Store};
    /// let store = EmbeddedStore::open(&folder)?;
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

    /// Opens the store in a folder.
    pub fn open_with(folder: &Path, options: OpenOptions) -> Result<Self> {
        prepare_folder(folder, options.mode)?;
        let mut turnstile = Turnstile::open(folder)?;
        let connection = {
            let _pass = turnstile.enter()?;
            let connection = connect(folder, &options, true)?;
            schema::prepare(&connection, folder)?;
            connection
        };
        let recent = Arc::new(Recent::default());
        Ok(EmbeddedStore {
            folder: folder.to_owned(),
            search: SearchIndex::new(folder, &options),
            options,
            recent: Arc::clone(&recent),
            writer: Writer::new(connection, turnstile, recent),
            readers: Mutex::new(Vec::new()),
        })
    }

    /// The store's folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    fn take_reader(&self) -> Result<Connection> {
        let idle = self.readers.lock().ok().and_then(|mut readers| readers.pop());
        match idle {
            Some(connection) => Ok(connection),
            None => {
                let connection = connect(&self.folder, &self.options, false)?;
                connection.pragma_update(None, "query_only", true)?;
                Ok(connection)
            }
        }
    }

    fn return_reader(&self, connection: Connection) {
        if let Ok(mut readers) = self.readers.lock()
            && readers.len() < IDLE_READERS
        {
            readers.push(connection);
        }
    }

    fn disk_bytes(&self) -> u64 {
        [DATABASE_FILE, "tine.db-wal"]
            .iter()
            .filter_map(|name| fs::metadata(self.folder.join(name)).ok())
            .map(|metadata| metadata.len())
            .sum()
    }
}

impl Store for EmbeddedStore {
    fn read(&self, body: &mut dyn FnMut(&dyn Read) -> Result<()>) -> Result<()> {
        let connection = self.take_reader()?;
        let answer = {
            connection.prepare_cached("BEGIN")?.execute([])?;
            let answer = self.recent.catch_up(&connection).and_then(|horizon| {
                let view = View::new(&self.recent, horizon, None, &connection);
                body(&Txn::new(&connection, view, self.disk_bytes()))
            });
            connection.prepare_cached("COMMIT")?.execute([])?;
            answer
        };
        self.return_reader(connection);
        answer
    }

    fn write(&self, job: Job) -> Result<()> {
        self.writer.write(job)
    }

    fn check(&self) -> Result<Check> {
        let connection = self.take_reader()?;
        let lines: Vec<String> = connection
            .prepare("PRAGMA integrity_check(1000)")?
            .query_map([], |row| row.get(0))?
            .collect::<rusqlite::Result<_>>()?;
        self.return_reader(connection);
        let problems = lines
            .into_iter()
            .filter(|line| line != "ok")
            .map(|why| Problem { record: "database file".to_owned(), why })
            .collect();
        Ok(Check { problems })
    }

    fn pack(&self, options: PackOptions) -> Result<Packed> {
        let mut packed = Packed::default();
        let mut next = Some(0);
        // A stretch at a time, so that others can write in between.
        while let Some(from) = next {
            let (stretch, behind) = self.writer.pack(options, from)?;
            next = behind;
            packed.turns += stretch.turns;
            packed.chunks += stretch.chunks;
            packed.raw_bytes += stretch.raw_bytes;
            packed.packed_bytes += stretch.packed_bytes;
        }
        Ok(packed)
    }

    fn scrub(&self) -> Result<()> {
        // Idle snapshots would keep old frames of the log alive.
        if let Ok(mut readers) = self.readers.lock() {
            readers.clear();
        }
        self.writer.exclusively(&mut |connection| {
            connection.execute_batch("VACUUM; PRAGMA wal_checkpoint(TRUNCATE)")?;
            Ok(())
        })
    }

    fn backup(&self, to: &Path) -> Result<()> {
        let file = to.join(DATABASE_FILE);
        if file.exists() {
            let why = "there is a store already".to_owned();
            return Err(StoreError::NotAStore { path: to.to_owned(), why });
        }
        prepare_folder(to, Mode::Create)?;
        let connection = self.take_reader()?;
        connection.pragma_update(None, "query_only", false)?;
        let target = file.to_string_lossy().into_owned();
        connection.execute("VACUUM INTO ?1", [target])?;
        let sync = |path: &Path| File::open(path).and_then(|file| file.sync_all());
        for path in [file.as_path(), to] {
            sync(path).map_err(|source| io("syncing", path, source))?;
        }
        Ok(())
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
    if writer && options.mode == Mode::Create {
        flags |= OpenFlags::SQLITE_OPEN_CREATE;
    }
    let connection = match &options.vfs {
        Some(vfs) => Connection::open_with_flags_and_vfs(&file, flags, vfs.as_str())?,
        None => Connection::open_with_flags(&file, flags)?,
    };
    connection.busy_timeout(Duration::from_millis(BUSY_TIMEOUT_MS))?;
    connection.set_prepared_statement_cache_capacity(CACHED_STATEMENTS);
    // Otherwise a statement is planned anew for each set of parameters.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    Ok(connection)
}

/// A store lives in a folder of its own: a folder with other things in it is refused, so that a
/// mistyped path neither fills up a home folder nor hides an older store.
fn prepare_folder(folder: &Path, mode: Mode) -> Result<()> {
    let not_a_store =
        |why: &str| StoreError::NotAStore { path: folder.to_owned(), why: why.to_owned() };
    if folder.join(DATABASE_FILE).is_file() {
        return Ok(());
    }
    if folder.exists() && !folder.is_dir() {
        return Err(not_a_store("it is a file"));
    }
    let foreign = match fs::read_dir(folder) {
        Ok(entries) => entries
            .filter_map(std::result::Result::ok)
            .any(|entry| !turnstile::FILES.iter().any(|own| entry.file_name() == *own)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => false,
        Err(source) => return Err(io("reading", folder, source)),
    };
    // Another process may have made it since the first look: its own file comes before any other.
    if foreign && folder.join(DATABASE_FILE).is_file() {
        return Ok(());
    }
    if foreign {
        return Err(not_a_store("it holds other files and no tine.db"));
    }
    if mode == Mode::Existing {
        return Err(StoreError::Missing { path: folder.to_owned() });
    }
    fs::create_dir_all(folder).map_err(|source| io("making", folder, source))?;
    // The new folder's own entry must survive a power loss as well as what is in it.
    let parent = match folder.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let sync = |path: &Path| File::open(path).and_then(|folder| folder.sync_all());
    sync(parent).map_err(|source| io("syncing", parent, source))?;
    // SQLite makes a journal beside the file before it syncs the folder, and after a power loss
    // that journal may be there alone. So the file's own entry is made durable first.
    let file = folder.join(DATABASE_FILE);
    let made = File::options().create(true).append(true).open(&file);
    made.map_err(|source| io("making", &file, source))?;
    sync(folder).map_err(|source| io("syncing", folder, source))
}

fn io(doing: &'static str, path: &Path, source: std::io::Error) -> StoreError {
    StoreError::Io { doing, path: path.to_owned(), source }
}
