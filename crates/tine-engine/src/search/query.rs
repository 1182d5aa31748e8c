//! Parses search queries.
//!
//! Words stand side by side and must all be there. `"…"` is a phrase, `word*` a beginning, `OR`
//! joins its two neighbours, `-` leaves out. A word with punctuation in it (`don't`, `foo_bar`) is
//! a phrase of its parts. Everything else is taken as it comes: a quotation mark without a partner
//! reaches to the end, an `OR` without neighbours says nothing. Only a query without any word to
//! look for is refused, and one that is too long.

use tine_core::Limits;
use tine_store::{Phrase, TextQuery};

use crate::{Error, Result};

/// One token of a query.
enum QueryToken {
    Or,
    Wanted(Phrase),
    Unwanted(Phrase),
}

pub(crate) fn parse(text: &str, limits: &Limits) -> Result<TextQuery> {
    check("bytes in a search", text.len(), limits.query_bytes)?;
    let tokens = tokens(text);
    let terms = tokens.iter().map(|token| match token {
        QueryToken::Or => 0,
        QueryToken::Wanted(phrase) | QueryToken::Unwanted(phrase) => phrase.terms.len(),
    });
    check("words in a search", terms.sum(), limits.query_terms)?;
    let mut query = TextQuery::default();
    let mut joined = false;
    let mut group_is_last = false;
    for token in tokens {
        match token {
            QueryToken::Or => joined = group_is_last,
            QueryToken::Wanted(phrase) => {
                match query.all.last_mut() {
                    Some(group) if joined => group.push(phrase),
                    _ => query.all.push(vec![phrase]),
                }
                (joined, group_is_last) = (false, true);
            }
            QueryToken::Unwanted(phrase) => {
                query.none.push(phrase);
                (joined, group_is_last) = (false, false);
            }
        }
    }
    match (query.all.is_empty(), query.none.is_empty()) {
        (false, _) => Ok(query),
        (true, false) => {
            Err(Error::invalid("the query only excludes turns; add a word to search for"))
        }
        (true, true) => Err(Error::invalid("give at least one word to search for")),
    }
}

fn check(what: &'static str, given: usize, limit: usize) -> Result<()> {
    if given > limit {
        return Err(Error::TooLarge { what, limit, given });
    }
    Ok(())
}

fn tokens(text: &str) -> Vec<QueryToken> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let (unwanted, term) = match rest.strip_prefix('-') {
            Some(term) if !term.starts_with(char::is_whitespace) => (true, term),
            _ => (false, rest),
        };
        let (phrase, keyword, rest_after) = match term.strip_prefix(is_opening) {
            Some(quoted) => {
                let (inside, rest_after) = quoted.split_once(is_closing).unwrap_or((quoted, ""));
                let open = rest_after.strip_prefix('*');
                (Phrase::new(inside, open.is_some()), None, open.unwrap_or(rest_after))
            }
            None => {
                let end = term.find(char::is_whitespace).unwrap_or(term.len());
                let (word, rest_after) = term.split_at(end);
                (Phrase::new(word, word.ends_with('*')), Some(word), rest_after)
            }
        };
        match (keyword, phrase) {
            (Some("OR"), _) if !unwanted => tokens.push(QueryToken::Or),
            (Some("AND"), _) if !unwanted => {}
            (_, Some(phrase)) if unwanted => tokens.push(QueryToken::Unwanted(phrase)),
            (_, Some(phrase)) => tokens.push(QueryToken::Wanted(phrase)),
            (_, None) => {}
        }
        rest = rest_after.trim_start();
    }
    tokens
}

fn is_opening(symbol: char) -> bool {
    matches!(symbol, '"' | '“' | '„' | '＂')
}

fn is_closing(symbol: char) -> bool {
    matches!(symbol, '"' | '”' | '“' | '＂')
}
