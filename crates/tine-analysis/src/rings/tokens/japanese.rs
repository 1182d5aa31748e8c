//! Japanese words, segmented by script.
//!
//! Nouns are runs of kanji or of katakana; hiragana is grammar, except for listed nouns. A single kanji
//! before hiragana is a verb or an adjective, of which only the plain form is a keyword.

use super::{TokenKind, TokenReader, listed};
use crate::rings::language::Language;
use crate::rings::lists::JAPANESE_NOUNS;
use crate::rings::script::{is_han, is_hiragana, is_katakana};

/// Particles that may follow a noun.
const PARTICLES: &str = "はがをにでともへやかのだ";

/// Reads a run of kanji and kana.
pub(super) fn read(reader: &mut TokenReader<'_>, run: &[char]) {
    let mut at = 0;
    while at < run.len() {
        let rest = &run[at..];
        let before = at.checked_sub(1).map(|it| run[it]);
        at += noun(reader, rest, before)
            .or_else(|| kanji(reader, rest))
            .unwrap_or_else(|| other(reader, rest));
    }
}

fn noun(reader: &mut TokenReader<'_>, rest: &[char], before: Option<char>) -> Option<usize> {
    let length = JAPANESE_NOUNS.longest_of(rest)?;
    let inside = is_han(rest[0]) && before.is_some_and(is_han);
    let ends = rest.get(length).is_none_or(|next| match *next {
        next if is_han(rest[length - 1]) => PARTICLES.contains(next),
        next if length < 3 => PARTICLES.contains(next),
        next => !is_katakana(next),
    });
    if inside || !ends {
        return None;
    }
    reader.take(length, TokenKind::Word);
    Some(length)
}

/// Reads a run of kanji, or a verb.
fn kanji(reader: &mut TokenReader<'_>, rest: &[char]) -> Option<usize> {
    let length = rest.iter().take_while(|it| is_han(**it)).count();
    if length == 0 {
        return None;
    }
    // Time words and the like precede others in one run: 来週東京.
    for front in (2..=3.min(length)).rev() {
        let word: String = rest[..front].iter().collect();
        if let Some(kind) = listed(Language::Japanese, &word) {
            reader.take(front, kind);
            return Some(front);
        }
    }
    if length == 1 {
        return Some(verb(reader, rest));
    }
    let bare = match rest[length - 1] {
        '等' | '達' | '様' | '的' if length > 2 => length - 1,
        _ => length,
    };
    match bare {
        4 => {
            reader.take(2, TokenKind::Word);
            reader.take(2, TokenKind::Word);
        }
        _ => reader.take(bare, TokenKind::Word),
    }
    if bare < length {
        reader.pass(length - bare);
    }
    Some(length)
}

/// Reads a kanji with its ending.
fn verb(reader: &mut TokenReader<'_>, rest: &[char]) -> usize {
    let ending = rest[1..].iter().take_while(|it| is_hiragana(**it)).take(3);
    let plain = ending.clone().position(|it| "るうくぐすつぬぶむ".contains(*it)).map(|at| at + 2);
    let known = listed(Language::Japanese, &rest[0].to_string()).is_some();
    match plain {
        Some(length) if !known && ends_plainly(rest.get(length).copied()) => {
            reader.take(length, TokenKind::Verb);
            length
        }
        _ => {
            reader.pass(1);
            1
        }
    }
}

/// Returns whether a verb in its plain form may end before a character.
fn ends_plainly(next: Option<char>) -> bool {
    next.is_none_or(|next| !is_hiragana(next) || "のとにかがこ".contains(next))
}

/// Reads katakana as a noun, and anything else as grammar.
fn other(reader: &mut TokenReader<'_>, rest: &[char]) -> usize {
    let in_word = |it: &&char| is_katakana(**it) || **it == '・';
    let katakana = rest.iter().take_while(in_word).count();
    let last = rest[..katakana].iter().rposition(|it| *it != '・').map_or(0, |at| at + 1);
    if last > 1 && rest[0] != '・' {
        let word: String = rest[..last].iter().collect();
        reader.take(last, listed(Language::Japanese, &word).unwrap_or(TokenKind::Word));
        return last;
    }
    reader.pass(1);
    1
}
