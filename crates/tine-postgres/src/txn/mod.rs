//! A transaction over one connection.
//!
//! It begins with the first statement, and its writes wait until something is read or it ends: a
//! closure that reads little and writes much costs few round trips. A transaction that writes is
//! SERIALIZABLE; one that only reads sees one state of everything and waits for nobody.

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
use crate::failure::Failure;
use crate::link::{COMMANDS_AT_ONCE, Command, Value, values};
use crate::pool::Lease;
use crate::rows::{self, Run};
use crate::{READ_DEADLINE, Shared, WRITE_DEADLINE};

/// Bytes of writes behind which they are sent.
const QUEUED_BYTES: usize = 8 << 20;

/// Whether a transaction may write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    Write,
}

/// An operation whose fate tells that of its transaction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Witness {
    pub conversation: ConversationKey,
    pub seq: u64,
    pub hash: OperationHash,
}

/// How a transaction ended.
pub(crate) enum Ended {
    Committed,
    /// Nothing of it was stored.
    Failed(Failure),
    /// Whether it was stored is not known.
    InDoubt(String),
}

/// What a transaction has done so far, as far as its later steps need it.
#[derive(Default)]
struct Done {
    projects: HashMap<ProjectId, i32>,
    last_segments: HashMap<ConversationKey, i64>,
    /// Turns that belong to the next operation.
    runs: Vec<Run>,
    operations: i32,
    witness: Option<Witness>,
    changed: BTreeSet<ConversationKey>,
}

pub(crate) struct Txn<'s> {
    shared: &'s Shared,
    access: Access,
    lease: RefCell<Option<Lease<'s>>>,
    begun: Cell<bool>,
    answered: Cell<bool>,
    queue: RefCell<Vec<Command>>,
    queued_bytes: Cell<usize>,
    failure: RefCell<Option<Failure>>,
    done: RefCell<Done>,
    /// Turns that operations made which were read from the feed.
    made: RefCell<BTreeMap<FeedPosition, Vec<Run>>>,
    ahead: Prefetch,
}

impl<'s> Txn<'s> {
    pub(crate) fn new(shared: &'s Shared, access: Access) -> Self {
        Txn {
            shared,
            access,
            lease: RefCell::default(),
            begun: Cell::new(false),
            answered: Cell::new(false),
            queue: RefCell::default(),
            queued_bytes: Cell::new(0),
            failure: RefCell::default(),
            done: RefCell::default(),
            made: RefCell::default(),
            ahead: Prefetch::default(),
        }
    }

    /// The first failure, if there was one: whatever came of the closure came of that.
    pub(crate) fn take_failure(&self) -> Option<Failure> {
        self.failure.take()
    }

    /// Whether the closure has seen anything of the store yet.
    pub(crate) fn was_answered(&self) -> bool {
        self.answered.get()
    }

    /// The operation whose fate is the transaction's.
    pub(crate) fn witness(&self) -> Option<Witness> {
        self.done.borrow().witness
    }

    /// Conversations that were changed.
    pub(crate) fn changed(&self) -> BTreeSet<ConversationKey> {
        self.done.borrow().changed.clone()
    }

    /// Projects that are there once this is committed.
    pub(crate) fn made_projects(&self) -> HashMap<ProjectId, i32> {
        self.done.borrow().projects.clone()
    }

    fn deadline(&self) -> Duration {
        match self.access {
            Access::Read => READ_DEADLINE,
            Access::Write => WRITE_DEADLINE,
        }
    }

    /// Sends what is queued, and statements behind it; answers what is read from the rows of each
    /// of these.
    fn exchange<T>(
        &self,
        mut behind: Vec<Command>,
        read: impl Fn(Row) -> T,
    ) -> std::result::Result<Vec<Vec<T>>, Failure> {
        let mut commands = Vec::new();
        if !self.begun.replace(true) {
            let begin = match self.access {
                Access::Read => "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
                Access::Write => "BEGIN ISOLATION LEVEL SERIALIZABLE",
            };
            commands.push(Command::new(begin, vec![]));
        }
        commands.append(&mut self.queue.borrow_mut());
        self.queued_bytes.set(0);
        let before = commands.len();
        commands.append(&mut behind);
        let mut lease = self.lease.borrow_mut();
        let link = match &mut *lease {
            Some(link) => link,
            none => none.insert(self.shared.pool.lend()?),
        };
        Ok(link.exchange_reading(self.deadline(), &commands, read)?.split_off(before))
    }

    fn told<T>(&self, answer: std::result::Result<T, Failure>) -> Result<T> {
        answer.map_err(|failure| {
            let told = failure.told();
            self.failure.borrow_mut().get_or_insert(failure);
            told
        })
    }

    /// Nothing is sent behind a failure.
    fn check_whole(&self) -> Result<()> {
        match &*self.failure.borrow() {
            Some(failure) => Err(failure.told()),
            None => Ok(()),
        }
    }

    pub(crate) fn ask(&self, sql: &'static str, values: Vec<Value>) -> Result<Vec<Row>> {
        Ok(self.ask_all(vec![Command::new(sql, values)])?.pop().unwrap_or_default())
    }

    /// Asks several things in one round trip.
    fn ask_all(&self, commands: Vec<Command>) -> Result<Vec<Vec<Row>>> {
        self.ask_reading(commands, |row| row)
    }

    /// The same; rows are read while the next ones are on their way, so that reading them asks
    /// nothing of the database.
    fn ask_reading<T>(
        &self,
        commands: Vec<Command>,
        read: impl Fn(Row) -> T,
    ) -> Result<Vec<Vec<T>>> {
        self.check_whole()?;
        let found = self.told(self.exchange(commands, read))?;
        self.answered.set(true);
        Ok(found)
    }

    pub(crate) fn ask_one(&self, sql: &'static str, values: Vec<Value>) -> Result<Option<Row>> {
        Ok(self.ask(sql, values)?.into_iter().next())
    }

    fn queue(&self, command: Command) -> Result<()> {
        self.check_whole()?;
        self.queue.borrow_mut().push(command);
        let full = self.queue.borrow().len() >= COMMANDS_AT_ONCE - 1;
        if full || self.queued_bytes.get() >= QUEUED_BYTES {
            self.told(self.exchange(vec![], drop))?;
        }
        Ok(())
    }

    fn put(&self, sql: &'static str, values: Vec<Value>) -> Result<()> {
        self.queue(Command::new(sql, values))
    }

    /// Changes something that must be there.
    fn change(&self, what: &'static str, sql: &'static str, values: Vec<Value>) -> Result<()> {
        self.queue(Command { sql, values, changes: Some(what) })
    }

    fn count_bytes(&self, bytes: usize) {
        self.queued_bytes.set(self.queued_bytes.get() + bytes);
    }

    /// Ends it for good.
    pub(crate) fn commit(&self) -> Ended {
        if let Some(failure) = self.failure.take() {
            return Ended::Failed(failure);
        }
        if !self.begun.get() && self.queue.borrow().is_empty() {
            return Ended::Committed;
        }
        let ended = self.exchange(vec![Command::new("COMMIT", vec![])], drop);
        let lease = self.lease.borrow_mut().take();
        let warned = lease.as_ref().is_some_and(|lease| lease.was_warned());
        match ended {
            Ok(_) if warned && self.access == Access::Write => {
                Ended::InDoubt("committed here, and perhaps on no standby".to_owned())
            }
            Ok(_) => {
                if let Some(lease) = lease {
                    lease.keep();
                }
                Ended::Committed
            }
            Err(Failure::Away(why)) => Ended::InDoubt(why),
            Err(failure) => {
                if let Some(lease) = lease {
                    end(lease);
                }
                Ended::Failed(failure)
            }
        }
    }

    /// Ends what has only read. There is nothing to wait for.
    pub(crate) fn leave(self) {
        if let Some(mut lease) = self.lease.into_inner()
            && lease.post("COMMIT").is_ok()
        {
            lease.keep();
        }
    }

    /// Takes everything back.
    pub(crate) fn roll_back(self) {
        if let Some(lease) = self.lease.into_inner() {
            end(lease);
        }
    }

    /// The number of a project.
    pub(crate) fn project_no(&self, id: &ProjectId) -> Result<Option<i32>> {
        if let Some(no) = self.done.borrow().projects.get(id) {
            return Ok(Some(*no));
        }
        if let Some(no) = self.shared.projects.number(id) {
            return Ok(Some(no));
        }
        let sql = "SELECT no FROM project WHERE id = $1";
        let found = self.ask_one(sql, values![id.as_str().to_owned()])?;
        let no = found.map(|row| row.get(0));
        if let Some(no) = no {
            self.shared.projects.learn(id, no);
        }
        Ok(no)
    }

    fn required_project(&self, id: &ProjectId) -> Result<i32> {
        let no = self.project_no(id)?;
        no.ok_or_else(|| StoreError::Contract(format!("project {id} is not there")))
    }

    /// The project with a number.
    fn project_id(&self, no: i32) -> Result<Option<ProjectId>> {
        let made = &self.done.borrow().projects;
        if let Some((id, _)) = made.iter().find(|(_, made)| **made == no) {
            return Ok(Some(id.clone()));
        }
        if let Some(id) = self.shared.projects.id(no) {
            return Ok(Some(id));
        }
        let found = self.ask_one("SELECT id FROM project WHERE no = $1", values![no])?;
        let id = found.map(|row| ProjectId::from_stored(row.get::<_, String>(0)));
        if let Some(id) = &id {
            self.shared.projects.learn(id, no);
        }
        Ok(id)
    }

    /// A number that no conversation and no segment of the project has, and larger than all.
    fn next_block(&self, project: i32) -> Result<i64> {
        let made_here = self.done.borrow().projects.values().any(|no| *no == project);
        let nth = if made_here {
            let sql = "UPDATE counter SET blocks = blocks + 1 WHERE project = $1 RETURNING blocks";
            let row = self.ask_one(sql, values![project])?;
            let row = tine_store::required(row, || format!("counter of project {project}"))?;
            row.get(0)
        } else {
            // Beside the transaction, so that two that need a number do not wait for each other.
            self.check_whole()?;
            self.told(self.shared.next_block(project))?
        };
        Ok(rows::block(project, nth))
    }
}

/// Takes back what may be open, and keeps the connection if that went well.
fn end(mut lease: Lease<'_>) {
    if lease.exchange(WRITE_DEADLINE, &[Command::new("ROLLBACK", vec![])]).is_ok() {
        lease.keep();
    }
}
