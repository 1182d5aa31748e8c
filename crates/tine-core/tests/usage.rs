//! Usage in every provider's spelling.

use tine_core::json;
use tine_core::usage::Usage;

fn parsed(text: &str) -> Option<Usage> {
    Usage::from_source_info(&json::parse(text.as_bytes(), 16).unwrap())
}

/// Input, output, total, cache read, cache write, reasoning.
fn figures(usage: &str) -> [u64; 6] {
    let it = parsed(&format!("{{\"usage\":{usage}}}")).unwrap();
    assert_eq!((it.turns, it.priced), (1, 0));
    [it.input, it.output, it.total, it.cache_read, it.cache_write, it.reasoning]
}

#[test]
fn every_providers_spelling_becomes_the_same_figures() {
    let chat = r#"{"prompt_tokens":100,"completion_tokens":20,"total_tokens":120,
        "prompt_tokens_details":{"cached_tokens":64},
        "completion_tokens_details":{"reasoning_tokens":8}}"#;
    assert_eq!(figures(chat), [100, 20, 120, 64, 0, 8]);
    let responses = r#"{"input_tokens":100,"output_tokens":20,"total_tokens":120,
        "input_tokens_details":{"cached_tokens":64},
        "output_tokens_details":{"reasoning_tokens":8}}"#;
    assert_eq!(figures(responses), [100, 20, 120, 64, 0, 8]);
    let anthropic = r#"{"input_tokens":6,"cache_read_input_tokens":64,
        "cache_creation_input_tokens":30,"output_tokens":20}"#;
    assert_eq!(figures(anthropic), [100, 20, 120, 64, 30, 0]);
    let gemini = r#"{"promptTokenCount":100,"candidatesTokenCount":12,"thoughtsTokenCount":8,
        "cachedContentTokenCount":64,"totalTokenCount":120}"#;
    assert_eq!(figures(gemini), [100, 20, 120, 64, 0, 8]);
    let neutral = r#"{"input_tokens":100,"output_tokens":20,"cache_read_tokens":64,
        "cache_write_tokens":30,"reasoning_tokens":8}"#;
    assert_eq!(figures(neutral), [100, 20, 120, 64, 30, 8]);
    assert_eq!(figures(r#"{"total_tokens":7}"#), [0, 0, 7, 0, 0, 0]);
}

#[test]
fn a_cost_is_taken_from_where_it_was_recorded() {
    let places = [
        r#"{"cost_usd":0.0125}"#,
        r#"{"cost":0.0125}"#,
        r#"{"usage":{"input_tokens":1,"cost":0.0125}}"#,
        r#"{"usage":{"cost_usd":0.0125},"cost":9}"#,
        r#"{"total_cost_usd":0.0125}"#,
    ];
    for place in places {
        let usage = parsed(place).unwrap();
        assert_eq!((usage.priced, usage.cost_nanos), (1, 12_500_000), "{place}");
        assert_eq!(usage.cost_usd(), Some(0.0125));
    }
}

#[test]
fn values_that_are_neither_counts_nor_costs_are_skipped() {
    let nothing = [
        "{}",
        "null",
        r#"{"usage":null}"#,
        r#"{"usage":{"input_tokens":"many","output_tokens":-1}}"#,
        r#"{"usage":[1]}"#,
        r#"{"cost":-1}"#,
        r#"{"cost":1e300}"#,
        r#"{"cost":{"usd":1}}"#,
    ];
    for text in nothing {
        assert_eq!(parsed(text), None, "{text}");
    }
}

#[test]
fn sums_do_not_overflow() {
    let mut all = parsed(r#"{"usage":{"input_tokens":18446744073709551615}}"#).unwrap();
    let more = all;
    all.add(&more);
    assert_eq!((all.input, all.turns), (u64::MAX, 2));
}
