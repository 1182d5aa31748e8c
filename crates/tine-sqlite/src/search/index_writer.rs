//! A write transaction of the search index.
//!
//! FTS5 collects terms in memory until the transaction ends or a statement begins that SQLite may
//! have to roll back by itself. So every statement here changes one row, and the progress is
//! written once, at the end.

use rusqlite::{Connection, OptionalExtension, params};
use tine_core::{Digest, tokenizer};

use super::{SqlResult, progress};
use crate::rows;
use tine_store::{Index, IndexDocument, IndexMark, IndexState, Result, StoreError, TurnLoc};

/// A token between two pieces of a turn, so that no phrase spans both. It is not a letter, so no
/// term equals it.
const PIECE_SEPARATOR: &str = "¶";

pub(super) struct IndexWriter<'c> {
    connection: &'c Connection,
    state: IndexState,
    unswept: bool,
    failure: Option<rusqlite::Error>,
    words: String,
}

impl<'c> IndexWriter<'c> {
    pub(super) fn new(connection: &'c Connection) -> SqlResult<Self> {
        let (state, unswept) = progress(connection)?;
        Ok(IndexWriter { connection, state, unswept, failure: None, words: String::new() })
    }

    /// Writes how far the index is.
    pub(super) fn finish(self) -> SqlResult<()> {
        let mark = match self.state {
            IndexState::Through(mark) => Some(mark),
            IndexState::Empty | IndexState::NotNeeded => None,
        };
        let at = mark.map_or(0, |mark| rows::to_i64(mark.at.0));
        let hash = mark.map(|mark| mark.hash.0.0);
        let sql = "UPDATE progress SET at = ?1, hash = ?2, unswept = ?3";
        self.connection.execute(sql, params![at, hash, self.unswept])?;
        Ok(())
    }

    /// Takes the error of SQLite, if there was one.
    pub(super) fn take_failure(&mut self) -> Option<rusqlite::Error> {
        self.failure.take()
    }

    /// Keeps an error of SQLite for the caller, which distinguishes damage from other failures; the
    /// returned error only ends the closure.
    fn keep_failure<T>(&mut self, outcome: SqlResult<T>) -> Result<T> {
        outcome.map_err(|error| {
            self.failure = Some(error);
            StoreError::Stopped { why: "the search index could not be written".to_owned() }
        })
    }

    fn remove(&self, place: i64) -> SqlResult<bool> {
        let mut statement =
            self.connection.prepare_cached("SELECT no FROM entry WHERE place = ?1")?;
        let existing: Option<i64> = statement.query_row([place], |row| row.get(0)).optional()?;
        if let Some(no) = existing {
            self.connection.prepare_cached("DELETE FROM entry WHERE no = ?1")?.execute([no])?;
            self.connection.prepare_cached("DELETE FROM said WHERE rowid = ?1")?.execute([no])?;
        }
        Ok(existing.is_some())
    }

    fn add(&self, document: &IndexDocument<'_>) -> SqlResult<()> {
        let place = rows::place(document.loc);
        self.remove(place)?;
        let sql = "INSERT INTO entry (place, project, conversation, role, at) \
                   VALUES (?1, ?2, ?3, ?4, ?5)";
        self.connection.prepare_cached(sql)?.execute(params![
            place,
            self.project(document.project.as_str())?,
            document.conversation.0,
            rows::role_code(document.role),
            document.at.as_millis(),
        ])?;
        let tags: Vec<String> = document.tags.iter().map(|tag| tag_term(tag)).collect();
        let no = self.connection.last_insert_rowid();
        let sql = "INSERT INTO said (rowid, words, tags) VALUES (?1, ?2, ?3)";
        self.connection.prepare_cached(sql)?.execute(params![no, self.words, tags.join(" ")])?;
        Ok(())
    }

    fn project(&self, id: &str) -> SqlResult<i64> {
        let sql = "SELECT no FROM project WHERE id = ?1";
        let existing = self.connection.prepare_cached(sql)?.query_row([id], |row| row.get(0));
        if let Some(no) = existing.optional()? {
            return Ok(no);
        }
        self.connection.prepare_cached("INSERT INTO project (id) VALUES (?1)")?.execute([id])?;
        Ok(self.connection.last_insert_rowid())
    }
}

/// Returns a label as a term: labels match as a whole and may contain any character.
pub(super) fn tag_term(tag: &str) -> String {
    Digest::of(tag.as_bytes()).to_hex()[..16].to_owned()
}

impl Index for IndexWriter<'_> {
    fn state(&self) -> Result<IndexState> {
        Ok(self.state)
    }

    fn clear(&mut self) -> Result<()> {
        let cleared = self.connection.execute_batch(
            "INSERT INTO said (said) VALUES ('delete-all'); DELETE FROM entry; DELETE FROM project",
        );
        (self.state, self.unswept) = (IndexState::Empty, true);
        self.keep_failure(cleared)
    }

    fn put(&mut self, document: &IndexDocument<'_>) -> Result<()> {
        let mut text = std::mem::take(&mut self.words);
        text.clear();
        for (number, piece) in document.pieces.iter().enumerate() {
            if number > 0 {
                text.push_str(PIECE_SEPARATOR);
                text.push(' ');
            }
            tokenizer::for_each_term(piece, &mut |term, _, _| {
                text.push_str(term);
                text.push(' ');
            });
        }
        self.words = text;
        let added = self.add(document);
        self.keep_failure(added)
    }

    fn erase(&mut self, loc: TurnLoc) -> Result<()> {
        let removed = self.remove(rows::place(loc));
        self.unswept |= self.keep_failure(removed)?;
        Ok(())
    }

    fn advance(&mut self, to: IndexMark) -> Result<()> {
        self.state = IndexState::Through(to);
        Ok(())
    }
}
