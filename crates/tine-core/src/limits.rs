//! Every bound on what a client may send, by name.

use crate::json;

/// The limits in force. Over a limit the answer is `too_large` and nothing is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// A whole request body, and a whole line of a bundle.
    pub body_bytes: usize,
    /// One content block, in canonical form.
    pub block_bytes: usize,
    /// Messages in one append.
    pub messages_per_append: usize,
    /// Nesting of JSON.
    pub json_depth: usize,
    /// Keys and names: projects, conversations, branches, bookmarks, tags, idempotency keys.
    pub name_bytes: usize,
    /// Rows in one page of an answer.
    pub page_rows: usize,
    /// A search query.
    pub query_bytes: usize,
    /// Terms of a search query; each is a lookup of its own.
    pub query_terms: usize,
    /// One source. Its bytes are streamed, so that it may be larger than a request otherwise is.
    pub source_bytes: usize,
    /// One synced conversation delta.
    pub delta_bytes: usize,
    /// Entities in one store.
    pub facts_per_store: usize,
}

impl Limits {
    /// For reading stored records, which may have been accepted under larger limits.
    pub const STORED: Limits = Limits {
        body_bytes: usize::MAX,
        block_bytes: usize::MAX,
        messages_per_append: usize::MAX,
        json_depth: json::MAX_DEPTH,
        name_bytes: usize::MAX,
        page_rows: usize::MAX,
        query_bytes: usize::MAX,
        query_terms: usize::MAX,
        source_bytes: usize::MAX,
        delta_bytes: usize::MAX,
        facts_per_store: usize::MAX,
    };
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            body_bytes: 32 << 20,
            block_bytes: 16 << 20,
            messages_per_append: 10_000,
            json_depth: 128,
            name_bytes: 512,
            page_rows: 1_000,
            query_bytes: 4_096,
            query_terms: 128,
            source_bytes: 256 << 20,
            delta_bytes: 256 << 20,
            facts_per_store: 1_000,
        }
    }
}

/// Chunk size in which sources are stored and read.
pub const PIECE_BYTES: usize = 256 << 10;
