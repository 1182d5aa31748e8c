//! Inspection of the store's files before SQLite opens them, and read-only opening.
//!
//! SQLite treats an empty file as a new database, an unreadable log as no log, and the database of
//! another program as its own. Each of these would silently lose conversations, so the files are
//! inspected first.
//!
//! Files are opened only under exclusive access, and closed before the first connection
//! ([`super::access_lock`]); everything else here uses names and sizes only.

use crate::error::StoreErr as _;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::Path;
use std::time::SystemTime;

use rusqlite::{Connection, OpenFlags};

use super::access_lock::{ACCESS_LOCK_FILE, ExclusiveAccess};
use super::{DATABASE_FILE, OpenMode, io, schema, sync, wal, writer_lock};
use tine_store::{Result, StoreError};

/// SQLite's write-ahead log.
pub(super) const WAL_FILE: &str = "tine.db-wal";

/// SQLite's rollback journal, used only until the new database switches to a write-ahead log.
const JOURNAL_FILE: &str = "tine.db-journal";

/// The files that may exist in a folder in which the creation of a store was interrupted.
const LOCK_FILES: [&str; 3] = [writer_lock::QUEUE_FILE, writer_lock::LOCK_FILE, ACCESS_LOCK_FILE];

/// The first bytes of every SQLite database.
const MAGIC: &[u8; 16] = b"SQLite format 3\0";

/// The application id in the header of a store's database.
const APPLICATION: &[u8; 4] = b"Tine";

/// The header of an SQLite database (<https://sqlite.org/fileformat2.html>).
struct DatabaseHeader {
    bytes: [u8; 100],
}

impl DatabaseHeader {
    /// Reads the header; bytes that the file lacks are zero.
    fn read(file: &mut File) -> io::Result<Self> {
        let mut start = Vec::with_capacity(100);
        file.take(100).read_to_end(&mut start)?;
        let mut bytes = [0; 100];
        bytes[..start.len()].copy_from_slice(&start);
        Ok(DatabaseHeader { bytes })
    }

    fn read_u32(&self, at: usize) -> u32 {
        let mut number = [0; 4];
        number.copy_from_slice(&self.bytes[at..at + 4]);
        u32::from_be_bytes(number)
    }

    fn is_sqlite(&self) -> bool {
        self.bytes.starts_with(MAGIC)
    }

    fn is_tine(&self) -> bool {
        self.bytes[68..72] == *APPLICATION
    }

    fn format(&self) -> u32 {
        self.read_u32(60)
    }

    /// Returns the page size; `None` if it is invalid.
    fn page_bytes(&self) -> Option<u64> {
        match u64::from(self.bytes[16]) << 8 | u64::from(self.bytes[17]) {
            1 => Some(65_536),
            bytes if bytes.is_power_of_two() && bytes >= 512 => Some(bytes),
            _ => None,
        }
    }

    /// Returns the size that the file must have, if the header says.
    fn expected_bytes(&self) -> Option<u64> {
        // The page count is valid only if it was written with the last change.
        let valid = self.read_u32(24) == self.read_u32(92);
        valid.then_some(self.page_bytes()? * u64::from(self.read_u32(28)))
    }
}

fn damaged(folder: &Path, name: &str, why: impl Into<String>) -> StoreError {
    StoreError::DamagedFile { path: folder.join(name), why: why.into() }
}

/// Returns whether the log exists and is not empty.
fn wal_is_pending(folder: &Path) -> bool {
    file_bytes(folder, WAL_FILE).is_some_and(|bytes| bytes > 0)
}

fn file_bytes(folder: &Path, name: &str) -> Option<u64> {
    fs::metadata(folder.join(name)).ok().map(|metadata| metadata.len())
}

/// Returns the size of the database and its log.
pub(super) fn disk_bytes(folder: &Path) -> u64 {
    [DATABASE_FILE, WAL_FILE].iter().filter_map(|name| file_bytes(folder, name)).sum()
}

/// Returns whether a store was created here. The lock file gets its content after the tables exist.
fn was_created(folder: &Path) -> bool {
    file_bytes(folder, writer_lock::LOCK_FILE).is_some_and(|bytes| bytes > 0)
}

/// Marks the store as created, so that a missing database is not mistaken for a new folder.
pub(super) fn mark_as_created(folder: &Path) {
    if was_created(folder) {
        return;
    }
    let path = folder.join(writer_lock::LOCK_FILE);
    let marked = File::options().write(true).open(path).and_then(|mut file| {
        file.write_all(b"A Tine store. Use `tine backup` to copy it while it is in use.\n")?;
        file.sync_all()
    });
    // The store works without the mark; the next opening tries again.
    marked.ok();
}

/// Returns whether the database exists, in any state. Fails if it existed before and is missing.
pub(super) fn database_exists(folder: &Path) -> Result<bool> {
    let path = folder.join(DATABASE_FILE);
    // Checked before the database: a process that creates the store now creates the database first.
    let (pending, made) = (wal_is_pending(folder), was_created(folder));
    match fs::metadata(&path) {
        Ok(found) if found.is_dir() => Err(StoreError::NotAStore {
            path: folder.to_owned(),
            why: "tine.db is a folder".to_owned(),
        }),
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            Err(io("reading", &path, error))
        }
        Err(_) if pending => {
            Err(damaged(folder, DATABASE_FILE, "it is missing, and its log tine.db-wal is there"))
        }
        Err(_) if made => Err(damaged(folder, DATABASE_FILE, "it is missing")),
        Err(_) => Ok(false),
    }
}

/// Returns whether a folder holds nothing but lock files.
pub(super) fn is_new(folder: &Path) -> Result<bool> {
    match fs::read_dir(folder) {
        Ok(entries) => Ok(entries
            .filter_map(std::result::Result::ok)
            .all(|entry| LOCK_FILES.iter().any(|own| entry.file_name() == *own))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
        Err(source) => Err(io("reading", folder, source)),
    }
}

/// Creates an empty database if there is none, so that its name is durable before SQLite writes.
///
/// SQLite creates a journal beside the file before it syncs the folder; after a power loss only the
/// journal might exist.
pub(super) fn create_database(folder: &Path, _exclusive: &ExclusiveAccess<'_>) -> Result<()> {
    let path = folder.join(DATABASE_FILE);
    if path.exists() {
        return Ok(());
    }
    File::create_new(&path).map_err(|source| io("making", &path, source))?;
    sync(folder)
}

/// Inspects the files before SQLite opens them.
pub(super) fn inspect(
    folder: &Path,
    mode: OpenMode,
    exclusive: &ExclusiveAccess<'_>,
) -> Result<()> {
    if file_bytes(folder, JOURNAL_FILE).is_some_and(|bytes| bytes > 0) {
        // SQLite has yet to roll the database back.
        return Ok(());
    }
    let path = folder.join(DATABASE_FILE);
    let mut file = File::open(&path).map_err(|source| io("opening", &path, source))?;
    let header = DatabaseHeader::read(&mut file).map_err(|source| io("reading", &path, source))?;
    check_database(folder, mode, &file, &header)?;
    check_wal(folder, file, &header, exclusive)
}

/// Checks the database file. If there is a log, the header may be outdated, and only the beginning
/// is checked.
fn check_database(
    folder: &Path,
    mode: OpenMode,
    file: &File,
    header: &DatabaseHeader,
) -> Result<()> {
    let path = folder.join(DATABASE_FILE);
    let pending = wal_is_pending(folder);
    let size = file.metadata().map_err(|error| io("reading", &path, error))?.len();
    let damaged = |why: String| Err(damaged(folder, DATABASE_FILE, why));
    if size == 0 {
        // An interrupted creation leaves neither a log nor the mark.
        return match mode {
            OpenMode::Create if !pending && !was_created(folder) => Ok(()),
            _ => damaged("it is empty".to_owned()),
        };
    }
    if header.is_sqlite() && size < header.bytes.len() as u64 {
        return damaged(format!("it is cut: {size} bytes are there"));
    }
    if !header.is_sqlite() {
        if header.is_tine() || was_created(folder) {
            return damaged("its first bytes are not those of a database".to_owned());
        }
        let why = "tine.db is not a database".to_owned();
        return Err(StoreError::NotAStore { path: folder.to_owned(), why });
    }
    if pending {
        return Ok(());
    }
    if !header.is_tine() && was_created(folder) {
        return damaged("its header does not say that it is a store of Tine".to_owned());
    }
    if header.is_tine() && header.format() == 0 {
        return damaged("its header says that it has no format".to_owned());
    }
    match header.expected_bytes() {
        Some(expected) if size < expected => {
            damaged(format!("it is cut: {size} of {expected} bytes are there"))
        }
        _ => Ok(()),
    }
}

/// Checks that SQLite will recover every acknowledged commit of the log.
fn check_wal(
    folder: &Path,
    mut database: File,
    header: &DatabaseHeader,
    exclusive: &ExclusiveAccess<'_>,
) -> Result<()> {
    if !wal_is_pending(folder) {
        return Ok(());
    }
    let path = folder.join(WAL_FILE);
    let reading = |error| io("reading", &path, error);
    let page_bytes = header.page_bytes().unwrap_or(u64::from(schema::PAGE_BYTES));
    let Some(mut log) = wal::WalFile::open(&path, page_bytes, exclusive).map_err(reading)? else {
        return Ok(());
    };
    let last_commit = log.last_commit().map_err(reading)?;
    match log.lost_commits(last_commit, &mut database).map_err(reading)? {
        Some(why) => Err(damaged(folder, WAL_FILE, why)),
        None => Ok(()),
    }
}

/// Returns whether an error means that the files are not writable.
pub(super) fn is_denied(error: &StoreError) -> bool {
    use rusqlite::ErrorCode;
    match error {
        StoreError::ReadOnly { .. } => true,
        StoreError::Io { source, .. } => matches!(
            source.kind(),
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem
        ),
        StoreError::Backend(error) => {
            let code = error.downcast_ref().and_then(rusqlite::Error::sqlite_error_code);
            matches!(code, Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly))
        }
        _ => false,
    }
}

/// Opens the database read-only; returns the connection and whether SQLite can lock the files.
pub(super) fn connect_read_only(folder: &Path) -> Result<(Connection, bool)> {
    let path = folder.join(DATABASE_FILE);
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    if wal_is_pending(folder) {
        // Without the log, acknowledged changes would be missing.
        let connection = Connection::open_with_flags(&path, flags).store_err()?;
        let readable: rusqlite::Result<i64> =
            connection.pragma_query_value(None, "schema_version", |row| row.get(0));
        return match readable.store_err() {
            Ok(_) => Ok((connection, true)),
            Err(error) if is_denied(&error) => {
                let why = "tine.db-wal holds changes that cannot be read without writing beside \
                           it; copy the folder to a place that can be written";
                let source = io::Error::new(io::ErrorKind::PermissionDenied, why);
                Err(io("reading", &path, source))
            }
            Err(error) => Err(error),
        };
    }
    let mut address = String::from("file:");
    for byte in path.to_string_lossy().bytes() {
        match byte {
            b'/' | b'.' | b'-' | b'_' => address.push(char::from(byte)),
            byte if byte.is_ascii_alphanumeric() => address.push(char::from(byte)),
            byte => address.push_str(&format!("%{byte:02x}")),
        }
    }
    address.push_str("?immutable=1");
    let connection =
        Connection::open_with_flags(address, flags | OpenFlags::SQLITE_OPEN_URI).store_err()?;
    Ok((connection, false))
}

/// Sizes and modification times of the files, to detect changes by other processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileStamps([Option<(u64, Option<SystemTime>)>; 2]);

impl FileStamps {
    pub(super) fn of(folder: &Path) -> Self {
        FileStamps([DATABASE_FILE, WAL_FILE].map(|name| {
            let metadata = fs::metadata(folder.join(name)).ok()?;
            Some((metadata.len(), metadata.modified().ok()))
        }))
    }
}
