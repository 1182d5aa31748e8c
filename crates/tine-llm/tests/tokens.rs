//! Counting tokens.

use proptest::prelude::*;
use tine_llm::tokens::count;

#[test]
fn known_texts_have_their_known_counts() {
    // As the documentation of OpenAI's own library counts them.
    let known = [
        ("", 0),
        ("tiktoken is great!", 6),
        ("antidisestablishmentarianism", 6),
        ("2 + 2 = 4", 7),
        ("お誕生日おめでとう", 8),
        ("<|endoftext|>", 7),
    ];
    for (text, tokens) in known {
        assert_eq!(count(text), tokens, "{text:?}");
    }
}

#[test]
fn long_runs_are_counted_quickly() {
    for piece in [" ", "\n", "a", "Aa", "1", "!", "\u{301}", "👩\u{200d}🚀", " \n\t"] {
        let text = piece.repeat(200_000 / piece.len());
        let tokens = count(&text);
        assert!(tokens > 0 && tokens <= text.len(), "{piece:?}: {tokens}");
    }
}

proptest! {
    #[test]
    fn a_text_has_no_more_tokens_than_bytes(text in ".{0,200}") {
        prop_assert!(count(&text) <= text.len());
    }
}
