//! What the rings of a text are, ring by ring and language by language; what holds for any text;
//! and the figures that have to be kept on a corpus that nothing was made from.

mod facets;
mod figures;
mod intent;
mod judge;
mod keywords;
mod random;
mod segments;

use tine_analysis::rings::{EXTRACTOR, FACETS, Intent, Span, rings};

/// The text of a span.
fn slice(text: &str, span: Span) -> String {
    text.chars().skip(span.start).take(span.end - span.start).collect()
}

/// The keywords of a text, best first.
fn keywords(text: &str) -> Vec<String> {
    rings(text).keywords.into_iter().map(|it| it.text).collect()
}

/// The facets of a text.
fn facets(text: &str) -> Vec<&'static str> {
    rings(text).facets.into_iter().map(|it| it.name).collect()
}

/// The segments of a text.
fn segments(text: &str) -> Vec<String> {
    rings(text).segments.into_iter().map(|it| slice(text, it)).collect()
}

#[test]
fn the_example_of_the_design_holds() {
    let text = "What's the best time to visit Tokyo?";
    assert_eq!(keywords(text), ["Tokyo", "best time", "visit"]);
    assert_eq!(rings(text).intent, Intent::Question);
    assert_eq!(facets(text), ["timing", "travel"]);
    assert_eq!(segments(text), [text]);
}

#[test]
fn intents_have_names_and_facets_are_sorted() {
    for intent in Intent::ALL {
        assert_eq!(Intent::from_name(intent.as_str()), Some(intent));
        assert_eq!(intent.to_string(), intent.as_str());
    }
    assert_eq!(Intent::from_name("Question"), None);
    assert!(FACETS.is_sorted() && FACETS.len() == 22);
    assert!(EXTRACTOR.starts_with("rings/"));
}

#[test]
fn a_text_without_words_has_rings() {
    for text in ["", "   \n", "!!!", "🎉"] {
        let rings = rings(text);
        assert!(rings.keywords.is_empty() && rings.facets.is_empty(), "{text:?}");
        assert_eq!(rings.intent, Intent::Statement, "{text:?}");
    }
}
