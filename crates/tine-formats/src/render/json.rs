//! The JSON form of a rendering.

use schemars::JsonSchema;
use serde::Serialize;
use tine_api::bodies::{Raw, raw};
use tine_core::TurnId;

use super::{Note, Rendered, Rendering, Tokens};

/// A rendered path, with notes on every difference.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "Rendering")]
pub struct RenderingJson {
    /// `openai`, `anthropic`, `gemini`, `markdown` or `tine`.
    pub format: &'static str,
    /// The part of a request that contains the conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request: Option<Raw>,
    /// Markdown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The number of tokens, if there was a limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<Tokens>,
    /// The first turn, if earlier ones were cut.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub begins_at: Option<TurnId>,
    /// The number of turns that were cut.
    pub turns_cut: usize,
    /// Everything that was left out, changed or added.
    pub notes: Vec<Note>,
}

impl From<Rendering> for RenderingJson {
    fn from(made: Rendering) -> Self {
        let (request, text) = match made.rendered {
            Rendered::Request(json) => (Some(raw(&json)), None),
            Rendered::Text(text) => (None, Some(text)),
        };
        RenderingJson {
            format: made.format.as_str(),
            request,
            text,
            tokens: made.tokens,
            begins_at: made.begins_at,
            turns_cut: made.turns_cut,
            notes: made.notes,
        }
    }
}
