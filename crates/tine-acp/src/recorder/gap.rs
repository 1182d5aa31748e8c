//! The placeholder for content that is not recorded: because the agent's line is too long, or
//! because a line of either side breaks the rules of the strict reader.
//!
//! It stands where the content would have been, and is labelled `_meta.tine.gap`. For a line that
//! is too long, the client is shown the placeholder too; a line that breaks the rules is shown as
//! it came.

use tine_core::Json;
use tine_core::json::Object;

use crate::json_macro::json;
use crate::json_rpc::{self, RpcError};
use crate::session_updates::{AGENT_CHUNK, THOUGHT_CHUNK, USER_CHUNK, text_content};

/// Returns the id of a dropped request of the agent, which has to be answered.
pub(super) fn dropped_request_id(outline: &Json) -> Option<&Json> {
    let id = outline.get("id").filter(|id| !id.is_null());
    id.filter(|_| outline.get("method").is_some())
}

/// Returns the message that replaces a line that is too long, or `None` if nothing depends on it.
pub(super) fn replacement(outline: &Json, bytes: usize, most: usize) -> Option<Json> {
    if outline.get("method").is_none() {
        let id = outline.get("id")?;
        return Some(json_rpc::response(id, Err(RpcError::too_long(bytes, most))));
    }
    let session = outline.at(&["params", "sessionId"])?.as_str()?;
    let label = json!({ "bytes": bytes, "limit": most });
    let words = format!("[{bytes} bytes left out: the agent sent a line longer than {most} bytes]");
    let block = block(&words, &label);
    let update = outline.at(&["params", "update"]).cloned().unwrap_or_else(|| json!({}));
    let update = match update_with(update, block.clone(), &label) {
        Ok(update) => update,
        Err(_) => json!({ "sessionUpdate": AGENT_CHUNK, "content": block }),
    };
    let mut message = json_rpc::session_update(session, update);
    if let Some(params) = message.as_object_mut().and_then(|it| it.get_mut("params")) {
        json_rpc::add_note(params, json!({ "gap": label }));
    }
    Some(message)
}

/// Returns the update that turns are derived from in place of one that breaks a rule.
pub(super) fn unread_update(outline: &Json, rule: &str) -> Json {
    let update = outline.at(&["params", "update"]).cloned().unwrap_or_else(|| json!({}));
    match update_with(update, unread_block(rule), &label_of(rule)) {
        Ok(update) => update,
        // Of the other updates, only plans appear in turns.
        Err(update) if update.get("sessionUpdate") == Some(&"plan".into()) => {
            json!({ "sessionUpdate": AGENT_CHUNK, "content": unread_block(rule) })
        }
        Err(update) => update,
    }
}

/// Returns the block that replaces content that breaks a rule.
pub(super) fn unread_block(rule: &str) -> Json {
    let words =
        format!("[not recorded as content: {rule}; the recorded events have the original line]");
    block(&words, &label_of(rule))
}

/// Returns the label of a replaced update.
pub(super) fn label(update: &Json) -> Option<&Json> {
    update.at(&["_meta", "tine", "gap"])
}

/// Returns whether a message replaces a line.
pub(super) fn is_gap(message: &Json) -> bool {
    message.at(&["params", "_meta", "tine", "gap"]).is_some()
}

fn label_of(rule: &str) -> Json {
    json!({ "reason": rule })
}

fn block(words: &str, label: &Json) -> Json {
    let mut block = text_content(words);
    json_rpc::add_note(&mut block, json!({ "gap": label.clone() }));
    block
}

/// Replaces the content of an update by a block. Returns an update without content unchanged.
fn update_with(update: Json, block: Json, label: &Json) -> Result<Json, Json> {
    let kind = update.get("sessionUpdate").and_then(Json::as_str).unwrap_or_default();
    let content = match kind {
        USER_CHUNK | AGENT_CHUNK | THOUGHT_CHUNK => block,
        "tool_call" | "tool_call_update" => json!([{ "type": "content", "content": block }]),
        _ => return Err(update),
    };
    let mut update = update.as_object().cloned().unwrap_or_else(Object::new);
    update.insert("content", content);
    update.insert("_meta", json!({ "tine": { "gap": label.clone() } }));
    Ok(Json::Object(update))
}
