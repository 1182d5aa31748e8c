//! Listings page by page: entries in the order of their keys, behind the one that a cursor names.

use tine_store::{Entry, EntryKind, KeyRange};

use super::ledger::Ledger;
use crate::ops::conversation::bad_cursor;
use crate::{Listing, Result};

/// Entries that are looked at for one page, however few of them are shown.
const LOOKED_AT: usize = 10_000;

/// Keys under a prefix, behind the one that a cursor names.
pub(super) fn page_range(prefix: &[u8], cursor: Option<&str>) -> Result<KeyRange> {
    match cursor {
        None => Ok(KeyRange::prefix(prefix)),
        Some(cursor) => {
            let key = tine_core::hash::from_hex(cursor).filter(|key| key.starts_with(prefix));
            Ok(KeyRange::behind(prefix, &key.ok_or_else(|| bad_cursor(cursor))?))
        }
    }
}

/// A page of what entries show; those that show nothing are passed over.
pub(super) fn page<T>(
    ledger: &Ledger<'_>,
    kind: EntryKind,
    mut range: KeyRange,
    limit: usize,
    mut show: impl FnMut(&Entry) -> Result<Option<T>>,
) -> Result<Listing<T>> {
    let mut items = Vec::new();
    let mut looked_at = 0;
    let mut at_once = limit;
    loop {
        let found = ledger.records.entries(ledger.project, kind, &range, at_once + 1)?;
        for (at, entry) in found.iter().take(at_once).enumerate() {
            items.extend(show(entry)?);
            looked_at += 1;
            if items.len() == limit || looked_at == LOOKED_AT {
                let more = found.len() > at + 1;
                let next = more.then(|| tine_core::hash::to_hex(&entry.key));
                return Ok(Listing { items, next });
            }
        }
        match found.get(at_once) {
            Some(next) => range.from.clone_from(&next.key),
            None => return Ok(Listing { items, next: None }),
        }
        at_once = (2 * at_once).min(LOOKED_AT);
    }
}
