//! Translation of SQLite's errors into store errors.

use rusqlite::{Connection, Params};
use tine_store::{Result, StoreError};

use crate::BUSY_TIMEOUT_MS;

/// SQLite could not extend its shared-memory file: the disk is full.
const IOERR_SHMSIZE: i32 = 10 | 19 << 8;

/// Returns whether SQLite reports a missing table or column. Statements are fixed and match the
/// schema, so a missing object means that the schema table is damaged.
fn names_missing_object(message: &str) -> bool {
    ["no such table", "no such column", "has no column named"]
        .iter()
        .any(|text| message.contains(text))
}

/// Converts results of SQLite into results of the store.
pub(crate) trait StoreErr<T> {
    /// Translates the error.
    fn store_err(self) -> Result<T>;
}

impl<T> StoreErr<T> for rusqlite::Result<T> {
    fn store_err(self) -> Result<T> {
        self.map_err(translate)
    }
}

/// Runs a statement that is prepared once; returns the number of changed rows.
pub(crate) fn execute(connection: &Connection, sql: &str, params: impl Params) -> Result<usize> {
    connection.prepare_cached(sql).store_err()?.execute(params).store_err()
}

pub(crate) fn translate(error: rusqlite::Error) -> StoreError {
    use rusqlite::{Error, ErrorCode};
    let corrupt =
        |record: &str| StoreError::Corrupt { record: record.to_owned(), why: error.to_string() };
    match &error {
        // A value of a type or a size that Tine never writes.
        Error::FromSqlConversionFailure(..)
        | Error::IntegralValueOutOfRange(..)
        | Error::InvalidColumnType(..)
        | Error::Utf8Error(..) => return corrupt("in a row of tine.db"),
        Error::SqliteFailure(code, _) if code.extended_code == IOERR_SHMSIZE => {
            return StoreError::DiskFull;
        }
        Error::SqlInputError { msg, .. } | Error::SqliteFailure(_, Some(msg))
            if names_missing_object(msg) =>
        {
            return corrupt("list of tables in tine.db");
        }
        _ => {}
    }
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => StoreError::DiskFull,
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => corrupt("tine.db"),
        Some(ErrorCode::ReadOnly) => StoreError::ReadOnly { path: "tine.db".into() },
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            StoreError::Busy { waited_ms: BUSY_TIMEOUT_MS }
        }
        _ => StoreError::Backend(Box::new(error)),
    }
}
