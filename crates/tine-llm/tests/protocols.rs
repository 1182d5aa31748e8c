//! Answers as each protocol gives them.

use serde_json::{Value, json};
use tine_llm::Protocol;

use crate::endpoint::Reply;

pub const KINDS: [Protocol; 3] = [Protocol::OpenAi, Protocol::Anthropic, Protocol::Ollama];

/// The type of a stream.
pub fn stream_type(kind: Protocol) -> &'static str {
    match kind {
        Protocol::Ollama => "application/x-ndjson",
        _ => "text/event-stream; charset=utf-8",
    }
}

/// A whole answer; 12 tokens read and 5 written.
pub fn body(kind: Protocol, text: &str) -> Value {
    match kind {
        Protocol::OpenAi => json!({
            "id": "c1", "object": "chat.completion", "created": 1, "model": "answered-1",
            "choices": [{
                "index": 0, "finish_reason": "stop",
                "message": { "role": "assistant", "content": text, "refusal": null },
            }],
            "usage": { "prompt_tokens": 12, "completion_tokens": 5, "total_tokens": 17 },
        }),
        Protocol::Anthropic => json!({
            "id": "m1", "type": "message", "role": "assistant", "model": "answered-1",
            "content": [{ "type": "text", "text": text }],
            "stop_reason": "end_turn", "stop_sequence": null,
            "usage": { "input_tokens": 12, "output_tokens": 5 },
        }),
        Protocol::Ollama => json!({
            "model": "answered-1", "created_at": "2026-01-01T00:00:00Z",
            "message": { "role": "assistant", "content": text },
            "done": true, "done_reason": "stop", "prompt_eval_count": 12, "eval_count": 5,
        }),
    }
}

/// The same as JSON of a schema: with Anthropic, a tool's arguments.
pub fn structured(kind: Protocol, answer: &Value) -> Value {
    let mut body = body(kind, &answer.to_string());
    if kind == Protocol::Anthropic {
        body["content"] =
            json!([{ "type": "tool_use", "id": "t1", "name": "findings", "input": answer }]);
        body["stop_reason"] = json!("tool_use");
    }
    body
}

/// The same answer cut off at its longest.
pub fn too_long(kind: Protocol, text: &str) -> Value {
    let mut body = body(kind, text);
    match kind {
        Protocol::OpenAi => body["choices"][0]["finish_reason"] = json!("length"),
        Protocol::Anthropic => body["stop_reason"] = json!("max_tokens"),
        Protocol::Ollama => body["done_reason"] = json!("length"),
    }
    body
}

pub fn good(kind: Protocol, text: &str) -> Reply {
    Reply::json(200, &body(kind, text))
}

/// A fault in the protocol's words.
pub fn error(kind: Protocol, status: u16, name: &str, message: &str) -> Reply {
    let body = match kind {
        Protocol::OpenAi => json!({ "error": { "message": message, "type": name, "code": null } }),
        Protocol::Anthropic => {
            json!({ "type": "error", "error": { "type": name, "message": message }, "request_id": "r1" })
        }
        Protocol::Ollama => json!({ "error": message }),
    };
    Reply::json(status, &body)
}

fn event(kind: Protocol, json: &Value) -> Vec<u8> {
    match (kind, json.get("type").and_then(Value::as_str)) {
        (Protocol::Ollama, _) => format!("{json}\n").into_bytes(),
        (Protocol::Anthropic, Some(name)) => {
            format!("event: {name}\ndata: {json}\n\n").into_bytes()
        }
        _ => format!("data: {json}\n\n").into_bytes(),
    }
}

/// What a stream begins with, the same answer in pieces, and what it ends with. The model thinks
/// first.
pub struct Streamed {
    pub begin: Vec<Vec<u8>>,
    pub pieces: Vec<Vec<u8>>,
    pub end: Vec<Vec<u8>>,
}

impl Streamed {
    pub fn all(&self) -> Vec<Vec<u8>> {
        [self.begin.clone(), self.pieces.clone(), self.end.clone()].concat()
    }
}

pub fn streamed(kind: Protocol, thought: &str, pieces: &[&str]) -> Streamed {
    let (begin, texts, end) = match kind {
        Protocol::OpenAi => openai(thought, pieces),
        Protocol::Anthropic => anthropic(thought, pieces),
        Protocol::Ollama => ollama(thought, pieces),
    };
    let events = |events: Vec<Value>| events.iter().map(|it| event(kind, it)).collect();
    let mut streamed = Streamed { begin: events(begin), pieces: events(texts), end: events(end) };
    if kind == Protocol::OpenAi {
        streamed.end.push(b"data: [DONE]\n\n".to_vec());
    }
    streamed
}

type Events = (Vec<Value>, Vec<Value>, Vec<Value>);

fn openai(thought: &str, pieces: &[&str]) -> Events {
    let chunk = |delta: Value, reason: Value| {
        json!({
            "id": "c1", "object": "chat.completion.chunk", "model": "answered-1", "usage": null,
            "choices": [{ "index": 0, "delta": delta, "finish_reason": reason }],
        })
    };
    let usage = json!({ "prompt_tokens": 12, "completion_tokens": 5, "total_tokens": 17 });
    (
        vec![
            chunk(json!({ "role": "assistant", "content": "" }), Value::Null),
            chunk(json!({ "reasoning_content": thought }), Value::Null),
        ],
        pieces.iter().map(|it| chunk(json!({ "content": it }), Value::Null)).collect(),
        vec![
            chunk(json!({}), json!("stop")),
            json!({ "id": "c1", "model": "answered-1", "choices": [], "usage": usage }),
        ],
    )
}

fn anthropic(thought: &str, pieces: &[&str]) -> Events {
    let delta = |index: u8, delta: Value| json!({ "type": "content_block_delta", "index": index, "delta": delta });
    let message = json!({
        "id": "m1", "type": "message", "role": "assistant", "content": [], "model": "answered-1",
        "stop_reason": null, "usage": { "input_tokens": 12, "output_tokens": 1 },
    });
    let text = json!({ "type": "text", "text": "" });
    (
        vec![
            json!({ "type": "message_start", "message": message }),
            json!({ "type": "ping" }),
            delta(0, json!({ "type": "thinking_delta", "thinking": thought })),
            json!({ "type": "content_block_start", "index": 1, "content_block": text }),
        ],
        pieces.iter().map(|it| delta(1, json!({ "type": "text_delta", "text": it }))).collect(),
        vec![
            json!({ "type": "content_block_stop", "index": 1 }),
            json!({
                "type": "message_delta", "delta": { "stop_reason": "end_turn" },
                "usage": { "output_tokens": 5 },
            }),
            json!({ "type": "message_stop" }),
        ],
    )
}

fn ollama(thought: &str, pieces: &[&str]) -> Events {
    let line = |message: Value| json!({ "model": "answered-1", "message": message, "done": false });
    (
        vec![line(json!({ "role": "assistant", "content": "", "thinking": thought }))],
        pieces.iter().map(|it| line(json!({ "role": "assistant", "content": it }))).collect(),
        vec![body(Protocol::Ollama, "")],
    )
}
