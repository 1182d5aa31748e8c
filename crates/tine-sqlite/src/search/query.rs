//! Translation of queries into FTS5 expressions.
//!
//! Every term consists of letters and digits, as Tine's own tokenizer makes them, and is quoted, so
//! that no query can be a syntax error or have another meaning.

use rusqlite::{Connection, params};
use tine_core::Timestamp;

use super::SqlResult;
use super::index_writer::tag_term;
use crate::rows;
use tine_store::{
    ConversationKey, Phrase, Ranked, SearchCandidate, SearchFilter, TextQuery, scan::round_score,
};

/// Labels have weight 0: they do not affect the score.
const SEARCH: &str = "SELECT entry.place, bm25(said, 1.0, 0.0), entry.conversation, entry.at \
    FROM said CROSS JOIN entry ON entry.no = said.rowid \
    WHERE said MATCH ?1 \
    AND entry.project = (SELECT no FROM project WHERE id = ?2) \
    AND (?3 IS NULL OR entry.conversation = ?3) \
    AND (?4 IS NULL OR entry.role = ?4) \
    AND (?5 IS NULL OR entry.at >= ?5) \
    AND (?6 IS NULL OR entry.at < ?6)";

pub(super) fn search(
    connection: &Connection,
    query: &TextQuery,
    filter: &SearchFilter,
) -> SqlResult<Ranked> {
    let mut statement = connection.prepare_cached(SEARCH)?;
    let parameters = params![
        expression(query, filter),
        filter.project.as_str(),
        filter.conversation.map(|key| key.0),
        filter.role.map(rows::role_code),
        filter.from.map(Timestamp::as_millis),
        filter.to.map(Timestamp::as_millis),
    ];
    let found = statement.query_map(parameters, |row| {
        Ok(SearchCandidate {
            loc: rows::loc(row.get(0)?),
            // In FTS5 a smaller score is better.
            score: round_score(-row.get::<_, f64>(1)?),
            conversation: ConversationKey(row.get(2)?),
            at: Timestamp::from_millis(row.get(3)?),
        })
    })?;
    found.collect()
}

fn expression(query: &TextQuery, filter: &SearchFilter) -> String {
    let any = |phrases: &[Phrase]| phrases.iter().map(phrase).collect::<Vec<_>>().join(" OR ");
    let groups: Vec<String> = query.all.iter().map(|group| format!("({})", any(group))).collect();
    let mut text = format!("({})", groups.join(" AND "));
    if !query.none.is_empty() {
        text = format!("({text} NOT ({}))", any(&query.none));
    }
    let mut text = format!("words : {text}");
    for tag in &filter.tags {
        text.push_str(&format!(" AND tags : \"{}\"", tag_term(tag)));
    }
    text
}

fn phrase(phrase: &Phrase) -> String {
    let open = if phrase.open { " *" } else { "" };
    format!("\"{}\"{open}", phrase.terms.join(" "))
}
