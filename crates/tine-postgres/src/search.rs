//! The index for searches: the terms that each turn says, under Tine's own rules for words.
//!
//! It names turns that may fit; what they say is read from the turns themselves, and counted and
//! ranked as a search without an index does ([`tine_store::scan`]). So every store gives the same
//! answers, and a term that is long or a text that is huge costs time, never a hit.
//!
//! Whoever brings the index forward holds the row that tells how far it is, until the commit.

use std::collections::BTreeMap;

use tine_core::{Digest, tokenizer};
use tine_store::{
    Document, FeedPosition, Index, IndexMark, IndexState, Phrase, Ranked, Result, SearchFilter,
    TextQuery, TurnLoc,
    scan::{self, Extent, Scan},
};
use tokio_postgres::Row;

use crate::failure::Failure;
use crate::link::{Command, Link, Value, values};
use crate::rows::{self, project_of};
use crate::txn::Txn;
use crate::{READ_DEADLINE, Shared, lock};

/// The longest term that is kept as it is; longer ones are kept by their beginning, and by their
/// digest. PostgreSQL takes no more than 2,046 bytes.
const TERM_BYTES: usize = 512;

/// Turns written at once.
const TURNS_AT_ONCE: usize = 1_024;

const STATE: &str = "SELECT no, hash FROM said_through";

fn read_state(rows: &[Row]) -> Result<IndexState> {
    let row = rows.first().ok_or_else(|| rows::damaged("said_through", "it is empty"))?;
    let at = FeedPosition(rows::unsigned(row.get(0)));
    match row.get::<_, Option<&[u8]>>(1) {
        None => Ok(IndexState::Empty),
        Some(hash) => Ok(IndexState::Through(IndexMark { at, hash: rows::operation_hash(hash)? })),
    }
}

pub(crate) fn state(shared: &Shared) -> Result<IndexState> {
    let mut lease = shared.pool.lend().map_err(|failure| failure.told())?;
    let rows = lease.exchange(READ_DEADLINE, &[Command::new(STATE, vec![])]);
    let rows = rows.map_err(|failure| failure.told())?;
    lease.keep();
    read_state(&rows)
}

pub(crate) fn index(
    shared: &Shared,
    body: &mut dyn FnMut(&mut dyn Index) -> Result<()>,
) -> Result<()> {
    let _turn = lock(&shared.indexing);
    let mut lease = shared.pool.lend().map_err(|failure| failure.told())?;
    let locked = lease.exchange(
        READ_DEADLINE,
        &[
            Command::new("BEGIN", vec![]),
            Command::new("SELECT no, hash FROM said_through FOR UPDATE", vec![]),
        ],
    );
    let state = read_state(&locked.map_err(|failure| failure.told())?)?;
    let mut writing = Writing { state, cleared: false, documents: BTreeMap::new() };
    let done = body(&mut writing);
    if let Err(error) = done {
        if lease.exchange(READ_DEADLINE, &[Command::new("ROLLBACK", vec![])]).is_ok() {
            lease.keep();
        }
        return Err(error);
    }
    writing.finish(&mut lease).map_err(|failure| failure.told())?;
    lease.keep();
    Ok(())
}

/// What is kept of a turn.
struct Said {
    length: i32,
    /// The terms, each once, as PostgreSQL reads them.
    terms: Vec<String>,
}

/// The index within one of its transactions: what is done to it is written at the end.
struct Writing {
    state: IndexState,
    cleared: bool,
    /// `None` for turns that leave it.
    documents: BTreeMap<TurnLoc, Option<Said>>,
}

impl Index for Writing {
    fn state(&self) -> Result<IndexState> {
        Ok(self.state)
    }

    fn clear(&mut self) -> Result<()> {
        self.documents.clear();
        (self.state, self.cleared) = (IndexState::Empty, true);
        Ok(())
    }

    fn put(&mut self, document: &Document<'_>) -> Result<()> {
        let mut terms = Vec::new();
        for piece in document.pieces {
            tokenizer::for_each_term(piece, &mut |term, _, _| terms.push(kept(term)));
        }
        terms.sort_unstable();
        terms.dedup();
        let length = scan::length(document.pieces, document.tags.len());
        let length = i32::try_from(length).unwrap_or(i32::MAX);
        self.documents.insert(document.loc, Some(Said { length, terms }));
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

impl Writing {
    fn finish(self, link: &mut Link) -> std::result::Result<(), Failure> {
        let mut commands = Vec::new();
        let mut put = |sql, values: Vec<Value>| commands.push(Command::new(sql, values));
        if self.cleared {
            put("DELETE FROM said", vec![]);
            put("DELETE FROM said_extent", vec![]);
        }
        let documents: Vec<(TurnLoc, Option<Said>)> = self.documents.into_iter().collect();
        let mut rest = documents.as_slice();
        while !rest.is_empty() {
            // One project at a time.
            let project = project_of(rest[0].0.segment.0);
            let same = rest.iter().take_while(|(loc, _)| project_of(loc.segment.0) == project);
            let (some, behind) = rest.split_at(same.count().min(TURNS_AT_ONCE));
            rest = behind;
            let (segments, indices): (Vec<i64>, Vec<i32>) =
                some.iter().map(|(loc, _)| rows::place(Some(*loc))).unzip();
            put(REMOVE, values![project, segments, indices]);
            let said: Vec<_> =
                some.iter().filter_map(|(loc, said)| Some((loc, said.as_ref()?))).collect();
            let (segments, indices): (Vec<i64>, Vec<i32>) =
                said.iter().map(|(loc, _)| rows::place(Some(**loc))).unzip();
            let lengths: Vec<i32> = said.iter().map(|(_, said)| said.length).collect();
            let terms: Vec<String> = said.iter().map(|(_, said)| said.terms.join(" ")).collect();
            put(ADD, values![project, segments, indices, lengths, terms]);
        }
        let (no, hash) = match self.state {
            IndexState::Through(mark) => (rows::number(mark.at.0), Some(mark.hash.0.0.to_vec())),
            IndexState::Empty | IndexState::Needless => (0, None),
        };
        put("UPDATE said_through SET no = $1, hash = $2", values![no, hash]);
        put("COMMIT", vec![]);
        link.exchange(READ_DEADLINE, &commands).map(drop)
    }
}

/// Terms hold letters and digits only, which is why they can be split at spaces again.
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

/// A term as it is kept.
fn kept(term: &str) -> String {
    if term.len() <= TERM_BYTES {
        return term.to_owned();
    }
    format!("{}{}", beginning(term), Digest::of(term.as_bytes()).to_hex())
}

fn beginning(term: &str) -> &str {
    let mut end = term.len().min(TERM_BYTES);
    while !term.is_char_boundary(end) {
        end -= 1;
    }
    &term[..end]
}

/// Turns that may say one of the phrases, in the words of PostgreSQL.
fn expression(query: &TextQuery) -> String {
    let phrases: Vec<String> = query.all.iter().flatten().map(phrase).collect();
    phrases.join(" | ")
}

fn phrase(phrase: &Phrase) -> String {
    let last = phrase.terms.len() - 1;
    let terms =
        phrase.terms.iter().enumerate().map(|(nth, term)| match nth == last && phrase.open {
            true => format!("'{}':*", beginning(term)),
            false => format!("'{}'", kept(term)),
        });
    format!("({})", terms.collect::<Vec<_>>().join(" & "))
}

pub(crate) fn search(
    txn: &Txn<'_>,
    query: &TextQuery,
    filter: &SearchFilter,
    through: FeedPosition,
) -> Result<Option<Ranked>> {
    match read_state(&txn.ask(STATE, vec![])?)? {
        IndexState::Through(mark) if mark.at >= through => {}
        _ => return Ok(None),
    }
    let Some(project) = txn.project_no(&filter.project)? else {
        return Ok(Some(Ranked::default()));
    };
    let sql = "SELECT turns, terms FROM said_extent WHERE project = $1";
    let extent = txn
        .ask_one(sql, values![project])?
        .map(|row| Extent { turns: rows::unsigned(row.get(0)), terms: rows::unsigned(row.get(1)) });
    let sql = "SELECT segment, index FROM said WHERE project = $1 AND terms @@ $2::text::tsquery";
    let found = txn.ask(sql, values![project, expression(query)])?;
    let places: Vec<TurnLoc> = found.iter().map(|row| rows::loc(row.get(0), row.get(1))).collect();
    let mut scan = Scan::new(query, filter);
    txn.turns_at(project, &places, &mut |conversation, turn| scan.see(conversation, &turn))?;
    Ok(Some(scan.ranked(extent.unwrap_or_default())))
}
