//! The Messages API of Anthropic.
//!
//! JSON is requested as the arguments of a tool that the model must use, which every model and proxy
//! with tools supports. If that is not possible (a model that always thinks cannot be forced), the
//! structured outputs of newer models are used.

use std::ops::ControlFlow;

use serde_json::{Value, json};

use super::{AnswerFault, Dialect, Listener, ParsedAnswer, StreamAssembly, text_of, usage};
use crate::chat::{Chat, ChatMessage, Finish, Speaker, Tool, ToolCall};
use crate::provider::Provider;

/// The default token limit; the API requires one.
const MAX_TOKENS: u64 = 8_192;

pub(super) fn request(provider: &Provider, chat: &Chat, dialect: Dialect, stream: bool) -> Value {
    let mut body = json!({
        "model": provider.model,
        "messages": messages(chat),
        "max_tokens": provider.max_tokens.unwrap_or(MAX_TOKENS),
        "stream": stream,
    });
    if let Some(system) = &chat.system {
        body["system"] = json!(system);
    }
    if let Some(temperature) = provider.temperature {
        body["temperature"] = json!(temperature);
    }
    match &chat.json_schema {
        None if chat.tools.is_empty() => {}
        None => {
            let tool = |tool: &Tool| {
                json!({
                    "name": tool.name,
                    "description": tool.description,
                    "input_schema": tool.parameters,
                })
            };
            body["tools"] = chat.tools.iter().map(tool).collect();
        }
        Some(form) if dialect.other_schema => {
            let format = json!({ "type": "json_schema", "schema": form.schema });
            body["output_config"] = json!({ "format": format });
        }
        Some(form) => {
            let description = "Takes the answer.";
            body["tools"] = json!([
                { "name": form.name, "description": description, "input_schema": form.schema }
            ]);
            body["tool_choice"] = json!({ "type": "tool", "name": form.name });
        }
    }
    body
}

/// Returns the messages; consecutive results are one user message.
fn messages(chat: &Chat) -> Vec<Value> {
    let mut messages: Vec<Value> = Vec::new();
    let mut after_result = false;
    for chat_message in &chat.messages {
        let answers = chat_message.speaker == Speaker::Tool;
        match messages.last_mut().and_then(|last| last["content"].as_array_mut()) {
            Some(results) if answers && after_result => results.push(result(chat_message)),
            _ => messages.push(message(chat_message)),
        }
        after_result = answers;
    }
    messages
}

fn message(chat_message: &ChatMessage) -> Value {
    match chat_message.speaker {
        Speaker::Tool => json!({ "role": "user", "content": [result(chat_message)] }),
        _ if chat_message.calls.is_empty() => {
            json!({ "role": chat_message.speaker.role(), "content": chat_message.text })
        }
        _ => {
            let text = (!chat_message.text.is_empty())
                .then(|| json!({ "type": "text", "text": chat_message.text }));
            let call = |call: &ToolCall| {
                let input = if call.arguments.is_object() { &call.arguments } else { &json!({}) };
                json!({ "type": "tool_use", "id": call.id, "name": call.name, "input": input })
            };
            let blocks: Vec<Value> =
                text.into_iter().chain(chat_message.calls.iter().map(call)).collect();
            json!({ "role": chat_message.speaker.role(), "content": blocks })
        }
    }
}

fn result(chat_message: &ChatMessage) -> Value {
    let call = chat_message.answers.as_ref().map(|call| call.id.as_str()).unwrap_or_default();
    json!({ "type": "tool_result", "tool_use_id": call, "content": chat_message.text })
}

pub(super) fn answer(json: &Value, tools: bool) -> Result<ParsedAnswer, AnswerFault> {
    let Some(blocks) = json.get("content").and_then(Value::as_array) else {
        return Err(AnswerFault::Malformed("it has no `content`".to_owned()));
    };
    let kind = |block: &Value, kind: &str| block.get("type").and_then(Value::as_str) == Some(kind);
    let called = || blocks.iter().filter(|block| kind(block, "tool_use"));
    // Without tools, the only tool is the one for the answer.
    let form = called().next().filter(|_| !tools);
    let text = match form.and_then(|tool| tool.get("input")) {
        Some(input) => input.to_string(),
        None => {
            let texts = blocks.iter().filter(|block| kind(block, "text"));
            texts.filter_map(|block| block.get("text")?.as_str()).collect()
        }
    };
    let call = |block: &Value| {
        let arguments = block.get("input").cloned().unwrap_or_else(|| json!({}));
        Some(ToolCall { id: text_of(block, "id")?, name: text_of(block, "name")?, arguments })
    };
    let calls = called().filter(|_| tools).filter_map(call).collect();
    let finish = finish(json.get("stop_reason").and_then(Value::as_str));
    Ok(ParsedAnswer {
        text,
        calls,
        model: text_of(json, "model"),
        usage: json.get("usage").and_then(usage),
        refusal: refusal(&finish, json),
        finish,
    })
}

pub(super) fn event(
    assembly: &mut StreamAssembly,
    json: &Value,
    each: Listener<'_>,
) -> Result<ControlFlow<()>, AnswerFault> {
    let delta = json.get("delta").unwrap_or(&Value::Null);
    let part = |name: &str| delta.get(name).and_then(Value::as_str).unwrap_or_default();
    match json.get("type").and_then(Value::as_str).unwrap_or_default() {
        "message_start" => {
            let message = json.get("message").unwrap_or(&Value::Null);
            assembly.model(message);
            assembly.usage(message.get("usage"));
        }
        "content_block_start" if assembly.tools => {
            let block = json.get("content_block").unwrap_or(&Value::Null);
            if block.get("type").and_then(Value::as_str) == Some("tool_use") {
                let call = assembly.call(block_index(json));
                call.id = text_of(block, "id").unwrap_or_default();
                call.name = text_of(block, "name").unwrap_or_default();
            }
        }
        "content_block_delta" => {
            let flow = match part("type") {
                "text_delta" => assembly.say(part("text"), each),
                "input_json_delta" if assembly.tools => {
                    assembly.call(block_index(json)).arguments.push_str(part("partial_json"));
                    ControlFlow::Continue(())
                }
                "input_json_delta" => assembly.say(part("partial_json"), each),
                "thinking_delta" => StreamAssembly::think(part("thinking"), each),
                _ => ControlFlow::Continue(()),
            };
            return Ok(flow);
        }
        "message_delta" => {
            assembly.usage(json.get("usage"));
            if let Some(reason) = delta.get("stop_reason").and_then(Value::as_str) {
                assembly.finish(finish(Some(reason)));
                assembly.answer.refusal = refusal(&assembly.answer.finish, delta);
            }
        }
        "message_stop" => assembly.done = true,
        _ => {}
    }
    Ok(ControlFlow::Continue(()))
}

/// Returns the index of the block that an event is about.
fn block_index(json: &Value) -> u64 {
    json.get("index").and_then(Value::as_u64).unwrap_or_default()
}

fn finish(reason: Option<&str>) -> Finish {
    match reason {
        Some("end_turn" | "stop_sequence" | "tool_use") => Finish::Stop,
        Some("max_tokens" | "model_context_window_exceeded") => Finish::Length,
        Some("refusal") => Finish::Refused,
        other => Finish::Other(other.unwrap_or("none").to_owned()),
    }
}

fn refusal(finish: &Finish, json: &Value) -> Option<String> {
    let reason = ["/stop_details/explanation", "/stop_details/category"]
        .iter()
        .find_map(|path| json.pointer(path)?.as_str());
    (*finish == Finish::Refused).then(|| reason.unwrap_or("it gave no reason").to_owned())
}
