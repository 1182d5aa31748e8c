//! Chinese words: segmented and tagged by a dictionary, or without the feature `cjk`, as pairs of
//! characters.

use super::{TokenKind, TokenReader, listed};
use crate::rings::language::Language;

/// Reads a run of Chinese characters.
#[cfg(not(feature = "cjk"))]
pub(super) fn read(reader: &mut TokenReader<'_>, run: &[char]) {
    for pair in run.chunks(2) {
        let word: String = pair.iter().collect();
        let listed = listed(Language::Chinese, &crate::rings::fold::fold(&word));
        let unlisted = if pair.len() == 2 { TokenKind::Word } else { TokenKind::Stop };
        reader.take(pair.len(), listed.unwrap_or(unlisted));
    }
}

#[cfg(feature = "cjk")]
static DICTIONARY: std::sync::LazyLock<jieba_rs::Jieba> =
    std::sync::LazyLock::new(jieba_rs::Jieba::new);

/// Reads a run of Chinese characters.
#[cfg(feature = "cjk")]
pub(super) fn read(reader: &mut TokenReader<'_>, run: &[char]) {
    let text: String = run.iter().collect();
    for word in DICTIONARY.tag(&text, true) {
        reader.take(word.word.chars().count(), kind(word.word, word.tag));
    }
}

#[cfg(feature = "cjk")]
fn kind(word: &str, tag: &str) -> TokenKind {
    if let Some(listed) = listed(Language::Chinese, &crate::rings::fold::fold(word)) {
        return listed;
    }
    let single = word.chars().count() == 1;
    match tag.as_bytes() {
        [b'n', b'r' | b's' | b't' | b'z', ..] if !single => TokenKind::Name,
        [b'n', ..] => TokenKind::Word,
        [b'v', b'n', ..] | [b'a', b'n', ..] | [b'l' | b'i' | b'j' | b's' | b'b', ..] if !single => {
            TokenKind::Word
        }
        [b'v', ..] if !single => TokenKind::Verb,
        [b'a' | b't' | b'z', ..] if !single => TokenKind::Weak,
        // The dictionary does not know the word.
        [b'x', ..] if !single => TokenKind::Word,
        _ => TokenKind::Stop,
    }
}
