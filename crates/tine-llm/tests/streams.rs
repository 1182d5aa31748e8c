//! Answers as they come: whole, cut, cancelled.

use std::ops::ControlFlow;

use serde_json::json;
use tine_llm::{
    CallTrace, Chat, Completion, Delta, Finish, ModelError, Protocol, ProviderSettings, Truncation,
};

use crate::endpoint::{Endpoint, Pauses, Reply, model, model_with, settings};
use crate::protocols::{KINDS, error, good, stream_type, streamed};

/// What was given out: texts and, in brackets, thoughts.
#[derive(Default)]
struct StreamEnd(Vec<String>);

impl StreamEnd {
    fn take(&mut self, delta: Delta<'_>) -> ControlFlow<()> {
        match delta {
            Delta::Text(text) => self.0.push(text.to_owned()),
            Delta::Thought(text) => self.0.push(format!("({text})")),
            Delta::Silence => {}
        }
        ControlFlow::Continue(())
    }
}

fn listen(
    kind: Protocol,
    reply: Reply,
) -> (Result<Completion, ModelError>, Vec<String>, CallTrace) {
    let endpoint = Endpoint::start(vec![reply]);
    let settings = ProviderSettings { retries: Some(0), ..settings(kind, &endpoint) };
    let (mut heard, mut trace) = (StreamEnd::default(), CallTrace::default());
    let model = model_with(settings, &Pauses::default());
    let outcome =
        model.stream_traced(&Chat::ask("how?"), &mut trace, &mut |delta| heard.take(delta));
    (outcome, heard.0, trace)
}

#[test]
fn a_stream_is_passed_on_in_pieces_and_returned_whole() {
    for kind in KINDS {
        let stream = streamed(kind, "hm", &["Hel", "lo ", "東京"]).all();
        let (outcome, heard, trace) =
            listen(kind, Reply::pieces(stream_type(kind), stream.clone()));
        let answer = outcome.unwrap();
        assert_eq!(heard, ["(hm)", "Hel", "lo ", "東京"], "{kind:?}");
        assert_eq!((answer.text.as_str(), &answer.finish), ("Hello 東京", &Finish::Stop));
        assert_eq!(answer.model_answered.as_deref(), Some("answered-1"));
        assert_eq!((answer.usage.input, answer.usage.output, answer.usage.total), (12, 5, 17));
        assert_eq!(trace.response, stream.concat(), "the bytes are kept as they came");
    }
}

#[test]
fn a_stream_is_requested_in_each_protocol() {
    for kind in KINDS {
        let stream = streamed(kind, "", &["x"]).all();
        let endpoint = Endpoint::start(vec![Reply::pieces(stream_type(kind), stream)]);
        let mut each = |_: Delta<'_>| ControlFlow::Continue(());
        model(kind, &endpoint).stream(&Chat::ask("how?"), &mut each).unwrap();
        let sent = endpoint.requests()[0].json();
        assert_eq!(sent["stream"], json!(true));
        let usage = (kind == Protocol::OpenAi).then(|| json!({ "include_usage": true }));
        assert_eq!(sent.get("stream_options"), usage.as_ref());
    }
}

#[test]
fn a_stream_in_single_bytes_is_the_same_stream() {
    for kind in KINDS {
        let stream = streamed(kind, "", &["Zü", "rich"]).all().concat();
        let bytes = stream.iter().map(|&byte| vec![byte]).collect();
        let (outcome, heard, _) = listen(kind, Reply::pieces(stream_type(kind), bytes));
        assert_eq!((outcome.unwrap().text.as_str(), heard.concat().as_str()), ("Zürich", "Zürich"));
    }
}

#[test]
fn a_stream_that_ends_too_early_is_reported_and_kept() {
    for kind in KINDS {
        let stream = streamed(kind, "", &["Hel", "lo"]);
        let half = [stream.begin, stream.pieces].concat();
        let mut torn = half.clone();
        torn.push(b"data: {\"cho".to_vec());
        for pieces in [half, torn] {
            let (outcome, heard, trace) =
                listen(kind, Reply::pieces(stream_type(kind), pieces.clone()));
            let error = outcome.unwrap_err();
            assert!(
                matches!(error, ModelError::Truncated { cut: Truncation::Connection, .. }),
                "{error}"
            );
            assert_eq!(heard, ["Hel", "lo"]);
            assert_eq!(trace.response, pieces.concat());
            // Anthropic tells at the beginning what it read.
            assert_eq!(trace.usage.input > 0, kind == Protocol::Anthropic);
        }
    }
}

#[test]
fn a_stream_is_not_retried_after_its_first_piece() {
    for kind in KINDS {
        let stream = streamed(kind, "", &["Hel"]);
        let half = Reply::pieces(stream_type(kind), [stream.begin, stream.pieces].concat());
        let endpoint = Endpoint::start(vec![half]);
        let mut heard = StreamEnd::default();
        let outcome =
            model(kind, &endpoint).stream(&Chat::ask("how?"), &mut |delta| heard.take(delta));
        assert!(outcome.is_err_and(|error| error.transient()));
        assert_eq!((heard.0, endpoint.times()), (vec!["Hel".to_owned()], 1));
    }
}

#[test]
fn a_stream_without_a_piece_is_retried() {
    for kind in KINDS {
        let busy = error(kind, 503, "overloaded_error", "busy");
        let empty = Reply::pieces(stream_type(kind), vec![]);
        let stream = Reply::pieces(stream_type(kind), streamed(kind, "", &["x"]).all());
        let endpoint = Endpoint::start(vec![busy, empty, stream]);
        let pauses = Pauses::default();
        let model = model_with(settings(kind, &endpoint), &pauses);
        let mut heard = StreamEnd::default();
        let answer = model.stream(&Chat::ask("how?"), &mut |delta| heard.take(delta)).unwrap();
        assert_eq!((answer.text.as_str(), answer.tries), ("x", 3));
        assert_eq!(heard.0, ["x"]);
        assert_eq!(pauses.millis().iter().sum::<u128>(), 500 + 1_000);
    }
}

#[test]
fn a_listener_that_breaks_gets_the_answer_so_far() {
    for kind in KINDS {
        let stream = streamed(kind, "", &["Hel", "lo"]);
        let pieces = [stream.begin, stream.pieces].concat();
        // It never ends by itself.
        let endpoint = Endpoint::start(vec![Reply::pieces(stream_type(kind), pieces).then_gate()]);
        let answer = model(kind, &endpoint)
            .stream(&Chat::ask("how?"), &mut |delta| match delta {
                Delta::Text("lo") => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            })
            .unwrap();
        assert_eq!((answer.text.as_str(), &answer.finish), ("Hello", &Finish::Cancelled));
        assert!(answer.whole().is_err());
    }
}

#[test]
fn a_listener_can_break_while_nothing_arrives() {
    for kind in KINDS {
        let stream = streamed(kind, "", &["Hel"]);
        let begun = Reply::pieces(stream_type(kind), [stream.begin, stream.pieces].concat());
        for reply in [Reply::late(), begun.then_gate()] {
            let endpoint = Endpoint::start(vec![reply]);
            let answer = model(kind, &endpoint)
                .stream(&Chat::ask("how?"), &mut |delta| match delta {
                    Delta::Silence => ControlFlow::Break(()),
                    _ => ControlFlow::Continue(()),
                })
                .unwrap();
            assert_eq!((answer.finish, endpoint.times()), (Finish::Cancelled, 1));
        }
    }
}

#[test]
fn a_listener_can_break_between_attempts() {
    let busy = error(Protocol::OpenAi, 429, "rate_limit_error", "slow").header("retry-after", "20");
    let endpoint = Endpoint::start(vec![busy]);
    let pauses = Pauses::default();
    let model = model_with(settings(Protocol::OpenAi, &endpoint), &pauses);
    let mut each = |delta: Delta<'_>| match delta {
        Delta::Silence if !pauses.millis().is_empty() => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    };
    let answer = model.stream(&Chat::ask("how?"), &mut each).unwrap();
    assert_eq!((answer.finish, answer.tries, endpoint.times()), (Finish::Cancelled, 1, 1));
    assert_eq!(pauses.millis(), [100]);
}

#[test]
fn an_error_in_the_middle_of_a_stream_is_an_error() {
    for kind in KINDS {
        let stream = streamed(kind, "", &["Hel"]);
        let fault = match kind {
            Protocol::OpenAi => {
                "data: {\"error\":{\"message\":\"oh no\",\"type\":\"server_error\"}}\n\n"
            }
            Protocol::Anthropic => {
                "event: error\ndata: {\"type\":\"error\",\"error\":\
                 {\"type\":\"overloaded_error\",\"message\":\"oh no\"}}\n\n"
            }
            Protocol::Ollama => "{\"error\":\"oh no\"}\n",
        };
        let pieces = [stream.begin, stream.pieces, vec![fault.into()]].concat();
        let (outcome, heard, _) = listen(kind, Reply::pieces(stream_type(kind), pieces));
        let error = outcome.unwrap_err();
        assert!(error.to_string().contains("oh no") && error.transient(), "{error}");
        assert_eq!(heard, ["Hel"]);
    }
}

#[test]
fn events_that_are_not_json_are_reported() {
    for kind in KINDS {
        let line = if kind == Protocol::Ollama { "oh no\n" } else { "data: oh no\n\n" };
        let (outcome, _, _) = listen(kind, Reply::pieces(stream_type(kind), vec![line.into()]));
        let error = outcome.unwrap_err();
        assert!(matches!(error, ModelError::Malformed { .. }), "{error}");
    }
}

#[test]
fn a_page_instead_of_a_stream_is_reported() {
    for kind in KINDS {
        let (outcome, heard, _) = listen(kind, Reply::new(200, "text/html", "<html>Log in</html>"));
        let error = outcome.unwrap_err();
        assert!(matches!(error, ModelError::Malformed { .. }), "{error}");
        assert!(error.to_string().contains("text/html") && heard.is_empty(), "{error}");
    }
}

#[test]
fn an_endpoint_that_does_not_stream_gives_one_piece() {
    for kind in KINDS {
        let (outcome, heard, _) = listen(kind, good(kind, "all of it"));
        let answer = outcome.unwrap();
        assert_eq!((answer.text.as_str(), answer.finish), ("all of it", Finish::Stop));
        assert_eq!((heard, answer.usage.total), (vec!["all of it".to_owned()], 17));
    }
}

#[test]
fn a_huge_stream_is_rejected() {
    for kind in KINDS {
        let long = "x".repeat(20_000);
        let stream = streamed(kind, "", &[&long, &long, &long]).all();
        let endpoint = Endpoint::start(vec![Reply::pieces(stream_type(kind), stream)]);
        let settings =
            ProviderSettings { max_answer_bytes: Some(30_000), ..settings(kind, &endpoint) };
        let mut heard = StreamEnd::default();
        let model = model_with(settings, &Pauses::default());
        let outcome = model.stream(&Chat::ask("how?"), &mut |delta| heard.take(delta));
        assert!(matches!(outcome, Err(ModelError::TooLarge { .. })), "{outcome:?}");
        assert!(heard.0.concat().len() < 30_000);
    }
}

#[test]
fn a_silent_stream_times_out() {
    for kind in KINDS {
        let stream = streamed(kind, "", &["Hel"]);
        let begun = Reply::pieces(stream_type(kind), [stream.begin, stream.pieces].concat());
        let endpoint = Endpoint::start(vec![begun.then_gate()]);
        let settings = ProviderSettings { timeout_ms: Some(800), ..settings(kind, &endpoint) };
        let mut heard = StreamEnd::default();
        let model = model_with(settings, &Pauses::default());
        let outcome = model.stream(&Chat::ask("how?"), &mut |delta| heard.take(delta));
        assert!(matches!(outcome, Err(ModelError::Timeout { .. })), "{outcome:?}");
        assert_eq!((heard.0, endpoint.times()), (vec!["Hel".to_owned()], 1));
    }
}

#[test]
fn an_endless_stream_times_out() {
    for kind in KINDS {
        let endpoint = Endpoint::start(vec![Reply::drip(stream_type(kind), b"\n")]);
        let settings = ProviderSettings {
            timeout_ms: Some(800),
            answer_timeout_ms: Some(800),
            retries: Some(0),
            ..settings(kind, &endpoint)
        };
        let mut each = |_: Delta<'_>| ControlFlow::Continue(());
        let outcome =
            model_with(settings, &Pauses::default()).stream(&Chat::ask("how?"), &mut each);
        let field = "answer_timeout_ms";
        assert!(matches!(outcome, Err(ModelError::Timeout { field: its, .. }) if its == field));
    }
}

#[test]
fn a_refusal_in_a_stream_is_distinguished_from_an_answer() {
    let openai = "data: {\"choices\":[{\"delta\":{\"refusal\":\"I won't\"}}]}\n\n\
                  data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    let anthropic = "data: {\"type\":\"message_start\",\"message\":{\"model\":\"m\"}}\n\n\
                     data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"refusal\"}}\n\n\
                     data: {\"type\":\"message_stop\"}\n\n";
    for (kind, stream) in [(Protocol::OpenAi, openai), (Protocol::Anthropic, anthropic)] {
        let (outcome, _, _) = listen(kind, Reply::pieces(stream_type(kind), vec![stream.into()]));
        let answer = outcome.unwrap();
        assert!(matches!(answer.whole(), Err(ModelError::Refused { .. })), "{answer:?}");
    }
}

#[test]
fn json_of_a_schema_is_streamed_too() {
    let stream = "data: {\"type\":\"message_start\",\"message\":{\"model\":\"m\"}}\n\n\
        data: {\"type\":\"content_block_delta\",\"delta\":\
        {\"type\":\"input_json_delta\",\"partial_json\":\"{\\\"a\\\":\"}}\n\n\
        data: {\"type\":\"content_block_delta\",\"delta\":\
        {\"type\":\"input_json_delta\",\"partial_json\":\"1}\"}}\n\n\
        data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"tool_use\"}}\n\n\
        data: {\"type\":\"message_stop\"}\n\n";
    let reply = Reply::pieces(stream_type(Protocol::Anthropic), vec![stream.into()]);
    let (outcome, heard, _) = listen(Protocol::Anthropic, reply);
    assert_eq!((outcome.unwrap().whole().unwrap(), heard.len()), ("{\"a\":1}", 2));
}

#[test]
fn usage_is_not_requested_from_endpoints_without_stream_options() {
    let refused = error(Protocol::OpenAi, 400, "invalid", "unknown field stream_options");
    let stream = streamed(Protocol::OpenAi, "", &["x"]).all();
    let reply = Reply::pieces(stream_type(Protocol::OpenAi), stream);
    let endpoint = Endpoint::start(vec![refused, reply]);
    let mut each = |_: Delta<'_>| ControlFlow::Continue(());
    let answer = model(Protocol::OpenAi, &endpoint).stream(&Chat::ask("how?"), &mut each).unwrap();
    assert_eq!((answer.tries, endpoint.requests()[1].json().get("stream_options")), (2, None));
}
