//! Normalizes a sentence for cues and lexicons: folded, with single spaces and no punctuation.

use crate::rings::script::{is_east_asian, is_word};
use crate::rings::{Span, fold};

/// A normalized sentence.
#[derive(Default)]
pub(crate) struct Plain {
    /// The folded text.
    pub text: String,
    /// For each byte of the text, the index of its character in the turn; and one for the end.
    origin: Vec<usize>,
}

impl Plain {
    /// Normalizes a sentence that begins at a character of its turn.
    pub fn new(sentence: &str, start: usize) -> Self {
        let mut plain = Self::default();
        let mut symbols = sentence.chars().enumerate().peekable();
        let mut last = ' ';
        let mut gap = false;
        while let Some((no, symbol)) = symbols.next() {
            let next = symbols.peek().map_or(' ', |(_, next)| *next);
            let inside = is_word(last) && is_word(next) && !gap;
            let kept = match symbol {
                _ if is_word(symbol) || is_east_asian(symbol) => true,
                '\'' | '’' | '-' | '‑' | '.' | '_' => inside,
                '+' | '#' => !gap && (is_word(last) || last == '+') && !is_word(next),
                ',' | '，' | '、' => is_east_asian(last) && !gap,
                _ => false,
            };
            if !kept {
                gap = true;
                continue;
            }
            if gap && is_word(symbol) && !plain.text.is_empty() && !is_east_asian(last) {
                plain.push(' ', start + no);
            }
            plain.push(symbol, start + no);
            (gap, last) = (false, symbol);
        }
        let end = plain.origin.last().map_or(start, |last| last + 1);
        plain.origin.push(end);
        plain
    }

    /// Returns the characters of the turn for a range of bytes.
    pub fn span(&self, from: usize, to: usize) -> Span {
        let end = self.origin[to.saturating_sub(1).max(from)] + 1;
        Span { start: self.origin[from], end }
    }

    fn push(&mut self, symbol: char, origin: usize) {
        fold::push(symbol, &mut self.text);
        self.origin.resize(self.text.len(), origin);
    }
}

/// Returns whether there is a word boundary between two characters.
pub(crate) fn is_boundary(before: Option<char>, following: Option<char>) -> bool {
    !(before.is_some_and(is_word) && following.is_some_and(is_word))
}
