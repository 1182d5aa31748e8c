//! Assembles pages of any size from pages of the server.

use tine_api::{Error, Result};
use tine_core::{ErrorKind, Limits};

/// Returns the page size of a server.
pub(crate) fn server_rows() -> usize {
    Limits::default().page_rows
}

/// Returns the requested number of rows, with the same errors as an engine.
pub(crate) fn requested_rows(limit: Option<usize>, limits: &Limits) -> Result<usize> {
    let most = limits.page_rows;
    match limit {
        None => Ok(most),
        Some(0) => {
            Err(Error::invalid("a page holds at least one row; `limit` is 0; give 1 or more"))
        }
        Some(given) if given > most => {
            let why = format!("rows in a page: at most {most}, not {given}; nothing was stored");
            Err(Error::new(ErrorKind::TooLarge, why))
        }
        Some(rows) => Ok(rows),
    }
}

/// Reads pages until there are enough rows. `read` takes a cursor and a number of rows, reads a page
/// and returns its number of rows and the next cursor.
pub(crate) fn walk(
    limit: Option<usize>,
    cursor: Option<String>,
    limits: &Limits,
    mut read: impl FnMut(Option<String>, usize) -> Result<(usize, Option<String>)>,
) -> Result<Option<String>> {
    let (mut left, mut cursor) = (requested_rows(limit, limits)?, cursor);
    loop {
        let (rows, next) = read(cursor.take(), left.min(server_rows()))?;
        left = left.saturating_sub(rows);
        match next {
            Some(next) if left > 0 => cursor = Some(next),
            next => return Ok(next),
        }
    }
}
