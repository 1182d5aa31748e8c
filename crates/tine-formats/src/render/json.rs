//! The JSON form of a rendering.

use schemars::JsonSchema;
use serde::Serialize;
use tine_api::bodies::{Raw, raw};
use tine_core::TurnId;

use super::{Note, Rendered, Rendering, Tokens};

/// A path in a provider's form, with everything that was changed on the way.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "Rendering")]
pub struct RenderingJson {
    /// `openai`, `anthropic`, `gemini`, `markdown` or `tine`.
    pub format: &'static str,
    /// The part of a request that holds the conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request: Option<Raw>,
    /// Markdown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Its length in tokens, if there was a limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<Tokens>,
    /// The first turn in it, if earlier ones were cut to fit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub begins_at: Option<TurnId>,
    /// How many turns were cut.
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
