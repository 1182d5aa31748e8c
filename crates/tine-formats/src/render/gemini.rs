//! Gemini's `generateContent`: `systemInstruction` and `contents`.
//!
//! The roles `user` and `model` alternate, beginning with the user. Calls are `functionCall` parts;
//! the same number of `functionResponse` parts follows, named after their functions. Later system
//! turns are marked user messages. Newer models require a signature with the first call of a step:
//! the recorded one, or the one that is documented for calls of other models.

use tine_core::json::object;
use tine_core::{Json, Role};

use super::media::{Media, Source};
use super::notes::{BlockRef, Notes};
use super::tool_calls::{NO_OUTPUT, RequestStep, ToolResult};
use super::turn_parts::{Part, PartKind, ToolCall, TurnParts};
use super::{Format, alternating_roles};

/// The documented signature for calls that were recorded without one.
const NO_SIGNATURE: &str = "skip_thought_signature_validator";

struct Content {
    role: Role,
    parts: Vec<Json>,
    /// The last turn in it.
    at: BlockRef,
}

pub(super) fn write(steps: Vec<RequestStep>, notes: &mut Notes) -> Json {
    let (system, steps) = alternating_roles::leading_system(steps, notes);
    let mut contents: Vec<Content> = Vec::new();
    for step in steps {
        match step {
            RequestStep::Message(turn) => {
                let turn = alternating_roles::with_user_role(turn, notes);
                let (role, at) = (turn.role, BlockRef::turn(turn.turn_id));
                push(&mut contents, role, at, parts(turn, notes));
            }
            RequestStep::ToolCalls { calls, results } => {
                let at = BlockRef::turn(calls.turn_id);
                push(&mut contents, Role::Assistant, at, parts(calls, notes));
                push(&mut contents, Role::User, at, responses(results, notes));
            }
        }
    }
    if contents.first().is_some_and(|first| first.role == Role::Assistant) {
        let (role, at) = (Role::User, BlockRef::default());
        contents
            .insert(0, Content { role, parts: vec![text_part(alternating_roles::BEGINNING)], at });
        notes.added(at, "a user message", alternating_roles::FIRST_IS_USER);
    }
    if let Some(last) = contents.last().filter(|last| last.role == Role::Assistant) {
        notes.kept(last.at, "the last turn", alternating_roles::LAST_IS_ASSISTANT);
    }
    let contents = Json::Array(contents.into_iter().map(Content::into_json).collect());
    match system {
        Some(system) => {
            let system = object([("parts", Json::Array(vec![text_part(&system)]))]);
            object([("systemInstruction", system), ("contents", contents)])
        }
        None => object([("contents", contents)]),
    }
}

impl Content {
    fn into_json(self) -> Json {
        let role = if self.role == Role::Assistant { "model" } else { "user" };
        object([("role", role.into()), ("parts", Json::Array(self.parts))])
    }
}

fn text_part(text: &str) -> Json {
    object([("text", text.into())])
}

fn push(contents: &mut Vec<Content>, role: Role, at: BlockRef, parts: Vec<Json>) {
    if parts.is_empty() {
        return;
    }
    match contents.last_mut() {
        Some(last) if last.role == role => {
            last.parts.extend(parts);
            last.at = at;
        }
        _ => contents.push(Content { role, parts, at }),
    }
}

fn parts(turn: TurnParts, notes: &mut Notes) -> Vec<Json> {
    let own = turn.provider == Some(Format::Gemini);
    // A signature that was recorded with a thought belongs to the next part.
    let mut signature: Option<String> = None;
    let mut first_call = true;
    let mut written = Vec::with_capacity(turn.parts.len());
    for part in turn.parts {
        match part.kind {
            PartKind::Thinking { signature: found, .. } => {
                if own {
                    signature = found.or(signature);
                }
                notes.left_out(part.at, "thinking", "Gemini accepts only its signature");
            }
            PartKind::Call(call) => {
                let found = call.signature.clone().filter(|_| own).or_else(|| signature.take());
                let signature = match found {
                    None if first_call => {
                        let what = format!("a signature of the tool call `{}`", call.id);
                        let why = "newer models require one, and none was recorded";
                        notes.added(part.at, what, why);
                        Some(NO_SIGNATURE.to_owned())
                    }
                    found => found,
                };
                first_call = false;
                written.push(function_call(call, signature));
            }
            kind => written.extend(other_part(Part { at: part.at, kind }, notes)),
        }
    }
    written
}

/// Returns the form of a part other than a call or a thought.
fn other_part(part: Part, notes: &mut Notes) -> Option<Json> {
    if let Some(text) = part.as_text(notes) {
        return Some(text_part(&text));
    }
    let (json, why) = match &part.kind {
        PartKind::Media(media) => (media_part(media), "Gemini requires its media type"),
        _ => (None, "Gemini does not support it"),
    };
    if json.is_none()
        && let Some(what) = part.describe()
    {
        notes.left_out(part.at, what, why);
    }
    json
}

fn media_part(media: &Media) -> Option<Json> {
    let mime = media.mime.as_deref()?;
    match &media.source {
        Source::Data(data) => {
            let blob = object([("mimeType", mime.into()), ("data", data.as_str().into())]);
            Some(object([("inlineData", blob)]))
        }
        Source::Url(url) => {
            let file = object([("mimeType", mime.into()), ("fileUri", url.as_str().into())]);
            Some(object([("fileData", file)]))
        }
        Source::Text { .. } | Source::Link(_) => None,
    }
}

fn function_call(call: ToolCall, signature: Option<String>) -> Json {
    let function = object([
        ("id", call.wire_id.into()),
        ("name", call.name.into()),
        ("args", call.parameters),
    ]);
    match signature {
        Some(signature) => {
            object([("functionCall", function), ("thoughtSignature", signature.into())])
        }
        None => object([("functionCall", function)]),
    }
}

/// Returns the responses of a step, then the media in them.
fn responses(results: Vec<ToolResult>, notes: &mut Notes) -> Vec<Json> {
    let mut responses = Vec::with_capacity(results.len());
    let mut media = Vec::new();
    for result in results {
        let mut texts: Vec<String> = Vec::new();
        for part in result.parts {
            let at = part.at;
            let Some(json) = other_part(part, notes) else { continue };
            match json.get("text").and_then(Json::as_str) {
                Some(text) => texts.push(text.to_owned()),
                None => {
                    notes.changed(at, "media in a result", "it is a part after the responses");
                    media.push(json);
                }
            }
        }
        if texts.is_empty() {
            texts.push(NO_OUTPUT.to_owned());
        }
        let key = if result.is_error { "error" } else { "output" };
        let response = object([
            ("id", result.wire_id.into()),
            ("name", result.name.into()),
            ("response", object([(key, texts.join("\n\n").into())])),
        ]);
        responses.push(object([("functionResponse", response)]));
    }
    responses.extend(media);
    responses
}
