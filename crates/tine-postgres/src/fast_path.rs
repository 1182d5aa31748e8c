//! The fast path: plain appends in one round trip.
//!
//! The job runs over its [cached conversation](crate::conversation_cache); its writes are collected
//! and sent in one [batch](crate::batch) with those of others. Only a job that adds the next
//! operation of that conversation is committed this way: that the number is free proves that
//! nothing has changed. Any other outcome (an error, no change, a record that is not cached) may
//! rest on stale records, and the job runs again in a transaction.

use std::cell::{Cell, RefCell};

use tine_core::{
    BranchId, ConversationId, Digest, Metadata, Name, OperationHash, ProjectId, SourceId, TurnId,
};
use tine_store::{
    Bookmark, Branch, Conversation, ConversationKey, FeedPosition, Hidden, IndexKey, IndexMark,
    IndexQuery, Job, Operation, Project, Read, Record, RecordKey, RecordQuery, Result, Segment,
    SegmentExtent, SegmentNo, Split, StoreError, Totals, Turn, TurnLoc, Verdict, Write,
};

use crate::StoreContext;
use crate::batch::AppendOutcome;
use crate::conversation_cache::{CachedConversation, ConversationLease, PendingAppend};
use crate::rows::{self, project_of};
use crate::txn::CommitWitness;

pub(crate) enum FastPathOutcome {
    Committed,
    /// It is not a plain append, or another writer won: run it in a transaction.
    NotApplicable,
    /// The database could not be reached.
    Unreachable,
    /// Whether it was stored is unknown.
    InDoubt(CommitWitness),
}

/// Tries a job in one round trip.
pub(crate) fn attempt(context: &StoreContext, job: &mut Job) -> FastPathOutcome {
    let mut path = FastPath {
        context,
        lease: RefCell::default(),
        cached: RefCell::default(),
        append: PendingAppend::default(),
        assumed_key: RefCell::default(),
        missed: Cell::new(false),
    };
    let verdict = job(&mut path);
    if path.missed.get() || !matches!(verdict, Ok(Verdict::Commit)) || !path.is_verifiable() {
        // The cached records are still valid.
        if let (Some(lease), Some(cached)) = (path.lease.take(), path.cached.take()) {
            context.cache.put_back(lease, cached);
        }
        return FastPathOutcome::NotApplicable;
    }
    path.send()
}

struct FastPath<'s> {
    context: &'s StoreContext,
    lease: RefCell<Option<ConversationLease>>,
    cached: RefCell<Option<CachedConversation>>,
    append: PendingAppend,
    /// An idempotency key that is assumed to be new.
    assumed_key: RefCell<Option<String>>,
    /// Whether a record was requested that is not cached.
    missed: Cell<bool>,
}

impl FastPath<'_> {
    fn miss<T>(&self) -> Result<T> {
        self.missed.set(true);
        Err(StoreError::Busy { waited_ms: 0 })
    }

    fn read_cached<T>(
        &self,
        key: ConversationKey,
        read: impl FnOnce(&CachedConversation) -> Option<T>,
    ) -> Result<T> {
        let cached = self.cached.borrow();
        match cached.as_ref().filter(|cached| cached.conversation.key == key).and_then(read) {
            Some(found) => Ok(found),
            None => self.miss(),
        }
    }

    /// Returns whether storing the operation proves that the records read were current.
    fn is_verifiable(&self) -> bool {
        let cached = self.cached.borrow();
        let (Some(cached), Some(operation)) = (cached.as_ref(), &self.append.operation) else {
            return false;
        };
        let next = cached.end.map_or(1, |(seq, _)| seq + 1);
        let key = operation.idempotency.as_ref().map(|first| first.key.as_str());
        operation.conversation == cached.conversation.key
            && operation.seq == next
            && self.append.turns.iter().all(|turn| turn.operation == operation.seq)
            && key == self.assumed_key.borrow().as_deref()
    }

    fn lease_conversation(&self, project: &ProjectId, id: &ConversationId) -> Result<()> {
        let Some(number) = self.context.projects.number(project) else { return self.miss() };
        let Some(mut lease) = self.context.cache.lease(number, id) else { return self.miss() };
        let cached = lease.take_cached(project, |read| {
            let mut connection = self.context.pool.acquire()?;
            read(&mut connection)?;
            connection.release();
            Ok(())
        });
        match cached {
            Ok(Some(cached)) => {
                *self.cached.borrow_mut() = Some(cached);
                *self.lease.borrow_mut() = Some(lease);
                Ok(())
            }
            _ => self.miss(),
        }
    }

    fn send(self) -> FastPathOutcome {
        let FastPath { context, lease, cached, append, .. } = self;
        let (Some(lease), Some(mut cached)) = (lease.into_inner(), cached.into_inner()) else {
            return FastPathOutcome::NotApplicable;
        };
        let Some(operation) = &append.operation else { return FastPathOutcome::NotApplicable };
        let Operation { conversation, seq, hash, .. } = *operation;
        let witness = CommitWitness { conversation, seq, hash };
        let project = project_of(conversation.0);
        let (outcome, append) = context.append_queues.send(&context.pool, project, append);
        match outcome {
            AppendOutcome::Stored => {
                cached.apply(append);
                context.cache.put_back(lease, cached);
                FastPathOutcome::Committed
            }
            AppendOutcome::Refused => FastPathOutcome::NotApplicable,
            AppendOutcome::NotSent => {
                // The cached records are still valid.
                context.cache.put_back(lease, cached);
                FastPathOutcome::Unreachable
            }
            AppendOutcome::InDoubt => FastPathOutcome::InDoubt(witness),
        }
    }
}

/// Implements methods whose records are not cached: the job runs again in a transaction.
macro_rules! not_cached {
    (&self; $(fn $name:ident($($argument:ty),*) -> $answer:ty;)*) => {
        $(fn $name(&self, $(_: $argument),*) -> $answer { self.miss() })*
    };
    (&mut self; $(fn $name:ident($($argument:ty),*) -> $answer:ty;)*) => {
        $(fn $name(&mut self, $(_: $argument),*) -> $answer { self.miss() })*
    };
}

impl Read for FastPath<'_> {
    fn conversation(
        &self,
        project: &ProjectId,
        id: &ConversationId,
    ) -> Result<Option<Conversation>> {
        if self.cached.borrow().is_none() {
            self.lease_conversation(project, id)?;
        }
        let cached = self.cached.borrow();
        let found = cached.as_ref().map(|cached| &cached.conversation);
        match found.filter(|found| found.project == *project && found.id == *id) {
            Some(found) => Ok(Some(found.clone())),
            None => self.miss(),
        }
    }

    fn conversation_by_key(&self, key: ConversationKey) -> Result<Option<Conversation>> {
        self.read_cached(key, |cached| Some(Some(cached.conversation.clone())))
    }

    fn segment(&self, no: SegmentNo) -> Result<Segment> {
        if let Some(added) = self.append.segments.iter().find(|segment| segment.no == no) {
            return Ok(*added);
        }
        let cached = self.cached.borrow();
        match cached.as_ref().and_then(|cached| cached.segments.get(&no)) {
            Some(segment) => Ok(*segment),
            None => self.miss(),
        }
    }

    fn forks(
        &self,
        conversation: ConversationKey,
        parent: Option<TurnLoc>,
    ) -> Result<Vec<Segment>> {
        self.read_cached(conversation, |cached| {
            let all = cached.segments.values().chain(&self.append.segments);
            Some(all.filter(|segment| segment.parent == parent).copied().collect())
        })
    }

    fn last_index(&self, segment: SegmentNo) -> Result<u32> {
        let mut added = self.append.turns.iter().rev();
        if let Some(turn) = added.find(|turn| turn.loc.segment == segment) {
            return Ok(turn.loc.index);
        }
        let cached = self.cached.borrow();
        match cached.as_ref().and_then(|cached| cached.last_indices.get(&segment)) {
            Some(last) => Ok(*last),
            None => self.miss(),
        }
    }

    fn turn(&self, loc: TurnLoc) -> Result<Option<Turn>> {
        if let Some(turn) = self.append.turns.iter().find(|turn| turn.loc == loc) {
            return Ok(Some(turn.clone()));
        }
        let cached = self.cached.borrow();
        match cached.as_ref().and_then(|cached| cached.tips.get(&loc)) {
            Some(turn) => Ok(Some(turn.clone())),
            None => self.miss(),
        }
    }

    fn find_turn(
        &self,
        project: &ProjectId,
        id: &TurnId,
    ) -> Result<Option<(ConversationKey, TurnLoc)>> {
        let cached = self.cached.borrow();
        let cached = cached.as_ref().filter(|cached| cached.conversation.project == *project);
        let found = cached.and_then(|cached| {
            let turn = cached.tips.values().find(|turn| turn.id == *id)?;
            Some((cached.conversation.key, turn.loc))
        });
        match found {
            Some(found) => Ok(Some(found)),
            None => self.miss(),
        }
    }

    fn find_hashes(
        &self,
        conversation: ConversationKey,
        low: &Digest,
        high: &Digest,
        _: usize,
    ) -> Result<Vec<TurnLoc>> {
        // A conversation has a hash at most once.
        self.read_cached(conversation, |cached| {
            let turn = cached.tips.values().find(|turn| turn.hash.0 == *low)?;
            (low == high).then(|| vec![turn.loc])
        })
    }

    fn splits(&self, conversation: ConversationKey) -> Result<Vec<Split>> {
        self.read_cached(conversation, |cached| Some(cached.splits.clone()))
    }

    fn hidden_in(&self, conversation: ConversationKey, segment: SegmentNo) -> Result<Vec<Hidden>> {
        self.read_cached(conversation, |cached| {
            let own = cached.hidden.iter().filter(|hidden| hidden.segment == segment);
            Some(own.copied().collect())
        })
    }

    fn hidden(&self, conversation: ConversationKey) -> Result<Vec<Hidden>> {
        self.read_cached(conversation, |cached| Some(cached.hidden.clone()))
    }

    fn branch(&self, conversation: ConversationKey, name: &Name) -> Result<Option<Branch>> {
        let put = self.append.branches.iter().rev().find(|branch| branch.name == *name);
        self.read_cached(conversation, |cached| Some(put.or(cached.branches.get(name)).cloned()))
    }

    fn branch_by_id(&self, project: &ProjectId, id: &BranchId) -> Result<Option<Branch>> {
        let cached = self.cached.borrow();
        let cached = cached.as_ref().filter(|cached| cached.conversation.project == *project);
        let put = self.append.branches.iter().rev();
        let all = cached.map(|cached| put.chain(cached.branches.values()));
        match all.and_then(|mut all| all.find(|branch| branch.id == *id)) {
            Some(branch) => Ok(Some(branch.clone())),
            None => self.miss(),
        }
    }

    fn log_end(&self, conversation: ConversationKey) -> Result<Option<(u64, OperationHash)>> {
        if self.append.operation.is_some() {
            return self.miss();
        }
        self.read_cached(conversation, |cached| Some(cached.end))
    }

    fn idempotent(&self, _: &ProjectId, key: &str) -> Result<Option<Operation>> {
        let before = self.assumed_key.replace(Some(key.to_owned()));
        if before.is_some_and(|before| before != key) {
            return self.miss();
        }
        Ok(None)
    }

    not_cached! { &self;
        fn projects() -> Result<Vec<Project>>;
        fn project(&ProjectId) -> Result<Option<Project>>;
        fn conversations(&ProjectId, Option<ConversationKey>, usize) -> Result<Vec<Conversation>>;
        fn derivatives(&ProjectId, &ConversationId) -> Result<Vec<Conversation>>;
        fn segments(ConversationKey) -> Result<Vec<SegmentExtent>>;
        fn forks_from(ConversationKey, TurnLoc) -> Result<Vec<Segment>>;
        fn turns(SegmentNo, u32, u32, &mut dyn FnMut(Turn) -> Result<bool>) -> Result<()>;
        fn same_content(TurnLoc, usize) -> Result<Vec<(ConversationKey, TurnLoc)>>;
        fn branches(ConversationKey) -> Result<Vec<Branch>>;
        fn bookmark(&ProjectId, &Name) -> Result<Option<Bookmark>>;
        fn bookmarks(&ProjectId, Option<&Name>, usize) -> Result<Vec<Bookmark>>;
        fn bookmarks_in(ConversationKey) -> Result<Vec<Bookmark>>;
        fn last_operation(ConversationKey) -> Result<Option<Operation>>;
        fn operation(ConversationKey, u64) -> Result<Option<Operation>>;
        fn operations(
            ConversationKey,
            u64,
            u64,
            &mut dyn FnMut(Operation) -> Result<bool>
        ) -> Result<()>;
        fn feed(FeedPosition, usize) -> Result<Vec<(FeedPosition, Operation)>>;
        fn feed_end() -> Result<Option<IndexMark>>;
        fn made_by(FeedPosition) -> Result<Vec<(TurnLoc, u32)>>;
        fn record(&ProjectId, &RecordKey) -> Result<Option<Record>>;
        fn records(&ProjectId, &RecordQuery, usize) -> Result<Vec<Record>>;
        fn index_keys(&ProjectId, &IndexQuery, usize) -> Result<Vec<IndexKey>>;
        fn piece(&ProjectId, &SourceId, u32) -> Result<Option<Vec<u8>>>;
        fn totals() -> Result<Totals>;
    }
}

impl Write for FastPath<'_> {
    fn insert_segment(
        &mut self,
        conversation: ConversationKey,
        parent: Option<TurnLoc>,
        base_depth: u32,
    ) -> Result<SegmentNo> {
        let added = self.append.segments.last().map(|segment| segment.no.0);
        let no = self.read_cached(conversation, |cached| {
            let last = added.or_else(|| cached.segments.keys().next_back().map(|no| no.0));
            let next = last.map_or(conversation.0, |last| last + 1);
            // A new block needs a transaction.
            (last.is_none() || !rows::starts_block(next)).then_some(SegmentNo(next))
        })?;
        self.append.segments.push(Segment { no, conversation, parent, base_depth });
        Ok(no)
    }

    fn insert_turn(&mut self, conversation: ConversationKey, turn: &Turn) -> Result<()> {
        self.read_cached(conversation, |_| Some(()))?;
        self.append.turns.push(turn.clone());
        Ok(())
    }

    fn put_branch(&mut self, branch: &Branch) -> Result<()> {
        self.read_cached(branch.conversation, |cached| {
            let mut others = cached.branches.values().filter(|it| it.name != branch.name);
            others.all(|other| other.id != branch.id).then_some(())
        })?;
        self.append.branches.retain(|put| put.id != branch.id);
        self.append.branches.push(branch.clone());
        Ok(())
    }

    fn insert_operation(&mut self, operation: &Operation) -> Result<()> {
        if self.append.operation.is_some() {
            return self.miss();
        }
        self.append.operation = Some(operation.clone());
        Ok(())
    }

    not_cached! { &mut self;
        fn insert_project(&Project) -> Result<()>;
        fn insert_conversation(&Conversation) -> Result<ConversationKey>;
        fn update_conversation(&Conversation) -> Result<()>;
        fn set_metadata(TurnLoc, &Metadata) -> Result<()>;
        fn purge_turn(TurnLoc, &Digest) -> Result<()>;
        fn insert_split(&Split) -> Result<()>;
        fn delete_split(ConversationKey, TurnLoc) -> Result<()>;
        fn insert_hidden(&Hidden) -> Result<()>;
        fn delete_hidden(ConversationKey, u64) -> Result<()>;
        fn delete_branch(ConversationKey, &BranchId) -> Result<()>;
        fn put_bookmark(&Bookmark) -> Result<()>;
        fn delete_bookmark(&ProjectId, &Name) -> Result<()>;
        fn set_undone(ConversationKey, u64, bool) -> Result<()>;
        fn purge_operation(ConversationKey, u64) -> Result<()>;
        fn insert_record(&ProjectId, &Record) -> Result<()>;
        fn put_record(&ProjectId, &Record) -> Result<()>;
        fn delete_record(&ProjectId, &RecordKey) -> Result<()>;
        fn insert_piece(&ProjectId, &SourceId, u32, &[u8]) -> Result<()>;
        fn delete_pieces(&ProjectId, &SourceId) -> Result<()>;
    }
}
