//! OpenAI's chat completions, which many others offer too.
//!
//! JSON is requested by a strict `json_schema`. Endpoints that do not support it get `json_object`
//! and the schema in the prompt.

use std::ops::ControlFlow;

use serde_json::{Value, json};

use super::{
    AnswerFault, Dialect, Listener, ParsedAnswer, StreamAssembly, arguments, functions,
    messages_with_system, text_of, tool_calls, usage,
};
use crate::chat::{Chat, ChatMessage, Finish, ToolCall};
use crate::provider::{Protocol, Provider};

pub(super) fn request(provider: &Provider, chat: &Chat, dialect: Dialect, stream: bool) -> Value {
    let in_words = chat.json_schema.as_ref().filter(|_| dialect.other_schema).map(|form| {
        format!("Answer with one JSON object and nothing else. Its JSON Schema:\n{}", form.schema)
    });
    let mut body = json!({
        "model": provider.model,
        "messages": messages_with_system(chat, in_words, message),
        "stream": stream,
    });
    if let Some(form) = &chat.json_schema {
        body["response_format"] = match dialect.other_schema {
            true => json!({ "type": "json_object" }),
            false => json!({
                "type": "json_schema",
                "json_schema": { "name": form.name, "schema": form.schema, "strict": true },
            }),
        };
    }
    if !chat.offered().is_empty() {
        body["tools"] = functions(chat.offered()).into();
    }
    if let Some(limit) = provider.max_tokens {
        // OpenAI's newer models accept only the newer name, other endpoints the older one.
        let newer = (provider.base_url == Protocol::OpenAi.base_url()) != dialect.other_limit;
        let name = if newer { "max_completion_tokens" } else { "max_tokens" };
        body[name] = json!(limit);
    }
    if let Some(temperature) = provider.temperature {
        body["temperature"] = json!(temperature);
    }
    if let Some(seed) = provider.seed {
        body["seed"] = json!(seed);
    }
    if stream && !dialect.bare_stream {
        body["stream_options"] = json!({ "include_usage": true });
    }
    body
}

fn message(chat_message: &ChatMessage) -> Value {
    let mut message = json!({ "role": chat_message.speaker.role(), "content": chat_message.text });
    if let Some(call) = &chat_message.answers {
        message["tool_call_id"] = json!(call.id);
    }
    if !chat_message.calls.is_empty() {
        let call = |call: &ToolCall| {
            let function = json!({ "name": call.name, "arguments": call.arguments.to_string() });
            json!({ "id": call.id, "type": "function", "function": function })
        };
        message["tool_calls"] = chat_message.calls.iter().map(call).collect();
    }
    message
}

/// Returns the calls of a message, whose arguments are a string.
fn calls(message: &Value) -> Vec<ToolCall> {
    tool_calls(message, |given| arguments(given.and_then(Value::as_str).unwrap_or_default()))
}

pub(super) fn answer(json: &Value) -> Result<ParsedAnswer, AnswerFault> {
    let choice = json.pointer("/choices/0");
    let message = choice.and_then(|choice| choice.get("message")).filter(|it| it.is_object());
    let (Some(choice), Some(message)) = (choice, message) else {
        return Err(AnswerFault::Malformed("it has no `choices[0].message`".to_owned()));
    };
    let reason = choice.get("finish_reason").and_then(Value::as_str);
    let finish = finish(reason);
    Ok(ParsedAnswer {
        text: content(message.get("content")),
        calls: calls(message),
        model: text_of(json, "model"),
        usage: json.get("usage").and_then(usage),
        refusal: text_of(message, "refusal").or_else(|| filtered(&finish)),
        finish,
    })
}

pub(super) fn event(
    assembly: &mut StreamAssembly,
    json: &Value,
    each: Listener<'_>,
) -> Result<ControlFlow<()>, AnswerFault> {
    assembly.model(json);
    assembly.usage(json.get("usage"));
    let Some(choice) = json.pointer("/choices/0") else { return Ok(ControlFlow::Continue(())) };
    let mut flow = ControlFlow::Continue(());
    if let Some(delta) = choice.get("delta") {
        let thought = text_of(delta, "reasoning_content").or_else(|| text_of(delta, "reasoning"));
        flow = StreamAssembly::think(thought.as_deref().unwrap_or_default(), each);
        if flow.is_continue() {
            flow = assembly.say(&content(delta.get("content")), each);
        }
        let partial = delta.get("tool_calls").and_then(Value::as_array).into_iter().flatten();
        for (nth, partial) in partial.enumerate() {
            let index = partial.get("index").and_then(Value::as_u64).unwrap_or(nth as u64);
            let call = assembly.call(index);
            call.id.push_str(&text_of(partial, "id").unwrap_or_default());
            if let Some(function) = partial.get("function") {
                call.name.push_str(&text_of(function, "name").unwrap_or_default());
                let more = function.get("arguments").and_then(Value::as_str);
                call.arguments.push_str(more.unwrap_or_default());
            }
        }
        if let Some(refusal) = text_of(delta, "refusal") {
            assembly.answer.refusal.get_or_insert_default().push_str(&refusal);
        }
    }
    if let Some(reason) = choice.get("finish_reason").and_then(Value::as_str) {
        assembly.finish(finish(Some(reason)));
        if assembly.answer.refusal.is_none() {
            assembly.answer.refusal = filtered(&assembly.answer.finish);
        }
    }
    Ok(flow)
}

/// Returns a text, or the joined texts of parts.
fn content(json: Option<&Value>) -> String {
    match json {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => {
            parts.iter().filter_map(|part| part.get("text")?.as_str()).collect()
        }
        _ => String::new(),
    }
}

fn finish(reason: Option<&str>) -> Finish {
    match reason {
        Some("stop" | "tool_calls" | "function_call") => Finish::Stop,
        Some("length") => Finish::Length,
        Some("content_filter") => Finish::Refused,
        other => Finish::Other(other.unwrap_or("none").to_owned()),
    }
}

fn filtered(finish: &Finish) -> Option<String> {
    (*finish == Finish::Refused).then(|| "the content filter stopped it".to_owned())
}
