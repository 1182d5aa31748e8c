//! The tables, their format number, and the way from older formats to this one.

use crate::error::{StoreErr as _, translate};
use std::path::Path;

use rusqlite::Connection;

use tine_store::{Result, StoreError};

/// The newest format that this release reads and writes.
pub const FORMAT: i64 = 5;

/// "Tine" in the file's header.
const APPLICATION_ID: i64 = 0x5469_6e65;

/// Pages of 16 KiB: a turn of a kilobyte stays in its page, few bytes are left over, and a small
/// change does not write too much to the log.
pub(super) const PAGE_BYTES: u16 = 16_384;

/// Pages in the log before they are copied to their places. Whoever opens the store after a crash
/// reads the log twice; and many of its pages are the same one, with one row more each time, so
/// that copying earlier costs little more.
const LOG_PAGES: u32 = 400;

/// Step `n` brings a store of format `n` to format `n + 1`.
const STEPS: [&str; 5] = [
    include_str!("schema/0001.sql"),
    include_str!("schema/0002.sql"),
    include_str!("schema/0003.sql"),
    include_str!("schema/0004.sql"),
    include_str!("schema/0005.sql"),
];

/// Makes the tables, or brings older ones up to date. The caller holds the turnstile.
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
    let fresh = application == 0 && format == 0 && tables == 0;
    if !fresh && application != APPLICATION_ID {
        let why = "tine.db belongs to another program".to_owned();
        return Err(StoreError::NotAStore { path: path(), why });
    }
    if format > FORMAT {
        return Err(StoreError::NewerFormat { path: path(), found: format, known: FORMAT });
    }
    if fresh {
        connection.pragma_update(None, "page_size", PAGE_BYTES).store_err()?;
    }
    // Both settings of the log are asked for on every opening: the first is kept in the file,
    // the second is not.
    connection.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(())).store_err()?;
    connection.pragma_update(None, "synchronous", "full").store_err()?;
    connection.pragma_update(None, "fullfsync", true).store_err()?;
    connection
        .pragma_update_and_check(None, "wal_autocheckpoint", LOG_PAGES, |_| Ok(()))
        .store_err()?;
    for (step, sql) in STEPS.iter().enumerate().skip(usize::try_from(format).unwrap_or(0)) {
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
