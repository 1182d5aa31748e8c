//! The reading half of a transaction.

use std::collections::{HashMap, VecDeque};

use tine_core::{Body, Timestamp};
use tine_core::{
    BranchId, ConversationId, Digest, Name, OperationHash, ProjectId, SourceId, TurnId,
};
use tine_store::{
    Bookmark, Branch, Content, Conversation, ConversationKey, FeedPosition, Hidden, IndexKey,
    IndexMark, IndexQuery, Operation, Project, Read, Record, RecordKey, RecordQuery, Result,
    Segment, SegmentExtent, SegmentNo, Split, Totals, Turn, TurnLoc, required,
};
use tokio_postgres::Row;

use super::prefetch::{HIDDEN, SEGMENTS_WITH_ENDS, SPLITS};
use super::{PostgresTxn, TxnAccess};
use crate::connection::{SqlCommand, values};
use crate::rows::{self, project_of, select};

/// The number of turns in the first page, and in the largest.
const FIRST_PAGE: i64 = 64;
const LARGEST_PAGE: i64 = 4_096;

const OPERATIONS_PAGE: i64 = 1_024;

const SEGMENT: &str = select!(segment, " FROM segment WHERE project = $1 AND no = $2");

const BODY: &str = "SELECT body FROM body WHERE project = $1 AND digest = $2";

/// The number of large bodies read at once.
const BODIES_AT_ONCE: usize = 16;

/// A row of the table `turn`, with its index: a decoded turn, or a row whose large body is still to
/// be read.
#[expect(clippy::large_enum_variant, reason = "nearly all of them are turns")]
enum TurnRow {
    Turn(i32, Result<Turn>),
    Large(i32, Vec<u8>, Row),
}

impl TurnRow {
    fn decode(row: Row) -> Self {
        let index = row.get(1);
        match rows::shared_digest(&row) {
            None => TurnRow::Turn(index, rows::turn(&row, None)),
            Some(digest) => TurnRow::Large(index, digest, row),
        }
    }

    fn index(&self) -> i32 {
        let (TurnRow::Turn(index, _) | TurnRow::Large(index, _, _)) = self;
        *index
    }
}

impl PostgresTxn<'_> {
    pub(super) fn turn_of(&self, row: &Row) -> Result<Turn> {
        let shared = match rows::shared_digest(row) {
            None => None,
            Some(digest) => {
                let project = project_of(row.get(0));
                let body = self.query_opt(BODY, values![project, digest])?;
                Some(required(body, || "a shared body".to_owned())?.get(0))
            }
        };
        rows::turn(row, shared)
    }

    /// Runs a query about a conversation without a limit.
    fn query_all(&self, sql: &'static str, conversation: ConversationKey) -> Result<Vec<Row>> {
        self.query(sql, values![project_of(conversation.0), conversation.0, i64::MAX])
    }

    /// Reads a large body and those of the next turns that have one.
    fn bodies(
        &self,
        project: i32,
        first: &[u8],
        next: &VecDeque<TurnRow>,
    ) -> Result<HashMap<Vec<u8>, Vec<u8>>> {
        const SQL: &str =
            "SELECT digest, body FROM body WHERE project = $1 AND digest = ANY ($2::bytea[])";
        let large = next.iter().filter_map(|it| match it {
            TurnRow::Turn(..) => None,
            TurnRow::Large(_, digest, _) => Some(digest.clone()),
        });
        let wanted: Vec<Vec<u8>> =
            std::iter::once(first.to_vec()).chain(large).take(BODIES_AT_ONCE).collect();
        let rows = self.query(SQL, values![project, wanted])?;
        Ok(rows.iter().map(|row| (row.get(0), row.get(1))).collect())
    }

    /// Numbers committed operations, so that the feed holds everything that was acknowledged. If the
    /// transaction has already begun and would not see the numbers, it is restarted: what is read
    /// from then on may be of a later snapshot, never of an earlier one.
    fn catch_up_with_feed(&self) -> Result<()> {
        if self.access == TxnAccess::Write {
            return Ok(());
        }
        if self.begun.get() {
            let unnumbered = self.query_opt("SELECT EXISTS (SELECT FROM unfed)", vec![])?;
            if !unnumbered.is_some_and(|row| row.get(0)) {
                return Ok(());
            }
            self.query("COMMIT", vec![])?;
            self.begun.set(false);
            self.prefetch.clear();
        }
        self.record_failure(self.context.number_feed())
    }

    /// Visits the turns at locations, with their conversations, in any order.
    pub(crate) fn turns_at(
        &self,
        project: i32,
        locs: &[TurnLoc],
        visit: &mut dyn FnMut(ConversationKey, Turn),
    ) -> Result<()> {
        for chunk in locs.chunks(LARGEST_PAGE as usize / 4) {
            for row in self.rows_at(project, chunk)? {
                visit(rows::turn_conversation(&row), self.turn_of(&row)?);
            }
        }
        Ok(())
    }

    /// Returns the rows of the turns at locations, in any order.
    pub(super) fn rows_at(&self, project: i32, locs: &[TurnLoc]) -> Result<Vec<Row>> {
        const SQL: &str = select!(
            turn,
            " FROM unnest($2::int8[], $3::int4[]) AS wanted (segment, index) \
             JOIN turn ON turn.project = $1 AND turn.segment = wanted.segment \
             AND turn.index = wanted.index"
        );
        let (segments, indices): (Vec<i64>, Vec<i32>) =
            locs.iter().map(|loc| rows::loc_columns(Some(*loc))).unzip();
        self.query(SQL, values![project, segments, indices])
    }

    /// Returns conversation and number of operations that are missing from the feed.
    pub(crate) fn missing_from_feed(&self) -> Result<Vec<(i64, i64)>> {
        let sql = "SELECT conversation, seq FROM operation WHERE NOT EXISTS \
                   (SELECT FROM feed WHERE feed.project = operation.project \
                    AND feed.conversation = operation.conversation AND feed.seq = operation.seq) \
                   AND NOT EXISTS \
                   (SELECT FROM unfed WHERE unfed.project = operation.project \
                    AND unfed.conversation = operation.conversation \
                    AND unfed.seq = operation.seq) LIMIT 1000";
        Ok(self.query(sql, vec![])?.iter().map(|row| (row.get(0), row.get(1))).collect())
    }

    fn conversation_of(&self, row: Option<Row>, project: i32) -> Result<Option<Conversation>> {
        let Some(row) = row else { return Ok(None) };
        let id = required(self.project_id(project)?, || format!("project {project}"))?;
        rows::conversation(&row, &id).map(Some)
    }

    /// Returns the operations of one project that rows of the feed name, with their positions.
    fn operations_at(
        &self,
        project: i32,
        wanted: &[Row],
    ) -> Result<Vec<(FeedPosition, Operation)>> {
        const SQL: &str = select!(
            operation,
            ", operation.turns, wanted.no \
             FROM unnest($2::int8[], $3::int8[], $4::int8[]) AS wanted (no, conversation, seq) \
             JOIN operation ON operation.project = $1 \
             AND operation.conversation = wanted.conversation AND operation.seq = wanted.seq \
             ORDER BY wanted.no"
        );
        let column = |nth: usize| wanted.iter().map(|row| row.get(nth)).collect::<Vec<i64>>();
        let rows = self.query(SQL, values![project, column(0), column(2), column(3)])?;
        let mut made = self.feed_turns.borrow_mut();
        let each = rows.iter().map(|row| {
            let at = FeedPosition(rows::to_u64(row.get(13)));
            let turns: Option<Vec<u8>> = row.get(12);
            made.insert(at, turns.map(|turns| rows::decode_runs(&turns)).unwrap_or_default());
            Ok((at, rows::operation(row)?))
        });
        each.collect()
    }

    fn operation_by(&self, rows: Vec<Row>) -> Result<Option<Operation>> {
        rows.first().map(rows::operation).transpose()
    }
}

impl Read for PostgresTxn<'_> {
    fn projects(&self) -> Result<Vec<Project>> {
        let rows = self.query("SELECT id, created_at FROM project ORDER BY id", vec![])?;
        let each = rows.iter().map(|row| Project {
            id: ProjectId::from_stored(row.get::<_, String>(0)),
            created_at: Timestamp::from_millis(row.get(1)),
        });
        Ok(each.collect())
    }

    fn project(&self, id: &ProjectId) -> Result<Option<Project>> {
        let sql = "SELECT created_at FROM project WHERE id = $1";
        let found = self.query_opt(sql, values![id.as_str().to_owned()])?;
        Ok(found
            .map(|row| Project { id: id.clone(), created_at: Timestamp::from_millis(row.get(0)) }))
    }

    fn conversation(
        &self,
        project: &ProjectId,
        id: &ConversationId,
    ) -> Result<Option<Conversation>> {
        const SQL: &str =
            select!(conversation, " FROM conversation WHERE project = $1 AND id = $2");
        let Some(no) = self.project_no(project)? else { return Ok(None) };
        let row = self.query_opt(SQL, values![no, id.as_str().to_owned()])?;
        row.map(|row| rows::conversation(&row, project)).transpose()
    }

    fn conversation_by_key(&self, key: ConversationKey) -> Result<Option<Conversation>> {
        const SQL: &str =
            select!(conversation, " FROM conversation WHERE project = $1 AND no = $2");
        let project = project_of(key.0);
        let command = SqlCommand::new(SQL, values![project, key.0]);
        let row = self.query_with_shape(key, command)?.into_iter().next();
        self.conversation_of(row, project)
    }

    fn conversations(
        &self,
        project: &ProjectId,
        after: Option<ConversationKey>,
        limit: usize,
    ) -> Result<Vec<Conversation>> {
        const SQL: &str = select!(
            conversation,
            " FROM conversation WHERE project = $1 AND no > $2 ORDER BY no LIMIT $3"
        );
        let Some(no) = self.project_no(project)? else { return Ok(Vec::new()) };
        let after = after.map_or(0, |key| key.0);
        let rows = self.query(SQL, values![no, after, rows::sql_limit(limit)])?;
        rows.iter().map(|row| rows::conversation(row, project)).collect()
    }

    fn derivatives(&self, project: &ProjectId, of: &ConversationId) -> Result<Vec<Conversation>> {
        const SQL: &str = select!(
            conversation,
            " FROM conversation WHERE project = $1 AND derived_from = $2 ORDER BY no"
        );
        let Some(no) = self.project_no(project)? else { return Ok(Vec::new()) };
        let rows = self.query(SQL, values![no, of.as_str().to_owned()])?;
        rows.iter().map(|row| rows::conversation(row, project)).collect()
    }

    fn segment(&self, no: SegmentNo) -> Result<Segment> {
        let row = self.query_opt(SEGMENT, values![project_of(no.0), no.0])?;
        required(row.as_ref().map(rows::segment), || format!("segment {}", no.0))
    }

    fn segments(&self, conversation: ConversationKey) -> Result<Vec<SegmentExtent>> {
        let rows = self.query_all(SEGMENTS_WITH_ENDS, conversation)?;
        let each = rows.iter().map(|row| {
            let segment = rows::segment(row);
            let last: Option<i32> = row.get(5);
            let last = required(last, || format!("first turn of segment {}", segment.no.0))?;
            Ok(SegmentExtent { segment, turns: rows::loc(0, last).index + 1 })
        });
        each.collect()
    }

    fn forks(
        &self,
        conversation: ConversationKey,
        parent: Option<TurnLoc>,
    ) -> Result<Vec<Segment>> {
        let sql = select!(
            segment,
            " FROM segment WHERE project = $1 AND conversation = $2 AND parent_segment = $3 \
             AND parent_index = $4 ORDER BY no"
        );
        let cached = self.segments_where(conversation, |segment| segment.parent == parent)?;
        if let Some(cached) = cached {
            return Ok(cached);
        }
        let (segment, index) = rows::loc_columns(parent);
        let project = project_of(conversation.0);
        let rows = self.query(sql, values![project, conversation.0, segment, index])?;
        Ok(rows.iter().map(rows::segment).collect())
    }

    fn forks_from(&self, conversation: ConversationKey, at: TurnLoc) -> Result<Vec<Segment>> {
        let sql = select!(
            segment,
            " FROM segment WHERE project = $1 AND conversation = $2 AND parent_segment = $3 \
             AND parent_index >= $4 ORDER BY no"
        );
        let (segment, index) = rows::loc_columns(Some(at));
        let project = project_of(conversation.0);
        let rows = self.query(sql, values![project, conversation.0, segment, index])?;
        Ok(rows.iter().map(rows::segment).collect())
    }

    fn last_index(&self, segment: SegmentNo) -> Result<u32> {
        if let Some(last) = self.prefetch.last_index(segment) {
            return Ok(last);
        }
        let sql = "SELECT index FROM turn WHERE project = $1 AND segment = $2 \
                   ORDER BY index DESC LIMIT 1";
        let row = self.query_opt(sql, values![project_of(segment.0), segment.0])?;
        let last = row.map(|row| rows::loc(0, row.get(0)).index);
        required(last, || format!("first turn of segment {}", segment.0))
    }

    fn turn(&self, loc: TurnLoc) -> Result<Option<Turn>> {
        self.read_turn(loc)
    }

    fn turns(
        &self,
        segment: SegmentNo,
        from: u32,
        to: u32,
        visit: &mut dyn FnMut(Turn) -> Result<bool>,
    ) -> Result<()> {
        const SQL: &str = select!(
            turn,
            " FROM turn WHERE project = $1 AND segment = $2 AND index BETWEEN $3 AND $4 \
             ORDER BY index LIMIT $5"
        );
        if let Some(turns) = self.prefetch.turns(segment, from, to) {
            for turn in turns {
                if !visit(turn)? {
                    break;
                }
            }
            return Ok(());
        }
        let (mut from, to) = (rows::to_i32(from), rows::to_i32(to));
        let project = project_of(segment.0);
        // A bounded range is read at once; an unbounded read may stop early, so it starts small.
        let mut page = match i64::from(to) - i64::from(from) {
            wanted if wanted < LARGEST_PAGE => LARGEST_PAGE,
            _ => FIRST_PAGE,
        };
        while from <= to {
            let command = SqlCommand::new(SQL, values![project, segment.0, from, to, page]);
            let found =
                self.query_mapped(vec![command], TurnRow::decode)?.pop().unwrap_or_default();
            let (many, last) = (found.len() as i64, found.last().map(TurnRow::index));
            let mut bodies = HashMap::new();
            let mut found = VecDeque::from(found);
            while let Some(next) = found.pop_front() {
                let turn = match next {
                    TurnRow::Turn(_, turn) => turn?,
                    TurnRow::Large(_, digest, row) => {
                        if !bodies.contains_key(&digest) {
                            bodies = self.bodies(project, &digest, &found)?;
                        }
                        let body = bodies.get(&digest).cloned();
                        rows::turn(&row, Some(required(body, || "a shared body".to_owned())?))?
                    }
                };
                if !visit(turn)? {
                    return Ok(());
                }
            }
            match last {
                Some(last) if many == page => from = last + 1,
                _ => break,
            }
            page = (page * 8).min(LARGEST_PAGE);
        }
        Ok(())
    }

    fn find_turn(
        &self,
        project: &ProjectId,
        id: &TurnId,
    ) -> Result<Option<(ConversationKey, TurnLoc)>> {
        const SQL: &str = select!(turn, " FROM turn WHERE project = $1 AND id = $2");
        let Some(no) = self.project_no(project)? else { return Ok(None) };
        let Some(row) = self.query_opt(SQL, values![no, id.as_bytes().to_vec()])? else {
            return Ok(None);
        };
        // The turn is usually read next; damage is reported then.
        if rows::shared_digest(&row).is_none()
            && let Ok(turn) = rows::turn(&row, None)
        {
            self.cache_turn(turn);
        }
        let conversation = rows::turn_conversation(&row);
        self.note_found_turn(conversation);
        Ok(Some((conversation, rows::loc(row.get(0), row.get(1)))))
    }

    fn find_hashes(
        &self,
        conversation: ConversationKey,
        low: &Digest,
        high: &Digest,
        limit: usize,
    ) -> Result<Vec<TurnLoc>> {
        let sql = "SELECT segment, index FROM turn WHERE project = $1 AND conversation = $2 \
                   AND hash BETWEEN $3 AND $4 ORDER BY hash LIMIT $5";
        let (project, limit) = (project_of(conversation.0), rows::sql_limit(limit));
        let (low, high) = (low.0.to_vec(), high.0.to_vec());
        let rows = self.query(sql, values![project, conversation.0, low, high, limit])?;
        Ok(rows.iter().map(|row| rows::loc(row.get(0), row.get(1))).collect())
    }

    fn same_content(&self, loc: TurnLoc, limit: usize) -> Result<Vec<(ConversationKey, TurnLoc)>> {
        // There is no index for this: it reads every turn, and only erasure needs it.
        let sql = "SELECT conversation, segment, index FROM turn \
                   WHERE (body = $1 OR shared = $2) AND form & $3 = $4 \
                   AND (segment, index) <> ($5, $6) ORDER BY segment, index LIMIT $7";
        let Some(Turn { content: Content::Kept(body), .. }) = self.turn(loc)? else {
            return Ok(Vec::new());
        };
        let (kind, bytes) = match &body {
            Body::Text(text) => (rows::BodyKind::Text, text.as_bytes()),
            Body::Blocks(blocks) => (rows::BodyKind::Blocks, blocks.as_bytes()),
        };
        let kind = (kind as i16) << 2;
        let digest = Digest::of(bytes).0.to_vec();
        let (segment, index) = rows::loc_columns(Some(loc));
        let (bytes, mask, limit) = (bytes.to_vec(), rows::BODY_KIND_MASK, rows::sql_limit(limit));
        let rows = self.query(sql, values![bytes, digest, mask, kind, segment, index, limit])?;
        let each = rows.iter();
        Ok(each
            .map(|row| (ConversationKey(row.get(0)), rows::loc(row.get(1), row.get(2))))
            .collect())
    }

    fn splits(&self, conversation: ConversationKey) -> Result<Vec<Split>> {
        if let Some(cached) = self.cached_splits(conversation)? {
            return Ok(cached);
        }
        let rows = self.query_all(SPLITS, conversation)?;
        Ok(rows.iter().map(rows::split).collect())
    }

    fn hidden_in(&self, conversation: ConversationKey, segment: SegmentNo) -> Result<Vec<Hidden>> {
        if let Some(cached) = self.hidden_where(conversation, |it| it.segment == segment)? {
            return Ok(cached);
        }
        let sql = select!(
            hidden,
            " FROM hidden WHERE project = $1 AND conversation = $2 AND segment = $3 \
             ORDER BY first, operation"
        );
        let project = project_of(conversation.0);
        let rows = self.query(sql, values![project, conversation.0, segment.0])?;
        rows.iter().map(rows::hidden).collect()
    }

    fn hidden(&self, conversation: ConversationKey) -> Result<Vec<Hidden>> {
        if let Some(cached) = self.hidden_where(conversation, |_| true)? {
            return Ok(cached);
        }
        let rows = self.query_all(HIDDEN, conversation)?;
        rows.iter().map(rows::hidden).collect()
    }

    fn branch(&self, conversation: ConversationKey, name: &Name) -> Result<Option<Branch>> {
        const SQL: &str =
            select!(branch, " FROM branch WHERE project = $1 AND conversation = $2 AND name = $3");
        let (project, name) = (project_of(conversation.0), name.as_str().to_owned());
        let row = self.query_opt(SQL, values![project, conversation.0, name])?;
        row.as_ref().map(rows::branch).transpose()
    }

    fn branch_by_id(&self, project: &ProjectId, id: &BranchId) -> Result<Option<Branch>> {
        const SQL: &str = select!(branch, " FROM branch WHERE project = $1 AND id = $2 LIMIT 1");
        let Some(no) = self.project_no(project)? else { return Ok(None) };
        let row = self.query_opt(SQL, values![no, id.as_bytes().to_vec()])?;
        row.as_ref().map(rows::branch).transpose()
    }

    fn branches(&self, conversation: ConversationKey) -> Result<Vec<Branch>> {
        const SQL: &str =
            select!(branch, " FROM branch WHERE project = $1 AND conversation = $2 ORDER BY name");
        let rows = self.query(SQL, values![project_of(conversation.0), conversation.0])?;
        rows.iter().map(rows::branch).collect()
    }

    fn bookmark(&self, project: &ProjectId, name: &Name) -> Result<Option<Bookmark>> {
        let sql = select!(bookmark, " FROM bookmark WHERE project = $1 AND name = $2");
        let Some(no) = self.project_no(project)? else { return Ok(None) };
        let row = self.query_opt(sql, values![no, name.as_str().to_owned()])?;
        Ok(row.map(|row| rows::bookmark(&row, project)))
    }

    fn bookmarks(
        &self,
        project: &ProjectId,
        after: Option<&Name>,
        limit: usize,
    ) -> Result<Vec<Bookmark>> {
        let sql = select!(
            bookmark,
            " FROM bookmark WHERE project = $1 AND name > $2 ORDER BY name LIMIT $3"
        );
        let Some(no) = self.project_no(project)? else { return Ok(Vec::new()) };
        // Names are not empty.
        let after = after.map_or("", Name::as_str).to_owned();
        let rows = self.query(sql, values![no, after, rows::sql_limit(limit)])?;
        Ok(rows.iter().map(|row| rows::bookmark(row, project)).collect())
    }

    fn bookmarks_in(&self, conversation: ConversationKey) -> Result<Vec<Bookmark>> {
        let sql = select!(
            bookmark,
            " FROM bookmark WHERE project = $1 AND conversation = $2 ORDER BY name"
        );
        let no = project_of(conversation.0);
        let Some(project) = self.project_id(no)? else { return Ok(Vec::new()) };
        let rows = self.query(sql, values![no, conversation.0])?;
        Ok(rows.iter().map(|row| rows::bookmark(row, &project)).collect())
    }

    fn last_operation(&self, conversation: ConversationKey) -> Result<Option<Operation>> {
        const SQL: &str = select!(
            operation,
            " FROM operation WHERE project = $1 AND conversation = $2 ORDER BY seq DESC LIMIT 1"
        );
        self.operation_by(self.query(SQL, values![project_of(conversation.0), conversation.0])?)
    }

    fn log_end(&self, conversation: ConversationKey) -> Result<Option<(u64, OperationHash)>> {
        let sql = "SELECT seq, hash FROM operation WHERE project = $1 AND conversation = $2 \
                   ORDER BY seq DESC LIMIT 1";
        let row = self.query_opt(sql, values![project_of(conversation.0), conversation.0])?;
        row.map(|row| Ok((rows::to_u64(row.get(0)), rows::operation_hash(row.get(1))?))).transpose()
    }

    fn changed_at(&self, conversation: ConversationKey) -> Result<Option<Timestamp>> {
        let sql = "SELECT at FROM operation WHERE project = $1 AND conversation = $2 \
                   ORDER BY seq DESC LIMIT 1";
        let row = self.query_opt(sql, values![project_of(conversation.0), conversation.0])?;
        Ok(row.map(|row| Timestamp::from_millis(row.get(0))))
    }

    fn operation(&self, conversation: ConversationKey, seq: u64) -> Result<Option<Operation>> {
        const SQL: &str = select!(
            operation,
            " FROM operation WHERE project = $1 AND conversation = $2 AND seq = $3"
        );
        let project = project_of(conversation.0);
        self.operation_by(self.query(SQL, values![project, conversation.0, rows::to_i64(seq)])?)
    }

    fn operations(
        &self,
        conversation: ConversationKey,
        from: u64,
        to: u64,
        visit: &mut dyn FnMut(Operation) -> Result<bool>,
    ) -> Result<()> {
        const SQL: &str = select!(
            operation,
            " FROM operation WHERE project = $1 AND conversation = $2 AND seq BETWEEN $3 AND $4 \
             ORDER BY seq LIMIT $5"
        );
        let (mut from, to) = (rows::to_i64(from), rows::to_i64(to));
        let project = project_of(conversation.0);
        while from <= to {
            let rows =
                self.query(SQL, values![project, conversation.0, from, to, OPERATIONS_PAGE])?;
            for row in &rows {
                if !visit(rows::operation(row)?)? {
                    return Ok(());
                }
            }
            match rows.last() {
                Some(last) if rows.len() as i64 == OPERATIONS_PAGE => {
                    from = last.get::<_, i64>(1) + 1;
                }
                _ => break,
            }
        }
        Ok(())
    }

    fn feed(&self, after: FeedPosition, limit: usize) -> Result<Vec<(FeedPosition, Operation)>> {
        self.catch_up_with_feed()?;
        let sql = "SELECT no, project, conversation, seq FROM feed WHERE no > $1 \
                   ORDER BY no LIMIT $2";
        let rows = self.query(sql, values![rows::to_i64(after.0), rows::sql_limit(limit)])?;
        let mut fed = Vec::with_capacity(rows.len());
        let mut wanted = rows.as_slice();
        while let Some(first) = wanted.first() {
            let project: i32 = first.get(1);
            let same = wanted.iter().take_while(|row| row.get::<_, i32>(1) == project).count();
            let (page, tail) = wanted.split_at(same.min(OPERATIONS_PAGE as usize));
            fed.append(&mut self.operations_at(project, page)?);
            wanted = tail;
        }
        Ok(fed)
    }

    fn feed_end(&self) -> Result<Option<IndexMark>> {
        self.catch_up_with_feed()?;
        let sql = "SELECT no, project, conversation, seq FROM feed ORDER BY no DESC LIMIT 1";
        let Some(row) = self.query_opt(sql, vec![])? else { return Ok(None) };
        let fed = self.operations_at(row.get(1), std::slice::from_ref(&row))?;
        Ok(fed.first().map(|(at, operation)| IndexMark { at: *at, hash: operation.hash }))
    }

    fn made_by(&self, at: FeedPosition) -> Result<Vec<(TurnLoc, u32)>> {
        let cached = self.feed_turns.borrow().get(&at).cloned();
        if let Some(runs) = cached {
            self.prefetch_made_turns(at)?;
            return Ok(runs);
        }
        let sql = "SELECT no, project, conversation, seq FROM feed WHERE no = $1";
        let Some(row) = self.query_opt(sql, values![rows::to_i64(at.0)])? else {
            return Ok(Vec::new());
        };
        self.operations_at(row.get(1), std::slice::from_ref(&row))?;
        Ok(self.feed_turns.borrow().get(&at).cloned().unwrap_or_default())
    }

    fn idempotent(&self, project: &ProjectId, key: &str) -> Result<Option<Operation>> {
        const SQL: &str = select!(operation, " FROM operation WHERE project = $1 AND key = $2");
        let Some(no) = self.project_no(project)? else { return Ok(None) };
        self.operation_by(self.query(SQL, values![no, key.to_owned()])?)
    }

    fn record(&self, project: &ProjectId, key: &RecordKey) -> Result<Option<Record>> {
        let Some(no) = self.project_no(project)? else { return Ok(None) };
        self.record_in(no, key)
    }

    fn records(
        &self,
        project: &ProjectId,
        query: &RecordQuery,
        limit: usize,
    ) -> Result<Vec<Record>> {
        let Some(no) = self.project_no(project)? else { return Ok(Vec::new()) };
        self.records_in(no, query, limit)
    }

    fn index_keys(
        &self,
        project: &ProjectId,
        query: &IndexQuery,
        limit: usize,
    ) -> Result<Vec<IndexKey>> {
        let Some(no) = self.project_no(project)? else { return Ok(Vec::new()) };
        self.index_keys_in(no, query, limit)
    }

    fn piece(&self, project: &ProjectId, source: &SourceId, nth: u32) -> Result<Option<Vec<u8>>> {
        let sql = "SELECT bytes FROM piece WHERE project = $1 AND source = $2 AND nth = $3";
        let Some(no) = self.project_no(project)? else { return Ok(None) };
        let row =
            self.query_opt(sql, values![no, source.as_bytes().to_vec(), rows::to_i32(nth)])?;
        Ok(row.map(|row| row.get(0)))
    }

    fn totals(&self) -> Result<Totals> {
        let sql = "SELECT (SELECT count(*) FROM project), (SELECT count(*) FROM conversation), \
                   (SELECT count(*) FROM turn), (SELECT count(*) FROM branch), \
                   (SELECT count(*) FROM bookmark), (SELECT count(*) FROM operation), \
                   (SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::int8 FROM pg_class \
                    WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r')";
        let row = required(self.query_opt(sql, vec![])?, || "totals".to_owned())?;
        let count = |column: usize| rows::to_u64(row.get(column));
        Ok(Totals {
            projects: count(0),
            conversations: count(1),
            turns: count(2),
            branches: count(3),
            bookmarks: count(4),
            operations: count(5),
            disk_bytes: count(6),
        })
    }
}
