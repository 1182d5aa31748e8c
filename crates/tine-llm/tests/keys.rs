//! A key goes to the endpoint, in a header, and nowhere else.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use serde_json::json;
use tine_analysis::{Account, Interpreter, Material, Subject};
use tine_core::Role;
use tine_llm::{CallTrace, Delta};
use tine_llm::{
    Chat, Model, ModelError, ModelInterpreter, ModelRuntime, Protocol, Provider, ProviderSettings,
};

use crate::endpoint::{Endpoint, KEY, Pauses, Reply, model, model_with, settings};
use crate::protocols::{KINDS, body, good, stream_type, structured};

fn keyless(what: &str, shown: &str) {
    assert!(!shown.contains(KEY), "the key is in {what}: {shown}");
    assert!(!shown.contains(&KEY.replace('/', "\\/")), "the key is in {what}: {shown}");
}

fn keyless_bytes(what: &str, bytes: &[u8]) {
    keyless(what, &String::from_utf8_lossy(bytes));
}

#[test]
fn a_key_is_sent_in_the_header_of_each_protocol_and_in_no_body() {
    for kind in KINDS {
        let endpoint = Endpoint::start(vec![good(kind, "x")]);
        let answer = model(kind, &endpoint).complete(&Chat::ask("how?")).unwrap();
        let asked = &endpoint.requests()[0];
        let (name, value) = match kind {
            Protocol::Anthropic => ("x-api-key", KEY.to_owned()),
            _ => ("authorization", format!("Bearer {KEY}")),
        };
        assert_eq!(asked.header(name), Some(value.as_str()), "{kind:?}");
        keyless("the address", &asked.path);
        keyless_bytes("the body that was sent", &asked.body);
        keyless_bytes("the request that is recorded", &answer.request);
        keyless("the answer", &format!("{answer:?}"));
    }
}

#[test]
fn a_key_is_in_no_debug_output() {
    let endpoint = Endpoint::start(vec![good(Protocol::OpenAi, "x")]);
    let model = model(Protocol::OpenAi, &endpoint);
    model.complete(&Chat::ask("how?")).unwrap();
    keyless("the model", &format!("{model:?} {:?}", model.provider()));
    let interpreter = ModelInterpreter::new(model);
    keyless("the interpreter", &format!("{interpreter:?} {:?}", interpreter.about()));
}

/// Notes whether any part of the key was written to the log, also one cut into rows.
struct Log(AtomicBool);

impl log::Log for Log {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &log::Record<'_>) {
        let line = record.args().to_string();
        let parts = KEY.as_bytes().windows(6).map(|part| str::from_utf8(part).unwrap());
        if parts.into_iter().any(|part| line.contains(part)) {
            self.0.store(true, Ordering::SeqCst);
        }
    }

    fn flush(&self) {}
}

#[test]
fn a_key_is_in_no_log_at_any_level() {
    static LOG: Log = Log(AtomicBool::new(false));
    log::set_logger(&LOG).unwrap();
    log::set_max_level(log::LevelFilter::Trace);
    for kind in KINDS {
        let endpoint = Endpoint::start(vec![Reply::json(401, &json!({ "error": "no" }))]);
        let model = model(kind, &endpoint);
        model.complete(&Chat::ask("how?")).unwrap_err();
        let mut each = |_: Delta<'_>| ControlFlow::Continue(());
        model.stream(&Chat::ask("how?"), &mut each).unwrap_err();
        assert_eq!(endpoint.times(), 2);
    }
    assert!(!LOG.0.load(Ordering::SeqCst));
}

#[test]
fn a_key_in_a_response_is_removed_from_errors_and_records() {
    let escaped = KEY.replace('/', "\\/");
    for kind in KINDS {
        for status in [400, 401, 404, 429, 500, 200] {
            for words in [
                format!("{{\"error\":{{\"message\":\"wrong key {KEY}\"}}}}"),
                format!("{{\"error\":\"wrong key {escaped}\"}}"),
                format!("<html>{KEY}"),
            ] {
                let endpoint = Endpoint::start(vec![Reply::new(status, KEY, words)]);
                let settings = ProviderSettings { retries: Some(0), ..settings(kind, &endpoint) };
                let model = model_with(settings, &Pauses::default());
                for stream in [false, true] {
                    let mut trace = CallTrace::default();
                    let mut each = |_: Delta<'_>| ControlFlow::Continue(());
                    let chat = Chat::ask("how?");
                    let error = match stream {
                        true => model.stream_traced(&chat, &mut trace, &mut each).unwrap_err(),
                        false => model.complete_traced(&chat, &mut trace).unwrap_err(),
                    };
                    keyless("the error", &format!("{error} {error:?}"));
                    keyless_bytes("the response that is recorded", &trace.response);
                    assert!(String::from_utf8_lossy(&trace.response).contains("[key]"));
                }
            }
        }
    }
}

#[test]
fn a_key_in_an_answer_is_removed() {
    for kind in KINDS {
        let mut echo = body(kind, &format!("your key is {KEY}"));
        echo["model"] = json!(KEY);
        let endpoint = Endpoint::start(vec![Reply::json(200, &echo)]);
        let answer = model(kind, &endpoint).complete(&Chat::ask("how?")).unwrap();
        assert_eq!(answer.text, "your key is [key]");
        keyless("the answer", &format!("{answer:?}"));
        keyless_bytes("the response", &answer.response);
        let line = match kind {
            Protocol::Ollama => format!("{echo}\n"),
            Protocol::OpenAi => format!(
                "data: {}\n\ndata: [DONE]\n\n",
                json!({ "model": KEY, "choices": [{ "delta": { "content": KEY } }] })
            ),
            Protocol::Anthropic => format!(
                "data: {}\n\ndata: {{\"type\":\"message_stop\"}}\n\n",
                json!({ "type": "content_block_delta",
                        "delta": { "type": "text_delta", "text": KEY } })
            ),
        };
        let reply = Reply::pieces(stream_type(kind), vec![line.into_bytes()]);
        let endpoint = Endpoint::start(vec![reply]);
        let mut each = |_: Delta<'_>| ControlFlow::Continue(());
        let answer = model(kind, &endpoint).stream(&Chat::ask("how?"), &mut each).unwrap();
        keyless("the streamed answer", &format!("{answer:?}"));
        keyless_bytes("the streamed response", &answer.response);
    }
}

#[test]
fn the_account_of_a_run_contains_no_key() {
    for kind in KINDS {
        let findings = structured(kind, &json!({ "findings": [] }));
        let echo = Reply::new(401, "text/plain", format!("{KEY} is wrong"));
        for reply in [Reply::json(200, &findings), echo] {
            let endpoint = Endpoint::start(vec![reply]);
            let interpreter = ModelInterpreter::new(model(kind, &endpoint));
            let material =
                Material { text: "Hello", subject: Subject::Turn(Role::User), authored_at: None };
            let mut account = Account::default();
            let outcome = interpreter.interpret(&material, &mut account);
            for bytes in [&account.request, &account.response].into_iter().flatten() {
                keyless_bytes("the account", bytes);
            }
            keyless("the account", &format!("{account:?} {outcome:?}"));
        }
    }
}

#[test]
fn a_missing_key_is_named_by_its_variable_and_nothing_is_sent() {
    for found in [None, Some(String::new()), Some("two words\n and lines".to_owned())] {
        let endpoint = Endpoint::start(vec![good(Protocol::OpenAi, "x")]);
        let provider = Provider::new("test", settings(Protocol::OpenAi, &endpoint)).unwrap();
        let runtime = ModelRuntime {
            environment: Arc::new(move |_| found.clone()),
            ..ModelRuntime::default()
        };
        let model = Model::with(provider, runtime).unwrap();
        let mut trace = CallTrace::default();
        let error = model.complete_traced(&Chat::ask("how?"), &mut trace).unwrap_err();
        assert!(matches!(&error, ModelError::MissingKey { env, .. } if env == "TEST_KEY"));
        assert!(!error.transient() && !error.to_string().contains("two words"), "{error}");
        assert_eq!((endpoint.times(), trace.tries), (0, 0));
        assert!(!trace.request.is_empty(), "what would have been sent is told");
    }
}

#[test]
fn a_key_is_read_for_each_call() {
    let endpoint = Endpoint::start(vec![good(Protocol::OpenAi, "x")]);
    let provider = Provider::new("test", settings(Protocol::OpenAi, &endpoint)).unwrap();
    let count = AtomicU32::new(0);
    let next = move |_: &str| Some(format!("key-{}", count.fetch_add(1, Ordering::SeqCst)));
    let runtime = ModelRuntime { environment: Arc::new(next), ..ModelRuntime::default() };
    let model = Model::with(provider, runtime).unwrap();
    for turn in 0..2 {
        model.complete(&Chat::ask("how?")).unwrap();
        let sent = endpoint.requests()[turn].header("authorization").map(str::to_owned);
        assert_eq!(sent, Some(format!("Bearer key-{turn}")));
    }
}

#[test]
fn a_default_key_is_sent_only_to_its_default_address() {
    let own = |kind| Provider::new("p", ProviderSettings::new(kind, "m")).unwrap();
    assert_eq!(own(Protocol::OpenAi).key_env(), Some("OPENAI_API_KEY"));
    assert_eq!(own(Protocol::Anthropic).key_env(), Some("ANTHROPIC_API_KEY"));
    assert_eq!(own(Protocol::Ollama).key_env(), None);
    for kind in KINDS {
        let endpoint = Endpoint::start(vec![good(kind, "x")]);
        let settings =
            ProviderSettings { base_url: Some(endpoint.url()), ..ProviderSettings::new(kind, "m") };
        let every =
            ModelRuntime { environment: Arc::new(|_| Some(KEY.into())), ..ModelRuntime::default() };
        let model = Model::with(Provider::new("p", settings).unwrap(), every).unwrap();
        model.complete(&Chat::ask("how?")).unwrap();
        keyless("the headers", &format!("{:?}", endpoint.requests()[0].headers));
    }
}
