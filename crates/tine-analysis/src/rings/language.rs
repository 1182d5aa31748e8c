//! Detects the language of a sentence.
//!
//! Chinese and Japanese are detected by script, other languages by their most common words.

use std::sync::LazyLock;

use rustc_hash::FxHashMap;

use crate::rings::lists;
use crate::rings::script::{is_han, is_kana};

/// A language with word lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Language {
    English,
    German,
    French,
    Spanish,
    Chinese,
    Japanese,
    /// A language without lists.
    Other,
}

/// The languages that are detected by words; the first wins a tie.
const SPACED: [Language; 4] =
    [Language::English, Language::German, Language::French, Language::Spanish];

/// How often the words of each language occur.
#[derive(Clone, Copy, Default)]
pub(crate) struct Votes {
    spaced: [u32; SPACED.len()],
    words: u32,
    han: u32,
    kana: u32,
    letters: u32,
}

/// The vote of a word of one language; a word of several languages splits it.
const WHOLE_VOTE: u32 = 12;

/// The vote of an accented letter.
const LETTER_VOTE: u32 = 6;

static VOTES: LazyLock<FxHashMap<&'static str, [u32; SPACED.len()]>> = LazyLock::new(|| {
    let mut votes: FxHashMap<&str, [u32; SPACED.len()]> = FxHashMap::default();
    for (no, language) in SPACED.into_iter().enumerate() {
        let lists = lists::of(language);
        let words = lists.stop.iter().chain(&lists.weak).chain(&lists.verbs);
        for word in words.chain(lists.cues.standalone_words()) {
            votes.entry(word).or_default()[no] = 1;
        }
    }
    for vote in votes.values_mut() {
        let languages = vote.iter().sum::<u32>();
        vote.iter_mut().for_each(|it| *it *= WHOLE_VOTE / languages);
    }
    votes
});

impl Votes {
    /// Counts the words of a sentence, and letters that occur in few languages.
    pub fn of(text: &str, plain: &str) -> Self {
        let mut votes = Self::default();
        for symbol in text.chars().filter(|it| !it.is_ascii()) {
            match symbol {
                'ä' | 'ö' | 'ü' | 'ß' | 'Ä' | 'Ö' | 'Ü' | '„' => {
                    votes.spaced[1] += LETTER_VOTE
                }
                'è' | 'ê' | 'ç' | 'à' | 'ù' | 'â' | 'î' | 'œ' | 'ë' | 'û' | 'À' | 'Ê' | 'Ç' =>
                {
                    votes.spaced[2] += LETTER_VOTE;
                }
                'ñ' | '¿' | '¡' | 'í' | 'ó' | 'á' | 'ú' | 'Á' => {
                    votes.spaced[3] += LETTER_VOTE
                }
                _ => {}
            }
        }
        for word in plain.split(' ').filter(|word| !word.is_empty()) {
            votes.words += 1;
            let elided = word.split_inclusive('\'').next().filter(|it| it.len() < word.len());
            for part in [Some(word), elided].into_iter().flatten() {
                let Some(vote) = VOTES.get(part) else { continue };
                votes.spaced.iter_mut().zip(vote).for_each(|(sum, it)| *sum += it);
            }
        }
        for symbol in plain.chars().filter(|it| it.is_alphabetic()) {
            match symbol {
                _ if is_kana(symbol) => votes.kana += 1,
                _ if is_han(symbol) => votes.han += 1,
                _ => votes.letters += 1,
            }
        }
        votes
    }

    /// Adds the votes of another sentence.
    pub fn add(&mut self, other: &Self) {
        self.spaced.iter_mut().zip(other.spaced).for_each(|(sum, it)| *sum += it);
        self.words += other.words;
        self.han += other.han;
        self.kana += other.kana;
        self.letters += other.letters;
    }

    /// Returns the language of a whole text.
    pub fn language(&self) -> Language {
        self.within(None)
    }

    /// Returns the language of a sentence in a text of a known language.
    pub fn within(&self, whole: Option<Language>) -> Language {
        let east_asian = self.han + self.kana;
        // A name in Latin letters has more letters than a word of Chinese characters.
        if east_asian * 4 >= self.letters.max(1) {
            let japanese = whole == Some(Language::Japanese) || self.kana * 8 >= east_asian;
            return if japanese { Language::Japanese } else { Language::Chinese };
        }
        let best = self.spaced.iter().copied().max().unwrap_or(0);
        let usual = whole.and_then(|whole| SPACED.iter().position(|it| *it == whole));
        match usual {
            Some(usual) if self.spaced[usual] == best => SPACED[usual],
            _ if best > 0 => {
                let first = self.spaced.iter().position(|it| *it == best);
                first.map_or(Language::Other, |first| SPACED[first])
            }
            _ if self.words >= 4 || whole == Some(Language::Other) => Language::Other,
            _ => Language::English,
        }
    }
}
