//! The contract between the engine and its stores.
//!
//! A transaction is a closure. A store may run a write closure more than once (after a conflict, or
//! when a batch is repeated) and in another thread, so closures have no side effects outside the
//! transaction. A closure reads one consistent snapshot; its writes are visible to itself at once,
//! and to others all together or not at all.

use std::path::Path;

use tine_core::{
    BranchId, ConversationId, DamagedRecord, Digest, Metadata, Name, OperationHash, ProjectId,
    SourceId, Timestamp, TurnId,
};

use crate::families::{IndexKey, IndexQuery, Record, RecordKey, RecordQuery};
use crate::records::{
    Bookmark, Branch, Conversation, ConversationKey, FeedPosition, Hidden, Operation, Project,
    Segment, SegmentExtent, SegmentNo, Split, Totals, Turn, TurnLoc,
};
use crate::scan;
use crate::search::{Index, IndexMark, IndexState, Ranked, SearchFilter, TextQuery};
use crate::{Result, StoreError};

/// Whether opening a store may create one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenMode {
    /// Creates a missing store.
    Create,
    /// Fails if there is no store.
    Existing,
}

/// How a write transaction ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Make its writes durable.
    Commit,
    /// Undo its writes.
    Rollback,
}

/// The body of a write transaction. It owns its data, so that another thread can run it as part of a
/// batch.
pub type Job = Box<dyn FnMut(&mut dyn Write) -> Result<Verdict> + Send>;

/// A store of records.
pub trait Store: Send + Sync {
    /// Runs a closure over one consistent snapshot.
    fn read(&self, body: &mut dyn FnMut(&dyn Read) -> Result<()>) -> Result<()>;

    /// Runs a job in a transaction. When this returns `Ok` and the verdict was
    /// [`Verdict::Commit`], everything the job wrote is durable.
    fn write(&self, job: Job) -> Result<()>;

    /// Checks the store's own structures, below the level of records.
    fn check(&self) -> Result<StoreCheck>;

    /// Compresses older turns. Readers see no difference.
    fn pack(&self, options: PackOptions) -> Result<Packed>;

    /// Removes purged content from every place where its bytes may remain.
    fn scrub(&self) -> Result<()>;

    /// Writes a complete copy to a new folder; it is consistent even while others write.
    fn backup(&self, to: &Path) -> Result<()>;

    /// Returns the state of the search index.
    fn index_state(&self) -> Result<IndexState> {
        Ok(IndexState::NotNeeded)
    }

    /// Updates the search index; the changes of the closure take effect together. One closure runs
    /// at a time, also across processes; it may read the store. A damaged index is replaced by an
    /// empty one, and the changes are lost.
    fn index(&self, body: &mut dyn FnMut(&mut dyn Index) -> Result<()>) -> Result<()> {
        let _ = body;
        Ok(())
    }

    /// Removes turns from the search index; none of their bytes remain in it.
    fn unindex(&self, turns: &[TurnLoc]) -> Result<()> {
        let _ = turns;
        Ok(())
    }

    /// Returns candidates for a query, best first. `None` if the index does not reach `through`,
    /// because it was lost since: update it and search again.
    fn search(
        &self,
        query: &TextQuery,
        filter: &SearchFilter,
        through: FeedPosition,
    ) -> Result<Option<Ranked>> {
        let _ = through;
        let mut found = None;
        self.read(&mut |records| {
            found = Some(scan::search(records, query, filter)?);
            Ok(())
        })?;
        Ok(found)
    }
}

/// Which turns to pack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PackOptions {
    /// The number of turns at the end of each segment that are not packed.
    pub keep_recent: u32,
    /// Shorter runs of turns are not packed.
    pub shortest_run: u32,
}

impl Default for PackOptions {
    fn default() -> Self {
        PackOptions { keep_recent: 64, shortest_run: 32 }
    }
}

impl PackOptions {
    /// Packs every turn.
    pub const EVERYTHING: PackOptions = PackOptions { keep_recent: 0, shortest_run: 1 };
}

/// The result of packing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Packed {
    /// Packed turns.
    pub turns: u64,
    /// Chunks that hold them.
    pub chunks: u64,
    /// Their size before.
    pub raw_bytes: u64,
    /// Their size after.
    pub packed_bytes: u64,
}

/// What [`Store::check`] found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoreCheck {
    /// The problems found.
    pub problems: Vec<DamagedRecord>,
}

/// A record that an index lists and that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostRecord {
    /// Its conversation, if known.
    pub conversation: Option<ConversationKey>,
    /// A description of the record.
    pub record: String,
}

/// The reading half of a transaction.
pub trait Read {
    /// Returns every project in order of id.
    fn projects(&self) -> Result<Vec<Project>>;
    /// Returns one project.
    fn project(&self, id: &ProjectId) -> Result<Option<Project>>;

    /// Returns one conversation by id.
    fn conversation(
        &self,
        project: &ProjectId,
        id: &ConversationId,
    ) -> Result<Option<Conversation>>;
    /// Returns one conversation by handle.
    fn conversation_by_key(&self, key: ConversationKey) -> Result<Option<Conversation>>;
    /// Returns conversations of a project in order of creation, after the given one.
    fn conversations(
        &self,
        project: &ProjectId,
        after: Option<ConversationKey>,
        limit: usize,
    ) -> Result<Vec<Conversation>>;
    /// Returns the conversations derived from the given one, in order of creation.
    fn derivatives(&self, project: &ProjectId, of: &ConversationId) -> Result<Vec<Conversation>>;

    /// Returns one segment.
    fn segment(&self, no: SegmentNo) -> Result<Segment>;
    /// Returns every segment of a conversation with its size, in order of creation.
    fn segments(&self, conversation: ConversationKey) -> Result<Vec<SegmentExtent>>;
    /// Returns the segments whose first turn is a child of the given one (`None`: of the root), in
    /// order of creation. The parent's own segment is not among them.
    fn forks(&self, conversation: ConversationKey, parent: Option<TurnLoc>)
    -> Result<Vec<Segment>>;
    /// Returns the segments that fork off a segment at or after an index.
    fn forks_from(&self, conversation: ConversationKey, at: TurnLoc) -> Result<Vec<Segment>>;
    /// Returns the last index of a segment.
    fn last_index(&self, segment: SegmentNo) -> Result<u32>;

    /// Returns one turn.
    fn turn(&self, loc: TurnLoc) -> Result<Option<Turn>>;
    /// Returns the time of a turn.
    fn turn_time(&self, loc: TurnLoc) -> Result<Option<Timestamp>> {
        Ok(self.turn(loc)?.map(|turn| turn.created_at))
    }
    /// Visits the turns of a segment from one index to another, both included, in order. The visitor
    /// returns whether to continue.
    fn turns(
        &self,
        segment: SegmentNo,
        from: u32,
        to: u32,
        visit: &mut dyn FnMut(Turn) -> Result<bool>,
    ) -> Result<()>;
    /// Finds a turn of the project by id.
    fn find_turn(
        &self,
        project: &ProjectId,
        id: &TurnId,
    ) -> Result<Option<(ConversationKey, TurnLoc)>>;
    /// Returns turns of a conversation whose hash is in a range, in order of hash.
    fn find_hashes(
        &self,
        conversation: ConversationKey,
        low: &Digest,
        high: &Digest,
        limit: usize,
    ) -> Result<Vec<TurnLoc>>;
    /// Returns other turns, in the whole store, with the same content.
    fn same_content(&self, loc: TurnLoc, limit: usize) -> Result<Vec<(ConversationKey, TurnLoc)>>;

    /// Returns every split of a conversation.
    fn splits(&self, conversation: ConversationKey) -> Result<Vec<Split>>;
    /// Returns the hidden runs of a segment.
    fn hidden_in(&self, conversation: ConversationKey, segment: SegmentNo) -> Result<Vec<Hidden>>;
    /// Returns the hidden runs of a conversation.
    fn hidden(&self, conversation: ConversationKey) -> Result<Vec<Hidden>>;

    /// Returns one branch by name.
    fn branch(&self, conversation: ConversationKey, name: &Name) -> Result<Option<Branch>>;
    /// Returns one branch by id.
    fn branch_by_id(&self, project: &ProjectId, id: &BranchId) -> Result<Option<Branch>>;
    /// Returns the branches of a conversation in order of name.
    fn branches(&self, conversation: ConversationKey) -> Result<Vec<Branch>>;

    /// Returns one bookmark.
    fn bookmark(&self, project: &ProjectId, name: &Name) -> Result<Option<Bookmark>>;
    /// Returns bookmarks of a project in order of name, after the given one.
    fn bookmarks(
        &self,
        project: &ProjectId,
        after: Option<&Name>,
        limit: usize,
    ) -> Result<Vec<Bookmark>>;
    /// Returns the bookmarks on turns of a conversation, in order of name.
    fn bookmarks_in(&self, conversation: ConversationKey) -> Result<Vec<Bookmark>>;

    /// Returns the newest operation of a conversation.
    fn last_operation(&self, conversation: ConversationKey) -> Result<Option<Operation>>;
    /// Returns number and hash of the newest operation, which is all that the next one needs.
    fn log_end(&self, conversation: ConversationKey) -> Result<Option<(u64, OperationHash)>> {
        let last = self.last_operation(conversation)?;
        Ok(last.map(|operation| (operation.seq, operation.hash)))
    }
    /// Returns the time of a conversation's last change.
    fn changed_at(&self, conversation: ConversationKey) -> Result<Option<Timestamp>> {
        Ok(self.last_operation(conversation)?.map(|operation| operation.at))
    }
    /// Returns one operation.
    fn operation(&self, conversation: ConversationKey, seq: u64) -> Result<Option<Operation>>;
    /// Visits the operations of a conversation with `from <= seq <= to`, oldest first. The visitor
    /// returns whether to continue.
    fn operations(
        &self,
        conversation: ConversationKey,
        from: u64,
        to: u64,
        visit: &mut dyn FnMut(Operation) -> Result<bool>,
    ) -> Result<()>;
    /// Returns operations of the whole store after a position in the feed.
    fn feed(&self, after: FeedPosition, limit: usize) -> Result<Vec<(FeedPosition, Operation)>>;
    /// Returns the newest operation of the whole store: the end of the feed.
    fn feed_end(&self) -> Result<Option<IndexMark>>;
    /// Returns the turns that an operation of the feed made, as runs: first turn and count.
    fn made_by(&self, at: FeedPosition) -> Result<Vec<(TurnLoc, u32)>>;
    /// Returns the operation of an idempotency key.
    fn idempotent(&self, project: &ProjectId, key: &str) -> Result<Option<Operation>>;

    /// Returns one record of a family.
    fn record(&self, project: &ProjectId, key: &RecordKey) -> Result<Option<Record>>;
    /// Returns records of a family in order of key.
    fn records(
        &self,
        project: &ProjectId,
        query: &RecordQuery,
        limit: usize,
    ) -> Result<Vec<Record>>;
    /// Returns keys of an index in order. Each names the record that it leads to.
    fn index_keys(
        &self,
        project: &ProjectId,
        query: &IndexQuery,
        limit: usize,
    ) -> Result<Vec<IndexKey>>;
    /// Returns one piece of a source's bytes; pieces count from 0.
    fn piece(&self, project: &ProjectId, source: &SourceId, nth: u32) -> Result<Option<Vec<u8>>>;

    /// Returns counts of records and the size on disk.
    fn totals(&self) -> Result<Totals>;
}

/// The writing half of a transaction.
pub trait Write: Read {
    /// Adds a project.
    fn insert_project(&mut self, project: &Project) -> Result<()>;

    /// Adds a conversation and returns its handle; the one in the record is ignored.
    fn insert_conversation(&mut self, conversation: &Conversation) -> Result<ConversationKey>;
    /// Replaces the mutable fields of a conversation: root (only by `None`), title, metadata and
    /// visibility.
    fn update_conversation(&mut self, conversation: &Conversation) -> Result<()>;

    /// Starts a segment. Its first turn must follow in the same transaction.
    fn insert_segment(
        &mut self,
        conversation: ConversationKey,
        parent: Option<TurnLoc>,
        base_depth: u32,
    ) -> Result<SegmentNo>;
    /// Adds a turn at the end of its segment.
    ///
    /// Its id must be new in the project, and its hash in the conversation. The engine ensures that:
    /// an id is made from time and randomness, an imported id is looked up first, and so is every
    /// hash. A store may reject duplicates, as the memory store does, but need not check for them:
    /// a look-up on each append would cost what deferred index writes save.
    fn insert_turn(&mut self, conversation: ConversationKey, turn: &Turn) -> Result<()>;
    /// Replaces a turn's metadata.
    fn set_metadata(&mut self, loc: TurnLoc, metadata: &Metadata) -> Result<()>;
    /// Erases a turn's content and metadata, leaving the digest.
    fn purge_turn(&mut self, loc: TurnLoc, digest: &Digest) -> Result<()>;

    /// Shows a turn as two.
    fn insert_split(&mut self, split: &Split) -> Result<()>;
    /// Shows a split turn as one again.
    fn delete_split(&mut self, conversation: ConversationKey, whole: TurnLoc) -> Result<()>;
    /// Hides a run of turns.
    fn insert_hidden(&mut self, hidden: &Hidden) -> Result<()>;
    /// Shows the turns that an operation hid.
    fn delete_hidden(&mut self, conversation: ConversationKey, operation: u64) -> Result<()>;

    /// Adds a branch, or replaces the one with the same id.
    fn put_branch(&mut self, branch: &Branch) -> Result<()>;
    /// Removes a branch; its turns are kept.
    fn delete_branch(&mut self, conversation: ConversationKey, id: &BranchId) -> Result<()>;
    /// Adds a bookmark, or replaces the one with the same name.
    fn put_bookmark(&mut self, bookmark: &Bookmark) -> Result<()>;
    /// Removes a bookmark.
    fn delete_bookmark(&mut self, project: &ProjectId, name: &Name) -> Result<()>;

    /// Adds the next operation of a conversation. Every change of an existing conversation adds one,
    /// so cached records of a conversation are valid while its log has the same end.
    fn insert_operation(&mut self, operation: &Operation) -> Result<()>;
    /// Marks an operation as undone or not.
    fn set_undone(&mut self, conversation: ConversationKey, seq: u64, undone: bool) -> Result<()>;
    /// Erases the detail of an operation, leaving its digest.
    fn purge_operation(&mut self, conversation: ConversationKey, seq: u64) -> Result<()>;

    /// Adds a record that does not exist yet, and its index keys. Saves the read that
    /// [`put_record`](Write::put_record) needs.
    fn insert_record(&mut self, project: &ProjectId, record: &Record) -> Result<()>;
    /// Adds a record or replaces the one with the same key, and updates the indexes.
    fn put_record(&mut self, project: &ProjectId, record: &Record) -> Result<()>;
    /// Removes a record that exists, and its index keys.
    fn delete_record(&mut self, project: &ProjectId, key: &RecordKey) -> Result<()>;
    /// Adds the next piece of a source's bytes.
    fn insert_piece(
        &mut self,
        project: &ProjectId,
        source: &SourceId,
        nth: u32,
        bytes: &[u8],
    ) -> Result<()>;
    /// Removes all bytes of a source.
    fn delete_pieces(&mut self, project: &ProjectId, source: &SourceId) -> Result<()>;
}

/// Returns a record that another one refers to, or reports it as corrupt.
pub fn required<T>(record: Option<T>, what: impl FnOnce() -> String) -> Result<T> {
    record.ok_or_else(|| StoreError::Corrupt {
        record: what(),
        why: "another record points at it, and it is not there".to_owned(),
    })
}
