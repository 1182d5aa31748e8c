//! The tables, their format number, and the migrations from older formats.

use crate::error::{StoreErr as _, translate};
use std::path::Path;

use rusqlite::Connection;

use tine_store::{Result, StoreError};

/// The newest format that this release reads and writes.
pub const FORMAT: i64 = 5;

/// "Tine" in ASCII.
const APPLICATION_ID: i64 = 0x5469_6e65;

/// 16 KiB: a turn of a kilobyte fits into its page with little waste, and a small change does not
/// write too much to the log.
pub(super) const PAGE_BYTES: u16 = 16_384;

/// Pages in the log before a checkpoint. Opening after a crash reads the log twice. Many pages in it
/// are versions of the same page, so that a more frequent checkpoint costs little.
const CHECKPOINT_PAGES: u32 = 400;

/// Migration `n` converts a store of format `n` to format `n + 1`.
const MIGRATIONS: [&str; 5] = [
    include_str!("schema/0001.sql"),
    include_str!("schema/0002.sql"),
    include_str!("schema/0003.sql"),
    include_str!("schema/0004.sql"),
    include_str!("schema/0005.sql"),
];

/// Creates the tables, or migrates older ones. The caller holds the writer lock.
pub(super) fn prepare(connection: &Connection, folder: &Path) -> Result<()> {
    let path = || folder.to_owned();
    let number = |pragma: &str| connection.pragma_query_value(None, pragma, |row| row.get(0));
    let application: i64 = number("application_id").map_err(|error| {
        if error.sqlite_error_code() == Some(rusqlite::ErrorCode::NotADatabase) {
            StoreError::NotAStore { path: path(), why: "tine.db is not a database".to_owned() }
        } else {
            translate(error)
        }
    })?;
    let format: i64 = number("user_version").store_err()?;
    let tables: i64 = connection
        .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))
        .store_err()?;
    let is_new = application == 0 && format == 0 && tables == 0;
    if !is_new && application != APPLICATION_ID {
        let why = "tine.db belongs to another program".to_owned();
        return Err(StoreError::NotAStore { path: path(), why });
    }
    if format > FORMAT {
        return Err(StoreError::NewerFormat { path: path(), found: format, known: FORMAT });
    }
    if is_new {
        connection.pragma_update(None, "page_size", PAGE_BYTES).store_err()?;
    }
    // The journal mode is stored in the file, the other settings are not.
    connection.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(())).store_err()?;
    connection.pragma_update(None, "synchronous", "full").store_err()?;
    connection.pragma_update(None, "fullfsync", true).store_err()?;
    connection
        .pragma_update_and_check(None, "wal_autocheckpoint", CHECKPOINT_PAGES, |_| Ok(()))
        .store_err()?;
    for (step, sql) in MIGRATIONS.iter().enumerate().skip(usize::try_from(format).unwrap_or(0)) {
        let next = step + 1;
        connection
            .execute_batch(&format!(
                "BEGIN IMMEDIATE; {sql} PRAGMA application_id={APPLICATION_ID}; \
             PRAGMA user_version={next}; COMMIT;"
            ))
            .store_err()?;
    }
    Ok(())
}
