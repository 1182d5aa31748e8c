//! A transaction over one connection.
//!
//! It begins with the first statement, and writes are queued until something is read or it ends: a
//! closure that reads little and writes much needs few round trips. A transaction that writes is
//! SERIALIZABLE; one that only reads sees one snapshot and waits for no other.

mod families;
mod prefetch;
mod read;
mod write;

pub(crate) use self::write::{TurnColumns, detail_columns};

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use tine_core::{OperationHash, ProjectId};
use tine_store::{ConversationKey, FeedPosition, Result, StoreError};
use tokio_postgres::Row;

use self::prefetch::Prefetch;
use crate::connection::{PIPELINE_COMMANDS, SqlCommand, SqlValue, values};
use crate::failure::{DatabaseFailure, DatabaseResult};
use crate::pool::Lease;
use crate::rows::{self, TurnRun};
use crate::{READ_DEADLINE, StoreContext, WRITE_DEADLINE};

/// The size at which queued writes are sent.
const QUEUED_BYTES: usize = 8 << 20;

/// Whether a transaction may write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TxnAccess {
    Read,
    Write,
}

/// An operation of a transaction: if it is stored, the transaction was committed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CommitWitness {
    pub conversation: ConversationKey,
    pub seq: u64,
    pub hash: OperationHash,
}

/// How a transaction ended.
pub(crate) enum TxnEnd {
    Committed,
    /// Nothing of it was stored.
    Failed(DatabaseFailure),
    /// Whether it was stored is unknown.
    InDoubt(String),
}

/// The effects of a transaction so far, for its own later statements and for the caches.
#[derive(Default)]
struct TxnEffects {
    projects: HashMap<ProjectId, i32>,
    last_segments: HashMap<ConversationKey, i64>,
    /// Turns that the next operation lists.
    runs: Vec<TurnRun>,
    operations: i32,
    witness: Option<CommitWitness>,
    changed: BTreeSet<ConversationKey>,
}

pub(crate) struct PostgresTxn<'s> {
    context: &'s StoreContext,
    access: TxnAccess,
    lease: RefCell<Option<Lease<'s>>>,
    begun: Cell<bool>,
    has_read: Cell<bool>,
    queue: RefCell<Vec<SqlCommand>>,
    queued_bytes: Cell<usize>,
    failure: RefCell<Option<DatabaseFailure>>,
    effects: RefCell<TxnEffects>,
    /// Turns made by operations that were read from the feed.
    feed_turns: RefCell<BTreeMap<FeedPosition, Vec<TurnRun>>>,
    prefetch: Prefetch,
}

impl<'s> PostgresTxn<'s> {
    pub(crate) fn new(context: &'s StoreContext, access: TxnAccess) -> Self {
        PostgresTxn {
            context,
            access,
            lease: RefCell::default(),
            begun: Cell::new(false),
            has_read: Cell::new(false),
            queue: RefCell::default(),
            queued_bytes: Cell::new(0),
            failure: RefCell::default(),
            effects: RefCell::default(),
            feed_turns: RefCell::default(),
            prefetch: Prefetch::default(),
        }
    }

    /// Takes the first failure; it is the cause of whatever the closure returned.
    pub(crate) fn take_failure(&self) -> Option<DatabaseFailure> {
        self.failure.take()
    }

    /// Returns whether the closure has read anything.
    pub(crate) fn has_read(&self) -> bool {
        self.has_read.get()
    }

    /// Returns the operation by which the outcome of the commit can be looked up.
    pub(crate) fn witness(&self) -> Option<CommitWitness> {
        self.effects.borrow().witness
    }

    pub(crate) fn changed(&self) -> BTreeSet<ConversationKey> {
        self.effects.borrow().changed.clone()
    }

    pub(crate) fn new_projects(&self) -> HashMap<ProjectId, i32> {
        self.effects.borrow().projects.clone()
    }

    fn deadline(&self) -> Duration {
        match self.access {
            TxnAccess::Read => READ_DEADLINE,
            TxnAccess::Write => WRITE_DEADLINE,
        }
    }

    /// Sends the queued commands and then the given ones; returns the converted rows of the latter.
    fn exchange<T>(
        &self,
        mut last: Vec<SqlCommand>,
        read: impl Fn(Row) -> T,
    ) -> DatabaseResult<Vec<Vec<T>>> {
        let mut commands = Vec::new();
        if !self.begun.replace(true) {
            let begin = match self.access {
                TxnAccess::Read => "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
                TxnAccess::Write => "BEGIN ISOLATION LEVEL SERIALIZABLE",
            };
            commands.push(SqlCommand::new(begin, vec![]));
        }
        commands.append(&mut self.queue.borrow_mut());
        self.queued_bytes.set(0);
        let before = commands.len();
        commands.append(&mut last);
        let mut lease = self.lease.borrow_mut();
        let connection = match &mut *lease {
            Some(connection) => connection,
            none => none.insert(self.context.pool.acquire()?),
        };
        Ok(connection.exchange_mapped(self.deadline(), &commands, read)?.split_off(before))
    }

    fn record_failure<T>(&self, answer: DatabaseResult<T>) -> Result<T> {
        answer.map_err(|failure| {
            let error = failure.to_store_error();
            self.failure.borrow_mut().get_or_insert(failure);
            error
        })
    }

    /// Fails if the transaction has failed: nothing is sent after a failure.
    fn check_not_failed(&self) -> Result<()> {
        match &*self.failure.borrow() {
            Some(failure) => Err(failure.to_store_error()),
            None => Ok(()),
        }
    }

    pub(crate) fn query(&self, sql: &'static str, values: Vec<SqlValue>) -> Result<Vec<Row>> {
        Ok(self.query_batch(vec![SqlCommand::new(sql, values)])?.pop().unwrap_or_default())
    }

    /// Runs several queries in one round trip.
    fn query_batch(&self, commands: Vec<SqlCommand>) -> Result<Vec<Vec<Row>>> {
        self.query_mapped(commands, |row| row)
    }

    /// Like `query_batch`, but converts each row while the next ones are still arriving; `read` must
    /// not use the transaction.
    fn query_mapped<T>(
        &self,
        commands: Vec<SqlCommand>,
        read: impl Fn(Row) -> T,
    ) -> Result<Vec<Vec<T>>> {
        self.check_not_failed()?;
        let found = self.record_failure(self.exchange(commands, read))?;
        self.has_read.set(true);
        Ok(found)
    }

    pub(crate) fn query_opt(
        &self,
        sql: &'static str,
        values: Vec<SqlValue>,
    ) -> Result<Option<Row>> {
        Ok(self.query(sql, values)?.into_iter().next())
    }

    fn enqueue(&self, command: SqlCommand) -> Result<()> {
        self.check_not_failed()?;
        self.queue.borrow_mut().push(command);
        let full = self.queue.borrow().len() >= PIPELINE_COMMANDS - 1;
        if full || self.queued_bytes.get() >= QUEUED_BYTES {
            self.record_failure(self.exchange(vec![], drop))?;
        }
        Ok(())
    }

    fn write(&self, sql: &'static str, values: Vec<SqlValue>) -> Result<()> {
        self.enqueue(SqlCommand::new(sql, values))
    }

    /// Changes a record that must exist.
    fn update(&self, what: &'static str, sql: &'static str, values: Vec<SqlValue>) -> Result<()> {
        self.enqueue(SqlCommand { sql, values, must_change: Some(what) })
    }

    fn count_bytes(&self, bytes: usize) {
        self.queued_bytes.set(self.queued_bytes.get() + bytes);
    }

    pub(crate) fn commit(&self) -> TxnEnd {
        if let Some(failure) = self.failure.take() {
            return TxnEnd::Failed(failure);
        }
        if !self.begun.get() && self.queue.borrow().is_empty() {
            return TxnEnd::Committed;
        }
        let ended = self.exchange(vec![SqlCommand::new("COMMIT", vec![])], drop);
        let lease = self.lease.borrow_mut().take();
        let warned = lease.as_ref().is_some_and(|lease| lease.was_warned());
        match ended {
            Ok(_) if warned && self.access == TxnAccess::Write => {
                TxnEnd::InDoubt("committed here, and perhaps on no standby".to_owned())
            }
            Ok(_) => {
                if let Some(lease) = lease {
                    lease.release();
                }
                TxnEnd::Committed
            }
            Err(DatabaseFailure::Unreachable(why)) => TxnEnd::InDoubt(why),
            Err(failure) => {
                if let Some(lease) = lease {
                    rollback_and_release(lease);
                }
                TxnEnd::Failed(failure)
            }
        }
    }

    /// Ends a read transaction without waiting for the answer.
    pub(crate) fn finish_read(self) {
        if let Some(mut lease) = self.lease.into_inner()
            && lease.send_without_waiting("COMMIT").is_ok()
        {
            lease.release();
        }
    }

    /// Rolls back the transaction.
    pub(crate) fn rollback(self) {
        if let Some(lease) = self.lease.into_inner() {
            rollback_and_release(lease);
        }
    }

    pub(crate) fn project_no(&self, id: &ProjectId) -> Result<Option<i32>> {
        if let Some(no) = self.effects.borrow().projects.get(id) {
            return Ok(Some(*no));
        }
        if let Some(no) = self.context.projects.number(id) {
            return Ok(Some(no));
        }
        let sql = "SELECT no FROM project WHERE id = $1";
        let found = self.query_opt(sql, values![id.as_str().to_owned()])?;
        let no = found.map(|row| row.get(0));
        if let Some(no) = no {
            self.context.projects.insert(id, no);
        }
        Ok(no)
    }

    fn required_project(&self, id: &ProjectId) -> Result<i32> {
        let no = self.project_no(id)?;
        no.ok_or_else(|| StoreError::Contract(format!("project {id} is not there")))
    }

    fn project_id(&self, no: i32) -> Result<Option<ProjectId>> {
        let new_projects = &self.effects.borrow().projects;
        if let Some((id, _)) = new_projects.iter().find(|(_, number)| **number == no) {
            return Ok(Some(id.clone()));
        }
        if let Some(id) = self.context.projects.id(no) {
            return Ok(Some(id));
        }
        let found = self.query_opt("SELECT id FROM project WHERE no = $1", values![no])?;
        let id = found.map(|row| ProjectId::from_stored(row.get::<_, String>(0)));
        if let Some(id) = &id {
            self.context.projects.insert(id, no);
        }
        Ok(id)
    }

    /// Allocates a number larger than those of all conversations and segments of the project.
    fn next_block(&self, project: i32) -> Result<i64> {
        let is_new_project = self.effects.borrow().projects.values().any(|no| *no == project);
        let nth = if is_new_project {
            let sql = "UPDATE counter SET blocks = blocks + 1 WHERE project = $1 RETURNING blocks";
            let row = self.query_opt(sql, values![project])?;
            let row = tine_store::required(row, || format!("counter of project {project}"))?;
            row.get(0)
        } else {
            // Outside the transaction, so that transactions that need numbers do not wait for each other.
            self.check_not_failed()?;
            self.record_failure(self.context.next_block(project))?
        };
        Ok(rows::block(project, nth))
    }
}

/// Rolls back an open transaction, and returns the connection to the pool if that succeeds.
fn rollback_and_release(mut lease: Lease<'_>) {
    if lease.exchange(WRITE_DEADLINE, &[SqlCommand::new("ROLLBACK", vec![])]).is_ok() {
        lease.release();
    }
}
