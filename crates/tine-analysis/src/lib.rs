//! Text analysis without a model.
//!
//! - [`rings`]: keywords, intent, facets and sentences of a turn.
//! - [`Interpreter`]: extracts facts from a text. An interpreter stores nothing; its caller keeps
//!   the [`Account`] of a run, also of one that fails.
//! - [`rules`]: the built-in interpreter, which needs no model.
//!
//! Everything here is a function of its arguments: no network, weights, clock or randomness.
//! Interpreters that ask a model live in `tine-llm`.

pub mod rings;
pub mod rules;

use std::ops::Range;

use tine_core::json::Object;
use tine_core::{Json, Role, Timestamp, Usage};

/// A text to interpret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Material<'a> {
    /// The text; spans of findings count its bytes.
    pub text: &'a str,
    /// What kind of text it is. A turn and a document are read by different rules and prompts.
    pub subject: Subject,
    /// When it was written; "tomorrow" is relative to it. Without it, relative dates are not
    /// resolved.
    pub authored_at: Option<Timestamp>,
}

/// What kind of text is interpreted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Subject {
    /// One turn of a conversation, with its role.
    Turn(Role),
    /// Any other text.
    Document,
}

/// One fact that a text states.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// `person`, `task` …
    pub entity_type: String,
    /// Fields by name.
    pub fields: Object,
    /// The bytes of the text that state it, if known.
    pub span: Option<Range<usize>>,
}

/// How an interpreter works.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum InterpreterKind {
    /// By built-in rules.
    Rules,
    /// By asking a model.
    Model,
    /// By the caller, who structured the text.
    Agent,
}

/// Identifies an interpreter and its configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct InterpreterInfo {
    /// The name by which it is selected.
    pub name: String,
    /// The version; findings may differ between versions.
    pub version: String,
    /// How it works.
    pub kind: InterpreterKind,
    /// The name of the model's provider.
    pub provider: Option<String>,
    /// The requested model.
    pub model: Option<String>,
    /// The parameters of its requests, an object; never an API key.
    pub parameters: Json,
    /// The seed of its requests.
    pub seed: Option<u64>,
}

/// A record of a run, whether it succeeded or not.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Account {
    /// The prompt that was used.
    pub prompt: Option<String>,
    /// The model name that the endpoint reported.
    pub model_answered: Option<String>,
    /// The bytes of the last request, without headers.
    pub request: Option<Vec<u8>>,
    /// The bytes of the last response, as far as they were received.
    pub response: Option<Vec<u8>>,
    /// Usage over all attempts.
    pub usage: Usage,
    /// The number of attempts.
    pub tries: u32,
    /// What was left out of an answer, one sentence each.
    pub notes: Vec<String>,
}

/// Why a run failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct InterpreterFailure {
    /// What is wrong, and what to do.
    pub message: String,
    /// Whether the same run may succeed later.
    pub transient: bool,
}

/// Extracts facts from texts.
pub trait Interpreter: Send + Sync {
    /// Returns the identity of the interpreter.
    fn about(&self) -> InterpreterInfo;

    /// Extracts facts from a text. The account is filled even if the run fails.
    fn interpret(
        &self,
        material: &Material<'_>,
        account: &mut Account,
    ) -> Result<Vec<Finding>, InterpreterFailure>;

    /// Returns the findings of an earlier run, from the bytes of its response.
    fn replay(
        &self,
        material: &Material<'_>,
        response: Option<&[u8]>,
    ) -> Result<Vec<Finding>, InterpreterFailure>;
}
