//! Which subjects a turn touches.

use unicode_segmentation::UnicodeSegmentation;

use crate::{Facet, Span};

/// Every facet, sorted by name.
pub const FACETS: &[&str] = &[
    "code",
    "comparison",
    "data",
    "entertainment",
    "food",
    "health",
    "home",
    "law",
    "learning",
    "money",
    "people",
    "place",
    "planning",
    "preference",
    "problem",
    "shopping",
    "technology",
    "timing",
    "travel",
    "weather",
    "work",
    "writing",
];

pub(crate) fn facets(text: &str) -> Vec<Facet> {
    const WORDS: [(&str, &str); 8] = [
        ("timing", "time"),
        ("timing", "when"),
        ("travel", "visit"),
        ("travel", "trip"),
        ("money", "price"),
        ("food", "restaurant"),
        ("weather", "weather"),
        ("code", "function"),
    ];
    let mut found: Vec<Facet> = Vec::new();
    let mut at = 0;
    for piece in text.split_word_bounds() {
        let end = at + piece.chars().count();
        let folded = piece.to_lowercase();
        for (name, _) in WORDS.iter().filter(|(_, word)| *word == folded) {
            if found.iter().all(|facet| facet.name != *name) {
                found.push(Facet { name, span: Span { start: at, end } });
            }
        }
        at = end;
    }
    found.sort_by_key(|facet| facet.name);
    found
}
