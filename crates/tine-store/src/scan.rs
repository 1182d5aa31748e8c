//! Searching by reading turns: without an index, or with one that only names them.
//!
//! What a store does that brings no index of its own, and what an index is compared with. Only
//! turns that say what is asked for now are found. The ranking is that of the embedded store's
//! index, BM25 with k1 = 1.2 and b = 0.75, over the turns of the project.

use tine_core::{search_text, tokenizer};

use crate::Result;
use crate::records::{Content, ConversationKey, Turn};
use crate::search::{Candidate, Phrase, Ranked, SearchFilter, TextQuery};
use crate::traits::Read;

/// Conversations read at once.
const CONVERSATIONS: usize = 1_000;

/// Every turn of the project that fits, best first.
pub fn search(records: &dyn Read, query: &TextQuery, filter: &SearchFilter) -> Result<Ranked> {
    let mut scan = Scan::new(query, filter);
    let mut after = None;
    loop {
        let page = records.conversations(&filter.project, after, CONVERSATIONS)?;
        let Some(last) = page.last() else { break };
        after = Some(last.key);
        for conversation in &page {
            for extent in records.segments(conversation.key)? {
                records.turns(extent.segment.no, 0, u32::MAX, &mut |turn| {
                    scan.see(conversation.key, &turn);
                    Ok(true)
                })?;
            }
        }
    }
    let seen = scan.seen;
    Ok(scan.ranked(seen))
}

/// How much a project says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    /// Turns that say something.
    pub turns: u64,
    /// Their lengths together.
    pub terms: u64,
}

/// The length of a turn, as the ranking counts it.
pub fn length(pieces: &[String], tags: usize) -> usize {
    let terms: usize = pieces.iter().map(|piece| tokenizer::terms(piece).len()).sum();
    terms + between(pieces.len(), tags)
}

/// What stands between pieces, and labels, count as terms.
fn between(pieces: usize, tags: usize) -> usize {
    pieces.saturating_sub(1) + tags
}

/// A turn that fits, its length, and how often it says each phrase.
struct Counted {
    candidate: Candidate,
    terms: usize,
    phrases: Vec<usize>,
}

/// A search over turns that are shown to it one by one.
pub struct Scan<'q> {
    query: &'q TextQuery,
    filter: &'q SearchFilter,
    wanted: Vec<&'q Phrase>,
    /// Turns that say each phrase.
    holders: Vec<u64>,
    seen: Extent,
    found: Vec<Counted>,
}

impl<'q> Scan<'q> {
    /// A search that has seen nothing yet.
    pub fn new(query: &'q TextQuery, filter: &'q SearchFilter) -> Self {
        let wanted: Vec<&Phrase> = query.all.iter().flatten().collect();
        let holders = vec![0; wanted.len()];
        Scan { query, filter, wanted, holders, seen: Extent::default(), found: Vec::new() }
    }

    /// Looks at a turn of the project. Every turn that says one of the phrases must be shown,
    /// whatever the filter.
    pub fn see(&mut self, conversation: ConversationKey, turn: &Turn) {
        let Some(counted) = count(turn, &self.wanted, self.query) else { return };
        self.seen.turns += 1;
        self.seen.terms += counted.terms as u64;
        for (holders, said) in self.holders.iter_mut().zip(&counted.phrases) {
            *holders += u64::from(*said > 0);
        }
        let here = self.filter.conversation.is_none_or(|only| only == conversation);
        if here && counted.fits && passes(turn, self.filter) {
            let (loc, at) = (turn.loc, turn.created_at);
            let candidate = Candidate { loc, conversation, score: 0, at };
            let (terms, phrases) = (counted.terms, counted.phrases);
            self.found.push(Counted { candidate, terms, phrases });
        }
    }

    /// What was found, best first, in a project that says so much.
    pub fn ranked(self, project: Extent) -> Ranked {
        let average = project.terms as f64 / (project.turns.max(1)) as f64;
        let weights: Vec<f64> =
            self.holders.iter().map(|holders| rarity(project.turns, *holders)).collect();
        self.found
            .into_iter()
            .map(|Counted { candidate, terms, phrases }| {
                let length = 1.2 * (1.0 - 0.75 + 0.75 * terms as f64 / average);
                let score = phrases.iter().zip(&weights).map(|(said, weight)| {
                    let said = *said as f64;
                    weight * said * 2.2 / (said + length)
                });
                Candidate { score: hundredths(score.sum()), ..candidate }
            })
            .collect()
    }
}

/// A score as it is compared.
pub fn hundredths(score: f64) -> i64 {
    (score * 100.0).round() as i64
}

fn rarity(turns: u64, holders: u64) -> f64 {
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
    let pieces: Vec<_> = search_text::pieces(body, &turn.metadata)
        .iter()
        .map(|piece| tokenizer::terms(piece))
        .collect();
    let often = |phrase: &Phrase| pieces.iter().map(|piece| phrase.find(piece).len()).sum();
    let phrases: Vec<usize> = wanted.iter().map(|phrase| often(phrase)).collect();
    let mut rest = phrases.iter();
    let all = query.all.iter().all(|group| {
        // Every phrase of the group is passed, also behind one that is there.
        rest.by_ref().take(group.len()).filter(|said| **said > 0).count() > 0
    });
    let none = query.none.iter().all(|phrase| often(phrase) == 0usize);
    let terms = pieces.iter().map(Vec::len).sum::<usize>();
    let terms = terms + between(pieces.len(), turn.metadata.tags.len());
    Some(Count { terms, phrases, fits: all && none })
}

fn passes(turn: &Turn, filter: &SearchFilter) -> bool {
    filter.role.is_none_or(|role| role == turn.role)
        && filter.from.is_none_or(|from| turn.created_at >= from)
        && filter.to.is_none_or(|to| turn.created_at < to)
        && filter.tags.is_subset(&turn.metadata.tags)
}
