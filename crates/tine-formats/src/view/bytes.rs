//! Paths and windows as bytes that are ready to send.
//!
//! They are by far the largest answers. Made through [`Path`](super::Path) and
//! [`Window`](super::Window), every turn would be copied twice and given a dozen small strings on
//! its way; here each field is written once, where it goes.
//!
//! Invariant: the bytes are those that serde writes for the same answer
//! (`a_path_has_the_same_bytes_either_way`).

use tine_core::json::write_canonical_string;
use tine_core::{Digest, ProjectId, TurnId};
use tine_engine::{PathPage, TurnView, Window};
use tine_store::Content;

use super::{Root, presence};

/// The answer to a path.
pub fn path(project: &ProjectId, page: &PathPage) -> Vec<u8> {
    let mut out = begin(project, page.conversation.as_str(), &page.turns);
    out.push_str(",\"root\":");
    match page.root.clone().map(Root::from) {
        Some(root) => out.push_str(&serde_json::to_string(&root).expect("a root is JSON")),
        None => out.push_str("null"),
    }
    out.push_str(",\"to\":");
    id(&mut out, page.to.as_ref());
    turns(&mut out, &page.turns);
    out.push_str(",\"next\":");
    match &page.next {
        Some(next) => write_canonical_string(&mut out, next),
        None => out.push_str("null"),
    }
    out.push('}');
    out.into_bytes()
}

/// The answer to a window.
pub fn window(project: &ProjectId, window: &Window) -> Vec<u8> {
    let mut out = begin(project, window.conversation.as_str(), &window.turns);
    turns(&mut out, &window.turns);
    for (name, value) in [
        ("focus", window.focus.to_string()),
        ("more_before", window.more_before.to_string()),
        ("more_after", window.more_after.to_string()),
    ] {
        out.push_str(",\"");
        out.push_str(name);
        out.push_str("\":");
        out.push_str(&value);
    }
    out.push('}');
    out.into_bytes()
}

fn begin(project: &ProjectId, conversation: &str, turns: &[TurnView]) -> String {
    let length = |turn: &TurnView| match &turn.content {
        Content::Kept(body) => body.stored_len() + body.stored_len() / 16,
        Content::Purged(_) => 0,
    };
    let content: usize = turns.iter().map(length).sum();
    let mut out = String::with_capacity(content + 640 * turns.len() + 512);
    out.push_str("{\"project_id\":");
    write_canonical_string(&mut out, project.as_str());
    out.push_str(",\"conversation_id\":");
    write_canonical_string(&mut out, conversation);
    out
}

fn turns(out: &mut String, turns: &[TurnView]) {
    out.push_str(",\"turns\":[");
    for (index, one) in turns.iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        turn(out, one);
    }
    out.push(']');
}

fn turn(out: &mut String, turn: &TurnView) {
    out.push_str("{\"conversation_id\":");
    write_canonical_string(out, turn.conversation.as_str());
    out.push_str(",\"turn_id\":");
    id(out, Some(&turn.id));
    out.push_str(",\"turn_hash\":");
    digest(out, &turn.hash.0);
    out.push_str(",\"parent_turn_hash\":");
    match &turn.parent_hash {
        Some(hash) => digest(out, &hash.0),
        None => out.push_str("null"),
    }
    out.push_str(",\"parent_id\":");
    id(out, turn.parent.as_ref());
    out.push_str(",\"depth\":");
    out.push_str(&turn.depth.to_string());
    out.push_str(",\"role\":\"");
    out.push_str(turn.role.as_str());
    out.push_str("\",\"content\":");
    match &turn.content {
        Content::Kept(body) => body.write_blocks(out),
        Content::Purged(_) => out.push_str("null"),
    }
    if let Some(call) = &turn.tool_call_id {
        out.push_str(",\"tool_call_id\":");
        write_canonical_string(out, call);
    }
    out.push_str(",\"created_at\":\"");
    turn.created_at.write(out);
    out.push_str("\",\"status\":\"");
    out.push_str(turn.status.as_str());
    out.push_str("\",\"metadata\":");
    match turn.metadata.is_empty() {
        true => out.push_str("{}"),
        false => turn.metadata.to_json().write_canonical(out),
    }
    for (name, from) in [
        ("edited_from", &turn.origin.edited_from),
        ("derived_from", &turn.origin.derived_from),
        ("part_of", &turn.origin.part_of),
        ("continues", &turn.continues),
    ] {
        if from.is_some() {
            out.push_str(",\"");
            out.push_str(name);
            out.push_str("\":");
            id(out, from.as_ref());
        }
    }
    if let Some(slot) = &turn.origin.slot {
        out.push_str(",\"slot\":{\"turn_id\":");
        write_canonical_string(out, &slot.turn_id);
        out.push_str(",\"part\":");
        out.push_str(&slot.part.to_string());
        out.push('}');
    }
    out.push_str(",\"presence\":\"");
    out.push_str(presence(turn.presence));
    out.push('"');
    if let Content::Purged(left) = &turn.content {
        out.push_str(",\"purged\":true,\"message_digest\":");
        digest(out, left);
    }
    out.push('}');
}

fn id(out: &mut String, id: Option<&TurnId>) {
    match id {
        Some(id) => {
            out.push('"');
            id.write(out);
            out.push('"');
        }
        None => out.push_str("null"),
    }
}

fn digest(out: &mut String, digest: &Digest) {
    out.push('"');
    digest.write(out);
    out.push('"');
}
