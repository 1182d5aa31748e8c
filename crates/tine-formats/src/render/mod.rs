//! A path as the request of a provider, ready to send, or as Markdown.
//!
//! A rendering is made in three steps: `turn_parts` reads turns into parts that no provider has a say in;
//! `tool_calls` puts every tool result behind its call and coalesces; and one module for each
//! provider writes what its interface takes. `token_budget` repeats this for ever longer ends of a path,
//! to find the longest that fits; `path_end` reads them from the tip.
//!
//! Invariants:
//!
//! - What a provider is known to refuse is not written: see `docs/rendering.md` for the rules.
//! - Nothing is dropped silently. Whatever is left out, changed or added has a [`Note`].
//! - A rendering is a function of the path and the [`Options`]: the same bytes each time.
//!
//! Deliberately absent: the model's name, tools, limits and all else that surrounds messages in
//! a request; sending; and the tokenizer, which callers bring along ([`Budget`]).

mod alternating;
mod anthropic;
mod error;
mod gemini;
mod json;
mod markdown;
mod media;
mod notes;
mod openai;
mod path_end;
mod tine;
mod token_budget;
mod tool_calls;
mod turn_parts;

pub(crate) use turn_parts::summary_text;

use schemars::JsonSchema;
use serde::Serialize;
use tine_api::{Call, Operations, PathPage, PathQuery};
use tine_core::{ConversationId, Json, TurnId};

pub use error::RenderError;
pub use json::RenderingJson;
pub use notes::{Note, NoteKind};

use notes::Notes;

/// What a path is rendered as.
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
    /// Every format.
    pub const ALL: [Format; 5] =
        [Format::Tine, Format::OpenAi, Format::Anthropic, Format::Gemini, Format::Markdown];

    /// The name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Format::Tine => "tine",
            Format::OpenAi => "openai",
            Format::Anthropic => "anthropic",
            Format::Gemini => "gemini",
            Format::Markdown => "markdown",
        }
    }

    /// The format of that name.
    pub fn parse(name: &str) -> Option<Format> {
        Format::ALL.into_iter().find(|format| format.as_str() == name)
    }
}

/// What becomes of tool calls that have no result on the path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OpenCalls {
    /// They get a result that says so, and a note.
    #[default]
    Close,
    /// The rendering is refused, with the turns and calls.
    Report,
    /// They stay as they are, with a note. Providers refuse them until results follow.
    Keep,
}

impl OpenCalls {
    /// Every choice.
    pub const ALL: [OpenCalls; 3] = [OpenCalls::Close, OpenCalls::Report, OpenCalls::Keep];

    /// The name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            OpenCalls::Close => "close",
            OpenCalls::Report => "report",
            OpenCalls::Keep => "keep",
        }
    }

    /// The choice of that name.
    pub fn parse(name: &str) -> Option<OpenCalls> {
        OpenCalls::ALL.into_iter().find(|choice| choice.as_str() == name)
    }
}

/// How long a rendering may be, and how that is counted.
#[derive(Clone, Copy)]
pub struct Budget<'a> {
    /// Tokens at most.
    pub max_tokens: u64,
    /// Tokens of a text.
    pub count: &'a dyn Fn(&str) -> usize,
}

impl std::fmt::Debug for Budget<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Budget").field("max_tokens", &self.max_tokens).finish_non_exhaustive()
    }
}

/// What to render, and how.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    /// As what.
    pub format: Format,
    /// What becomes of open tool calls.
    pub open_calls: OpenCalls,
    /// Whether the root's system prompt is written.
    pub system: bool,
    /// Only the end of the path that fits.
    pub budget: Option<Budget<'a>>,
}

impl Options<'_> {
    /// The whole path, open calls closed.
    pub fn of(format: Format) -> Self {
        Options { format, open_calls: OpenCalls::Close, system: true, budget: None }
    }
}

/// What a rendering is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rendered {
    /// The part of a provider's request that holds the conversation.
    Request(Json),
    /// Markdown.
    Text(String),
}

/// Tokens of a rendering.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Tokens {
    /// How many.
    pub count: u64,
    /// Whether that is what the provider counts, or an estimate.
    pub exact: bool,
}

/// A path in a provider's form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rendering {
    /// The conversation.
    pub conversation: ConversationId,
    /// As what.
    pub format: Format,
    /// The form itself.
    pub rendered: Rendered,
    /// Everything that was left out, changed or added.
    pub notes: Vec<Note>,
    /// How long it is, if there was a budget.
    pub tokens: Option<Tokens>,
    /// The first turn in it, when earlier ones were cut to fit.
    pub begins_at: Option<TurnId>,
    /// The number of turns on the path, cut ones included.
    pub turns: usize,
    /// How many were cut.
    pub turns_cut: usize,
}

impl Rendering {
    /// The text to send or show: canonical JSON, or Markdown.
    pub fn text(&self) -> String {
        match &self.rendered {
            Rendered::Request(json) => json.to_canonical(),
            Rendered::Text(text) => text.clone(),
        }
    }
}

/// All pages of a path in one.
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

/// Renders a path, which must be whole or the end of one (see [`whole_path`]).
///
/// ```
/// use tine_core::{Message, Role};
/// use tine_engine::{Append, Call, Engine, NewConversation, PathQuery};
/// use tine_formats::render::{Format, Options, render, whole_path};
///
/// let engine = Engine::new(tine_store::MemoryStore::new());
/// let call = Call::by("somebody");
/// let trip = engine.create_conversation(&call, NewConversation::named("trip")?)?.id;
/// engine.append(&call, Append::to(trip.clone(), vec![Message::text(Role::User, "Hello")]))?;
/// let path = whole_path(&engine, &call, PathQuery::of(trip))?;
/// let rendering = render(&path, &Options::of(Format::OpenAi))?;
/// assert_eq!(rendering.text(), r#"{"messages":[{"content":"Hello","role":"user"}]}"#);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn render(path: &PathPage, options: &Options<'_>) -> Result<Rendering, RenderError> {
    match options.budget {
        Some(budget) => {
            token_budget::longest_that_fits(&mut path_end::PathEnd::whole(path)?, options, budget)
        }
        None => write(path, options, &token_budget::PathCut::none()),
    }
}

/// Reads a path and renders it.
///
/// With a budget, the path is read from its tip, and only the turns that may fit are held with
/// their content. Reading stops once they are found and the newest summary stands for everything
/// before it; a path without such a summary is read to the root.
pub fn render_path(
    engine: &dyn Operations,
    call: &Call,
    query: PathQuery,
    options: &Options<'_>,
) -> Result<Rendering, RenderError> {
    match options.budget {
        Some(budget) if query.cursor.is_none() => {
            let mut end = path_end::PathEnd::read(engine, call, query, budget)?;
            token_budget::longest_that_fits(&mut end, options, budget)
        }
        _ => render(&whole_path(engine, call, query)?, options),
    }
}

/// Renders what a cut leaves of a path.
fn write(
    path: &PathPage,
    options: &Options<'_>,
    cut: &token_budget::PathCut,
) -> Result<Rendering, RenderError> {
    let mut notes = Notes::default();
    let script = turn_parts::read(path, options, cut, &mut notes)?;
    let rendered = match options.format {
        Format::Tine => {
            tool_calls::check_open_calls(&script, options.open_calls)?;
            // Blocks are passed on as they are, whatever a provider would make of them.
            notes = Notes::default();
            cut.note(path, &mut notes);
            Rendered::Request(tine::write(path, options, cut, &mut notes)?)
        }
        Format::Markdown => {
            tool_calls::check_open_calls(&script, options.open_calls)?;
            Rendered::Text(markdown::write(&script, &mut notes))
        }
        Format::OpenAi => {
            let steps = tool_calls::steps(script, options, &mut notes)?;
            Rendered::Request(openai::write(steps, &mut notes))
        }
        Format::Anthropic => {
            let steps = tool_calls::steps(script, options, &mut notes)?;
            Rendered::Request(anthropic::write(steps, &mut notes))
        }
        Format::Gemini => {
            let steps = tool_calls::steps(script, options, &mut notes)?;
            Rendered::Request(gemini::write(steps, &mut notes))
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
        conversation: path.conversation.clone(),
        format: options.format,
        rendered,
        notes: notes.into_vec(path, cut),
        tokens: None,
        begins_at: cut.begins_at(path),
        turns: cut.turns_cut + path.turns.len().saturating_sub(cut.start),
        turns_cut: cut.turns_cut,
    })
}
