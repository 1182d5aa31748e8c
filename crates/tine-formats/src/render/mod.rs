//! Renders a path as a provider's request, ready to send, or as Markdown.
//!
//! `turn_parts` reads turns as parts, independent of providers; `tool_calls` puts every result after
//! its call and merges texts; a module for each provider writes its format. `token_budget` repeats
//! this for longer and longer ends of a path to find the longest that fits.
//!
//! Invariants:
//!
//! - Nothing is written that a provider is known to reject; `docs/rendering.md` lists the rules.
//! - Nothing is dropped silently: whatever is left out, changed or added has a [`Note`].
//! - A rendering is a function of the path and the [`Options`].
//!
//! Not included: the model's name, tools, limits and everything else around the messages of a
//! request; sending; and the tokenizer, which callers provide ([`Budget`]).

mod alternating_roles;
mod anthropic;
mod error;
mod gemini;
mod json;
mod markdown;
mod media;
mod notes;
mod openai;
mod tine;
mod token_budget;
mod tool_calls;
mod turn_parts;

use schemars::JsonSchema;
use serde::Serialize;
use tine_api::{Call, Operations, PathPage, PathQuery};
use tine_core::{Json, TurnId};

pub use error::RenderError;
pub use json::RenderingJson;
pub use notes::{Note, NoteKind};
pub(crate) use turn_parts::summary_text;

use notes::Notes;

/// The format of a rendering.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// Canonical messages.
    Tine,
    /// OpenAI's chat completions: `messages`.
    OpenAi,
    /// Anthropic's Messages API: `system` and `messages`.
    Anthropic,
    /// Gemini's `generateContent`: `systemInstruction` and `contents`.
    Gemini,
    /// Text for people.
    Markdown,
}

impl Format {
    /// All formats.
    pub const ALL: [Format; 5] =
        [Format::Tine, Format::OpenAi, Format::Anthropic, Format::Gemini, Format::Markdown];

    /// Returns the name in requests and JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Format::Tine => "tine",
            Format::OpenAi => "openai",
            Format::Anthropic => "anthropic",
            Format::Gemini => "gemini",
            Format::Markdown => "markdown",
        }
    }

    /// Returns the format with a name.
    pub fn parse(name: &str) -> Option<Format> {
        Format::ALL.into_iter().find(|format| format.as_str() == name)
    }
}

/// How tool calls without a result on the path are rendered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OpenCalls {
    /// With an added result that says so, and a note.
    #[default]
    Close,
    /// Rendering fails with an error that names the turns and calls.
    Report,
    /// Unchanged, with a note. Providers reject them until results follow.
    Keep,
}

impl OpenCalls {
    /// All choices.
    pub const ALL: [OpenCalls; 3] = [OpenCalls::Close, OpenCalls::Report, OpenCalls::Keep];

    /// Returns the name in requests and JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            OpenCalls::Close => "close",
            OpenCalls::Report => "report",
            OpenCalls::Keep => "keep",
        }
    }

    /// Returns the choice with a name.
    pub fn parse(name: &str) -> Option<OpenCalls> {
        OpenCalls::ALL.into_iter().find(|choice| choice.as_str() == name)
    }
}

/// The maximum length of a rendering.
#[derive(Clone, Copy)]
pub struct Budget<'a> {
    /// The maximum number of tokens.
    pub max_tokens: u64,
    /// Counts the tokens of a text.
    pub count: &'a dyn Fn(&str) -> usize,
}

impl std::fmt::Debug for Budget<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Budget").field("max_tokens", &self.max_tokens).finish_non_exhaustive()
    }
}

/// Options of a rendering.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    /// The format.
    pub format: Format,
    /// How open tool calls are rendered.
    pub open_calls: OpenCalls,
    /// Whether the root's system prompt is written.
    pub system: bool,
    /// If set, only the longest end of the path that fits is rendered.
    pub budget: Option<Budget<'a>>,
}

impl Options<'_> {
    /// Returns options for the whole path, with open calls closed.
    pub fn of(format: Format) -> Self {
        Options { format, open_calls: OpenCalls::Close, system: true, budget: None }
    }
}

/// The content of a rendering.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rendered {
    /// The part of a provider's request that contains the conversation.
    Request(Json),
    /// Markdown.
    Text(String),
}

/// The number of tokens of a rendering.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Tokens {
    /// The number of tokens.
    pub count: u64,
    /// Whether this is what the provider counts, not an estimate.
    pub exact: bool,
}

/// A rendered path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rendering {
    /// The format.
    pub format: Format,
    /// The content.
    pub rendered: Rendered,
    /// Everything that was left out, changed or added.
    pub notes: Vec<Note>,
    /// The number of tokens, if there was a budget.
    pub tokens: Option<Tokens>,
    /// The first turn, if earlier ones were cut.
    pub begins_at: Option<TurnId>,
    /// The number of turns that were cut.
    pub turns_cut: usize,
}

impl Rendering {
    /// Returns the text to send or show: canonical JSON, or Markdown.
    pub fn text(&self) -> String {
        match &self.rendered {
            Rendered::Request(json) => json.to_canonical(),
            Rendered::Text(text) => text.clone(),
        }
    }
}

/// Reads all pages of a path.
pub fn whole_path(
    engine: &dyn Operations,
    call: &Call,
    query: PathQuery,
) -> tine_api::Result<PathPage> {
    let mut query = query;
    let mut path = engine.path(call, query.clone())?;
    while let Some(cursor) = path.next.take() {
        query.cursor = Some(cursor);
        let page = engine.path(call, query.clone())?;
        path.turns.extend(page.turns);
        path.next = page.next;
    }
    Ok(path)
}

/// Renders a path, which must be complete or the end of one (see [`whole_path`]).
///
/// ```
/// use tine_core::{Message, Role};
/// use tine_engine::{Append, Call, Engine, NewConversation, PathQuery};
/// use tine_formats::render::{Format, Options, render, whole_path};
///
/// let engine = Engine::new(tine_store::MemoryStore::new());
/// let call = Call::by("ana");
/// let trip = engine.create_conversation(&call, NewConversation::named("trip")?)?.id;
/// engine.append(&call, Append::to(trip.clone(), vec![Message::text(Role::User, "Hello")]))?;
/// let path = whole_path(&engine, &call, PathQuery::of(trip))?;
/// let rendering = render(&path, &Options::of(Format::OpenAi))?;
/// assert_eq!(rendering.text(), r#"{"messages":[{"content":"Hello","role":"user"}]}"#);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn render(path: &PathPage, options: &Options<'_>) -> Result<Rendering, RenderError> {
    match options.budget {
        Some(budget) => token_budget::longest_that_fits(path, options, budget),
        None => write(path, options, &token_budget::PathCut::none()),
    }
}

/// Renders the part of a path that a cut leaves.
fn write(
    path: &PathPage,
    options: &Options<'_>,
    cut: &token_budget::PathCut,
) -> Result<Rendering, RenderError> {
    let mut notes = Notes::default();
    let turns = turn_parts::read(path, options, cut, &mut notes)?;
    let rendered = match options.format {
        Format::Tine => {
            tool_calls::check_open_calls(&turns, options.open_calls)?;
            // Blocks are passed on unchanged, so notes about providers do not apply.
            notes = Notes::default();
            cut.note(path, &mut notes);
            Rendered::Request(tine::write(path, options, cut, &mut notes)?)
        }
        Format::Markdown => {
            tool_calls::check_open_calls(&turns, options.open_calls)?;
            Rendered::Text(markdown::write(&turns, &mut notes))
        }
        Format::OpenAi | Format::Anthropic | Format::Gemini => {
            let write = match options.format {
                Format::Anthropic => anthropic::write,
                Format::Gemini => gemini::write,
                _ => openai::write,
            };
            let steps = tool_calls::steps(turns, options, &mut notes)?;
            Rendered::Request(write(steps, &mut notes))
        }
    };
    if let Rendered::Request(request) = &rendered {
        let list = request.get("messages").or_else(|| request.get("contents"));
        if list.and_then(Json::as_array).is_none_or(<[Json]>::is_empty) {
            let why = "providers require at least one";
            notes.kept(notes::BlockRef::default(), "a request without messages", why);
        }
    }
    Ok(Rendering {
        format: options.format,
        rendered,
        notes: notes.into_vec(path),
        tokens: None,
        begins_at: cut.begins_at(path),
        turns_cut: cut.start,
    })
}
