//! The contract between the rules and the place where records live.
//!
//! A transaction is a closure. A store may run a write closure more than once (a lost race, a
//! batch that has to be repeated) and in another thread, so closures have no effects besides the
//! transaction. What a
//! closure reads is one consistent state; what it writes is visible to itself at once and to
//! others all together, or not at all.

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

/// Whether opening a store may make one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenMode {
    /// Makes the store when there is none.
    Create,
    /// Refuses when there is none.
    Existing,
}

/// What becomes of a write transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Make it durable.
    Commit,
    /// Forget it.
    Rollback,
}

/// What a caller does in a write transaction. It owns all that it needs, so that whichever thread
/// is about to commit can run it together with others.
pub type Job = Box<dyn FnMut(&mut dyn Write) -> Result<Verdict> + Send>;

/// A store of records.
pub trait Store: Send + Sync {
    /// Runs a closure over one consistent state.
    fn read(&self, body: &mut dyn FnMut(&dyn Read) -> Result<()>) -> Result<()>;

    /// Runs a job in a transaction. When this returns `Ok` and the verdict was
    /// [`Verdict::Commit`], everything the job wrote is durable.
    fn write(&self, job: Job) -> Result<()>;

    /// Checks the store's own structures, below the level of records.
    fn check(&self) -> Result<Check>;

    /// Seals older turns in less space. Nobody who reads notices.
    fn pack(&self, options: PackOptions) -> Result<Packed>;

    /// Makes sure that what was purged is gone from every place where bytes may linger.
    fn scrub(&self) -> Result<()>;

    /// Writes a complete copy, consistent also while others write, to a new place.
    fn backup(&self, to: &Path) -> Result<()>;

    /// How far the index for searches is.
    fn index_state(&self) -> Result<IndexState> {
        Ok(IndexState::Needless)
    }

    /// Brings the index forward: whatever the closure does to it counts together. One closure
    /// runs at a time, also across processes; it may read the store. An index that is damaged
    /// becomes an empty one, and the closure's work is lost with the rest.
    fn index(&self, body: &mut dyn FnMut(&mut dyn Index) -> Result<()>) -> Result<()> {
        let _ = body;
        Ok(())
    }

    /// Removes turns from the index; not a byte of what they said stays in it.
    fn unindex(&self, turns: &[TurnLoc]) -> Result<()> {
        let _ = turns;
        Ok(())
    }

    /// Turns that may be what is looked for, best first. `None` when the index is not as far as
    /// the caller thinks, because it was lost since: bring it forward and ask again.
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
    /// Turns at the end of each segment that stay as they are: they are read and added to most.
    pub keep_recent: u32,
    /// Fewer turns than this are not worth sealing.
    pub shortest_run: u32,
}

impl Default for PackOptions {
    fn default() -> Self {
        PackOptions { keep_recent: 64, shortest_run: 32 }
    }
}

impl PackOptions {
    /// Everything that there is.
    pub const EVERYTHING: PackOptions = PackOptions { keep_recent: 0, shortest_run: 1 };
}

/// What packing did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Packed {
    /// Turns that were sealed.
    pub turns: u64,
    /// Chunks that they are in.
    pub chunks: u64,
    /// Their bytes before.
    pub raw_bytes: u64,
    /// Their bytes after.
    pub packed_bytes: u64,
}

/// What [`Store::check`] found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Check {
    /// Everything that is wrong.
    pub problems: Vec<DamagedRecord>,
}

/// A record that an index still names and that cannot be read any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostRecord {
    /// Its conversation, if known.
    pub conversation: Option<ConversationKey>,
    /// Which record.
    pub record: String,
}

/// Reading within a transaction.
pub trait Read {
    /// Every project, in order of id.
    fn projects(&self) -> Result<Vec<Project>>;
    /// One project.
    fn project(&self, id: &ProjectId) -> Result<Option<Project>>;

    /// One conversation by id.
    fn conversation(
        &self,
        project: &ProjectId,
        id: &ConversationId,
    ) -> Result<Option<Conversation>>;
    /// One conversation by handle.
    fn conversation_by_key(&self, key: ConversationKey) -> Result<Option<Conversation>>;
    /// Conversations of a project in order of creation, after the given one.
    fn conversations(
        &self,
        project: &ProjectId,
        after: Option<ConversationKey>,
        limit: usize,
    ) -> Result<Vec<Conversation>>;
    /// Conversations derived from the given one, in order of creation.
    fn derivatives(&self, project: &ProjectId, of: &ConversationId) -> Result<Vec<Conversation>>;

    /// One segment.
    fn segment(&self, no: SegmentNo) -> Result<Segment>;
    /// Every segment of a conversation with its size, in order of creation.
    fn segments(&self, conversation: ConversationKey) -> Result<Vec<SegmentExtent>>;
    /// Segments whose first turn is a child of the given one (`None`: of the root), in order of
    /// creation. The turn that follows in the parent's own segment is not among them.
    fn forks(&self, conversation: ConversationKey, parent: Option<TurnLoc>)
    -> Result<Vec<Segment>>;
    /// Segments that fork off a segment at or behind an index.
    fn forks_from(&self, conversation: ConversationKey, at: TurnLoc) -> Result<Vec<Segment>>;
    /// The last index of a segment.
    fn last_index(&self, segment: SegmentNo) -> Result<u32>;

    /// One turn.
    fn turn(&self, loc: TurnLoc) -> Result<Option<Turn>>;
    /// The turns of a segment from one index to another, both included, in order.
    /// The visitor answers whether to go on.
    fn turns(
        &self,
        segment: SegmentNo,
        from: u32,
        to: u32,
        visit: &mut dyn FnMut(Turn) -> Result<bool>,
    ) -> Result<()>;
    /// Where a turn of the project lies.
    fn find_turn(
        &self,
        project: &ProjectId,
        id: &TurnId,
    ) -> Result<Option<(ConversationKey, TurnLoc)>>;
    /// Turns of a conversation whose hash lies in a range, in order of hash.
    fn find_hashes(
        &self,
        conversation: ConversationKey,
        low: &Digest,
        high: &Digest,
        limit: usize,
    ) -> Result<Vec<TurnLoc>>;
    /// Other turns, in the whole store, that hold the same content as this one.
    fn same_content(&self, loc: TurnLoc, limit: usize) -> Result<Vec<(ConversationKey, TurnLoc)>>;

    /// Every split of a conversation.
    fn splits(&self, conversation: ConversationKey) -> Result<Vec<Split>>;
    /// Hidden runs of a segment.
    fn hidden_in(&self, conversation: ConversationKey, segment: SegmentNo) -> Result<Vec<Hidden>>;
    /// Hidden runs of a conversation.
    fn hidden(&self, conversation: ConversationKey) -> Result<Vec<Hidden>>;

    /// One branch by name.
    fn branch(&self, conversation: ConversationKey, name: &Name) -> Result<Option<Branch>>;
    /// One branch by id.
    fn branch_by_id(&self, project: &ProjectId, id: &BranchId) -> Result<Option<Branch>>;
    /// Branches of a conversation in order of name.
    fn branches(&self, conversation: ConversationKey) -> Result<Vec<Branch>>;

    /// One bookmark.
    fn bookmark(&self, project: &ProjectId, name: &Name) -> Result<Option<Bookmark>>;
    /// Bookmarks of a project in order of name, after the given one.
    fn bookmarks(
        &self,
        project: &ProjectId,
        after: Option<&Name>,
        limit: usize,
    ) -> Result<Vec<Bookmark>>;
    /// Bookmarks on turns of a conversation, in order of name.
    fn bookmarks_in(&self, conversation: ConversationKey) -> Result<Vec<Bookmark>>;

    /// The newest operation of a conversation.
    fn last_operation(&self, conversation: ConversationKey) -> Result<Option<Operation>>;
    /// Number and hash of the newest operation, which is all that the next one needs.
    fn log_end(&self, conversation: ConversationKey) -> Result<Option<(u64, OperationHash)>> {
        let last = self.last_operation(conversation)?;
        Ok(last.map(|operation| (operation.seq, operation.hash)))
    }
    /// When a conversation was last changed.
    fn changed_at(&self, conversation: ConversationKey) -> Result<Option<Timestamp>> {
        Ok(self.last_operation(conversation)?.map(|operation| operation.at))
    }
    /// One operation.
    fn operation(&self, conversation: ConversationKey, seq: u64) -> Result<Option<Operation>>;
    /// Operations of a conversation with `from <= seq <= to`, oldest first.
    /// The visitor answers whether to go on.
    fn operations(
        &self,
        conversation: ConversationKey,
        from: u64,
        to: u64,
        visit: &mut dyn FnMut(Operation) -> Result<bool>,
    ) -> Result<()>;
    /// Operations of the whole store behind a place in the feed.
    fn feed(&self, after: FeedPosition, limit: usize) -> Result<Vec<(FeedPosition, Operation)>>;
    /// The newest operation of the whole store: where the feed ends.
    fn feed_end(&self) -> Result<Option<IndexMark>>;
    /// Turns that an operation of the feed made, in runs: the first of each, and how many.
    fn made_by(&self, at: FeedPosition) -> Result<Vec<(TurnLoc, u32)>>;
    /// The operation that a key was used for.
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
    /// One piece of a source's bytes, from 0.
    fn piece(&self, project: &ProjectId, source: &SourceId, nth: u32) -> Result<Option<Vec<u8>>>;

    /// How much there is.
    fn totals(&self) -> Result<Totals>;
}

/// Changing records within a transaction.
pub trait Write: Read {
    /// Adds a project.
    fn insert_project(&mut self, project: &Project) -> Result<()>;

    /// Adds a conversation and answers its handle; the one in the record is ignored.
    fn insert_conversation(&mut self, conversation: &Conversation) -> Result<ConversationKey>;
    /// Replaces what may change of a conversation: root (only by nothing), title, metadata and
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
    /// Its id is new in the project and its hash in the conversation. The rules see to that: an
    /// id is made from time and randomness, one that an import brings is looked up first, and so
    /// is every hash. A store may refuse a repeated one, as the memory store does; it need not
    /// look, since looking would cost each append what writing look-ups late saves.
    fn insert_turn(&mut self, conversation: ConversationKey, turn: &Turn) -> Result<()>;
    /// Replaces a turn's metadata.
    fn set_metadata(&mut self, loc: TurnLoc, metadata: &Metadata) -> Result<()>;
    /// Erases what a turn says and its metadata, leaving the digest.
    fn purge_turn(&mut self, loc: TurnLoc, digest: &Digest) -> Result<()>;

    /// Shows a turn as two.
    fn insert_split(&mut self, split: &Split) -> Result<()>;
    /// Shows it as one again.
    fn delete_split(&mut self, conversation: ConversationKey, whole: TurnLoc) -> Result<()>;
    /// Hides a run of turns.
    fn insert_hidden(&mut self, hidden: &Hidden) -> Result<()>;
    /// Shows what an operation hid.
    fn delete_hidden(&mut self, conversation: ConversationKey, operation: u64) -> Result<()>;

    /// Adds a branch, or replaces the one with the same id.
    fn put_branch(&mut self, branch: &Branch) -> Result<()>;
    /// Removes a branch; its turns stay.
    fn delete_branch(&mut self, conversation: ConversationKey, id: &BranchId) -> Result<()>;
    /// Adds a bookmark, or replaces the one with the same name.
    fn put_bookmark(&mut self, bookmark: &Bookmark) -> Result<()>;
    /// Removes a bookmark.
    fn delete_bookmark(&mut self, project: &ProjectId, name: &Name) -> Result<()>;

    /// Adds the next operation of a conversation. Whoever changes a conversation that is there
    /// adds one: what is known of a conversation holds as long as its log has the same end.
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

/// A turn that must be there because another record points at it.
pub fn required<T>(record: Option<T>, what: impl FnOnce() -> String) -> Result<T> {
    record.ok_or_else(|| StoreError::Corrupt {
        record: what(),
        why: "another record points at it, and it is not there".to_owned(),
    })
}
