//! A store whose transactions can be made to fail at any one of their writes.
//!
//! Nothing is written by a call that fails; the disk is said to be full. What the rules above
//! make of it, and what is left behind, is for the tests to see.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tine_core::{BranchId, ConversationId, Digest, Metadata, Name, ProjectId, SourceId, TurnId};
use tine_store::{
    Bookmark, Branch, Conversation, ConversationKey, Entry, EntryKind, FeedPosition, Hidden,
    IndexMark, Job, KeyRange, Operation, Project, Read, Result, Segment, SegmentExtent, SegmentNo,
    Split, Store, StoreError, Totals, Turn, TurnLoc, Write,
};

/// Writes that may still succeed.
#[derive(Debug)]
struct Left(AtomicU64);

impl Left {
    fn take(&self) -> Result<()> {
        let left = self.0.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| match left {
            u64::MAX => Some(u64::MAX),
            left => left.checked_sub(1),
        });
        match left {
            Ok(_) => Ok(()),
            Err(_) => Err(StoreError::DiskFull),
        }
    }
}

/// A store that fails.
pub struct Failing {
    inner: Arc<dyn Store>,
    left: Arc<Left>,
}

impl Failing {
    /// Stands before a store, and lets everything through at first.
    pub fn new(inner: Arc<dyn Store>) -> Self {
        Failing { inner, left: Arc::new(Left(AtomicU64::new(u64::MAX))) }
    }

    /// Lets this many writes through and refuses every one behind them.
    pub fn fail_after(&self, writes: u64) {
        self.left.0.store(writes, Ordering::SeqCst);
    }

    /// Lets everything through again.
    pub fn recover(&self) {
        self.fail_after(u64::MAX);
    }
}

impl Store for Failing {
    fn read(&self, body: &mut dyn FnMut(&dyn Read) -> Result<()>) -> Result<()> {
        self.inner.read(body)
    }

    fn write(&self, mut job: Job) -> Result<()> {
        let left = Arc::clone(&self.left);
        self.inner.write(Box::new(move |inner| job(&mut Writing { inner, left: &left })))
    }

    tine_store::forward_store!(inner);
}

struct Writing<'a> {
    inner: &'a mut dyn Write,
    left: &'a Left,
}

macro_rules! forwarded {
    (reads $($method:ident($($arg:ident: $of:ty),*) -> $answer:ty;)*) => {
        impl Read for Writing<'_> {
            $(fn $method(&self, $($arg: $of),*) -> Result<$answer> {
                self.inner.$method($($arg),*)
            })*
        }
    };
    (writes $($method:ident($($arg:ident: $of:ty),*) -> $answer:ty;)*) => {
        impl Write for Writing<'_> {
            $(fn $method(&mut self, $($arg: $of),*) -> Result<$answer> {
                self.left.take()?;
                self.inner.$method($($arg),*)
            })*
        }
    };
}

forwarded! { reads
    projects() -> Vec<Project>;
    conversations(project: &ProjectId, after: Option<ConversationKey>, limit: usize)
        -> Vec<Conversation>;
    derivatives(project: &ProjectId, of: &ConversationId) -> Vec<Conversation>;
    segments(conversation: ConversationKey) -> Vec<SegmentExtent>;
    forks(conversation: ConversationKey, parent: Option<TurnLoc>) -> Vec<Segment>;
    forks_from(conversation: ConversationKey, at: TurnLoc) -> Vec<Segment>;
    find_hashes(conversation: ConversationKey, low: &Digest, high: &Digest, limit: usize)
        -> Vec<TurnLoc>;
    same_content(loc: TurnLoc, limit: usize) -> Vec<(ConversationKey, TurnLoc)>;
    splits(conversation: ConversationKey) -> Vec<Split>;
    hidden_in(conversation: ConversationKey, segment: SegmentNo) -> Vec<Hidden>;
    hidden(conversation: ConversationKey) -> Vec<Hidden>;
    branches(conversation: ConversationKey) -> Vec<Branch>;
    bookmarks(project: &ProjectId, after: Option<&Name>, limit: usize) -> Vec<Bookmark>;
    bookmarks_in(conversation: ConversationKey) -> Vec<Bookmark>;
    feed(after: FeedPosition, limit: usize) -> Vec<(FeedPosition, Operation)>;
    made_by(at: FeedPosition) -> Vec<(TurnLoc, u32)>;
    entries(project: &ProjectId, kind: EntryKind, range: &KeyRange, limit: usize) -> Vec<Entry>;
    project(id: &ProjectId) -> Option<Project>;
    conversation(project: &ProjectId, id: &ConversationId) -> Option<Conversation>;
    conversation_by_key(key: ConversationKey) -> Option<Conversation>;
    segment(no: SegmentNo) -> Segment;
    last_index(segment: SegmentNo) -> u32;
    turn(loc: TurnLoc) -> Option<Turn>;
    turns(segment: SegmentNo, from: u32, to: u32, visit: &mut dyn FnMut(Turn) -> Result<bool>)
        -> ();
    find_turn(project: &ProjectId, id: &TurnId) -> Option<(ConversationKey, TurnLoc)>;
    branch(conversation: ConversationKey, name: &Name) -> Option<Branch>;
    branch_by_id(project: &ProjectId, id: &BranchId) -> Option<Branch>;
    bookmark(project: &ProjectId, name: &Name) -> Option<Bookmark>;
    last_operation(conversation: ConversationKey) -> Option<Operation>;
    operation(conversation: ConversationKey, seq: u64) -> Option<Operation>;
    operations(
        conversation: ConversationKey, from: u64, to: u64,
        visit: &mut dyn FnMut(Operation) -> Result<bool>
    ) -> ();
    feed_end() -> Option<IndexMark>;
    idempotent(project: &ProjectId, key: &str) -> Option<Operation>;
    entry(project: &ProjectId, kind: EntryKind, key: &[u8]) -> Option<String>;
    piece(project: &ProjectId, source: &SourceId, nth: u32) -> Option<Vec<u8>>;
    totals() -> Totals;
}

forwarded! { writes
    insert_project(project: &Project) -> ();
    insert_conversation(conversation: &Conversation) -> ConversationKey;
    update_conversation(conversation: &Conversation) -> ();
    insert_segment(conversation: ConversationKey, parent: Option<TurnLoc>, base_depth: u32)
        -> SegmentNo;
    insert_turn(conversation: ConversationKey, turn: &Turn) -> ();
    set_metadata(loc: TurnLoc, metadata: &Metadata) -> ();
    purge_turn(loc: TurnLoc, digest: &Digest) -> ();
    insert_split(split: &Split) -> ();
    delete_split(conversation: ConversationKey, whole: TurnLoc) -> ();
    insert_hidden(hidden: &Hidden) -> ();
    delete_hidden(conversation: ConversationKey, operation: u64) -> ();
    put_branch(branch: &Branch) -> ();
    delete_branch(conversation: ConversationKey, id: &BranchId) -> ();
    put_bookmark(bookmark: &Bookmark) -> ();
    delete_bookmark(project: &ProjectId, name: &Name) -> ();
    insert_operation(operation: &Operation) -> FeedPosition;
    set_undone(conversation: ConversationKey, seq: u64, undone: bool) -> ();
    purge_operation(conversation: ConversationKey, seq: u64) -> ();
    put_entry(project: &ProjectId, kind: EntryKind, key: &[u8], text: &str) -> ();
    delete_entry(project: &ProjectId, kind: EntryKind, key: &[u8]) -> ();
    insert_piece(project: &ProjectId, source: &SourceId, nth: u32, bytes: &[u8]) -> ();
    delete_pieces(project: &ProjectId, source: &SourceId) -> ();
}
