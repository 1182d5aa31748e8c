//! The index within one of its write transactions.
//!
//! FTS5 gathers terms in memory until the transaction ends, or until a statement begins that may
//! have to be taken back by itself. So there are only statements here that touch one row, and the
//! progress is written once, at the end.

use rusqlite::{Connection, OptionalExtension, params};
use tine_core::{Digest, tokenizer};

use super::{Sql, progress};
use crate::rows;
use tine_store::{Document, Index, IndexMark, IndexState, Result, StoreError, TurnLoc};

/// Stands between two pieces of a turn, so that no phrase reaches from one into the other. It is
/// no letter, so no term is like it.
const BETWEEN: &str = "¶";

pub(super) struct Writing<'c> {
    connection: &'c Connection,
    state: IndexState,
    unswept: bool,
    failure: Option<rusqlite::Error>,
    words: String,
}

impl<'c> Writing<'c> {
    pub(super) fn new(connection: &'c Connection) -> Sql<Self> {
        let (state, unswept) = progress(connection)?;
        Ok(Writing { connection, state, unswept, failure: None, words: String::new() })
    }

    /// Notes how far the index is.
    pub(super) fn finish(self) -> Sql<()> {
        let mark = match self.state {
            IndexState::Through(mark) => Some(mark),
            IndexState::Empty | IndexState::Needless => None,
        };
        let at = mark.map_or(0, |mark| rows::number(mark.at.0));
        let hash = mark.map(|mark| mark.hash.0.0);
        let sql = "UPDATE progress SET at = ?1, hash = ?2, unswept = ?3";
        self.connection.execute(sql, params![at, hash, self.unswept])?;
        Ok(())
    }

    /// What SQLite said first, if it said no.
    pub(super) fn take_failure(&mut self) -> Option<rusqlite::Error> {
        self.failure.take()
    }

    /// Keeps the failure for whoever has to tell damage from other failures; what is answered
    /// only ends the closure.
    fn keep<T>(&mut self, outcome: Sql<T>) -> Result<T> {
        outcome.map_err(|error| {
            self.failure = Some(error);
            StoreError::Stopped { why: "the search index could not be written".to_owned() }
        })
    }

    fn remove(&self, place: i64) -> Sql<bool> {
        let mut statement =
            self.connection.prepare_cached("SELECT no FROM entry WHERE place = ?1")?;
        let known: Option<i64> = statement.query_row([place], |row| row.get(0)).optional()?;
        if let Some(no) = known {
            self.connection.prepare_cached("DELETE FROM entry WHERE no = ?1")?.execute([no])?;
            self.connection.prepare_cached("DELETE FROM said WHERE rowid = ?1")?.execute([no])?;
        }
        Ok(known.is_some())
    }

    fn add(&self, document: &Document<'_>) -> Sql<()> {
        let place = rows::place(document.loc);
        self.remove(place)?;
        let sql = "INSERT INTO entry (place, project, conversation, role, at) \
                   VALUES (?1, ?2, ?3, ?4, ?5)";
        self.connection.prepare_cached(sql)?.execute(params![
            place,
            self.project(document.project.as_str())?,
            document.conversation.0,
            rows::role_number(document.role),
            document.at.as_millis(),
        ])?;
        let tags: Vec<String> = document.tags.iter().map(|tag| tag_term(tag)).collect();
        let no = self.connection.last_insert_rowid();
        let sql = "INSERT INTO said (rowid, words, tags) VALUES (?1, ?2, ?3)";
        self.connection.prepare_cached(sql)?.execute(params![no, self.words, tags.join(" ")])?;
        Ok(())
    }

    fn project(&self, id: &str) -> Sql<i64> {
        let sql = "SELECT no FROM project WHERE id = ?1";
        let known = self.connection.prepare_cached(sql)?.query_row([id], |row| row.get(0));
        if let Some(no) = known.optional()? {
            return Ok(no);
        }
        self.connection.prepare_cached("INSERT INTO project (id) VALUES (?1)")?.execute([id])?;
        Ok(self.connection.last_insert_rowid())
    }
}

/// A label as a term: labels are compared as a whole, and may hold anything.
pub(super) fn tag_term(tag: &str) -> String {
    Digest::of(tag.as_bytes()).to_hex()[..16].to_owned()
}

impl Index for Writing<'_> {
    fn state(&self) -> Result<IndexState> {
        Ok(self.state)
    }

    fn clear(&mut self) -> Result<()> {
        let cleared = self.connection.execute_batch(
            "INSERT INTO said (said) VALUES ('delete-all'); DELETE FROM entry; DELETE FROM project",
        );
        (self.state, self.unswept) = (IndexState::Empty, true);
        self.keep(cleared)
    }

    fn put(&mut self, document: &Document<'_>) -> Result<()> {
        let mut text = std::mem::take(&mut self.words);
        text.clear();
        for (number, piece) in document.pieces.iter().enumerate() {
            if number > 0 {
                text.push_str(BETWEEN);
                text.push(' ');
            }
            tokenizer::for_each_term(piece, &mut |term, _, _| {
                text.push_str(term);
                text.push(' ');
            });
        }
        self.words = text;
        let added = self.add(document);
        self.keep(added)
    }

    fn erase(&mut self, loc: TurnLoc) -> Result<()> {
        let removed = self.remove(rows::place(loc));
        self.unswept |= self.keep(removed)?;
        Ok(())
    }

    fn advance(&mut self, to: IndexMark) -> Result<()> {
        self.state = IndexState::Through(to);
        Ok(())
    }
}
