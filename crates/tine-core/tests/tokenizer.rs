//! Text as terms.

use proptest::prelude::*;
use tine_core::tokenizer::{TermKind, terms};

fn texts(text: &str) -> Vec<String> {
    terms(text).into_iter().map(|(term, ..)| term).collect()
}

#[test]
fn words_are_folded_and_cut_at_everything_that_is_no_letter_or_digit() {
    assert_eq!(texts("Don't foo_bar(42); ÉCOLE"), ["don", "t", "foo", "bar", "42", "ecole"]);
    assert_eq!(texts("cafe\u{301} CAFÉ ｃａｆé"), ["cafe"; 3]);
    assert_eq!(
        texts("Straße ŒUVRE Łódź Ångström ΣΊΣΥΦΟΣ σίσυφος"),
        ["strasse", "oeuvre", "lodz", "angstrom", "σισυφοσ", "σισυφοσ"]
    );
    assert_eq!(texts("soft\u{ad}hyphen zero\u{200b}width"), ["softhyphen", "zerowidth"]);
}

#[test]
fn scripts_without_spaces_become_pairs_and_a_last_character() {
    assert_eq!(texts("東京都"), ["東京", "京都", "都"]);
    assert_eq!(texts("ｶﾞｽ"), texts("ガス"));
    assert_eq!(texts("한글"), texts("\u{1112}\u{1161}\u{11ab}\u{1100}\u{1173}\u{11af}"));
    assert_eq!(texts("が"), texts("か\u{3099}"));
    assert_ne!(texts("が"), texts("か"));
    assert_eq!(texts("a東b京"), ["a", "東", "b", "京"]);
    assert_eq!(texts("สวัสดี").len(), "สวัสดี".chars().count());
}

#[test]
fn a_pictograph_is_a_word_of_its_own() {
    assert_eq!(texts("spring🌸🌸!"), ["spring", "🌸", "🌸"]);
}

#[test]
fn a_very_long_word_is_truncated() {
    let long = "x".repeat(1_000);
    assert_eq!(texts(&long), ["x".repeat(64)]);
    assert_eq!(terms(&long)[0].2.end, 1_000);
}

#[test]
fn places_are_counted_in_characters_of_the_text_as_it_is() {
    let spans = |text: &str| -> Vec<(usize, usize)> {
        terms(text).iter().map(|(_, _, span)| (span.start, span.end)).collect()
    };
    assert_eq!(spans("e\u{301}f 東京"), [(0, 3), (4, 6), (5, 6)]);
    assert_eq!(spans("👩\u{200d}🚀 up"), [(0, 2), (2, 3), (4, 6)]);
}

proptest! {
    #[test]
    fn every_term_stands_where_it_says(text in ".{0,40}") {
        let symbols: Vec<char> = text.chars().collect();
        let mut before = 0;
        for (term, sort, span) in terms(&text) {
            prop_assert!(span.start >= before && span.start < span.end);
            prop_assert!(span.end <= symbols.len() && span.first_end <= span.end);
            before = span.start;
            let there: String = symbols[span.start..span.end].iter().collect();
            prop_assert!(texts(&there).contains(&term), "{term:?} {sort:?} in {there:?}");
            prop_assert!(term.bytes().all(|byte| !byte.is_ascii() || byte.is_ascii_alphanumeric()));
        }
    }

    #[test]
    fn separate_blocks_are_read_separately(one in ".{0,20}", other in ".{0,20}") {
        let mut expected = texts(&one);
        expected.extend(texts(&other));
        prop_assert_eq!(texts(&format!("{one} / {other}")), expected);
    }
}

#[test]
fn the_last_character_of_a_run_has_its_own_kind() {
    let sorts: Vec<TermKind> = terms("ab 東京").iter().map(|(_, sort, _)| *sort).collect();
    assert_eq!(sorts, [TermKind::Word, TermKind::Bigram, TermKind::LastChar]);
}
