//! Turns as `session/update` notifications, for replays and for live sessions.
//!
//! Every chunk of a message has the id of its turn. A thought cannot be forked at; its id is
//! derived from its turn and position, so that it is the same in every replay and every fork.

use tine_core::json::Object;
use tine_core::{Body, Json, Role, TurnId};
use tine_engine::TurnView;
use tine_store::Content;

use crate::json_macro::json;
use crate::json_rpc;

/// The prefix of the ids of thoughts.
const THOUGHT: &str = "thought-";

/// The length of the preview of content that cannot be shown.
const PREVIEW: usize = 200;

/// The member of a turn's custom data that marks a placeholder result.
pub(crate) const SYNTHETIC: &str = "synthetic";

/// The update with a chunk of a user's message.
pub(crate) const USER_CHUNK: &str = "user_message_chunk";

/// The update with a chunk of the agent's message.
pub(crate) const AGENT_CHUNK: &str = "agent_message_chunk";

/// The update with a chunk of the agent's thoughts.
pub(crate) const THOUGHT_CHUNK: &str = "agent_thought_chunk";

/// Returns the id of a thought, which is a block of a turn.
pub(crate) fn thought_id(turn: TurnId, block: usize) -> String {
    format!("{THOUGHT}{turn}-{block}")
}

/// Returns whether this is the id of a thought.
pub(crate) fn is_thought(id: &str) -> bool {
    let Some((turn, block)) = id.strip_prefix(THOUGHT).and_then(|rest| rest.rsplit_once('-'))
    else {
        return false;
    };
    turn.parse::<TurnId>().is_ok() && block.parse::<usize>().is_ok()
}

/// Returns an update with a chunk of a message.
pub(crate) fn message_chunk(kind: &str, message: &str, content: Json) -> Json {
    json!({ "sessionUpdate": kind, "messageId": message, "content": content })
}

/// Returns a text content block.
pub(crate) fn text_content(text: &str) -> Json {
    json!({ "type": "text", "text": text })
}

/// Returns the updates that show a turn.
pub(crate) fn turn_updates(turn: &TurnView) -> Vec<Json> {
    let Content::Kept(body) = &turn.content else {
        let kind = if turn.role == Role::User { USER_CHUNK } else { AGENT_CHUNK };
        return vec![message_chunk(kind, &turn.id.to_string(), text_content("[erased]"))];
    };
    match turn.role {
        Role::Tool => vec![result(turn, body)],
        _ => blocks(body).enumerate().map(|(nth, it)| block(turn, nth, &it)).collect(),
    }
}

fn blocks(body: &Body) -> impl Iterator<Item = Json> {
    body.blocks().unwrap_or_default().into_iter()
}

fn block(turn: &TurnView, nth: usize, block: &Json) -> Json {
    let member = |name: &str| block.get(name).and_then(Json::as_str).unwrap_or_default();
    let id = turn.id.to_string();
    match (turn.role, member("type")) {
        (Role::Assistant, "tool-use") => call(member("id"), member("name"), block),
        (Role::Assistant, "plan") => plan(block),
        (Role::Assistant, "thinking") => {
            message_chunk(THOUGHT_CHUNK, &thought_id(turn.id, nth), text_content(member("text")))
        }
        (Role::Assistant, _) => message_chunk(AGENT_CHUNK, &id, content(block)),
        (Role::System, _) => {
            let mut shown = message_chunk(USER_CHUNK, &id, content(block));
            json_rpc::add_note(&mut shown, json!({ "role": Role::System.as_str() }));
            shown
        }
        _ => message_chunk(USER_CHUNK, &id, content(block)),
    }
}

/// Returns the update for a tool call, with the title, kind and locations that a recorded agent
/// gave.
fn call(id: &str, name: &str, block: &Json) -> Json {
    let mut shown: Object = [
        ("sessionUpdate", Json::from("tool_call")),
        ("toolCallId", id.into()),
        ("title", name.into()),
        ("status", "pending".into()),
        ("rawInput", block.get("parameters").cloned().into()),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), value))
    .collect();
    for name in ["title", "kind", "locations"] {
        if let Some(value) = block.at(&["acp", name]) {
            shown.insert(name, value.clone());
        }
    }
    Json::Object(shown)
}

fn plan(block: &Json) -> Json {
    let entries = block.get("entries").cloned().unwrap_or_else(|| json!([]));
    json!({ "sessionUpdate": "plan", "entries": entries })
}

/// Returns the update for the result of a call. A placeholder result counts as failed.
fn result(turn: &TurnView, body: &Body) -> Json {
    let custom = turn.metadata.custom_data.as_ref();
    let made_up = custom.and_then(|it| it.get(SYNTHETIC)).is_some();
    let reported = custom.and_then(|it| it.get("acp")?.get("status")?.as_str());
    let status = if made_up || reported == Some("failed") { "failed" } else { "completed" };
    let shown = |block: Json| match block.get("type").and_then(Json::as_str) {
        Some("diff") => block,
        _ => json!({ "type": "content", "content": content(&block) }),
    };
    json!({
        "sessionUpdate": "tool_call_update",
        "toolCallId": turn.tool_call_id.as_deref(),
        "status": status,
        "content": blocks(body).map(shown).collect::<Vec<_>>(),
    })
}

/// Returns a block unchanged if the protocol has such content, otherwise a text preview of it.
fn content(block: &Json) -> Json {
    let has = |names: &[&str]| {
        names.iter().all(|name| {
            let found = name.split('.').try_fold(block, |json, member| json.get(member));
            found.and_then(Json::as_str).is_some()
        })
    };
    let kind = block.get("type").and_then(Json::as_str).unwrap_or_default();
    let known = match kind {
        "text" => true,
        "image" | "audio" => has(&["data", "mimeType"]),
        "resource_link" => has(&["name", "uri"]),
        "resource" => {
            has(&["resource.uri", "resource.text"]) || has(&["resource.uri", "resource.blob"])
        }
        _ => false,
    };
    if known {
        return block.clone();
    }
    let content = block.get("text").and_then(Json::as_str).unwrap_or_default();
    text_content(tine_core::text::preview(&format!("[{kind}] {content}"), PREVIEW).trim_end())
}
