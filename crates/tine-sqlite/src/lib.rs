//! The embedded store: one folder, one SQLite file, any number of processes.
//!
//! - WAL with full sync: a write is acknowledged after it is on disk.
//! - One writer at a time, chosen fairly across threads and processes ([`turnstile`]); writers
//!   that arrive while another commits share the next sync ([`writer`]).
//! - Readers never wait for writers: each has a connection and a snapshot of its own.
//! - Only SQLite opens its files while the store is open; the first one to open it looks at them
//!   before ([`users`], [`files`]).
//! - Below this module there is only SQLite; a test can put a faulty file layer under it with
//!   [`OpenOptions::vfs`].
//!
//! No rule of the tree lives here.

mod chunk;
mod compact;
mod error;
mod files;
mod fresh;
mod packing;
mod recent;
mod rows;
mod salvage;
mod schema;
mod search;
mod turnstile;
mod txn;
mod users;
mod wal;
mod writer;

use crate::error::StoreErr as _;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use tine_store::{
    Check, DamagedRecord, FeedPosition, Index, IndexState, Job, OpenMode, PackOptions, Packed,
    Ranked, Read, Result, SearchFilter, Store, StoreError, TextQuery, TurnLoc,
};

pub use self::salvage::{Salvaged, salvage};
pub use self::search::INDEX_FILE;

use self::recent::{Recent, View};
use self::search::SearchIndex;
use self::turnstile::Turnstile;
use self::txn::Txn;
use self::users::{Door, User};
use self::writer::Writer;

/// How long a call waits for somebody who holds the file outside of the turnstile.
pub const BUSY_TIMEOUT_MS: u64 = 30_000;

/// The database file within the store's folder.
pub const DATABASE_FILE: &str = "tine.db";

/// Connections kept for readers; further ones are opened and closed as needed.
const IDLE_READERS: usize = 8;

/// Statements kept ready on each connection: all that the transactions use.
const CACHED_STATEMENTS: usize = 128;

/// How to open a store.
#[derive(Clone, Debug)]
pub struct OpenOptions {
    /// What to do when there is none.
    pub mode: OpenMode,
    /// The name of a registered SQLite file layer to use instead of the system's.
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
    recent: Arc<Recent>,
    /// `None` when the files may be read and not written.
    writer: Option<Writer>,
    readers: Mutex<Vec<Connection>>,
    search: SearchIndex,
    /// Goes after every connection; `None` where there is no lock and none can be made.
    _user: Option<User>,
}

impl SqliteStore {
    /// Opens the store in a folder, making it if there is none.
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

    /// Opens the store in a folder. One whose files may be read and not written is opened for
    /// reading only; whoever writes is told [`StoreError::ReadOnly`].
    pub fn open_with(folder: &Path, options: OpenOptions) -> Result<Self> {
        prepare_folder(folder, options.mode)?;
        match Self::open_to_write(folder, &options) {
            Err(error)
                if files::is_denied(&error)
                    && options.vfs.is_none()
                    && folder.join(DATABASE_FILE).is_file() =>
            {
                Self::open_to_read(folder, options)
            }
            opened => opened,
        }
    }

    fn open_to_write(folder: &Path, options: &OpenOptions) -> Result<Self> {
        let mut turnstile = Turnstile::open(folder)?;
        let pass = turnstile.enter()?;
        let user = Door::open(folder)?.enter(&pass, |alone| {
            if options.mode == OpenMode::Create {
                files::make(folder, alone)?;
            }
            match options.vfs {
                None => files::look(folder, options.mode, alone),
                // Another file layer may keep its files elsewhere.
                Some(_) => Ok(()),
            }
        })?;
        let connection = connect(folder, options, true)?;
        if connection.is_readonly("main").store_err()? {
            return Err(StoreError::ReadOnly { path: folder.to_owned() });
        }
        // A store that is refused is left as it is.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).store_err()?;
        schema::prepare(&connection, folder)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false).store_err()?;
        drop(pass);
        if options.vfs.is_none() {
            files::note_that_it_is_made(folder);
        }
        let recent = Arc::new(Recent::default());
        let writer = Writer::new(connection, turnstile, Arc::clone(&recent));
        Ok(SqliteStore {
            folder: folder.to_owned(),
            options: options.clone(),
            recent,
            writer: Some(writer),
            readers: Mutex::default(),
            search: SearchIndex::new(folder, options),
            _user: Some(user),
        })
    }

    fn open_to_read(folder: &Path, options: OpenOptions) -> Result<Self> {
        let user = match users::locks(folder)? {
            Some((mut turnstile, door)) => {
                let pass = turnstile.enter()?;
                Some(door.enter(&pass, |alone| files::look(folder, OpenMode::Existing, alone))?)
            }
            // Others in this process may have it open, so nothing is looked at.
            None => None,
        };
        let store = SqliteStore {
            folder: folder.to_owned(),
            search: SearchIndex::in_passing(folder, &options),
            options,
            recent: Arc::default(),
            writer: None,
            readers: Mutex::default(),
            _user: user,
        };
        schema::prepare(&store.take_reader()?, folder)?;
        Ok(store)
    }

    /// The store's folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    fn writer(&self) -> Result<&Writer> {
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

    /// A connection to files that may not be written, and their state if they cannot be locked
    /// either: whoever reads compares it afterwards.
    fn take_unlocked_reader(&self) -> Result<(Connection, Option<files::Stamp>)> {
        let before = files::Stamp::of(&self.folder);
        let (connection, locked) = files::connect_read_only(&self.folder)?;
        Ok((configured(connection)?, (!locked).then_some(before)))
    }

    fn return_reader(&self, connection: Connection) {
        // A connection to files that cannot be locked is good for one state of them.
        if let Ok(mut readers) = self.readers.lock()
            && readers.len() < IDLE_READERS
            && self.writer.is_some()
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

impl Store for SqliteStore {
    fn read(&self, body: &mut dyn FnMut(&dyn Read) -> Result<()>) -> Result<()> {
        let (connection, before) = match &self.writer {
            Some(_) => (self.take_reader()?, None),
            None => self.take_unlocked_reader()?,
        };
        let answer = {
            connection.prepare_cached("BEGIN").store_err()?.execute([]).store_err()?;
            let answer = self.recent.catch_up(&connection).and_then(|horizon| {
                let view = View::new(&self.recent, horizon, None, &connection);
                body(&Txn::new(&connection, view, self.disk_bytes()))
            });
            connection.prepare_cached("COMMIT").store_err()?.execute([]).store_err()?;
            answer
        };
        self.return_reader(connection);
        if before.is_some_and(|before| before != files::Stamp::of(&self.folder)) {
            return Err(StoreError::ChangedMeanwhile);
        }
        answer
    }

    fn write(&self, job: Job) -> Result<()> {
        self.writer()?.write(job)
    }

    fn check(&self) -> Result<Check> {
        let connection = self.take_reader()?;
        let lines = connection.prepare("PRAGMA integrity_check(1000)").and_then(|mut statement| {
            statement.query_map([], |row| row.get::<_, String>(0))?.collect()
        });
        let lines: Vec<String> = match lines.store_err() {
            // What is too damaged to be checked is damaged.
            Err(StoreError::Corrupt { why, .. }) => vec![why],
            other => other?,
        };
        self.return_reader(connection);
        let problems = lines
            .into_iter()
            .filter(|line| line != "ok")
            .map(|why| DamagedRecord { record: DATABASE_FILE.to_owned(), why })
            .collect();
        Ok(Check { problems })
    }

    fn pack(&self, options: PackOptions) -> Result<Packed> {
        let mut packed = Packed::default();
        let mut next = Some(0);
        // A stretch at a time, so that others can write in between.
        while let Some(from) = next {
            let (stretch, behind) = self.writer()?.pack(options, from)?;
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
        let mut turnstile = Turnstile::open(to)?;
        let pass = turnstile.enter()?;
        let door = Door::open(to)?;
        let _alone = door.enter_alone(&pass, to)?;
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
    configured(connection)
}

fn configured(connection: Connection) -> Result<Connection> {
    connection.busy_timeout(Duration::from_millis(BUSY_TIMEOUT_MS)).store_err()?;
    connection.set_prepared_statement_cache_capacity(CACHED_STATEMENTS);
    // Otherwise a statement is planned anew for each set of parameters.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true).store_err()?;
    Ok(connection)
}

/// A store lives in a folder of its own: a folder with other things in it is refused, so that a
/// mistyped path neither fills up a home folder nor hides an older store.
fn prepare_folder(folder: &Path, mode: OpenMode) -> Result<()> {
    let not_a_store =
        |why: &str| StoreError::NotAStore { path: folder.to_owned(), why: why.to_owned() };
    if files::database_is_there(folder)? {
        return Ok(());
    }
    if folder.exists() && !folder.is_dir() {
        return Err(not_a_store("it is a file"));
    }
    let new = files::is_new(folder)?;
    // Another process may have made it since the first look.
    if !new && folder.join(DATABASE_FILE).is_file() {
        return Ok(());
    }
    if !new {
        return Err(not_a_store("it holds other files and no tine.db"));
    }
    if mode == OpenMode::Existing {
        return Err(StoreError::Missing { path: folder.to_owned() });
    }
    make_private(folder).map_err(|source| io("making", folder, source))?;
    // The new folder's own entry must survive a power loss as well as what is in it.
    match folder.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => sync(parent),
        _ => sync(Path::new(".")),
    }
}

/// Makes a folder that is not there yet, for nobody but its owner: what people say is private
/// until they choose otherwise.
fn make_private(folder: &Path) -> std::io::Result<()> {
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

/// Makes a folder's entries or a file's bytes durable.
fn sync(path: &Path) -> Result<()> {
    let synced = File::open(path).and_then(|file| file.sync_all());
    synced.map_err(|source| io("syncing", path, source))
}

fn io(doing: &'static str, path: &Path, source: std::io::Error) -> StoreError {
    StoreError::Io { doing, path: path.to_owned(), source }
}
