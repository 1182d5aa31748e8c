//! Sentences.

use super::segments;

#[test]
fn sentences_end_with_points_and_marks() {
    assert_eq!(segments("One. Two! Three?  Four"), ["One.", "Two!", "Three?", "Four"]);
    assert_eq!(segments("Wait... what? 3.5 GB."), ["Wait... what?", "3.5 GB."]);
}

#[test]
fn chinese_and_japanese_marks_end_sentences() {
    assert_eq!(segments("你好。今天怎么样？很好！"), ["你好。", "今天怎么样？", "很好！"]);
    assert_eq!(
        segments("「行きます。」と言った。そうですか。"),
        ["「行きます。」", "と言った。", "そうですか。"]
    );
}

#[test]
fn the_period_of_an_abbreviation_ends_no_sentence() {
    assert_eq!(segments("Ask Dr. Smith. He knows."), ["Ask Dr. Smith.", "He knows."]);
    assert_eq!(segments("Das geht, z.B. Montag."), ["Das geht, z.B. Montag."]);
    assert_eq!(segments("John F. Kennedy spoke."), ["John F. Kennedy spoke."]);
    assert_eq!(segments("Am 3. Oktober ist frei. Gut."), ["Am 3. Oktober ist frei.", "Gut."]);
    assert_eq!(segments("No. That is wrong."), ["No.", "That is wrong."]);
}

#[test]
fn items_of_lists_are_segments_with_their_numbers() {
    assert_eq!(
        segments("Steps:\n1. Open it\n2. Close it\n- Done"),
        ["Steps:", "1. Open it", "2. Close it", "- Done"]
    );
}

#[test]
fn a_fenced_block_of_code_is_one_segment() {
    let code = "```rust\nfn main() {}\n\n// Done. Really!\n```";
    assert_eq!(segments(&format!("Look:\n{code}\nGood? Yes.")), ["Look:", code, "Good?", "Yes."]);
    assert_eq!(segments("~~~\nopen. end.\nrest"), ["~~~\nopen. end.\nrest"]);
}

#[test]
fn a_wrapped_line_continues() {
    let text = "This line is long enough to have been broken by the margin of\nsome editor. Next.";
    assert_eq!(segments(text).len(), 2);
    assert_eq!(segments("short\nlines").len(), 2);
}

#[test]
fn a_combining_mark_keeps_its_white_space() {
    assert_eq!(segments("a. \u{308}b"), ["a. \u{308}b"]);
    assert_eq!(segments("\n \u{308}b"), [" \u{308}b"]);
}
