//! What is sent, and what is made of good answers.

use serde_json::json;
use tine_llm::{
    Chat, ChatMessage, Completion, Finish, ModelError, Protocol, ProviderSettings, Speaker,
};

use crate::endpoint::{Endpoint, Pauses, Reply, model, model_with, settings};
use crate::protocols::{KINDS, body, error, good, structured, too_long};

fn ask(kind: Protocol, reply: Reply) -> Result<Completion, ModelError> {
    model(kind, &Endpoint::start(vec![reply])).complete(&Chat::ask("how?"))
}

#[test]
fn whole_answers_are_parsed_in_each_protocol() {
    for kind in KINDS {
        let endpoint = Endpoint::start(vec![good(kind, "So: 東京 😀")]);
        let chat = Chat::ask("how?").with_system("be short");
        let answer = model(kind, &endpoint).complete(&chat).unwrap();
        assert_eq!(answer.text, "So: 東京 😀", "{kind:?}");
        assert_eq!((answer.finish.clone(), answer.tries), (Finish::Stop, 1));
        let usage = answer.usage;
        assert_eq!((usage.input, usage.output, usage.total, usage.priced), (12, 5, 17, 0));
        assert_eq!(answer.request, endpoint.requests()[0].body);
        assert_eq!(answer.response, body(kind, "So: 東京 😀").to_string().into_bytes());
        assert_eq!(answer.whole().unwrap(), answer.text);
    }
}

#[test]
fn the_reported_model_name_is_returned() {
    for kind in KINDS {
        let answer = ask(kind, good(kind, "x")).unwrap();
        assert_eq!(answer.model_answered.as_deref(), Some("answered-1"), "{kind:?}");
    }
}

#[test]
fn requests_follow_each_protocol() {
    let chat = Chat {
        system: Some("be short".to_owned()),
        messages: vec![
            ChatMessage::text(Speaker::User, "one"),
            ChatMessage::text(Speaker::Assistant, "two"),
            ChatMessage::text(Speaker::User, "three"),
        ],
        ..Chat::default()
    };
    let said = json!([
        { "role": "user", "content": "one" },
        { "role": "assistant", "content": "two" },
        { "role": "user", "content": "three" },
    ]);
    let mut with_system = said.clone();
    let system = json!({ "role": "system", "content": "be short" });
    with_system.as_array_mut().unwrap().insert(0, system);
    for kind in KINDS {
        let endpoint = Endpoint::start(vec![good(kind, "x")]);
        let settings = ProviderSettings {
            temperature: Some(0.5),
            max_tokens: Some(99),
            seed: (kind != Protocol::Anthropic).then_some(7),
            context_tokens: (kind == Protocol::Ollama).then_some(8_192),
            ..settings(kind, &endpoint)
        };
        model_with(settings, &Pauses::default()).complete(&chat).unwrap();
        let (path, expected) = match kind {
            Protocol::OpenAi => (
                "/chat/completions",
                json!({
                    "model": "asked-for", "messages": with_system, "stream": false,
                    "temperature": 0.5, "max_tokens": 99, "seed": 7,
                }),
            ),
            Protocol::Anthropic => (
                "/v1/messages",
                json!({
                    "model": "asked-for", "messages": said, "system": "be short", "stream": false,
                    "temperature": 0.5, "max_tokens": 99,
                }),
            ),
            Protocol::Ollama => (
                "/api/chat",
                json!({
                    "model": "asked-for", "messages": with_system, "stream": false,
                    "options":
                        { "temperature": 0.5, "num_predict": 99, "seed": 7, "num_ctx": 8192 },
                }),
            ),
        };
        let asked = &endpoint.requests()[0];
        assert_eq!((asked.path.as_str(), asked.json()), (path, expected), "{kind:?}");
        assert_eq!(asked.header("content-type"), Some("application/json"));
        let version = (kind == Protocol::Anthropic).then_some("2023-06-01");
        assert_eq!(asked.header("anthropic-version"), version);
    }
}

#[test]
fn json_is_requested_in_each_protocol() {
    let schema = json!({ "type": "object", "properties": {}, "additionalProperties": false });
    for kind in KINDS {
        let endpoint = Endpoint::start(vec![Reply::json(200, &structured(kind, &json!({})))]);
        let chat = Chat::ask("how?").with_schema("findings", schema.clone());
        let answer = model(kind, &endpoint).complete(&chat).unwrap();
        assert_eq!((answer.text.as_str(), answer.finish), ("{}", Finish::Stop));
        let sent = endpoint.requests()[0].json();
        match kind {
            Protocol::OpenAi => assert_eq!(
                sent["response_format"],
                json!({
                    "type": "json_schema",
                    "json_schema": { "name": "findings", "schema": schema, "strict": true },
                })
            ),
            Protocol::Anthropic => {
                assert_eq!(sent["tools"][0]["input_schema"], schema);
                assert_eq!(sent["tool_choice"], json!({ "type": "tool", "name": "findings" }));
            }
            Protocol::Ollama => assert_eq!(sent["format"], schema),
        }
    }
}

#[test]
fn an_endpoint_without_schemas_gets_the_alternative_from_then_on() {
    let schema = json!({ "type": "object", "properties": {} });
    for kind in [Protocol::OpenAi, Protocol::Anthropic] {
        let refused = error(kind, 400, "invalid_request_error", "response_format is unknown");
        let endpoint = Endpoint::start(vec![refused, good(kind, "{}")]);
        let model = model(kind, &endpoint);
        let chat = Chat::ask("how?").with_schema("findings", schema.clone());
        assert_eq!(model.complete(&chat).unwrap().tries, 2);
        // What was found out stays known.
        assert_eq!(model.complete(&chat).unwrap().tries, 1);
        for sent in &endpoint.requests()[1..] {
            let sent = sent.json();
            match kind {
                Protocol::OpenAi => {
                    assert_eq!(sent["response_format"], json!({ "type": "json_object" }));
                    let system = sent["messages"][0]["content"].as_str().unwrap();
                    assert!(system.contains(&schema.to_string()), "{system}");
                }
                _ => {
                    let format = json!({ "type": "json_schema", "schema": schema });
                    assert_eq!(sent["output_config"], json!({ "format": format }));
                    assert!(sent.get("tools").is_none());
                }
            }
        }
    }
}

#[test]
fn the_alternative_name_of_the_token_limit_is_tried() {
    let words = "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.";
    let refused = error(Protocol::OpenAi, 400, "invalid_request_error", words);
    let endpoint = Endpoint::start(vec![refused, good(Protocol::OpenAi, "x")]);
    let settings =
        ProviderSettings { max_tokens: Some(9), ..settings(Protocol::OpenAi, &endpoint) };
    let model = model_with(settings, &Pauses::default());
    let tries = [1, 2].map(|_| model.complete(&Chat::ask("how?")).unwrap().tries);
    assert_eq!((tries, endpoint.times()), ([2, 1], 3), "what was found out stays known");
    for asked in &endpoint.requests()[1..] {
        let sent = asked.json();
        assert_eq!((sent.get("max_tokens"), &sent["max_completion_tokens"]), (None, &json!(9)));
    }
}

#[test]
fn an_answer_at_the_token_limit_is_reported() {
    for kind in KINDS {
        let answer = ask(kind, Reply::json(200, &too_long(kind, "half an ans"))).unwrap();
        assert_eq!((answer.text.as_str(), &answer.finish), ("half an ans", &Finish::Length));
        let error = answer.whole().unwrap_err();
        assert!(!error.transient() && error.to_string().contains("max_tokens"), "{error}");
    }
}

#[test]
fn a_refusal_is_distinguished_from_an_answer() {
    let mut openai = body(Protocol::OpenAi, "");
    openai["choices"][0]["message"]["refusal"] = json!("I can't help with that.");
    let mut filtered = body(Protocol::OpenAi, "half");
    filtered["choices"][0]["finish_reason"] = json!("content_filter");
    let mut anthropic = body(Protocol::Anthropic, "half");
    anthropic["stop_reason"] = json!("refusal");
    for (kind, body) in
        [(Protocol::OpenAi, openai), (Protocol::OpenAi, filtered), (Protocol::Anthropic, anthropic)]
    {
        let answer = ask(kind, Reply::json(200, &body)).unwrap();
        assert!(answer.refusal.is_some(), "{body}");
        let error = answer.whole().unwrap_err();
        assert!(matches!(error, ModelError::Refused { .. }) && !error.transient());
    }
}

#[test]
fn parts_of_a_message_are_read_as_one_text() {
    let mut parts = body(Protocol::OpenAi, "");
    parts["choices"][0]["message"]["content"] =
        json!([{ "type": "text", "text": "a" }, { "type": "text", "text": "b" }]);
    assert_eq!(ask(Protocol::OpenAi, Reply::json(200, &parts)).unwrap().text, "ab");
}
