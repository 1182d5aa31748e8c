//! What stands for a line of the agent's that is too long: a message of the same kind which says
//! that there was one, and how long it was.
//!
//! It goes the way that the line would have gone, so that the gap is shown where it is, and is
//! recorded where it is. Its label is `_meta.tine.gap`.

use serde_json::{Value, json};

use crate::show;
use crate::wire::{self, Refusal};

/// Who is to be told that a request of the agent's was dropped: the id of the request.
pub(super) fn asked(outline: &Value) -> Option<&Value> {
    let id = outline.get("id").filter(|id| !id.is_null());
    id.filter(|_| outline.get("method").is_some())
}

/// The message in the place of a line, by what is known of that; `None` if nobody would miss it.
pub(super) fn instead(outline: Value, bytes: usize, most: usize) -> Option<Value> {
    if outline.get("method").is_none() {
        let id = outline.get("id")?;
        return Some(wire::answer(id, Err(Refusal::too_long(bytes, most))));
    }
    let session = outline.pointer("/params/sessionId")?.as_str()?;
    let label = json!({ "tine": { "gap": { "bytes": bytes, "limit": most } } });
    let words =
        format!("[{bytes} bytes are left out here: the agent sent more than {most} in one line]");
    let mut block = show::text(&words);
    block["_meta"] = label.clone();
    let mut update = outline.pointer("/params/update").cloned().unwrap_or_else(|| json!({}));
    match update.get("sessionUpdate").and_then(Value::as_str) {
        Some(show::USER | show::AGENT | show::THINKING) => update["content"] = block,
        Some("tool_call" | "tool_call_update") => {
            update["content"] = json!([{ "type": "content", "content": block }]);
        }
        _ => update = json!({ "sessionUpdate": show::AGENT, "content": block }),
    }
    let mut message = wire::update(session, update);
    message["params"]["_meta"] = label;
    Some(message)
}

/// Whether a message stands for a line.
pub(super) fn is_one(message: &Value) -> bool {
    message.pointer("/params/_meta/tine/gap").is_some()
}
