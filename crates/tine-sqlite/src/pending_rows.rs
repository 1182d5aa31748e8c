//! Pending rows: new turns and operations in write order, before they reach their own tables.
//!
//! The table `turn` is clustered by path: turns appended to sixty conversations lie on sixty pages,
//! and each append would write one of them to the log. The operation and the branch whose tip moves
//! would add two more. So all of them go to the table `fresh` first, whose last page takes a turn,
//! its operation and, in the operation's row, the moved branches. When the pending index is flushed
//! ([`super::pending_index`]), the rows move to their own tables.
//!
//! Operations after the last indexed one are in `fresh`, all others in `operation`. A turn is in
//! exactly one of `turn`, `fresh` and the chunks, at any crash point, since it moves in one
//! transaction. Its row number in `fresh` follows from the operation that made it. An outdated row
//! number leads to no row, or to a row of another place, and is skipped.
//!
//! A job that writes many turns fills pages by itself: only its first turns go to `fresh`.

use crate::error::{StoreErr as _, execute};
use std::cmp::Reverse;

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{ToSql, params, params_from_iter};

use super::chunk_codec::RawTurn;
use super::rows;
use super::txn::SqliteTxn;
use tine_store::{Result, SegmentNo, Turn, TurnLoc};

/// The maximum number of turns of one job in `fresh`.
const MAX_TURNS_PER_JOB: usize = 32;

/// Row numbers reserved for an operation: its turns count from 0, the operation is last.
const ROWS_PER_OPERATION: i64 = 1 << 10;

/// Returns the row number of the turn with an index within its operation.
pub(super) fn turn_row_no(operation: i64, index: i64) -> i64 {
    operation * ROWS_PER_OPERATION + index
}

pub(super) fn operation_row_no(operation: i64) -> i64 {
    operation * ROWS_PER_OPERATION + ROWS_PER_OPERATION - 1
}

/// Returns the last complete operation, given the last row number in `fresh`.
pub(super) fn last_complete_operation(row_no: i64) -> i64 {
    (row_no + 1) / ROWS_PER_OPERATION - 1
}

/// The columns of a turn, in the order that both tables share, and further values.
macro_rules! turn_params {
    ($turn:ident $(, $more:expr)*) => {
        params![
            $turn.place,
            $turn.id,
            $turn.hash,
            $turn.operation,
            $turn.depth,
            $turn.form,
            rows::stored_time(&$turn.id, $turn.created_at),
            $turn.body,
            $turn.tool_call_id,
            $turn.metadata,
            $turn.origin,
            $($more,)*
        ]
    };
}

/// Moves all pending turns to the table `turn`.
pub(super) fn flush_turns(connection: &rusqlite::Connection) -> Result<()> {
    while let Some(batch) = FlushBatch::take(connection)? {
        let sql = "DELETE FROM fresh WHERE place IS NOT NULL AND no <= ?1";
        execute(connection, sql, [batch.last])?;
        batch.flush(connection)?;
    }
    Ok(())
}

/// Moves all pending rows to their tables.
pub(super) fn flush(connection: &rusqlite::Connection) -> Result<()> {
    let sql = "INSERT INTO operation (no, conversation, seq, kind, actor, at, detail, hash, \
               undone, key, fingerprint, answer, turns) \
               SELECT no >> 10, conversation, seq, kind, actor, at, detail, hash, undone, key, \
               fingerprint, answer, turns FROM fresh WHERE seq IS NOT NULL ORDER BY no";
    execute(connection, sql, [])?;
    while let Some(batch) = FlushBatch::take(connection)? {
        // Without a condition SQLite empties the table at once.
        match batch.is_last {
            true => execute(connection, "DELETE FROM fresh", [])?,
            false => execute(connection, "DELETE FROM fresh WHERE no <= ?1", [batch.last])?,
        };
        batch.flush(connection)?;
    }
    execute(connection, "DELETE FROM fresh", [])?;
    Ok(())
}

/// The size at which a flush batch ends; its last turn may exceed it.
const FLUSH_BATCH_BYTES: usize = 32 << 20;

/// Pending turns read into memory. They are deleted before they are inserted again, so that their
/// pages are reused and the file does not grow.
struct FlushBatch {
    turns: Vec<(i64, [RawColumn; 11])>,
    /// The row number of the last turn.
    last: i64,
    /// Whether no pending turn follows.
    is_last: bool,
}

impl FlushBatch {
    fn take(connection: &rusqlite::Connection) -> Result<Option<Self>> {
        let sql = "SELECT place, id, hash, operation, depth, form, created_at, body, \
                   tool_call_id, metadata, origin, no FROM fresh \
                   WHERE place IS NOT NULL ORDER BY no";
        let mut statement = connection.prepare_cached(sql).store_err()?;
        let mut rows = statement.query([]).store_err()?;
        let mut batch = FlushBatch { turns: Vec::new(), last: 0, is_last: false };
        let mut bytes = 0;
        while bytes < FLUSH_BATCH_BYTES {
            let Some(row) = rows.next().store_err()? else {
                batch.is_last = true;
                break;
            };
            let mut columns = [const { RawColumn::Null }; 11];
            for (index, column) in columns.iter_mut().enumerate() {
                *column = row.get_ref(index).store_err()?.into();
                bytes += column.bytes();
            }
            batch.last = row.get(11).store_err()?;
            batch.turns.push((row.get(0).store_err()?, columns));
        }
        Ok((!batch.turns.is_empty()).then_some(batch))
    }

    /// Inserts the turns into the table `turn`. With the last segment first, SQLite leaves 3 % of
    /// the pages empty, in the opposite order 5 % (docs/performance.md).
    fn flush(mut self, connection: &rusqlite::Connection) -> Result<()> {
        let order = |(place, _): &(i64, _)| {
            let loc = rows::loc(*place);
            (Reverse(loc.segment.0), loc.index)
        };
        self.turns.sort_unstable_by_key(order);
        let mut statement = connection.prepare_cached(INSERT_TURN).store_err()?;
        for (_, columns) in &self.turns {
            statement.execute(params_from_iter(columns)).store_err()?;
        }
        Ok(())
    }
}

/// A column as stored, damaged or not: it is copied without being interpreted.
enum RawColumn {
    Null,
    Integer(i64),
    Real(f64),
    Text(Vec<u8>),
    Blob(Vec<u8>),
}

impl RawColumn {
    fn bytes(&self) -> usize {
        let payload = match self {
            RawColumn::Text(bytes) | RawColumn::Blob(bytes) => bytes.len(),
            _ => 0,
        };
        size_of::<Self>() + payload
    }
}

impl From<ValueRef<'_>> for RawColumn {
    fn from(value: ValueRef<'_>) -> Self {
        match value {
            ValueRef::Null => RawColumn::Null,
            ValueRef::Integer(number) => RawColumn::Integer(number),
            ValueRef::Real(number) => RawColumn::Real(number),
            ValueRef::Text(bytes) => RawColumn::Text(bytes.to_owned()),
            ValueRef::Blob(bytes) => RawColumn::Blob(bytes.to_owned()),
        }
    }
}

impl ToSql for RawColumn {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            RawColumn::Null => ValueRef::Null,
            RawColumn::Integer(number) => ValueRef::Integer(*number),
            RawColumn::Real(number) => ValueRef::Real(*number),
            RawColumn::Text(bytes) => ValueRef::Text(bytes),
            RawColumn::Blob(bytes) => ValueRef::Blob(bytes),
        }))
    }
}

const INSERT_TURN: &str = "INSERT INTO turn (place, id, hash, operation, depth, form, created_at, \
                      body, tool_call_id, metadata, origin) \
                      VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)";

impl SqliteTxn<'_> {
    /// Inserts a new turn; returns its row number in `fresh`, or 0 if it went to `turn`.
    pub(super) fn insert_new_turn(&self, turn: &RawTurn) -> Result<i64> {
        if self.pending_index().job_turns() >= MAX_TURNS_PER_JOB {
            self.insert_turn_row(turn)?;
            return Ok(0);
        }
        let no = self.pending_index().next_turn_row_no();
        let sql = "INSERT INTO fresh (place, id, hash, operation, depth, form, created_at, body, \
                   tool_call_id, metadata, origin, no) \
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)";
        self.execute(sql, turn_params!(turn, no))?;
        Ok(no)
    }

    /// Inserts a turn into the table `turn`.
    pub(super) fn insert_turn_row(&self, turn: &RawTurn) -> Result<()> {
        self.execute(INSERT_TURN, turn_params!(turn))?;
        Ok(())
    }

    /// Returns the row number of the pending turn at a place, if this snapshot has one.
    pub(super) fn pending_row_no(&self, place: i64) -> Result<Option<i64>> {
        for no in self.pending_index().row_nos_at(place)? {
            let sql = "SELECT no FROM fresh WHERE no = ?1 AND place = ?2";
            if let Some(no) = self.query_opt(sql, [no, place], |row| row.get(0))? {
                return Ok(Some(no));
            }
        }
        Ok(None)
    }

    pub(super) fn pending_turn(&self, place: i64) -> Result<Option<Turn>> {
        for no in self.pending_index().row_nos_at(place)? {
            if let Some(turn) = self.pending_turn_at(no, place)? {
                return Ok(Some(turn));
            }
        }
        Ok(None)
    }

    /// Returns the place of the last pending turn of a segment, if it comes after another place.
    pub(super) fn last_pending(&self, segment: SegmentNo, after: i64) -> Result<Option<i64>> {
        let place = |segment| rows::place(TurnLoc { segment, index: 0 });
        let (first, end) = (place(segment), place(SegmentNo(segment.0 + 1)));
        let mut end = end;
        while let Some(last) = self.pending_index().last_pending_before(end)?
            && last >= first
            && last > after
        {
            if self.pending_row_no(last)?.is_some() {
                return Ok(Some(last));
            }
            end = last;
        }
        Ok(None)
    }

    /// Ensures that a turn has a row in the table `turn`, where it can be changed.
    pub(super) fn ensure_turn_row(&self, place: i64) -> Result<()> {
        if self.pending_row_no(place)?.is_some() {
            return flush_turns(self.connection);
        }
        self.unpack(place)
    }
}
