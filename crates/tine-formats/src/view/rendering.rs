//! A path in a provider's form.

use schemars::JsonSchema;
use serde::Serialize;

use super::{Raw, raw, text};
use crate::render;

/// A path in a provider's form, with all that was done to it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Rendering {
    /// `openai`, `anthropic`, `gemini`, `markdown` or `tine`.
    pub format: String,
    /// The part of a request that holds the conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request: Option<Raw>,
    /// Markdown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// How long it is, if there was a limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<Tokens>,
    /// The first turn in it, when earlier ones were cut to fit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub begins_at: Option<String>,
    /// How many were cut.
    pub turns_cut: usize,
    /// Everything that was left out, changed or added.
    pub notes: Vec<Note>,
}

/// Tokens of a rendering.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Tokens {
    /// How many.
    pub count: u64,
    /// Whether that is what the provider counts, or an estimate.
    pub exact: bool,
}

/// One thing that a rendering did not take over as it is.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Note {
    /// The turn; `null` for the root and for what belongs to no turn.
    pub turn_id: Option<String>,
    /// The block of that turn, from 0, when it is about one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block: Option<usize>,
    /// `left_out`, `changed`, `added` or `kept`.
    pub kind: String,
    /// What.
    pub what: String,
    /// Why.
    pub why: String,
}

impl From<render::Rendering> for Rendering {
    fn from(made: render::Rendering) -> Self {
        let (request, markdown) = match &made.rendered {
            render::Rendered::Request(json) => (Some(raw(json)), None),
            render::Rendered::Text(text) => (None, Some(text.clone())),
        };
        Rendering {
            format: made.format.as_str().to_owned(),
            request,
            text: markdown,
            tokens: made.tokens.map(|it| Tokens { count: it.count, exact: it.exact }),
            begins_at: made.begins_at.map(text),
            turns_cut: made.turns_cut,
            notes: made.notes.into_iter().map(Note::from).collect(),
        }
    }
}

impl From<render::Note> for Note {
    fn from(note: render::Note) -> Self {
        Note {
            turn_id: note.turn.map(text),
            block: note.block,
            kind: note.kind.as_str().to_owned(),
            what: note.what,
            why: note.why,
        }
    }
}
