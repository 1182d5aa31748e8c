//! Turns that were just appended, in the order in which they came.
//!
//! The table of turns is clustered by path: turns that are said one after the other in sixty
//! conversations lie on sixty pages, and writing one turn to each would write sixty pages to the
//! log. So a turn goes to the table `fresh` first, whose last page takes them all. When the
//! look-up tables are moved forward (`recent.rs`), the fresh turns move to their places.
//!
//! A turn is in exactly one of `turn`, `fresh` and the chunks, at any crash point, since it moves
//! in one transaction. Its number in `fresh` is known from the operation that made it. A number
//! that is out of date leads to no row, or to a row of another place, and is passed over.
//!
//! A job that makes many turns fills pages by itself: only its first ones are put here.

use rusqlite::params;

use super::chunk::RawTurn;
use super::rows;
use super::txn::Txn;
use crate::Result;
use crate::records::{SegmentNo, Turn, TurnLoc};

/// Turns of one job that are put here at most.
const OF_ONE_JOB: usize = 32;

/// Moves all fresh turns to their places.
pub(super) fn settle(connection: &rusqlite::Connection) -> Result<()> {
    let sql = "INSERT INTO turn SELECT place, id, hash, operation, depth, form, created_at, body, \
               tool_call_id, metadata, origin FROM fresh ORDER BY place";
    connection.prepare_cached(sql)?.execute([])?;
    connection.prepare_cached("DELETE FROM fresh")?.execute([])?;
    Ok(())
}

impl Txn<'_> {
    /// Adds a row of a new turn; its number, if it is a fresh one, and 0 otherwise.
    pub(super) fn insert_new_row(&self, turn: &RawTurn) -> Result<i64> {
        if self.recent().turns_of_job() >= OF_ONE_JOB {
            self.insert_row(turn)?;
            return Ok(0);
        }
        self.insert_columns(
            "INSERT INTO fresh (place, id, hash, operation, depth, form, created_at, body, \
             tool_call_id, metadata, origin) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
            turn,
        )?;
        Ok(self.connection.last_insert_rowid())
    }

    /// Adds a row at its place.
    pub(super) fn insert_row(&self, turn: &RawTurn) -> Result<()> {
        self.insert_columns(
            "INSERT INTO turn (place, id, hash, operation, depth, form, created_at, body, \
             tool_call_id, metadata, origin) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
            turn,
        )
    }

    fn insert_columns(&self, sql: &str, turn: &RawTurn) -> Result<()> {
        self.execute(
            sql,
            params![
                turn.place,
                turn.id,
                turn.hash,
                turn.operation,
                turn.depth,
                turn.form,
                rows::stored_time(&turn.id, turn.created_at),
                turn.body,
                turn.tool_call_id,
                turn.metadata,
                turn.origin,
            ],
        )?;
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
            return settle(self.connection);
        }
        self.unpack(place)
    }
}
