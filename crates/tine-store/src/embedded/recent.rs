//! Look-ups that are not in their tables yet.
//!
//! A turn is found by id and by hash, an operation by its number and by its key. Writing these
//! four entries with every append would touch four more pages than the append itself. So they
//! are written in batches: the table `indexed` says up to which operation the look-up tables are
//! complete, and the entries behind that are kept in memory, read from the operations themselves
//! when a transaction begins. They are as durable as the operations, since they are nothing but
//! a reading of them.
//!
//! A transaction must find what its own snapshot holds. The entries that the last batch took
//! over are therefore kept until the next one, and a reader that is older than both reads its
//! own. Entries that a snapshot does not hold yet lead to rows that are not there, and are passed
//! over by whoever looks them up.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rusqlite::{Connection, params};

use super::fresh;
use super::rows::{self, Run};
use crate::Result;

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
}

/// Entries, found by what they are looked up by.
#[derive(Debug, Default)]
pub(super) struct Entries {
    ids: BTreeSet<([u8; 16], i64)>,
    fresh: BTreeMap<i64, i64>,
    hashes: BTreeSet<(i64, i64, i64)>,
    numbers: HashMap<i64, BTreeMap<i64, i64>>,
    keys: BTreeSet<(i64, i64, i64)>,
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
        }
    }

    /// Takes over others, one by one: a batch is small beside what is there, and the tree's own
    /// `append` would build everything anew.
    fn take_over(&mut self, others: Entries) {
        self.ids.extend(others.ids);
        self.fresh.extend(others.fresh);
        self.hashes.extend(others.hashes);
        self.keys.extend(others.keys);
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

    fn fresh_between(&self, from: i64, to: i64, found: &mut BTreeMap<i64, i64>) {
        found.extend(self.fresh.range(from..=to).map(|(place, no)| (*place, *no)));
    }

    /// Writes all entries to their tables, each table in the order of its key.
    fn write(&self, connection: &Connection) -> Result<()> {
        let mut ids =
            connection.prepare_cached("INSERT INTO turn_id (id, place) VALUES (?1, ?2)")?;
        for (id, place) in &self.ids {
            ids.execute(params![id, place])?;
        }
        let mut hashes = connection.prepare_cached(
            "INSERT INTO turn_hash (conversation, prefix, place) VALUES (?1, ?2, ?3)",
        )?;
        for (conversation, prefix, place) in &self.hashes {
            hashes.execute([conversation, prefix, place])?;
        }
        let mut numbers = connection.prepare_cached(
            "INSERT INTO operation_seq (conversation, seq, operation) VALUES (?1, ?2, ?3)",
        )?;
        let mut conversations: Vec<_> = self.numbers.iter().collect();
        conversations.sort_unstable_by_key(|(conversation, _)| **conversation);
        for (conversation, operations) in conversations {
            for (seq, no) in operations {
                numbers.execute([conversation, seq, no])?;
            }
        }
        let mut keys = connection.prepare_cached(
            "INSERT INTO idempotency (project, prefix, operation) VALUES (?1, ?2, ?3)",
        )?;
        for (project, prefix, no) in &self.keys {
            keys.execute([project, prefix, no])?;
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
        let sql = "SELECT through, (SELECT max(no) FROM operation) FROM indexed";
        let mut statement = connection.prepare_cached(sql)?;
        Ok(statement.query_row([], |row| {
            Ok(Horizon { indexed: row.get(0)?, last: row.get::<_, Option<i64>>(1)?.unwrap_or(0) })
        })?)
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
        connection.prepare_cached("UPDATE indexed SET through = ?1")?.execute([last])?;
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

/// Reads the entries of the operations behind one, up to another.
fn read(connection: &Connection, after: i64, to: i64, entries: &mut Entries) -> Result<()> {
    let sql = "SELECT operation.no, operation.conversation, seq, key, turns, project FROM operation \
               JOIN conversation ON conversation.no = operation.conversation \
               WHERE operation.no > ?1 AND operation.no <= ?2";
    let mut statement = connection.prepare_cached(sql)?;
    let mut found = statement.query([after, to])?;
    while let Some(row) = found.next()? {
        let (no, conversation): (i64, i64) = (row.get(0)?, row.get(1)?);
        entries.add(Entry::Operation { conversation, seq: row.get(2)?, no });
        if let Some(key) = row.get::<_, Option<String>>(3)? {
            let prefix = rows::key_prefix(&key);
            entries.add(Entry::Key { project: row.get(5)?, prefix, no });
        }
        if let Some(runs) = row.get::<_, Option<Vec<u8>>>(4)? {
            for run in rows::read_runs(&runs) {
                read_turns(connection, conversation, run, entries)?;
            }
        }
    }
    Ok(())
}

fn read_turns(
    connection: &Connection,
    conversation: i64,
    run: Run,
    entries: &mut Entries,
) -> Result<()> {
    let mut add = |row: &rusqlite::Row<'_>, fresh: i64| -> Result<()> {
        let hash = tine_core::Digest(row.get(2)?);
        let (place, id, prefix) = (row.get(0)?, row.get(1)?, rows::prefix(&hash));
        entries.add(Entry::Turn { conversation, id, prefix, place, fresh });
        Ok(())
    };
    let sql = "SELECT place, id, hash FROM turn WHERE place >= ?1 AND place < ?2";
    let mut statement = connection.prepare_cached(sql)?;
    let mut found = statement.query([run.first, run.first + run.count])?;
    while let Some(row) = found.next()? {
        add(row, 0)?;
    }
    if run.fresh != 0 {
        let sql = "SELECT place, id, hash, no FROM fresh WHERE no >= ?1 AND no < ?2 \
                   AND place - no = ?3";
        let mut statement = connection.prepare_cached(sql)?;
        let (no, end) = (run.fresh, run.fresh + run.count);
        let mut found = statement.query([no, end, run.first - no])?;
        while let Some(row) = found.next()? {
            add(row, row.get(3)?)?;
        }
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
    last: i64,
}

impl Pending {
    pub(super) fn add(&mut self, entry: Entry) {
        match entry {
            Entry::Turn { place, fresh, .. } => match self.runs.last_mut() {
                Some(run) if run.goes_on_at(place, fresh) => run.count += 1,
                _ => self.runs.push(Run { first: place, count: 1, fresh }),
            },
            Entry::Operation { no, .. } => self.last = no,
            Entry::Key { .. } => {}
        }
        self.job_turns += usize::from(matches!(entry, Entry::Turn { .. }));
        self.entries.add(entry);
        self.job.push(entry);
    }

    /// The turns made since the last operation, for the next one to list.
    pub(super) fn take_runs(&mut self) -> Vec<Run> {
        std::mem::take(&mut self.runs)
    }

    /// Ends a job. Turns that no operation lists would not be found by a later reading
    /// of the log, so they go to their places and to the tables at once.
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
            fresh::settle(connection)?;
        }
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
