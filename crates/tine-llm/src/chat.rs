//! What is asked, and what comes back.

use serde_json::Value;
use tine_core::Usage;

use crate::error::{Cut, ModelError};

/// Who says a message. It is not [`tine_core::Role`], which also has `System`: instructions go into
/// [`Chat::system`], since one of the protocols refuses them among messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Speaker {
    /// The person, or the program that asks.
    User,
    /// The model.
    Assistant,
    /// A tool that the model called.
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

/// One message.
#[derive(Clone, Debug, PartialEq)]
pub struct Said {
    /// By whom.
    pub speaker: Speaker,
    /// What.
    pub text: String,
    /// Tools that the model called behind it.
    pub calls: Vec<ToolCall>,
    /// The call that a tool answers.
    pub answers: Option<ToolCall>,
}

impl Said {
    /// A message that is only text.
    pub fn by(speaker: Speaker, text: impl Into<String>) -> Said {
        Said { speaker, text: text.into(), calls: Vec::new(), answers: None }
    }

    /// What a model said, and which tools it called.
    pub fn calling(text: impl Into<String>, calls: Vec<ToolCall>) -> Said {
        Said { calls, ..Said::by(Speaker::Assistant, text) }
    }

    /// What a tool answered to a call.
    pub fn answering(call: ToolCall, text: impl Into<String>) -> Said {
        Said { answers: Some(call), ..Said::by(Speaker::Tool, text) }
    }
}

/// A tool that a model may call.
#[derive(Clone, Debug, PartialEq)]
pub struct Tool {
    /// Its name: letters, digits, `_` and `-`, at most 64.
    pub name: String,
    /// What it does and when to use it.
    pub description: String,
    /// A JSON Schema of its arguments, which are an object.
    pub parameters: Value,
}

/// A call of a tool.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolCall {
    /// The endpoint's id of it; empty where it gives none, and then to be made up before the call
    /// is told back.
    pub id: String,
    /// Which tool.
    pub name: String,
    /// With what. What the model wrote in vain for JSON is a text.
    pub arguments: Value,
}

/// The form that an answer must have.
#[derive(Clone, Debug, PartialEq)]
pub struct Form {
    /// Its name: letters, digits, `_` and `-`, at most 64.
    pub name: String,
    /// A JSON Schema. Closed objects with every property required work with every provider.
    pub schema: Value,
}

/// What is asked.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Chat {
    /// What the model is told before the conversation.
    pub system: Option<String>,
    /// The conversation so far; the last message is answered.
    pub messages: Vec<Said>,
    /// The form of the answer, where it must be JSON. No tools are offered then.
    pub json_schema: Option<Form>,
    /// Tools that the model may call instead of answering.
    pub tools: Vec<Tool>,
}

impl Chat {
    /// One question.
    pub fn ask(text: impl Into<String>) -> Chat {
        Chat { messages: vec![Said::by(Speaker::User, text)], ..Chat::default() }
    }

    /// The same with something that the model is told first.
    #[must_use]
    pub fn with_system(self, text: impl Into<String>) -> Chat {
        Chat { system: Some(text.into()), ..self }
    }

    /// The same, with tools that may be called.
    #[must_use]
    pub fn with_tools(self, tools: Vec<Tool>) -> Chat {
        Chat { tools, ..self }
    }

    /// The tools that are offered.
    pub(crate) fn offered(&self) -> &[Tool] {
        if self.json_schema.is_some() { &[] } else { &self.tools }
    }

    /// The same, answered in JSON of that schema.
    #[must_use]
    pub fn with_schema(self, name: impl Into<String>, schema: Value) -> Chat {
        Chat { json_schema: Some(Form { name: name.into(), schema }), ..self }
    }
}

/// Why an answer ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finish {
    /// It was said.
    Stop,
    /// It reached the most tokens that it may have.
    Length,
    /// The model or a filter ended it.
    Refused,
    /// Whoever listened wanted no more.
    Cancelled,
    /// Anything else, in the endpoint's word; also when it gave none.
    Other(String),
}

/// A whole answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Completion {
    /// The name of the provider that was asked.
    pub provider: String,
    /// What the model said. With a schema, the JSON.
    pub text: String,
    /// Tools that the model wants to be called before it goes on.
    pub calls: Vec<ToolCall>,
    /// The model that answered, in its own words.
    pub model_answered: Option<String>,
    /// What it cost, over all tries.
    pub usage: Usage,
    /// Why it ended.
    pub finish: Finish,
    /// Why the model did not want to answer, if it did not; `text` is what it said before.
    pub refusal: Option<String>,
    /// The bytes of the last request, without headers.
    pub request: Vec<u8>,
    /// The bytes of the last response.
    pub response: Vec<u8>,
    /// How often it was tried.
    pub tries: u32,
}

impl Completion {
    /// The text, if the model said all that it wanted to: neither refused nor cut short.
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
        Finish::Length => Err(ModelError::Truncated { provider, cut: Cut::Length }),
        Finish::Cancelled => Err(ModelError::Truncated { provider, cut: Cut::Connection }),
        _ => Ok(text),
    }
}

/// A piece of an answer, as it comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delta<'a> {
    /// More of what the model says.
    Text(&'a str),
    /// More of what it thinks.
    Thought(&'a str),
    /// Nothing came for a moment: an occasion to stop listening.
    Silence,
}

/// What happened in a call, also when it failed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trail {
    /// The bytes of the last request, without headers.
    pub request: Vec<u8>,
    /// The bytes of the last response, as far as they came.
    pub response: Vec<u8>,
    /// The model that answered, in its own words.
    pub model_answered: Option<String>,
    /// What it cost, over all tries, as far as it was told.
    pub usage: Usage,
    /// How often it was tried.
    pub tries: u32,
}
