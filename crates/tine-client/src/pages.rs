//! Pages of any size out of pages of the server's size.

use tine_api::{Error, Result};
use tine_core::{ErrorKind, Limits};

/// Returns how many rows a server gives at once.
pub(crate) fn server_rows() -> usize {
    Limits::default().page_rows
}

/// Returns how many rows are wanted; the same refusals as from an engine.
pub(crate) fn wanted(limit: Option<usize>, limits: &Limits) -> Result<usize> {
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
        Some(wanted) => Ok(wanted),
    }
}

/// Reads pages until there are enough rows. `read` gets a cursor and a number of rows; it takes a
/// page in, and answers how many rows it had and where to go on.
pub(crate) fn walk(
    limit: Option<usize>,
    cursor: Option<String>,
    limits: &Limits,
    mut read: impl FnMut(Option<String>, usize) -> Result<(usize, Option<String>)>,
) -> Result<Option<String>> {
    let (mut left, mut cursor) = (wanted(limit, limits)?, cursor);
    loop {
        let (rows, next) = read(cursor.take(), left.min(server_rows()))?;
        left = left.saturating_sub(rows);
        match next {
            Some(next) if left > 0 => cursor = Some(next),
            next => return Ok(next),
        }
    }
}
