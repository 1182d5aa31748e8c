//! Look-ups that are not in their tables yet.
//!
//! A turn is found by id and by hash, an operation by its number and by its key. Writing these
//! four entries with every append would touch four more pages than the append itself. So they
//! are written in batches: the table `indexed` says up to which operation the look-up tables are
//! complete, and the entries behind that are kept in memory, read from the operations themselves
//! when a transaction begins. They are as durable as the operations, since they are nothing but
//! a reading of them.
//!
//! Where a branch's tip has moved to is kept in the same way: the operation that moved it says so,
//! and the branch's own row is as it was at the last batch. Whatever else becomes of a branch is
//! written to its row at once.
//!
//! A transaction must find what its own snapshot holds. The entries that the last batch took
//! over are therefore kept until the next one, and a reader that is older than both reads its
//! own. Entries that a snapshot does not hold yet lead to rows that are not there, and are passed
//! over by whoever looks them up.

use crate::error::StoreErr as _;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rusqlite::{Connection, OptionalExtension, params};

use super::fresh;
use super::rows::{self, Move, Run};
use tine_store::Result;

/// Entries in memory at most before they are taken over into the tables.
pub(super) const ENTRIES: usize = 8192;

/// One entry of a look-up table.
#[derive(Clone, Copy, Debug)]
pub(super) enum Entry {
    /// `fresh` is the turn's number among the fresh ones, 0 if it is none.
    Turn {
        conversation: i64,
        id: [u8; 16],
        prefix: i64,
        place: i64,
        fresh: i64,
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
    Moved {
        conversation: i64,
        no: i64,
        to: Move,
    },
}

/// Entries, found by what they are looked up by.
#[derive(Debug, Default)]
pub(super) struct Entries {
    ids: BTreeSet<([u8; 16], i64)>,
    fresh: BTreeMap<i64, i64>,
    hashes: BTreeSet<(i64, i64, i64)>,
    numbers: HashMap<i64, BTreeMap<i64, i64>>,
    keys: BTreeSet<(i64, i64, i64)>,
    /// By conversation, branch and operation.
    moves: BTreeMap<(i64, [u8; 16], i64), Move>,
}

impl Entries {
    pub(super) fn add(&mut self, entry: Entry) {
        match entry {
            Entry::Turn { conversation, id, prefix, place, fresh } => {
                self.ids.insert((id, place));
                self.hashes.insert((conversation, prefix, place));
                if fresh != 0 {
                    self.fresh.insert(place, fresh);
                }
            }
            Entry::Operation { conversation, seq, no } => {
                self.numbers.entry(conversation).or_default().insert(seq, no);
            }
            Entry::Key { project, prefix, no } => {
                self.keys.insert((project, prefix, no));
            }
            Entry::Moved { conversation, no, to } => {
                self.moves.insert((conversation, to.branch, no), to);
            }
        }
    }

    fn remove(&mut self, entry: Entry) {
        match entry {
            Entry::Turn { conversation, id, prefix, place, .. } => {
                self.ids.remove(&(id, place));
                self.hashes.remove(&(conversation, prefix, place));
                self.fresh.remove(&place);
            }
            Entry::Operation { conversation, seq, .. } => {
                if let Some(numbers) = self.numbers.get_mut(&conversation) {
                    numbers.remove(&seq);
                }
            }
            Entry::Key { project, prefix, no } => {
                self.keys.remove(&(project, prefix, no));
            }
            Entry::Moved { conversation, no, to } => {
                self.moves.remove(&(conversation, to.branch, no));
            }
        }
    }

    /// Takes over others, one by one: a batch is small beside what is there, and the tree's own
    /// `append` would build everything anew.
    fn take_over(&mut self, others: Entries) {
        self.ids.extend(others.ids);
        self.fresh.extend(others.fresh);
        self.hashes.extend(others.hashes);
        self.keys.extend(others.keys);
        self.moves.extend(others.moves);
        for (conversation, numbers) in others.numbers {
            self.numbers.entry(conversation).or_default().extend(numbers);
        }
    }

    fn len(&self) -> usize {
        self.ids.len() + self.keys.len() + self.numbers.values().map(BTreeMap::len).sum::<usize>()
    }

    fn places_of_id(&self, id: &[u8; 16], found: &mut Vec<i64>) {
        let range = (*id, i64::MIN)..=(*id, i64::MAX);
        found.extend(self.ids.range(range).map(|(_, place)| *place));
    }

    fn places_of_hashes(&self, conversation: i64, from: i64, to: i64, found: &mut Vec<i64>) {
        let range = (conversation, from, i64::MIN)..=(conversation, to, i64::MAX);
        found.extend(self.hashes.range(range).map(|(_, _, place)| *place));
    }

    fn operations_of_key(&self, project: i64, prefix: i64, found: &mut Vec<i64>) {
        let range = (project, prefix, i64::MIN)..=(project, prefix, i64::MAX);
        found.extend(self.keys.range(range).map(|(_, _, no)| *no));
    }

    fn operations_of(&self, conversation: i64, from: i64, to: i64, found: &mut BTreeMap<i64, i64>) {
        if let Some(numbers) = self.numbers.get(&conversation) {
            found.extend(numbers.range(from..=to).map(|(seq, no)| (*seq, *no)));
        }
    }

    /// The last number of a conversation below another, and the operation that has it.
    fn last_operation_of(&self, conversation: i64, below: i64) -> Option<(i64, i64)> {
        let numbers = self.numbers.get(&conversation)?;
        numbers.range(..below).next_back().map(|(seq, no)| (*seq, *no))
    }

    /// The last operation up to another that moved a branch, and where to.
    fn last_move(&self, conversation: i64, branch: [u8; 16], up_to: i64) -> Option<(i64, Move)> {
        let range = (conversation, branch, i64::MIN)..=(conversation, branch, up_to);
        self.moves.range(range).next_back().map(|((_, _, no), to)| (*no, *to))
    }

    fn fresh_between(&self, from: i64, to: i64, found: &mut BTreeMap<i64, i64>) {
        found.extend(self.fresh.range(from..=to).map(|(place, no)| (*place, *no)));
    }

    /// Writes all entries to their tables, each table in the order of its key.
    fn write(&self, connection: &Connection) -> Result<()> {
        let mut ids = connection
            .prepare_cached("INSERT INTO turn_id (prefix, place) VALUES (?1, ?2)")
            .store_err()?;
        for (id, place) in &self.ids {
            ids.execute(params![rows::id_prefix(id), place]).store_err()?;
        }
        let mut hashes = connection
            .prepare_cached(
                "INSERT INTO turn_hash (conversation, prefix, place) VALUES (?1, ?2, ?3)",
            )
            .store_err()?;
        for (conversation, prefix, place) in &self.hashes {
            hashes.execute([conversation, prefix, place]).store_err()?;
        }
        let mut numbers = connection
            .prepare_cached(
                "INSERT INTO operation_seq (conversation, seq, operation) VALUES (?1, ?2, ?3)",
            )
            .store_err()?;
        let mut conversations: Vec<_> = self.numbers.iter().collect();
        conversations.sort_unstable_by_key(|(conversation, _)| **conversation);
        for (conversation, operations) in conversations {
            for (seq, no) in operations {
                numbers.execute([conversation, seq, no]).store_err()?;
            }
        }
        let mut keys = connection
            .prepare_cached(
                "INSERT INTO idempotency (project, prefix, operation) VALUES (?1, ?2, ?3)",
            )
            .store_err()?;
        for (project, prefix, no) in &self.keys {
            keys.execute([project, prefix, no]).store_err()?;
        }
        let mut branches = connection
            .prepare_cached(
                "UPDATE branch SET tip = ?3, version = ?4 WHERE id = ?2 AND conversation = ?1",
            )
            .store_err()?;
        let mut moves = self.moves.iter().peekable();
        while let Some(((conversation, branch, _), to)) = moves.next() {
            // Only the last one counts. A branch that is gone since has no row.
            let again = |(next, _): &(&(i64, [u8; 16], i64), &Move)| {
                (next.0, next.1) == (*conversation, *branch)
            };
            if !moves.peek().is_some_and(again) {
                branches.execute(params![conversation, branch, to.tip, to.version]).store_err()?;
            }
        }
        Ok(())
    }
}

/// How much of the log a snapshot holds, and how much of that the look-up tables cover.
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
                let last = row.get::<_, Option<i64>>(1)?.map_or(indexed, fresh::last_operation);
                Ok(Horizon { indexed, last: last.max(indexed) })
            })
            .store_err()
    }
}

/// The entries of one process, shared by its connections.
#[derive(Debug, Default)]
pub(super) struct Recent {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Entries of the operations behind `base`, up to `seen`.
    entries: Entries,
    base: i64,
    seen: i64,
    /// Entries of the operations behind `previous_base`, up to `base`.
    previous: Entries,
    previous_base: i64,
}

impl Recent {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads what a snapshot has and this process has not seen.
    pub(super) fn catch_up(&self, connection: &Connection) -> Result<Horizon> {
        let horizon = Horizon::of(connection)?;
        let mut state = self.lock();
        if horizon.indexed > state.seen {
            // Another process has gone far ahead, or this one has just begun.
            *state = State::default();
            (state.base, state.seen) = (horizon.indexed, horizon.indexed);
            state.previous_base = horizon.indexed;
        } else if horizon.indexed > state.base {
            state.rotate(horizon, connection)?;
        }
        if horizon.last > state.seen {
            let from = state.seen;
            read(connection, from, horizon.last, &mut state.entries)?;
            state.seen = horizon.last;
        }
        Ok(horizon)
    }

    /// Takes over the entries of a committed batch, whose last operation is `last`.
    pub(super) fn publish(&self, entries: Entries, last: i64, indexed: Option<i64>) {
        let mut state = self.lock();
        state.entries.take_over(entries);
        state.seen = state.seen.max(last);
        if let Some(indexed) = indexed {
            let taken = std::mem::take(&mut state.entries);
            state.previous = taken;
            state.previous_base = state.base;
            state.base = indexed;
        }
    }

    /// Writes all entries, and those of the open batch, to the tables, and moves fresh turns to
    /// their places. Both count once the transaction is committed and published.
    pub(super) fn write_all(&self, connection: &Connection, pending: &Entries) -> Result<i64> {
        let last = Horizon::of(connection)?.last;
        self.lock().entries.write(connection)?;
        pending.write(connection)?;
        fresh::settle(connection)?;
        connection
            .prepare_cached("UPDATE indexed SET through = ?1")
            .store_err()?
            .execute([last])
            .store_err()?;
        Ok(last)
    }

    pub(super) fn len(&self) -> usize {
        self.lock().entries.len()
    }

    /// Whether the shared entries reach back far enough for a snapshot.
    fn covers(state: &State, horizon: Horizon) -> bool {
        state.previous_base <= horizon.indexed
    }
}

impl State {
    /// Another process has moved the tables forward to an operation that was seen here.
    fn rotate(&mut self, horizon: Horizon, connection: &Connection) -> Result<()> {
        let mut rest = Entries::default();
        read(connection, horizon.indexed, self.seen, &mut rest)?;
        self.previous = std::mem::replace(&mut self.entries, rest);
        (self.previous_base, self.base) = (self.base, horizon.indexed);
        // What this snapshot does not hold yet was not read just now, and will be.
        self.seen = self.seen.min(horizon.last);
        Ok(())
    }
}

/// Reads the entries of the operations behind one, up to another, from the fresh rows.
fn read(connection: &Connection, after: i64, to: i64, entries: &mut Entries) -> Result<()> {
    let sql = "SELECT no, place, id, hash, conversation, seq, key, turns, moves FROM fresh \
               WHERE no > ?1 AND no <= ?2 ORDER BY no";
    let mut statement = connection.prepare_cached(sql).store_err()?;
    let (after, to) = (fresh::number_of_operation(after), fresh::number_of_operation(to));
    let mut found = statement.query([after, to]).store_err()?;
    // Turns come before the operation that made them.
    let mut turns = BTreeMap::new();
    while let Some(row) = found.next().store_err()? {
        let no: i64 = row.get(0).store_err()?;
        if let Some(place) = row.get::<_, Option<i64>>(1).store_err()? {
            let prefix = rows::prefix(&tine_core::Digest(row.get(3).store_err()?));
            turns.insert(place, (no, row.get(2).store_err()?, prefix));
            continue;
        }
        let (no, conversation) = (fresh::last_operation(no), row.get(4).store_err()?);
        entries.add(Entry::Operation { conversation, seq: row.get(5).store_err()?, no });
        if let Some(key) = row.get::<_, Option<String>>(6).store_err()? {
            let sql = "SELECT project FROM conversation WHERE no = ?1";
            let project = connection
                .prepare_cached(sql)
                .store_err()?
                .query_row([conversation], |row| row.get(0))
                .optional()
                .store_err()?;
            let project = tine_store::required(project, || format!("conversation {conversation}"))?;
            entries.add(Entry::Key { project, prefix: rows::key_prefix(&key), no });
        }
        for run in
            rows::read_runs(&row.get::<_, Option<Vec<u8>>>(7).store_err()?.unwrap_or_default())
        {
            let fresh: Vec<_> = turns.range(run.first..run.first + run.count).collect();
            if i64::try_from(fresh.len()).unwrap_or(i64::MAX) < run.count {
                read_settled(connection, conversation, run, entries)?;
            }
            for (&place, &(fresh, id, prefix)) in fresh {
                entries.add(Entry::Turn { conversation, id, prefix, place, fresh });
            }
        }
        for to in
            rows::read_moves(&row.get::<_, Option<Vec<u8>>>(8).store_err()?.unwrap_or_default())
        {
            entries.add(Entry::Moved { conversation, no, to });
        }
        turns.clear();
    }
    Ok(())
}

/// Reads the entries of turns of a run that are in their places already.
fn read_settled(
    connection: &Connection,
    conversation: i64,
    run: Run,
    entries: &mut Entries,
) -> Result<()> {
    let sql = "SELECT place, id, hash FROM turn WHERE place >= ?1 AND place < ?2";
    let mut statement = connection.prepare_cached(sql).store_err()?;
    let mut found = statement.query([run.first, run.first + run.count]).store_err()?;
    while let Some(row) = found.next().store_err()? {
        let prefix = rows::prefix(&tine_core::Digest(row.get(2).store_err()?));
        let (place, id) = (row.get(0).store_err()?, row.get(1).store_err()?);
        entries.add(Entry::Turn { conversation, id, prefix, place, fresh: 0 });
    }
    Ok(())
}

/// What the jobs of one batch have added, not yet committed.
#[derive(Debug, Default)]
pub(super) struct Pending {
    entries: Entries,
    /// Of the job that runs, so that they can be taken back.
    job: Vec<Entry>,
    job_turns: usize,
    /// Runs of turns that no operation has listed yet.
    runs: Vec<Run>,
    /// Conversations and moves of their branches that no operation has listed yet.
    moves: Vec<(i64, Move)>,
    /// Fresh turns since the last operation.
    fresh_turns: i64,
    last: i64,
    /// The last operation of the jobs that have ended.
    last_kept: i64,
    /// Whether there is something that no later reading of the log would find.
    unlisted: bool,
}

impl Pending {
    pub(super) fn add(&mut self, entry: Entry) {
        match entry {
            Entry::Turn { place, fresh, .. } => match self.runs.last_mut() {
                Some(run) if run.goes_on_at(place, fresh) => run.count += 1,
                _ => self.runs.push(Run { first: place, count: 1, fresh }),
            },
            Entry::Operation { no, .. } => (self.last, self.fresh_turns) = (no, 0),
            Entry::Key { .. } | Entry::Moved { .. } => {}
        }
        self.fresh_turns += i64::from(matches!(entry, Entry::Turn { fresh: 1.., .. }));
        self.job_turns += usize::from(matches!(entry, Entry::Turn { .. }));
        self.entries.add(entry);
        self.job.push(entry);
    }

    /// The turns made since the last operation, for the next one to list.
    pub(super) fn take_runs(&mut self) -> Vec<Run> {
        std::mem::take(&mut self.runs)
    }

    /// The moves of a conversation's branches since the last operation, for the next one to list.
    pub(super) fn take_moves(&mut self, conversation: i64) -> Vec<Move> {
        let own = |entry: &mut (i64, Move)| entry.0 == conversation;
        self.moves.extract_if(.., own).map(|(_, to)| to).collect()
    }

    /// Where an open batch has moved a branch.
    fn last_move(&self, conversation: i64, branch: [u8; 16]) -> Option<Move> {
        let own = |(of, to): &&(i64, Move)| (*of, to.branch) == (conversation, branch);
        let unlisted = self.moves.iter().rfind(own).map(|(_, to)| *to);
        let listed = || self.entries.last_move(conversation, branch, i64::MAX);
        unlisted.or_else(|| listed().map(|(_, to)| to))
    }

    /// Whether the tables must be moved forward with this batch.
    pub(super) fn is_unlisted(&self) -> bool {
        self.unlisted
    }

    /// Ends a job. Turns and moves that no operation lists would not be found by a later reading
    /// of the log, so turns go to their places and to the tables at once, and moves with the
    /// batch.
    pub(super) fn keep_job(&mut self, connection: &Connection) -> Result<()> {
        if !self.runs.is_empty() {
            let mut unlisted = Entries::default();
            for entry in &self.job {
                if let Entry::Turn { place, .. } = entry
                    && self.runs.iter().any(|run| run.holds(*place))
                {
                    unlisted.add(*entry);
                    self.entries.remove(*entry);
                }
            }
            unlisted.write(connection)?;
            fresh::settle_turns(connection)?;
            self.fresh_turns = 0;
        }
        for (conversation, to) in std::mem::take(&mut self.moves) {
            self.unlisted = true;
            // Behind all operations so far, and not before the next one.
            self.entries.add(Entry::Moved { conversation, no: self.last + 1, to });
        }
        self.last_kept = self.last;
        self.runs.clear();
        self.job.clear();
        self.job_turns = 0;
        Ok(())
    }

    /// Takes a job back.
    pub(super) fn drop_job(&mut self) {
        for entry in std::mem::take(&mut self.job) {
            self.entries.remove(entry);
        }
        self.runs.clear();
        self.moves.clear();
        (self.last, self.fresh_turns) = (self.last_kept, 0);
        self.job_turns = 0;
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn entries(&self) -> &Entries {
        &self.entries
    }

    /// The entries and the last operation of the batch.
    pub(super) fn take(&mut self) -> (Entries, i64) {
        let taken = std::mem::take(self);
        (taken.entries, taken.last)
    }
}

/// The entries that a transaction looks through: the process's own, those of the open batch, and,
/// for a snapshot older than both, its own.
pub(super) struct View<'t> {
    recent: &'t Recent,
    horizon: Horizon,
    pending: Option<&'t std::cell::RefCell<Pending>>,
    own: std::cell::OnceCell<Entries>,
    connection: &'t Connection,
}

impl<'t> View<'t> {
    pub(super) fn new(
        recent: &'t Recent,
        horizon: Horizon,
        pending: Option<&'t std::cell::RefCell<Pending>>,
        connection: &'t Connection,
    ) -> Self {
        View { recent, horizon, pending, own: std::cell::OnceCell::new(), connection }
    }

    pub(super) fn horizon(&self) -> Horizon {
        self.horizon
    }

    pub(super) fn add(&self, entry: Entry) {
        if let Some(pending) = self.pending {
            pending.borrow_mut().add(entry);
        }
    }

    /// Turns that the open job has made so far.
    pub(super) fn turns_of_job(&self) -> usize {
        self.pending.map_or(0, |pending| pending.borrow().job_turns)
    }

    pub(super) fn take_runs(&self) -> Vec<Run> {
        self.pending.map(|pending| pending.borrow_mut().take_runs()).unwrap_or_default()
    }

    pub(super) fn take_moves(&self, conversation: i64) -> Vec<Move> {
        let taken = self.pending.map(|pending| pending.borrow_mut().take_moves(conversation));
        taken.unwrap_or_default()
    }

    /// Notes that the open job moves a branch.
    pub(super) fn add_move(&self, conversation: i64, to: Move) {
        if let Some(pending) = self.pending {
            pending.borrow_mut().moves.push((conversation, to));
        }
    }

    /// Where a branch was moved to since the last batch, as far as this snapshot knows.
    pub(super) fn last_move(&self, conversation: i64, branch: [u8; 16]) -> Result<Option<Move>> {
        if let Some(pending) = self.pending
            && let Some(to) = pending.borrow().last_move(conversation, branch)
        {
            return Ok(Some(to));
        }
        let mut found: Option<(i64, Move)> = None;
        self.look(|entries| {
            let last = entries.last_move(conversation, branch, self.horizon.last);
            if let Some((no, to)) = last.filter(|(no, _)| *no > self.horizon.indexed)
                && found.is_none_or(|(before, _)| before <= no)
            {
                found = Some((no, to));
            }
        })?;
        Ok(found.map(|(_, to)| to))
    }

    /// The number that the next operation will have.
    pub(super) fn next_operation(&self) -> i64 {
        let last = self.pending.map_or(0, |pending| pending.borrow().last);
        last.max(self.horizon.last) + 1
    }

    /// The number that the next fresh turn will have.
    pub(super) fn next_fresh_turn(&self) -> i64 {
        let turns = self.pending.map_or(0, |pending| pending.borrow().fresh_turns);
        fresh::number_of_turn(self.next_operation(), turns)
    }

    /// Runs a look-up over everything that may hold an entry of this snapshot.
    fn look(&self, mut find: impl FnMut(&Entries)) -> Result<()> {
        if let Some(pending) = self.pending {
            find(&pending.borrow().entries);
        }
        {
            let state = self.recent.lock();
            if Recent::covers(&state, self.horizon) {
                find(&state.previous);
                find(&state.entries);
                return Ok(());
            }
        }
        if self.own.get().is_none() {
            let mut entries = Entries::default();
            read(self.connection, self.horizon.indexed, self.horizon.last, &mut entries)?;
            // Set only here, and the cell was empty a line ago.
            self.own.set(entries).ok();
        }
        if let Some(own) = self.own.get() {
            find(own);
        }
        Ok(())
    }

    pub(super) fn places_of_id(&self, id: &[u8; 16]) -> Result<Vec<i64>> {
        let mut found = Vec::new();
        self.look(|entries| entries.places_of_id(id, &mut found))?;
        Ok(found)
    }

    pub(super) fn places_of_hashes(
        &self,
        conversation: i64,
        from: i64,
        to: i64,
    ) -> Result<Vec<i64>> {
        let mut found = Vec::new();
        self.look(|entries| entries.places_of_hashes(conversation, from, to, &mut found))?;
        Ok(found)
    }

    /// Numbers that the turn at a place may have among the fresh ones.
    pub(super) fn fresh_at(&self, place: i64) -> Result<Vec<i64>> {
        let mut found = Vec::new();
        self.look(|entries| found.extend(entries.fresh.get(&place)))?;
        Ok(found)
    }

    /// The last place before another one at which there may be a fresh turn.
    pub(super) fn last_fresh_before(&self, end: i64) -> Result<Option<i64>> {
        let mut found = None;
        self.look(|entries| {
            found = found.max(entries.fresh.range(..end).next_back().map(|(place, _)| *place));
        })?;
        Ok(found)
    }

    /// Places between two at which there may be fresh turns, and their numbers.
    pub(super) fn fresh_between(&self, from: i64, to: i64) -> Result<BTreeMap<i64, i64>> {
        let mut found = BTreeMap::new();
        if from <= to {
            self.look(|entries| entries.fresh_between(from, to, &mut found))?;
        }
        Ok(found)
    }

    pub(super) fn operations_of_key(&self, project: i64, prefix: i64) -> Result<Vec<i64>> {
        let mut found = Vec::new();
        self.look(|entries| entries.operations_of_key(project, prefix, &mut found))?;
        Ok(found)
    }

    /// The last number of a conversation below another, and the operation that has it.
    pub(super) fn last_operation_of(
        &self,
        conversation: i64,
        below: i64,
    ) -> Result<Option<(i64, i64)>> {
        let mut found = None;
        self.look(|entries| found = found.max(entries.last_operation_of(conversation, below)))?;
        Ok(found)
    }

    /// Numbers in the log and the operations that have them, in order.
    pub(super) fn operations_of(
        &self,
        conversation: i64,
        from: i64,
        to: i64,
    ) -> Result<BTreeMap<i64, i64>> {
        let mut found = BTreeMap::new();
        if from <= to {
            self.look(|entries| entries.operations_of(conversation, from, to, &mut found))?;
        }
        Ok(found)
    }
}
