//! What holds for any text.

use proptest::prelude::*;
use tine_analysis::rings::{FACETS, MAX_KEYWORDS, MAX_SEGMENTS, rings};
use unicode_segmentation::UnicodeSegmentation;

use super::slice;

/// Checks everything that is promised of any text.
fn check(text: &str) {
    let found = rings(text);
    assert_eq!(found, rings(text), "twice the same");
    let length = text.chars().count();
    assert!(found.keywords.len() <= MAX_KEYWORDS);
    for keyword in &found.keywords {
        assert!(keyword.span.start < keyword.span.end && keyword.span.end <= length);
        assert_eq!(slice(text, keyword.span), keyword.text);
    }
    assert!(found.facets.is_sorted_by(|a, b| a.name < b.name));
    for facet in &found.facets {
        assert!(FACETS.contains(&facet.name));
        assert!(facet.span.start < facet.span.end && facet.span.end <= length);
    }
    check_segments(text);
}

/// Segments lie in order, cover everything but white space, and cut no character.
fn check_segments(text: &str) {
    let segments = rings(text).segments;
    assert!(segments.len() <= MAX_SEGMENTS);
    assert!(segments.is_sorted_by(|a, b| a.end <= b.start));
    let mut covered = vec![false; text.chars().count()];
    for segment in &segments {
        assert!(segment.start < segment.end);
        covered[segment.start..segment.end].fill(true);
    }
    for (symbol, covered) in text.chars().zip(covered) {
        assert!(covered || symbol.is_whitespace(), "{symbol:?} is in no segment of {text:?}");
    }
    let mut boundaries = vec![0];
    for cluster in text.graphemes(true) {
        boundaries.push(boundaries[boundaries.len() - 1] + cluster.chars().count());
    }
    for edge in segments.iter().flat_map(|it| [it.start, it.end]) {
        assert!(boundaries.binary_search(&edge).is_ok(), "{edge} cuts a character of {text:?}");
    }
}

/// Pieces that rules look at, and marks that break them.
fn pieces() -> impl Strategy<Value = String> {
    const PIECES: [&str; 64] = [
        "What",
        "'s",
        "the ",
        "best time",
        " to ",
        "Tokyo",
        "?",
        "？",
        "。",
        "！",
        ". ",
        "\n",
        "\n\n",
        "- ",
        "1. ",
        "```",
        "~~~\n",
        "`",
        "> ",
        "\"",
        "«",
        "」",
        "「",
        "Dr. ",
        "z.B. ",
        "l'",
        "qu'",
        "’",
        "-",
        "_",
        "::",
        "()",
        "/",
        "./a.rs",
        "https://",
        "@",
        "#",
        "$5",
        "3.5",
        " GB",
        "%",
        "км",
        "東京",
        "京都",
        "を",
        "です",
        "か",
        "プロジェクト",
        "の",
        "你好",
        "数据库",
        "吗",
        "¿",
        "É",
        "e\u{301}",
        "\u{301}",
        "か\u{3099}",
        "👩‍👩‍👧",
        "🇯🇵",
        "\u{200d}",
        "\u{600}",
        " ",
        "\r\n",
        "ไทย",
    ];
    let piece = prop::sample::select(PIECES.to_vec());
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn any_text_has_valid_rings(text in any::<String>()) {
        check(&text);
    }

    #[test]
    fn mixtures_of_special_tokens_have_valid_rings(text in pieces()) {
        check(&text);
    }
}

#[test]
fn large_repetitive_texts_have_valid_rings() {
    let pieces = [
        "a",
        "aB3_",
        "a ",
        "東京都",
        "ありがとう",
        "ア",
        ".",
        "?!",
        "👩‍👩‍👧‍👦",
        "🇯🇵",
        "e\u{301}",
        "> \"'«",
        "`",
        "```\n",
        "Dr. ",
        "1. a\n",
        "a-",
        "l'a",
        "/a/b.c/",
        "a.b@c.d ",
        "1.2,3:4/",
        "Aa ",
        " \n\t",
        "\u{600}",
        "Why? ",
    ];
    for piece in pieces {
        check(&piece.repeat(20_000 / piece.len()));
    }
}

#[test]
fn the_last_allowed_segment_takes_the_rest() {
    let text = "One more. ".repeat(MAX_SEGMENTS + 10);
    let segments = rings(&text).segments;
    assert_eq!(segments.len(), MAX_SEGMENTS);
    assert_eq!(segments[MAX_SEGMENTS - 1].end, text.trim_end().chars().count());
}
