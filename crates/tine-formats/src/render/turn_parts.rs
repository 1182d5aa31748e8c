//! Reads turns as parts, before any provider's rules apply.
//!
//! A block of a known type becomes a [`PartKind`] of its own; any other block is kept as it is, for
//! each provider to pass on or report. The root comes first, as a system turn.

use std::borrow::Cow;

use tine_api::{PathPage, TurnView};
use tine_core::json::{Object, object};
use tine_core::{Json, Role, Status, TurnId};
use tine_store::Content;

use super::media::{self, Media};
use super::notes::{BlockRef, Notes};
use super::token_budget::PathCut;
use super::{Format, Options, RenderError};

/// A turn, or the root.
pub(super) struct TurnParts {
    /// `None` for the root.
    pub turn_id: Option<TurnId>,
    pub role: Role,
    /// Whether the turn before is the first half of the same split turn.
    pub continues_previous: bool,
    pub parts: Vec<Part>,
    /// The call that a tool turn answers.
    pub tool_call_id: Option<String>,
    /// Whether that call failed.
    pub is_error: bool,
    /// The provider whose model wrote the turn, if known.
    pub provider: Option<Format>,
}

/// A block of a turn.
pub(super) struct Part {
    pub at: BlockRef,
    pub kind: PartKind,
}

pub(super) enum PartKind {
    Text(String),
    Thinking {
        text: String,
        signature: Option<String>,
    },
    Call(ToolCall),
    Media(Media),
    /// A text that replaces earlier turns.
    Summary(String),
    /// A block of an unknown type.
    Other {
        kind: String,
        json: Json,
    },
}

pub(super) struct ToolCall {
    /// The id on the path.
    pub id: String,
    /// The id for the provider: unique, and in characters that it accepts.
    pub wire_id: String,
    pub name: String,
    pub parameters: Json,
    /// A signature that the provider expects back with the call.
    pub signature: Option<String>,
}

impl TurnParts {
    /// Creates a turn that is not on the path.
    pub(super) fn synthetic(turn_id: Option<TurnId>, role: Role, kind: PartKind) -> Self {
        TurnParts {
            turn_id,
            role,
            continues_previous: false,
            parts: vec![Part { at: BlockRef::turn(turn_id), kind }],
            tool_call_id: None,
            is_error: false,
            provider: None,
        }
    }

    pub(super) fn is_text(&self) -> bool {
        self.parts.iter().all(|part| matches!(part.kind, PartKind::Text(_)))
    }

    pub(super) fn has_calls(&self) -> bool {
        self.parts.iter().any(|part| matches!(part.kind, PartKind::Call(_)))
    }
}

impl Part {
    /// Returns the text of a part that every provider takes as text.
    pub(super) fn as_text(&self, notes: &mut Notes) -> Option<Cow<'_, str>> {
        match &self.kind {
            PartKind::Text(text) => Some(Cow::Borrowed(text)),
            PartKind::Summary(text) => Some(Cow::Owned(labeled_summary(text))),
            PartKind::Media(media) => {
                let text = media.as_text()?;
                notes.changed(self.at, media.describe(), "it is written as text");
                Some(Cow::Owned(text))
            }
            _ => None,
        }
    }

    /// Names the part in a note that it is left out; `None` for calls, which are written apart.
    pub(super) fn describe(&self) -> Option<String> {
        match &self.kind {
            PartKind::Text(_) | PartKind::Summary(_) => Some("a text".to_owned()),
            PartKind::Thinking { .. } => Some("thinking".to_owned()),
            PartKind::Media(media) => Some(media.describe()),
            PartKind::Other { kind, .. } => Some(format!("a block of type `{kind}`")),
            PartKind::Call(_) => None,
        }
    }
}

/// Labels the text of a summary, so that a model does not take it for a message.
pub(super) fn labeled_summary(text: &str) -> String {
    format!("[Summary of earlier turns]\n\n{text}")
}

pub(crate) fn summary_text(block: &Json) -> Option<&str> {
    ["text", "summary", "content"].iter().find_map(|name| block.get(name)).and_then(Json::as_str)
}

/// Returns a text as a block of a request.
pub(super) fn text_block(text: &str) -> Json {
    object([("type", "text".into()), ("text", text.into())])
}

/// Returns the text if it is the only block, or else the blocks.
pub(super) fn text_or_blocks(blocks: Vec<Json>) -> Json {
    match blocks.as_slice() {
        [only] if only.get("type").and_then(Json::as_str) == Some("text") => {
            only.get("text").cloned().unwrap_or(Json::Null)
        }
        _ => Json::Array(blocks),
    }
}

/// Reads the turns that a cut leaves of a path.
pub(super) fn read(
    path: &PathPage,
    options: &Options<'_>,
    cut: &PathCut,
    notes: &mut Notes,
) -> Result<Vec<TurnParts>, RenderError> {
    let mut turns = Vec::new();
    if options.system {
        match &path.root {
            Some(root) => turns.extend(
                root.system_prompt
                    .clone()
                    .map(|prompt| TurnParts::synthetic(None, Role::System, PartKind::Text(prompt))),
            ),
            None => notes.left_out(BlockRef::default(), "the system prompt", "it is purged"),
        }
    }
    cut.note(path, notes);
    for moved in &cut.summaries {
        let turn_id = Some(path.turns[moved.turn].id);
        let summary = PartKind::Summary(moved.text.clone());
        turns.push(TurnParts::synthetic(turn_id, Role::User, summary));
    }
    for (index, turn) in path.turns.iter().enumerate().skip(cut.start) {
        let before = index.checked_sub(1).filter(|_| index > cut.start);
        let before = before.map(|before| path.turns[before].id);
        turns.extend(read_turn(turn, index, before, cut, notes)?);
    }
    Ok(turns)
}

fn read_turn(
    turn: &TurnView,
    index: usize,
    before: Option<TurnId>,
    cut: &PathCut,
    notes: &mut Notes,
) -> Result<Option<TurnParts>, RenderError> {
    let at = BlockRef::turn(Some(turn.id));
    let Content::Kept(body) = &turn.content else {
        notes.left_out(at, format!("the {} turn", turn.role.as_str()), "it is purged");
        return Ok(None);
    };
    if turn.status == Status::Partial {
        notes.kept(at, "a partial turn", "its stream was interrupted");
    }
    let blocks = body.blocks().map_err(|error| RenderError::Corrupt { turn: turn.id, error })?;
    let mut parts = Vec::with_capacity(blocks.len());
    for (block, json) in blocks.into_iter().enumerate() {
        let at = BlockRef { block: Some(block), ..at };
        if cut.is_moved(index, block) {
            continue;
        }
        parts.push(Part { at, kind: read_block(json, at, notes) });
    }
    if parts.is_empty() {
        return Ok(None);
    }
    let info = turn.metadata.source_info.as_ref();
    Ok(Some(TurnParts {
        turn_id: Some(turn.id),
        role: turn.role,
        continues_previous: turn.continues.is_some() && turn.continues == before,
        parts,
        tool_call_id: turn.tool_call_id.clone(),
        is_error: info.and_then(|info| info.get("is_error")).and_then(Json::as_bool) == Some(true),
        provider: info.and_then(provider),
    }))
}

fn read_block(json: Json, at: BlockRef, notes: &mut Notes) -> PartKind {
    let member = |name: &str| json.get(name).and_then(Json::as_str).map(str::to_owned);
    let kind = member("type").unwrap_or_default();
    let (what, known): (PartKind, &[&str]) = match kind.as_str() {
        "text" => (PartKind::Text(member("text").unwrap_or_default()), &["text"]),
        "thinking" => {
            let text = member("text").unwrap_or_default();
            (PartKind::Thinking { text, signature: member("signature") }, &["text", "signature"])
        }
        "tool-use" => {
            let signatures = ["signature", "thought_signature", "thoughtSignature"];
            let call = ToolCall {
                id: member("id").unwrap_or_default(),
                wire_id: String::new(),
                name: member("name").unwrap_or_default(),
                parameters: json.get("parameters").cloned().unwrap_or(Object::new().into()),
                signature: signatures.iter().find_map(|name| member(name)),
            };
            let known =
                &["id", "name", "parameters", "signature", "thought_signature", "thoughtSignature"];
            (PartKind::Call(call), known)
        }
        "summary" if summary_text(&json).is_some() => {
            return PartKind::Summary(summary_text(&json).unwrap_or_default().to_owned());
        }
        _ => {
            return match media::read(&kind, &json) {
                Some(media) => PartKind::Media(media),
                None => PartKind::Other { kind, json },
            };
        }
    };
    let is_known = |name: &&str| *name == "type" || known.contains(name);
    let extra: Vec<&str> =
        json.as_object().map_or(Vec::new(), |it| it.keys().filter(|key| !is_known(key)).collect());
    if !extra.is_empty() {
        let fields = format!("the fields {} of a {kind} block", extra.join(", "));
        notes.left_out(at, fields, "only Tine's own format has them");
    }
    what
}

/// Returns the provider whose model wrote a turn, by the name of the model or the provider.
fn provider(source_info: &Json) -> Option<Format> {
    let member = |name| source_info.get(name).and_then(Json::as_str).map(str::to_lowercase);
    let model = member("model").unwrap_or_default();
    // Routers name models `anthropic/claude-…`.
    let model = model.rsplit('/').next().unwrap_or_default();
    let by_model = [("claude", Format::Anthropic), ("gemini", Format::Gemini)];
    let openai = ["gpt", "o1", "o3", "o4", "chatgpt", "codex"];
    let provider = member("provider").unwrap_or_default();
    let by_provider = [
        ("anthropic", Format::Anthropic),
        ("gemini", Format::Gemini),
        ("google", Format::Gemini),
        ("openai", Format::OpenAi),
    ];
    by_model
        .iter()
        .find(|(name, _)| model.starts_with(name))
        .or_else(|| by_provider.iter().find(|(name, _)| provider.contains(name)))
        .map(|(_, format)| *format)
        .or_else(|| openai.iter().any(|name| model.starts_with(name)).then_some(Format::OpenAi))
}
