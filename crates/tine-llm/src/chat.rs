//! Requests to a model and its answers.

use serde_json::Value;
use tine_core::Usage;

use crate::error::{ModelError, Truncation};

/// The author of a message. Unlike [`tine_core::Role`] it has no `System`: instructions go into
/// [`Chat::system`], because one of the protocols rejects them among messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Speaker {
    /// The user, or the calling program.
    User,
    /// The model.
    Assistant,
    /// The result of a tool call.
    Tool,
}

impl Speaker {
    pub(crate) fn role(self) -> &'static str {
        match self {
            Speaker::User => "user",
            Speaker::Assistant => "assistant",
            Speaker::Tool => "tool",
        }
    }
}

/// One message of a chat.
#[derive(Clone, Debug, PartialEq)]
pub struct ChatMessage {
    /// The author.
    pub speaker: Speaker,
    /// The content.
    pub text: String,
    /// Tool calls that follow the text.
    pub calls: Vec<ToolCall>,
    /// The call that a tool's message answers.
    pub answers: Option<ToolCall>,
}

impl ChatMessage {
    /// Returns a message that is only text.
    pub fn text(speaker: Speaker, text: impl Into<String>) -> ChatMessage {
        ChatMessage { speaker, text: text.into(), calls: Vec::new(), answers: None }
    }

    /// Creates a message of the model with tool calls.
    pub fn with_calls(text: impl Into<String>, calls: Vec<ToolCall>) -> ChatMessage {
        ChatMessage { calls, ..ChatMessage::text(Speaker::Assistant, text) }
    }

    /// Creates the result of a tool call.
    pub fn tool_result(call: ToolCall, text: impl Into<String>) -> ChatMessage {
        ChatMessage { answers: Some(call), ..ChatMessage::text(Speaker::Tool, text) }
    }
}

/// A tool that a model may call.
#[derive(Clone, Debug, PartialEq)]
pub struct Tool {
    /// The name: letters, digits, `_` and `-`, at most 64.
    pub name: String,
    /// What it does and when to use it.
    pub description: String,
    /// A JSON Schema of its arguments, which are an object.
    pub parameters: Value,
}

/// A tool call.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolCall {
    /// The endpoint's id of the call. Some endpoints send none; the caller must then assign one
    /// before it sends the call back.
    pub id: String,
    /// The name of the tool.
    pub name: String,
    /// The arguments; a string where the model did not write valid JSON.
    pub arguments: Value,
}

/// The JSON schema that an answer must match.
#[derive(Clone, Debug, PartialEq)]
pub struct ResponseFormat {
    /// Its name: letters, digits, `_` and `-`, at most 64.
    pub name: String,
    /// A JSON Schema. Closed objects with every property required work with every provider.
    pub schema: Value,
}

/// A request to a model.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Chat {
    /// The system prompt.
    pub system: Option<String>,
    /// The conversation so far; the last message is answered.
    pub messages: Vec<ChatMessage>,
    /// The schema of a JSON answer. No tools are offered when it is set.
    pub json_schema: Option<ResponseFormat>,
    /// Tools that the model may call instead of answering.
    pub tools: Vec<Tool>,
}

impl Chat {
    /// Creates a request with one user message.
    pub fn ask(text: impl Into<String>) -> Chat {
        Chat { messages: vec![ChatMessage::text(Speaker::User, text)], ..Chat::default() }
    }

    /// Sets the system prompt.
    #[must_use]
    pub fn with_system(self, text: impl Into<String>) -> Chat {
        Chat { system: Some(text.into()), ..self }
    }

    /// Sets the tools that the model may call.
    #[must_use]
    pub fn with_tools(self, tools: Vec<Tool>) -> Chat {
        Chat { tools, ..self }
    }

    pub(crate) fn offered(&self) -> &[Tool] {
        if self.json_schema.is_some() { &[] } else { &self.tools }
    }

    /// Requires an answer in JSON of this schema.
    #[must_use]
    pub fn with_schema(self, name: impl Into<String>, schema: Value) -> Chat {
        Chat { json_schema: Some(ResponseFormat { name: name.into(), schema }), ..self }
    }
}

/// Why an answer ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finish {
    /// The answer is complete.
    Stop,
    /// It reached the token limit.
    Length,
    /// The model or a content filter ended it.
    Refused,
    /// The caller stopped it.
    Cancelled,
    /// Any other reason, as reported by the endpoint, or none.
    Other(String),
}

/// The result of a call.
#[derive(Clone, Debug, PartialEq)]
pub struct Completion {
    /// The name of the provider that was asked.
    pub provider: String,
    /// The text of the answer; with a schema, the JSON.
    pub text: String,
    /// Tool calls that the model requests.
    pub calls: Vec<ToolCall>,
    /// The model name that the endpoint reported.
    pub model_answered: Option<String>,
    /// Usage over all attempts.
    pub usage: Usage,
    /// Why it ended.
    pub finish: Finish,
    /// The reason of a refusal; `text` is what the model wrote before it.
    pub refusal: Option<String>,
    /// The bytes of the last request, without headers.
    pub request: Vec<u8>,
    /// The bytes of the last response.
    pub response: Vec<u8>,
    /// The number of attempts.
    pub tries: u32,
}

impl Completion {
    /// Returns the text, or an error when the answer was refused or cut off.
    pub fn whole(&self) -> Result<&str, ModelError> {
        whole(&self.provider, &self.text, &self.finish, self.refusal.as_deref())
    }
}

pub(crate) fn whole<'a>(
    provider: &str,
    text: &'a str,
    finish: &Finish,
    refusal: Option<&str>,
) -> Result<&'a str, ModelError> {
    let provider = provider.to_owned();
    if refusal.is_some() || *finish == Finish::Refused {
        let why = refusal.unwrap_or("it gave no reason").to_owned();
        return Err(ModelError::Refused { provider, why });
    }
    match finish {
        Finish::Length => Err(ModelError::Truncated { provider, cut: Truncation::Length }),
        Finish::Cancelled => Err(ModelError::Truncated { provider, cut: Truncation::Connection }),
        _ => Ok(text),
    }
}

/// A piece of a streamed answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delta<'a> {
    /// Text of the answer.
    Text(&'a str),
    /// Text of the model's reasoning.
    Thought(&'a str),
    /// Nothing arrived for a moment; gives the listener a chance to stop.
    Silence,
}

/// A record of a call, also when it failed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CallTrace {
    /// The bytes of the last request, without headers.
    pub request: Vec<u8>,
    /// The bytes of the last response, as far as they were received.
    pub response: Vec<u8>,
    /// The model name that the endpoint reported.
    pub model_answered: Option<String>,
    /// Reported usage over all attempts.
    pub usage: Usage,
    /// The number of attempts.
    pub tries: u32,
}
