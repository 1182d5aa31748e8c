//! Plain appends in one round trip.
//!
//! The closure runs over its [cached conversation](crate::conversation_cache); its writes are
//! collected and sent in one [batch](crate::batch) with those of others. Only a closure that ends
//! with one more operation of that conversation counts: its number is the proof that nothing has
//! changed since. Any other outcome (a refusal, an answer without a change, a record that is not
//! cached) may rest on stale records, and the closure runs again in a transaction.

use std::cell::{Cell, RefCell};

use tine_core::{
    BranchId, ConversationId, Digest, Metadata, Name, OperationHash, ProjectId, SourceId, TurnId,
};
use tine_store::{
    Bookmark, Branch, Conversation, ConversationKey, FeedPosition, Hidden, IndexKey, IndexMark,
    IndexQuery, Job, Operation, Project, Read, Record, RecordKey, RecordQuery, Result, Segment,
    SegmentExtent, SegmentNo, Split, StoreError, Totals, Turn, TurnLoc, Verdict, Write,
};

use crate::Shared;
use crate::batch::Sent;
use crate::conversation_cache::{Added, CachedConversation, Seat};
use crate::rows::{self, project_of};
use crate::txn::Witness;

/// What came of an attempt.
pub(crate) enum Outcome {
    Committed,
    /// It is not a plain append, or another writer was quicker: run it in a transaction.
    Elsewhere,
    /// The database could not be reached.
    Away,
    /// Whether it was stored is not known.
    InDoubt(Witness),
}

/// Tries a job in one round trip.
pub(crate) fn attempt(shared: &Shared, job: &mut Job) -> Outcome {
    let mut path = FastPath {
        shared,
        seat: RefCell::default(),
        known: RefCell::default(),
        added: Added::default(),
        key: RefCell::default(),
        missed: Cell::new(false),
    };
    let verdict = job(&mut path);
    if path.missed.get() || !matches!(verdict, Ok(Verdict::Commit)) || !path.is_proven() {
        // The cached records are as good as before.
        if let (Some(seat), Some(known)) = (path.seat.take(), path.known.take()) {
            shared.cache.keep(seat, known);
        }
        return Outcome::Elsewhere;
    }
    path.send()
}

struct FastPath<'s> {
    shared: &'s Shared,
    seat: RefCell<Option<Seat>>,
    known: RefCell<Option<CachedConversation>>,
    added: Added,
    /// A key that is taken to be new.
    key: RefCell<Option<String>>,
    /// Whether a record was asked for that is not cached.
    missed: Cell<bool>,
}

impl FastPath<'_> {
    fn miss<T>(&self) -> Result<T> {
        self.missed.set(true);
        Err(StoreError::Busy { waited_ms: 0 })
    }

    /// Reads from a cached conversation.
    fn of<T>(
        &self,
        key: ConversationKey,
        read: impl FnOnce(&CachedConversation) -> Option<T>,
    ) -> Result<T> {
        let known = self.known.borrow();
        match known.as_ref().filter(|known| known.conversation.key == key).and_then(read) {
            Some(found) => Ok(found),
            None => self.miss(),
        }
    }

    /// Whether what was written makes true what was read.
    fn is_proven(&self) -> bool {
        let known = self.known.borrow();
        let (Some(known), Some(operation)) = (known.as_ref(), &self.added.operation) else {
            return false;
        };
        let next = known.end.map_or(1, |(seq, _)| seq + 1);
        let key = operation.idempotency.as_ref().map(|first| first.key.as_str());
        operation.conversation == known.conversation.key
            && operation.seq == next
            && self.added.turns.iter().all(|turn| turn.operation == operation.seq)
            && key == self.key.borrow().as_deref()
    }

    /// Takes the conversation out of the cache.
    fn enter(&self, project: &ProjectId, id: &ConversationId) -> Result<()> {
        let Some(number) = self.shared.projects.number(project) else { return self.miss() };
        let Some(mut seat) = self.shared.cache.take(number, id) else { return self.miss() };
        let known = seat.take_cached(project, |read| {
            let mut lease = self.shared.pool.lend()?;
            read(&mut lease)?;
            lease.keep();
            Ok(())
        });
        match known {
            Ok(Some(known)) => {
                *self.known.borrow_mut() = Some(known);
                *self.seat.borrow_mut() = Some(seat);
                Ok(())
            }
            _ => self.miss(),
        }
    }

    fn send(self) -> Outcome {
        let FastPath { shared, seat, known, added, .. } = self;
        let (Some(seat), Some(mut known)) = (seat.into_inner(), known.into_inner()) else {
            return Outcome::Elsewhere;
        };
        let Some(operation) = &added.operation else { return Outcome::Elsewhere };
        let Operation { conversation, seq, hash, .. } = *operation;
        let witness = Witness { conversation, seq, hash };
        let project = project_of(conversation.0);
        let (sent, added) = shared.batches.send(&shared.pool, project, added);
        match sent {
            Sent::Stored => {
                known.add(added);
                shared.cache.keep(seat, known);
                Outcome::Committed
            }
            Sent::Refused => Outcome::Elsewhere,
            Sent::Unsent => {
                // The cached records are as good as before.
                shared.cache.keep(seat, known);
                Outcome::Away
            }
            Sent::InDoubt => Outcome::InDoubt(witness),
        }
    }
}

impl Read for FastPath<'_> {
    fn conversation(
        &self,
        project: &ProjectId,
        id: &ConversationId,
    ) -> Result<Option<Conversation>> {
        if self.known.borrow().is_none() {
            self.enter(project, id)?;
        }
        let known = self.known.borrow();
        let found = known.as_ref().map(|known| &known.conversation);
        match found.filter(|found| found.project == *project && found.id == *id) {
            Some(found) => Ok(Some(found.clone())),
            None => self.miss(),
        }
    }

    fn conversation_by_key(&self, key: ConversationKey) -> Result<Option<Conversation>> {
        self.of(key, |known| Some(Some(known.conversation.clone())))
    }

    fn segment(&self, no: SegmentNo) -> Result<Segment> {
        if let Some(added) = self.added.segments.iter().find(|segment| segment.no == no) {
            return Ok(*added);
        }
        let known = self.known.borrow();
        match known.as_ref().and_then(|known| known.segments.get(&no)) {
            Some(segment) => Ok(*segment),
            None => self.miss(),
        }
    }

    fn forks(
        &self,
        conversation: ConversationKey,
        parent: Option<TurnLoc>,
    ) -> Result<Vec<Segment>> {
        self.of(conversation, |known| {
            let all = known.segments.values().chain(&self.added.segments);
            Some(all.filter(|segment| segment.parent == parent).copied().collect())
        })
    }

    fn last_index(&self, segment: SegmentNo) -> Result<u32> {
        let mut added = self.added.turns.iter().rev();
        if let Some(turn) = added.find(|turn| turn.loc.segment == segment) {
            return Ok(turn.loc.index);
        }
        let known = self.known.borrow();
        match known.as_ref().and_then(|known| known.last.get(&segment)) {
            Some(last) => Ok(*last),
            None => self.miss(),
        }
    }

    fn turn(&self, loc: TurnLoc) -> Result<Option<Turn>> {
        if let Some(turn) = self.added.turns.iter().find(|turn| turn.loc == loc) {
            return Ok(Some(turn.clone()));
        }
        let known = self.known.borrow();
        match known.as_ref().and_then(|known| known.tips.get(&loc)) {
            Some(turn) => Ok(Some(turn.clone())),
            None => self.miss(),
        }
    }

    fn find_turn(
        &self,
        project: &ProjectId,
        id: &TurnId,
    ) -> Result<Option<(ConversationKey, TurnLoc)>> {
        let known = self.known.borrow();
        let known = known.as_ref().filter(|known| known.conversation.project == *project);
        let found = known.and_then(|known| {
            let turn = known.tips.values().find(|turn| turn.id == *id)?;
            Some((known.conversation.key, turn.loc))
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
        // A hash is there once.
        self.of(conversation, |known| {
            let turn = known.tips.values().find(|turn| turn.hash.0 == *low)?;
            (low == high).then(|| vec![turn.loc])
        })
    }

    fn splits(&self, conversation: ConversationKey) -> Result<Vec<Split>> {
        self.of(conversation, |known| Some(known.splits.clone()))
    }

    fn hidden_in(&self, conversation: ConversationKey, segment: SegmentNo) -> Result<Vec<Hidden>> {
        self.of(conversation, |known| {
            let own = known.hidden.iter().filter(|hidden| hidden.segment == segment);
            Some(own.copied().collect())
        })
    }

    fn hidden(&self, conversation: ConversationKey) -> Result<Vec<Hidden>> {
        self.of(conversation, |known| Some(known.hidden.clone()))
    }

    fn branch(&self, conversation: ConversationKey, name: &Name) -> Result<Option<Branch>> {
        let put = self.added.branches.iter().rev().find(|branch| branch.name == *name);
        self.of(conversation, |known| Some(put.or(known.branches.get(name)).cloned()))
    }

    fn branch_by_id(&self, project: &ProjectId, id: &BranchId) -> Result<Option<Branch>> {
        let known = self.known.borrow();
        let known = known.as_ref().filter(|known| known.conversation.project == *project);
        let put = self.added.branches.iter().rev();
        let all = known.map(|known| put.chain(known.branches.values()));
        match all.and_then(|mut all| all.find(|branch| branch.id == *id)) {
            Some(branch) => Ok(Some(branch.clone())),
            None => self.miss(),
        }
    }

    fn log_end(&self, conversation: ConversationKey) -> Result<Option<(u64, OperationHash)>> {
        if self.added.operation.is_some() {
            return self.miss();
        }
        self.of(conversation, |known| Some(known.end))
    }

    fn idempotent(&self, _: &ProjectId, key: &str) -> Result<Option<Operation>> {
        let known = self.key.replace(Some(key.to_owned()));
        if known.is_some_and(|known| known != key) {
            return self.miss();
        }
        Ok(None)
    }

    fn projects(&self) -> Result<Vec<Project>> {
        self.miss()
    }

    fn project(&self, _: &ProjectId) -> Result<Option<Project>> {
        self.miss()
    }

    fn conversations(
        &self,
        _: &ProjectId,
        _: Option<ConversationKey>,
        _: usize,
    ) -> Result<Vec<Conversation>> {
        self.miss()
    }

    fn derivatives(&self, _: &ProjectId, _: &ConversationId) -> Result<Vec<Conversation>> {
        self.miss()
    }

    fn segments(&self, _: ConversationKey) -> Result<Vec<SegmentExtent>> {
        self.miss()
    }

    fn forks_from(&self, _: ConversationKey, _: TurnLoc) -> Result<Vec<Segment>> {
        self.miss()
    }

    fn turns(
        &self,
        _: SegmentNo,
        _: u32,
        _: u32,
        _: &mut dyn FnMut(Turn) -> Result<bool>,
    ) -> Result<()> {
        self.miss()
    }

    fn same_content(&self, _: TurnLoc, _: usize) -> Result<Vec<(ConversationKey, TurnLoc)>> {
        self.miss()
    }

    fn branches(&self, _: ConversationKey) -> Result<Vec<Branch>> {
        self.miss()
    }

    fn bookmark(&self, _: &ProjectId, _: &Name) -> Result<Option<Bookmark>> {
        self.miss()
    }

    fn bookmarks(&self, _: &ProjectId, _: Option<&Name>, _: usize) -> Result<Vec<Bookmark>> {
        self.miss()
    }

    fn bookmarks_in(&self, _: ConversationKey) -> Result<Vec<Bookmark>> {
        self.miss()
    }

    fn last_operation(&self, _: ConversationKey) -> Result<Option<Operation>> {
        self.miss()
    }

    fn operation(&self, _: ConversationKey, _: u64) -> Result<Option<Operation>> {
        self.miss()
    }

    fn operations(
        &self,
        _: ConversationKey,
        _: u64,
        _: u64,
        _: &mut dyn FnMut(Operation) -> Result<bool>,
    ) -> Result<()> {
        self.miss()
    }

    fn feed(&self, _: FeedPosition, _: usize) -> Result<Vec<(FeedPosition, Operation)>> {
        self.miss()
    }

    fn feed_end(&self) -> Result<Option<IndexMark>> {
        self.miss()
    }

    fn made_by(&self, _: FeedPosition) -> Result<Vec<(TurnLoc, u32)>> {
        self.miss()
    }

    fn record(&self, _: &ProjectId, _: &RecordKey) -> Result<Option<Record>> {
        self.miss()
    }

    fn records(&self, _: &ProjectId, _: &RecordQuery, _: usize) -> Result<Vec<Record>> {
        self.miss()
    }

    fn index_keys(&self, _: &ProjectId, _: &IndexQuery, _: usize) -> Result<Vec<IndexKey>> {
        self.miss()
    }

    fn piece(&self, _: &ProjectId, _: &SourceId, _: u32) -> Result<Option<Vec<u8>>> {
        self.miss()
    }

    fn totals(&self) -> Result<Totals> {
        self.miss()
    }
}

impl Write for FastPath<'_> {
    fn insert_segment(
        &mut self,
        conversation: ConversationKey,
        parent: Option<TurnLoc>,
        base_depth: u32,
    ) -> Result<SegmentNo> {
        let added = self.added.segments.last().map(|segment| segment.no.0);
        let no = self.of(conversation, |known| {
            let last = added.or_else(|| known.segments.keys().next_back().map(|no| no.0));
            let next = last.map_or(conversation.0, |last| last + 1);
            // Another block has to be asked for.
            (last.is_none() || !rows::begins_block(next)).then_some(SegmentNo(next))
        })?;
        self.added.segments.push(Segment { no, conversation, parent, base_depth });
        Ok(no)
    }

    fn insert_turn(&mut self, conversation: ConversationKey, turn: &Turn) -> Result<()> {
        self.of(conversation, |_| Some(()))?;
        self.added.turns.push(turn.clone());
        Ok(())
    }

    fn put_branch(&mut self, branch: &Branch) -> Result<()> {
        self.of(branch.conversation, |known| {
            let mut others = known.branches.values().filter(|it| it.name != branch.name);
            others.all(|other| other.id != branch.id).then_some(())
        })?;
        self.added.branches.retain(|put| put.id != branch.id);
        self.added.branches.push(branch.clone());
        Ok(())
    }

    fn insert_operation(&mut self, operation: &Operation) -> Result<()> {
        if self.added.operation.is_some() {
            return self.miss();
        }
        self.added.operation = Some(operation.clone());
        Ok(())
    }

    fn insert_project(&mut self, _: &Project) -> Result<()> {
        self.miss()
    }

    fn insert_conversation(&mut self, _: &Conversation) -> Result<ConversationKey> {
        self.miss()
    }

    fn update_conversation(&mut self, _: &Conversation) -> Result<()> {
        self.miss()
    }

    fn set_metadata(&mut self, _: TurnLoc, _: &Metadata) -> Result<()> {
        self.miss()
    }

    fn purge_turn(&mut self, _: TurnLoc, _: &Digest) -> Result<()> {
        self.miss()
    }

    fn insert_split(&mut self, _: &Split) -> Result<()> {
        self.miss()
    }

    fn delete_split(&mut self, _: ConversationKey, _: TurnLoc) -> Result<()> {
        self.miss()
    }

    fn insert_hidden(&mut self, _: &Hidden) -> Result<()> {
        self.miss()
    }

    fn delete_hidden(&mut self, _: ConversationKey, _: u64) -> Result<()> {
        self.miss()
    }

    fn delete_branch(&mut self, _: ConversationKey, _: &BranchId) -> Result<()> {
        self.miss()
    }

    fn put_bookmark(&mut self, _: &Bookmark) -> Result<()> {
        self.miss()
    }

    fn delete_bookmark(&mut self, _: &ProjectId, _: &Name) -> Result<()> {
        self.miss()
    }

    fn set_undone(&mut self, _: ConversationKey, _: u64, _: bool) -> Result<()> {
        self.miss()
    }

    fn purge_operation(&mut self, _: ConversationKey, _: u64) -> Result<()> {
        self.miss()
    }

    fn insert_record(&mut self, _: &ProjectId, _: &Record) -> Result<()> {
        self.miss()
    }

    fn put_record(&mut self, _: &ProjectId, _: &Record) -> Result<()> {
        self.miss()
    }

    fn delete_record(&mut self, _: &ProjectId, _: &RecordKey) -> Result<()> {
        self.miss()
    }

    fn insert_piece(&mut self, _: &ProjectId, _: &SourceId, _: u32, _: &[u8]) -> Result<()> {
        self.miss()
    }

    fn delete_pieces(&mut self, _: &ProjectId, _: &SourceId) -> Result<()> {
        self.miss()
    }
}
