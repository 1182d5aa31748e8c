//! Cutting text.

use proptest::prelude::*;
use tine_core::text::{SplitError, preview, split_at_scalar};

#[test]
fn offsets_count_scalar_values() {
    assert_eq!(split_at_scalar("aé🌸b", 3).unwrap(), ("aé🌸", "b"));
    assert_eq!(split_at_scalar("東京", 1).unwrap(), ("東", "京"));
}

#[test]
fn both_halves_hold_something() {
    for (text, offset) in [("ab", 0), ("ab", 2), ("ab", 9), ("", 0), ("a", 1)] {
        let refused = split_at_scalar(text, offset);
        match text.chars().count() {
            0 | 1 => assert_eq!(refused, Err(SplitError::TooShort)),
            count => assert_eq!(refused, Err(SplitError::OutOfRange { offset, last: count - 1 })),
        }
    }
}

#[test]
fn a_grapheme_cluster_is_not_split() {
    for (text, offset) in [
        ("👩‍🚀 up", 1), // an astronaut: woman, joiner, rocket
        ("👩‍🚀 up", 2),
        ("🇯🇵!", 1),       // a flag
        ("e\u{301}a", 1), // an accent on its letter
        ("👍🏽x", 1),       // a skin tone
        ("a\r\nb", 2),
    ] {
        let error = split_at_scalar(text, offset).unwrap_err();
        let SplitError::InsideCharacter { before, after, .. } = error else {
            panic!("{text:?} at {offset}: {error}");
        };
        assert!(before < offset && offset < after);
    }
    assert_eq!(split_at_scalar("👩‍🚀 up", 3).unwrap(), ("👩‍🚀", " up"));
}

#[test]
fn a_preview_is_cut_and_marked() {
    assert_eq!(preview("a\n\tb   c", 80), "a b c");
    assert_eq!(preview("abcdef", 4), "abc…");
    assert_eq!(preview("abcd", 4), "abcd");
    assert_eq!(preview("\u{7}a\u{1b}[31mb", 80), "a[31mb");
}

proptest! {
    #[test]
    fn halves_join_to_the_whole(text in "\\PC{0,20}", offset in 0_usize..24) {
        if let Ok((left, right)) = split_at_scalar(&text, offset) {
            prop_assert_eq!(format!("{left}{right}"), text.as_str());
            prop_assert_eq!(left.chars().count(), offset);
            prop_assert!(!left.is_empty() && !right.is_empty());
        }
    }
}
