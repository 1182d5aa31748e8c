//! Gemini's `generateContent`: `systemInstruction` and `contents`.
//!
//! Two roles, `user` and `model`, that alternate, the user's first. Calls are `functionCall`
//! parts; as many `functionResponse` parts follow at once, named after their functions. What the
//! system says later is the user's, marked as what it is. Newer models want a signature with the
//! first call of a step: the recorded one, or the one that is documented for calls that another
//! model made.

use tine_core::json::object;
use tine_core::{Json, Role};

use super::media::{Media, Source};
use super::notes::{BlockRef, Notes};
use super::tool_calls::{NO_OUTPUT, RequestStep, ToolResult};
use super::turn_parts::{Part, PartKind, ToolCall, TurnParts, labeled_summary};
use super::{Format, alternating};

/// Documented for histories whose calls come without a signature of Gemini's.
const NO_SIGNATURE: &str = "skip_thought_signature_validator";

const NO_FORM: &str = "Gemini does not support it";

struct Content {
    role: Role,
    parts: Vec<Json>,
    /// The turn that was added last.
    at: BlockRef,
}

pub(super) fn write(steps: Vec<RequestStep>, notes: &mut Notes) -> Json {
    let (system, steps) = alternating::leading_system(steps, notes);
    let mut contents: Vec<Content> = Vec::new();
    for step in steps {
        match step {
            RequestStep::Say(said) => {
                let said = alternating::system_as_user(said, notes);
                let (role, at) = (said.role, BlockRef::turn(said.turn));
                push(&mut contents, role, at, parts(said, notes));
            }
            RequestStep::Exchange { asks, answers } => {
                let at = BlockRef::turn(asks.turn);
                push(&mut contents, Role::Assistant, at, parts(asks, notes));
                push(&mut contents, Role::User, at, results(answers, notes));
            }
        }
    }
    if contents.first().is_some_and(|first| first.role == Role::Assistant) {
        let (role, at) = (Role::User, BlockRef::default());
        contents.insert(0, Content { role, parts: vec![text(alternating::BEGINNING)], at });
        notes.added(at, "a user message", alternating::FIRST_IS_USER);
    }
    if let Some(last) = contents.last().filter(|last| last.role == Role::Assistant) {
        notes.kept(last.at, "the last turn", alternating::LAST_IS_ASSISTANT);
    }
    let contents = Json::Array(contents.into_iter().map(Content::into_json).collect());
    match system {
        Some(system) => {
            let system = object([("parts", Json::Array(vec![text(&system)]))]);
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

fn text(text: &str) -> Json {
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

fn parts(said: TurnParts, notes: &mut Notes) -> Vec<Json> {
    let own = said.provider == Some(Format::Gemini);
    // A signature that was recorded with a thought belongs to the part behind it.
    let mut signature: Option<String> = None;
    let mut first_call = true;
    let mut written = Vec::with_capacity(said.parts.len());
    for part in said.parts {
        match part.what {
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
            what => {
                let part = Part { at: part.at, what };
                if let Some(json) = plain(part, notes) {
                    written.push(json);
                }
            }
        }
    }
    written
}

/// A part that is no call and no thought.
fn plain(part: Part, notes: &mut Notes) -> Option<Json> {
    match part.what {
        PartKind::Text(said) => Some(text(&said)),
        PartKind::Summary(said) => Some(text(&labeled_summary(&said))),
        PartKind::Media(media) => {
            if let Some(said) = media.as_text() {
                notes.changed(part.at, media.describe(), "it is written as text");
                return Some(text(&said));
            }
            let json = attached(&media);
            if json.is_none() {
                notes.left_out(part.at, media.describe(), "Gemini requires its media type");
            }
            json
        }
        PartKind::Other { kind, .. } => {
            notes.left_out(part.at, format!("a block of type `{kind}`"), NO_FORM);
            None
        }
        PartKind::Thinking { .. } => {
            notes.left_out(part.at, "thinking", NO_FORM);
            None
        }
        // Only the assistant calls, and its calls are written above.
        PartKind::Call(_) => None,
    }
}

fn attached(media: &Media) -> Option<Json> {
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

/// The responses of a step, then whatever of them is not text.
fn results(answers: Vec<ToolResult>, notes: &mut Notes) -> Vec<Json> {
    let mut responses = Vec::with_capacity(answers.len());
    let mut media = Vec::new();
    for answer in answers {
        let mut texts: Vec<String> = Vec::new();
        for part in answer.parts {
            let at = part.at;
            let Some(json) = plain(part, notes) else { continue };
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
        let key = if answer.is_error { "error" } else { "output" };
        let response = object([
            ("id", answer.wire_id.into()),
            ("name", answer.name.into()),
            ("response", object([(key, texts.join("\n\n").into())])),
        ]);
        responses.push(object([("functionResponse", response)]));
    }
    responses.extend(media);
    responses
}
