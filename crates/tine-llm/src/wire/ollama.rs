//! Ollama's `/api/chat`.
//!
//! A stream is JSON Lines; an answer that is not streamed is a single such line.

use std::ops::ControlFlow;

use serde_json::{Value, json};
use tine_core::Usage;

use super::{
    AnswerFault, Listener, ParsedAnswer, StreamAssembly, functions, messages_with_system, text_of,
    tool_calls,
};
use crate::chat::{Chat, ChatMessage, Finish, ToolCall};
use crate::provider::Provider;

pub(super) fn request(provider: &Provider, chat: &Chat, stream: bool) -> Value {
    let mut body = json!({
        "model": provider.model,
        "messages": messages_with_system(chat, None, message),
        "stream": stream,
    });
    if let Some(form) = &chat.json_schema {
        body["format"] = form.schema.clone();
    }
    if !chat.offered().is_empty() {
        body["tools"] = functions(chat.offered()).into();
    }
    let mut options = serde_json::Map::new();
    let mut set = |name: &str, value: Option<Value>| {
        value.and_then(|value| options.insert(name.to_owned(), value))
    };
    set("temperature", provider.temperature.map(|it| json!(it)));
    set("seed", provider.seed.map(|it| json!(it)));
    set("num_predict", provider.max_tokens.map(|it| json!(it)));
    set("num_ctx", provider.context_tokens.map(|it| json!(it)));
    if !options.is_empty() {
        body["options"] = Value::Object(options);
    }
    body
}

fn message(chat_message: &ChatMessage) -> Value {
    let mut message = json!({ "role": chat_message.speaker.role(), "content": chat_message.text });
    if let Some(call) = &chat_message.answers {
        message["tool_name"] = json!(call.name);
    }
    if !chat_message.calls.is_empty() {
        let call = |call: &ToolCall| {
            let arguments = if call.arguments.is_object() { &call.arguments } else { &json!({}) };
            json!({ "function": { "name": call.name, "arguments": arguments } })
        };
        message["tool_calls"] = chat_message.calls.iter().map(call).collect();
    }
    message
}

/// Returns the calls of a message, which are complete and usually have no ids.
fn calls(message: &Value) -> Vec<ToolCall> {
    tool_calls(message, |given| given.cloned().unwrap_or_else(|| json!({})))
}

pub(super) fn answer(json: &Value) -> Result<ParsedAnswer, AnswerFault> {
    let content = json.pointer("/message/content").and_then(Value::as_str);
    let (Some(text), Some(true)) = (content, json.get("done").and_then(Value::as_bool)) else {
        return Err(AnswerFault::Malformed(
            "it has no `message.content`, or is not `done`".to_owned(),
        ));
    };
    Ok(ParsedAnswer {
        text: text.to_owned(),
        calls: calls(json.get("message").unwrap_or(&Value::Null)),
        model: text_of(json, "model"),
        usage: usage(json),
        finish: finish(json),
        refusal: None,
    })
}

pub(super) fn event(
    assembly: &mut StreamAssembly,
    json: &Value,
    each: Listener<'_>,
) -> Result<ControlFlow<()>, AnswerFault> {
    let Some(message) = json.get("message").filter(|message| message.is_object()) else {
        return Err(AnswerFault::Malformed("a line has no `message`".to_owned()));
    };
    assembly.model(json);
    let part = |name: &str| message.get(name).and_then(Value::as_str).unwrap_or_default();
    let mut flow = StreamAssembly::think(part("thinking"), each);
    if flow.is_continue() {
        flow = assembly.say(part("content"), each);
    }
    assembly.answer.calls.extend(calls(message));
    if json.get("done").and_then(Value::as_bool) == Some(true) {
        assembly.finish(finish(json));
        assembly.answer.usage = usage(json);
        assembly.done = true;
    }
    Ok(flow)
}

fn finish(json: &Value) -> Finish {
    match json.get("done_reason").and_then(Value::as_str) {
        // Older versions give no reason.
        Some("stop") | None => Finish::Stop,
        Some("length") => Finish::Length,
        Some(other) => Finish::Other(other.to_owned()),
    }
}

fn usage(json: &Value) -> Option<Usage> {
    let count = |name: &str| json.get(name).and_then(Value::as_u64).unwrap_or_default();
    let (input, output) = (count("prompt_eval_count"), count("eval_count"));
    let total = input.saturating_add(output);
    (total > 0).then_some(Usage { turns: 1, input, output, total, ..Usage::default() })
}
