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

/// The text between a word and the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gap {
    /// There is no word before.
    Start,
    /// White space.
    Space,
    /// A period and white space, as after `Dr.`
    Point,
    /// A comma and white space.
    Comma,
    /// An ampersand with white space around it.
    Ampersand,
    /// Anything else.
    Other,
}

#[derive(Clone, Debug)]
pub(super) struct Word {
    /// The bytes in the sentence, without a possessive `'s`.
    pub at: Range<usize>,
    /// In lower case, apostrophes straight, without a possessive `'s`.
    pub folded: String,
    pub shape: WordShape,
    pub gap: Gap,
    /// Whether `'s` follows.
    pub owns: bool,
    /// The end, with a possessive `'s`.
    pub end: usize,
}

impl Word {
    /// Returns whether it is capitalised like a name.
    pub fn is_name_shaped(&self) -> bool {
        matches!(self.shape, WordShape::Capital | WordShape::Upper | WordShape::Mixed)
    }

    /// Returns whether it is in a list of words in lower case, separated by spaces.
    pub fn is(&self, any: &str) -> bool {
        among(any, &self.folded)
    }
}

/// Returns whether a word is in a list separated by spaces.
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

/// Returns whether `'s` is possessive: "it's", "that's" and "let's" are two words.
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
        // Adjacent words are parts of something else, such as a number with its unit.
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
    // Capitals after a hyphen or an apostrophe occur in double names: Anne-Marie, O'Neil.
    let joined = text.contains(['-', '\'', '’', '&']);
    match (capital, inner && !joined) {
        (true, false) => WordShape::Capital,
        (_, true) => WordShape::Mixed,
        (false, false) => WordShape::Lower,
    }
}

/// Returns the index of the first word that begins at a byte or after it.
pub(super) fn word_from(words: &[Word], byte: usize) -> usize {
    words.partition_point(|word| word.at.start < byte)
}
