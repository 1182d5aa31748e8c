//! The part of a turn that says what was looked for, with its place marked.
//!
//! Made from the turn as it is now: a turn that no longer says it has no snippet, and is no hit.

use std::ops::Range;

use tine_core::text::slice_graphemes;
use tine_core::tokenizer;
use tine_store::TextQuery;

/// Characters of a snippet, without the marks where it was cut.
const LENGTH: usize = 160;

/// Characters before the first match, where there are as many.
const BEFORE: usize = 40;

/// Characters that an edge moves at most to fall between words.
const SLACK: usize = 16;

/// An excerpt with highlighted ranges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Snippet {
    pub text: String,
    pub highlights: Vec<(usize, usize)>,
}

/// A place where a text says one of the phrases.
struct Match {
    phrase: usize,
    range: Range<usize>,
}

/// Returns the best excerpt of the pieces, if they match the query.
pub(super) fn snippet(query: &TextQuery, pieces: &[String]) -> Option<Snippet> {
    let terms: Vec<_> = pieces.iter().map(|piece| tokenizer::terms(piece)).collect();
    if query.none.iter().any(|phrase| terms.iter().any(|piece| !phrase.find(piece).is_empty())) {
        return None;
    }
    let mut matches: Vec<Vec<Match>> = pieces.iter().map(|_| Vec::new()).collect();
    let mut phrase = 0;
    for group in &query.all {
        let mut matched = false;
        for wanted in group {
            for (piece, found) in terms.iter().zip(&mut matches) {
                let ranges = wanted.find(piece).into_iter();
                found.extend(ranges.map(|range| Match { phrase, range }));
                matched |= found.last().is_some_and(|last| last.phrase == phrase);
            }
            phrase += 1;
        }
        if !matched {
            return None;
        }
    }
    let mut best: Option<(usize, usize, usize)> = None;
    for (piece, found) in matches.iter_mut().enumerate() {
        found.sort_by_key(|found| (found.range.start, found.range.end));
        if let Some((distinct, start)) = densest(found)
            && best.is_none_or(|(most, ..)| distinct > most)
        {
            best = Some((distinct, piece, start));
        }
    }
    best.map(|(_, piece, start)| cut(&pieces[piece], start, &matches[piece]))
}

/// Returns where a window with the most different phrases begins, and how many those are.
fn densest(matches: &[Match]) -> Option<(usize, usize)> {
    let mut best: Option<(usize, usize)> = None;
    for (at, first) in matches.iter().enumerate().take(LENGTH) {
        let end = first.range.start + LENGTH - BEFORE;
        let near = matches[at..].iter().take_while(|found| found.range.end <= end);
        let mut phrases: Vec<usize> = near.take(LENGTH).map(|found| found.phrase).collect();
        phrases.sort_unstable();
        phrases.dedup();
        let distinct = phrases.len().max(1);
        if best.is_none_or(|(most, _)| distinct > most) {
            best = Some((distinct, first.range.start));
        }
    }
    best
}

fn cut(piece: &str, first: usize, matches: &[Match]) -> Snippet {
    // Only the neighbourhood is looked at: a piece may be large.
    let from = first.saturating_sub(BEFORE + SLACK);
    let near: Vec<char> = piece.chars().skip(from).take(LENGTH + BEFORE + 2 * SLACK).collect();
    let is_space = |at: usize| near.get(at).is_none_or(|symbol| symbol.is_whitespace());
    let wanted = first.saturating_sub(BEFORE) - from;
    let start = match wanted {
        0 => 0,
        wanted => (wanted..(wanted + SLACK).min(first - from))
            .find(|at| is_space(at - 1) && !is_space(*at))
            .unwrap_or(wanted),
    };
    let longest = (start + LENGTH).min(near.len());
    let end = (longest.saturating_sub(SLACK).max(start)..=longest)
        .rev()
        .find(|at| is_space(*at))
        .unwrap_or(longest);
    let (start, text) = slice_graphemes(piece, from + start..from + end);
    let end = start + text.chars().count();
    let cut_off = piece.chars().nth(end).is_some();
    let mut out = String::from(if start > 0 { "…" } else { "" });
    let shift = usize::from(start > 0);
    out.extend(text.chars().map(|symbol| match symbol {
        space if space.is_whitespace() || space.is_control() => ' ',
        other => other,
    }));
    if cut_off {
        out.push('…');
    }
    let mut highlights: Vec<(usize, usize)> = Vec::new();
    for Range { start: from, end: to } in matches.iter().map(|found| found.range.clone()) {
        let (from, to) = (from.max(start), to.min(end));
        if from >= to {
            continue;
        }
        let (from, to) = (from - start + shift, to - start + shift);
        match highlights.last_mut() {
            Some(last) if from <= last.1 => last.1 = last.1.max(to),
            _ => highlights.push((from, to)),
        }
    }
    Snippet { text: out, highlights }
}
