//! Listings page by page: records or index keys in order, after the one that a cursor names.

use tine_core::hash::{from_hex, to_hex};
use tine_store::{IndexKey, IndexQuery, Record, RecordQuery};

use super::reader::KnowledgeReader;
use crate::ops::conversation::bad_cursor;
use crate::{Listing, Result};

/// Items that are read for one page, however few of them are shown.
const ITEMS_READ: usize = 10_000;

/// A query whose answer is listed page by page.
pub(super) trait PagedQuery: Sized {
    type Item;

    fn read(&self, knowledge: &KnowledgeReader<'_>, limit: usize) -> Result<Vec<Self::Item>>;
    /// Returns the bytes of an item's key: what a cursor names.
    fn position(item: &Self::Item) -> Vec<u8>;
    fn contains(&self, position: &[u8]) -> bool;
    fn after(self, position: &[u8]) -> Self;
}

impl PagedQuery for RecordQuery {
    type Item = Record;

    fn read(&self, knowledge: &KnowledgeReader<'_>, limit: usize) -> Result<Vec<Record>> {
        Ok(knowledge.records.records(knowledge.project, self, limit)?)
    }

    fn position(item: &Record) -> Vec<u8> {
        item.key().to_bytes()
    }

    fn contains(&self, position: &[u8]) -> bool {
        RecordQuery::contains(self, position)
    }

    fn after(self, position: &[u8]) -> Self {
        self.after_bytes(position)
    }
}

impl PagedQuery for IndexQuery {
    type Item = IndexKey;

    fn read(&self, knowledge: &KnowledgeReader<'_>, limit: usize) -> Result<Vec<IndexKey>> {
        Ok(knowledge.records.index_keys(knowledge.project, self, limit)?)
    }

    fn position(item: &IndexKey) -> Vec<u8> {
        item.to_bytes()
    }

    fn contains(&self, position: &[u8]) -> bool {
        IndexQuery::contains(self, position)
    }

    fn after(self, position: &[u8]) -> Self {
        self.after_bytes(position)
    }
}

/// Starts a query after the item that a cursor names.
pub(super) fn resume<Q: PagedQuery>(query: Q, cursor: Option<&str>) -> Result<Q> {
    match cursor {
        None => Ok(query),
        Some(cursor) => {
            let position = from_hex(cursor).filter(|position| query.contains(position));
            Ok(query.after(&position.ok_or_else(|| bad_cursor(cursor))?))
        }
    }
}

/// Returns a page of what items show; those that show nothing are skipped.
pub(super) fn page<Q: PagedQuery, T>(
    knowledge: &KnowledgeReader<'_>,
    mut query: Q,
    limit: usize,
    mut show: impl FnMut(&Q::Item) -> Result<Option<T>>,
) -> Result<Listing<T>> {
    let mut items = Vec::new();
    let mut seen = 0;
    let mut at_once = limit;
    loop {
        let found = query.read(knowledge, at_once + 1)?;
        for (at, item) in found.iter().take(at_once).enumerate() {
            items.extend(show(item)?);
            seen += 1;
            if items.len() == limit || seen == ITEMS_READ {
                let more = found.len() > at + 1;
                let next = more.then(|| to_hex(&Q::position(item)));
                return Ok(Listing { items, next });
            }
        }
        match found.get(at_once.wrapping_sub(1)).filter(|_| found.len() > at_once) {
            Some(last) => query = query.after(&Q::position(last)),
            None => return Ok(Listing { items, next: None }),
        }
        at_once = (2 * at_once).min(ITEMS_READ);
    }
}
