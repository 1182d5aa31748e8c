//! The three protocols: building requests and parsing responses.
//!
//! Everything here is a pure function: no network, no key, no clock. So an answer can be parsed
//! again from its stored bytes.

mod anthropic;
mod frames;
mod ollama;
mod openai;
#[cfg(test)]
mod tests;

use std::ops::ControlFlow;

use serde_json::{Map, Value};
use tine_core::{Usage, json};

use crate::chat::{Chat, ChatMessage, Delta, Finish, Tool, ToolCall};
use crate::error::excerpt;
use crate::provider::{Protocol, Provider};

pub(crate) use frames::Frames;

/// Nesting limit of the usage that an endpoint reports.
const USAGE_DEPTH: usize = 8;

/// Receives the pieces of an answer, and can stop it.
pub(crate) type Listener<'a> = &'a mut dyn FnMut(Delta<'_>) -> ControlFlow<()>;

/// What an endpoint is known to accept; endpoints of one protocol differ in details.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Dialect {
    /// Use the alternative way to request JSON.
    pub(crate) other_schema: bool,
    /// Use the alternative name of the token limit.
    pub(crate) other_limit: bool,
    /// Do not request usage for streams.
    pub(crate) bare_stream: bool,
    /// Do not offer tools.
    pub(crate) no_tools: bool,
}

impl Dialect {
    /// Returns another way to write a request that the endpoint rejected.
    pub(crate) fn after(
        self,
        provider: &Provider,
        chat: &Chat,
        stream: bool,
        status: u16,
        body: &[u8],
    ) -> Option<Dialect> {
        if !matches!(status, 400 | 422) {
            return None;
        }
        let body = String::from_utf8_lossy(body);
        let openai = provider.kind == Protocol::OpenAi;
        let names_limit = body.contains("max_tokens") || body.contains("max_completion_tokens");
        if openai && provider.max_tokens.is_some() && names_limit && !self.other_limit {
            return Some(Dialect { other_limit: true, ..self });
        }
        if openai && stream && body.contains("stream_options") && !self.bare_stream {
            return Some(Dialect { bare_stream: true, ..self });
        }
        if !chat.offered().is_empty() && body.contains("tool") && !self.no_tools {
            return Some(Dialect { no_tools: true, ..self });
        }
        let asks = chat.json_schema.is_some() && provider.kind != Protocol::Ollama;
        (asks && !self.other_schema).then_some(Dialect { other_schema: true, ..self })
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ParsedAnswer {
    pub(crate) text: String,
    pub(crate) calls: Vec<ToolCall>,
    pub(crate) model: Option<String>,
    /// The reported usage.
    pub(crate) usage: Option<Usage>,
    pub(crate) finish: Finish,
    pub(crate) refusal: Option<String>,
}

impl ParsedAnswer {
    fn none() -> ParsedAnswer {
        ParsedAnswer {
            text: String::new(),
            calls: Vec::new(),
            model: None,
            usage: None,
            finish: Finish::Other("none".to_owned()),
            refusal: None,
        }
    }

    /// Returns the answer of a call that was cancelled before anything arrived.
    pub(crate) fn cancelled() -> ParsedAnswer {
        ParsedAnswer { finish: Finish::Cancelled, ..ParsedAnswer::none() }
    }
}

/// Why a response is not an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AnswerFault {
    /// It is cut off.
    Cut,
    /// It is not of this protocol.
    Malformed(String),
    /// The body reports an error although the HTTP status is a success.
    Reported { status: u16, body: Vec<u8> },
}

pub(crate) fn address(provider: &Provider) -> String {
    let base = provider.base_url.as_str();
    match provider.kind {
        Protocol::OpenAi => format!("{base}/chat/completions"),
        Protocol::Anthropic => format!("{}/v1/messages", base.strip_suffix("/v1").unwrap_or(base)),
        Protocol::Ollama => format!("{}/api/chat", base.strip_suffix("/api").unwrap_or(base)),
    }
}

pub(crate) fn request(provider: &Provider, chat: &Chat, dialect: Dialect, stream: bool) -> Vec<u8> {
    let without_tools;
    let chat = match dialect.no_tools {
        true => {
            without_tools = Chat { tools: Vec::new(), ..chat.clone() };
            &without_tools
        }
        false => chat,
    };
    let body = match provider.kind {
        Protocol::OpenAi => openai::request(provider, chat, dialect, stream),
        Protocol::Anthropic => anthropic::request(provider, chat, dialect, stream),
        Protocol::Ollama => ollama::request(provider, chat, stream),
    };
    body.to_string().into_bytes()
}

/// Parses a response that was not streamed. `tools` says whether tools were offered.
pub(crate) fn answer(
    kind: Protocol,
    bytes: &[u8],
    tools: bool,
) -> Result<ParsedAnswer, AnswerFault> {
    let json = parse(bytes)?;
    if let Some(fault) = reported_error(&json) {
        return Err(fault);
    }
    match kind {
        Protocol::OpenAi => openai::answer(&json),
        Protocol::Anthropic => anthropic::answer(&json, tools),
        Protocol::Ollama => ollama::answer(&json),
    }
}

/// Detects the protocol of a stored response; the configuration may have changed.
pub(crate) fn kind_of(bytes: &[u8]) -> Option<Protocol> {
    let json: Value = serde_json::from_slice(bytes).ok()?;
    let has = |name: &str| json.get(name).is_some();
    match () {
        () if has("choices") => Some(Protocol::OpenAi),
        () if has("content") && has("role") => Some(Protocol::Anthropic),
        () if has("message") && has("done") => Some(Protocol::Ollama),
        () => None,
    }
}

/// Assembles an answer from stream events.
pub(crate) struct StreamAssembly {
    kind: Protocol,
    /// Whether tools were offered.
    tools: bool,
    answer: ParsedAnswer,
    /// Tool calls received so far.
    calls: Vec<PartialCall>,
    /// The usage, which is spread over several events.
    usage: Map<String, Value>,
    /// Whether a finish reason was received.
    finished: bool,
    /// Whether the end-of-stream event was received.
    done: bool,
    events: u64,
}

/// A tool call that is being received.
#[derive(Default)]
struct PartialCall {
    index: u64,
    id: String,
    name: String,
    arguments: String,
}

impl StreamAssembly {
    pub(crate) fn new(kind: Protocol, tools: bool) -> StreamAssembly {
        StreamAssembly {
            kind,
            tools,
            answer: ParsedAnswer::none(),
            calls: Vec::new(),
            usage: Map::new(),
            finished: false,
            done: false,
            events: 0,
        }
    }

    pub(crate) fn event(
        &mut self,
        bytes: &[u8],
        each: Listener<'_>,
    ) -> Result<ControlFlow<()>, AnswerFault> {
        if bytes == b"[DONE]" {
            self.done = true;
            return Ok(ControlFlow::Continue(()));
        }
        let json = parse(bytes).map_err(|fault| match fault {
            // An event is always complete, so invalid JSON is not a cut-off stream.
            AnswerFault::Cut => {
                AnswerFault::Malformed(format!("an event is not JSON: {}", excerpt(bytes)))
            }
            other => other,
        })?;
        if let Some(fault) = reported_error(&json) {
            return Err(fault);
        }
        self.events += 1;
        match self.kind {
            Protocol::OpenAi => openai::event(self, &json, each),
            Protocol::Anthropic => anthropic::event(self, &json, each),
            Protocol::Ollama => ollama::event(self, &json, each),
        }
    }

    /// Returns whether there is nothing more to wait for.
    pub(crate) fn is_done(&self) -> bool {
        self.done
    }

    pub(crate) fn so_far(mut self) -> ParsedAnswer {
        self.answer.usage = usage(&Value::Object(self.usage)).or(self.answer.usage);
        let named = self.calls.into_iter().filter(|call| !call.name.is_empty());
        let calls = named.map(|call| ToolCall {
            id: call.id,
            name: call.name,
            arguments: arguments(&call.arguments),
        });
        self.answer.calls.extend(calls);
        self.answer
    }

    /// Returns whether the answer is complete.
    pub(crate) fn is_whole(&self) -> bool {
        self.done || self.finished
    }

    /// Returns whether an event was received.
    pub(crate) fn has_begun(&self) -> bool {
        self.events > 0
    }

    fn say(&mut self, text: &str, each: Listener<'_>) -> ControlFlow<()> {
        if text.is_empty() {
            return ControlFlow::Continue(());
        }
        self.answer.text.push_str(text);
        each(Delta::Text(text))
    }

    fn think(text: &str, each: Listener<'_>) -> ControlFlow<()> {
        if text.is_empty() { ControlFlow::Continue(()) } else { each(Delta::Thought(text)) }
    }

    /// Returns the call at an index; adds it if it is new.
    fn call(&mut self, index: u64) -> &mut PartialCall {
        let existing = self.calls.iter().position(|call| call.index == index);
        let at = existing.unwrap_or_else(|| {
            self.calls.push(PartialCall { index, ..PartialCall::default() });
            self.calls.len() - 1
        });
        &mut self.calls[at]
    }

    /// Keeps the first model name that is reported.
    fn model(&mut self, json: &Value) {
        if self.answer.model.is_none() {
            self.answer.model = text_of(json, "model");
        }
    }

    fn finish(&mut self, finish: Finish) {
        self.answer.finish = finish;
        self.finished = true;
    }

    /// Adds reported usage. Later figures replace earlier ones, because they are totals.
    fn usage(&mut self, json: Option<&Value>) {
        let reported = json.and_then(Value::as_object).into_iter().flatten();
        for (name, value) in reported.filter(|(_, value)| !value.is_null()) {
            self.usage.insert(name.clone(), value.clone());
        }
    }
}

fn parse(bytes: &[u8]) -> Result<Value, AnswerFault> {
    serde_json::from_slice(bytes).map_err(|error| match error.is_eof() {
        true => AnswerFault::Cut,
        false => AnswerFault::Malformed(format!("it is not JSON, but {}", excerpt(bytes))),
    })
}

/// Returns the error that a response reports in its body.
fn reported_error(json: &Value) -> Option<AnswerFault> {
    let error = json.get("error").filter(|error| !error.is_null())?;
    let code = error.get("code").and_then(Value::as_u64).and_then(|code| u16::try_from(code).ok());
    let by_name = |name: &str| match name {
        "invalid_request_error" => 400,
        "authentication_error" => 401,
        "permission_error" => 403,
        "not_found_error" => 404,
        "request_too_large" => 413,
        "rate_limit_error" | "rate_limit_exceeded" => 429,
        "overloaded_error" => 529,
        _ => 500,
    };
    let name = error.get("type").and_then(Value::as_str).unwrap_or_default();
    let status = code.filter(|code| (400..600).contains(code)).unwrap_or_else(|| by_name(name));
    Some(AnswerFault::Reported { status, body: json.to_string().into_bytes() })
}

/// Parses the usage that an endpoint reports.
fn usage(reported: &Value) -> Option<Usage> {
    let source_info = serde_json::json!({ "usage": reported }).to_string();
    let source_info = json::parse(source_info.as_bytes(), USAGE_DEPTH).ok()?;
    Usage::from_source_info(&source_info)
}

fn text_of(json: &Value, name: &str) -> Option<String> {
    json.get(name)?.as_str().filter(|text| !text.is_empty()).map(str::to_owned)
}

/// Parses the arguments that a model wrote; text that is not JSON remains a string.
fn arguments(text: &str) -> Value {
    match text.trim() {
        "" => Value::Object(Map::new()),
        text => serde_json::from_str(text).unwrap_or_else(|_| Value::from(text)),
    }
}

/// Parses the `tool_calls` of a message in OpenAI's format.
fn tool_calls(message: &Value, arguments: fn(Option<&Value>) -> Value) -> Vec<ToolCall> {
    let given = message.get("tool_calls").and_then(Value::as_array).into_iter().flatten();
    let call = |call: &Value| {
        let function = call.get("function")?;
        Some(ToolCall {
            id: text_of(call, "id").unwrap_or_default(),
            name: text_of(function, "name")?,
            arguments: arguments(function.get("arguments")),
        })
    };
    given.filter_map(call).collect()
}

/// Describes tools in OpenAI's format.
fn functions(tools: &[Tool]) -> Vec<Value> {
    let function = |tool: &Tool| {
        serde_json::json!({
            "type": "function",
            "function": {
                "name": tool.name,
                "description": tool.description,
                "parameters": tool.parameters,
            },
        })
    };
    tools.iter().map(function).collect()
}

/// Returns the messages in the format of a protocol, after a system message.
fn messages_with_system(
    chat: &Chat,
    more: Option<String>,
    message: fn(&ChatMessage) -> Value,
) -> Vec<Value> {
    let parts: Vec<&str> = chat.system.as_deref().into_iter().chain(more.as_deref()).collect();
    let system = (!parts.is_empty())
        .then(|| serde_json::json!({ "role": "system", "content": parts.join("\n\n") }));
    system.into_iter().chain(chat.messages.iter().map(message)).collect()
}
