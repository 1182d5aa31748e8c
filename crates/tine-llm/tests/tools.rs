//! Tools: offered, called and answered in the way of each protocol.

use std::ops::ControlFlow;

use serde_json::{Value, json};
use tine_llm::{Chat, ChatMessage, Delta, Finish, Protocol, Speaker, Tool, ToolCall};

use crate::endpoint::{Endpoint, Reply, model};
use crate::protocols::{KINDS, body, error, good, stream_type};

fn tools() -> Vec<Tool> {
    let parameters = json!({ "type": "object", "properties": { "query": { "type": "string" } } });
    let description = "Looks for what was said.".to_owned();
    vec![Tool { name: "search".to_owned(), description, parameters }]
}

fn call(id: &str, query: &str) -> ToolCall {
    ToolCall { id: id.to_owned(), name: "search".to_owned(), arguments: json!({ "query": query }) }
}

/// An answer that says a little and calls twice.
fn calling(kind: Protocol) -> Value {
    let mut body = body(kind, "Let me see.");
    let arguments = |query: &str| json!({ "query": query });
    match kind {
        Protocol::OpenAi => {
            let call = |id: &str, query: &str| {
                let arguments = arguments(query).to_string();
                let function = json!({ "name": "search", "arguments": arguments });
                json!({ "id": id, "type": "function", "function": function })
            };
            body["choices"][0]["message"]["tool_calls"] = json!([call("1", "a"), call("2", "b")]);
            body["choices"][0]["finish_reason"] = json!("tool_calls");
        }
        Protocol::Anthropic => {
            let call = |id: &str, query: &str| json!({ "type": "tool_use", "id": id, "name": "search", "input": arguments(query) });
            let text = json!({ "type": "text", "text": "Let me see." });
            body["content"] = json!([text, call("1", "a"), call("2", "b")]);
            body["stop_reason"] = json!("tool_use");
        }
        Protocol::Ollama => {
            let call = |query: &str| json!({ "function": { "name": "search", "arguments": arguments(query) } });
            body["message"]["tool_calls"] = json!([call("a"), call("b")]);
        }
    }
    body
}

/// The same in pieces that cut through the arguments.
fn streamed(kind: Protocol) -> Vec<Vec<u8>> {
    let events = match kind {
        Protocol::OpenAi => {
            let chunk = |delta: Value, reason: Value| {
                json!({ "model": "answered-1",
                    "choices": [{ "index": 0, "delta": delta, "finish_reason": reason }] })
            };
            let part = |index: u64, id: Option<&str>, name: Option<&str>, arguments: &str| {
                let function = json!({ "name": name, "arguments": arguments });
                let call = json!({ "index": index, "id": id, "function": function });
                chunk(json!({ "tool_calls": [call] }), Value::Null)
            };
            vec![
                chunk(json!({ "content": "Let me see." }), Value::Null),
                part(0, Some("1"), Some("search"), "{\"que"),
                part(0, None, None, "ry\": \"a\"}"),
                part(1, Some("2"), Some("search"), "{\"query\":\"b\"}"),
                chunk(json!({}), json!("tool_calls")),
            ]
        }
        Protocol::Anthropic => {
            let begin = |index: u64, id: &str| {
                let block = json!({ "type": "tool_use", "id": id, "name": "search", "input": {} });
                json!({ "type": "content_block_start", "index": index, "content_block": block })
            };
            let delta = |index: u64, delta: Value| json!({ "type": "content_block_delta", "index": index, "delta": delta });
            let part = |index: u64, json: &str| {
                delta(index, json!({ "type": "input_json_delta", "partial_json": json }))
            };
            vec![
                json!({ "type": "message_start", "message": { "model": "answered-1" } }),
                delta(0, json!({ "type": "text_delta", "text": "Let me see." })),
                begin(1, "1"),
                part(1, "{\"query\":"),
                part(1, " \"a\"}"),
                begin(2, "2"),
                part(2, "{\"query\":\"b\"}"),
                json!({ "type": "message_delta", "delta": { "stop_reason": "tool_use" } }),
                json!({ "type": "message_stop" }),
            ]
        }
        Protocol::Ollama => {
            let mut said = calling(kind);
            said["done"] = json!(false);
            vec![said, body(kind, "")]
        }
    };
    let event = |json: Value| match kind {
        Protocol::Ollama => format!("{json}\n").into_bytes(),
        _ => format!("data: {json}\n\n").into_bytes(),
    };
    events.into_iter().map(event).collect()
}

/// The calls that every protocol tells; Ollama gives no ids.
fn wanted(kind: Protocol) -> Vec<ToolCall> {
    let id = |id: &'static str| if kind == Protocol::Ollama { "" } else { id };
    vec![call(id("1"), "a"), call(id("2"), "b")]
}

#[test]
fn calls_are_parsed_from_whole_and_streamed_answers() {
    for kind in KINDS {
        let replies = vec![
            Reply::json(200, &calling(kind)),
            Reply::pieces(stream_type(kind), streamed(kind)),
        ];
        let endpoint = Endpoint::start(replies);
        let (model, chat) = (model(kind, &endpoint), Chat::ask("which?").with_tools(tools()));
        let whole = model.complete(&chat).unwrap();
        let mut heard = String::new();
        let streamed = model.stream(&chat, &mut |delta| {
            if let Delta::Text(text) = delta {
                heard.push_str(text);
            }
            ControlFlow::Continue(())
        });
        for answer in [whole, streamed.unwrap()] {
            assert_eq!(answer.text, "Let me see.", "{kind:?}");
            assert_eq!((answer.calls, answer.finish), (wanted(kind), Finish::Stop), "{kind:?}");
        }
        assert_eq!(heard, "Let me see.", "{kind:?}: calls are nobody's words");
    }
}

#[test]
fn tools_and_results_are_sent_in_each_protocol() {
    for kind in KINDS {
        let endpoint = Endpoint::start(vec![good(kind, "There.")]);
        let (one, two) = (call("1", "a"), call("2", "b"));
        let messages = vec![
            ChatMessage::text(Speaker::User, "which?"),
            ChatMessage::with_calls("Let me see.", vec![one.clone(), two.clone()]),
            ChatMessage::tool_result(one, "found a"),
            ChatMessage::tool_result(two, "found b"),
        ];
        let chat = Chat { messages, ..Chat::default() }.with_tools(tools());
        assert_eq!(model(kind, &endpoint).complete(&chat).unwrap().text, "There.");
        let sent = endpoint.requests()[0].json();
        let at = |place: &str| sent.pointer(place).cloned().unwrap_or_default();
        match kind {
            Protocol::OpenAi => {
                assert_eq!(at("/tools/0/function/name"), "search");
                let arguments = at("/messages/1/tool_calls/1/function/arguments");
                assert_eq!(arguments, "{\"query\":\"b\"}");
                assert_eq!(at("/messages/2/tool_call_id"), "1");
                assert_eq!(
                    (at("/messages/3/role"), at("/messages/3/content")),
                    ("tool".into(), "found b".into())
                );
            }
            Protocol::Anthropic => {
                assert_eq!(at("/tools/0/input_schema/type"), "object");
                assert_eq!(at("/messages/1/content/2/input"), json!({ "query": "b" }));
                assert_eq!(at("/messages/2/content/1/tool_use_id"), "2");
                assert_eq!(sent["messages"].as_array().map(Vec::len), Some(3), "results are one");
            }
            Protocol::Ollama => {
                assert_eq!(at("/tools/0/function/name"), "search");
                assert_eq!(at("/messages/1/tool_calls/0/function/arguments/query"), "a");
                assert_eq!(at("/messages/3/tool_name"), "search");
            }
        }
    }
}

#[test]
fn invalid_arguments_are_a_string_and_missing_ones_an_empty_object() {
    let arguments = |written: &str| {
        let function = json!({ "name": "search", "arguments": written });
        let mut body = body(Protocol::OpenAi, "");
        body["choices"][0]["message"]["tool_calls"] = json!([{ "id": "1", "function": function }]);
        let endpoint = Endpoint::start(vec![Reply::json(200, &body)]);
        let chat = Chat::ask("which?").with_tools(tools());
        model(Protocol::OpenAi, &endpoint).complete(&chat).unwrap().calls[0].arguments.clone()
    };
    assert_eq!(arguments("{\"query\""), json!("{\"query\""));
    assert_eq!(arguments(""), json!({}));
}

#[test]
fn no_tools_are_offered_with_a_schema() {
    for kind in KINDS {
        let endpoint = Endpoint::start(vec![good(kind, "{}")]);
        let chat = Chat::ask("which?").with_tools(tools()).with_schema("form", json!({}));
        model(kind, &endpoint).complete(&chat).unwrap();
        assert!(!endpoint.requests()[0].json()["tools"].to_string().contains("search"), "{kind:?}");
    }
}

#[test]
fn an_endpoint_without_tools_gets_none_from_then_on() {
    for kind in KINDS {
        let refusal =
            error(kind, 400, "invalid_request_error", "this model does not support tools");
        let replies = vec![refusal, good(kind, "plain"), good(kind, "again")];
        let endpoint = Endpoint::start(replies);
        let (model, chat) = (model(kind, &endpoint), Chat::ask("which?").with_tools(tools()));
        assert_eq!(model.complete(&chat).unwrap().text, "plain", "{kind:?}");
        assert_eq!(model.complete(&chat).unwrap().text, "again", "{kind:?}");
        let offered: Vec<bool> =
            endpoint.requests().iter().map(|it| it.json().get("tools").is_some()).collect();
        assert_eq!(offered, [true, false, false], "{kind:?}");
    }
}
