//! The search index: the terms of each turn, as Tine's own tokenizer makes them.
//!
//! It finds turns that may match; these are read, and counted and ranked as in a search without an
//! index ([`tine_store::scan`]). So every store gives the same answers, and a long term or a huge
//! text costs time, but never a match.
//!
//! An update of the index locks the row with its progress until the commit.

use std::collections::BTreeMap;

use tine_core::{Digest, tokenizer};
use tine_store::{
    FeedPosition, Index, IndexDocument, IndexMark, IndexState, Phrase, Ranked, Result,
    SearchFilter, TextQuery, TurnLoc,
    scan::{self, CorpusSize, SearchScan},
};
use tokio_postgres::Row;

use crate::connection::{PgConnection, SqlCommand, SqlValue, values};
use crate::failure::DatabaseResult;
use crate::rows::{self, project_of};
use crate::txn::PostgresTxn;
use crate::{READ_DEADLINE, StoreContext, lock};

/// The longest term that is stored verbatim; longer ones are stored as a prefix and their digest.
/// PostgreSQL's limit is 2,046 bytes.
const MAX_TERM_BYTES: usize = 512;

const TURNS_PER_STATEMENT: usize = 1_024;

const STATE: &str = "SELECT no, hash FROM said_through";

fn read_state(rows: &[Row]) -> Result<IndexState> {
    let row = rows.first().ok_or_else(|| rows::damaged("said_through", "it is empty"))?;
    let at = FeedPosition(rows::to_u64(row.get(0)));
    match row.get::<_, Option<&[u8]>>(1) {
        None => Ok(IndexState::Empty),
        Some(hash) => Ok(IndexState::Through(IndexMark { at, hash: rows::operation_hash(hash)? })),
    }
}

pub(crate) fn state(context: &StoreContext) -> Result<IndexState> {
    let mut lease = context.pool.acquire()?;
    let rows = lease.exchange(READ_DEADLINE, &[SqlCommand::new(STATE, vec![])]);
    let rows = rows?;
    lease.release();
    read_state(&rows)
}

pub(crate) fn index(
    context: &StoreContext,
    body: &mut dyn FnMut(&mut dyn Index) -> Result<()>,
) -> Result<()> {
    let _guard = lock(&context.index_lock);
    let mut lease = context.pool.acquire()?;
    let locked = lease.exchange(
        READ_DEADLINE,
        &[
            SqlCommand::new("BEGIN", vec![]),
            SqlCommand::new("SELECT no, hash FROM said_through FOR UPDATE", vec![]),
        ],
    );
    let state = read_state(&locked?)?;
    let mut update = IndexUpdate { state, cleared: false, documents: BTreeMap::new() };
    let done = body(&mut update);
    if let Err(error) = done {
        if lease.exchange(READ_DEADLINE, &[SqlCommand::new("ROLLBACK", vec![])]).is_ok() {
            lease.release();
        }
        return Err(error);
    }
    update.finish(&mut lease)?;
    lease.release();
    Ok(())
}

/// A turn as stored in the index.
struct IndexedTurn {
    length: i32,
    /// The distinct terms, in PostgreSQL's syntax.
    terms: Vec<String>,
}

/// The changes of one index transaction, written at its end.
struct IndexUpdate {
    state: IndexState,
    cleared: bool,
    /// `None` for turns to remove.
    documents: BTreeMap<TurnLoc, Option<IndexedTurn>>,
}

impl Index for IndexUpdate {
    fn state(&self) -> Result<IndexState> {
        Ok(self.state)
    }

    fn clear(&mut self) -> Result<()> {
        self.documents.clear();
        (self.state, self.cleared) = (IndexState::Empty, true);
        Ok(())
    }

    fn put(&mut self, document: &IndexDocument<'_>) -> Result<()> {
        let mut terms = Vec::new();
        for piece in document.pieces {
            tokenizer::for_each_term(piece, &mut |term, _, _| terms.push(stored_term(term)));
        }
        terms.sort_unstable();
        terms.dedup();
        let length = scan::turn_length(document.pieces, document.tags.len());
        let length = i32::try_from(length).unwrap_or(i32::MAX);
        self.documents.insert(document.loc, Some(IndexedTurn { length, terms }));
        Ok(())
    }

    fn erase(&mut self, loc: TurnLoc) -> Result<()> {
        self.documents.insert(loc, None);
        Ok(())
    }

    fn advance(&mut self, to: IndexMark) -> Result<()> {
        self.state = IndexState::Through(to);
        Ok(())
    }
}

impl IndexUpdate {
    fn finish(self, connection: &mut PgConnection) -> DatabaseResult<()> {
        let mut commands = Vec::new();
        let mut put = |sql, values: Vec<SqlValue>| commands.push(SqlCommand::new(sql, values));
        if self.cleared {
            put("DELETE FROM said", vec![]);
            put("DELETE FROM said_extent", vec![]);
        }
        let documents: Vec<(TurnLoc, Option<IndexedTurn>)> = self.documents.into_iter().collect();
        let mut rest = documents.as_slice();
        while !rest.is_empty() {
            // One project at a time.
            let project = project_of(rest[0].0.segment.0);
            let same = rest.iter().take_while(|(loc, _)| project_of(loc.segment.0) == project);
            let (chunk, tail) = rest.split_at(same.count().min(TURNS_PER_STATEMENT));
            rest = tail;
            let (segments, indices): (Vec<i64>, Vec<i32>) =
                chunk.iter().map(|(loc, _)| rows::loc_columns(Some(*loc))).unzip();
            put(REMOVE, values![project, segments, indices]);
            let added: Vec<_> =
                chunk.iter().filter_map(|(loc, turn)| Some((loc, turn.as_ref()?))).collect();
            let (segments, indices): (Vec<i64>, Vec<i32>) =
                added.iter().map(|(loc, _)| rows::loc_columns(Some(**loc))).unzip();
            let lengths: Vec<i32> = added.iter().map(|(_, turn)| turn.length).collect();
            let terms: Vec<String> = added.iter().map(|(_, turn)| turn.terms.join(" ")).collect();
            put(ADD, values![project, segments, indices, lengths, terms]);
        }
        let (no, hash) = match self.state {
            IndexState::Through(mark) => (rows::to_i64(mark.at.0), Some(mark.hash.0.0.to_vec())),
            IndexState::Empty | IndexState::NotNeeded => (0, None),
        };
        put("UPDATE said_through SET no = $1, hash = $2", values![no, hash]);
        put("COMMIT", vec![]);
        connection.exchange(READ_DEADLINE, &commands).map(drop)
    }
}

/// Terms consist of letters and digits, so they can be joined and split at spaces.
const ADD: &str = "WITH added AS ( \
    INSERT INTO said (project, segment, index, length, terms) \
    SELECT $1, segment, index, length, array_to_tsvector(string_to_array(terms, ' ')) \
    FROM unnest($2::int8[], $3::int4[], $4::int4[], $5::text[]) \
        AS document (segment, index, length, terms) RETURNING length) \
    INSERT INTO said_extent (project, turns, terms) \
    SELECT $1, count(*), coalesce(sum(length), 0) FROM added \
    ON CONFLICT (project) DO UPDATE SET turns = said_extent.turns + excluded.turns, \
    terms = said_extent.terms + excluded.terms";

const REMOVE: &str = "WITH removed AS ( \
    DELETE FROM said USING unnest($2::int8[], $3::int4[]) AS gone (segment, index) \
    WHERE said.project = $1 AND said.segment = gone.segment AND said.index = gone.index \
    RETURNING length) \
    UPDATE said_extent SET turns = turns - (SELECT count(*) FROM removed), \
    terms = terms - (SELECT coalesce(sum(length), 0) FROM removed) WHERE project = $1";

fn stored_term(term: &str) -> String {
    if term.len() <= MAX_TERM_BYTES {
        return term.to_owned();
    }
    format!("{}{}", term_prefix(term), Digest::of(term.as_bytes()).to_hex())
}

fn term_prefix(term: &str) -> &str {
    let mut end = term.len().min(MAX_TERM_BYTES);
    while !term.is_char_boundary(end) {
        end -= 1;
    }
    &term[..end]
}

/// Returns a `tsquery` for turns that may contain one of the phrases.
fn expression(query: &TextQuery) -> String {
    let phrases: Vec<String> = query.all.iter().flatten().map(phrase).collect();
    phrases.join(" | ")
}

fn phrase(phrase: &Phrase) -> String {
    let last = phrase.terms.len() - 1;
    let terms =
        phrase.terms.iter().enumerate().map(|(nth, term)| match nth == last && phrase.open {
            true => format!("'{}':*", term_prefix(term)),
            false => format!("'{}'", stored_term(term)),
        });
    format!("({})", terms.collect::<Vec<_>>().join(" & "))
}

pub(crate) fn search(
    txn: &PostgresTxn<'_>,
    query: &TextQuery,
    filter: &SearchFilter,
    through: FeedPosition,
) -> Result<Option<Ranked>> {
    match read_state(&txn.query(STATE, vec![])?)? {
        IndexState::Through(mark) if mark.at >= through => {}
        _ => return Ok(None),
    }
    let Some(project) = txn.project_no(&filter.project)? else {
        return Ok(Some(Ranked::default()));
    };
    let sql = "SELECT turns, terms FROM said_extent WHERE project = $1";
    let corpus = txn
        .query_opt(sql, values![project])?
        .map(|row| CorpusSize { turns: rows::to_u64(row.get(0)), terms: rows::to_u64(row.get(1)) });
    let sql = "SELECT segment, index FROM said WHERE project = $1 AND terms @@ $2::text::tsquery";
    let found = txn.query(sql, values![project, expression(query)])?;
    let locs: Vec<TurnLoc> = found.iter().map(|row| rows::loc(row.get(0), row.get(1))).collect();
    let mut scan = SearchScan::new(query, filter);
    txn.turns_at(project, &locs, &mut |conversation, turn| scan.visit(conversation, &turn))?;
    Ok(Some(scan.ranked(corpus.unwrap_or_default())))
}
