//! The records' side of a transaction: each method of the contract as a statement or two, those
//! that read in `read`, those that change something in `write`.

use crate::error::StoreErr as _;
use std::cell::{Cell, RefCell};
use std::path::Path;

use rusqlite::{Connection, OptionalExtension, Params, Row, params};
use tine_core::{Body, BranchId, Digest, Name, ProjectId};

use super::chunk::RawTurn;
use super::fresh;
use super::recent::View;
use super::rows::{self, BodyForm};
use tine_store::{
    Branch, Conversation, ConversationKey, Operation, Project, Result, StoreError, Turn,
};

/// Statements over one record type share their columns; only the conditions differ.
macro_rules! turn_sql {
    ($table:literal, $rest:literal) => {
        concat!(
            "SELECT place, id, hash, operation, depth, form, created_at, body, tool_call_id, \
             metadata, origin FROM ",
            $table,
            " ",
            $rest
        )
    };
}

macro_rules! branch_sql {
    ($rest:literal) => {
        concat!(
            "SELECT branch.conversation, branch.name, branch.id, tip, forked_from, \
             branch.created_at, version FROM branch ",
            $rest
        )
    };
}

macro_rules! bookmark_sql {
    ($rest:literal) => {
        concat!(
            "SELECT project.id, bookmark.name, bookmark.conversation, bookmark.place, \
             bookmark.created_at FROM bookmark JOIN project ON project.no = bookmark.project ",
            $rest
        )
    };
}

macro_rules! operation_sql {
    ($rest:literal) => {
        concat!(
            "SELECT operation.no, operation.conversation, operation.seq, kind, actor, at, detail, \
             operation.hash, undone, operation.key, fingerprint, answer FROM operation ",
            $rest
        )
    };
}

/// The same for operations that are not in their own table yet.
macro_rules! fresh_operation_sql {
    ($rest:literal) => {
        concat!(
            "SELECT no >> 10, conversation, seq, kind, actor, at, detail, hash, undone, key, \
             fingerprint, answer FROM fresh ",
            $rest
        )
    };
}

macro_rules! conversation_sql {
    ($rest:literal) => {
        concat!(
            "SELECT conversation.no, project.id, conversation.id, root_hash, system_prompt, \
             config, title, metadata, conversation.created_at, derived_from, derived_turn, \
             visibility, conversation.project FROM conversation JOIN project ON project.no = conversation.project ",
            $rest
        )
    };
}

mod families;
mod read;
mod write;

pub(super) struct Txn<'c> {
    pub(super) connection: &'c Connection,
    recent: View<'c>,
    /// The folder whose files `totals` measures; `None` in a write transaction.
    folder: Option<&'c Path>,
    /// The project that was looked up last: a transaction works in one.
    project: RefCell<Option<(ProjectId, i64)>>,
    /// A conversation and its project, as they were looked up last.
    met_conversation: Cell<Option<(i64, i64)>>,
    /// A branch's conversation, name and id that are known to be in one row.
    met_branch: RefCell<Option<(i64, Name, BranchId)>>,
    /// What the turns of the chunk are called that was opened last, and where it begins.
    pub(super) met_names: RefCell<Option<(i64, Vec<TurnNames>)>>,
}

/// The id and the hash of a turn.
pub(super) type TurnNames = ([u8; 16], Digest);

impl<'c> Txn<'c> {
    pub(super) fn new(
        connection: &'c Connection,
        recent: View<'c>,
        folder: Option<&'c Path>,
    ) -> Self {
        let (project, met_conversation) = (RefCell::default(), Cell::default());
        let (met_branch, met_names) = (RefCell::default(), RefCell::default());
        Txn { connection, recent, folder, project, met_conversation, met_branch, met_names }
    }

    pub(super) fn one<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Option<T>> {
        let mut statement = self.connection.prepare_cached(sql).store_err()?;
        statement.query_row(params, read).optional().store_err()
    }

    pub(super) fn many<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>> {
        let mut statement = self.connection.prepare_cached(sql).store_err()?;
        let rows = statement.query_map(params, read).store_err()?;
        rows.collect::<rusqlite::Result<_>>().store_err()
    }

    /// Rows whose reading can find damage: visits each until told to stop.
    pub(super) fn visit<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl Fn(&Row<'_>) -> Result<T>,
        visit: &mut dyn FnMut(T) -> Result<bool>,
    ) -> Result<()> {
        let mut statement = self.connection.prepare_cached(sql).store_err()?;
        let mut rows = statement.query(params).store_err()?;
        while let Some(row) = rows.next().store_err()? {
            if !visit(read(row)?)? {
                break;
            }
        }
        Ok(())
    }

    fn conversations_by(&self, sql: &str, params: impl Params) -> Result<Vec<Conversation>> {
        let mut found = Vec::new();
        let read = |row: &Row<'_>| {
            let conversation = rows::conversation(row)?;
            self.met_conversation.set(Some((conversation.key.0, row.get(12).store_err()?)));
            Ok(conversation)
        };
        self.visit(sql, params, read, &mut |conversation| {
            found.push(conversation);
            Ok(true)
        })?;
        Ok(found)
    }

    /// The project of a conversation, by their numbers.
    fn project_of(&self, conversation: i64) -> Result<i64> {
        if let Some((met, project)) = self.met_conversation.get()
            && met == conversation
        {
            return Ok(project);
        }
        let sql = "SELECT project FROM conversation WHERE no = ?1";
        let project = self.one(sql, [conversation], |row| row.get(0))?;
        tine_store::required(project, || format!("conversation {conversation}"))
    }

    pub(super) fn execute(&self, sql: &str, params: impl Params) -> Result<usize> {
        self.connection.prepare_cached(sql).store_err()?.execute(params).store_err()
    }

    pub(super) fn change_one(&self, what: &str, sql: &str, params: impl Params) -> Result<()> {
        match self.execute(sql, params)? {
            1 => Ok(()),
            changed => Err(StoreError::Contract(format!("{what}: changed {changed} rows, not 1"))),
        }
    }

    pub(super) fn project_no(&self, id: &ProjectId) -> Result<Option<i64>> {
        if let Some((known, no)) = &*self.project.borrow()
            && known == id
        {
            return Ok(Some(*no));
        }
        let sql = "SELECT no FROM project WHERE id = ?1";
        let found: Option<i64> = self.one(sql, [id.as_str()], |row| row.get(0))?;
        if let Some(no) = found {
            *self.project.borrow_mut() = Some((id.clone(), no));
        }
        Ok(found)
    }

    pub(super) fn required_project_no(&self, id: &ProjectId) -> Result<i64> {
        self.project_no(id)?
            .ok_or_else(|| StoreError::Contract(format!("project {id} is not there")))
    }

    pub(super) fn recent(&self) -> &View<'c> {
        &self.recent
    }

    /// Visits the rows between two places, fresh ones among them. Answers whether the visitor
    /// wants to go on.
    pub(super) fn rows_between(
        &self,
        from: i64,
        to: i64,
        visit: &mut dyn FnMut(Turn) -> Result<bool>,
    ) -> Result<bool> {
        if from > to {
            return Ok(true);
        }
        let mut fresh = self.recent.fresh_between(from, to)?.into_iter().peekable();
        let mut go_on = true;
        let sql = turn_sql!("turn", "WHERE place BETWEEN ?1 AND ?2 ORDER BY place");
        self.visit(sql, [from, to], RawTurn::read, &mut |raw| {
            let place = raw.place;
            while go_on && let Some((before, no)) = fresh.next_if(|(before, _)| *before < place) {
                if let Some(turn) = self.fresh_row(no, before)? {
                    go_on = visit(turn)?;
                }
            }
            // One that has come to its place since is not looked up.
            fresh.next_if(|(same, _)| *same == place);
            go_on = go_on && visit(self.unsealed(raw)?)?;
            Ok(go_on)
        })?;
        while go_on && let Some((place, no)) = fresh.next() {
            if let Some(turn) = self.fresh_row(no, place)? {
                go_on = visit(turn)?;
            }
        }
        Ok(go_on)
    }

    /// The fresh turn of a number, if it is the one at a place.
    pub(super) fn fresh_row(&self, no: i64, place: i64) -> Result<Option<Turn>> {
        let sql = turn_sql!("fresh", "WHERE no = ?1 AND place = ?2");
        self.first_turn(sql, [no, place])
    }

    fn first_turn(&self, sql: &str, params: impl Params) -> Result<Option<Turn>> {
        let mut found = None;
        self.visit(sql, params, RawTurn::read, &mut |raw| {
            found = Some(raw);
            Ok(false)
        })?;
        found.map(|raw| self.unsealed(raw)).transpose()
    }

    fn is_fresh_operation(&self, no: i64) -> bool {
        no > self.recent.horizon().indexed
    }

    fn operation_at(&self, no: i64) -> Result<Option<Operation>> {
        if self.is_fresh_operation(no) {
            let no = fresh::number_of_operation(no);
            return self.one(fresh_operation_sql!("WHERE no = ?1"), [no], rows::operation);
        }
        self.one(operation_sql!("WHERE operation.no = ?1"), [no], rows::operation)
    }

    /// The newest operation of a conversation, or what is wanted of it.
    fn last_operation_by<T>(
        &self,
        conversation: ConversationKey,
        read: impl Fn(i64) -> Result<Option<T>>,
    ) -> Result<Option<T>> {
        let mut below = i64::MAX;
        while let Some((seq, no)) = self.recent.last_operation_of(conversation.0, below)? {
            if let Some(found) = read(no)? {
                return Ok(Some(found));
            }
            below = seq;
        }
        let sql = "SELECT operation FROM operation_seq \
                   WHERE conversation = ?1 ORDER BY seq DESC LIMIT 1";
        match self.one(sql, [conversation.0], |row| row.get(0))? {
            Some(no) => read(no),
            None => Ok(None),
        }
    }

    /// A branch from its row, with its tip where it was moved to since.
    fn moved(&self, mut branch: Branch) -> Result<Branch> {
        let to = self.recent.last_move(branch.conversation.0, *branch.id.as_bytes())?;
        if let Some(to) = to {
            branch.tip = rows::root_or_loc(to.tip);
            branch.version = rows::unsigned(to.version);
        }
        Ok(branch)
    }

    /// Whether there is a branch of that name and id.
    fn has_branch(&self, branch: &Branch) -> Result<bool> {
        let met = |(conversation, name, id): &(i64, Name, BranchId)| {
            (*conversation, name, id) == (branch.conversation.0, &branch.name, &branch.id)
        };
        if self.met_branch.borrow().as_ref().is_some_and(met) {
            return Ok(true);
        }
        let sql = "SELECT 1 FROM branch WHERE conversation = ?1 AND name = ?2 AND id = ?3";
        let params = params![branch.conversation.0, branch.name.as_str(), branch.id.as_bytes()];
        Ok(self.one(sql, params, |_| Ok(()))?.is_some())
    }

    fn find_operation(&self, conversation: ConversationKey, seq: u64) -> Result<Option<i64>> {
        let seq = rows::number(seq);
        if let Some(no) = self.recent.operations_of(conversation.0, seq, seq)?.get(&seq) {
            return Ok(Some(*no));
        }
        let sql = "SELECT operation FROM operation_seq WHERE conversation = ?1 AND seq = ?2";
        self.one(sql, [conversation.0, seq], |row| row.get(0))
    }

    fn operation_no(&self, conversation: ConversationKey, seq: u64) -> Result<i64> {
        self.find_operation(conversation, seq)?
            .ok_or_else(|| StoreError::Contract(format!("operation {seq} is not there")))
    }

    /// The body as it goes into the turn's row; large ones are put aside first.
    fn keep_body(&self, place: i64, body: &Body) -> Result<(BodyForm, rusqlite::types::Value)> {
        let (text, inline, shared) = match body {
            Body::Text(text) => (text, BodyForm::Text, BodyForm::SharedText),
            Body::Blocks(text) => (text, BodyForm::Blocks, BodyForm::SharedBlocks),
        };
        if text.len() < rows::SHARED_BODY_BYTES {
            return Ok((inline, text.clone().into()));
        }
        let digest = Digest::of(text.as_bytes()).0;
        let known: Option<i64> =
            self.one("SELECT no FROM shared_body WHERE digest = ?1", [digest], |row| row.get(0))?;
        let no = match known {
            Some(no) => no,
            None => {
                let sql = "INSERT INTO shared_body (digest, body) VALUES (?1, ?2)";
                self.execute(sql, params![digest, text])?;
                self.connection.last_insert_rowid()
            }
        };
        let sql = "INSERT INTO shared_body_holder (body, place) VALUES (?1, ?2)";
        self.execute(sql, [no, place])?;
        Ok((shared, no.into()))
    }
}

fn project(row: &Row<'_>) -> rusqlite::Result<Project> {
    Ok(Project {
        id: ProjectId::from_stored(row.get::<_, String>(0)?),
        created_at: tine_core::Timestamp::from_millis(row.get(1)?),
    })
}

pub(super) fn limit_number(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}
