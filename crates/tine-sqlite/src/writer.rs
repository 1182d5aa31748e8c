//! Group commit: one writer at a time, shared syncs.
//!
//! Callers queue their jobs. The caller that finds the write connection free becomes the leader: it
//! runs all queued jobs one after the other in one transaction, commits them with one sync, and
//! wakes their owners. A single writer therefore pays one sync and no switch between threads;
//! concurrent ones share a sync, and none is woken only to run its own job.
//!
//! No caller gets an answer before the commit, not even one whose job rolled back: the job may have
//! read what another job of the batch wrote. A job that fails or panics must undo its own writes
//! only. A savepoint for each job would copy every page that it touches, and nearly every failing
//! job has written nothing. So jobs run without savepoints; when a job has writes to undo, the
//! batch is restarted with them.

use crate::error::execute;
use std::any::Any;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use rusqlite::Connection;

use super::pending_index::{
    Horizon, IndexView, LookupEntries, MAX_PENDING_ENTRIES, PendingIndex, UncommittedEntries,
};
use super::txn::SqliteTxn;
use super::writer_lock::{WriterLock, WriterLockGuard};
use tine_store::{Job, Mailbox, PackOptions, Packed, Result, StoreError, Verdict};

/// The maximum number of jobs in a batch: bounds the work that a failed commit loses, and lets other
/// processes write.
const BATCH_JOBS: usize = 256;

/// The longest that a batch waits for callers of the last batch to return.
const MAX_GATHER_WAIT: Duration = Duration::from_millis(1);

#[derive(Debug)]
pub(super) struct BatchWriter {
    queue: JobQueue,
    core: Mutex<WriteConnection>,
}

#[derive(Debug, Default)]
struct JobQueue(Mutex<VecDeque<QueuedJob>>);

/// A job, and the mailbox on which its owner waits.
struct QueuedJob {
    job: Job,
    mailbox: Arc<JobMailbox>,
}

impl std::fmt::Debug for QueuedJob {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("QueuedJob")
    }
}

type JobMailbox = Mailbox<JobSignal>;

/// A message to the owner of a job.
#[derive(Debug)]
enum JobSignal {
    /// The connection is free, and the owner's job is the first in the queue.
    Lead,
    /// The outcome of the job; its writes are durable, or none of them was stored.
    Done(JobOutcome),
}

#[derive(Debug)]
enum JobOutcome {
    Returned(Result<()>),
    Panicked(Box<dyn Any + Send>),
}

impl BatchWriter {
    pub(super) fn new(
        connection: Connection,
        writer_lock: WriterLock,
        pending_index: Arc<PendingIndex>,
    ) -> Self {
        let core = WriteConnection {
            connection,
            writer_lock,
            pending_index,
            pending: RefCell::default(),
            last_batch: BatchStats::default(),
            changes: 0,
            stopped: None,
        };
        BatchWriter { queue: JobQueue::default(), core: Mutex::new(core) }
    }

    /// Runs a job in a transaction; when this returns `Ok`, its writes are on disk.
    pub(super) fn write(&self, job: Job) -> Result<()> {
        let mailbox = Arc::new(JobMailbox::default());
        self.queue.lock().push_back(QueuedJob { job, mailbox: Arc::clone(&mailbox) });
        loop {
            let free = match self.core.try_lock() {
                Ok(core) => Some(core),
                Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
                Err(TryLockError::WouldBlock) => None,
            };
            if let Some(mut core) = free {
                core.lead(&self.queue);
                drop(core);
                self.wake_next_leader();
            }
            match mailbox.wait() {
                JobSignal::Lead => {}
                JobSignal::Done(JobOutcome::Returned(answer)) => return answer,
                JobSignal::Done(JobOutcome::Panicked(payload)) => resume_unwind(payload),
            }
        }
    }

    /// Runs a closure outside any transaction, while no process writes.
    pub(super) fn exclusively(
        &self,
        body: &mut dyn FnMut(&Connection) -> Result<()>,
    ) -> Result<()> {
        let answer = {
            let mut core = self.core.lock().unwrap_or_else(PoisonError::into_inner);
            core.exclusively(body)
        };
        self.wake_next_leader();
        answer
    }

    /// Packs some older turns in a transaction of its own.
    pub(super) fn pack(&self, options: PackOptions, from: i64) -> Result<(Packed, Option<i64>)> {
        let answer = {
            let mut core = self.core.lock().unwrap_or_else(PoisonError::into_inner);
            core.pack(options, from)
        };
        self.wake_next_leader();
        answer
    }

    /// Wakes the owner of the first remaining job. A job that is queued later finds the connection
    /// free, since it was released before the queue is read here.
    fn wake_next_leader(&self) {
        if let Some(first) = self.queue.lock().front() {
            first.mailbox.put(JobSignal::Lead);
        }
    }
}

impl JobQueue {
    fn lock(&self) -> MutexGuard<'_, VecDeque<QueuedJob>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug)]
struct WriteConnection {
    connection: Connection,
    writer_lock: WriterLock,
    pending_index: Arc<PendingIndex>,
    pending: RefCell<UncommittedEntries>,
    last_batch: BatchStats,
    /// The connection's total of changed rows, as of the end of the last job.
    changes: u64,
    stopped: Option<String>,
}

/// How a job left the transaction.
enum JobEnd {
    /// With its accepted writes, or with none.
    Clean,
    /// With writes that must be undone.
    NeedsRollback,
}

/// Size and commit time of the last batch.
#[derive(Debug, Default)]
struct BatchStats {
    jobs: usize,
    commit: Duration,
}

/// A transaction that is open for jobs.
struct OpenBatch {
    horizon: Horizon,
    /// Whether the transaction contains accepted writes.
    has_writes: bool,
    outcomes: Vec<(QueuedJob, JobOutcome)>,
    /// Whether each job runs under a savepoint.
    savepoints: bool,
    /// Set when SQLite rolled back the whole transaction, as it does on a full disk.
    lost: Option<CommitFailure>,
    _guard: WriterLockGuard,
}

impl WriteConnection {
    /// Runs the queued jobs as one batch, commits, and answers their owners.
    fn lead(&mut self, queue: &JobQueue) {
        let Some(first) = queue.lock().pop_front() else {
            return;
        };
        let mut batch = match self.begin() {
            Ok(batch) => batch,
            Err(error) => {
                first.mailbox.put(JobSignal::Done(JobOutcome::Returned(Err(error))));
                return;
            }
        };
        let mut next = Some(first);
        while let Some(ticket) = next {
            self.run(&mut batch, ticket);
            let room = batch.outcomes.len() < BATCH_JOBS && batch.lost.is_none();
            next = if room { self.next_job(queue, batch.outcomes.len()) } else { None };
        }
        let jobs = batch.outcomes.len();
        let started = Instant::now();
        let committed = match batch.lost {
            Some(failure) => {
                self.rollback();
                Err(failure)
            }
            None => self.commit(batch.has_writes),
        };
        self.last_batch = BatchStats { jobs, commit: started.elapsed() };
        for (QueuedJob { mailbox, .. }, outcome) in batch.outcomes {
            let outcome = match (&committed, outcome) {
                (Err(failure), JobOutcome::Returned(_)) => {
                    JobOutcome::Returned(Err(failure.to_error()))
                }
                (_, outcome) => outcome,
            };
            mailbox.put(JobSignal::Done(outcome));
        }
    }

    /// Returns the next queued job. Callers that the last commit answered need a moment to send the
    /// next job: while the batch is smaller than the last one, this waits for them, at most half as
    /// long as the last commit took.
    fn next_job(&self, queue: &JobQueue, jobs: usize) -> Option<QueuedJob> {
        let started = Instant::now();
        let max_wait = match jobs < self.last_batch.jobs {
            true => (self.last_batch.commit / 2).min(MAX_GATHER_WAIT),
            false => Duration::ZERO,
        };
        loop {
            if let Some(ticket) = queue.lock().pop_front() {
                return Some(ticket);
            }
            if started.elapsed() >= max_wait {
                return None;
            }
            std::thread::yield_now();
        }
    }

    fn begin(&mut self) -> Result<OpenBatch> {
        if let Some(why) = &self.stopped {
            return Err(StoreError::Stopped { why: why.clone() });
        }
        let guard = self.writer_lock.acquire()?;
        self.execute("BEGIN IMMEDIATE")?;
        self.changes = self.connection.total_changes();
        match self.pending_index.catch_up(&self.connection) {
            Ok(horizon) => {
                let (has_writes, outcomes, savepoints, lost) = (false, Vec::new(), false, None);
                Ok(OpenBatch { horizon, has_writes, outcomes, savepoints, lost, _guard: guard })
            }
            Err(error) => {
                self.rollback();
                Err(error)
            }
        }
    }

    /// Runs one job inside the open transaction.
    fn run(&mut self, batch: &mut OpenBatch, mut ticket: QueuedJob) {
        let (savepoint, job) = (batch.savepoints, &mut ticket.job);
        let ran = catch_unwind(AssertUnwindSafe(|| self.run_job(batch.horizon, savepoint, job)));
        let (accepted, outcome) = match ran {
            Ok(Ok(Verdict::Commit)) => (true, JobOutcome::Returned(Ok(()))),
            Ok(Ok(Verdict::Rollback)) => (false, JobOutcome::Returned(Ok(()))),
            Ok(Err(error)) => (false, JobOutcome::Returned(Err(error))),
            Err(payload) => (false, JobOutcome::Panicked(payload)),
        };
        let ended = match &outcome {
            JobOutcome::Returned(Err(error)) if self.connection.is_autocommit() => {
                Err(CommitFailure::from_error(error))
            }
            _ if self.connection.is_autocommit() => {
                Err(CommitFailure::Unknown("the transaction was lost".to_owned()))
            }
            _ => {
                self.end_job(savepoint, accepted).map_err(|error| CommitFailure::from_error(&error))
            }
        };
        batch.has_writes |= accepted;
        batch.outcomes.push((ticket, outcome));
        match ended {
            Ok(JobEnd::Clean) => {}
            Ok(JobEnd::NeedsRollback) => self.restart_with_savepoints(batch),
            Err(failure) => batch.lost = Some(failure),
        }
    }

    fn run_job(&self, horizon: Horizon, savepoint: bool, job: &mut Job) -> Result<Verdict> {
        if savepoint {
            self.execute("SAVEPOINT job")?;
        }
        let view =
            IndexView::new(&self.pending_index, horizon, Some(&self.pending), &self.connection);
        let verdict = job(&mut SqliteTxn::new(&self.connection, view, None))?;
        if verdict == Verdict::Commit {
            self.pending.borrow_mut().accept_job(&self.connection)?;
        }
        Ok(verdict)
    }

    /// Ends the last job: discards its entries, and its writes if there is a savepoint, unless it
    /// was accepted.
    fn end_job(&mut self, savepoint: bool, accepted: bool) -> Result<JobEnd> {
        let changes = self.connection.total_changes();
        let wrote = std::mem::replace(&mut self.changes, changes) != changes;
        if !accepted {
            self.pending.borrow_mut().discard_job();
        }
        if savepoint {
            if !accepted {
                self.execute("ROLLBACK TO job")?;
            }
            self.execute("RELEASE job")?;
        }
        Ok(if accepted || savepoint || !wrote { JobEnd::Clean } else { JobEnd::NeedsRollback })
    }

    /// Rolls back the batch and runs its jobs again, each under a savepoint. No other process writes
    /// in between, since the writer lock is held.
    fn restart_with_savepoints(&mut self, batch: &mut OpenBatch) {
        self.rollback();
        batch.savepoints = true;
        batch.has_writes = false;
        if let Err(error) = self.execute("BEGIN IMMEDIATE") {
            batch.lost = Some(CommitFailure::from_error(&error));
            return;
        }
        self.changes = self.connection.total_changes();
        let mut jobs = std::mem::take(&mut batch.outcomes).into_iter();
        for (ticket, _) in jobs.by_ref() {
            self.run(batch, ticket);
            if batch.lost.is_some() {
                break;
            }
        }
        // The remaining jobs have lost their writes as well.
        batch.outcomes.extend(jobs);
    }

    /// Commits the batch, flushing the pending index if it is large enough.
    fn commit(&mut self, has_writes: bool) -> std::result::Result<(), CommitFailure> {
        if !has_writes {
            self.rollback();
            return Ok(());
        }
        let committed = self.flush_if_due().and_then(|indexed| {
            self.execute("COMMIT")?;
            Ok(indexed)
        });
        match committed {
            Ok(indexed) => {
                let (entries, last) = self.pending.borrow_mut().take();
                self.pending_index.publish(entries, last, indexed);
                Ok(())
            }
            Err(error) => {
                let failure = CommitFailure::from_error(&error);
                if let CommitFailure::Unknown(why) = &failure {
                    // The log may or may not hold the commit: only recovery can tell.
                    self.stopped = Some(why.clone());
                }
                self.rollback();
                Err(failure)
            }
        }
    }

    fn flush_if_due(&self) -> Result<Option<i64>> {
        let pending = self.pending.borrow();
        if self.pending_index.len() + pending.len() < MAX_PENDING_ENTRIES && !pending.must_flush() {
            return Ok(None);
        }
        self.pending_index.flush(&self.connection, pending.entries()).map(Some)
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
        let packed = self.pending_index.flush(&self.connection, self.pending.borrow().entries());
        let packed = packed.and_then(|indexed| {
            // Pending entries refer to rows that packing moves, so they are flushed first.
            let view = IndexView::new(&self.pending_index, batch.horizon, None, &self.connection);
            let packed = SqliteTxn::new(&self.connection, view, None).pack_batch(options, from)?;
            self.execute("COMMIT")?;
            self.pending_index.publish(LookupEntries::default(), indexed, Some(indexed));
            Ok(packed)
        });
        if packed.is_err() {
            self.rollback();
        }
        packed
    }

    fn exclusively(&mut self, body: &mut dyn FnMut(&Connection) -> Result<()>) -> Result<()> {
        let _guard = self.writer_lock.acquire()?;
        body(&self.connection)
    }

    fn execute(&self, sql: &str) -> Result<()> {
        execute(&self.connection, sql, []).map(drop)
    }
}

/// Why a commit failed, for every caller in the batch.
#[derive(Clone, Debug)]
enum CommitFailure {
    DiskFull,
    Unknown(String),
}

impl CommitFailure {
    fn from_error(error: &StoreError) -> Self {
        match error {
            StoreError::DiskFull => CommitFailure::DiskFull,
            other => CommitFailure::Unknown(other.to_string()),
        }
    }

    fn to_error(&self) -> StoreError {
        match self {
            CommitFailure::DiskFull => StoreError::DiskFull,
            CommitFailure::Unknown(why) => StoreError::Stopped { why: why.clone() },
        }
    }
}
