//! A transaction: the methods of [`tine_store::Read`] and [`tine_store::Write`] as SQL statements.

use crate::error::{StoreErr as _, execute};
use std::cell::{Cell, RefCell};
use std::path::Path;

use rusqlite::{Connection, OptionalExtension, Params, Row, params};
use tine_core::{Body, BranchId, Digest, Name, ProjectId};

use super::chunk_codec::RawTurn;
use super::pending_index::IndexView;
use super::pending_rows;
use super::rows::{self, BodyEncoding};
use tine_store::{
    Branch, Conversation, ConversationKey, Operation, Project, Result, StoreError, Turn,
};

/// Statements over one record type share their columns; only their conditions differ.
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

/// The same for pending operations.
macro_rules! pending_operation_sql {
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

pub(super) struct SqliteTxn<'c> {
    pub(super) connection: &'c Connection,
    pending_index: IndexView<'c>,
    /// The folder whose files `totals` measures; `None` in a write transaction.
    folder: Option<&'c Path>,
    /// The project that was looked up last, and its number: a transaction works in one.
    cached_project: RefCell<Option<(ProjectId, i64)>>,
    /// The conversation that was looked up last, and its project.
    cached_conversation: Cell<Option<(i64, i64)>>,
    /// Conversation, name and id of the branch that was looked up last.
    cached_branch: RefCell<Option<(i64, Name, BranchId)>>,
    /// The first place of the chunk that was decoded last, and the identities of its turns.
    pub(super) cached_identities: RefCell<Option<(i64, Vec<TurnIdentity>)>>,
}

/// The id and the hash of a turn.
pub(super) type TurnIdentity = ([u8; 16], Digest);

impl<'c> SqliteTxn<'c> {
    pub(super) fn new(
        connection: &'c Connection,
        pending_index: IndexView<'c>,
        folder: Option<&'c Path>,
    ) -> Self {
        let (cached_project, cached_conversation) = (RefCell::default(), Cell::default());
        let (cached_branch, cached_identities) = (RefCell::default(), RefCell::default());
        SqliteTxn {
            connection,
            pending_index,
            folder,
            cached_project,
            cached_conversation,
            cached_branch,
            cached_identities,
        }
    }

    pub(super) fn query_opt<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Option<T>> {
        let mut statement = self.connection.prepare_cached(sql).store_err()?;
        statement.query_row(params, read).optional().store_err()
    }

    pub(super) fn query_all<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>> {
        let mut statement = self.connection.prepare_cached(sql).store_err()?;
        let rows = statement.query_map(params, read).store_err()?;
        rows.collect::<rusqlite::Result<_>>().store_err()
    }

    /// Visits rows until the visitor returns `false`; reading a row may fail.
    pub(super) fn query_each<T>(
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

    fn query_conversations(&self, sql: &str, params: impl Params) -> Result<Vec<Conversation>> {
        let mut found = Vec::new();
        let read = |row: &Row<'_>| {
            let conversation = rows::conversation(row)?;
            self.cached_conversation.set(Some((conversation.key.0, row.get(12).store_err()?)));
            Ok(conversation)
        };
        self.query_each(sql, params, read, &mut |conversation| {
            found.push(conversation);
            Ok(true)
        })?;
        Ok(found)
    }

    /// Returns the number of a conversation's project.
    fn project_of(&self, conversation: i64) -> Result<i64> {
        if let Some((cached, project)) = self.cached_conversation.get()
            && cached == conversation
        {
            return Ok(project);
        }
        let sql = "SELECT project FROM conversation WHERE no = ?1";
        let project = self.query_opt(sql, [conversation], |row| row.get(0))?;
        tine_store::required(project, || format!("conversation {conversation}"))
    }

    pub(super) fn execute(&self, sql: &str, params: impl Params) -> Result<usize> {
        execute(self.connection, sql, params)
    }

    pub(super) fn update_one(&self, what: &str, sql: &str, params: impl Params) -> Result<()> {
        match self.execute(sql, params)? {
            1 => Ok(()),
            changed => Err(StoreError::Contract(format!("{what}: changed {changed} rows, not 1"))),
        }
    }

    pub(super) fn project_no(&self, id: &ProjectId) -> Result<Option<i64>> {
        if let Some((cached, no)) = &*self.cached_project.borrow()
            && cached == id
        {
            return Ok(Some(*no));
        }
        let sql = "SELECT no FROM project WHERE id = ?1";
        let found: Option<i64> = self.query_opt(sql, [id.as_str()], |row| row.get(0))?;
        if let Some(no) = found {
            *self.cached_project.borrow_mut() = Some((id.clone(), no));
        }
        Ok(found)
    }

    pub(super) fn required_project_no(&self, id: &ProjectId) -> Result<i64> {
        self.project_no(id)?
            .ok_or_else(|| StoreError::Contract(format!("project {id} is not there")))
    }

    pub(super) fn pending_index(&self) -> &IndexView<'c> {
        &self.pending_index
    }

    /// Visits the unpacked turns between two places, pending ones included. Returns whether the
    /// visitor wants to continue.
    pub(super) fn rows_between(
        &self,
        from: i64,
        to: i64,
        visit: &mut dyn FnMut(Turn) -> Result<bool>,
    ) -> Result<bool> {
        if from > to {
            return Ok(true);
        }
        let mut pending = self.pending_index.pending_between(from, to)?.into_iter().peekable();
        let mut proceed = true;
        let sql = turn_sql!("turn", "WHERE place BETWEEN ?1 AND ?2 ORDER BY place");
        self.query_each(sql, [from, to], RawTurn::read, &mut |raw| {
            let place = raw.place;
            while proceed && let Some((before, no)) = pending.next_if(|(before, _)| *before < place)
            {
                if let Some(turn) = self.pending_turn_at(no, before)? {
                    proceed = visit(turn)?;
                }
            }
            // A turn that has a row in `turn` is not looked up among the pending rows.
            pending.next_if(|(same, _)| *same == place);
            proceed = proceed && visit(self.resolve_turn(raw)?)?;
            Ok(proceed)
        })?;
        while proceed && let Some((place, no)) = pending.next() {
            if let Some(turn) = self.pending_turn_at(no, place)? {
                proceed = visit(turn)?;
            }
        }
        Ok(proceed)
    }

    /// Returns the pending turn with a row number, if it has the given place.
    pub(super) fn pending_turn_at(&self, no: i64, place: i64) -> Result<Option<Turn>> {
        let sql = turn_sql!("fresh", "WHERE no = ?1 AND place = ?2");
        self.first_turn(sql, [no, place])
    }

    fn first_turn(&self, sql: &str, params: impl Params) -> Result<Option<Turn>> {
        let mut found = None;
        self.query_each(sql, params, RawTurn::read, &mut |raw| {
            found = Some(raw);
            Ok(false)
        })?;
        found.map(|raw| self.resolve_turn(raw)).transpose()
    }

    fn is_pending_operation(&self, no: i64) -> bool {
        no > self.pending_index.horizon().indexed
    }

    fn operation_at(&self, no: i64) -> Result<Option<Operation>> {
        if self.is_pending_operation(no) {
            let no = pending_rows::operation_row_no(no);
            return self.query_opt(pending_operation_sql!("WHERE no = ?1"), [no], rows::operation);
        }
        self.query_opt(operation_sql!("WHERE operation.no = ?1"), [no], rows::operation)
    }

    /// Reads the newest operation of a conversation.
    fn last_operation_by<T>(
        &self,
        conversation: ConversationKey,
        read: impl Fn(i64) -> Result<Option<T>>,
    ) -> Result<Option<T>> {
        let mut below = i64::MAX;
        while let Some((seq, no)) = self.pending_index.last_operation(conversation.0, below)? {
            if let Some(found) = read(no)? {
                return Ok(Some(found));
            }
            below = seq;
        }
        let sql = "SELECT operation FROM operation_seq \
                   WHERE conversation = ?1 ORDER BY seq DESC LIMIT 1";
        match self.query_opt(sql, [conversation.0], |row| row.get(0))? {
            Some(no) => read(no),
            None => Ok(None),
        }
    }

    /// Applies a pending move to a branch that was read from its row.
    fn with_pending_move(&self, mut branch: Branch) -> Result<Branch> {
        let to = self.pending_index.last_move(branch.conversation.0, *branch.id.as_bytes())?;
        if let Some(to) = to {
            branch.tip = rows::root_or_loc(to.tip);
            branch.version = rows::to_u64(to.version);
        }
        Ok(branch)
    }

    /// Returns whether a branch with this name and id exists.
    fn has_branch(&self, branch: &Branch) -> Result<bool> {
        let same = |(conversation, name, id): &(i64, Name, BranchId)| {
            (*conversation, name, id) == (branch.conversation.0, &branch.name, &branch.id)
        };
        if self.cached_branch.borrow().as_ref().is_some_and(same) {
            return Ok(true);
        }
        let sql = "SELECT 1 FROM branch WHERE conversation = ?1 AND name = ?2 AND id = ?3";
        let params = params![branch.conversation.0, branch.name.as_str(), branch.id.as_bytes()];
        Ok(self.query_opt(sql, params, |_| Ok(()))?.is_some())
    }

    fn find_operation(&self, conversation: ConversationKey, seq: u64) -> Result<Option<i64>> {
        let seq = rows::to_i64(seq);
        if let Some(no) = self.pending_index.operations_between(conversation.0, seq, seq)?.get(&seq)
        {
            return Ok(Some(*no));
        }
        let sql = "SELECT operation FROM operation_seq WHERE conversation = ?1 AND seq = ?2";
        self.query_opt(sql, [conversation.0, seq], |row| row.get(0))
    }

    fn operation_no(&self, conversation: ConversationKey, seq: u64) -> Result<i64> {
        self.find_operation(conversation, seq)?
            .ok_or_else(|| StoreError::Contract(format!("operation {seq} is not there")))
    }

    /// Returns the body as stored in the turn's row; a large one is stored as a shared body first.
    fn store_body(
        &self,
        place: i64,
        body: &Body,
    ) -> Result<(BodyEncoding, rusqlite::types::Value)> {
        let (text, inline, shared) = match body {
            Body::Text(text) => (text, BodyEncoding::Text, BodyEncoding::SharedText),
            Body::Blocks(text) => (text, BodyEncoding::Blocks, BodyEncoding::SharedBlocks),
        };
        if text.len() < rows::SHARED_BODY_BYTES {
            return Ok((inline, text.clone().into()));
        }
        let digest = Digest::of(text.as_bytes()).0;
        let existing: Option<i64> =
            self.query_opt("SELECT no FROM shared_body WHERE digest = ?1", [digest], |row| {
                row.get(0)
            })?;
        let no = match existing {
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

pub(super) fn sql_limit(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}
