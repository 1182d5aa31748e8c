//! SQLite's errors in the store's terms.

use tine_store::{Result, StoreError};

use crate::BUSY_TIMEOUT_MS;

/// What SQLite could not allocate for its shared memory, which only a full disk explains.
const IOERR_SHMSIZE: i32 = 10 | 19 << 8;

/// Whether a statement names something that is not there. Statements are fixed and name what the
/// tables were made with, so it is the list of tables that has changed.
fn is_about_the_tables(message: &str) -> bool {
    ["no such table", "no such column", "has no column named"]
        .iter()
        .any(|words| message.contains(words))
}

/// Turns what SQLite answers into what a store answers.
pub(crate) trait StoreErr<T> {
    /// Translates the error into the store's terms.
    fn store_err(self) -> Result<T>;
}

impl<T> StoreErr<T> for rusqlite::Result<T> {
    fn store_err(self) -> Result<T> {
        self.map_err(translate)
    }
}

/// Returns the store error that a failure of SQLite means.
pub(crate) fn translate(error: rusqlite::Error) -> StoreError {
    use rusqlite::{Error, ErrorCode};
    let damaged =
        |record: &str| StoreError::Corrupt { record: record.to_owned(), why: error.to_string() };
    match &error {
        // A value of a type or a size that Tine never writes.
        Error::FromSqlConversionFailure(..)
        | Error::IntegralValueOutOfRange(..)
        | Error::InvalidColumnType(..)
        | Error::Utf8Error(..) => return damaged("in a row of tine.db"),
        Error::SqliteFailure(code, _) if code.extended_code == IOERR_SHMSIZE => {
            return StoreError::DiskFull;
        }
        Error::SqlInputError { msg, .. } | Error::SqliteFailure(_, Some(msg))
            if is_about_the_tables(msg) =>
        {
            return damaged("list of tables in tine.db");
        }
        _ => {}
    }
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => StoreError::DiskFull,
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => damaged("tine.db"),
        Some(ErrorCode::ReadOnly) => StoreError::ReadOnly { path: "tine.db".into() },
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            StoreError::Busy { waited_ms: BUSY_TIMEOUT_MS }
        }
        _ => StoreError::Backend(Box::new(error)),
    }
}
