//! What stands for content that is not recorded: of a line of the agent's that is too long, and of
//! a line of either side that breaks the rules of the strict reader.
//!
//! It takes the place that the content would have had, so that the gap is where the content was.
//! Its label is `_meta.tine.gap`. Of a line that is too long the client is shown the gap as well; a
//! line that breaks the rules is shown as it came.

use tine_core::Json;
use tine_core::json::Object;

use crate::json::json;
use crate::show;
use crate::wire::{self, Refusal};

/// Returns the id of a request of the agent's that was dropped, to answer it.
pub(super) fn asked(outline: &Json) -> Option<&Json> {
    let id = outline.get("id").filter(|id| !id.is_null());
    id.filter(|_| outline.get("method").is_some())
}

/// Returns the message in the place of a line that is too long; `None` if nothing depends on it.
pub(super) fn too_long(outline: &Json, bytes: usize, most: usize) -> Option<Json> {
    if outline.get("method").is_none() {
        let id = outline.get("id")?;
        return Some(wire::answer(id, Err(Refusal::too_long(bytes, most))));
    }
    let session = outline.at(&["params", "sessionId"])?.as_str()?;
    let label = json!({ "bytes": bytes, "limit": most });
    let words =
        format!("[{bytes} bytes are left out here: the agent sent more than {most} in one line]");
    let block = block(&words, &label);
    let update = outline.at(&["params", "update"]).cloned().unwrap_or_else(|| json!({}));
    let update = match update_with(update, block.clone(), &label) {
        Ok(update) => update,
        Err(_) => json!({ "sessionUpdate": show::AGENT, "content": block }),
    };
    let mut message = wire::update(session, update);
    if let Some(params) = message.as_object_mut().and_then(|it| it.get_mut("params")) {
        wire::note(params, json!({ "gap": label }));
    }
    Some(message)
}

/// Returns the update to derive turns from in the place of one that breaks a rule.
pub(super) fn unread_update(outline: &Json, rule: &str) -> Json {
    let update = outline.at(&["params", "update"]).cloned().unwrap_or_else(|| json!({}));
    match update_with(update, unread_block(rule), &label_of(rule)) {
        Ok(update) => update,
        // Of the rest only plans have a place in a turn.
        Err(update) if update.get("sessionUpdate") == Some(&"plan".into()) => {
            json!({ "sessionUpdate": show::AGENT, "content": unread_block(rule) })
        }
        Err(update) => update,
    }
}

/// Returns the block in the place of content that breaks a rule.
pub(super) fn unread_block(rule: &str) -> Json {
    let words =
        format!("[not recorded as content: {rule}; the recorded events have the line as it came]");
    block(&words, &label_of(rule))
}

/// Returns the label of an update that stands for another.
pub(super) fn label(update: &Json) -> Option<&Json> {
    update.at(&["_meta", "tine", "gap"])
}

/// Returns whether a message stands for a line.
pub(super) fn is_one(message: &Json) -> bool {
    message.at(&["params", "_meta", "tine", "gap"]).is_some()
}

fn label_of(rule: &str) -> Json {
    json!({ "reason": rule })
}

fn block(words: &str, label: &Json) -> Json {
    let mut block = show::text(words);
    wire::note(&mut block, json!({ "gap": label.clone() }));
    block
}

/// Puts a block in the place of an update's content. An update that has none comes back.
fn update_with(update: Json, block: Json, label: &Json) -> Result<Json, Json> {
    let kind = update.get("sessionUpdate").and_then(Json::as_str).unwrap_or_default();
    let content = match kind {
        show::USER | show::AGENT | show::THINKING => block,
        "tool_call" | "tool_call_update" => json!([{ "type": "content", "content": block }]),
        _ => return Err(update),
    };
    let mut update = update.as_object().cloned().unwrap_or_else(Object::new);
    update.insert("content", content);
    update.insert("_meta", json!({ "tine": { "gap": label.clone() } }));
    Ok(Json::Object(update))
}
