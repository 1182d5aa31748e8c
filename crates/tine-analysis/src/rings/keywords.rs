//! Extracts the keywords of a turn.
//!
//! Candidates are phrases of up to three words between stop words, and the words in them. They are
//! ranked by statistics of the text alone: frequency, number of sentences, position,
//! capitalisation, and the variety of neighbouring words. All scores are integers, so that every
//! machine ranks alike.

use std::collections::{HashMap, HashSet};

use crate::rings::language::Language;
use crate::rings::sentences::Sentence;
use crate::rings::tokens::{RingToken, TokenKind, tokens};
use crate::rings::{Keyword, MAX_KEYWORDS, Span};

/// The maximum number of words in a phrase.
const MAX_PHRASE: usize = 3;

/// The number of better keywords at which a word that occurs only in phrases is left out.
const ENOUGH: usize = 8;

/// The weight of a phrase of weak words, such as `best time`.
const WEAK_PHRASE: u64 = 1_000;

/// A candidate must have more than the best score divided by this.
const LEAST_SHARE: u64 = 12;

struct KeywordCandidate {
    text: String,
    span: Span,
    /// The average weight of its words, in thousandths.
    weight: u64,
    words: u64,
    count: u64,
    /// How often it occurs outside of phrases.
    alone: u64,
    /// The number of sentences with it.
    sentences: u64,
    first: usize,
    last: usize,
    is_name: bool,
    neighbours: HashSet<u64>,
}

/// Returns the keywords of a text, the best first.
pub(crate) fn keywords(text: &str, sentences: &[Sentence<'_>]) -> Vec<Keyword> {
    let mut counts = CandidateCounts { text, candidates: HashMap::new() };
    for (no, sentence) in sentences.iter().enumerate() {
        let tokens = tokens(sentence);
        for phrase in phrases(&tokens, sentence.language) {
            counts.count(&tokens, phrase, no, sentence.language);
        }
    }
    let total = sentences.len() as u64;
    let mut ranked: Vec<(u64, KeywordCandidate)> =
        counts.candidates.into_values().map(|it| (score(&it, total), it)).collect();
    ranked.sort_by(|(one, a), (other, b)| {
        other.cmp(one).then(a.span.cmp(&b.span)).then_with(|| a.text.cmp(&b.text))
    });
    best(ranked)
}

/// Returns the best candidates, without those with low scores.
fn best(ranked: Vec<(u64, KeywordCandidate)>) -> Vec<Keyword> {
    let least = ranked.first().map_or(0, |(score, _)| score / LEAST_SHARE);
    let mut found = Vec::new();
    for (score, candidate) in ranked {
        let is_part = candidate.alone == 0 && !candidate.is_name;
        if found.len() == MAX_KEYWORDS {
            break;
        }
        if score > least && !(is_part && found.len() >= ENOUGH) {
            found.push(Keyword { text: candidate.text, span: candidate.span });
        }
    }
    found
}

struct CandidateCounts<'t> {
    text: &'t str,
    candidates: HashMap<String, KeywordCandidate>,
}

impl CandidateCounts<'_> {
    /// Counts a phrase and its words.
    fn count(
        &mut self,
        tokens: &[RingToken],
        phrase: PhraseRange,
        sentence: usize,
        language: Language,
    ) {
        let neighbours =
            [phrase.start.checked_sub(1).and_then(|it| tokens.get(it)), tokens.get(phrase.end)];
        let phrase_tokens = &tokens[phrase.start..phrase.end];
        let described = is_described(phrase_tokens, language);
        self.add(phrase_tokens, !described, neighbours, sentence, language);
        if phrase_tokens.len() == 1 {
            return;
        }
        for part in phrase_tokens.chunks(1).filter(|part| !part[0].links) {
            let short = language == Language::Chinese && span_length(phrase_tokens) <= 4;
            let stands = described || short;
            match part[0].kind {
                TokenKind::Word | TokenKind::Name | TokenKind::Identifier => {
                    self.add(part, stands, [None, None], sentence, language);
                }
                TokenKind::Verb => self.add(part, true, [None, None], sentence, language),
                _ => {}
            }
        }
    }

    fn add(
        &mut self,
        phrase_tokens: &[RingToken],
        alone: bool,
        neighbours: [Option<&RingToken>; 2],
        sentence: usize,
        language: Language,
    ) {
        let (Some(first), Some(last)) = (phrase_tokens.first(), phrase_tokens.last()) else {
            return;
        };
        let key: Vec<String> = phrase_tokens.iter().map(|it| stem(&it.folded, language)).collect();
        let content = phrase_tokens.iter().filter(|it| !it.links);
        let words = content.clone().count() as u64;
        let weight = match words > 1 && phrase_tokens.iter().all(|it| it.kind == TokenKind::Weak) {
            true => WEAK_PHRASE,
            false => content.map(|it| weight(it.kind)).sum::<u64>() / words.max(1),
        };
        let span = Span { start: first.span.start, end: last.span.end };
        let candidate = self.candidates.entry(key.join(" ")).or_insert_with(|| KeywordCandidate {
            text: self.text[first.at.start..last.at.end].to_owned(),
            span,
            weight,
            words,
            count: 0,
            alone: 0,
            sentences: 0,
            first: sentence,
            last: usize::MAX,
            is_name: phrase_tokens
                .iter()
                .all(|it| matches!(it.kind, TokenKind::Name | TokenKind::Identifier)),
            neighbours: HashSet::new(),
        });
        candidate.weight = candidate.weight.max(weight);
        candidate.count += 1;
        candidate.alone += u64::from(alone);
        candidate.sentences += u64::from(candidate.last != sentence);
        candidate.last = sentence;
        for neighbour in neighbours.into_iter().flatten() {
            candidate.neighbours.insert(fingerprint(&neighbour.folded));
        }
    }
}

/// Returns whether a phrase is a German noun after an adjective. The adjective is inflected, so the noun
/// is the keyword.
fn is_described(phrase_tokens: &[RingToken], language: Language) -> bool {
    let noun = phrase_tokens.last().is_some_and(|it| it.kind != TokenKind::Weak);
    language == Language::German
        && noun
        && phrase_tokens.first().is_some_and(|it| it.kind == TokenKind::Weak)
}

fn span_length(phrase_tokens: &[RingToken]) -> usize {
    phrase_tokens.iter().map(|it| it.span.end - it.span.start).sum()
}

/// A phrase, as a range of words.
#[derive(Clone, Copy)]
struct PhraseRange {
    start: usize,
    end: usize,
}

fn phrases(tokens: &[RingToken], language: Language) -> Vec<PhraseRange> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let start = at;
        at += 1;
        if matches!(tokens[start].kind, TokenKind::Stop | TokenKind::Number) {
            continue;
        }
        while at < tokens.len() && joins(tokens, start, at, language) {
            at += 1;
        }
        while at > start + 1 && (tokens[at - 1].links || tokens[at - 1].kind == TokenKind::Stop) {
            at -= 1;
        }
        split(start, at, &mut found);
    }
    found
}

/// Returns whether a phrase continues with a word.
fn joins(tokens: &[RingToken], start: usize, at: usize, language: Language) -> bool {
    let (before, next) = (&tokens[at - 1], &tokens[at]);
    if !next.joined {
        return false;
    }
    // `base de données`: a small word between two keywords.
    if next.links {
        let behind = tokens.get(at + 1).filter(|it| it.joined);
        let is_noun = |it: &RingToken| it.kind == TokenKind::Word;
        // Of a longer chain, the last two: `receta de | tortilla de patatas`.
        let chained = tokens.get(at + 2).is_some_and(|it| it.links && it.joined)
            && tokens.get(at + 3).is_some_and(|it| it.joined && is_noun(it));
        return at == start + 1 && is_noun(before) && behind.is_some_and(is_noun) && !chained;
    }
    if before.links {
        return true;
    }
    if at > start + 1 && tokens[start..at].iter().any(|it| it.links) {
        return false;
    }
    use TokenKind::{Amount, Identifier, Name, Number, Verb, Weak, Word};
    match (before.kind, next.kind) {
        (_, TokenKind::Stop) | (Verb | Amount | Number, _) | (_, Amount) => false,
        (_, Number) => true,
        _ if language == Language::Chinese => {
            let fits = matches!(
                (before.kind, next.kind),
                (Word | Name | Weak, Word) | (Word | Name, Verb) | (Weak, Weak)
            );
            fits && at - start < 2
        }
        (_, Verb) | (Word | Weak, Identifier) => false,
        _ if language == Language::Japanese => next.kind != Weak && before.kind != Weak,
        (Name, Name | Identifier) => true,
        (Word | Weak | Identifier, Name) => language == Language::German,
        (Word, Weak) => language == Language::English || language == Language::Other,
        _ => true,
    }
}

/// Splits a long phrase; the important words are at its end.
fn split(start: usize, end: usize, found: &mut Vec<PhraseRange>) {
    let mut pieces = Vec::new();
    let mut end = end;
    while end - start > MAX_PHRASE {
        pieces.push(PhraseRange { start: end - 2, end });
        end -= 2;
    }
    pieces.push(PhraseRange { start, end });
    found.extend(pieces.into_iter().rev());
}

fn weight(kind: TokenKind) -> u64 {
    match kind {
        TokenKind::Name | TokenKind::Identifier => 2_600,
        TokenKind::Word => 2_000,
        TokenKind::Amount => 1_100,
        TokenKind::Verb => 900,
        TokenKind::Weak => 500,
        TokenKind::Number | TokenKind::Stop => 300,
    }
}

fn score(candidate: &KeywordCandidate, total: u64) -> u64 {
    let length = 100 + 25 * (candidate.words.max(1) - 1);
    let spread = 100 + 30 * candidate.sentences / total.max(1);
    let early = 100 + 30 / (1 + candidate.first as u64);
    // A word with ever different neighbours is probably a function word that the lists lack.
    let steady = match candidate.count {
        0..=2 => 100,
        count => 120 - (20 * candidate.neighbours.len() as u64 / count).min(40),
    };
    let role = match candidate.alone {
        0 if candidate.is_name => 70,
        0 => 40,
        _ => 100,
    };
    let factors = [length, spread, early, steady, role];
    let often = candidate.weight * frequency(candidate.count);
    factors.into_iter().fold(often, |score, factor| score * factor / 100)
}

/// Returns 1 plus the binary logarithm of a count, in hundredths, linear between powers of two.
fn frequency(count: u64) -> u64 {
    let count = count.max(1);
    let whole = u64::from(count.ilog2());
    let power = 1 << whole;
    100 + 100 * whole + 100 * (count - power) / power
}

/// Returns the common stem of the forms of a word.
fn stem(folded: &str, language: Language) -> String {
    let strip = |endings: &[&str], least: usize| {
        let fits =
            |ending: &&&str| folded.len() >= ending.len() + least && folded.ends_with(**ending);
        endings.iter().find(fits).map_or(folded, |ending| &folded[..folded.len() - ending.len()])
    };
    match language {
        _ if !folded.is_ascii() => folded.to_owned(),
        _ if folded.ends_with("ss") || folded.ends_with("us") || folded.ends_with("is") => {
            folded.to_owned()
        }
        Language::German => strip(&["en", "er", "es", "e", "n", "s"], 4).to_owned(),
        Language::Spanish => strip(&["es", "s"], 4).to_owned(),
        _ if folded.ends_with("ies") && folded.len() > 4 => {
            format!("{}y", &folded[..folded.len() - 3])
        }
        _ if folded.ends_with("shes") || folded.ends_with("ches") || folded.ends_with("xes") => {
            folded[..folded.len() - 2].to_owned()
        }
        _ => strip(&["s"], 3).to_owned(),
    }
}

/// Hashes a word (FNV-1a), equally on every machine.
fn fingerprint(word: &str) -> u64 {
    let mix = |sum: u64, byte: u8| (sum ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    word.bytes().fold(0xcbf2_9ce4_8422_2325, mix)
}
