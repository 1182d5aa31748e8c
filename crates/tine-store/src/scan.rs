//! Searching without an index: everything is read.
//!
//! What a store does that brings no index of its own, and what an index is compared with. Only
//! turns that say what is asked for now are found. The ranking is that of the embedded store's
//! index, BM25 with k1 = 1.2 and b = 0.75, over the turns of the project.

use tine_core::{said, words};

use crate::Result;
use crate::records::{Content, Turn};
use crate::search::{Candidate, Phrase, Ranked, SearchFilter, TextQuery};
use crate::traits::Read;

/// Conversations read at once.
const CONVERSATIONS: usize = 1_000;

/// A turn with its conversation, its length in terms, and how often it says each phrase.
struct Counted {
    candidate: Candidate,
    terms: usize,
    phrases: Vec<usize>,
}

/// Every turn of the project that fits, best first.
pub fn search(records: &dyn Read, query: &TextQuery, filter: &SearchFilter) -> Result<Ranked> {
    let wanted: Vec<&Phrase> = query.all.iter().flatten().collect();
    let (mut turns, mut terms) = (0, 0);
    let mut holders = vec![0; wanted.len()];
    let mut found = Vec::new();
    let mut after = None;
    loop {
        let page = records.conversations(&filter.project, after, CONVERSATIONS)?;
        let Some(last) = page.last() else { break };
        after = Some(last.key);
        for conversation in &page {
            for extent in records.segments(conversation.key)? {
                records.turns(extent.segment.no, 0, u32::MAX, &mut |turn| {
                    let Some(counted) = count(&turn, &wanted, query) else { return Ok(true) };
                    turns += 1;
                    terms += counted.terms;
                    for (holders, said) in holders.iter_mut().zip(&counted.phrases) {
                        *holders += usize::from(*said > 0);
                    }
                    let here = filter.conversation.is_none_or(|only| only == conversation.key);
                    if here && counted.fits && passes(&turn, filter) {
                        let (loc, at) = (turn.loc, turn.created_at);
                        let candidate =
                            Candidate { loc, conversation: conversation.key, score: 0, at };
                        let (terms, phrases) = (counted.terms, counted.phrases);
                        found.push(Counted { candidate, terms, phrases });
                    }
                    Ok(true)
                })?;
            }
        }
    }
    let average = terms as f64 / (turns.max(1)) as f64;
    let weights: Vec<f64> = holders.iter().map(|holders| rarity(turns, *holders)).collect();
    Ok(found
        .into_iter()
        .map(|Counted { candidate, terms, phrases }| {
            let length = 1.2 * (1.0 - 0.75 + 0.75 * terms as f64 / average);
            let score = phrases.iter().zip(&weights).map(|(said, weight)| {
                let said = *said as f64;
                weight * said * 2.2 / (said + length)
            });
            Candidate { score: hundredths(score.sum()), ..candidate }
        })
        .collect())
}

/// A score as it is compared.
pub(crate) fn hundredths(score: f64) -> i64 {
    (score * 100.0).round() as i64
}

fn rarity(turns: usize, holders: usize) -> f64 {
    let (turns, holders) = (turns as f64, holders as f64);
    let rarity = ((turns - holders + 0.5) / (holders + 0.5)).ln();
    if rarity > 0.0 { rarity } else { 1e-6 }
}

struct Count {
    terms: usize,
    phrases: Vec<usize>,
    fits: bool,
}

/// Nothing for a turn that says nothing any more.
fn count(turn: &Turn, wanted: &[&Phrase], query: &TextQuery) -> Option<Count> {
    let Content::Kept(body) = &turn.content else { return None };
    let pieces: Vec<_> =
        said::pieces(body, &turn.metadata).iter().map(|piece| words::terms(piece)).collect();
    let often = |phrase: &Phrase| pieces.iter().map(|piece| phrase.find(piece).len()).sum();
    let phrases: Vec<usize> = wanted.iter().map(|phrase| often(phrase)).collect();
    let mut rest = phrases.iter();
    let all = query.all.iter().all(|group| {
        // Every phrase of the group is passed, also behind one that is there.
        rest.by_ref().take(group.len()).filter(|said| **said > 0).count() > 0
    });
    let none = query.none.iter().all(|phrase| often(phrase) == 0usize);
    let between = pieces.len().saturating_sub(1) + turn.metadata.tags.len();
    let terms = pieces.iter().map(Vec::len).sum::<usize>() + between;
    Some(Count { terms, phrases, fits: all && none })
}

fn passes(turn: &Turn, filter: &SearchFilter) -> bool {
    filter.role.is_none_or(|role| role == turn.role)
        && filter.from.is_none_or(|from| turn.created_at >= from)
        && filter.to.is_none_or(|to| turn.created_at < to)
        && filter.tags.is_subset(&turn.metadata.tags)
}
