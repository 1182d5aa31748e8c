//! Turns as updates: what a client is shown of a session, in a replay and while it goes on.
//!
//! A message's id is its turn's id, on every chunk. A thought is no message that could be forked
//! at, and its id is made of the turn's and its place there, so that it is the same in every
//! replay and in every fork.

use tine_core::json::Object;
use tine_core::{Body, Json, Role, TurnId};
use tine_engine::TurnView;
use tine_store::Content;

use crate::json::json;
use crate::wire;

/// How the ids of thoughts begin.
const THOUGHT: &str = "thought-";

/// Characters of a text that stands for what cannot be shown.
const PREVIEW: usize = 200;

/// How results that were made up are marked, in the custom data of their turns.
pub(crate) const SYNTHETIC: &str = "synthetic";

/// What a person says.
pub(crate) const USER: &str = "user_message_chunk";

/// What the agent says.
pub(crate) const AGENT: &str = "agent_message_chunk";

/// What the agent thinks.
pub(crate) const THINKING: &str = "agent_thought_chunk";

/// The id of a thought: the block of a turn that holds it.
pub(crate) fn thought_id(turn: TurnId, block: usize) -> String {
    format!("{THOUGHT}{turn}-{block}")
}

/// Whether an id is one of a thought.
pub(crate) fn is_thought(id: &str) -> bool {
    let Some((turn, block)) = id.strip_prefix(THOUGHT).and_then(|rest| rest.rsplit_once('-'))
    else {
        return false;
    };
    turn.parse::<TurnId>().is_ok() && block.parse::<usize>().is_ok()
}

/// A piece of a message.
pub(crate) fn chunk(kind: &str, message: &str, content: Json) -> Json {
    json!({ "sessionUpdate": kind, "messageId": message, "content": content })
}

/// A text as content.
pub(crate) fn text(text: &str) -> Json {
    json!({ "type": "text", "text": text })
}

/// A turn as the updates that show it.
pub(crate) fn turn(turn: &TurnView) -> Vec<Json> {
    let Content::Kept(body) = &turn.content else {
        let kind = if turn.role == Role::User { USER } else { AGENT };
        return vec![chunk(kind, &turn.id.to_string(), text("[erased]"))];
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
            chunk(THINKING, &thought_id(turn.id, nth), text(member("text")))
        }
        (Role::Assistant, _) => chunk(AGENT, &id, content(block)),
        (Role::System, _) => {
            let mut shown = chunk(USER, &id, content(block));
            wire::note(&mut shown, json!({ "role": Role::System.as_str() }));
            shown
        }
        _ => chunk(USER, &id, content(block)),
    }
}

/// A call, open until its result is shown. What a recorded agent showed of it is shown again.
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
        if let Some(told) = block.at(&["acp", name]) {
            shown.insert(name, told.clone());
        }
    }
    Json::Object(shown)
}

fn plan(block: &Json) -> Json {
    let entries = block.get("entries").cloned().unwrap_or_else(|| json!([]));
    json!({ "sessionUpdate": "plan", "entries": entries })
}

/// The result of a call. One that was made up, because nobody gave any, is a failure.
fn result(turn: &TurnView, body: &Body) -> Json {
    let custom = turn.metadata.custom_data.as_ref();
    let made_up = custom.and_then(|it| it.get(SYNTHETIC)).is_some();
    let told = custom.and_then(|it| it.get("acp")?.get("status")?.as_str());
    let status = if made_up || told == Some("failed") { "failed" } else { "completed" };
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

/// A block as it is, where the protocol has blocks like it; else a text that tells of it.
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
    let told = block.get("text").and_then(Json::as_str).unwrap_or_default();
    text(tine_core::text::preview(&format!("[{kind}] {told}"), PREVIEW).trim_end())
}
