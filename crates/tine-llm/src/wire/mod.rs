//! The three protocols: requests out of questions, answers out of bytes.
//!
//! Everything here is a function of its arguments; nothing here knows the network, a key or a
//! clock. So an answer can be read again from its stored bytes.

mod anthropic;
mod frames;
mod ollama;
mod openai;
#[cfg(test)]
mod tests;

use std::ops::ControlFlow;

use serde_json::{Map, Value};
use tine_core::{Usage, json};

use crate::chat::{Chat, Delta, Finish, Said, Tool, ToolCall};
use crate::error::excerpt;
use crate::provider::{Kind, Provider};

pub(crate) use frames::Frames;

/// Nesting of an endpoint's account of tokens.
const USAGE_DEPTH: usize = 8;

/// Who gets the pieces of an answer.
pub(crate) type Listener<'a> = &'a mut dyn FnMut(Delta<'_>) -> ControlFlow<()>;

/// What an endpoint is known to take; endpoints of one protocol differ in the details.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Dialect {
    /// The second way to ask for JSON instead of the first.
    pub(crate) other_schema: bool,
    /// The other name of the bound on tokens.
    pub(crate) other_limit: bool,
    /// Streams cannot be asked for usage.
    pub(crate) bare_stream: bool,
    /// The model calls no tools.
    pub(crate) no_tools: bool,
}

impl Dialect {
    /// Another way to say the same, after the endpoint did not understand it in this one.
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
        let openai = provider.kind == Kind::OpenAi;
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
        let asks = chat.json_schema.is_some() && provider.kind != Kind::Ollama;
        (asks && !self.other_schema).then_some(Dialect { other_schema: true, ..self })
    }
}

/// What an answer says.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Answer {
    pub(crate) text: String,
    pub(crate) calls: Vec<ToolCall>,
    pub(crate) model: Option<String>,
    /// What it cost, if that was told.
    pub(crate) usage: Option<Usage>,
    pub(crate) finish: Finish,
    pub(crate) refusal: Option<String>,
}

impl Answer {
    /// Nothing yet.
    fn none() -> Answer {
        Answer {
            text: String::new(),
            calls: Vec::new(),
            model: None,
            usage: None,
            finish: Finish::Other("none".to_owned()),
            refusal: None,
        }
    }

    /// What there is when nobody wanted any of it.
    pub(crate) fn cancelled() -> Answer {
        Answer { finish: Finish::Cancelled, ..Answer::none() }
    }
}

/// Why bytes are no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// They end too early.
    Cut,
    /// They are something else.
    Malformed(String),
    /// They tell a fault of the endpoint, although its status was fine.
    Told { status: u16, body: Vec<u8> },
}

/// Where questions go.
pub(crate) fn address(provider: &Provider) -> String {
    let base = provider.base_url.as_str();
    match provider.kind {
        Kind::OpenAi => format!("{base}/chat/completions"),
        Kind::Anthropic => format!("{}/v1/messages", base.strip_suffix("/v1").unwrap_or(base)),
        Kind::Ollama => format!("{}/api/chat", base.strip_suffix("/api").unwrap_or(base)),
    }
}

/// The body of a request.
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
        Kind::OpenAi => openai::request(provider, chat, dialect, stream),
        Kind::Anthropic => anthropic::request(provider, chat, dialect, stream),
        Kind::Ollama => ollama::request(provider, chat, stream),
    };
    body.to_string().into_bytes()
}

/// The answer in the bytes of a response that was not streamed, to a question with or without
/// tools.
pub(crate) fn answer(kind: Kind, bytes: &[u8], tools: bool) -> Result<Answer, Fault> {
    let json = parse(bytes)?;
    if let Some(fault) = told(&json) {
        return Err(fault);
    }
    match kind {
        Kind::OpenAi => openai::answer(&json),
        Kind::Anthropic => anthropic::answer(&json, tools),
        Kind::Ollama => ollama::answer(&json),
    }
}

/// The protocol that a stored response is of, whatever is configured today.
pub(crate) fn kind_of(bytes: &[u8]) -> Option<Kind> {
    let json: Value = serde_json::from_slice(bytes).ok()?;
    let has = |name: &str| json.get(name).is_some();
    match () {
        () if has("choices") => Some(Kind::OpenAi),
        () if has("content") && has("role") => Some(Kind::Anthropic),
        () if has("message") && has("done") => Some(Kind::Ollama),
        () => None,
    }
}

/// An answer that is put together from events.
pub(crate) struct Assembly {
    kind: Kind,
    /// Whether tools were offered.
    tools: bool,
    answer: Answer,
    /// Calls as they come: their place, id, name and the text of their arguments.
    calls: Vec<Calling>,
    /// The account of tokens, of which events tell parts.
    usage: Map<String, Value>,
    /// Whether the model said why it ended.
    finished: bool,
    /// Whether the stream said that it is over.
    done: bool,
    events: u64,
}

/// A call that is being told.
#[derive(Default)]
struct Calling {
    place: u64,
    id: String,
    name: String,
    arguments: String,
}

impl Assembly {
    pub(crate) fn new(kind: Kind, tools: bool) -> Assembly {
        Assembly {
            kind,
            tools,
            answer: Answer::none(),
            calls: Vec::new(),
            usage: Map::new(),
            finished: false,
            done: false,
            events: 0,
        }
    }

    /// Takes one event.
    pub(crate) fn event(
        &mut self,
        bytes: &[u8],
        each: Listener<'_>,
    ) -> Result<ControlFlow<()>, Fault> {
        if bytes == b"[DONE]" {
            self.done = true;
            return Ok(ControlFlow::Continue(()));
        }
        let json = parse(bytes).map_err(|fault| match fault {
            // An event is whole: only what follows it can be missing.
            Fault::Cut => Fault::Malformed(format!("an event is no JSON: {}", excerpt(bytes))),
            other => other,
        })?;
        if let Some(fault) = told(&json) {
            return Err(fault);
        }
        self.events += 1;
        match self.kind {
            Kind::OpenAi => openai::event(self, &json, each),
            Kind::Anthropic => anthropic::event(self, &json, each),
            Kind::Ollama => ollama::event(self, &json, each),
        }
    }

    /// Whether there is nothing more to wait for.
    pub(crate) fn is_done(&self) -> bool {
        self.done
    }

    /// The answer so far.
    pub(crate) fn so_far(mut self) -> Answer {
        self.answer.usage = usage(&Value::Object(self.usage)).or(self.answer.usage);
        let told = self.calls.into_iter().filter(|call| !call.name.is_empty());
        let calls = told.map(|call| ToolCall {
            id: call.id,
            name: call.name,
            arguments: arguments(&call.arguments),
        });
        self.answer.calls.extend(calls);
        self.answer
    }

    /// Whether all of it came.
    pub(crate) fn is_whole(&self) -> bool {
        self.done || self.finished
    }

    /// Whether any of it came.
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

    /// The call at a place, which may have been told of before.
    fn call(&mut self, place: u64) -> &mut Calling {
        let known = self.calls.iter().position(|call| call.place == place);
        let at = known.unwrap_or_else(|| {
            self.calls.push(Calling { place, ..Calling::default() });
            self.calls.len() - 1
        });
        &mut self.calls[at]
    }

    /// Notes the first of these members that is a name.
    fn model(&mut self, json: &Value) {
        if self.answer.model.is_none() {
            self.answer.model = text_of(json, "model");
        }
    }

    fn finish(&mut self, finish: Finish) {
        self.answer.finish = finish;
        self.finished = true;
    }

    /// Later figures replace earlier ones: they are sums.
    fn usage(&mut self, json: Option<&Value>) {
        let told = json.and_then(Value::as_object).into_iter().flatten();
        for (name, value) in told.filter(|(_, value)| !value.is_null()) {
            self.usage.insert(name.clone(), value.clone());
        }
    }
}

fn parse(bytes: &[u8]) -> Result<Value, Fault> {
    serde_json::from_slice(bytes).map_err(|error| match error.is_eof() {
        true => Fault::Cut,
        false => Fault::Malformed(format!("it is no JSON, but {}", excerpt(bytes))),
    })
}

/// The fault that an endpoint tells inside an answer.
fn told(json: &Value) -> Option<Fault> {
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
    Some(Fault::Told { status, body: json.to_string().into_bytes() })
}

/// An endpoint's account of tokens in the one form that everybody here understands.
fn usage(told: &Value) -> Option<Usage> {
    let source_info = serde_json::json!({ "usage": told }).to_string();
    let source_info = json::parse(source_info.as_bytes(), USAGE_DEPTH).ok()?;
    Usage::from_source_info(&source_info)
}

fn text_of(json: &Value, name: &str) -> Option<String> {
    json.get(name)?.as_str().filter(|text| !text.is_empty()).map(str::to_owned)
}

/// Arguments out of what a model wrote; what is no JSON stays a text.
fn arguments(text: &str) -> Value {
    match text.trim() {
        "" => Value::Object(Map::new()),
        text => serde_json::from_str(text).unwrap_or_else(|_| Value::from(text)),
    }
}

/// Tools as OpenAI describes them, and those who follow it.
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

/// The messages, each as a protocol has it, after one of the system.
fn messages_with_system(
    chat: &Chat,
    more: Option<String>,
    message: fn(&Said) -> Value,
) -> Vec<Value> {
    let parts: Vec<&str> = chat.system.as_deref().into_iter().chain(more.as_deref()).collect();
    let system = (!parts.is_empty())
        .then(|| serde_json::json!({ "role": "system", "content": parts.join("\n\n") }));
    system.into_iter().chain(chat.messages.iter().map(message)).collect()
}
