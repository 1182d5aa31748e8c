//! What may be spent while the process lives.

use std::ops::ControlFlow;

use serde_json::json;
use tine_llm::{Budget, Chat, Delta, ModelError, Price, Protocol, ProviderSettings};

use crate::endpoint::{Endpoint, Pauses, Reply, model_with, settings};
use crate::protocols::{KINDS, body, good, stream_type, streamed};

const PRICE: Price = Price {
    input_per_million: 1_000.0,
    output_per_million: 2_000.0,
    cached_input_per_million: None,
};

fn tokens(most: u64) -> Option<Budget> {
    Some(Budget { max_tokens: Some(most), max_usd: None })
}

#[test]
fn a_token_budget_rejects_further_calls() {
    for kind in KINDS {
        let endpoint = Endpoint::start(vec![good(kind, "x")]);
        // An answer is 17 tokens: the second crosses the line, the third is not sent.
        let settings = ProviderSettings { budget: tokens(30), ..settings(kind, &endpoint) };
        let model = model_with(settings, &Pauses::default());
        let copy = model.clone();
        model.complete(&Chat::ask("how?")).unwrap();
        copy.complete(&Chat::ask("how?")).unwrap();
        for model in [model, copy] {
            let error = model.complete(&Chat::ask("how?")).unwrap_err();
            assert!(matches!(error, ModelError::Budget { .. }) && !error.transient());
            let sentence = error.to_string();
            assert!(
                sentence.contains("34 tokens of 30") && sentence.contains("raise"),
                "{sentence}"
            );
        }
        assert_eq!(endpoint.times(), 2);
    }
}

#[test]
fn a_dollar_budget_is_computed_from_the_price() {
    let endpoint = Endpoint::start(vec![good(Protocol::Anthropic, "x")]);
    let budget = Some(Budget { max_tokens: None, max_usd: Some(0.04) });
    let settings =
        ProviderSettings { budget, price: Some(PRICE), ..settings(Protocol::Anthropic, &endpoint) };
    let model = model_with(settings, &Pauses::default());
    // 12 tokens at 0.001 and 5 at 0.002.
    assert_eq!(model.complete(&Chat::ask("how?")).unwrap().usage.cost_usd(), Some(0.022));
    model.complete(&Chat::ask("how?")).unwrap();
    let error = model.complete(&Chat::ask("how?")).unwrap_err();
    assert!(error.to_string().contains("0.044 of 0.04 US dollars"), "{error}");
    assert_eq!((model.spent().cost_nanos, model.spent().tokens), (44_000_000, 34));
}

#[test]
fn a_stream_is_counted_too() {
    for kind in KINDS {
        let stream = Reply::pieces(stream_type(kind), streamed(kind, "", &["x"]).all());
        let endpoint = Endpoint::start(vec![stream]);
        let settings = ProviderSettings { budget: tokens(1), ..settings(kind, &endpoint) };
        let model = model_with(settings, &Pauses::default());
        let mut each = |_: Delta<'_>| ControlFlow::Continue(());
        model.stream(&Chat::ask("how?"), &mut each).unwrap();
        assert_eq!(model.spent().tokens, 17);
        let outcome = model.stream(&Chat::ask("how?"), &mut each);
        assert!(matches!(outcome, Err(ModelError::Budget { .. })));
    }
}

#[test]
fn unreported_usage_counts_against_the_budget() {
    let mut silent = body(Protocol::OpenAi, "x");
    silent["usage"] = json!(null);
    let cut = Reply::new(200, "application/json", "{\"half").cut_short();
    for reply in [Reply::json(200, &silent), cut] {
        let endpoint = Endpoint::start(vec![reply]);
        let settings = ProviderSettings {
            budget: tokens(10),
            retries: Some(0),
            ..settings(Protocol::OpenAi, &endpoint)
        };
        let model = model_with(settings, &Pauses::default());
        let first = model.complete(&Chat::ask("how?"));
        assert!(model.spent().tokens > 10, "a guess is counted");
        if let Ok(answer) = first {
            assert_eq!(answer.usage.total, 0, "and never told as usage");
        }
        let second = model.complete(&Chat::ask("how?"));
        assert!(matches!(second, Err(ModelError::Budget { .. })));
    }
}

#[test]
fn rejected_requests_are_not_counted() {
    let endpoint = Endpoint::start(vec![Reply::json(404, &json!({ "error": "no such model" }))]);
    let settings = ProviderSettings { budget: tokens(10), ..settings(Protocol::Ollama, &endpoint) };
    let model = model_with(settings, &Pauses::default());
    assert!(model.complete(&Chat::ask("how?")).is_err());
    assert_eq!(model.spent().tokens, 0);
}

#[test]
fn a_budget_ends_retries_too() {
    let cut = Reply::new(200, "application/json", "{\"half").cut_short();
    let endpoint = Endpoint::start(vec![cut]);
    let settings = ProviderSettings { budget: tokens(1), ..settings(Protocol::OpenAi, &endpoint) };
    let outcome = model_with(settings, &Pauses::default()).complete(&Chat::ask("how?"));
    assert!(matches!(outcome, Err(ModelError::Budget { .. })));
    assert_eq!(endpoint.times(), 1);
}
