//! The store's files before and beside SQLite: what is there, whether it can be whole, and how it
//! is read where nothing may be written.
//!
//! SQLite takes an empty file for a new database, a log that it cannot read for no log, and a
//! file of another program for one that it may use. Each of these would lose conversations
//! without a word, so they are looked at first.
//!
//! Files are opened by who is alone, and closed before the first connection ([`super::users`]);
//! everybody else here asks for names and lengths only.

use crate::error::StoreErr as _;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::Path;
use std::time::SystemTime;

use rusqlite::{Connection, OpenFlags};

use super::users::{Alone, USERS_FILE};
use super::{DATABASE_FILE, OpenMode, io, schema, sync, turnstile, wal};
use tine_store::{Result, StoreError};

/// SQLite's log beside the database.
pub(super) const LOG_FILE: &str = "tine.db-wal";

/// What SQLite takes a change back with that was cut off before there was a log: the making of
/// the database.
const JOURNAL_FILE: &str = "tine.db-journal";

/// What may be in a folder in which the making of a store was cut off.
const LOCK_FILES: [&str; 3] = [turnstile::QUEUE_FILE, turnstile::LOCK_FILE, USERS_FILE];

/// What every database of SQLite begins with.
const MAGIC: &[u8; 16] = b"SQLite format 3\0";

/// "Tine", as the header of a store's database says.
const APPLICATION: &[u8; 4] = b"Tine";

/// The first bytes of a database, by SQLite's documentation of its format.
struct Header {
    bytes: [u8; 100],
}

impl Header {
    /// Reads as much of it as there is.
    fn read(file: &mut File) -> io::Result<Self> {
        let mut start = Vec::with_capacity(100);
        file.take(100).read_to_end(&mut start)?;
        let mut bytes = [0; 100];
        bytes[..start.len()].copy_from_slice(&start);
        Ok(Header { bytes })
    }

    fn number(&self, at: usize) -> u32 {
        let mut number = [0; 4];
        number.copy_from_slice(&self.bytes[at..at + 4]);
        u32::from_be_bytes(number)
    }

    fn is_a_database(&self) -> bool {
        self.bytes.starts_with(MAGIC)
    }

    fn is_ours(&self) -> bool {
        self.bytes[68..72] == *APPLICATION
    }

    fn format(&self) -> u32 {
        self.number(60)
    }

    /// Bytes in a page; `None` if it is none that SQLite writes.
    fn page_bytes(&self) -> Option<u64> {
        match u64::from(self.bytes[16]) << 8 | u64::from(self.bytes[17]) {
            1 => Some(65_536),
            bytes if bytes.is_power_of_two() && bytes >= 512 => Some(bytes),
            _ => None,
        }
    }

    /// Bytes that the file must have, if the header knows.
    fn length(&self) -> Option<u64> {
        // The count of pages is valid for the change that it was written with.
        let known = self.number(24) == self.number(92);
        known.then_some(self.page_bytes()? * u64::from(self.number(28)))
    }
}

fn damaged(folder: &Path, name: &str, why: impl Into<String>) -> StoreError {
    StoreError::DamagedFile { path: folder.join(name), why: why.into() }
}

/// Whether there is a log with something in it.
fn log_is_pending(folder: &Path) -> bool {
    length(folder, LOG_FILE).is_some_and(|bytes| bytes > 0)
}

fn length(folder: &Path, name: &str) -> Option<u64> {
    fs::metadata(folder.join(name)).ok().map(|metadata| metadata.len())
}

/// Returns the size of the database and its log.
pub(super) fn disk_bytes(folder: &Path) -> u64 {
    [DATABASE_FILE, LOG_FILE].iter().filter_map(|name| length(folder, name)).sum()
}

/// Whether a store was made here once. The lock file says so: it is written after the tables.
fn was_made(folder: &Path) -> bool {
    length(folder, turnstile::LOCK_FILE).is_some_and(|bytes| bytes > 0)
}

/// Leaves the mark by which a store whose database has gone is told from a new folder.
pub(super) fn note_that_it_is_made(folder: &Path) {
    if was_made(folder) {
        return;
    }
    let path = folder.join(turnstile::LOCK_FILE);
    let noted = File::options().write(true).open(path).and_then(|mut file| {
        file.write_all(b"A Tine store. Use `tine backup` to copy it while it is in use.\n")?;
        file.sync_all()
    });
    // Without the mark the store works as well, and the next opening tries again.
    noted.ok();
}

/// Whether there is a database, in whatever state. A store without one that had one is refused.
pub(super) fn database_is_there(folder: &Path) -> Result<bool> {
    let path = folder.join(DATABASE_FILE);
    // Looked at first: whoever makes a store just now makes the database before its log.
    let (pending, made) = (log_is_pending(folder), was_made(folder));
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

/// Whether everything in a folder could be a new store's.
pub(super) fn is_new(folder: &Path) -> Result<bool> {
    match fs::read_dir(folder) {
        Ok(entries) => Ok(entries
            .filter_map(std::result::Result::ok)
            .all(|entry| LOCK_FILES.iter().any(|own| entry.file_name() == *own))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
        Err(source) => Err(io("reading", folder, source)),
    }
}

/// Makes an empty database if there is none, so that its name is durable before SQLite writes.
///
/// SQLite makes a journal beside the file before it syncs the folder, and after a power loss that
/// journal might be there alone.
pub(super) fn make(folder: &Path, _alone: &Alone<'_>) -> Result<()> {
    let path = folder.join(DATABASE_FILE);
    if path.exists() {
        return Ok(());
    }
    File::create_new(&path).map_err(|source| io("making", &path, source))?;
    sync(folder)
}

/// Looks at the files before SQLite does.
pub(super) fn look(folder: &Path, mode: OpenMode, alone: &Alone<'_>) -> Result<()> {
    if length(folder, JOURNAL_FILE).is_some_and(|bytes| bytes > 0) {
        // SQLite has yet to bring the database back to what it was.
        return Ok(());
    }
    let path = folder.join(DATABASE_FILE);
    let mut file = File::open(&path).map_err(|source| io("opening", &path, source))?;
    let header = Header::read(&mut file).map_err(|source| io("reading", &path, source))?;
    check_database(folder, mode, &file, &header)?;
    check_log(folder, file, &header, alone)
}

/// Looks at the database. Where a log is pending, the header may be older than the store, and
/// only the log tells.
fn check_database(folder: &Path, mode: OpenMode, file: &File, header: &Header) -> Result<()> {
    let path = folder.join(DATABASE_FILE);
    let pending = log_is_pending(folder);
    let there = file.metadata().map_err(|error| io("reading", &path, error))?.len();
    let damaged = |why: String| Err(damaged(folder, DATABASE_FILE, why));
    if there == 0 {
        // A folder in which the making of a store was cut off has neither a log nor the mark.
        return match mode {
            OpenMode::Create if !pending && !was_made(folder) => Ok(()),
            _ => damaged("it is empty".to_owned()),
        };
    }
    if header.is_a_database() && there < header.bytes.len() as u64 {
        return damaged(format!("it is cut: {there} bytes are there"));
    }
    if !header.is_a_database() {
        if header.is_ours() || was_made(folder) {
            return damaged("its first bytes are not those of a database".to_owned());
        }
        let why = "tine.db is not a database".to_owned();
        return Err(StoreError::NotAStore { path: folder.to_owned(), why });
    }
    if pending {
        return Ok(());
    }
    if !header.is_ours() && was_made(folder) {
        return damaged("its header does not say that it is a store of Tine".to_owned());
    }
    if header.is_ours() && header.format() == 0 {
        return damaged("its header says that it has no format".to_owned());
    }
    match header.length() {
        Some(whole) if there < whole => {
            damaged(format!("it is cut: {there} of {whole} bytes are there"))
        }
        _ => Ok(()),
    }
}

/// Compares what SQLite would take from the log with what is in it.
fn check_log(folder: &Path, mut database: File, header: &Header, alone: &Alone<'_>) -> Result<()> {
    if !log_is_pending(folder) {
        return Ok(());
    }
    let path = folder.join(LOG_FILE);
    let reading = |error| io("reading", &path, error);
    let page_bytes = header.page_bytes().unwrap_or(u64::from(schema::PAGE_BYTES));
    let Some(mut log) = wal::Log::open(&path, page_bytes, alone).map_err(reading)? else {
        return Ok(());
    };
    let taken = log.taken().map_err(reading)?;
    match log.passed_over(taken, &mut database).map_err(reading)? {
        Some(why) => Err(damaged(folder, LOG_FILE, why)),
        None => Ok(()),
    }
}

/// Whether a failure means that the files may not be written.
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

/// Opens the database where nothing may be written, and tells whether SQLite can lock it there.
pub(super) fn connect_read_only(folder: &Path) -> Result<(Connection, bool)> {
    let path = folder.join(DATABASE_FILE);
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    if log_is_pending(folder) {
        // Without the log, changes that were acknowledged would be missing.
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

/// The state of the files, to see whether somebody else changed them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp([Option<(u64, Option<SystemTime>)>; 2]);

impl Stamp {
    pub(super) fn of(folder: &Path) -> Self {
        Stamp([DATABASE_FILE, LOG_FILE].map(|name| {
            let metadata = fs::metadata(folder.join(name)).ok()?;
            Some((metadata.len(), metadata.modified().ok()))
        }))
    }
}
