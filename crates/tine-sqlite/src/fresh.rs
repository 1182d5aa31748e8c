//! Turns and operations that were just written, in the order in which they came.
//!
//! The table of turns is clustered by path: turns that are said one after the other in sixty
//! conversations lie on sixty pages, and writing one turn to each would write sixty pages to the
//! log. The table of operations and the branch whose tip moves are two pages more for each append.
//! So all of it goes to the table `fresh` first, whose last page takes a turn, its operation and,
//! in the operation's row, the moved branches. When the look-up tables are moved forward
//! (`recent.rs`), what is here moves to its places.
//!
//! An operation behind the last one in the look-up tables is here, any other is in its own table.
//! A turn is in exactly one of `turn`, `fresh` and the chunks, at any crash point, since it moves
//! in one transaction. Its number here is known from the operation that made it. A number that is
//! out of date leads to no row, or to a row of another place, and is passed over.
//!
//! A job that makes many turns fills pages by itself: only its first ones are put here.

use crate::error::StoreErr as _;
use std::cmp::Reverse;

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{ToSql, params, params_from_iter};

use super::chunk::RawTurn;
use super::rows;
use super::txn::Txn;
use tine_store::{Result, SegmentNo, Turn, TurnLoc};

/// Turns of one job that are put here at most.
const OF_ONE_JOB: usize = 32;

/// The number of an operation's first turn, and behind its last one the operation's own.
const NUMBERS: i64 = 1 << 10;

/// The number among the fresh rows of the turn that an operation makes as its so many-th.
pub(super) fn number_of_turn(operation: i64, index: i64) -> i64 {
    operation * NUMBERS + index
}

/// The number among the fresh rows of an operation itself.
pub(super) fn number_of_operation(operation: i64) -> i64 {
    operation * NUMBERS + NUMBERS - 1
}

/// The last operation that is complete when there is no row behind one of this number.
pub(super) fn last_operation(number: i64) -> i64 {
    (number + 1) / NUMBERS - 1
}

/// The columns of a turn, in the order of both tables, and what one has besides.
macro_rules! columns {
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

/// Moves all fresh turns to their places.
pub(super) fn settle_turns(connection: &rusqlite::Connection) -> Result<()> {
    while let Some(load) = Load::take(connection)? {
        let sql = "DELETE FROM fresh WHERE place IS NOT NULL AND no <= ?1";
        connection.prepare_cached(sql).store_err()?.execute([load.last]).store_err()?;
        load.settle(connection)?;
    }
    Ok(())
}

/// Moves everything to its place.
pub(super) fn settle(connection: &rusqlite::Connection) -> Result<()> {
    let sql = "INSERT INTO operation (no, conversation, seq, kind, actor, at, detail, hash, \
               undone, key, fingerprint, answer, turns) \
               SELECT no >> 10, conversation, seq, kind, actor, at, detail, hash, undone, key, \
               fingerprint, answer, turns FROM fresh WHERE seq IS NOT NULL ORDER BY no";
    connection.prepare_cached(sql).store_err()?.execute([]).store_err()?;
    while let Some(load) = Load::take(connection)? {
        // Without a condition the whole table is emptied at once.
        match load.is_last {
            true => connection
                .prepare_cached("DELETE FROM fresh")
                .store_err()?
                .execute([])
                .store_err()?,
            false => connection
                .prepare_cached("DELETE FROM fresh WHERE no <= ?1")
                .store_err()?
                .execute([load.last])
                .store_err()?,
        };
        load.settle(connection)?;
    }
    connection.prepare_cached("DELETE FROM fresh").store_err()?.execute([]).store_err()?;
    Ok(())
}

/// Bytes of turns in memory at most on their way to their places, but for the last one.
const LOAD_BYTES: usize = 32 << 20;

/// Fresh turns on their way. They leave their old pages before they are put to their places, so
/// that these pages are taken again and the file need not grow for both.
struct Load {
    turns: Vec<(i64, [Column; 11])>,
    /// The number of the last one.
    last: i64,
    /// Whether there is no further turn.
    is_last: bool,
}

impl Load {
    fn take(connection: &rusqlite::Connection) -> Result<Option<Self>> {
        let sql = "SELECT place, id, hash, operation, depth, form, created_at, body, \
                   tool_call_id, metadata, origin, no FROM fresh \
                   WHERE place IS NOT NULL ORDER BY no";
        let mut statement = connection.prepare_cached(sql).store_err()?;
        let mut rows = statement.query([]).store_err()?;
        let mut load = Load { turns: Vec::new(), last: 0, is_last: false };
        let mut bytes = 0;
        while bytes < LOAD_BYTES {
            let Some(row) = rows.next().store_err()? else {
                load.is_last = true;
                break;
            };
            let mut columns = [const { Column::Null }; 11];
            for (index, column) in columns.iter_mut().enumerate() {
                *column = row.get_ref(index).store_err()?.into();
                bytes += column.bytes();
            }
            load.last = row.get(11).store_err()?;
            load.turns.push((row.get(0).store_err()?, columns));
        }
        Ok((!load.turns.is_empty()).then_some(load))
    }

    /// Puts the turns to their places. With the last segment first SQLite leaves three hundredths
    /// of the pages empty, the other way round five (docs/performance.md).
    fn settle(mut self, connection: &rusqlite::Connection) -> Result<()> {
        let order = |(place, _): &(i64, _)| {
            let loc = rows::loc(*place);
            (Reverse(loc.segment.0), loc.index)
        };
        self.turns.sort_unstable_by_key(order);
        let mut statement = connection.prepare_cached(INSERT).store_err()?;
        for (_, columns) in &self.turns {
            statement.execute(params_from_iter(columns)).store_err()?;
        }
        Ok(())
    }
}

/// A column as it lies in the table, whatever damage has made of it: nobody reads it here.
enum Column {
    Null,
    Integer(i64),
    Real(f64),
    Text(Vec<u8>),
    Blob(Vec<u8>),
}

impl Column {
    fn bytes(&self) -> usize {
        let aside = match self {
            Column::Text(bytes) | Column::Blob(bytes) => bytes.len(),
            _ => 0,
        };
        size_of::<Self>() + aside
    }
}

impl From<ValueRef<'_>> for Column {
    fn from(value: ValueRef<'_>) -> Self {
        match value {
            ValueRef::Null => Column::Null,
            ValueRef::Integer(number) => Column::Integer(number),
            ValueRef::Real(number) => Column::Real(number),
            ValueRef::Text(bytes) => Column::Text(bytes.to_owned()),
            ValueRef::Blob(bytes) => Column::Blob(bytes.to_owned()),
        }
    }
}

impl ToSql for Column {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Column::Null => ValueRef::Null,
            Column::Integer(number) => ValueRef::Integer(*number),
            Column::Real(number) => ValueRef::Real(*number),
            Column::Text(bytes) => ValueRef::Text(bytes),
            Column::Blob(bytes) => ValueRef::Blob(bytes),
        }))
    }
}

/// Puts a turn to its place.
const INSERT: &str = "INSERT INTO turn (place, id, hash, operation, depth, form, created_at, \
                      body, tool_call_id, metadata, origin) \
                      VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)";

impl Txn<'_> {
    /// Adds a row of a new turn; its number, if it is a fresh one, and 0 otherwise.
    pub(super) fn insert_new_row(&self, turn: &RawTurn) -> Result<i64> {
        if self.recent().turns_of_job() >= OF_ONE_JOB {
            self.insert_row(turn)?;
            return Ok(0);
        }
        let no = self.recent().next_fresh_turn();
        let sql = "INSERT INTO fresh (place, id, hash, operation, depth, form, created_at, body, \
                   tool_call_id, metadata, origin, no) \
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)";
        self.execute(sql, columns!(turn, no))?;
        Ok(no)
    }

    /// Adds a row at its place.
    pub(super) fn insert_row(&self, turn: &RawTurn) -> Result<()> {
        self.execute(INSERT, columns!(turn))?;
        Ok(())
    }

    /// The number of the fresh turn at a place, if this snapshot has one there.
    pub(super) fn fresh_no(&self, place: i64) -> Result<Option<i64>> {
        for no in self.recent().fresh_at(place)? {
            let sql = "SELECT no FROM fresh WHERE no = ?1 AND place = ?2";
            if let Some(no) = self.one(sql, [no, place], |row| row.get(0))? {
                return Ok(Some(no));
            }
        }
        Ok(None)
    }

    /// The fresh turn at a place.
    pub(super) fn fresh_turn(&self, place: i64) -> Result<Option<Turn>> {
        for no in self.recent().fresh_at(place)? {
            if let Some(turn) = self.fresh_row(no, place)? {
                return Ok(Some(turn));
            }
        }
        Ok(None)
    }

    /// The last fresh turn of a segment, if it lies behind a place.
    pub(super) fn last_fresh(&self, segment: SegmentNo, behind: i64) -> Result<Option<i64>> {
        let place = |segment| rows::place(TurnLoc { segment, index: 0 });
        let (first, end) = (place(segment), place(SegmentNo(segment.0 + 1)));
        let mut end = end;
        while let Some(last) = self.recent().last_fresh_before(end)?
            && last >= first
            && last > behind
        {
            if self.fresh_no(last)?.is_some() {
                return Ok(Some(last));
            }
            end = last;
        }
        Ok(None)
    }

    /// Sees to it that a turn has a row that can be changed: neither fresh nor packed.
    pub(super) fn bring_to_its_place(&self, place: i64) -> Result<()> {
        if self.fresh_no(place)?.is_some() {
            return settle_turns(self.connection);
        }
        self.unpack(place)
    }
}
