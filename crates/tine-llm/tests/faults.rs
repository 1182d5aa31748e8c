//! Everything that an endpoint can get wrong, in each protocol.

use std::io::{Read, Write};
use std::net::TcpListener;

use serde_json::json;
use tine_llm::{
    CallTrace, Chat, Model, ModelError, Protocol, Provider, ProviderSettings, Truncation,
};

use crate::endpoint::{Endpoint, Pauses, Reply, model_with, runtime, settings};
use crate::protocols::{KINDS, error, good};

/// The error of a call without retries, and what it left behind.
fn fails(
    kind: Protocol,
    reply: Reply,
    change: impl Fn(&mut ProviderSettings),
) -> (ModelError, CallTrace) {
    let endpoint = Endpoint::start(vec![reply]);
    let mut settings = ProviderSettings { retries: Some(0), ..settings(kind, &endpoint) };
    change(&mut settings);
    let mut trace = CallTrace::default();
    let model = model_with(settings, &Pauses::default());
    let error = model.complete_traced(&Chat::ask("how?"), &mut trace).unwrap_err();
    assert_eq!(trace.request, endpoint.requests()[0].body, "what was sent is told");
    (error, trace)
}

fn is_malformed(error: &ModelError, word: &str) {
    let named = matches!(error, ModelError::Malformed { what, .. } if what.contains(word));
    assert!(named && !error.transient(), "{error}");
}

#[test]
fn malformed_json_is_reported_and_kept() {
    for kind in KINDS {
        let reply = Reply::new(200, "application/json", "{\"choices\": oh no}");
        let (error, trace) = fails(kind, reply, |_| {});
        is_malformed(&error, "not JSON");
        assert_eq!(trace.response, b"{\"choices\": oh no}");
    }
}

#[test]
fn another_response_format_is_reported() {
    for kind in KINDS {
        let (error, _) = fails(kind, Reply::json(200, &json!({ "hello": 1 })), |_| {});
        is_malformed(&error, "no `");
    }
}

#[test]
fn a_page_instead_of_an_answer_is_reported_with_its_type() {
    for kind in KINDS {
        let reply = Reply::new(200, "text/html", "<html>Please log in</html>");
        let (error, _) = fails(kind, reply, |_| {});
        is_malformed(&error, "text/html");
        is_malformed(&error, "Please log in");
    }
}

#[test]
fn json_with_another_content_type_is_parsed() {
    for kind in KINDS {
        let body = crate::protocols::body(kind, "x").to_string();
        let endpoint = Endpoint::start(vec![Reply::new(200, "text/plain", body)]);
        let model = model_with(settings(kind, &endpoint), &Pauses::default());
        assert_eq!(model.complete(&Chat::ask("how?")).unwrap().text, "x");
    }
}

#[test]
fn a_late_answer_times_out() {
    for kind in KINDS {
        let (error, trace) = fails(kind, Reply::late(), |it| it.timeout_ms = Some(600));
        assert!(matches!(error, ModelError::Timeout { field: "timeout_ms", .. }), "{error}");
        assert!(error.transient());
        assert_eq!((trace.tries, trace.response.len()), (1, 0));
    }
}

#[test]
fn a_silent_answer_times_out_and_is_kept_so_far() {
    let reply = Reply::new(200, "application/json", "{\"half\":").then_gate();
    let (error, trace) = fails(Protocol::OpenAi, reply, |it| it.timeout_ms = Some(600));
    assert!(matches!(error, ModelError::Timeout { field: "timeout_ms", .. }), "{error}");
    assert_eq!(trace.response, b"{\"half\":");
}

#[test]
fn an_answer_has_a_total_timeout() {
    for kind in KINDS {
        let (error, trace) = fails(kind, Reply::drip("application/json", b" "), |it| {
            it.timeout_ms = Some(800);
            it.answer_timeout_ms = Some(800);
        });
        assert!(matches!(error, ModelError::Timeout { field: "answer_timeout_ms", .. }), "{error}");
        assert!(!trace.response.is_empty());
    }
}

#[test]
fn an_untrusted_endpoint_is_not_retried() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let base_url = format!("https://{}", listener.local_addr().unwrap());
    // Whatever it is asked, it answers in plain HTTP.
    let serving = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").unwrap();
        drop(stream.read(&mut [0; 1_024]));
        // Listens no more: another try would find nobody.
    });
    let settings = ProviderSettings {
        base_url: Some(base_url),
        ..ProviderSettings::new(Protocol::OpenAi, "m")
    };
    let provider = Provider::new("test", settings).unwrap();
    match Model::with(provider, runtime(&Pauses::default())) {
        Ok(model) => {
            let error = model.complete(&Chat::ask("how?")).unwrap_err();
            assert!(matches!(error, ModelError::Unreachable { again: false, .. }), "{error}");
        }
        // A machine without certificates trusts nobody.
        Err(error) => return assert_eq!(error.field, "base_url"),
    }
    serving.join().unwrap();
}

#[test]
fn a_connection_that_ends_midway_is_a_truncated_answer() {
    for kind in KINDS {
        for reply in [
            Reply::new(200, "application/json", "{\"choices\": [").cut_short(),
            Reply::pieces("application/json", vec![b"{\"choices\": [".to_vec()]),
        ] {
            let (error, trace) = fails(kind, reply, |_| {});
            assert!(
                matches!(error, ModelError::Truncated { cut: Truncation::Connection, .. }),
                "{error}"
            );
            assert!(error.transient());
            assert_eq!(trace.response, b"{\"choices\": [");
        }
    }
}

#[test]
fn a_huge_answer_is_rejected() {
    for kind in KINDS {
        let reply = good(kind, &"x".repeat(200_000));
        let (error, trace) = fails(kind, reply, |it| it.max_answer_bytes = Some(50_000));
        assert!(matches!(error, ModelError::TooLarge { limit_bytes: 50_000, .. }), "{error}");
        assert!(!error.transient() && trace.response.len() <= 50_000);
    }
}

#[test]
fn http_errors_have_kinds_and_the_endpoints_message() {
    for kind in KINDS {
        for (status, transient) in [
            (400, false),
            (401, false),
            (403, false),
            (404, false),
            (408, true),
            (409, true),
            (413, false),
            (429, true),
            (500, true),
            (503, true),
            (529, true),
        ] {
            let (error, trace) = fails(kind, error(kind, status, "some_error", "my words"), |_| {});
            assert_eq!(error.transient(), transient, "{kind:?} {status}");
            assert!(error.to_string().contains("my words"), "{error}");
            assert!(!trace.response.is_empty());
            match status {
                401 | 403 => assert!(matches!(error, ModelError::Unauthorized { .. })),
                429 => assert!(matches!(error, ModelError::RateLimited { .. })),
                _ => {
                    assert!(matches!(error, ModelError::Http { status: its, .. } if its == status))
                }
            }
        }
    }
}

#[test]
fn an_error_in_a_successful_response_is_an_error() {
    let body = json!({ "error": { "code": 429, "message": "slow down" } });
    let (error, _) = fails(Protocol::OpenAi, Reply::json(200, &body), |_| {});
    assert!(matches!(error, ModelError::RateLimited { .. }), "{error}");
    let reply = crate::protocols::error(Protocol::Anthropic, 200, "overloaded_error", "busy");
    let (error, _) = fails(Protocol::Anthropic, reply, |_| {});
    assert!(matches!(error, ModelError::Http { status: 529, .. }), "{error}");
}

#[test]
fn a_redirect_is_not_followed() {
    let elsewhere = Endpoint::start(vec![good(Protocol::OpenAi, "x")]);
    let reply = Reply::json(307, &json!({})).header("location", &elsewhere.url());
    let (error, _) = fails(Protocol::OpenAi, reply, |_| {});
    assert!(matches!(error, ModelError::Http { status: 307, .. }), "{error}");
    assert_eq!(elsewhere.times(), 0);
}

#[test]
fn a_missing_endpoint_is_unreachable() {
    let gone = Endpoint::start(vec![good(Protocol::Ollama, "x")]).url();
    let settings = ProviderSettings {
        base_url: Some(gone.clone()),
        retries: Some(1),
        ..ProviderSettings::new(Protocol::Ollama, "m")
    };
    let pauses = Pauses::default();
    let mut trace = CallTrace::default();
    let model = model_with(settings, &pauses);
    let error = model.complete_traced(&Chat::ask("how?"), &mut trace).unwrap_err();
    assert!(matches!(&error, ModelError::Unreachable { address, .. } if *address == gone));
    assert!(error.transient());
    assert_eq!((trace.tries, pauses.millis()), (2, vec![500]));
}

#[test]
fn every_error_says_what_to_do_next() {
    let provider = "p".to_owned();
    let errors = [
        (ModelError::MissingKey { provider: provider.clone(), env: "E".into() }, "set it"),
        (ModelError::Truncated { provider: provider.clone(), cut: Truncation::Length }, "raise"),
        (
            ModelError::Truncated { provider: provider.clone(), cut: Truncation::Connection },
            "try again",
        ),
        (ModelError::TooLarge { provider: provider.clone(), limit_bytes: 1 }, "raise"),
        (ModelError::Malformed { provider: provider.clone(), what: "w".into() }, "check"),
        (ModelError::Refused { provider: provider.clone(), why: "w".into() }, "ask another"),
        (ModelError::Http { provider, status: 404, body: "b".into() }, "check `base_url`"),
    ];
    for (error, advice) in errors {
        assert!(error.to_string().contains(advice), "{error}");
    }
}
