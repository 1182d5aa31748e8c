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
    /// What is looked for in a search.
    pub query_bytes: usize,
    /// Words of it; each is a look-up of its own.
    pub query_terms: usize,
    /// One source. Its bytes are streamed, so that it may be larger than a request otherwise is.
    pub source_bytes: usize,
    /// What is new of one conversation, on its way to or from a server.
    pub delta_bytes: usize,
    /// Entities in one store.
    pub facts_per_store: usize,
}

impl Limits {
    /// For reading what a store holds: what was accepted under larger limits, once, stays readable.
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

/// Bytes of a source that are stored and read at once.
pub const PIECE_BYTES: usize = 256 << 10;
