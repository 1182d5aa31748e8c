//! The words and phrases that tell what a turn is about.

use std::collections::HashSet;

use unicode_segmentation::UnicodeSegmentation;

use crate::{Keyword, MAX_KEYWORDS, Span};

const STOP: &str = "a an the and or but if of to in on at by for with is are was were be been it its \
    what's what who how when where why which this that these those i you he she we they me my your \
    do does did can could should would will have has had not no so as from there here";

pub(crate) fn keywords(text: &str) -> Vec<Keyword> {
    let stop: HashSet<&str> = STOP.split_whitespace().collect();
    let (mut found, mut phrase): (Vec<Keyword>, Option<Keyword>) = (Vec::new(), None);
    let mut at = 0;
    for piece in text.split_word_bounds() {
        let span = Span { start: at, end: at + piece.chars().count() };
        at = span.end;
        if piece == " " {
            continue;
        }
        let is_word = piece.chars().any(char::is_alphanumeric);
        if !is_word || stop.contains(piece.to_lowercase().as_str()) {
            found.extend(phrase.take());
            continue;
        }
        let capital = piece.chars().next().is_some_and(char::is_uppercase);
        match &mut phrase {
            Some(phrase) if !capital && phrase.text.split(' ').count() < 2 => {
                phrase.text = format!("{} {piece}", phrase.text);
                phrase.span.end = span.end;
            }
            _ => {
                found.extend(phrase.take());
                phrase = Some(Keyword { text: piece.to_owned(), span });
            }
        }
    }
    found.extend(phrase);
    let mut seen = HashSet::new();
    found.retain(|keyword| seen.insert(keyword.text.to_lowercase()));
    found.sort_by_key(|keyword| !keyword.text.chars().next().is_some_and(char::is_uppercase));
    found.truncate(MAX_KEYWORDS);
    found
}
