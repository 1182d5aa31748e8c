//! When a call is tried again, and how long it waits before that.

use tine_llm::{CallTrace, Chat, Completion, ModelError, Protocol, ProviderSettings};

use crate::endpoint::{Endpoint, Pauses, Reply, model_with, settings};
use crate::protocols::{KINDS, error, good};

/// The outcome, how often the endpoint was asked, and the pauses.
fn run(
    kind: Protocol,
    replies: Vec<Reply>,
    retries: u32,
) -> (Result<Completion, ModelError>, usize, Vec<u128>) {
    let endpoint = Endpoint::start(replies);
    let settings = ProviderSettings {
        retries: Some(retries),
        timeout_ms: Some(20_000),
        ..settings(kind, &endpoint)
    };
    let pauses = Pauses::default();
    let outcome = model_with(settings, &pauses).complete(&Chat::ask("how?"));
    (outcome, endpoint.times(), pauses.millis())
}

#[test]
fn a_server_error_is_retried() {
    for kind in KINDS {
        let broken = error(kind, 500, "api_error", "oops");
        let (outcome, times, pauses) = run(kind, vec![broken, good(kind, "x")], 3);
        let answer = outcome.unwrap();
        assert_eq!((answer.text.as_str(), answer.tries, times), ("x", 2, 2));
        assert_eq!(pauses, [500]);
        assert_eq!(answer.usage.total, 17, "the try that failed told nothing");
    }
}

#[test]
fn retry_after_is_respected_up_to_a_limit() {
    for kind in KINDS {
        let busy = |time: &str| {
            error(kind, 429, "rate_limit_error", "slow down").header("retry-after", time)
        };
        let (outcome, _, pauses) = run(kind, vec![busy("7"), busy("9999"), good(kind, "x")], 3);
        assert_eq!((outcome.unwrap().tries, pauses), (3, vec![7_000, 30_000]));
    }
}

#[test]
fn a_persistent_rate_limit_is_reported_with_its_time() {
    let busy = error(Protocol::OpenAi, 429, "rate_limit_error", "slow").header("retry-after", "61");
    let (outcome, times, _) = run(Protocol::OpenAi, vec![busy], 1);
    let error = outcome.unwrap_err();
    let ModelError::RateLimited { retry_after, .. } = &error else { panic!("{error}") };
    assert_eq!((retry_after.map(|it| it.as_secs()), times), (Some(61), 2));
    assert!(error.to_string().contains("in 61 s"), "{error}");
}

#[test]
fn pauses_double_and_end() {
    let (outcome, times, pauses) = run(
        Protocol::Anthropic,
        vec![error(Protocol::Anthropic, 529, "overloaded_error", "busy")],
        4,
    );
    assert!(matches!(outcome, Err(ModelError::Http { status: 529, .. })));
    assert_eq!((times, pauses), (5, vec![500, 1_000, 2_000, 4_000]));
}

#[test]
fn a_broken_connection_is_retried() {
    let cut = Reply::new(200, "application/json", "{").cut_short();
    let (outcome, times, _) = run(Protocol::OpenAi, vec![cut, good(Protocol::OpenAi, "x")], 1);
    assert_eq!((outcome.unwrap().text.as_str(), times), ("x", 2));
}

#[test]
fn an_idle_timeout_is_retried() {
    let endpoint = Endpoint::start(vec![Reply::late(), good(Protocol::Ollama, "x")]);
    let settings =
        ProviderSettings { timeout_ms: Some(1_000), ..settings(Protocol::Ollama, &endpoint) };
    let answer = model_with(settings, &Pauses::default()).complete(&Chat::ask("how?")).unwrap();
    assert_eq!((answer.text.as_str(), answer.tries), ("x", 2));
}

#[test]
fn permanent_errors_are_not_retried() {
    for kind in KINDS {
        for status in [400, 401, 403, 404, 413] {
            let (outcome, times, pauses) = run(kind, vec![error(kind, status, "e", "no")], 3);
            assert!(outcome.is_err());
            assert_eq!((times, pauses.len()), (1, 0), "{kind:?} {status}");
        }
    }
}

#[test]
fn a_failed_call_is_in_the_trace() {
    let endpoint = Endpoint::start(vec![error(Protocol::OpenAi, 500, "e", "oops")]);
    let model = model_with(settings(Protocol::OpenAi, &endpoint), &Pauses::default());
    let mut trace = CallTrace::default();
    model.complete_traced(&Chat::ask("how?"), &mut trace).unwrap_err();
    assert_eq!(trace.tries, 4);
    assert!(String::from_utf8_lossy(&trace.response).contains("oops"));
    assert!(String::from_utf8_lossy(&trace.request).contains("how?"));
}
