//! One writer, shared syncs.
//!
//! Every caller runs its own closure on the one writing connection, one after the other, inside
//! a common transaction. Who finds nobody waiting behind it commits for all, with one sync, and
//! wakes the others. A lone writer therefore pays one sync and no hand-over; eight concurrent
//! ones share theirs.
//!
//! Nobody is answered before the commit, not even those whose closure asked for a rollback: what
//! they saw may come from a neighbour in the same batch.

use std::cell::RefCell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode};

use super::recent::{ENTRIES, Horizon, Pending, Recent, View};
use super::turnstile::{Pass, Turnstile};
use crate::traits::Verdict;
use crate::{Result, StoreError};

/// Writers in one batch at most: bounds the work that one failed commit throws away, and lets
/// other processes in.
const BATCH_MEMBERS: usize = 256;

/// The longest that a batch waits for those who were in the last one.
const LONGEST_GATHERING: Duration = Duration::from_millis(1);

#[derive(Debug)]
pub(super) struct Writer {
    core: Mutex<Core>,
    waiting: AtomicUsize,
}

#[derive(Debug)]
struct Core {
    connection: Connection,
    turnstile: Turnstile,
    recent: Arc<Recent>,
    pending: RefCell<Pending>,
    batch: Option<Batch>,
    habit: Habit,
    stopped: Option<String>,
}

/// How the last batch went.
#[derive(Debug, Default)]
struct Habit {
    members: usize,
    commit: Duration,
}

#[derive(Debug)]
struct Batch {
    members: usize,
    horizon: Horizon,
    outcome: Arc<Outcome>,
    _pass: Pass,
}

/// How a batch ended, for those who left it to somebody else to commit.
#[derive(Debug, Default)]
struct Outcome {
    ended: Mutex<Option<std::result::Result<(), Failure>>>,
    told: Condvar,
}

#[derive(Clone, Debug)]
enum Failure {
    DiskFull,
    Unknown(String),
}

impl From<Failure> for StoreError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::DiskFull => StoreError::DiskFull,
            Failure::Unknown(why) => StoreError::Stopped { why },
        }
    }
}

/// What a caller does inside the common transaction.
type Body<'a> = &'a mut dyn FnMut(&Connection, View<'_>) -> Result<Verdict>;

impl Writer {
    pub(super) fn new(connection: Connection, turnstile: Turnstile, recent: Arc<Recent>) -> Self {
        let core = Core {
            connection,
            turnstile,
            recent,
            pending: RefCell::default(),
            batch: None,
            habit: Habit::default(),
            stopped: None,
        };
        Writer { core: Mutex::new(core), waiting: AtomicUsize::new(0) }
    }

    /// Runs a closure in a transaction; when this returns `Ok`, what it committed is on disk.
    pub(super) fn write(&self, body: Body<'_>) -> Result<()> {
        let mut core = self.enter();
        if let Some(why) = &core.stopped {
            return Err(StoreError::Stopped { why: why.clone() });
        }
        let answer = core.run(body);
        let Some(batch) = &core.batch else {
            return answer;
        };
        let room = batch.members < BATCH_MEMBERS;
        if room && self.somebody_comes(batch.members, &core.habit) {
            // Somebody has announced itself and will pass through here: it, or one behind it,
            // commits.
            let outcome = Arc::clone(&batch.outcome);
            drop(core);
            outcome.wait()?;
        } else {
            core.commit()?;
        }
        answer
    }

    /// Whether somebody waits to join the batch. Those who were woken by the last commit need a
    /// moment to come back: as long as fewer have joined than last time, they are waited for, at
    /// most half as long as a commit takes.
    fn somebody_comes(&self, members: usize, habit: &Habit) -> bool {
        let waits = || self.waiting.load(Ordering::SeqCst) > 0;
        if members >= habit.members {
            return waits();
        }
        let started = Instant::now();
        let patience = (habit.commit / 2).min(LONGEST_GATHERING);
        while !waits() {
            if started.elapsed() >= patience {
                return false;
            }
            std::thread::yield_now();
        }
        true
    }

    /// Runs something that cannot be part of a transaction while nobody writes.
    pub(super) fn exclusively(
        &self,
        body: &mut dyn FnMut(&Connection) -> Result<()>,
    ) -> Result<()> {
        let mut core = self.enter();
        if core.batch.is_some() {
            core.commit()?;
        }
        let core = &mut *core;
        let _pass = core.turnstile.enter()?;
        body(&core.connection)
    }

    fn enter(&self) -> MutexGuard<'_, Core> {
        self.waiting.fetch_add(1, Ordering::SeqCst);
        // A panic in a closure ends its batch on the way out (see `Unwinding`), so the state
        // behind a poisoned lock is whole.
        let core = self.core.lock().unwrap_or_else(PoisonError::into_inner);
        self.waiting.fetch_sub(1, Ordering::SeqCst);
        core
    }
}

impl Core {
    /// Joins the open batch, or opens one, and runs the closure in it. Leaves `batch` empty when
    /// there is nothing to commit.
    fn run(&mut self, body: Body<'_>) -> Result<()> {
        let first = self.batch.is_none();
        if first {
            let pass = self.turnstile.enter()?;
            self.execute("BEGIN IMMEDIATE")?;
            let horizon = match self.recent.catch_up(&self.connection) {
                Ok(horizon) => horizon,
                Err(error) => {
                    self.abandon(Ok(()));
                    return Err(error);
                }
            };
            self.batch = Some(Batch { members: 0, horizon, outcome: Arc::default(), _pass: pass });
        } else {
            self.execute("SAVEPOINT member")?;
        }
        let verdict = {
            let guarded = Unwinding(self);
            let core = &*guarded.0;
            let horizon = core.batch.as_ref().map_or_else(Horizon::default, |batch| batch.horizon);
            let view = View::new(&core.recent, horizon, Some(&core.pending), &core.connection);
            body(&core.connection, view)
        };
        let verdict = match verdict {
            Ok(Verdict::Commit) => {
                self.pending.borrow_mut().keep_member(&self.connection).map(|()| Verdict::Commit)
            }
            other => {
                self.pending.borrow_mut().drop_member();
                other
            }
        };
        match (first, &verdict) {
            (true, Ok(Verdict::Commit)) => {}
            (true, _) => {
                self.abandon(Ok(()));
                return verdict.map(|_| ());
            }
            (false, Ok(Verdict::Commit)) => self.execute("RELEASE member")?,
            (false, _) => {
                self.execute("ROLLBACK TO member")?;
                self.execute("RELEASE member")?;
            }
        }
        if let Some(batch) = &mut self.batch {
            batch.members += 1;
        }
        verdict.map(|_| ())
    }

    fn commit(&mut self) -> Result<()> {
        let started = Instant::now();
        let committed = self.index_if_due().and_then(|indexed| {
            self.execute("COMMIT")?;
            Ok(indexed)
        });
        match committed {
            Ok(indexed) => {
                let (entries, last) = self.pending.borrow_mut().take();
                self.recent.publish(entries, last, indexed);
                let members = self.batch.as_ref().map_or(0, |batch| batch.members);
                self.habit = Habit { members, commit: started.elapsed() };
                self.close(Ok(()));
                Ok(())
            }
            Err(error) => {
                let failure = match &error {
                    StoreError::DiskFull => Failure::DiskFull,
                    other => Failure::Unknown(other.to_string()),
                };
                if let Failure::Unknown(why) = &failure {
                    // The log may or may not hold the commit: only a recovery can tell.
                    self.stopped = Some(why.clone());
                }
                self.abandon(Err(failure));
                Err(error)
            }
        }
    }

    /// Moves the look-up tables forward when enough has come together.
    fn index_if_due(&self) -> Result<Option<i64>> {
        let pending = self.pending.borrow();
        if self.recent.len() + pending.len() < ENTRIES {
            return Ok(None);
        }
        self.recent.write_all(&self.connection, pending.entries()).map(Some)
    }

    /// Takes back everything in the open transaction and tells the batch's members.
    fn abandon(&mut self, ended: std::result::Result<(), Failure>) {
        if !self.connection.is_autocommit()
            && let Err(error) = self.execute("ROLLBACK")
        {
            self.stopped = Some(error.to_string());
        }
        self.pending.borrow_mut().take();
        self.close(ended);
    }

    fn close(&mut self, ended: std::result::Result<(), Failure>) {
        if let Some(batch) = self.batch.take() {
            batch.outcome.tell(ended);
        }
    }

    fn execute(&self, sql: &str) -> Result<()> {
        let done =
            self.connection.prepare_cached(sql).and_then(|mut statement| statement.execute([]));
        match done {
            Ok(_) => Ok(()),
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::DiskFull) => {
                Err(StoreError::DiskFull)
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// Ends the batch when a closure panics, so that nobody waits for it for ever.
struct Unwinding<'a>(&'a mut Core);

impl Drop for Unwinding<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let why = "a writer in the same batch panicked".to_owned();
            self.0.abandon(Err(Failure::Unknown(why)));
        }
    }
}

impl Outcome {
    fn tell(&self, ended: std::result::Result<(), Failure>) {
        *self.ended.lock().unwrap_or_else(PoisonError::into_inner) = Some(ended);
        self.told.notify_all();
    }

    fn wait(&self) -> Result<()> {
        let mut ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(ended) = &*ended {
                return ended.clone().map_err(StoreError::from);
            }
            ended = self.told.wait(ended).unwrap_or_else(PoisonError::into_inner);
        }
    }
}
