//! Cue phrases that indicate the intent of a sentence, in one language.

use crate::rings::lists::lines;
use crate::rings::phrases::PhraseTrie;

/// What a cue indicates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CueKind {
    Question,
    Request,
    Decision,
    Acknowledgement,
    Correction,
    /// Something offered at the end of an answer.
    Offer,
    /// A statement that begins like something else.
    Statement,
}

/// The cues of one kind, by where they must occur in a sentence.
#[derive(Default)]
pub(crate) struct CuePositions {
    /// At the beginning.
    first: PhraseTrie,
    /// Anywhere.
    any: PhraseTrie,
    /// Anywhere, as strong evidence.
    sure: PhraseTrie,
    /// At the end; the phrases are stored reversed.
    last: PhraseTrie,
}

#[derive(Default)]
pub(crate) struct Cues {
    question: CuePositions,
    request: CuePositions,
    decision: CuePositions,
    acknowledgement: CuePositions,
    correction: CuePositions,
    offer: CuePositions,
    statement: CuePositions,
    /// Openings that do not change the intent of a sentence.
    skip: PhraseTrie,
    thanks: PhraseTrie,
    hello: PhraseTrie,
    standalone_words: Vec<String>,
}

/// Tags of phrases in a formula: at least one must count, and fillers may accompany it.
const COUNTS: u8 = 0;
const FILLER: u8 = 1;

/// The maximum number of openings that are removed from a sentence.
const MAX_OPENINGS: usize = 6;

/// The longest formula, in bytes.
const MAX_FORMULA_BYTES: usize = 160;

impl Cues {
    /// Parses a list: `kind position: phrase | phrase`.
    pub fn new(list: &'static str) -> Self {
        let mut cues = Self::default();
        for line in lines(list) {
            let (head, phrases) = line.split_once(": ").expect("a list is part of the program");
            let phrases = phrases.split('|').map(str::trim).filter(|it| !it.is_empty());
            if head.ends_with("whole") {
                cues.standalone_words
                    .extend(phrases.clone().filter(|it| !it.contains(' ')).map(str::to_owned));
            }
            for phrase in phrases {
                cues.add(head, phrase);
            }
        }
        cues
    }

    fn add(&mut self, head: &str, phrase: &str) {
        match head {
            "skip first" => return self.skip.add(phrase, COUNTS),
            "filler" => return self.thanks.add(phrase, FILLER),
            "greeting filler" => return self.hello.add(phrase, FILLER),
            "acknowledgement whole" => return self.thanks.add(phrase, COUNTS),
            "greeting whole" => return self.hello.add(phrase, COUNTS),
            _ => {}
        }
        let (sort, place) = head.split_once(' ').expect("a sort and a place");
        let places = match sort {
            "question" => &mut self.question,
            "request" => &mut self.request,
            "decision" => &mut self.decision,
            "acknowledgement" => &mut self.acknowledgement,
            "correction" => &mut self.correction,
            "offer" => &mut self.offer,
            _ => &mut self.statement,
        };
        match place {
            "first" => places.first.add(phrase, COUNTS),
            "any" => places.any.add(phrase, COUNTS),
            "sure" => places.sure.add(phrase, COUNTS),
            _ => places.last.add(&phrase.chars().rev().collect::<String>(), COUNTS),
        }
    }

    /// Returns words that are complete sentences.
    pub fn standalone_words(&self) -> impl Iterator<Item = &String> {
        self.standalone_words.iter()
    }

    fn places(&self, sort: CueKind) -> &CuePositions {
        match sort {
            CueKind::Question => &self.question,
            CueKind::Request => &self.request,
            CueKind::Decision => &self.decision,
            CueKind::Acknowledgement => &self.acknowledgement,
            CueKind::Correction => &self.correction,
            CueKind::Offer => &self.offer,
            CueKind::Statement => &self.statement,
        }
    }

    /// Returns the length of the longest cue that a sentence begins with, whichever openings it
    /// has.
    pub fn beginning(&self, sort: CueKind, openings: &[&str]) -> usize {
        let first = &self.places(sort).first;
        openings.iter().filter_map(|it| first.longest(it, 0)).map(|it| it.end).max().unwrap_or(0)
    }

    /// Returns whether a sentence begins with a cue.
    pub fn begins(&self, sort: CueKind, openings: &[&str]) -> bool {
        self.beginning(sort, openings) > 0
    }

    /// Returns whether a sentence contains a cue.
    pub fn contains(&self, sort: CueKind, plain: &str) -> bool {
        self.places(sort).any.occur_in(plain)
    }

    /// Returns whether a sentence contains a cue that is strong evidence.
    pub fn contains_strong(&self, sort: CueKind, plain: &str) -> bool {
        self.places(sort).sure.occur_in(plain)
    }

    /// Returns whether a sentence ends with a cue.
    pub fn ends(&self, sort: CueKind, plain: &str) -> bool {
        let tail: String = plain.chars().rev().take(32).collect();
        self.places(sort).last.longest(&tail, 0).is_some()
    }

    /// Returns a sentence and its remainders as openings are removed one by one.
    pub fn without_openings<'p>(&self, plain: &'p str) -> Vec<&'p str> {
        let mut rest = vec![plain];
        while let Some(found) = rest.last().and_then(|last| self.skip.longest(last, 0)) {
            let last = rest[rest.len() - 1];
            rest.push(last[found.end..].trim_start_matches([' ', ',', '、']));
            if rest.len() > MAX_OPENINGS {
                break;
            }
        }
        rest
    }

    /// Returns whether a sentence consists of thanks, agreement and the like.
    pub fn is_acknowledgement(&self, plain: &str) -> bool {
        is_formula(&self.thanks, plain)
    }

    /// Returns whether a sentence consists of greetings.
    pub fn is_greeting(&self, plain: &str) -> bool {
        is_formula(&self.hello, plain)
    }

    /// Returns the rest of a sentence after its initial greeting.
    pub fn after_greeting<'p>(&self, plain: &'p str) -> Option<&'p str> {
        let found = self.hello.longest(plain, 0).filter(|it| it.tag == COUNTS)?;
        plain[found.end..].strip_prefix(' ')
    }
}

/// Returns whether a text is a formula: a sequence of phrases, at least one of which counts.
fn is_formula(phrases: &PhraseTrie, plain: &str) -> bool {
    if plain.is_empty() || plain.len() > MAX_FORMULA_BYTES {
        return false;
    }
    // For each byte: whether a sequence of fillers ends there, and one with a phrase that counts.
    let mut reached = vec![[false; 2]; plain.len() + 1];
    reached[0][0] = true;
    for start in 0..plain.len() {
        let [plainly, counting] = reached[start];
        if !plainly && !counting {
            continue;
        }
        if matches!(plain.as_bytes()[start], b' ' | b',') {
            reached[start + 1][0] |= plainly;
            reached[start + 1][1] |= counting;
            continue;
        }
        phrases.at(plain, start, &mut |found| {
            let counts = found.tag == COUNTS;
            reached[found.end][0] |= plainly && !counts;
            reached[found.end][1] |= counting || counts;
        });
    }
    reached[plain.len()][1]
}
