//! Finds the subjects of a turn by its words.

use tine_core::rings::FACETS;

use crate::rings::Facet;
use crate::rings::intent;
use crate::rings::lists::{self, lines};
use crate::rings::phrases::{PhraseTrie, starts};
use crate::rings::sentences::Sentence;

/// The longest ending of a compound, in characters.
const MAX_ENDING: usize = 24;

/// Words that indicate facets, in one language.
#[derive(Default)]
pub(crate) struct Lexicon {
    words: PhraseTrie,
    /// Words that indicate a facet in questions only.
    in_questions: PhraseTrie,
    /// Last parts of compounds, reversed.
    endings: PhraseTrie,
    has_endings: bool,
}

impl Lexicon {
    /// Parses a list: `facet: word stem* *ending two_words ?asked`.
    pub fn new(list: &'static str) -> Self {
        let mut lexicon = Self::default();
        for line in lines(list) {
            let (name, words) = line.split_once(": ").expect("a list is part of the program");
            let no = FACETS.iter().position(|it| *it == name).expect("a facet") as u8;
            for word in words.split_whitespace().map(|word| word.replace('_', " ")) {
                if let Some(asked) = word.strip_prefix('?') {
                    lexicon.in_questions.add(asked, no);
                    continue;
                }
                match word.strip_prefix('*') {
                    Some(ending) => {
                        let backwards: String = ending.chars().rev().collect();
                        lexicon.endings.add(&(backwards + "*"), no);
                        lexicon.has_endings = true;
                    }
                    None => lexicon.words.add(&word, no),
                }
            }
        }
        lexicon
    }

    /// Calls `each` for every facet of a folded sentence, with the bytes of its word and its number.
    fn visit(&self, plain: &str, asks: bool, each: &mut dyn FnMut(usize, usize, u8)) {
        for start in starts(plain) {
            if asks {
                self.in_questions.at(plain, start, &mut |found| each(start, found.end, found.tag));
            }
            self.words.at(plain, start, &mut |found| each(start, found.end, found.tag));
            if self.has_endings {
                let length = plain[start..].find(' ').unwrap_or(plain.len() - start);
                let word = &plain[start..start + length];
                let tail: String = word.chars().rev().take(MAX_ENDING).collect();
                self.endings.at(&tail, 0, &mut |found| each(start, start + length, found.tag));
            }
        }
    }
}

/// Returns the facets of a text, given its sentences.
pub(crate) fn facets(sentences: &[Sentence<'_>]) -> Vec<Facet> {
    let mut found = [None; FACETS.len()];
    for sentence in sentences {
        let plain = &sentence.plain;
        let asks = intent::is_question(sentence);
        for lexicon in [&lists::of(sentence.language).facets, &lists::ANY_FACETS] {
            lexicon.visit(&plain.text, asks, &mut |start, end, no| {
                let first = &mut found[usize::from(no)];
                let span = plain.span(start, end);
                if first.is_none_or(|first| span < first) {
                    *first = Some(span);
                }
            });
        }
        if found.iter().all(Option::is_some) {
            break;
        }
    }
    let named = FACETS.iter().zip(found);
    named.filter_map(|(name, span)| Some(Facet { name, span: span? })).collect()
}
