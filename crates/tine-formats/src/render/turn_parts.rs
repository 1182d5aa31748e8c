//! Turns as parts that no provider has a say in yet.
//!
//! A block of a known type becomes a [`What`] of its own; all others stay what they are, for
//! each provider to pass on or to report. The root comes first, as something that the system
//! said.

use tine_api::{PathPage, TurnView};
use tine_core::json::Object;
use tine_core::{Json, Role, Status, TurnId};
use tine_store::Content;

use super::media::{self, Media};
use super::notes::{BlockRef, Notes};
use super::token_budget::PathCut;
use super::{Format, Options, RenderError};

/// Everything that is to be rendered, in order.
pub(super) struct ParsedTurns {
    pub said: Vec<TurnParts>,
}

/// One turn, or the root.
pub(super) struct TurnParts {
    /// None for the root.
    pub turn: Option<TurnId>,
    pub role: Role,
    /// Whether it goes on where the one before it ends: two parts of one split text.
    pub joins: bool,
    pub parts: Vec<Part>,
    /// The call that a tool turn answers.
    pub answers: Option<String>,
    /// Whether that call failed.
    pub failed: bool,
    /// Whose model said it, where that is known.
    pub provider: Option<Format>,
}

/// One block of a turn.
pub(super) struct Part {
    pub at: BlockRef,
    pub what: PartKind,
}

pub(super) enum PartKind {
    Text(String),
    Thinking {
        text: String,
        signature: Option<String>,
    },
    Call(ToolCall),
    Media(Media),
    /// The text that stands for other turns.
    Summary(String),
    /// Of a type that is not known here.
    Other {
        kind: String,
        json: Json,
    },
}

pub(super) struct ToolCall {
    /// As the path has it.
    pub id: String,
    /// As the provider gets it: unique, and in the letters it takes.
    pub wire_id: String,
    pub name: String,
    pub parameters: Json,
    /// What a provider wants to see again with the call.
    pub signature: Option<String>,
}

impl TurnParts {
    /// Something that nobody said and a provider needs.
    pub(super) fn synthetic(turn: Option<TurnId>, role: Role, what: PartKind) -> Self {
        let parts = vec![Part { at: BlockRef::turn(turn), what }];
        TurnParts { turn, role, joins: false, parts, answers: None, failed: false, provider: None }
    }

    pub(super) fn is_text(&self) -> bool {
        self.parts.iter().all(|part| matches!(part.what, PartKind::Text(_)))
    }

    pub(super) fn has_calls(&self) -> bool {
        self.parts.iter().any(|part| matches!(part.what, PartKind::Call(_)))
    }
}

/// How a summary is told from what was said.
pub(super) fn labeled_summary(text: &str) -> String {
    format!("[Summary of earlier turns]\n\n{text}")
}

/// The text of a `summary` block.
pub(crate) fn summary_text(block: &Json) -> Option<&str> {
    ["text", "summary", "content"].iter().find_map(|name| block.get(name)).and_then(Json::as_str)
}

pub(super) fn read(
    path: &PathPage,
    options: &Options<'_>,
    cut: &PathCut,
    notes: &mut Notes,
) -> Result<ParsedTurns, RenderError> {
    let mut said = Vec::new();
    if options.system {
        match &path.root {
            Some(root) => {
                if let Some(prompt) = &root.system_prompt {
                    said.push(TurnParts::synthetic(
                        None,
                        Role::System,
                        PartKind::Text(prompt.clone()),
                    ));
                }
            }
            None => notes.left_out(BlockRef::default(), "the system prompt", "it is purged"),
        }
    }
    cut.note(path, notes);
    for moved in &cut.summaries {
        said.push(TurnParts::synthetic(
            Some(moved.turn),
            Role::User,
            PartKind::Summary(moved.text.clone()),
        ));
    }
    for (index, turn) in path.turns.iter().enumerate().skip(cut.start) {
        let before = index.checked_sub(1).filter(|_| index > cut.start);
        let before = before.map(|before| path.turns[before].id);
        said.extend(read_turn(turn, before, cut, notes)?);
    }
    Ok(ParsedTurns { said })
}

fn read_turn(
    turn: &TurnView,
    before: Option<TurnId>,
    cut: &PathCut,
    notes: &mut Notes,
) -> Result<Option<TurnParts>, RenderError> {
    let place = BlockRef::turn(Some(turn.id));
    let Content::Kept(body) = &turn.content else {
        notes.left_out(place, format!("the {} turn", turn.role.as_str()), "it is purged");
        return Ok(None);
    };
    if turn.status == Status::Partial {
        notes.kept(place, "a partial turn", "its stream was interrupted");
    }
    let blocks = body.blocks().map_err(|error| RenderError::Corrupt { turn: turn.id, error })?;
    let mut parts = Vec::with_capacity(blocks.len());
    for (block, json) in blocks.into_iter().enumerate() {
        let at = BlockRef { block: Some(block), ..place };
        if cut.has_moved(turn.id, block) {
            continue;
        }
        parts.push(Part { at, what: read_block(json, at, notes) });
    }
    if parts.is_empty() {
        return Ok(None);
    }
    let info = turn.metadata.source_info.as_ref();
    Ok(Some(TurnParts {
        turn: Some(turn.id),
        role: turn.role,
        joins: turn.continues.is_some() && turn.continues == before,
        parts,
        answers: turn.tool_call_id.clone(),
        failed: info.and_then(|info| info.get("is_error")).and_then(Json::as_bool) == Some(true),
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

/// Whose model wrote a turn, by the model's name or the provider's.
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
