//! What a text says, without asking a model.
//!
//! - [`rings`]: what a turn is about: keywords, intent, facets and sentences.
//! - [`Interpreter`]: reads facts out of a text. An interpreter stores nothing; its caller keeps
//!   the [`Account`] of a run, also of one that fails.
//! - [`rules`]: the interpreter that needs no model.
//!
//! Everything here is a function of its arguments: no network, weights, clock or randomness.
//! Interpreters that ask a model live in `tine-llm`.

pub mod rings;
pub mod rules;

use std::ops::Range;

use tine_core::json::Object;
use tine_core::{Json, Role, Timestamp, Usage};

/// What is interpreted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Material<'a> {
    /// The text; spans of findings count its bytes.
    pub text: &'a str,
    /// What kind of text it is. A turn and a document are read by different rules and prompts.
    pub subject: Subject,
    /// When it was said or written: what "tomorrow" is measured from. Without it, relative dates
    /// are left as they stand.
    pub said_at: Option<Timestamp>,
}

/// What kind of text is interpreted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Subject {
    /// One turn of a conversation, by whom.
    Turn(Role),
    /// Any other text.
    Document,
}

/// One fact that a text states.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// `person`, `task` …
    pub entity_type: String,
    /// What is said of it.
    pub fields: Object,
    /// The bytes of the text that say so, where they are known.
    pub span: Option<Range<usize>>,
}

/// How an interpreter works.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// By rules built in.
    Rules,
    /// By asking a model.
    Model,
    /// By the caller, who structured the text.
    Agent,
}

/// Which interpreter it is: enough to tell two runs apart.
#[derive(Clone, Debug, PartialEq)]
pub struct About {
    /// Its name, as it is chosen by.
    pub name: String,
    /// Its version; another version may find other things.
    pub version: String,
    /// How it works.
    pub kind: Kind,
    /// Whom it asks.
    pub provider: Option<String>,
    /// Which model it asks for.
    pub model: Option<String>,
    /// The parameters of its requests, an object; never a key.
    pub parameters: Json,
    /// The seed of its requests.
    pub seed: Option<u64>,
}

/// What happened in a run, whether it succeeded or not.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Account {
    /// The prompt that was used.
    pub prompt: Option<String>,
    /// The model that answered, in its own words.
    pub model_answered: Option<String>,
    /// The bytes of the last request, without headers.
    pub request: Option<Vec<u8>>,
    /// The bytes of the last response, as far as they came.
    pub response: Option<Vec<u8>>,
    /// What it cost, over all tries.
    pub usage: Usage,
    /// How often it was tried.
    pub tries: u32,
    /// What was in an answer and could not be used, one sentence each.
    pub notes: Vec<String>,
}

/// Why a run found nothing, not even that there is nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    /// What happened and what can be done.
    pub message: String,
    /// Whether the same run may succeed later.
    pub transient: bool,
}

/// Reads facts out of texts.
pub trait Interpreter: Send + Sync {
    /// Which one it is.
    fn about(&self) -> About;

    /// Reads a text. What happens on the way is written into the account before it can fail.
    fn interpret(
        &self,
        material: &Material<'_>,
        account: &mut Account,
    ) -> Result<Vec<Finding>, Failure>;

    /// The findings of a run that took place, from the bytes of its response.
    fn replay(
        &self,
        material: &Material<'_>,
        response: Option<&[u8]>,
    ) -> Result<Vec<Finding>, Failure>;
}
