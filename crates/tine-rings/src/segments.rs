//! Cuts a text into sentences.

use unicode_segmentation::UnicodeSegmentation;

use crate::{MAX_SEGMENTS, Span};

pub(crate) fn segments(text: &str) -> Vec<Span> {
    let mut found: Vec<Span> = Vec::new();
    let mut at = 0;
    for sentence in text.split_sentence_bounds() {
        let length = sentence.chars().count();
        let blank = sentence.chars().take_while(|it| it.is_whitespace()).count();
        if blank < length {
            let end = at + sentence.trim_end().chars().count();
            let full = found.len() == MAX_SEGMENTS;
            match found.last_mut() {
                Some(last) if full => last.end = end,
                _ => found.push(Span { start: at + blank, end }),
            }
        }
        at += length;
    }
    found
}
