//! Splits text into search terms, for the index and for queries alike.
//!
//! - Case, accents, width and other compatibility forms are folded: `Café`, `CAFE` and `ｃａｆé` are
//!   one term.
//! - A word is a run of letters and digits; every other character is a separator.
//! - Chinese, Japanese, Korean and other scripts written without spaces become overlapping bigrams:
//!   東京都 is 東京, 京都 and, since the last character of a run starts no bigram, 都. So every
//!   character starts exactly one term, and any two adjacent characters are a term.
//! - A pictograph is a word of its own.
//!
//! Each term carries its position in the text, in Unicode scalar values. There are no stop words
//! and no stemming.

use unicode_normalization::UnicodeNormalization;

/// Characters of a word that are kept; words that differ only after them are the same term.
pub const MAX_WORD_CHARS: usize = 64;

/// How a term was formed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TermKind {
    /// A word of letters and digits, or a pictograph.
    Word,
    /// Two adjacent characters of a script without spaces.
    Bigram,
    /// The last character of a run in such a script.
    LastChar,
}

/// The position of a term, in Unicode scalar values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TermSpan {
    /// The first character.
    pub start: usize,
    /// The end of the first character of a bigram; otherwise equal to `end`.
    pub first_end: usize,
    /// One past the last character.
    pub end: usize,
}

/// Calls `each` for every term of a text, in order.
///
/// ```
/// let mut terms = Vec::new();
/// tine_core::tokenizer::for_each_term("Zürich, 東京都!", &mut |term, _, _| terms.push(term.to_owned()));
/// assert_eq!(terms, ["zurich", "東京", "京都", "都"]);
/// ```
pub fn for_each_term(text: &str, each: &mut dyn FnMut(&str, TermKind, TermSpan)) {
    let mut writer = TermEmitter { each, word: Word::default(), run: None, pair: String::new() };
    let mut symbols = text.chars().enumerate().peekable();
    let (mut cluster, mut folded) = (String::new(), String::new());
    while let Some((start, symbol)) = symbols.next() {
        let mut end = start + 1;
        let alone = symbols.peek().is_none_or(|(_, next)| !extends(*next));
        if alone && is_folded(symbol) {
            writer.take(symbol.to_ascii_lowercase(), start, end);
            continue;
        }
        cluster.clear();
        cluster.push(symbol);
        while let Some((_, next)) = symbols.next_if(|(_, next)| extends(*next)) {
            cluster.push(next);
            end += 1;
        }
        folded.clear();
        fold(&cluster, &mut folded);
        for symbol in folded.chars() {
            writer.take(symbol, start, end);
        }
    }
    writer.end_word();
    writer.end_run();
}

/// Returns the terms of a text.
pub fn terms(text: &str) -> Vec<(String, TermKind, TermSpan)> {
    let mut found = Vec::new();
    for_each_term(text, &mut |term, sort, span| found.push((term.to_owned(), sort, span)));
    found
}

struct TermEmitter<'v> {
    each: &'v mut dyn FnMut(&str, TermKind, TermSpan),
    word: Word,
    /// The last character of the current run in a script without spaces, with its start and end.
    run: Option<(char, usize, usize)>,
    pair: String,
}

#[derive(Default)]
struct Word {
    text: String,
    length: usize,
    start: usize,
    end: usize,
}

impl TermEmitter<'_> {
    /// Takes the next folded character, which comes from `start..end` of the text.
    fn take(&mut self, symbol: char, start: usize, end: usize) {
        match class(symbol) {
            CharClass::Letter => {
                self.end_run();
                if self.word.length == 0 {
                    self.word.start = start;
                }
                if self.word.length < MAX_WORD_CHARS {
                    self.word.text.push(symbol);
                }
                self.word.length += 1;
                self.word.end = end;
            }
            CharClass::Unspaced => {
                self.end_word();
                if let Some((first, from, first_end)) = self.run {
                    self.emit(
                        [first, symbol],
                        TermKind::Bigram,
                        TermSpan { start: from, first_end, end },
                    );
                }
                self.run = Some((symbol, start, end));
            }
            CharClass::Picture => {
                self.end_word();
                self.end_run();
                self.emit([symbol], TermKind::Word, TermSpan { start, first_end: end, end });
            }
            CharClass::Other => {
                self.end_word();
                self.end_run();
            }
        }
    }

    fn emit<const N: usize>(&mut self, symbols: [char; N], sort: TermKind, span: TermSpan) {
        self.pair.clear();
        self.pair.extend(symbols);
        (self.each)(&self.pair, sort, span);
    }

    fn end_word(&mut self) {
        if self.word.length > 0 {
            let Word { start, end, .. } = self.word;
            (self.each)(&self.word.text, TermKind::Word, TermSpan { start, first_end: end, end });
            self.word.text.clear();
            self.word.length = 0;
        }
    }

    fn end_run(&mut self) {
        if let Some((last, start, end)) = self.run.take() {
            self.emit([last], TermKind::LastChar, TermSpan { start, first_end: end, end });
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum CharClass {
    Letter,
    Unspaced,
    Picture,
    Other,
}

fn class(symbol: char) -> CharClass {
    if symbol.is_ascii() {
        return if symbol.is_ascii_alphanumeric() { CharClass::Letter } else { CharClass::Other };
    }
    match symbol {
        // Thai, Lao, Myanmar and Khmer.
        '\u{e01}'..='\u{e3a}' | '\u{e40}'..='\u{e4e}' | '\u{e81}'..='\u{ece}'
        | '\u{1000}'..='\u{1049}' | '\u{1780}'..='\u{17d3}'
        // Iteration marks, kana, bopomofo, Hangul and ideographs with their extensions.
        | '\u{3005}'..='\u{3007}' | '\u{3021}'..='\u{3029}' | '\u{3031}'..='\u{3035}'
        | '\u{3041}'..='\u{3096}' | '\u{309d}'..='\u{309f}' | '\u{30a1}'..='\u{30fa}'
        | '\u{30fc}'..='\u{30ff}' | '\u{3105}'..='\u{312f}' | '\u{31a0}'..='\u{31bf}'
        | '\u{31f0}'..='\u{31ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}'
        | '\u{ac00}'..='\u{d7a3}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}' => {
            CharClass::Unspaced
        }
        '\u{2600}'..='\u{27bf}' | '\u{1f300}'..='\u{1faff}' => CharClass::Picture,
        other if other.is_alphanumeric() => CharClass::Letter,
        _ => CharClass::Other,
    }
}

/// Returns whether a character that stands alone is its own folded form, but for ASCII case.
fn is_folded(symbol: char) -> bool {
    symbol.is_ascii()
        || matches!(symbol, '\u{3041}'..='\u{3096}' | '\u{30a1}'..='\u{30fa}'
            | '\u{30fc}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}'
            | '\u{ac00}'..='\u{d7a3}')
}

/// Returns whether a character combines with the one before it: accents, voicing marks, vowels and
/// finals of decomposed Hangul, and variation selectors.
fn extends(symbol: char) -> bool {
    is_accent(symbol)
        || matches!(
            symbol,
            '\u{1160}'..='\u{11ff}' | '\u{3099}' | '\u{309a}' | '\u{ff9e}' | '\u{ff9f}'
        )
}

/// Returns whether a mark is folded away. Vowel signs of Indic scripts are kept: they distinguish
/// words.
fn is_accent(symbol: char) -> bool {
    matches!(symbol, '\u{300}'..='\u{36f}' | '\u{591}'..='\u{5bd}' | '\u{5bf}'
        | '\u{5c1}' | '\u{5c2}' | '\u{5c4}' | '\u{5c5}' | '\u{5c7}' | '\u{610}'..='\u{61a}'
        | '\u{640}' | '\u{64b}'..='\u{65f}' | '\u{670}' | '\u{ad}' | '\u{1ab0}'..='\u{1aff}'
        | '\u{1dc0}'..='\u{1dff}' | '\u{200b}'..='\u{200d}' | '\u{20d0}'..='\u{20ff}'
        | '\u{fe00}'..='\u{fe0f}' | '\u{fe20}'..='\u{fe2f}' | '\u{1f3fb}'..='\u{1f3ff}')
}

fn fold(cluster: &str, out: &mut String) {
    let plain = cluster.nfkd().filter(|symbol| !is_accent(*symbol)).nfc();
    for symbol in plain.flat_map(char::to_lowercase) {
        match symbol {
            'ß' => out.push_str("ss"),
            'æ' => out.push_str("ae"),
            'œ' => out.push_str("oe"),
            'ø' => out.push('o'),
            'ł' => out.push('l'),
            'đ' => out.push('d'),
            'ı' => out.push('i'),
            'ς' => out.push('σ'),
            accent if is_accent(accent) => {}
            other => out.push(other),
        }
    }
}
