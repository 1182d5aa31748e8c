//! Chinese words, cut and tagged by a dictionary.

use std::sync::LazyLock;

use jieba_rs::Jieba;

use super::{Kind, Reader, listed};
use crate::language::Language;

static DICTIONARY: LazyLock<Jieba> = LazyLock::new(Jieba::new);

/// Reads a stretch of Chinese characters.
pub(super) fn read(reader: &mut Reader<'_>, run: &[char]) {
    let text: String = run.iter().collect();
    for word in DICTIONARY.tag(&text, true) {
        reader.take(word.word.chars().count(), kind(word.word, word.tag));
    }
}

fn kind(word: &str, tag: &str) -> Kind {
    if let Some(listed) = listed(Language::Chinese, &crate::fold::fold(word)) {
        return listed;
    }
    let single = word.chars().count() == 1;
    match tag.as_bytes() {
        [b'n', b'r' | b's' | b't' | b'z', ..] if !single => Kind::Name,
        [b'n', ..] => Kind::Word,
        [b'v', b'n', ..] | [b'a', b'n', ..] | [b'l' | b'i' | b'j' | b's' | b'b', ..] if !single => {
            Kind::Word
        }
        [b'v', ..] if !single => Kind::Verb,
        [b'a' | b't' | b'z', ..] if !single => Kind::Weak,
        // The dictionary does not know the word.
        [b'x', ..] if !single => Kind::Word,
        _ => Kind::Stop,
    }
}
