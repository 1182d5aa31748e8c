//! Tine's records in PostgreSQL, for when one machine is not enough.
//!
//! Any number of servers work on one database at once and keep nothing of their own: all that
//! they remember is checked by the database itself when they write.
//!
//! - **The project leads every key** ([`schema`](crate::schema)), so that data can be distributed
//!   by it and one call touches one part. Handles carry their project in their upper bits; numbers
//!   of conversations and segments come from a row of the project, in blocks.
//! - **A write is a closure that may run again.** It runs in a SERIALIZABLE transaction ([`txn`]),
//!   or, if it is a plain append to a cached conversation ([`conversation_cache`], [`fast_path`]),
//!   over the cache and in one round trip, together with others ([`batch`]). Either way it adds an
//!   operation to a log, and the operation's number must be free: that is the compare-and-set which
//!   makes everything true that the closure has read. A write that loses runs again over the new
//!   state.
//! - **A commit without an answer** is looked for by the hash of its operation before anything is
//!   done again, and counts only when a later commit was confirmed: so a call is stored once, with
//!   or without a key.
//! - **The feed** is numbered behind the commits, by whoever reads it: no transaction waits for
//!   another to get a number, and none that commits late is passed over.
//! - **Searching** goes by an index of terms that follows the feed ([`search`]).
//!
//! There is no sequence, no advisory lock and no notification in here.

mod address;
mod batch;
mod columns;
mod conversation_cache;
mod failure;
mod fast_path;
mod link;
mod pool;
mod projects;
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
    Check, DamagedRecord, FeedPosition, Index, IndexState, Job, OpenMode, PackOptions, Packed,
    Ranked, Read, Result, SearchFilter, Store, StoreError, TextQuery, TurnLoc, Verdict,
};

pub use crate::address::Address;
pub use crate::schema::Migration;

use crate::batch::Batches;
use crate::conversation_cache::ConversationCache;
use crate::failure::Failure;
use crate::link::{Command, Link, values};
use crate::pool::Pool;
use crate::projects::Projects;
use crate::txn::{Access, Ended, Txn, Witness};

/// How long an answer to a write may take before its connection is given up.
pub(crate) const WRITE_DEADLINE: Duration = Duration::from_secs(10);

/// The same for what only reads.
pub(crate) const READ_DEADLINE: Duration = Duration::from_secs(60);

/// How long upkeep may take.
const UPKEEP_DEADLINE: Duration = Duration::from_secs(6 * 3_600);

/// Retries while the database is away, before the caller is asked to come again.
const AWAY: Policy = Policy {
    first_pause: Duration::from_millis(50),
    longest_pause: Duration::from_millis(400),
    max_retries: u32::MAX,
    deadline: Duration::from_secs(5),
};

/// Retries while others are quicker.
const CONFLICT: Policy = Policy {
    first_pause: Duration::from_millis(2),
    longest_pause: Duration::from_millis(16),
    max_retries: u32::MAX,
    deadline: Duration::from_secs(30),
};

/// Connections beside those that are asked for: for numbers, the feed, and what is in doubt.
const ASIDE: usize = 3;

/// What a store holds besides its database.
pub(crate) struct Shared {
    pub pool: Pool,
    pub projects: Projects,
    pub cache: ConversationCache,
    pub batches: Batches,
    /// Connections for what is done beside transactions, perhaps by somebody who holds one of the
    /// others.
    aside: Pool,
    /// Held by whoever numbers the feed: the others find it done.
    numbering: Mutex<()>,
    /// Held by whoever brings the index forward, so that the others do not hold connections while
    /// they wait for their turn.
    indexing: Mutex<()>,
    /// Held by whoever has lost a race and runs again, so that those who race here take turns.
    again: Mutex<()>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    /// The next block of a project's numbers.
    pub(crate) fn next_block(&self, project: i32) -> std::result::Result<i64, Failure> {
        self.aside.run(|link| {
            let sql = "UPDATE counter SET blocks = blocks + 1 WHERE project = $1 RETURNING blocks";
            let rows = link.exchange(WRITE_DEADLINE, &[Command::new(sql, values![project])])?;
            let missing = || Failure::Contract(format!("project {project} has no counter"));
            Ok(rows.first().ok_or_else(missing)?.get(0))
        })
    }

    /// Gives numbers to operations that are committed and have none.
    pub(crate) fn number_feed(&self) -> std::result::Result<(), Failure> {
        let _turn = lock(&self.numbering);
        self.aside.run(|link| {
            let sql = "SELECT CASE WHEN EXISTS (SELECT FROM unfed) THEN number_feed() END";
            link.exchange(WRITE_DEADLINE, &[Command::new(sql, vec![])]).map(drop)
        })
    }

    /// Waits until everything that was committed so far is where it cannot be lost.
    fn confirm(&self) -> std::result::Result<(), Failure> {
        self.aside.run(|link| {
            let sql = "UPDATE confirmed SET at = now()";
            link.exchange(WRITE_DEADLINE, &[Command::new(sql, vec![])])?;
            match link.was_warned() {
                true => Err(Failure::Away("no standby confirms commits".to_owned())),
                false => Ok(()),
            }
        })
    }
}

/// A store in a PostgreSQL database.
pub struct PostgresStore {
    shared: Shared,
}

impl std::fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("PostgresStore").field(&self.shared.pool.address().to_string()).finish()
    }
}

/// What a caller is told whose call may have been stored before this happened.
fn of(doubt: Option<Witness>, error: StoreError) -> StoreError {
    match doubt {
        Some(_) => StoreError::InDoubt { why: error.to_string() },
        None => error,
    }
}

/// How an attempt to write ended.
enum Attempt {
    Done(Result<()>),
    Failed(Failure),
    InDoubt(Option<Witness>, String),
}

impl PostgresStore {
    /// Opens the store at an address. Tables that are missing or of an older format are made or
    /// changed first; where there are none, `mode` says what to do.
    pub fn open(address: &Address, mode: OpenMode) -> Result<Self> {
        let mut link = Link::connect(address).map_err(|failure| failure.told())?;
        schema::prepare(&mut link, address, mode)?;
        let shared = Shared {
            pool: Pool::new(address.clone(), address.connections()),
            aside: Pool::new(address.clone(), ASIDE).holding(link),
            numbering: Mutex::default(),
            projects: Projects::default(),
            cache: ConversationCache::default(),
            batches: Batches::default(),
            indexing: Mutex::default(),
            again: Mutex::default(),
        };
        Ok(PostgresStore { shared })
    }

    /// What opening the store would change.
    pub fn pending(address: &Address) -> Result<Migration> {
        let mut link = Link::connect(address).map_err(|failure| failure.told())?;
        schema::look(&mut link, address)
    }

    fn attempt(&self, job: &mut Job, doubt: Option<Witness>) -> Attempt {
        let mut txn = Txn::new(&self.shared, Access::Write);
        if let Some(witness) = doubt {
            match txn.operation(witness.conversation, witness.seq) {
                Ok(Some(there)) if there.hash == witness.hash => {
                    txn.roll_back();
                    return match self.shared.confirm() {
                        Ok(()) => Attempt::Done(Ok(())),
                        Err(failure) => Attempt::InDoubt(doubt, failure.told().to_string()),
                    };
                }
                Ok(_) => {}
                // As long as nobody can say whether it is there, nothing is done again: the
                // caller has the answer of the first time.
                Err(error) => {
                    let failure = txn.take_failure();
                    let unknown = || Failure::Away(error.to_string());
                    return Attempt::Failed(failure.unwrap_or_else(unknown));
                }
            }
        }
        let verdict = job(&mut txn);
        if let Some(failure) = txn.take_failure() {
            match &failure {
                Failure::Away(_) => drop(txn),
                _ => txn.roll_back(),
            }
            return Attempt::Failed(failure);
        }
        match verdict {
            Err(error) => {
                txn.roll_back();
                Attempt::Done(Err(error))
            }
            Ok(Verdict::Rollback) => {
                txn.roll_back();
                Attempt::Done(Ok(()))
            }
            Ok(Verdict::Commit) => match self.end(&txn) {
                Ended::Committed => {
                    for (id, no) in txn.made_projects() {
                        self.shared.projects.learn(&id, no);
                    }
                    Attempt::Done(Ok(()))
                }
                Ended::Failed(failure) => Attempt::Failed(failure),
                Ended::InDoubt(why) => Attempt::InDoubt(txn.witness(), why),
            },
        }
    }

    /// Commits, and forgets what may have changed.
    fn end(&self, txn: &Txn<'_>) -> Ended {
        let ended = txn.commit();
        for conversation in txn.changed() {
            self.shared.cache.forget(conversation);
        }
        ended
    }

    /// Runs a job until it is stored, refused, or there is no use in going on: the database may
    /// have been away before.
    fn persist(
        &self,
        job: &mut Job,
        mut doubt: Option<Witness>,
        mut away: Option<Retries>,
    ) -> Result<()> {
        let began = Instant::now();
        let mut conflicts = CONFLICT.start();
        let mut turn: Option<MutexGuard<'_, ()>> = None;
        loop {
            let (why, is_away) = match self.attempt(job, doubt) {
                Attempt::Done(done) => return done,
                Attempt::Failed(Failure::Conflict(why)) => (why, false),
                Attempt::Failed(Failure::Away(why)) => (why, true),
                Attempt::Failed(failure) => return Err(of(doubt, failure.told())),
                Attempt::InDoubt(Some(witness), why) => {
                    doubt = Some(witness);
                    (why, true)
                }
                // What is no operation's is not looked for; what it did can be done again.
                Attempt::InDoubt(None, why) => return Err(StoreError::InDoubt { why }),
            };
            tracing::debug!("a write runs again: {why}");
            if is_away {
                self.shared.pool.note_loss();
                let Some(pause) = away.get_or_insert_with(|| AWAY.start()).next_pause(None) else {
                    return Err(of(doubt, StoreError::Unreachable { why }));
                };
                // A write that waits for the database holds up no other.
                turn = None;
                std::thread::sleep(pause);
            } else {
                away = None;
                let Some(pause) = conflicts.next_pause(None) else {
                    let waited_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
                    return Err(of(doubt, StoreError::Busy { waited_ms }));
                };
                match turn {
                    None => turn = Some(lock(&self.shared.again)),
                    // The other writers are in other processes.
                    Some(_) => std::thread::sleep(pause),
                }
            }
        }
    }

    /// Reads until the database answers, or for as long as it is worth waiting.
    fn look(&self, body: &mut dyn FnMut(&Txn<'_>) -> Result<()>) -> Result<()> {
        let mut retries = AWAY.start();
        loop {
            let txn = Txn::new(&self.shared, Access::Read);
            let answer = body(&txn);
            match txn.take_failure() {
                None => {
                    txn.leave();
                    return answer;
                }
                Some(Failure::Away(why)) => {
                    // A closure that has seen something may have passed it on.
                    let again = !txn.was_answered();
                    drop(txn);
                    self.shared.pool.note_loss();
                    match retries.next_pause(None).filter(|_| again) {
                        Some(pause) => std::thread::sleep(pause),
                        None => return Err(StoreError::Unreachable { why }),
                    }
                }
                Some(failure) => {
                    txn.roll_back();
                    return Err(failure.told());
                }
            }
        }
    }

    fn upkeep(&self, sql: &str) -> Result<()> {
        let done = Link::connect(self.shared.pool.address())
            .and_then(|mut link| link.batch(UPKEEP_DEADLINE, sql));
        done.map_err(|failure| failure.told())
    }
}

impl Store for PostgresStore {
    fn read(&self, body: &mut dyn FnMut(&dyn Read) -> Result<()>) -> Result<()> {
        self.look(&mut |txn| body(txn))
    }

    fn write(&self, mut job: Job) -> Result<()> {
        let away = AWAY.start();
        match fast_path::attempt(&self.shared, &mut job) {
            fast_path::Outcome::Committed => Ok(()),
            fast_path::Outcome::Elsewhere => self.persist(&mut job, None, None),
            fast_path::Outcome::Away => self.persist(&mut job, None, Some(away)),
            fast_path::Outcome::InDoubt(witness) => {
                self.shared.pool.note_loss();
                self.persist(&mut job, Some(witness), None)
            }
        }
    }

    fn check(&self) -> Result<Check> {
        let mut problems = Vec::new();
        self.look(&mut |txn| {
            problems = txn.lost_from_feed()?;
            Ok(())
        })?;
        let told = |(conversation, seq): (i64, i64)| DamagedRecord {
            record: format!("operation {seq} of conversation {conversation}"),
            why: "it has no place in the feed".to_owned(),
        };
        Ok(Check { problems: problems.into_iter().map(told).collect() })
    }

    fn pack(&self, _: PackOptions) -> Result<Packed> {
        // PostgreSQL compresses what is large by itself.
        Ok(Packed::default())
    }

    fn scrub(&self) -> Result<()> {
        self.shared.pool.clear();
        self.upkeep("VACUUM turn, body, conversation, operation, record, record_index, piece, said")
    }

    fn backup(&self, _: &Path) -> Result<()> {
        Err(StoreError::Unsupported(
            "a database is backed up with its own tools, `pg_basebackup` or `pg_dump`; `tine \
             export` writes bundles, and `tine migrate` copies the store to a folder",
        ))
    }

    fn index_state(&self) -> Result<IndexState> {
        search::state(&self.shared)
    }

    fn index(&self, body: &mut dyn FnMut(&mut dyn Index) -> Result<()>) -> Result<()> {
        search::index(&self.shared, body)
    }

    fn unindex(&self, turns: &[TurnLoc]) -> Result<()> {
        search::index(&self.shared, &mut |index| turns.iter().try_for_each(|it| index.erase(*it)))?;
        self.upkeep("VACUUM said")
    }

    fn search(
        &self,
        query: &TextQuery,
        filter: &SearchFilter,
        through: FeedPosition,
    ) -> Result<Option<Ranked>> {
        let mut found = None;
        self.look(&mut |txn| {
            found = search::search(txn, query, filter, through)?;
            Ok(())
        })?;
        Ok(found)
    }
}
