//! Splits a sentence into words and classifies their capitalisation.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use super::passage::pattern;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WordShape {
    /// `table`
    Lower,
    /// `Table`
    Capital,
    /// `TABLE`
    Upper,
    /// `iPhone`, `YouTube`
    Mixed,
    /// `3.5`
    Number,
}

/// What lies between a word and the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gap {
    /// It is the first.
    Start,
    /// White space alone.
    Space,
    /// A point and white space, as behind `Dr.`
    Point,
    /// A comma and white space.
    Comma,
    /// An ampersand between white space.
    Ampersand,
    /// Something else.
    Other,
}

#[derive(Clone, Debug)]
pub(super) struct Word {
    /// Its bytes in the sentence, without a possessive `'s`.
    pub at: Range<usize>,
    /// In lower case, apostrophes straight, without a possessive `'s`.
    pub folded: String,
    pub shape: WordShape,
    pub gap: Gap,
    /// Whether `'s` follows.
    pub owns: bool,
    /// Where it ends, with that.
    pub end: usize,
}

impl Word {
    /// Returns whether it is written as names are.
    pub fn is_name_shaped(&self) -> bool {
        matches!(self.shape, WordShape::Capital | WordShape::Upper | WordShape::Mixed)
    }

    /// Returns whether it is one of these, in lower case with spaces between.
    pub fn is(&self, any: &str) -> bool {
        among(any, &self.folded)
    }
}

/// Returns whether a word is one of a few, which are written with spaces between.
pub(super) fn among(few: &str, word: &str) -> bool {
    few.split(' ').any(|it| it == word)
}

pub(super) fn tokenize(sentence: &str) -> Vec<Word> {
    static WORD: LazyLock<Regex> = LazyLock::new(|| {
        pattern(
            r"[\p{L}_][\p{L}\p{M}\p{N}_]*(?:['’&\-][\p{L}\p{N}][\p{L}\p{M}\p{N}]*)*|\p{N}[\p{N}.,:/]*[\p{L}\p{N}]*",
        )
    });
    let mut found: Vec<Word> = Vec::new();
    let mut end = None;
    for word in WORD.find_iter(sentence) {
        let text = word.as_str();
        let straight = text.replace('’', "'");
        let bare = straight.strip_suffix("'s").filter(|_| is_owner(text));
        let length = bare.map_or(text.len(), |_| text.len() - owned_suffix(text));
        let gap = end.map_or(Gap::Start, |end| gap(&sentence[end..word.start()]));
        found.push(Word {
            at: word.start()..word.start() + length,
            folded: bare.unwrap_or(&straight).to_lowercase(),
            shape: shape(&text[..length]),
            gap,
            owns: bare.is_some(),
            end: word.end(),
        });
        end = Some(word.end());
    }
    found
}

/// "it's", "that's", "let's" and their like are two words, not an owner.
fn is_owner(text: &str) -> bool {
    const VERBS: &str = "it that let he she what there who here where";
    let stem = &text[..text.len() - owned_suffix(text)];
    !among(VERBS, &stem.to_ascii_lowercase())
}

fn owned_suffix(text: &str) -> usize {
    if text.ends_with("’s") { "’s".len() } else { "'s".len().min(text.len()) }
}

fn gap(between: &str) -> Gap {
    if between.trim().is_empty() {
        // Words that touch are parts of something else, such as a number with its unit.
        return if between.is_empty() { Gap::Other } else { Gap::Space };
    }
    match between.trim_end() {
        // "Parents' evening"
        "'" | "’" => Gap::Space,
        "." => Gap::Point,
        "," => Gap::Comma,
        " &" => Gap::Ampersand,
        _ => Gap::Other,
    }
}

fn shape(text: &str) -> WordShape {
    let mut letters = text.chars().filter(|c| c.is_alphabetic());
    let first = text.chars().next();
    if first.is_some_and(char::is_numeric) {
        return WordShape::Number;
    }
    let capital = first.is_some_and(char::is_uppercase);
    let upper = letters.clone().filter(|c| c.is_uppercase()).count();
    let count = letters.clone().count();
    if upper == count && count > 1 {
        return WordShape::Upper;
    }
    let inner = letters.by_ref().skip(1).any(char::is_uppercase);
    // Capitals behind a hyphen or an apostrophe are those of double names: Anne-Marie, O'Neil.
    let joined = text.contains(['-', '\'', '’', '&']);
    match (capital, inner && !joined) {
        (true, false) => WordShape::Capital,
        (_, true) => WordShape::Mixed,
        (false, false) => WordShape::Lower,
    }
}

/// Returns the word that begins at a byte or behind it.
pub(super) fn word_from(words: &[Word], byte: usize) -> usize {
    words.partition_point(|word| word.at.start < byte)
}
