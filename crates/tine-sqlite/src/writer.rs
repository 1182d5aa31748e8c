//! One writer, shared syncs.
//!
//! Callers put their jobs in a queue. Whoever finds the writing connection free leads: it runs
//! all jobs that are there, one after the other in one transaction, commits them with one sync,
//! and tells their owners. A lone writer therefore pays one sync and no hand-over between threads;
//! many concurrent ones share theirs, and none of them has to be woken to do its own part.
//!
//! Nobody is answered before the commit, not even those whose job asked for a rollback: what they
//! saw may come from a neighbour in the same batch. A job that fails or panics takes back its own
//! part and no other. Savepoints would do that at the price of copying every page that a job
//! touches, and nearly every job that fails has written nothing yet. So jobs run without them;
//! when one has to take something back, the batch is begun again with savepoints.

use crate::error::StoreErr as _;
use std::any::Any;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use rusqlite::Connection;

use super::recent::{ENTRIES, Entries, Horizon, Pending, Recent, View};
use super::turnstile::{Pass, Turnstile};
use super::txn::Txn;
use tine_store::{Job, Mailbox, PackOptions, Packed, Result, StoreError, Verdict};

/// Jobs in one batch at most: bounds the work that one failed commit throws away, and lets other
/// processes in.
const BATCH_JOBS: usize = 256;

/// The longest that a batch waits for those who were in the last one.
const LONGEST_GATHERING: Duration = Duration::from_millis(1);

#[derive(Debug)]
pub(super) struct Writer {
    queue: Queue,
    core: Mutex<Core>,
}

#[derive(Debug, Default)]
struct Queue(Mutex<VecDeque<Ticket>>);

/// A job and the place where its owner waits.
struct Ticket {
    job: Job,
    slot: Arc<Slot>,
}

impl std::fmt::Debug for Ticket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Ticket")
    }
}

type Slot = Mailbox<Signal>;

/// What an owner is told.
#[derive(Debug)]
enum Signal {
    /// The connection is free and the owner's job is the first in the queue.
    Lead,
    /// The job's own outcome; all that it wrote is durable, or nothing of it is there.
    Done(Outcome),
}

#[derive(Debug)]
enum Outcome {
    Returned(Result<()>),
    Panicked(Box<dyn Any + Send>),
}

impl Writer {
    pub(super) fn new(connection: Connection, turnstile: Turnstile, recent: Arc<Recent>) -> Self {
        let core = Core {
            connection,
            turnstile,
            recent,
            pending: RefCell::default(),
            habit: Habit::default(),
            changes: 0,
            stopped: None,
        };
        Writer { queue: Queue::default(), core: Mutex::new(core) }
    }

    /// Runs a job in a transaction; when this returns `Ok`, what it committed is on disk.
    pub(super) fn write(&self, job: Job) -> Result<()> {
        let slot = Arc::new(Slot::default());
        self.queue.lock().push_back(Ticket { job, slot: Arc::clone(&slot) });
        loop {
            let free = match self.core.try_lock() {
                Ok(core) => Some(core),
                Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
                Err(TryLockError::WouldBlock) => None,
            };
            if let Some(mut core) = free {
                core.lead(&self.queue);
                drop(core);
                self.hand_over();
            }
            match slot.wait() {
                Signal::Lead => {}
                Signal::Done(Outcome::Returned(answer)) => return answer,
                Signal::Done(Outcome::Panicked(payload)) => resume_unwind(payload),
            }
        }
    }

    /// Runs something that cannot be part of a transaction while nobody writes.
    pub(super) fn exclusively(
        &self,
        body: &mut dyn FnMut(&Connection) -> Result<()>,
    ) -> Result<()> {
        let answer = {
            let mut core = self.core.lock().unwrap_or_else(PoisonError::into_inner);
            core.exclusively(body)
        };
        self.hand_over();
        answer
    }

    /// Packs one stretch of older turns in a transaction of its own.
    pub(super) fn pack(&self, options: PackOptions, from: i64) -> Result<(Packed, Option<i64>)> {
        let answer = {
            let mut core = self.core.lock().unwrap_or_else(PoisonError::into_inner);
            core.pack(options, from)
        };
        self.hand_over();
        answer
    }

    /// Wakes the owner of the first job that is left. Whoever comes later finds the connection
    /// free, since it was given back before this looks.
    fn hand_over(&self) {
        if let Some(first) = self.queue.lock().front() {
            first.slot.put(Signal::Lead);
        }
    }
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, VecDeque<Ticket>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The writing connection and what belongs to it.
#[derive(Debug)]
struct Core {
    connection: Connection,
    turnstile: Turnstile,
    recent: Arc<Recent>,
    pending: RefCell<Pending>,
    habit: Habit,
    /// Rows that the connection has changed so far, as of the last job's end.
    changes: u64,
    stopped: Option<String>,
}

/// How a job left the transaction.
enum Ended {
    /// With its work in it, or with none.
    Well,
    /// With work in it that was to be taken back.
    WithTraces,
}

/// How the last batch went.
#[derive(Debug, Default)]
struct Habit {
    jobs: usize,
    commit: Duration,
}

/// A transaction that is open for jobs.
struct Batch {
    horizon: Horizon,
    /// Whether anybody's work is in the transaction.
    any: bool,
    answers: Vec<(Ticket, Outcome)>,
    /// Whether each job has a savepoint to go back to.
    savepoints: bool,
    /// Set when SQLite took the whole transaction back, as it does on a full disk.
    lost: Option<Failure>,
    _pass: Pass,
}

impl Core {
    /// Runs the jobs of the queue as one batch, commits, and tells everybody.
    fn lead(&mut self, queue: &Queue) {
        let Some(first) = queue.lock().pop_front() else {
            return;
        };
        let mut batch = match self.begin() {
            Ok(batch) => batch,
            Err(error) => {
                first.slot.put(Signal::Done(Outcome::Returned(Err(error))));
                return;
            }
        };
        let mut next = Some(first);
        while let Some(ticket) = next {
            self.run(&mut batch, ticket);
            let room = batch.answers.len() < BATCH_JOBS && batch.lost.is_none();
            next = if room { self.next_job(queue, batch.answers.len()) } else { None };
        }
        let jobs = batch.answers.len();
        let started = Instant::now();
        let committed = match batch.lost {
            Some(failure) => {
                self.rollback();
                Err(failure)
            }
            None => self.commit(batch.any),
        };
        self.habit = Habit { jobs, commit: started.elapsed() };
        for (Ticket { slot, .. }, outcome) in batch.answers {
            let outcome = match (&committed, outcome) {
                (Err(failure), Outcome::Returned(_)) => Outcome::Returned(Err(failure.to_error())),
                (_, outcome) => outcome,
            };
            slot.put(Signal::Done(outcome));
        }
    }

    /// The next job, if somebody has one. Those who were answered by the last commit need a
    /// moment to come back: as long as fewer have come than last time, they are waited for, at
    /// most half as long as a commit takes.
    fn next_job(&self, queue: &Queue, jobs: usize) -> Option<Ticket> {
        let started = Instant::now();
        let patience = match jobs < self.habit.jobs {
            true => (self.habit.commit / 2).min(LONGEST_GATHERING),
            false => Duration::ZERO,
        };
        loop {
            if let Some(ticket) = queue.lock().pop_front() {
                return Some(ticket);
            }
            if started.elapsed() >= patience {
                return None;
            }
            std::thread::yield_now();
        }
    }

    fn begin(&mut self) -> Result<Batch> {
        if let Some(why) = &self.stopped {
            return Err(StoreError::Stopped { why: why.clone() });
        }
        let pass = self.turnstile.enter()?;
        self.execute("BEGIN IMMEDIATE")?;
        self.changes = self.connection.total_changes();
        match self.recent.catch_up(&self.connection) {
            Ok(horizon) => {
                let (any, answers, savepoints, lost) = (false, Vec::new(), false, None);
                Ok(Batch { horizon, any, answers, savepoints, lost, _pass: pass })
            }
            Err(error) => {
                self.rollback();
                Err(error)
            }
        }
    }

    /// Runs one job inside the open transaction.
    fn run(&mut self, batch: &mut Batch, mut ticket: Ticket) {
        let (savepoint, job) = (batch.savepoints, &mut ticket.job);
        let ran = catch_unwind(AssertUnwindSafe(|| self.run_job(batch.horizon, savepoint, job)));
        let (kept, outcome) = match ran {
            Ok(Ok(Verdict::Commit)) => (true, Outcome::Returned(Ok(()))),
            Ok(Ok(Verdict::Rollback)) => (false, Outcome::Returned(Ok(()))),
            Ok(Err(error)) => (false, Outcome::Returned(Err(error))),
            Err(payload) => (false, Outcome::Panicked(payload)),
        };
        let ended = match &outcome {
            Outcome::Returned(Err(error)) if self.connection.is_autocommit() => {
                Err(Failure::of(error))
            }
            _ if self.connection.is_autocommit() => {
                Err(Failure::Unknown("the transaction was lost".to_owned()))
            }
            _ => self.end_job(savepoint, kept).map_err(|error| Failure::of(&error)),
        };
        batch.any |= kept;
        batch.answers.push((ticket, outcome));
        match ended {
            Ok(Ended::Well) => {}
            Ok(Ended::WithTraces) => self.begin_again(batch),
            Err(failure) => batch.lost = Some(failure),
        }
    }

    fn run_job(&self, horizon: Horizon, savepoint: bool, job: &mut Job) -> Result<Verdict> {
        if savepoint {
            self.execute("SAVEPOINT job")?;
        }
        let view = View::new(&self.recent, horizon, Some(&self.pending), &self.connection);
        let verdict = job(&mut Txn::new(&self.connection, view, None))?;
        if verdict == Verdict::Commit {
            self.pending.borrow_mut().keep_job(&self.connection)?;
        }
        Ok(verdict)
    }

    /// Keeps or takes back what the last job did, where there is a savepoint.
    fn end_job(&mut self, savepoint: bool, kept: bool) -> Result<Ended> {
        let changes = self.connection.total_changes();
        let wrote = std::mem::replace(&mut self.changes, changes) != changes;
        if !kept {
            self.pending.borrow_mut().drop_job();
        }
        if savepoint {
            if !kept {
                self.execute("ROLLBACK TO job")?;
            }
            self.execute("RELEASE job")?;
        }
        Ok(if kept || savepoint || !wrote { Ended::Well } else { Ended::WithTraces })
    }

    /// Takes the whole batch back and runs its jobs once more, each with a savepoint. Nobody else
    /// has written in between: the turn is still this process's.
    fn begin_again(&mut self, batch: &mut Batch) {
        self.rollback();
        batch.savepoints = true;
        batch.any = false;
        if let Err(error) = self.execute("BEGIN IMMEDIATE") {
            batch.lost = Some(Failure::of(&error));
            return;
        }
        self.changes = self.connection.total_changes();
        let mut again = std::mem::take(&mut batch.answers).into_iter();
        for (ticket, _) in again.by_ref() {
            self.run(batch, ticket);
            if batch.lost.is_some() {
                break;
            }
        }
        // What is left has lost its work with the rest.
        batch.answers.extend(again);
    }

    /// Makes the batch durable, moving the look-up tables forward when enough has come together.
    fn commit(&mut self, any: bool) -> std::result::Result<(), Failure> {
        if !any {
            self.rollback();
            return Ok(());
        }
        let committed = self.index_if_due().and_then(|indexed| {
            self.execute("COMMIT")?;
            Ok(indexed)
        });
        match committed {
            Ok(indexed) => {
                let (entries, last) = self.pending.borrow_mut().take();
                self.recent.publish(entries, last, indexed);
                Ok(())
            }
            Err(error) => {
                let failure = Failure::of(&error);
                if let Failure::Unknown(why) = &failure {
                    // The log may or may not hold the commit: only a recovery can tell.
                    self.stopped = Some(why.clone());
                }
                self.rollback();
                Err(failure)
            }
        }
    }

    fn index_if_due(&self) -> Result<Option<i64>> {
        let pending = self.pending.borrow();
        if self.recent.len() + pending.len() < ENTRIES && !pending.is_unlisted() {
            return Ok(None);
        }
        self.recent.write_all(&self.connection, pending.entries()).map(Some)
    }

    fn rollback(&mut self) {
        self.pending.borrow_mut().take();
        if !self.connection.is_autocommit()
            && let Err(error) = self.execute("ROLLBACK")
        {
            self.stopped = Some(error.to_string());
        }
    }

    fn pack(&mut self, options: PackOptions, from: i64) -> Result<(Packed, Option<i64>)> {
        let batch = self.begin()?;
        let packed = self.recent.write_all(&self.connection, self.pending.borrow().entries());
        let packed = packed.and_then(|indexed| {
            // Entries that are read from the log lead to rows, so all of them go to the tables
            // first.
            let view = View::new(&self.recent, batch.horizon, None, &self.connection);
            let packed = Txn::new(&self.connection, view, None).pack_stretch(options, from)?;
            self.execute("COMMIT")?;
            self.recent.publish(Entries::default(), indexed, Some(indexed));
            Ok(packed)
        });
        if packed.is_err() {
            self.rollback();
        }
        packed
    }

    fn exclusively(&mut self, body: &mut dyn FnMut(&Connection) -> Result<()>) -> Result<()> {
        let _pass = self.turnstile.enter()?;
        body(&self.connection)
    }

    fn execute(&self, sql: &str) -> Result<()> {
        self.connection.prepare_cached(sql).store_err()?.execute([]).store_err()?;
        Ok(())
    }
}

/// Why a commit failed, for everybody who was in it.
#[derive(Clone, Debug)]
enum Failure {
    DiskFull,
    Unknown(String),
}

impl Failure {
    fn of(error: &StoreError) -> Self {
        match error {
            StoreError::DiskFull => Failure::DiskFull,
            other => Failure::Unknown(other.to_string()),
        }
    }

    fn to_error(&self) -> StoreError {
        match self {
            Failure::DiskFull => StoreError::DiskFull,
            Failure::Unknown(why) => StoreError::Stopped { why: why.clone() },
        }
    }
}
