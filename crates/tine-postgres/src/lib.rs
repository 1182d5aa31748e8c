//! A store on PostgreSQL, for when one machine is not enough.
//!
//! Any number of servers work on one database at once and keep no state of their own: everything
//! they cache is checked by the database when they write.
//!
//! - **The project leads every key** ([`schema`](crate::schema)), so that data can be distributed
//!   by it and one call touches one partition. Handles carry their project in their upper bits;
//!   numbers of conversations and segments are allocated per project, in blocks.
//! - **A write is a job that may run again.** It runs in a SERIALIZABLE transaction ([`txn`]), or,
//!   if it is a plain append to a cached conversation ([`conversation_cache`], [`fast_path`]), over
//!   the cache and in one round trip, together with others ([`batch`]). Either way it adds an
//!   operation to a log, and the operation's number must be free: this compare-and-set proves that
//!   what the job has read is still current. A job that loses runs again over the new state.
//! - **A commit without an answer** is looked up by the hash of its operation before anything is
//!   repeated, and counts only when a later commit was confirmed: so a call is stored once, with or
//!   without an idempotency key.
//! - **The feed** is numbered after the commits, by its readers: no transaction waits for another
//!   to get a number, and none that commits late is missed.
//! - **Searches** use an index of terms that follows the feed ([`search`]).
//!
//! There are no sequences, advisory locks or notifications.

mod address;
mod append_command;
mod batch;
mod connection;
mod conversation_cache;
mod failure;
mod fast_path;
mod pool;
mod project_cache;
mod rows;
mod schema;
mod search;
mod tls;
mod txn;

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tine_net::retry::{Policy, Retries};
use tine_store::{
    DamagedRecord, FeedPosition, Index, IndexState, Job, OpenMode, PackOptions, Packed, Ranked,
    Read, Result, SearchFilter, Store, StoreCheck, StoreError, TextQuery, TurnLoc, Verdict,
};

pub use crate::address::PostgresAddress;
pub use crate::schema::Migration;

use crate::batch::AppendQueues;
use crate::connection::{PgConnection, SqlCommand, values};
use crate::conversation_cache::ConversationCache;
use crate::failure::{DatabaseFailure, DatabaseResult};
use crate::pool::Pool;
use crate::project_cache::ProjectCache;
use crate::txn::{CommitWitness, PostgresTxn, TxnAccess, TxnEnd};

/// How long an answer to a write may take before its connection is closed.
pub(crate) const WRITE_DEADLINE: Duration = Duration::from_secs(10);

/// The same for reads.
pub(crate) const READ_DEADLINE: Duration = Duration::from_secs(60);

/// How long maintenance may take.
const MAINTENANCE_DEADLINE: Duration = Duration::from_secs(6 * 3_600);

/// Retries while the database is unreachable.
const UNREACHABLE_RETRIES: Policy = Policy {
    first_pause: Duration::from_millis(50),
    longest_pause: Duration::from_millis(400),
    max_retries: u32::MAX,
    deadline: Duration::from_secs(5),
};

/// Retries after conflicts with other writers.
const CONFLICT_RETRIES: Policy = Policy {
    first_pause: Duration::from_millis(2),
    longest_pause: Duration::from_millis(16),
    max_retries: u32::MAX,
    deadline: Duration::from_secs(30),
};

/// Connections in addition to the configured ones: for block numbers, the feed, and commits in
/// doubt.
const AUXILIARY_CONNECTIONS: usize = 3;

/// The state that the operations of a store share.
pub(crate) struct StoreContext {
    pub pool: Pool,
    pub projects: ProjectCache,
    pub cache: ConversationCache,
    pub append_queues: AppendQueues,
    /// Connections for work outside transactions, so that it does not wait for a connection that
    /// its own caller holds.
    auxiliary_pool: Pool,
    /// Held while the feed is numbered, so that waiting readers find it done.
    feed_lock: Mutex<()>,
    /// Held while the search index is updated, so that waiting callers do not hold connections.
    index_lock: Mutex<()>,
    /// Held by a write that repeats after a conflict, so that writers of this process do not
    /// conflict again.
    retry_lock: Mutex<()>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl StoreContext {
    /// Allocates the next block of a project's numbers.
    pub(crate) fn next_block(&self, project: i32) -> DatabaseResult<i64> {
        self.auxiliary_pool.run(|connection| {
            let sql = "UPDATE counter SET blocks = blocks + 1 WHERE project = $1 RETURNING blocks";
            let rows =
                connection.exchange(WRITE_DEADLINE, &[SqlCommand::new(sql, values![project])])?;
            let missing = || DatabaseFailure::Contract(format!("project {project} has no counter"));
            Ok(rows.first().ok_or_else(missing)?.get(0))
        })
    }

    /// Numbers the committed operations that have no place in the feed yet.
    pub(crate) fn number_feed(&self) -> DatabaseResult<()> {
        let _guard = lock(&self.feed_lock);
        self.auxiliary_pool.run(|connection| {
            let sql = "SELECT CASE WHEN EXISTS (SELECT FROM unfed) THEN number_feed() END";
            connection.exchange(WRITE_DEADLINE, &[SqlCommand::new(sql, vec![])]).map(drop)
        })
    }

    /// Waits until every commit so far is confirmed by the standby servers.
    fn confirm(&self) -> DatabaseResult<()> {
        self.auxiliary_pool.run(|connection| {
            let sql = "UPDATE confirmed SET at = now()";
            connection.exchange(WRITE_DEADLINE, &[SqlCommand::new(sql, vec![])])?;
            match connection.was_warned() {
                true => Err(DatabaseFailure::Unreachable("no standby confirms commits".to_owned())),
                false => Ok(()),
            }
        })
    }
}

/// A store in a PostgreSQL database.
pub struct PostgresStore {
    context: StoreContext,
}

impl std::fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("PostgresStore").field(&self.context.pool.address().to_string()).finish()
    }
}

/// Returns `InDoubt` instead of an error if the call may have been stored before.
fn or_in_doubt(doubt: Option<CommitWitness>, error: StoreError) -> StoreError {
    match doubt {
        Some(_) => StoreError::InDoubt { why: error.to_string() },
        None => error,
    }
}

/// How an attempt to write ended.
enum WriteAttempt {
    Done(Result<()>),
    Failed(DatabaseFailure),
    InDoubt(Option<CommitWitness>, String),
}

impl PostgresStore {
    /// Opens the store at an address, migrating tables of an older format. `mode` says whether
    /// missing tables are created.
    pub fn open(address: &PostgresAddress, mode: OpenMode) -> Result<Self> {
        let mut connection = PgConnection::connect(address)?;
        schema::prepare(&mut connection, address, mode)?;
        let context = StoreContext {
            pool: Pool::new(address.clone(), address.connections()),
            auxiliary_pool: Pool::new(address.clone(), AUXILIARY_CONNECTIONS)
                .with_connection(connection),
            feed_lock: Mutex::default(),
            projects: ProjectCache::default(),
            cache: ConversationCache::default(),
            append_queues: AppendQueues::default(),
            index_lock: Mutex::default(),
            retry_lock: Mutex::default(),
        };
        Ok(PostgresStore { context })
    }

    /// Returns the migration that opening the store would run.
    pub fn pending_migration(address: &PostgresAddress) -> Result<Migration> {
        let mut connection = PgConnection::connect(address)?;
        schema::pending_migration(&mut connection, address)
    }

    fn attempt(&self, job: &mut Job, doubt: Option<CommitWitness>) -> WriteAttempt {
        let mut txn = PostgresTxn::new(&self.context, TxnAccess::Write);
        if let Some(witness) = doubt {
            match txn.operation(witness.conversation, witness.seq) {
                Ok(Some(stored)) if stored.hash == witness.hash => {
                    txn.rollback();
                    return match self.context.confirm() {
                        Ok(()) => WriteAttempt::Done(Ok(())),
                        Err(failure) => {
                            WriteAttempt::InDoubt(doubt, failure.to_store_error().to_string())
                        }
                    };
                }
                Ok(_) => {}
                // While it is unknown whether it was stored, nothing is repeated: the caller may
                // already rely on the first attempt.
                Err(error) => {
                    let failure = txn.take_failure();
                    let unknown = || DatabaseFailure::Unreachable(error.to_string());
                    return WriteAttempt::Failed(failure.unwrap_or_else(unknown));
                }
            }
        }
        let verdict = job(&mut txn);
        if let Some(failure) = txn.take_failure() {
            match &failure {
                DatabaseFailure::Unreachable(_) => drop(txn),
                _ => txn.rollback(),
            }
            return WriteAttempt::Failed(failure);
        }
        match verdict {
            Err(error) => {
                txn.rollback();
                WriteAttempt::Done(Err(error))
            }
            Ok(Verdict::Rollback) => {
                txn.rollback();
                WriteAttempt::Done(Ok(()))
            }
            Ok(Verdict::Commit) => match self.commit(&txn) {
                TxnEnd::Committed => {
                    for (id, no) in txn.new_projects() {
                        self.context.projects.insert(&id, no);
                    }
                    WriteAttempt::Done(Ok(()))
                }
                TxnEnd::Failed(failure) => WriteAttempt::Failed(failure),
                TxnEnd::InDoubt(why) => WriteAttempt::InDoubt(txn.witness(), why),
            },
        }
    }

    /// Commits, and drops changed conversations from the cache.
    fn commit(&self, txn: &PostgresTxn<'_>) -> TxnEnd {
        let ended = txn.commit();
        for conversation in txn.changed() {
            self.context.cache.invalidate(conversation);
        }
        ended
    }

    /// Runs a job until it is stored or rejected, or the retries are used up. `doubt` is a commit
    /// whose outcome is unknown; `unreachable` are retries that already began.
    fn write_with_retries(
        &self,
        job: &mut Job,
        mut doubt: Option<CommitWitness>,
        mut unreachable: Option<Retries>,
    ) -> Result<()> {
        let started = Instant::now();
        let mut conflicts = CONFLICT_RETRIES.start();
        let mut retry_guard: Option<MutexGuard<'_, ()>> = None;
        loop {
            let (why, is_unreachable) = match self.attempt(job, doubt) {
                WriteAttempt::Done(done) => return done,
                WriteAttempt::Failed(DatabaseFailure::Conflict(why)) => (why, false),
                WriteAttempt::Failed(DatabaseFailure::Unreachable(why)) => (why, true),
                WriteAttempt::Failed(failure) => {
                    return Err(or_in_doubt(doubt, failure.into()));
                }
                WriteAttempt::InDoubt(Some(witness), why) => {
                    doubt = Some(witness);
                    (why, true)
                }
                // Without an operation the commit cannot be looked up; the caller may repeat it.
                WriteAttempt::InDoubt(None, why) => return Err(StoreError::InDoubt { why }),
            };
            tracing::debug!("a write runs again: {why}");
            if is_unreachable {
                self.context.pool.invalidate();
                let Some(pause) =
                    unreachable.get_or_insert_with(|| UNREACHABLE_RETRIES.start()).next_pause(None)
                else {
                    return Err(or_in_doubt(doubt, StoreError::Unreachable { why }));
                };
                // A write that waits for the database must not block others.
                retry_guard = None;
                std::thread::sleep(pause);
            } else {
                unreachable = None;
                let Some(pause) = conflicts.next_pause(None) else {
                    let waited_ms =
                        u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
                    return Err(or_in_doubt(doubt, StoreError::Busy { waited_ms }));
                };
                match retry_guard {
                    None => retry_guard = Some(lock(&self.context.retry_lock)),
                    // The conflicting writers are in other processes.
                    Some(_) => std::thread::sleep(pause),
                }
            }
        }
    }

    /// Runs a closure in a read transaction, retrying while the database is unreachable.
    fn read_with_retries(
        &self,
        body: &mut dyn FnMut(&PostgresTxn<'_>) -> Result<()>,
    ) -> Result<()> {
        let mut retries = UNREACHABLE_RETRIES.start();
        loop {
            let txn = PostgresTxn::new(&self.context, TxnAccess::Read);
            let answer = body(&txn);
            match txn.take_failure() {
                None => {
                    txn.finish_read();
                    return answer;
                }
                Some(DatabaseFailure::Unreachable(why)) => {
                    // A closure that has read something may have passed it on.
                    let can_retry = !txn.has_read();
                    drop(txn);
                    self.context.pool.invalidate();
                    match retries.next_pause(None).filter(|_| can_retry) {
                        Some(pause) => std::thread::sleep(pause),
                        None => return Err(StoreError::Unreachable { why }),
                    }
                }
                Some(failure) => {
                    txn.rollback();
                    return Err(failure.into());
                }
            }
        }
    }

    fn run_maintenance(&self, sql: &str) -> Result<()> {
        let done = PgConnection::connect(self.context.pool.address())
            .and_then(|mut connection| connection.execute_script(MAINTENANCE_DEADLINE, sql));
        Ok(done?)
    }
}

impl Store for PostgresStore {
    fn read(&self, body: &mut dyn FnMut(&dyn Read) -> Result<()>) -> Result<()> {
        self.read_with_retries(&mut |txn| body(txn))
    }

    fn write(&self, mut job: Job) -> Result<()> {
        let unreachable = UNREACHABLE_RETRIES.start();
        match fast_path::attempt(&self.context, &mut job) {
            fast_path::FastPathOutcome::Committed => Ok(()),
            fast_path::FastPathOutcome::NotApplicable => {
                self.write_with_retries(&mut job, None, None)
            }
            fast_path::FastPathOutcome::Unreachable => {
                self.write_with_retries(&mut job, None, Some(unreachable))
            }
            fast_path::FastPathOutcome::InDoubt(witness) => {
                self.context.pool.invalidate();
                self.write_with_retries(&mut job, Some(witness), None)
            }
        }
    }

    fn check(&self) -> Result<StoreCheck> {
        let mut problems = Vec::new();
        self.read_with_retries(&mut |txn| {
            problems = txn.missing_from_feed()?;
            Ok(())
        })?;
        let problem = |(conversation, seq): (i64, i64)| DamagedRecord {
            record: format!("operation {seq} of conversation {conversation}"),
            why: "it has no place in the feed".to_owned(),
        };
        Ok(StoreCheck { problems: problems.into_iter().map(problem).collect() })
    }

    fn pack(&self, _: PackOptions) -> Result<Packed> {
        // PostgreSQL compresses large values itself.
        Ok(Packed::default())
    }

    fn scrub(&self) -> Result<()> {
        self.context.pool.clear();
        self.run_maintenance(
            "VACUUM turn, body, conversation, operation, record, record_index, piece, said",
        )
    }

    fn backup(&self, _: &Path) -> Result<()> {
        Err(StoreError::Unsupported(
            "a database is backed up with its own tools, `pg_basebackup` or `pg_dump`",
        ))
    }

    fn index_state(&self) -> Result<IndexState> {
        search::state(&self.context)
    }

    fn index(&self, body: &mut dyn FnMut(&mut dyn Index) -> Result<()>) -> Result<()> {
        search::index(&self.context, body)
    }

    fn unindex(&self, turns: &[TurnLoc]) -> Result<()> {
        search::index(&self.context, &mut |index| {
            turns.iter().try_for_each(|it| index.erase(*it))
        })?;
        self.run_maintenance("VACUUM said")
    }

    fn search(
        &self,
        query: &TextQuery,
        filter: &SearchFilter,
        through: FeedPosition,
    ) -> Result<Option<Ranked>> {
        let mut found = None;
        self.read_with_retries(&mut |txn| {
            found = search::search(txn, query, filter, through)?;
            Ok(())
        })?;
        Ok(found)
    }
}
