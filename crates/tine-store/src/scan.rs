//! Search by reading turns: without an index, or with one that only lists candidates.
//!
//! It serves stores without an index, and as the reference for indexes. Only the present content of
//! turns is searched. The ranking is that of the embedded store's index, BM25 with k1 = 1.2 and
//! b = 0.75, over the turns of the project.

use tine_core::{search_text, tokenizer};

use crate::Result;
use crate::records::{Content, ConversationKey, Turn};
use crate::search::{Phrase, Ranked, SearchCandidate, SearchFilter, TextQuery};
use crate::traits::Read;

/// The number of conversations in a page.
const CONVERSATIONS_PAGE: usize = 1_000;

/// Returns every matching turn of the project, best first.
pub fn search(records: &dyn Read, query: &TextQuery, filter: &SearchFilter) -> Result<Ranked> {
    let mut scan = SearchScan::new(query, filter);
    let mut after = None;
    loop {
        let page = records.conversations(&filter.project, after, CONVERSATIONS_PAGE)?;
        let Some(last) = page.last() else { break };
        after = Some(last.key);
        for conversation in &page {
            for extent in records.segments(conversation.key)? {
                records.turns(extent.segment.no, 0, u32::MAX, &mut |turn| {
                    scan.visit(conversation.key, &turn);
                    Ok(true)
                })?;
            }
        }
    }
    let corpus = scan.corpus;
    Ok(scan.ranked(corpus))
}

/// The size of a project's text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CorpusSize {
    /// Turns with content.
    pub turns: u64,
    /// The sum of their lengths.
    pub terms: u64,
}

/// Returns the length of a turn, as the ranking counts it.
pub fn turn_length(pieces: &[String], tags: usize) -> usize {
    let terms: usize = pieces.iter().map(|piece| tokenizer::terms(piece).len()).sum();
    terms + extra_terms(pieces.len(), tags)
}

/// Returns the number of additional terms: separators between pieces, and labels.
fn extra_terms(pieces: usize, tags: usize) -> usize {
    pieces.saturating_sub(1) + tags
}

/// A matching turn, its length, and how often it contains each phrase.
struct MatchedTurn {
    candidate: SearchCandidate,
    terms: usize,
    phrases: Vec<usize>,
}

/// A search over turns that are visited one by one.
pub struct SearchScan<'q> {
    query: &'q TextQuery,
    filter: &'q SearchFilter,
    phrases: Vec<&'q Phrase>,
    /// The number of turns that contain each phrase.
    turns_with_phrase: Vec<u64>,
    corpus: CorpusSize,
    found: Vec<MatchedTurn>,
}

impl<'q> SearchScan<'q> {
    /// Starts a search.
    pub fn new(query: &'q TextQuery, filter: &'q SearchFilter) -> Self {
        let phrases: Vec<&Phrase> = query.all.iter().flatten().collect();
        let turns_with_phrase = vec![0; phrases.len()];
        SearchScan {
            query,
            filter,
            phrases,
            turns_with_phrase,
            corpus: CorpusSize::default(),
            found: Vec::new(),
        }
    }

    /// Visits a turn of the project. Every turn that contains one of the phrases must be visited,
    /// whatever the filter.
    pub fn visit(&mut self, conversation: ConversationKey, turn: &Turn) {
        let Some(counted) = count(turn, &self.phrases, self.query) else { return };
        self.corpus.turns += 1;
        self.corpus.terms += counted.terms as u64;
        for (turns, count) in self.turns_with_phrase.iter_mut().zip(&counted.phrases) {
            *turns += u64::from(*count > 0);
        }
        let in_conversation = self.filter.conversation.is_none_or(|only| only == conversation);
        if in_conversation && counted.matches && passes(turn, self.filter) {
            let (loc, at) = (turn.loc, turn.created_at);
            let candidate = SearchCandidate { loc, conversation, score: 0, at };
            let (terms, phrases) = (counted.terms, counted.phrases);
            self.found.push(MatchedTurn { candidate, terms, phrases });
        }
    }

    /// Returns the matching turns, best first, given the size of the project's text.
    pub fn ranked(self, project: CorpusSize) -> Ranked {
        let average = project.terms as f64 / (project.turns.max(1)) as f64;
        let weights: Vec<f64> =
            self.turns_with_phrase.iter().map(|turns| rarity(project.turns, *turns)).collect();
        self.found
            .into_iter()
            .map(|MatchedTurn { candidate, terms, phrases }| {
                let length = 1.2 * (1.0 - 0.75 + 0.75 * terms as f64 / average);
                let score = phrases.iter().zip(&weights).map(|(count, weight)| {
                    let count = *count as f64;
                    weight * count * 2.2 / (count + length)
                });
                SearchCandidate { score: round_score(score.sum()), ..candidate }
            })
            .collect()
    }
}

/// Rounds a score to hundredths, in which scores are compared.
pub fn round_score(score: f64) -> i64 {
    (score * 100.0).round() as i64
}

fn rarity(turns: u64, matching: u64) -> f64 {
    let (turns, matching) = (turns as f64, matching as f64);
    let rarity = ((turns - matching + 0.5) / (matching + 0.5)).ln();
    if rarity > 0.0 { rarity } else { 1e-6 }
}

struct PhraseCounts {
    terms: usize,
    phrases: Vec<usize>,
    matches: bool,
}

/// Counts phrases in a turn; `None` if it was purged.
fn count(turn: &Turn, wanted: &[&Phrase], query: &TextQuery) -> Option<PhraseCounts> {
    let Content::Kept(body) = &turn.content else { return None };
    let pieces: Vec<_> = search_text::pieces(body, &turn.metadata)
        .iter()
        .map(|piece| tokenizer::terms(piece))
        .collect();
    let occurrences = |phrase: &Phrase| pieces.iter().map(|piece| phrase.find(piece).len()).sum();
    let phrases: Vec<usize> = wanted.iter().map(|phrase| occurrences(phrase)).collect();
    let mut rest = phrases.iter();
    let all = query.all.iter().all(|group| {
        // `count` consumes the whole group, also after the first match.
        rest.by_ref().take(group.len()).filter(|count| **count > 0).count() > 0
    });
    let none = query.none.iter().all(|phrase| occurrences(phrase) == 0usize);
    let terms = pieces.iter().map(Vec::len).sum::<usize>();
    let terms = terms + extra_terms(pieces.len(), turn.metadata.tags.len());
    Some(PhraseCounts { terms, phrases, matches: all && none })
}

fn passes(turn: &Turn, filter: &SearchFilter) -> bool {
    filter.role.is_none_or(|role| role == turn.role)
        && filter.from.is_none_or(|from| turn.created_at >= from)
        && filter.to.is_none_or(|to| turn.created_at < to)
        && filter.tags.is_subset(&turn.metadata.tags)
}
