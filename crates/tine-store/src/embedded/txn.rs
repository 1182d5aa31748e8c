//! The records' side of a transaction: each method of the contract as a statement or two.

use std::cell::RefCell;

use rusqlite::{Connection, OptionalExtension, Params, Row, params};
use tine_core::{
    Body, BranchId, ConversationId, Digest, Metadata, Name, OperationHash, ProjectId, SourceId,
    TurnId,
};

use super::chunk::RawTurn;
use super::compact;
use super::fresh;
use super::recent::{Entry, View};
use super::rows::{self, BodyForm, Move};
use crate::ledger::{self, EntryKind, KeyRange};
use crate::records::{
    Bookmark, Branch, Content, Conversation, ConversationKey, Detail, FeedPosition, Hidden,
    Operation, Project, SEGMENT_TURNS, Segment, SegmentExtent, SegmentNo, Split, Totals, Turn,
    TurnLoc,
};
use crate::search::IndexMark;
use crate::traits::{Read, Write};
use crate::{Result, StoreError};

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
             visibility FROM conversation JOIN project ON project.no = conversation.project ",
            $rest
        )
    };
}

pub(super) struct Txn<'c> {
    pub(super) connection: &'c Connection,
    recent: View<'c>,
    disk_bytes: u64,
    /// The project that was looked up last: a transaction works in one.
    project: RefCell<Option<(ProjectId, i64)>>,
    /// A branch's conversation, name and id that are known to be in one row.
    met_branch: RefCell<Option<(i64, Name, BranchId)>>,
}

impl<'c> Txn<'c> {
    pub(super) fn new(connection: &'c Connection, recent: View<'c>, disk_bytes: u64) -> Self {
        let (project, met_branch) = (RefCell::default(), RefCell::default());
        Txn { connection, recent, disk_bytes, project, met_branch }
    }

    pub(super) fn one<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Option<T>> {
        let mut statement = self.connection.prepare_cached(sql)?;
        Ok(statement.query_row(params, read).optional()?)
    }

    pub(super) fn many<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>> {
        let mut statement = self.connection.prepare_cached(sql)?;
        let rows = statement.query_map(params, read)?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// Rows whose reading can find damage: visits each until told to stop.
    pub(super) fn visit<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl Fn(&Row<'_>) -> Result<T>,
        visit: &mut dyn FnMut(T) -> Result<bool>,
    ) -> Result<()> {
        let mut statement = self.connection.prepare_cached(sql)?;
        let mut rows = statement.query(params)?;
        while let Some(row) = rows.next()? {
            if !visit(read(row)?)? {
                break;
            }
        }
        Ok(())
    }

    fn conversations_by(&self, sql: &str, params: impl Params) -> Result<Vec<Conversation>> {
        let mut found = Vec::new();
        self.visit(sql, params, rows::conversation, &mut |conversation| {
            found.push(conversation);
            Ok(true)
        })?;
        Ok(found)
    }

    pub(super) fn execute(&self, sql: &str, params: impl Params) -> Result<usize> {
        Ok(self.connection.prepare_cached(sql)?.execute(params)?)
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

impl Read for Txn<'_> {
    fn projects(&self) -> Result<Vec<Project>> {
        self.many("SELECT id, created_at FROM project ORDER BY id", [], project)
    }

    fn project(&self, id: &ProjectId) -> Result<Option<Project>> {
        let sql = "SELECT id, created_at FROM project WHERE id = ?1";
        self.one(sql, [id.as_str()], project)
    }

    fn conversation(
        &self,
        project: &ProjectId,
        id: &ConversationId,
    ) -> Result<Option<Conversation>> {
        let sql = conversation_sql!("WHERE project.id = ?1 AND conversation.id = ?2");
        Ok(self.conversations_by(sql, [project.as_str(), id.as_str()])?.pop())
    }

    fn conversation_by_key(&self, key: ConversationKey) -> Result<Option<Conversation>> {
        let sql = conversation_sql!("WHERE conversation.no = ?1");
        Ok(self.conversations_by(sql, [key.0])?.pop())
    }

    fn conversations(
        &self,
        project: &ProjectId,
        after: Option<ConversationKey>,
        limit: usize,
    ) -> Result<Vec<Conversation>> {
        let sql = conversation_sql!(
            "WHERE project.id = ?1 AND conversation.no > ?2 ORDER BY conversation.no LIMIT ?3"
        );
        let after = after.map_or(0, |key| key.0);
        self.conversations_by(sql, params![project.as_str(), after, limit_number(limit)])
    }

    fn derivatives(&self, project: &ProjectId, of: &ConversationId) -> Result<Vec<Conversation>> {
        let sql = conversation_sql!(
            "WHERE project.id = ?1 AND derived_from = ?2 ORDER BY conversation.no"
        );
        self.conversations_by(sql, [project.as_str(), of.as_str()])
    }

    fn segment(&self, no: SegmentNo) -> Result<Segment> {
        let sql = "SELECT no, conversation, parent, base_depth FROM segment WHERE no = ?1";
        let found = self.one(sql, [no.0], rows::segment)?;
        crate::required(found, || format!("segment {}", no.0))
    }

    fn segments(&self, conversation: ConversationKey) -> Result<Vec<SegmentExtent>> {
        let sql = "SELECT no, conversation, parent, base_depth, max( \
                   coalesce((SELECT max(place) FROM turn \
                             WHERE place >= no << 20 AND place < (no + 1) << 20), -1), \
                   coalesce((SELECT first + turns - 1 FROM chunk \
                             WHERE first >= no << 20 AND first < (no + 1) << 20 \
                             ORDER BY first DESC LIMIT 1), -1)) \
                   FROM segment WHERE conversation = ?1 ORDER BY no";
        let settled = self
            .many(sql, [conversation.0], |row| Ok((rows::segment(row)?, row.get::<_, i64>(4)?)))?;
        let mut extents = Vec::with_capacity(settled.len());
        for (segment, last) in settled {
            let last = self.last_fresh(segment.no, last)?.unwrap_or(last);
            let turns = if last < 0 { 0 } else { rows::loc(last).index + 1 };
            extents.push(SegmentExtent { segment, turns });
        }
        Ok(extents)
    }

    fn forks(
        &self,
        conversation: ConversationKey,
        parent: Option<TurnLoc>,
    ) -> Result<Vec<Segment>> {
        let sql = "SELECT no, conversation, parent, base_depth FROM segment \
                   WHERE conversation = ?1 AND parent = ?2 ORDER BY no";
        self.many(sql, [conversation.0, rows::root_or_place(parent)], rows::segment)
    }

    fn forks_from(&self, conversation: ConversationKey, at: TurnLoc) -> Result<Vec<Segment>> {
        let sql = "SELECT no, conversation, parent, base_depth FROM segment \
                   WHERE conversation = ?1 AND parent >= ?2 AND parent < ?3 ORDER BY no";
        let end = TurnLoc { segment: SegmentNo(at.segment.0 + 1), index: 0 };
        self.many(sql, [conversation.0, rows::place(at), rows::place(end)], rows::segment)
    }

    fn last_index(&self, segment: SegmentNo) -> Result<u32> {
        let sql = "SELECT max( \
                   coalesce((SELECT max(place) FROM turn \
                             WHERE place >= ?1 << 20 AND place < (?1 + 1) << 20), -1), \
                   coalesce((SELECT first + turns - 1 FROM chunk \
                             WHERE first >= ?1 << 20 AND first < (?1 + 1) << 20 \
                             ORDER BY first DESC LIMIT 1), -1))";
        let settled: i64 = self.one(sql, [segment.0], |row| row.get(0))?.unwrap_or(-1);
        let last = self.last_fresh(segment, settled)?.unwrap_or(settled);
        let last = Some(last).filter(|place| *place >= 0);
        let place = crate::required(last, || format!("first turn of segment {}", segment.0))?;
        Ok(rows::loc(place).index)
    }

    fn turn(&self, loc: TurnLoc) -> Result<Option<Turn>> {
        let place = rows::place(loc);
        if let Some(turn) = self.fresh_turn(place)? {
            return Ok(Some(turn));
        }
        match self.first_turn(turn_sql!("turn", "WHERE place = ?1"), [place])? {
            Some(turn) => Ok(Some(turn)),
            None => self.packed_turn(place),
        }
    }

    fn turns(
        &self,
        segment: SegmentNo,
        from: u32,
        to: u32,
        visit: &mut dyn FnMut(Turn) -> Result<bool>,
    ) -> Result<()> {
        // The next segment begins where the places of this one end.
        let place =
            |index: u32| rows::place(TurnLoc { segment, index: index.min(SEGMENT_TURNS - 1) });
        self.turns_between(place(from), place(to), visit)
    }

    fn find_turn(
        &self,
        project: &ProjectId,
        id: &TurnId,
    ) -> Result<Option<(ConversationKey, TurnLoc)>> {
        let sql = "SELECT place FROM turn_id WHERE id = ?1";
        let mut places = self.many(sql, [id.as_bytes()], |row| row.get(0))?;
        places.extend(self.recent.places_of_id(id.as_bytes())?);
        // Whether the turn is there is asked of the turn: an entry may be ahead of this snapshot.
        let sql = "SELECT conversation.no FROM segment \
                   JOIN conversation ON conversation.no = segment.conversation \
                   JOIN project ON project.no = conversation.project \
                   WHERE segment.no = ?1 >> 20 AND project.id = ?2";
        for place in places {
            let found: Option<i64> =
                self.one(sql, params![place, project.as_str()], |row| row.get(0))?;
            if let Some(conversation) = found
                && self.holds(place)?
            {
                return Ok(Some((ConversationKey(conversation), rows::loc(place))));
            }
        }
        Ok(None)
    }

    fn find_hashes(
        &self,
        conversation: ConversationKey,
        low: &Digest,
        high: &Digest,
        limit: usize,
    ) -> Result<Vec<TurnLoc>> {
        let (from, to) = (rows::prefix(low), rows::prefix(high));
        let sql = "SELECT place FROM turn_hash \
                   WHERE conversation = ?1 AND prefix BETWEEN ?2 AND ?3";
        let mut places = self.many(sql, [conversation.0, from, to], |row| row.get(0))?;
        places.extend(self.recent.places_of_hashes(conversation.0, from, to)?);
        places.sort_unstable();
        places.dedup();
        let mut found = Vec::new();
        for place in places {
            if let Some(hash) = self.hash_at(place)?
                && (*low..=*high).contains(&hash)
            {
                found.push((hash, rows::loc(place)));
            }
        }
        found.sort_unstable();
        found.truncate(limit);
        Ok(found.into_iter().map(|(_, loc)| loc).collect())
    }

    fn same_content(&self, loc: TurnLoc, limit: usize) -> Result<Vec<(ConversationKey, TurnLoc)>> {
        // Without an index this reads everything: it serves erasure, which is rare.
        let Some(Turn { content: Content::Kept(body), .. }) = self.turn(loc)? else {
            return Ok(Vec::new());
        };
        let mut places = self.places_with(&body, limit.saturating_add(1))?;
        places.retain(|place| *place != rows::place(loc));
        places.truncate(limit);
        let sql = "SELECT conversation FROM segment WHERE no = ?1 >> 20";
        let mut found = Vec::with_capacity(places.len());
        for place in places {
            if let Some(conversation) = self.one(sql, [place], |row| row.get(0))? {
                found.push((ConversationKey(conversation), rows::loc(place)));
            }
        }
        Ok(found)
    }

    fn splits(&self, conversation: ConversationKey) -> Result<Vec<Split>> {
        let sql = "SELECT conversation, whole, left_half, right_half, operation FROM split \
                   WHERE conversation = ?1 ORDER BY whole";
        self.many(sql, [conversation.0], rows::split)
    }

    fn hidden_in(&self, conversation: ConversationKey, segment: SegmentNo) -> Result<Vec<Hidden>> {
        let sql = "SELECT conversation, segment, first, last, operation, hidden_by, root \
                   FROM hidden WHERE conversation = ?1 AND segment = ?2 ORDER BY first, operation";
        self.many(sql, [conversation.0, segment.0], rows::hidden)
    }

    fn hidden(&self, conversation: ConversationKey) -> Result<Vec<Hidden>> {
        let sql = "SELECT conversation, segment, first, last, operation, hidden_by, root \
                   FROM hidden WHERE conversation = ?1 ORDER BY segment, first, operation";
        self.many(sql, [conversation.0], rows::hidden)
    }

    fn branch(&self, conversation: ConversationKey, name: &Name) -> Result<Option<Branch>> {
        let sql = branch_sql!("WHERE branch.conversation = ?1 AND branch.name = ?2");
        let found = self.one(sql, params![conversation.0, name.as_str()], rows::branch)?;
        if let Some(branch) = &found {
            *self.met_branch.borrow_mut() = Some((conversation.0, name.clone(), branch.id));
        }
        found.map(|branch| self.moved(branch)).transpose()
    }

    fn branch_by_id(&self, project: &ProjectId, id: &BranchId) -> Result<Option<Branch>> {
        let sql = branch_sql!(
            "JOIN conversation ON conversation.no = branch.conversation \
             JOIN project ON project.no = conversation.project \
             WHERE branch.id = ?1 AND project.id = ?2"
        );
        let found = self.one(sql, params![id.as_bytes(), project.as_str()], rows::branch)?;
        found.map(|branch| self.moved(branch)).transpose()
    }

    fn branches(&self, conversation: ConversationKey) -> Result<Vec<Branch>> {
        let sql = branch_sql!("WHERE branch.conversation = ?1 ORDER BY branch.name");
        let found = self.many(sql, [conversation.0], rows::branch)?;
        found.into_iter().map(|branch| self.moved(branch)).collect()
    }

    fn bookmark(&self, project: &ProjectId, name: &Name) -> Result<Option<Bookmark>> {
        let sql = bookmark_sql!("WHERE project.id = ?1 AND bookmark.name = ?2");
        self.one(sql, [project.as_str(), name.as_str()], rows::bookmark)
    }

    fn bookmarks(
        &self,
        project: &ProjectId,
        after: Option<&Name>,
        limit: usize,
    ) -> Result<Vec<Bookmark>> {
        let sql = bookmark_sql!(
            "WHERE project.id = ?1 AND bookmark.name > ?2 ORDER BY bookmark.name LIMIT ?3"
        );
        let after = after.map_or("", Name::as_str);
        self.many(sql, params![project.as_str(), after, limit_number(limit)], rows::bookmark)
    }

    fn bookmarks_in(&self, conversation: ConversationKey) -> Result<Vec<Bookmark>> {
        let sql = bookmark_sql!("WHERE bookmark.conversation = ?1 ORDER BY bookmark.name");
        self.many(sql, [conversation.0], rows::bookmark)
    }

    fn last_operation(&self, conversation: ConversationKey) -> Result<Option<Operation>> {
        self.last_operation_by(conversation, |no| self.operation_at(no))
    }

    fn log_end(&self, conversation: ConversationKey) -> Result<Option<(u64, OperationHash)>> {
        self.last_operation_by(conversation, |no| {
            let (sql, no) = match self.is_fresh_operation(no) {
                true => {
                    ("SELECT seq, hash FROM fresh WHERE no = ?1", fresh::number_of_operation(no))
                }
                false => ("SELECT seq, hash FROM operation WHERE no = ?1", no),
            };
            self.one(sql, [no], |row| {
                Ok((rows::unsigned(row.get(0)?), OperationHash(Digest(row.get(1)?))))
            })
        })
    }

    fn operation(&self, conversation: ConversationKey, seq: u64) -> Result<Option<Operation>> {
        match self.find_operation(conversation, seq)? {
            Some(no) => self.operation_at(no),
            None => Ok(None),
        }
    }

    fn operations(
        &self,
        conversation: ConversationKey,
        from: u64,
        to: u64,
        visit: &mut dyn FnMut(Operation) -> Result<bool>,
    ) -> Result<()> {
        let sql = operation_sql!(
            "JOIN operation_seq ON operation_seq.operation = operation.no \
             WHERE operation_seq.conversation = ?1 AND operation_seq.seq BETWEEN ?2 AND ?3 \
             ORDER BY operation_seq.seq"
        );
        let (mut next, to) = (rows::number(from), rows::number(to));
        let mut go_on = true;
        let params = [conversation.0, next, to];
        self.visit(sql, params, |row| Ok(rows::operation(row)?), &mut |operation: Operation| {
            next = rows::number(operation.seq) + 1;
            go_on = visit(operation)?;
            Ok(go_on)
        })?;
        for no in self.recent.operations_of(conversation.0, next, to)?.values() {
            if !go_on {
                break;
            }
            if let Some(operation) = self.operation_at(*no)? {
                go_on = visit(operation)?;
            }
        }
        Ok(())
    }

    fn feed(&self, after: FeedPosition, limit: usize) -> Result<Vec<(FeedPosition, Operation)>> {
        let entry =
            |row: &Row<'_>| Ok((FeedPosition(rows::unsigned(row.get(0)?)), rows::operation(row)?));
        let after = rows::number(after.0);
        let mut found = Vec::new();
        if !self.is_fresh_operation(after.saturating_add(1)) {
            let sql = operation_sql!("WHERE operation.no > ?1 ORDER BY operation.no LIMIT ?2");
            found = self.many(sql, [after, limit_number(limit)], entry)?;
        }
        if found.len() < limit {
            // No number is as large as the caller's may be.
            let after = fresh::number_of_operation(after.min(i64::MAX >> 11));
            let sql =
                fresh_operation_sql!("WHERE no > ?1 AND seq IS NOT NULL ORDER BY no LIMIT ?2");
            let rest = [after, limit_number(limit - found.len())];
            found.append(&mut self.many(sql, rest, entry)?);
        }
        Ok(found)
    }

    fn feed_end(&self) -> Result<Option<IndexMark>> {
        let mark = |row: &Row<'_>| {
            let at = FeedPosition(rows::unsigned(row.get(0)?));
            Ok(IndexMark { at, hash: OperationHash(Digest(row.get(1)?)) })
        };
        let sql = "SELECT no >> 10, hash FROM fresh WHERE seq IS NOT NULL ORDER BY no DESC LIMIT 1";
        if let Some(found) = self.one(sql, [], mark)? {
            return Ok(Some(found));
        }
        self.one("SELECT no, hash FROM operation ORDER BY no DESC LIMIT 1", [], mark)
    }

    fn made_by(&self, at: FeedPosition) -> Result<Vec<(TurnLoc, u32)>> {
        let at = rows::number(at.0);
        let list: Option<Option<Vec<u8>>> = if self.is_fresh_operation(at) {
            let no = fresh::number_of_operation(at.min(i64::MAX >> 11));
            self.one("SELECT turns FROM fresh WHERE no = ?1", [no], |row| row.get(0))?
        } else {
            self.one("SELECT turns FROM operation WHERE no = ?1", [at], |row| row.get(0))?
        };
        let list = list.flatten().unwrap_or_default();
        let run = |run: rows::Run| (rows::loc(run.first), u32::try_from(run.count).unwrap_or(0));
        Ok(rows::read_runs(&list).map(run).collect())
    }

    fn idempotent(&self, project: &ProjectId, key: &str) -> Result<Option<Operation>> {
        let Some(project) = self.project_no(project)? else {
            return Ok(None);
        };
        let prefix = rows::key_prefix(key);
        let sql = "SELECT operation FROM idempotency WHERE project = ?1 AND prefix = ?2";
        let mut candidates = self.many(sql, [project, prefix], |row| row.get(0))?;
        candidates.extend(self.recent.operations_of_key(project, prefix)?);
        for no in candidates {
            if let Some(operation) = self.operation_at(no)?
                && operation.idempotency.as_ref().is_some_and(|first| first.key == key)
            {
                return Ok(Some(operation));
            }
        }
        Ok(None)
    }

    fn entry(&self, project: &ProjectId, kind: EntryKind, key: &[u8]) -> Result<Option<String>> {
        self.ledger_entry(project, kind, key)
    }

    fn entries(
        &self,
        project: &ProjectId,
        kind: EntryKind,
        range: &KeyRange,
        limit: usize,
    ) -> Result<Vec<ledger::Entry>> {
        self.ledger_entries(project, kind, range, limit)
    }

    fn piece(&self, project: &ProjectId, source: &SourceId, nth: u32) -> Result<Option<Vec<u8>>> {
        Txn::piece(self, project, source, nth)
    }

    fn totals(&self) -> Result<Totals> {
        let count = |table: &str| -> Result<u64> {
            let sql = format!("SELECT count(*) FROM {table}");
            let rows: i64 = self.connection.query_row(&sql, [], |row| row.get(0))?;
            Ok(rows::unsigned(rows))
        };
        // Turns behind the last batch are counted from the operations that list them.
        let mut turns = count("turn_id")?;
        let sql = "SELECT turns FROM fresh WHERE turns IS NOT NULL";
        let lists = self.many(sql, [], |row| row.get::<_, Vec<u8>>(0))?;
        for list in lists {
            turns += rows::read_runs(&list).map(|run| rows::unsigned(run.count)).sum::<u64>();
        }
        Ok(Totals {
            projects: count("project")?,
            conversations: count("conversation")?,
            turns,
            branches: count("branch")?,
            bookmarks: count("bookmark")?,
            operations: count("operation")? + count("fresh WHERE seq IS NOT NULL")?,
            disk_bytes: self.disk_bytes,
        })
    }
}

impl Write for Txn<'_> {
    fn insert_project(&mut self, project: &Project) -> Result<()> {
        let sql = "INSERT INTO project (id, created_at) VALUES (?1, ?2)";
        self.execute(sql, params![project.id.as_str(), project.created_at.as_millis()])?;
        Ok(())
    }

    fn insert_conversation(&mut self, conversation: &Conversation) -> Result<ConversationKey> {
        let project = self.required_project_no(&conversation.project)?;
        let derived = conversation.derived_from.as_ref();
        let root = conversation.root.as_ref();
        let sql = "INSERT INTO conversation (project, id, root_hash, system_prompt, config, title, \
                   metadata, created_at, derived_from, derived_turn, visibility) \
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)";
        self.execute(
            sql,
            params![
                project,
                conversation.id.as_str(),
                conversation.root_hash.0.0,
                root.and_then(|root| root.system_prompt.as_deref()),
                root.map(|root| root.config.to_canonical()),
                conversation.title,
                conversation.metadata.to_canonical(),
                conversation.created_at.as_millis(),
                derived.map(|from| from.conversation.as_str()),
                derived.and_then(|from| from.turn).map(|turn| *turn.as_bytes()),
                rows::visibility_number(conversation.visibility),
            ],
        )?;
        Ok(ConversationKey(self.connection.last_insert_rowid()))
    }

    fn update_conversation(&mut self, conversation: &Conversation) -> Result<()> {
        let root = conversation.root.as_ref();
        let sql = "UPDATE conversation SET title = ?2, metadata = ?3, visibility = ?4, \
                   system_prompt = ?5, config = ?6 WHERE no = ?1";
        self.change_one(
            "conversation",
            sql,
            params![
                conversation.key.0,
                conversation.title,
                conversation.metadata.to_canonical(),
                rows::visibility_number(conversation.visibility),
                root.and_then(|root| root.system_prompt.as_deref()),
                root.map(|root| root.config.to_canonical()),
            ],
        )
    }

    fn insert_segment(
        &mut self,
        conversation: ConversationKey,
        parent: Option<TurnLoc>,
        base_depth: u32,
    ) -> Result<SegmentNo> {
        let sql = "INSERT INTO segment (conversation, parent, base_depth) VALUES (?1, ?2, ?3)";
        self.execute(sql, params![conversation.0, rows::root_or_place(parent), base_depth])?;
        Ok(SegmentNo(self.connection.last_insert_rowid()))
    }

    fn insert_turn(&mut self, conversation: ConversationKey, turn: &Turn) -> Result<()> {
        let place = rows::place(turn.loc);
        let (body_form, body) = match &turn.content {
            Content::Kept(body) => self.keep_body(place, body)?,
            Content::Purged(digest) => (BodyForm::Purged, digest.0.to_vec().into()),
        };
        let metadata = (!turn.metadata.is_empty()).then(|| turn.metadata.to_json().to_canonical());
        let raw = RawTurn {
            place,
            id: *turn.id.as_bytes(),
            hash: turn.hash.0.0,
            operation: rows::number(turn.operation),
            depth: i64::from(turn.depth),
            form: rows::form(turn.role, body_form, turn.status),
            created_at: turn.created_at.as_millis(),
            body,
            tool_call_id: turn.tool_call_id.clone(),
            metadata,
            origin: rows::origin_bytes(&turn.origin),
        };
        let fresh = self.insert_new_row(&raw)?;
        let (conversation, prefix) = (conversation.0, rows::prefix(&turn.hash.0));
        self.recent.add(Entry::Turn { conversation, id: raw.id, prefix, place, fresh });
        Ok(())
    }

    fn set_metadata(&mut self, loc: TurnLoc, metadata: &Metadata) -> Result<()> {
        let place = rows::place(loc);
        self.bring_to_its_place(place)?;
        let text = (!metadata.is_empty()).then(|| metadata.to_json().to_canonical());
        let sql = "UPDATE turn SET metadata = ?2 WHERE place = ?1";
        self.change_one("metadata", sql, params![place, text])
    }

    fn purge_turn(&mut self, loc: TurnLoc, digest: &Digest) -> Result<()> {
        let place = rows::place(loc);
        self.bring_to_its_place(place)?;
        let form: i64 = self
            .one("SELECT form FROM turn WHERE place = ?1", [place], |row| row.get(0))?
            .ok_or_else(|| StoreError::Contract(format!("no turn at place {place}")))?;
        let form = rows::with_body_form(form, BodyForm::Purged);
        let sql = "UPDATE turn SET form = ?2, body = ?3, metadata = NULL WHERE place = ?1";
        self.change_one("purge", sql, params![place, form, digest.0])?;
        self.execute("DELETE FROM shared_body_holder WHERE place = ?1", [place])?;
        let sql = "DELETE FROM shared_body WHERE NOT EXISTS \
                   (SELECT 1 FROM shared_body_holder WHERE shared_body_holder.body = no)";
        self.execute(sql, [])?;
        Ok(())
    }

    fn insert_split(&mut self, split: &Split) -> Result<()> {
        let sql = "INSERT INTO split (conversation, whole, left_half, right_half, operation) \
                   VALUES (?1, ?2, ?3, ?4, ?5)";
        let places = [split.whole, split.left, split.right].map(rows::place);
        let operation = rows::number(split.operation);
        let conversation = split.conversation.0;
        self.execute(sql, [conversation, places[0], places[1], places[2], operation])?;
        Ok(())
    }

    fn delete_split(&mut self, conversation: ConversationKey, whole: TurnLoc) -> Result<()> {
        let sql = "DELETE FROM split WHERE conversation = ?1 AND whole = ?2";
        self.change_one("split", sql, [conversation.0, rows::place(whole)])
    }

    fn insert_hidden(&mut self, hidden: &Hidden) -> Result<()> {
        let sql = "INSERT INTO hidden (conversation, segment, first, last, operation, hidden_by, \
                   root) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
        self.execute(
            sql,
            params![
                hidden.conversation.0,
                hidden.segment.0,
                hidden.from,
                hidden.to,
                rows::number(hidden.operation),
                rows::hidden_by_number(hidden.by),
                rows::place(hidden.root),
            ],
        )?;
        Ok(())
    }

    fn delete_hidden(&mut self, conversation: ConversationKey, operation: u64) -> Result<()> {
        let sql = "DELETE FROM hidden WHERE conversation = ?1 AND operation = ?2";
        self.execute(sql, [conversation.0, rows::number(operation)])?;
        Ok(())
    }

    fn put_branch(&mut self, branch: &Branch) -> Result<()> {
        let conversation = branch.conversation.0;
        let to = Move {
            branch: *branch.id.as_bytes(),
            tip: rows::root_or_place(branch.tip),
            version: rows::number(branch.version),
        };
        // In the common case the operation that follows says it all.
        if self.has_branch(branch)? {
            self.recent.add_move(conversation, to);
            return Ok(());
        }
        if self.recent.last_move(conversation, to.branch)?.is_some() {
            self.recent.add_move(conversation, to);
        }
        *self.met_branch.borrow_mut() = None;
        let sql = "DELETE FROM branch WHERE conversation = ?1 AND id = ?2";
        self.execute(sql, params![branch.conversation.0, branch.id.as_bytes()])?;
        let sql = "INSERT INTO branch (conversation, name, id, tip, forked_from, created_at, \
                   version) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
        self.execute(
            sql,
            params![
                branch.conversation.0,
                branch.name.as_str(),
                branch.id.as_bytes(),
                rows::root_or_place(branch.tip),
                branch.forked_from.map(|turn| *turn.as_bytes()),
                branch.created_at.as_millis(),
                rows::number(branch.version),
            ],
        )?;
        Ok(())
    }

    fn delete_branch(&mut self, conversation: ConversationKey, id: &BranchId) -> Result<()> {
        let sql = "DELETE FROM branch WHERE conversation = ?1 AND id = ?2";
        *self.met_branch.borrow_mut() = None;
        self.change_one("branch", sql, params![conversation.0, id.as_bytes()])
    }

    fn put_bookmark(&mut self, bookmark: &Bookmark) -> Result<()> {
        let project = self.required_project_no(&bookmark.project)?;
        let sql = "INSERT OR REPLACE INTO bookmark (project, name, conversation, place, created_at) \
                   VALUES (?1, ?2, ?3, ?4, ?5)";
        self.execute(
            sql,
            params![
                project,
                bookmark.name.as_str(),
                bookmark.conversation.0,
                rows::place(bookmark.turn),
                bookmark.created_at.as_millis(),
            ],
        )?;
        Ok(())
    }

    fn delete_bookmark(&mut self, project: &ProjectId, name: &Name) -> Result<()> {
        let project = self.required_project_no(project)?;
        let sql = "DELETE FROM bookmark WHERE project = ?1 AND name = ?2";
        self.change_one("bookmark", sql, params![project, name.as_str()])
    }

    fn insert_operation(&mut self, operation: &Operation) -> Result<FeedPosition> {
        let sql = "INSERT INTO fresh (conversation, seq, kind, actor, at, detail, hash, undone, \
                   key, fingerprint, answer, turns, moves, no) \
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)";
        let idempotency = operation.idempotency.as_ref();
        let no = self.recent.next_operation();
        let moves = self.recent.take_moves(operation.conversation.0);
        self.execute(
            sql,
            params![
                operation.conversation.0,
                rows::number(operation.seq),
                operation.kind,
                operation.actor,
                operation.at.as_millis(),
                rows::detail_bytes(&operation.detail),
                operation.hash.0.0,
                i64::from(operation.undone),
                idempotency.map(|first| first.key.as_str()),
                idempotency.map(|first| first.fingerprint.0),
                idempotency.map(|first| compact::encode(&first.answer)),
                rows::runs_bytes(&self.recent.take_runs()),
                rows::moves_bytes(&moves),
                fresh::number_of_operation(no),
            ],
        )?;
        let (conversation, seq) = (operation.conversation.0, rows::number(operation.seq));
        self.recent.add(Entry::Operation { conversation, seq, no });
        for to in moves {
            self.recent.add(Entry::Moved { conversation, no, to });
        }
        if let Some(first) = idempotency {
            let sql = "SELECT project FROM conversation WHERE no = ?1";
            let project: Option<i64> = self.one(sql, [conversation], |row| row.get(0))?;
            let project = crate::required(project, || format!("conversation {conversation}"))?;
            self.recent.add(Entry::Key { project, prefix: rows::key_prefix(&first.key), no });
        }
        Ok(FeedPosition(rows::unsigned(no)))
    }

    fn set_undone(&mut self, conversation: ConversationKey, seq: u64, undone: bool) -> Result<()> {
        let no = self.operation_no(conversation, seq)?;
        let (sql, no) = match self.is_fresh_operation(no) {
            true => ("UPDATE fresh SET undone = ?2 WHERE no = ?1", fresh::number_of_operation(no)),
            false => ("UPDATE operation SET undone = ?2 WHERE no = ?1", no),
        };
        self.change_one("operation", sql, [no, i64::from(undone)])
    }

    fn purge_operation(&mut self, conversation: ConversationKey, seq: u64) -> Result<()> {
        let no = self.operation_no(conversation, seq)?;
        let operation = crate::required(self.operation_at(no)?, || format!("operation {seq}"))?;
        let (sql, no) = match self.is_fresh_operation(no) {
            true => ("UPDATE fresh SET detail = ?2 WHERE no = ?1", fresh::number_of_operation(no)),
            false => ("UPDATE operation SET detail = ?2 WHERE no = ?1", no),
        };
        let purged = Detail::Purged(operation.detail.digest());
        self.change_one("operation", sql, params![no, rows::detail_bytes(&purged)])
    }

    fn put_entry(
        &mut self,
        project: &ProjectId,
        kind: EntryKind,
        key: &[u8],
        text: &str,
    ) -> Result<()> {
        self.put_ledger_entry(project, kind, key, text)
    }

    fn delete_entry(&mut self, project: &ProjectId, kind: EntryKind, key: &[u8]) -> Result<()> {
        self.delete_ledger_entry(project, kind, key)
    }

    fn insert_piece(
        &mut self,
        project: &ProjectId,
        source: &SourceId,
        nth: u32,
        bytes: &[u8],
    ) -> Result<()> {
        Txn::insert_piece(self, project, source, nth, bytes)
    }

    fn delete_pieces(&mut self, project: &ProjectId, source: &SourceId) -> Result<()> {
        Txn::delete_pieces(self, project, source)
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
