//! Splits a sentence into words and classifies them as parts of keywords.

mod chinese;
mod japanese;
mod spaced;

use std::ops::Range;

use crate::rings::language::Language;
use crate::rings::script::{is_east_asian, is_kana, is_word};
use crate::rings::sentences::Sentence;
use crate::rings::{Span, lists};

/// The role of a word in keywords.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TokenKind {
    /// A stop word, which separates phrases.
    Stop,
    /// A keyword only in phrases.
    Weak,
    /// A keyword of its own.
    Verb,
    /// A keyword, and a part of phrases.
    Word,
    Name,
    /// An identifier: `snake_case`, a file, a version.
    Identifier,
    /// A number, a keyword only with a unit or after a name.
    Number,
    /// A number with its unit.
    Amount,
}

/// A word.
#[derive(Clone, Debug)]
pub(crate) struct RingToken {
    /// The bytes in the whole text.
    pub at: Range<usize>,
    /// The characters in the whole text.
    pub span: Span,
    /// The folded text.
    pub folded: String,
    pub kind: TokenKind,
    /// Whether it follows the word before directly or after a space.
    pub joined: bool,
    /// Whether it may be inside of a phrase, as in `base de données`.
    pub links: bool,
}

/// The longest word that can be a keyword, in characters.
const MAX_WORD: usize = 48;

/// The longest run without spaces that is segmented at once, in characters.
const MAX_RUN: usize = 1_000;

pub(crate) fn tokens(sentence: &Sentence<'_>) -> Vec<RingToken> {
    let mut reader = TokenReader::new(sentence);
    while let Some(symbol) = reader.peek(0) {
        match symbol {
            _ if is_east_asian(symbol) => east_asian(&mut reader),
            _ if spaced::begins(&reader) => spaced::read(&mut reader),
            _ => reader.skip(),
        }
    }
    spaced::settle(sentence, &mut reader.found);
    reader.found
}

/// Reads a run in a script without spaces.
fn east_asian(reader: &mut TokenReader<'_>) {
    let goes_on = |symbol: char| is_east_asian(symbol) || symbol == '・';
    let length = (0..MAX_RUN).find(|no| !reader.peek(*no).is_some_and(goes_on)).unwrap_or(MAX_RUN);
    let run: Vec<char> = (0..length).filter_map(|no| reader.peek(no)).collect();
    let japanese = match reader.sentence.language {
        Language::Japanese => true,
        Language::Chinese => false,
        _ => run.iter().any(|it| is_kana(*it)),
    };
    match japanese {
        true => japanese::read(reader, &run),
        false => chinese::read(reader, &run),
    }
}

/// Reads a sentence character by character.
pub(crate) struct TokenReader<'s> {
    pub sentence: &'s Sentence<'s>,
    /// Each character with its offset in the sentence.
    symbols: Vec<(usize, char)>,
    at: usize,
    /// Whether the next word follows the last one directly or after a space.
    joined: bool,
    pub found: Vec<RingToken>,
}

impl<'s> TokenReader<'s> {
    fn new(sentence: &'s Sentence<'s>) -> Self {
        let symbols = sentence.text.char_indices().collect();
        Self { sentence, symbols, at: 0, joined: false, found: Vec::new() }
    }

    /// Returns a character ahead.
    pub fn peek(&self, ahead: usize) -> Option<char> {
        self.symbols.get(self.at + ahead).map(|(_, symbol)| *symbol)
    }

    /// Returns the character before.
    pub fn before(&self) -> Option<char> {
        self.at.checked_sub(1).and_then(|at| self.symbols.get(at)).map(|(_, symbol)| *symbol)
    }

    /// Skips a character that is not part of a word.
    pub fn skip(&mut self) {
        let space = matches!(self.peek(0), Some(' ' | '\u{a0}'));
        self.joined &= space && self.before() != Some(' ');
        self.at += 1;
    }

    /// Adds a word.
    pub fn take(&mut self, length: usize, kind: TokenKind) {
        let byte = |no: usize| {
            let end = (self.sentence.text.len(), ' ');
            self.symbols.get(no).copied().unwrap_or(end).0 + self.sentence.byte
        };
        let at = byte(self.at)..byte(self.at + length);
        let start = self.sentence.start + self.at;
        let text = &self.sentence.text[at.start - self.sentence.byte..at.end - self.sentence.byte];
        let is_known = length <= MAX_WORD;
        self.found.push(RingToken {
            at,
            span: Span { start, end: start + length },
            folded: if is_known { crate::rings::fold::fold(text) } else { String::new() },
            kind: if is_known { kind } else { TokenKind::Stop },
            joined: self.joined,
            links: false,
        });
        self.at += length;
        self.joined = true;
    }

    /// Skips characters that separate phrases.
    pub fn pass(&mut self, length: usize) {
        self.at += length;
        self.joined = false;
    }
}

/// Returns the kind of a word that is in a list of its language.
pub(crate) fn listed(language: Language, folded: &str) -> Option<TokenKind> {
    let lists = lists::of(language);
    match folded {
        _ if lists.stop.contains(folded) => Some(TokenKind::Stop),
        _ if lists.weak.contains(folded) => Some(TokenKind::Weak),
        _ if lists.verbs.contains(folded) => Some(TokenKind::Verb),
        _ => None,
    }
}

/// Returns whether a character is part of a word.
fn is_part(symbol: Option<char>) -> bool {
    symbol.is_some_and(is_word)
}
