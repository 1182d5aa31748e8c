//! The reading half of a transaction.

use crate::error::StoreErr as _;
use rusqlite::{Row, params};
use tine_core::{
    BranchId, ConversationId, Digest, Name, OperationHash, ProjectId, SourceId, Timestamp, TurnId,
};

use super::super::files;
use super::super::pending_rows;
use super::super::rows;
use super::families::range_sql;
use super::{SqliteTxn, project, sql_limit};
use tine_store::{
    Bookmark, Branch, Content, Conversation, ConversationKey, FeedPosition, Hidden, IndexKey,
    IndexMark, IndexQuery, KeyRange, Operation, Project, Read, Record, RecordKey, RecordQuery,
    Result, SEGMENT_TURNS, Segment, SegmentExtent, SegmentNo, Split, Totals, Turn, TurnLoc,
};

impl Read for SqliteTxn<'_> {
    fn projects(&self) -> Result<Vec<Project>> {
        self.query_all("SELECT id, created_at FROM project ORDER BY id", [], project)
    }

    fn project(&self, id: &ProjectId) -> Result<Option<Project>> {
        let sql = "SELECT id, created_at FROM project WHERE id = ?1";
        self.query_opt(sql, [id.as_str()], project)
    }

    fn conversation(
        &self,
        project: &ProjectId,
        id: &ConversationId,
    ) -> Result<Option<Conversation>> {
        let sql = conversation_sql!("WHERE project.id = ?1 AND conversation.id = ?2");
        Ok(self.query_conversations(sql, [project.as_str(), id.as_str()])?.pop())
    }

    fn conversation_by_key(&self, key: ConversationKey) -> Result<Option<Conversation>> {
        let sql = conversation_sql!("WHERE conversation.no = ?1");
        Ok(self.query_conversations(sql, [key.0])?.pop())
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
        self.query_conversations(sql, params![project.as_str(), after, sql_limit(limit)])
    }

    fn derivatives(&self, project: &ProjectId, of: &ConversationId) -> Result<Vec<Conversation>> {
        let sql = conversation_sql!(
            "WHERE project.id = ?1 AND derived_from = ?2 ORDER BY conversation.no"
        );
        self.query_conversations(sql, [project.as_str(), of.as_str()])
    }

    fn segment(&self, no: SegmentNo) -> Result<Segment> {
        let sql = "SELECT no, conversation, parent, base_depth FROM segment WHERE no = ?1";
        let found = self.query_opt(sql, [no.0], rows::segment)?;
        tine_store::required(found, || format!("segment {}", no.0))
    }

    fn segments(&self, conversation: ConversationKey) -> Result<Vec<SegmentExtent>> {
        let sql = "SELECT no, conversation, parent, base_depth, max( \
                   coalesce((SELECT max(place) FROM turn \
                             WHERE place >= no << 20 AND place < (no + 1) << 20), -1), \
                   coalesce((SELECT first + turns - 1 FROM chunk \
                             WHERE first >= no << 20 AND first < (no + 1) << 20 \
                             ORDER BY first DESC LIMIT 1), -1)) \
                   FROM segment WHERE conversation = ?1 ORDER BY no";
        let stored = self.query_all(sql, [conversation.0], |row| {
            Ok((rows::segment(row)?, row.get::<_, i64>(4)?))
        })?;
        let mut extents = Vec::with_capacity(stored.len());
        for (segment, last) in stored {
            let last = self.last_pending(segment.no, last)?.unwrap_or(last);
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
        self.query_all(sql, [conversation.0, rows::root_or_place(parent)], rows::segment)
    }

    fn forks_from(&self, conversation: ConversationKey, at: TurnLoc) -> Result<Vec<Segment>> {
        let sql = "SELECT no, conversation, parent, base_depth FROM segment \
                   WHERE conversation = ?1 AND parent >= ?2 AND parent < ?3 ORDER BY no";
        let end = TurnLoc { segment: SegmentNo(at.segment.0 + 1), index: 0 };
        self.query_all(sql, [conversation.0, rows::place(at), rows::place(end)], rows::segment)
    }

    fn last_index(&self, segment: SegmentNo) -> Result<u32> {
        let sql = "SELECT max( \
                   coalesce((SELECT max(place) FROM turn \
                             WHERE place >= ?1 << 20 AND place < (?1 + 1) << 20), -1), \
                   coalesce((SELECT first + turns - 1 FROM chunk \
                             WHERE first >= ?1 << 20 AND first < (?1 + 1) << 20 \
                             ORDER BY first DESC LIMIT 1), -1))";
        let stored: i64 = self.query_opt(sql, [segment.0], |row| row.get(0))?.unwrap_or(-1);
        let last = self.last_pending(segment, stored)?.unwrap_or(stored);
        let last = Some(last).filter(|place| *place >= 0);
        let place = tine_store::required(last, || format!("first turn of segment {}", segment.0))?;
        Ok(rows::loc(place).index)
    }

    fn turn(&self, loc: TurnLoc) -> Result<Option<Turn>> {
        let place = rows::place(loc);
        if let Some(turn) = self.pending_turn(place)? {
            return Ok(Some(turn));
        }
        match self.first_turn(turn_sql!("turn", "WHERE place = ?1"), [place])? {
            Some(turn) => Ok(Some(turn)),
            None => self.packed_turn(place),
        }
    }

    fn turn_time(&self, loc: TurnLoc) -> Result<Option<Timestamp>> {
        self.time_at(rows::place(loc))
    }

    fn turns(
        &self,
        segment: SegmentNo,
        from: u32,
        to: u32,
        visit: &mut dyn FnMut(Turn) -> Result<bool>,
    ) -> Result<()> {
        // A larger index would be a place of the next segment.
        let place =
            |index: u32| rows::place(TurnLoc { segment, index: index.min(SEGMENT_TURNS - 1) });
        self.turns_between(place(from), place(to), visit)
    }

    fn find_turn(
        &self,
        project: &ProjectId,
        id: &TurnId,
    ) -> Result<Option<(ConversationKey, TurnLoc)>> {
        let sql = "SELECT place FROM turn_id WHERE prefix = ?1";
        let mut places = self.query_all(sql, [rows::id_prefix(id.as_bytes())], |row| row.get(0))?;
        places.extend(self.pending_index.places_by_id(id.as_bytes())?);
        // The turn itself is checked: other ids may share the prefix, and an entry may be newer than
        // this snapshot.
        let sql = "SELECT conversation.no FROM segment \
                   JOIN conversation ON conversation.no = segment.conversation \
                   JOIN project ON project.no = conversation.project \
                   WHERE segment.no = ?1 >> 20 AND project.id = ?2";
        for place in places {
            let found: Option<i64> =
                self.query_opt(sql, params![place, project.as_str()], |row| row.get(0))?;
            if let Some(conversation) = found
                && self.identity_at(place)?.is_some_and(|(found, _)| found == *id.as_bytes())
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
        let mut places = self.query_all(sql, [conversation.0, from, to], |row| row.get(0))?;
        places.extend(self.pending_index.places_by_hash(conversation.0, from, to)?);
        places.sort_unstable();
        places.dedup();
        let mut found = Vec::new();
        for place in places {
            if let Some((_, hash)) = self.identity_at(place)?
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
        // There is no index for this: it reads every turn, and only erasure needs it.
        let Some(Turn { content: Content::Kept(body), .. }) = self.turn(loc)? else {
            return Ok(Vec::new());
        };
        let mut places = self.places_with_body(&body, limit.saturating_add(1))?;
        places.retain(|place| *place != rows::place(loc));
        places.truncate(limit);
        let sql = "SELECT conversation FROM segment WHERE no = ?1 >> 20";
        let mut found = Vec::with_capacity(places.len());
        for place in places {
            if let Some(conversation) = self.query_opt(sql, [place], |row| row.get(0))? {
                found.push((ConversationKey(conversation), rows::loc(place)));
            }
        }
        Ok(found)
    }

    fn splits(&self, conversation: ConversationKey) -> Result<Vec<Split>> {
        let sql = "SELECT conversation, whole, left_half, right_half, operation FROM split \
                   WHERE conversation = ?1 ORDER BY whole";
        self.query_all(sql, [conversation.0], rows::split)
    }

    fn hidden_in(&self, conversation: ConversationKey, segment: SegmentNo) -> Result<Vec<Hidden>> {
        let sql = "SELECT conversation, segment, first, last, operation, hidden_by, root \
                   FROM hidden WHERE conversation = ?1 AND segment = ?2 ORDER BY first, operation";
        self.query_all(sql, [conversation.0, segment.0], rows::hidden)
    }

    fn hidden(&self, conversation: ConversationKey) -> Result<Vec<Hidden>> {
        let sql = "SELECT conversation, segment, first, last, operation, hidden_by, root \
                   FROM hidden WHERE conversation = ?1 ORDER BY segment, first, operation";
        self.query_all(sql, [conversation.0], rows::hidden)
    }

    fn branch(&self, conversation: ConversationKey, name: &Name) -> Result<Option<Branch>> {
        let sql = branch_sql!("WHERE branch.conversation = ?1 AND branch.name = ?2");
        let found = self.query_opt(sql, params![conversation.0, name.as_str()], rows::branch)?;
        if let Some(branch) = &found {
            *self.cached_branch.borrow_mut() = Some((conversation.0, name.clone(), branch.id));
        }
        found.map(|branch| self.with_pending_move(branch)).transpose()
    }

    fn branch_by_id(&self, project: &ProjectId, id: &BranchId) -> Result<Option<Branch>> {
        let sql = branch_sql!(
            "JOIN conversation ON conversation.no = branch.conversation \
             JOIN project ON project.no = conversation.project \
             WHERE branch.id = ?1 AND project.id = ?2"
        );
        let found = self.query_opt(sql, params![id.as_bytes(), project.as_str()], rows::branch)?;
        found.map(|branch| self.with_pending_move(branch)).transpose()
    }

    fn branches(&self, conversation: ConversationKey) -> Result<Vec<Branch>> {
        let sql = branch_sql!("WHERE branch.conversation = ?1 ORDER BY branch.name");
        let found = self.query_all(sql, [conversation.0], rows::branch)?;
        found.into_iter().map(|branch| self.with_pending_move(branch)).collect()
    }

    fn bookmark(&self, project: &ProjectId, name: &Name) -> Result<Option<Bookmark>> {
        let sql = bookmark_sql!("WHERE project.id = ?1 AND bookmark.name = ?2");
        self.query_opt(sql, [project.as_str(), name.as_str()], rows::bookmark)
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
        self.query_all(sql, params![project.as_str(), after, sql_limit(limit)], rows::bookmark)
    }

    fn bookmarks_in(&self, conversation: ConversationKey) -> Result<Vec<Bookmark>> {
        let sql = bookmark_sql!("WHERE bookmark.conversation = ?1 ORDER BY bookmark.name");
        self.query_all(sql, [conversation.0], rows::bookmark)
    }

    fn last_operation(&self, conversation: ConversationKey) -> Result<Option<Operation>> {
        self.last_operation_by(conversation, |no| self.operation_at(no))
    }

    fn log_end(&self, conversation: ConversationKey) -> Result<Option<(u64, OperationHash)>> {
        self.last_operation_by(conversation, |no| {
            let (sql, no) = match self.is_pending_operation(no) {
                true => (
                    "SELECT seq, hash FROM fresh WHERE no = ?1",
                    pending_rows::operation_row_no(no),
                ),
                false => ("SELECT seq, hash FROM operation WHERE no = ?1", no),
            };
            self.query_opt(sql, [no], |row| {
                Ok((rows::to_u64(row.get(0)?), OperationHash(Digest(row.get(1)?))))
            })
        })
    }

    fn changed_at(&self, conversation: ConversationKey) -> Result<Option<Timestamp>> {
        self.last_operation_by(conversation, |no| {
            let (sql, no) = match self.is_pending_operation(no) {
                true => ("SELECT at FROM fresh WHERE no = ?1", pending_rows::operation_row_no(no)),
                false => ("SELECT at FROM operation WHERE no = ?1", no),
            };
            self.query_opt(sql, [no], |row| Ok(Timestamp::from_millis(row.get(0)?)))
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
        let (mut next, to) = (rows::to_i64(from), rows::to_i64(to));
        let mut proceed = true;
        let params = [conversation.0, next, to];
        self.query_each(
            sql,
            params,
            |row| rows::operation(row).store_err(),
            &mut |operation: Operation| {
                next = rows::to_i64(operation.seq) + 1;
                proceed = visit(operation)?;
                Ok(proceed)
            },
        )?;
        for no in self.pending_index.operations_between(conversation.0, next, to)?.values() {
            if !proceed {
                break;
            }
            if let Some(operation) = self.operation_at(*no)? {
                proceed = visit(operation)?;
            }
        }
        Ok(())
    }

    fn feed(&self, after: FeedPosition, limit: usize) -> Result<Vec<(FeedPosition, Operation)>> {
        let entry =
            |row: &Row<'_>| Ok((FeedPosition(rows::to_u64(row.get(0)?)), rows::operation(row)?));
        let after = rows::to_i64(after.0);
        let mut found = Vec::new();
        if !self.is_pending_operation(after.saturating_add(1)) {
            let sql = operation_sql!("WHERE operation.no > ?1 ORDER BY operation.no LIMIT ?2");
            found = self.query_all(sql, [after, sql_limit(limit)], entry)?;
        }
        if found.len() < limit {
            // The caller's number may be too large to be shifted.
            let after = pending_rows::operation_row_no(after.min(i64::MAX >> 11));
            let sql =
                pending_operation_sql!("WHERE no > ?1 AND seq IS NOT NULL ORDER BY no LIMIT ?2");
            let rest = [after, sql_limit(limit - found.len())];
            found.append(&mut self.query_all(sql, rest, entry)?);
        }
        Ok(found)
    }

    fn feed_end(&self) -> Result<Option<IndexMark>> {
        let mark = |row: &Row<'_>| {
            let at = FeedPosition(rows::to_u64(row.get(0)?));
            Ok(IndexMark { at, hash: OperationHash(Digest(row.get(1)?)) })
        };
        let sql = "SELECT no >> 10, hash FROM fresh WHERE seq IS NOT NULL ORDER BY no DESC LIMIT 1";
        if let Some(found) = self.query_opt(sql, [], mark)? {
            return Ok(Some(found));
        }
        self.query_opt("SELECT no, hash FROM operation ORDER BY no DESC LIMIT 1", [], mark)
    }

    fn made_by(&self, at: FeedPosition) -> Result<Vec<(TurnLoc, u32)>> {
        let at = rows::to_i64(at.0);
        let list: Option<Option<Vec<u8>>> = if self.is_pending_operation(at) {
            let no = pending_rows::operation_row_no(at.min(i64::MAX >> 11));
            self.query_opt("SELECT turns FROM fresh WHERE no = ?1", [no], |row| row.get(0))?
        } else {
            self.query_opt("SELECT turns FROM operation WHERE no = ?1", [at], |row| row.get(0))?
        };
        let list = list.flatten().unwrap_or_default();
        let run =
            |run: rows::PlaceRun| (rows::loc(run.first), u32::try_from(run.count).unwrap_or(0));
        Ok(rows::decode_runs(&list).map(run).collect())
    }

    fn idempotent(&self, project: &ProjectId, key: &str) -> Result<Option<Operation>> {
        let Some(project) = self.project_no(project)? else {
            return Ok(None);
        };
        let prefix = rows::key_prefix(key);
        let sql = "SELECT operation FROM idempotency WHERE project = ?1 AND prefix = ?2";
        let mut candidates = self.query_all(sql, [project, prefix], |row| row.get(0))?;
        candidates.extend(self.pending_index.operations_by_key(project, prefix)?);
        for no in candidates {
            if let Some(operation) = self.operation_at(no)?
                && operation.idempotency.as_ref().is_some_and(|first| first.key == key)
            {
                return Ok(Some(operation));
            }
        }
        Ok(None)
    }

    fn record(&self, project: &ProjectId, key: &RecordKey) -> Result<Option<Record>> {
        match self.project_no(project)? {
            Some(project) => self.record_in(project, key),
            None => Ok(None),
        }
    }

    fn records(
        &self,
        project: &ProjectId,
        query: &RecordQuery,
        limit: usize,
    ) -> Result<Vec<Record>> {
        let Some(project) = self.project_no(project)? else {
            return Ok(Vec::new());
        };
        let sql = range_sql!(query.range, "key, text", "record", "family");
        let KeyRange { from, to, .. } = &query.range;
        let values = params![project, query.of.code(), from, to, sql_limit(limit)];
        self.query_all(sql, values, |row| {
            let key = RecordKey::from_bytes(query.of, row.get_ref(0)?.as_blob()?);
            Ok(Record::verbatim(key, row.get::<_, String>(1)?))
        })
    }

    fn index_keys(
        &self,
        project: &ProjectId,
        query: &IndexQuery,
        limit: usize,
    ) -> Result<Vec<IndexKey>> {
        let Some(project) = self.project_no(project)? else {
            return Ok(Vec::new());
        };
        let sql = range_sql!(query.range, "key", "record_index", "name");
        let KeyRange { from, to, .. } = &query.range;
        let values = params![project, query.of.code(), from, to, sql_limit(limit)];
        self.query_all(sql, values, |row| {
            Ok(IndexKey::from_bytes(query.of, row.get_ref(0)?.as_blob()?))
        })
    }

    fn piece(&self, project: &ProjectId, source: &SourceId, nth: u32) -> Result<Option<Vec<u8>>> {
        let Some(project) = self.project_no(project)? else {
            return Ok(None);
        };
        let sql = "SELECT bytes FROM piece WHERE project = ?1 AND source = ?2 AND nth = ?3";
        self.query_opt(sql, params![project, source.as_bytes(), nth], |row| row.get(0))
    }

    fn totals(&self) -> Result<Totals> {
        let count = |table: &str| -> Result<u64> {
            let sql = format!("SELECT count(*) FROM {table}");
            let rows: i64 = self.connection.query_row(&sql, [], |row| row.get(0)).store_err()?;
            Ok(rows::to_u64(rows))
        };
        // Turns that are not indexed yet are counted from the operations that list them.
        let mut turns = count("turn_id")?;
        let sql = "SELECT turns FROM fresh WHERE turns IS NOT NULL";
        let lists = self.query_all(sql, [], |row| row.get::<_, Vec<u8>>(0))?;
        for list in lists {
            turns += rows::decode_runs(&list).map(|run| rows::to_u64(run.count)).sum::<u64>();
        }
        Ok(Totals {
            projects: count("project")?,
            conversations: count("conversation")?,
            turns,
            branches: count("branch")?,
            bookmarks: count("bookmark")?,
            operations: count("operation")? + count("fresh WHERE seq IS NOT NULL")?,
            disk_bytes: self.folder.map_or(0, files::disk_bytes),
        })
    }
}
