//! The Messages API of Anthropic.
//!
//! JSON is asked for as the arguments of a tool that the model must use: every model and every
//! proxy that knows tools knows that. Where it is not possible (a model that always thinks cannot
//! be forced), the structured outputs of newer models are.

use std::ops::ControlFlow;

use serde_json::{Value, json};

use super::{Answer, Assembly, Dialect, Fault, Listener, messages, text_of, usage};
use crate::chat::{Chat, Finish};
use crate::provider::Provider;

/// The API wants a bound on every answer.
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
        None => {}
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

pub(super) fn answer(json: &Value) -> Result<Answer, Fault> {
    let Some(blocks) = json.get("content").and_then(Value::as_array) else {
        return Err(Fault::Malformed("it has no `content`".to_owned()));
    };
    let kind = |block: &Value, kind: &str| block.get("type").and_then(Value::as_str) == Some(kind);
    let tool = blocks.iter().find(|block| kind(block, "tool_use"));
    let text = match tool.and_then(|tool| tool.get("input")) {
        Some(input) => input.to_string(),
        None => {
            let texts = blocks.iter().filter(|block| kind(block, "text"));
            texts.filter_map(|block| block.get("text")?.as_str()).collect()
        }
    };
    let finish = finish(json.get("stop_reason").and_then(Value::as_str));
    Ok(Answer {
        text,
        model: text_of(json, "model"),
        usage: json.get("usage").and_then(usage),
        refusal: refusal(&finish, json),
        finish,
    })
}

pub(super) fn event(
    assembly: &mut Assembly,
    json: &Value,
    each: Listener<'_>,
) -> Result<ControlFlow<()>, Fault> {
    let delta = json.get("delta").unwrap_or(&Value::Null);
    let part = |name: &str| delta.get(name).and_then(Value::as_str).unwrap_or_default();
    match json.get("type").and_then(Value::as_str).unwrap_or_default() {
        "message_start" => {
            let message = json.get("message").unwrap_or(&Value::Null);
            assembly.model(message);
            assembly.usage(message.get("usage"));
        }
        "content_block_delta" => {
            let flow = match part("type") {
                "text_delta" => assembly.say(part("text"), each),
                "input_json_delta" => assembly.say(part("partial_json"), each),
                "thinking_delta" => Assembly::think(part("thinking"), each),
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

fn finish(reason: Option<&str>) -> Finish {
    match reason {
        Some("end_turn" | "stop_sequence" | "tool_use") => Finish::Stop,
        Some("max_tokens" | "model_context_window_exceeded") => Finish::Length,
        Some("refusal") => Finish::Refused,
        other => Finish::Other(other.unwrap_or("none").to_owned()),
    }
}

fn refusal(finish: &Finish, json: &Value) -> Option<String> {
    let told = ["/stop_details/explanation", "/stop_details/category"]
        .iter()
        .find_map(|path| json.pointer(path)?.as_str());
    (*finish == Finish::Refused).then(|| told.unwrap_or("it gave no reason").to_owned())
}
