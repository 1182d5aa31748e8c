//! A store that counts the records that pass through it.
//!
//! Every record handed to the engine counts as one read, each row of a scan and of a listing by
//! itself, and a question with an empty answer as one; every change counts as one write.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tine_core::{BranchId, ConversationId, Digest, Metadata, Name, ProjectId, SourceId, TurnId};
use tine_store::{
    Bookmark, Branch, Conversation, ConversationKey, Entry, EntryKind, FeedPosition, Hidden,
    IndexMark, Job, KeyRange, Operation, Project, Read, Result, Segment, SegmentExtent, SegmentNo,
    Split, Store, Totals, Turn, TurnLoc, Write,
};

/// Records read and written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Records read.
    pub read: u64,
    /// Records written.
    pub written: u64,
}

#[derive(Debug, Default)]
struct Tally {
    read: AtomicU64,
    written: AtomicU64,
}

impl Tally {
    fn read(&self, records: usize) {
        let records = u64::try_from(records).expect("fewer than 2^64 records");
        self.read.fetch_add(records.max(1), Ordering::SeqCst);
    }

    fn written(&self) {
        self.written.fetch_add(1, Ordering::SeqCst);
    }
}

/// A store that counts.
pub struct Counting {
    inner: Arc<dyn Store>,
    tally: Arc<Tally>,
}

impl Counting {
    /// Counts what passes to a store.
    pub fn new(inner: Arc<dyn Store>) -> Self {
        Counting { inner, tally: Arc::default() }
    }

    /// What some work costs.
    pub fn cost_of(&self, work: impl FnOnce()) -> Cost {
        let now = || Cost {
            read: self.tally.read.load(Ordering::SeqCst),
            written: self.tally.written.load(Ordering::SeqCst),
        };
        let before = now();
        work();
        let after = now();
        Cost { read: after.read - before.read, written: after.written - before.written }
    }
}

impl Store for Counting {
    fn read(&self, body: &mut dyn FnMut(&dyn Read) -> Result<()>) -> Result<()> {
        self.inner.read(&mut |inner| body(&Reading { inner, tally: &self.tally }))
    }

    fn write(&self, mut job: Job) -> Result<()> {
        let tally = Arc::clone(&self.tally);
        self.inner.write(Box::new(move |inner| job(&mut Writing { inner, tally: &tally })))
    }

    tine_store::forward_store!(inner);
}

struct Reading<'a> {
    inner: &'a dyn Read,
    tally: &'a Tally,
}

struct Writing<'a> {
    inner: &'a mut dyn Write,
    tally: &'a Tally,
}

/// Reading is the same in both sorts of transaction: each method asks and counts.
macro_rules! counted_reads {
    ($kind:ident) => {
        impl Read for $kind<'_> {
            counted_reads! { @many
                projects() -> Project;
                conversations(project: &ProjectId, after: Option<ConversationKey>, limit: usize)
                    -> Conversation;
                derivatives(project: &ProjectId, of: &ConversationId) -> Conversation;
                segments(conversation: ConversationKey) -> SegmentExtent;
                forks(conversation: ConversationKey, parent: Option<TurnLoc>) -> Segment;
                forks_from(conversation: ConversationKey, at: TurnLoc) -> Segment;
                find_hashes(
                    conversation: ConversationKey, low: &Digest, high: &Digest, limit: usize
                ) -> TurnLoc;
                same_content(loc: TurnLoc, limit: usize) -> (ConversationKey, TurnLoc);
                splits(conversation: ConversationKey) -> Split;
                hidden_in(conversation: ConversationKey, segment: SegmentNo) -> Hidden;
                hidden(conversation: ConversationKey) -> Hidden;
                branches(conversation: ConversationKey) -> Branch;
                bookmarks(project: &ProjectId, after: Option<&Name>, limit: usize) -> Bookmark;
                bookmarks_in(conversation: ConversationKey) -> Bookmark;
                feed(after: FeedPosition, limit: usize) -> (FeedPosition, Operation);
                made_by(at: FeedPosition) -> (TurnLoc, u32);
                entries(
                    project: &ProjectId, kind: EntryKind, range: &KeyRange, limit: usize
                ) -> Entry;
            }
            counted_reads! { @one
                project(id: &ProjectId) -> Option<Project>;
                conversation(project: &ProjectId, id: &ConversationId) -> Option<Conversation>;
                conversation_by_key(key: ConversationKey) -> Option<Conversation>;
                segment(no: SegmentNo) -> Segment;
                last_index(segment: SegmentNo) -> u32;
                turn(loc: TurnLoc) -> Option<Turn>;
                find_turn(project: &ProjectId, id: &TurnId) -> Option<(ConversationKey, TurnLoc)>;
                branch(conversation: ConversationKey, name: &Name) -> Option<Branch>;
                branch_by_id(project: &ProjectId, id: &BranchId) -> Option<Branch>;
                bookmark(project: &ProjectId, name: &Name) -> Option<Bookmark>;
                last_operation(conversation: ConversationKey) -> Option<Operation>;
                operation(conversation: ConversationKey, seq: u64) -> Option<Operation>;
                feed_end() -> Option<IndexMark>;
                idempotent(project: &ProjectId, key: &str) -> Option<Operation>;
                entry(project: &ProjectId, kind: EntryKind, key: &[u8]) -> Option<String>;
                piece(project: &ProjectId, source: &SourceId, nth: u32) -> Option<Vec<u8>>;
                totals() -> Totals;
            }

            fn turns(
                &self,
                segment: SegmentNo,
                from: u32,
                to: u32,
                visit: &mut dyn FnMut(Turn) -> Result<bool>,
            ) -> Result<()> {
                self.inner.turns(segment, from, to, &mut |turn| {
                    self.tally.read(1);
                    visit(turn)
                })
            }

            fn operations(
                &self,
                conversation: ConversationKey,
                from: u64,
                to: u64,
                visit: &mut dyn FnMut(Operation) -> Result<bool>,
            ) -> Result<()> {
                self.inner.operations(conversation, from, to, &mut |operation| {
                    self.tally.read(1);
                    visit(operation)
                })
            }
        }
    };
    (@many $($method:ident($($arg:ident: $of:ty),*) -> $answer:ty;)*) => {
        $(fn $method(&self, $($arg: $of),*) -> Result<Vec<$answer>> {
            let found = self.inner.$method($($arg),*)?;
            self.tally.read(found.len());
            Ok(found)
        })*
    };
    (@one $($method:ident($($arg:ident: $of:ty),*) -> $answer:ty;)*) => {
        $(fn $method(&self, $($arg: $of),*) -> Result<$answer> {
            self.tally.read(1);
            self.inner.$method($($arg),*)
        })*
    };
}

counted_reads!(Reading);
counted_reads!(Writing);

macro_rules! counted_writes {
    ($($method:ident($($arg:ident: $of:ty),*) -> $answer:ty;)*) => {
        impl Write for Writing<'_> {
            $(fn $method(&mut self, $($arg: $of),*) -> Result<$answer> {
                self.tally.written();
                self.inner.$method($($arg),*)
            })*
        }
    };
}

counted_writes! {
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
