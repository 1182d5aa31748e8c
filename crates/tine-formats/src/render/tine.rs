//! Tine's own form: canonical messages, as an append takes them.

use tine_api::{PathPage, TurnView};
use tine_core::json::{Object, object};
use tine_core::{Json, Status};
use tine_store::Content;

use super::notes::{BlockRef, Notes};
use super::token_budget::PathCut;
use super::{Options, RenderError};

pub(super) fn write(
    path: &PathPage,
    options: &Options<'_>,
    cut: &PathCut,
    notes: &mut Notes,
) -> Result<Json, RenderError> {
    let mut messages = Vec::new();
    let prompt = path.root.as_ref().and_then(|root| root.system_prompt.as_deref());
    if let Some(prompt) = prompt.filter(|_| options.system) {
        messages.push(object([("role", "system".into()), ("content", prompt.into())]));
    }
    for moved in &cut.summaries {
        let content = Json::Array(vec![moved.json.clone()]);
        messages.push(object([("role", "user".into()), ("content", content)]));
    }
    for turn in path.turns.iter().skip(cut.start) {
        messages.extend(message(turn, cut, notes)?);
    }
    Ok(object([("messages", Json::Array(messages))]))
}

/// A turn as a message; nothing, when all that it says was erased or moved to the front.
fn message(turn: &TurnView, cut: &PathCut, notes: &mut Notes) -> Result<Option<Json>, RenderError> {
    let Content::Kept(body) = &turn.content else {
        let what = format!("the {} turn", turn.role.as_str());
        notes.left_out(BlockRef::turn(Some(turn.id)), what, "it is purged");
        return Ok(None);
    };
    let blocks = body.blocks().map_err(|error| RenderError::Corrupt { turn: turn.id, error })?;
    let kept = blocks.into_iter().enumerate().filter(|(block, _)| !cut.has_moved(turn.id, *block));
    let content: Vec<Json> = kept.map(|(_, json)| json).collect();
    if content.is_empty() {
        return Ok(None);
    }
    let mut members = Object::new();
    members.insert("role", turn.role.as_str().into());
    members.insert("content", Json::Array(content));
    members.insert("created_at", turn.created_at.to_string().into());
    if let Some(call) = &turn.tool_call_id {
        members.insert("tool_call_id", call.as_str().into());
    }
    if turn.status == Status::Partial {
        members.insert("status", turn.status.as_str().into());
    }
    if !turn.metadata.is_empty() {
        members.insert("metadata", turn.metadata.to_json());
    }
    Ok(Some(Json::Object(members)))
}
