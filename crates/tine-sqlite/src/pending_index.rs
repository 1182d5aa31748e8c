//! The pending index: look-up entries that are not in their tables yet.
//!
//! A turn is found by id and by hash, an operation by its number and by its key. Writing these
//! four entries with every append would touch four more pages than the append itself. So they
//! are flushed in batches: the table `indexed` names the last operation that the look-up tables
//! cover, and the entries of later operations are kept in memory, derived from the operations
//! when a transaction begins. They are therefore as durable as the operations.
//!
//! Moved branch tips are kept in the same way: the operation that moved the tip says so, and the
//! branch's row is as of the last flush. Any other change of a branch is written to its row at
//! once.
//!
//! A transaction must find what its own snapshot holds. The entries of the last flush are therefore
//! kept until the next one, and a reader with an older snapshot derives its own. Entries that are
//! newer than a snapshot lead to rows that it does not have, and look-ups skip them.

use crate::error::{StoreErr as _, execute};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rusqlite::{Connection, OptionalExtension, params};

use super::pending_rows;
use super::rows::{self, PlaceRun, TipMove};
use tine_store::Result;

/// The number of entries in memory that triggers a flush.
pub(super) const MAX_PENDING_ENTRIES: usize = 8192;

/// An entry of a look-up table.
#[derive(Clone, Copy, Debug)]
pub(super) enum LookupEntry {
    /// `row_no` is the turn's row number in `fresh`, 0 if it is not there.
    Turn {
        conversation: i64,
        id: [u8; 16],
        prefix: i64,
        place: i64,
        row_no: i64,
    },
    Operation {
        conversation: i64,
        seq: i64,
        no: i64,
    },
    Key {
        project: i64,
        prefix: i64,
        no: i64,
    },
    TipMove {
        conversation: i64,
        no: i64,
        to: TipMove,
    },
}

/// Entries by what they are looked up by.
#[derive(Debug, Default)]
pub(super) struct LookupEntries {
    ids: BTreeSet<([u8; 16], i64)>,
    /// Row numbers in `fresh` by place.
    row_nos: BTreeMap<i64, i64>,
    hashes: BTreeSet<(i64, i64, i64)>,
    /// Operations by conversation and sequence number.
    operations: HashMap<i64, BTreeMap<i64, i64>>,
    keys: BTreeSet<(i64, i64, i64)>,
    /// By conversation, branch and operation.
    moves: BTreeMap<(i64, [u8; 16], i64), TipMove>,
}

impl LookupEntries {
    pub(super) fn add(&mut self, entry: LookupEntry) {
        match entry {
            LookupEntry::Turn { conversation, id, prefix, place, row_no } => {
                self.ids.insert((id, place));
                self.hashes.insert((conversation, prefix, place));
                if row_no != 0 {
                    self.row_nos.insert(place, row_no);
                }
            }
            LookupEntry::Operation { conversation, seq, no } => {
                self.operations.entry(conversation).or_default().insert(seq, no);
            }
            LookupEntry::Key { project, prefix, no } => {
                self.keys.insert((project, prefix, no));
            }
            LookupEntry::TipMove { conversation, no, to } => {
                self.moves.insert((conversation, to.branch, no), to);
            }
        }
    }

    fn remove(&mut self, entry: LookupEntry) {
        match entry {
            LookupEntry::Turn { conversation, id, prefix, place, .. } => {
                self.ids.remove(&(id, place));
                self.hashes.remove(&(conversation, prefix, place));
                self.row_nos.remove(&place);
            }
            LookupEntry::Operation { conversation, seq, .. } => {
                if let Some(operations) = self.operations.get_mut(&conversation) {
                    operations.remove(&seq);
                }
            }
            LookupEntry::Key { project, prefix, no } => {
                self.keys.remove(&(project, prefix, no));
            }
            LookupEntry::TipMove { conversation, no, to } => {
                self.moves.remove(&(conversation, to.branch, no));
            }
        }
    }

    /// Adds other entries one by one: a batch is small, and `BTreeMap::append` would rebuild the
    /// whole tree.
    fn merge(&mut self, others: LookupEntries) {
        self.ids.extend(others.ids);
        self.row_nos.extend(others.row_nos);
        self.hashes.extend(others.hashes);
        self.keys.extend(others.keys);
        self.moves.extend(others.moves);
        for (conversation, operations) in others.operations {
            self.operations.entry(conversation).or_default().extend(operations);
        }
    }

    fn len(&self) -> usize {
        self.ids.len()
            + self.keys.len()
            + self.operations.values().map(BTreeMap::len).sum::<usize>()
    }

    /// Returns the last sequence number of a conversation below another, and its operation.
    fn last_operation(&self, conversation: i64, below: i64) -> Option<(i64, i64)> {
        let operations = self.operations.get(&conversation)?;
        operations.range(..below).next_back().map(|(seq, no)| (*seq, *no))
    }

    /// Returns the last operation up to another that moved a branch, and the move.
    fn last_move(&self, conversation: i64, branch: [u8; 16], up_to: i64) -> Option<(i64, TipMove)> {
        let range = (conversation, branch, i64::MIN)..=(conversation, branch, up_to);
        self.moves.range(range).next_back().map(|((_, _, no), to)| (*no, *to))
    }

    /// Writes all entries to their tables, each in order of key.
    fn write(&self, connection: &Connection) -> Result<()> {
        for (id, place) in &self.ids {
            let sql = "INSERT INTO turn_id (prefix, place) VALUES (?1, ?2)";
            execute(connection, sql, params![rows::id_prefix(id), place])?;
        }
        for (conversation, prefix, place) in &self.hashes {
            let sql = "INSERT INTO turn_hash (conversation, prefix, place) VALUES (?1, ?2, ?3)";
            execute(connection, sql, [conversation, prefix, place])?;
        }
        let mut conversations: Vec<_> = self.operations.iter().collect();
        conversations.sort_unstable_by_key(|(conversation, _)| **conversation);
        for (conversation, operations) in conversations {
            for (seq, no) in operations {
                let sql = "INSERT INTO operation_seq (conversation, seq, operation) \
                           VALUES (?1, ?2, ?3)";
                execute(connection, sql, [conversation, seq, no])?;
            }
        }
        for (project, prefix, no) in &self.keys {
            let sql = "INSERT INTO idempotency (project, prefix, operation) VALUES (?1, ?2, ?3)";
            execute(connection, sql, [project, prefix, no])?;
        }
        let mut moves = self.moves.iter().peekable();
        while let Some(((conversation, branch, _), to)) = moves.next() {
            // Only the last move of a branch is written. A deleted branch has no row.
            let same_branch = |(next, _): &(&(i64, [u8; 16], i64), &TipMove)| {
                (next.0, next.1) == (*conversation, *branch)
            };
            if !moves.peek().is_some_and(same_branch) {
                let sql = "UPDATE branch SET tip = ?3, version = ?4 \
                           WHERE id = ?2 AND conversation = ?1";
                execute(connection, sql, params![conversation, branch, to.tip, to.version])?;
            }
        }
        Ok(())
    }
}

/// How much of the log a snapshot holds, and how much of it the look-up tables cover.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Horizon {
    /// The last operation in the look-up tables.
    pub indexed: i64,
    /// The last operation.
    pub last: i64,
}

impl Horizon {
    pub(super) fn of(connection: &Connection) -> Result<Self> {
        let sql = "SELECT through, (SELECT max(no) FROM fresh) FROM indexed";
        let mut statement = connection.prepare_cached(sql).store_err()?;
        statement
            .query_row([], |row| {
                let indexed = row.get(0)?;
                let last = row
                    .get::<_, Option<i64>>(1)?
                    .map_or(indexed, pending_rows::last_complete_operation);
                Ok(Horizon { indexed, last: last.max(indexed) })
            })
            .store_err()
    }
}

/// The pending entries of a store, shared by its connections.
#[derive(Debug, Default)]
pub(super) struct PendingIndex {
    state: Mutex<PendingIndexState>,
}

#[derive(Debug, Default)]
struct PendingIndexState {
    /// Entries of the operations after `base`, up to `seen`.
    entries: LookupEntries,
    base: i64,
    seen: i64,
    /// Entries of the operations after `previous_base`, up to `base`.
    previous: LookupEntries,
    previous_base: i64,
}

impl PendingIndex {
    fn lock(&self) -> MutexGuard<'_, PendingIndexState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the entries of a snapshot that this process has not read yet.
    pub(super) fn catch_up(&self, connection: &Connection) -> Result<Horizon> {
        let horizon = Horizon::of(connection)?;
        let mut state = self.lock();
        if horizon.indexed > state.seen {
            // Another process has flushed operations that this one never read.
            *state = PendingIndexState::default();
            (state.base, state.seen) = (horizon.indexed, horizon.indexed);
            state.previous_base = horizon.indexed;
        } else if horizon.indexed > state.base {
            state.rotate(horizon, connection)?;
        }
        if horizon.last > state.seen {
            let from = state.seen;
            read_entries(connection, from, horizon.last, &mut state.entries)?;
            state.seen = horizon.last;
        }
        Ok(horizon)
    }

    /// Adds the entries of a committed batch whose last operation is `last`. `indexed` is the last
    /// operation of a flush that was part of it.
    pub(super) fn publish(&self, entries: LookupEntries, last: i64, indexed: Option<i64>) {
        let mut state = self.lock();
        state.entries.merge(entries);
        state.seen = state.seen.max(last);
        if let Some(indexed) = indexed {
            state.previous = std::mem::take(&mut state.entries);
            state.previous_base = state.base;
            state.base = indexed;
        }
    }

    /// Writes all entries, and those of the open batch, to the look-up tables, and moves pending
    /// rows to theirs. Takes effect when the transaction is committed and published.
    pub(super) fn flush(&self, connection: &Connection, pending: &LookupEntries) -> Result<i64> {
        let last = Horizon::of(connection)?.last;
        self.lock().entries.write(connection)?;
        pending.write(connection)?;
        pending_rows::flush(connection)?;
        execute(connection, "UPDATE indexed SET through = ?1", [last])?;
        Ok(last)
    }

    pub(super) fn len(&self) -> usize {
        self.lock().entries.len()
    }

    /// Returns whether the shared entries reach back far enough for a snapshot.
    fn covers(state: &PendingIndexState, horizon: Horizon) -> bool {
        state.previous_base <= horizon.indexed
    }
}

impl PendingIndexState {
    /// Applies a flush by another process up to an operation that was read here.
    fn rotate(&mut self, horizon: Horizon, connection: &Connection) -> Result<()> {
        let mut rest = LookupEntries::default();
        read_entries(connection, horizon.indexed, self.seen, &mut rest)?;
        self.previous = std::mem::replace(&mut self.entries, rest);
        (self.previous_base, self.base) = (self.base, horizon.indexed);
        // Operations that this snapshot lacks were not read and will be.
        self.seen = self.seen.min(horizon.last);
        Ok(())
    }
}

/// Derives the entries of the operations after one, up to another, from the pending rows.
fn read_entries(
    connection: &Connection,
    after: i64,
    to: i64,
    entries: &mut LookupEntries,
) -> Result<()> {
    let sql = "SELECT no, place, id, hash, conversation, seq, key, turns, moves FROM fresh \
               WHERE no > ?1 AND no <= ?2 ORDER BY no";
    let mut statement = connection.prepare_cached(sql).store_err()?;
    let (after, to) = (pending_rows::operation_row_no(after), pending_rows::operation_row_no(to));
    let mut found = statement.query([after, to]).store_err()?;
    // Turns precede the operation that made them.
    let mut turns = BTreeMap::new();
    while let Some(row) = found.next().store_err()? {
        let no: i64 = row.get(0).store_err()?;
        if let Some(place) = row.get::<_, Option<i64>>(1).store_err()? {
            let prefix = rows::prefix(&tine_core::Digest(row.get(3).store_err()?));
            turns.insert(place, (no, row.get(2).store_err()?, prefix));
            continue;
        }
        let (no, conversation) =
            (pending_rows::last_complete_operation(no), row.get(4).store_err()?);
        entries.add(LookupEntry::Operation { conversation, seq: row.get(5).store_err()?, no });
        if let Some(key) = row.get::<_, Option<String>>(6).store_err()? {
            let sql = "SELECT project FROM conversation WHERE no = ?1";
            let project = connection
                .prepare_cached(sql)
                .store_err()?
                .query_row([conversation], |row| row.get(0))
                .optional()
                .store_err()?;
            let project = tine_store::required(project, || format!("conversation {conversation}"))?;
            entries.add(LookupEntry::Key { project, prefix: rows::key_prefix(&key), no });
        }
        for run in
            rows::decode_runs(&row.get::<_, Option<Vec<u8>>>(7).store_err()?.unwrap_or_default())
        {
            let pending: Vec<_> = turns.range(run.first..run.first + run.count).collect();
            if i64::try_from(pending.len()).unwrap_or(i64::MAX) < run.count {
                read_stored_turns(connection, conversation, run, entries)?;
            }
            for (&place, &(row_no, id, prefix)) in pending {
                entries.add(LookupEntry::Turn { conversation, id, prefix, place, row_no });
            }
        }
        for to in
            rows::decode_moves(&row.get::<_, Option<Vec<u8>>>(8).store_err()?.unwrap_or_default())
        {
            entries.add(LookupEntry::TipMove { conversation, no, to });
        }
        turns.clear();
    }
    Ok(())
}

/// Reads the entries of those turns of a run that are in the table `turn`.
fn read_stored_turns(
    connection: &Connection,
    conversation: i64,
    run: PlaceRun,
    entries: &mut LookupEntries,
) -> Result<()> {
    let sql = "SELECT place, id, hash FROM turn WHERE place >= ?1 AND place < ?2";
    let mut statement = connection.prepare_cached(sql).store_err()?;
    let mut found = statement.query([run.first, run.first + run.count]).store_err()?;
    while let Some(row) = found.next().store_err()? {
        let prefix = rows::prefix(&tine_core::Digest(row.get(2).store_err()?));
        let (place, id) = (row.get(0).store_err()?, row.get(1).store_err()?);
        entries.add(LookupEntry::Turn { conversation, id, prefix, place, row_no: 0 });
    }
    Ok(())
}

/// The entries that the jobs of an open batch have added.
#[derive(Debug, Default)]
pub(super) struct UncommittedEntries {
    entries: LookupEntries,
    /// The entries of the running job, so that they can be discarded.
    job: Vec<LookupEntry>,
    job_turns: usize,
    /// Turns that no operation lists yet.
    runs: Vec<PlaceRun>,
    /// Conversations and moves of their branches that no operation lists yet.
    moves: Vec<(i64, TipMove)>,
    /// Turns put into `fresh` since the last operation.
    pending_turns: i64,
    last: i64,
    /// The last operation of the accepted jobs.
    last_accepted: i64,
    /// Whether there are moves that cannot be derived from the log.
    has_unlisted_moves: bool,
}

impl UncommittedEntries {
    pub(super) fn add(&mut self, entry: LookupEntry) {
        match entry {
            LookupEntry::Turn { place, row_no, .. } => match self.runs.last_mut() {
                Some(run) if run.continues_at(place, row_no) => run.count += 1,
                _ => self.runs.push(PlaceRun { first: place, count: 1, row_no }),
            },
            LookupEntry::Operation { no, .. } => (self.last, self.pending_turns) = (no, 0),
            LookupEntry::Key { .. } | LookupEntry::TipMove { .. } => {}
        }
        self.pending_turns += i64::from(matches!(entry, LookupEntry::Turn { row_no: 1.., .. }));
        self.job_turns += usize::from(matches!(entry, LookupEntry::Turn { .. }));
        self.entries.add(entry);
        self.job.push(entry);
    }

    /// Takes the turns since the last operation, for the next one to list.
    pub(super) fn take_runs(&mut self) -> Vec<PlaceRun> {
        std::mem::take(&mut self.runs)
    }

    /// Takes the moves of a conversation's branches since the last operation, for the next one to
    /// list.
    pub(super) fn take_moves(&mut self, conversation: i64) -> Vec<TipMove> {
        let own = |entry: &mut (i64, TipMove)| entry.0 == conversation;
        self.moves.extract_if(.., own).map(|(_, to)| to).collect()
    }

    /// Returns where the open batch has moved a branch.
    fn last_move(&self, conversation: i64, branch: [u8; 16]) -> Option<TipMove> {
        let own = |(of, to): &&(i64, TipMove)| (*of, to.branch) == (conversation, branch);
        let unlisted = self.moves.iter().rfind(own).map(|(_, to)| *to);
        let listed = || self.entries.last_move(conversation, branch, i64::MAX);
        unlisted.or_else(|| listed().map(|(_, to)| to))
    }

    /// Returns whether this batch must flush the pending index.
    pub(super) fn must_flush(&self) -> bool {
        self.has_unlisted_moves
    }

    /// Accepts a job. Turns and moves that no operation lists cannot be derived from the log later,
    /// so such turns are written to their tables at once, and such moves with the batch.
    pub(super) fn accept_job(&mut self, connection: &Connection) -> Result<()> {
        if !self.runs.is_empty() {
            let mut unlisted = LookupEntries::default();
            for entry in &self.job {
                if let LookupEntry::Turn { place, .. } = entry
                    && self.runs.iter().any(|run| run.contains(*place))
                {
                    unlisted.add(*entry);
                    self.entries.remove(*entry);
                }
            }
            unlisted.write(connection)?;
            pending_rows::flush_turns(connection)?;
            self.pending_turns = 0;
        }
        for (conversation, to) in std::mem::take(&mut self.moves) {
            self.has_unlisted_moves = true;
            // After all operations so far, and before the next one.
            self.entries.add(LookupEntry::TipMove { conversation, no: self.last + 1, to });
        }
        self.last_accepted = self.last;
        self.runs.clear();
        self.job.clear();
        self.job_turns = 0;
        Ok(())
    }

    /// Discards the entries of a job that was rolled back.
    pub(super) fn discard_job(&mut self) {
        for entry in std::mem::take(&mut self.job) {
            self.entries.remove(entry);
        }
        self.runs.clear();
        self.moves.clear();
        (self.last, self.pending_turns) = (self.last_accepted, 0);
        self.job_turns = 0;
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn entries(&self) -> &LookupEntries {
        &self.entries
    }

    /// Takes the entries and the last operation of the batch.
    pub(super) fn take(&mut self) -> (LookupEntries, i64) {
        let batch = std::mem::take(self);
        (batch.entries, batch.last)
    }
}

/// The entries that a transaction can see: the shared ones, those of the open batch, and, for a
/// snapshot older than the shared ones, entries of its own.
pub(super) struct IndexView<'t> {
    shared: &'t PendingIndex,
    horizon: Horizon,
    uncommitted: Option<&'t std::cell::RefCell<UncommittedEntries>>,
    own: std::cell::OnceCell<LookupEntries>,
    connection: &'t Connection,
}

impl<'t> IndexView<'t> {
    pub(super) fn new(
        shared: &'t PendingIndex,
        horizon: Horizon,
        uncommitted: Option<&'t std::cell::RefCell<UncommittedEntries>>,
        connection: &'t Connection,
    ) -> Self {
        IndexView { shared, horizon, uncommitted, own: std::cell::OnceCell::new(), connection }
    }

    pub(super) fn horizon(&self) -> Horizon {
        self.horizon
    }

    pub(super) fn add(&self, entry: LookupEntry) {
        if let Some(uncommitted) = self.uncommitted {
            uncommitted.borrow_mut().add(entry);
        }
    }

    /// Returns how many turns the running job has added.
    pub(super) fn job_turns(&self) -> usize {
        self.uncommitted.map_or(0, |batch| batch.borrow().job_turns)
    }

    pub(super) fn take_runs(&self) -> Vec<PlaceRun> {
        self.uncommitted.map(|batch| batch.borrow_mut().take_runs()).unwrap_or_default()
    }

    pub(super) fn take_moves(&self, conversation: i64) -> Vec<TipMove> {
        let moves = self.uncommitted.map(|batch| batch.borrow_mut().take_moves(conversation));
        moves.unwrap_or_default()
    }

    /// Records that the running job moves a branch.
    pub(super) fn add_move(&self, conversation: i64, to: TipMove) {
        if let Some(uncommitted) = self.uncommitted {
            uncommitted.borrow_mut().moves.push((conversation, to));
        }
    }

    /// Returns where a branch was moved to since the last flush, as of this snapshot.
    pub(super) fn last_move(&self, conversation: i64, branch: [u8; 16]) -> Result<Option<TipMove>> {
        if let Some(uncommitted) = self.uncommitted
            && let Some(to) = uncommitted.borrow().last_move(conversation, branch)
        {
            return Ok(Some(to));
        }
        let mut found: Option<(i64, TipMove)> = None;
        self.search(|entries| {
            let last = entries.last_move(conversation, branch, self.horizon.last);
            if let Some((no, to)) = last.filter(|(no, _)| *no > self.horizon.indexed)
                && found.is_none_or(|(before, _)| before <= no)
            {
                found = Some((no, to));
            }
        })?;
        Ok(found.map(|(_, to)| to))
    }

    pub(super) fn next_operation(&self) -> i64 {
        let last = self.uncommitted.map_or(0, |batch| batch.borrow().last);
        last.max(self.horizon.last) + 1
    }

    /// Returns the row number of the next turn in `fresh`.
    pub(super) fn next_turn_row_no(&self) -> i64 {
        let turns = self.uncommitted.map_or(0, |batch| batch.borrow().pending_turns);
        pending_rows::turn_row_no(self.next_operation(), turns)
    }

    /// Runs a look-up over every set of entries that this snapshot can see.
    fn search(&self, mut find: impl FnMut(&LookupEntries)) -> Result<()> {
        if let Some(uncommitted) = self.uncommitted {
            find(&uncommitted.borrow().entries);
        }
        {
            let state = self.shared.lock();
            if PendingIndex::covers(&state, self.horizon) {
                find(&state.previous);
                find(&state.entries);
                return Ok(());
            }
        }
        if self.own.get().is_none() {
            let mut entries = LookupEntries::default();
            read_entries(self.connection, self.horizon.indexed, self.horizon.last, &mut entries)?;
            // The cell was just found empty, and only this thread sets it.
            self.own.set(entries).ok();
        }
        if let Some(own) = self.own.get() {
            find(own);
        }
        Ok(())
    }

    pub(super) fn places_by_id(&self, id: &[u8; 16]) -> Result<Vec<i64>> {
        let mut found = Vec::new();
        let range = (*id, i64::MIN)..=(*id, i64::MAX);
        self.search(|entries| {
            found.extend(entries.ids.range(range.clone()).map(|(_, place)| *place));
        })?;
        Ok(found)
    }

    pub(super) fn places_by_hash(&self, conversation: i64, from: i64, to: i64) -> Result<Vec<i64>> {
        let mut found = Vec::new();
        let range = (conversation, from, i64::MIN)..=(conversation, to, i64::MAX);
        self.search(|entries| {
            found.extend(entries.hashes.range(range.clone()).map(|(_, _, place)| *place));
        })?;
        Ok(found)
    }

    /// Returns the row numbers that the turn at a place may have in `fresh`.
    pub(super) fn row_nos_at(&self, place: i64) -> Result<Vec<i64>> {
        let mut found = Vec::new();
        self.search(|entries| found.extend(entries.row_nos.get(&place)))?;
        Ok(found)
    }

    /// Returns the last place before another that may have a pending turn.
    pub(super) fn last_pending_before(&self, end: i64) -> Result<Option<i64>> {
        let mut found = None;
        self.search(|entries| {
            found = found.max(entries.row_nos.range(..end).next_back().map(|(place, _)| *place));
        })?;
        Ok(found)
    }

    /// Returns the places in a range that may have pending turns, and their row numbers.
    pub(super) fn pending_between(&self, from: i64, to: i64) -> Result<BTreeMap<i64, i64>> {
        let mut found = BTreeMap::new();
        if from <= to {
            self.search(|entries| found.extend(entries.row_nos.range(from..=to)))?;
        }
        Ok(found)
    }

    pub(super) fn operations_by_key(&self, project: i64, prefix: i64) -> Result<Vec<i64>> {
        let mut found = Vec::new();
        let range = (project, prefix, i64::MIN)..=(project, prefix, i64::MAX);
        self.search(|entries| {
            found.extend(entries.keys.range(range.clone()).map(|(_, _, no)| *no));
        })?;
        Ok(found)
    }

    /// Returns the last sequence number of a conversation below another, and its operation.
    pub(super) fn last_operation(
        &self,
        conversation: i64,
        below: i64,
    ) -> Result<Option<(i64, i64)>> {
        let mut found = None;
        self.search(|entries| found = found.max(entries.last_operation(conversation, below)))?;
        Ok(found)
    }

    /// Returns operations of a conversation by sequence number.
    pub(super) fn operations_between(
        &self,
        conversation: i64,
        from: i64,
        to: i64,
    ) -> Result<BTreeMap<i64, i64>> {
        let mut found = BTreeMap::new();
        if from <= to {
            self.search(|entries| {
                let operations = entries.operations.get(&conversation).into_iter();
                found.extend(operations.flat_map(|all| all.range(from..=to)));
            })?;
        }
        Ok(found)
    }
}
