//! Encodes records as JSON.
//!
//! An optional key is absent if it has no value; a key that can be `null` is always present. So each
//! record has exactly one form.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use tine_core::hash::to_hex;
use tine_core::json::{self, MAX_DEPTH, Object};
use tine_core::{Digest, Json, TurnHash, TurnId};
use tine_engine::BundleRecord;
use tine_store::{
    Content, DerivedFrom, Detail, Family, HiddenBy, Idempotency, Operation, TurnOrigin, Visibility,
};

use super::error::Fault;
use super::{FORMAT, VERSION, Written};

/// Returns the first line.
pub(super) fn header() -> Json {
    json::object([("format", FORMAT.into()), ("version", VERSION.into())])
}

/// Returns a turn that a delta refers to but does not contain.
pub(super) fn known(turn: TurnId, hash: TurnHash) -> Json {
    json::object([("record", "known".into()), ("turn_id", text(&turn)), ("turn_hash", text(&hash))])
}

/// Returns the last line.
pub(super) fn end(written: &Written) -> Json {
    json::object([
        ("record", "end".into()),
        ("conversations", written.conversations.into()),
        ("turns", written.turns.into()),
        ("operations", written.operations.into()),
        ("sha256", written.digest.to_hex().into()),
    ])
}

/// Returns one record. The link is the hash of the record that a turn or an operation follows.
pub(super) fn record(record: &BundleRecord, link: Option<Digest>) -> Result<Json, Fault> {
    let mut line = Object::new();
    line.insert("record", name(record).into());
    match record {
        BundleRecord::Conversation(conversation) => {
            line.insert("project_id", conversation.project.as_str().into());
            line.insert("conversation_id", conversation.id.as_str().into());
            line.insert("root_hash", text(&conversation.root_hash));
            match &conversation.root {
                Some(root) => {
                    line.insert("system_prompt", root.system_prompt.clone().into());
                    line.insert("config", root.config.clone());
                }
                None => {
                    line.insert("purged", true.into());
                }
            }
            optional(&mut line, "title", conversation.title.clone());
            line.insert("metadata", conversation.metadata.clone());
            line.insert("created_at", text(&conversation.created_at));
            optional(&mut line, "derived_from", conversation.derived_from.as_ref().map(derivation));
            let archived = conversation.visibility == Visibility::Archived;
            line.insert("archived", archived.into());
        }
        BundleRecord::Turn { parent, turn } => {
            line.insert("turn_id", text(&turn.id));
            line.insert("turn_hash", text(&turn.hash));
            line.insert("parent_id", parent.map(|id| id.to_string()).into());
            line.insert("parent_turn_hash", link.map(|digest| text(&TurnHash(digest))).into());
            line.insert("role", turn.role.as_str().into());
            match &turn.content {
                Content::Kept(body) => {
                    line.insert("content", Json::Array(body.blocks()?));
                }
                Content::Purged(digest) => {
                    line.insert("purged", true.into());
                    line.insert("message_digest", text(digest));
                }
            }
            optional(&mut line, "tool_call_id", turn.tool_call_id.clone());
            line.insert("created_at", text(&turn.created_at));
            line.insert("status", turn.status.as_str().into());
            line.insert("metadata", turn.metadata.to_json());
            line.insert("operation", turn.operation.into());
            let TurnOrigin { edited_from, derived_from, part_of, slot } = &turn.origin;
            optional(&mut line, "edited_from", edited_from.as_ref().map(text));
            optional(&mut line, "derived_from", derived_from.as_ref().map(text));
            optional(&mut line, "part_of", part_of.as_ref().map(text));
            // Role and call are the turn's own.
            let slot = slot.as_ref().map(|slot| {
                json::object([
                    ("turn_id", slot.turn_id.as_str().into()),
                    ("part", slot.part.into()),
                ])
            });
            optional(&mut line, "slot", slot);
        }
        BundleRecord::Split { whole, left, right, operation } => {
            line.insert("turn_id", text(whole));
            line.insert("left_id", text(left));
            line.insert("right_id", text(right));
            line.insert("operation", (*operation).into());
        }
        BundleRecord::Hidden { root, by, operation } => {
            line.insert("turn_id", text(root));
            line.insert("by", hidden_by(*by).into());
            line.insert("operation", (*operation).into());
        }
        BundleRecord::Branch { branch, tip } => {
            line.insert("branch_id", text(&branch.id));
            line.insert("name", branch.name.as_str().into());
            line.insert("tip", tip.map(|id| id.to_string()).into());
            optional(&mut line, "forked_from", branch.forked_from.as_ref().map(text));
            line.insert("created_at", text(&branch.created_at));
            line.insert("version", branch.version.into());
        }
        BundleRecord::Bookmark { name, turn, created_at } => {
            line.insert("name", name.as_str().into());
            line.insert("turn_id", text(turn));
            line.insert("created_at", text(created_at));
        }
        BundleRecord::Operation(operation) => {
            let Operation { seq, kind, actor, at, detail, hash, undone, idempotency, .. } =
                operation;
            line.insert("seq", (*seq).into());
            line.insert("kind", kind.as_str().into());
            line.insert("actor", actor.as_str().into());
            line.insert("at", text(at));
            match detail {
                Detail::Kept(canonical) => {
                    line.insert("detail", exact_json(canonical)?);
                }
                Detail::Purged(digest) => {
                    line.insert("purged", true.into());
                    line.insert("detail_digest", text(digest));
                }
            }
            line.insert("previous", link.map(|digest| text(&digest)).into());
            line.insert("hash", text(hash));
            line.insert("undone", (*undone).into());
            optional(&mut line, "idempotency", idempotency.as_ref().map(used_key));
        }
        BundleRecord::Record(record) => {
            let family = record.key().family();
            line.insert("kind", family.as_str().into());
            line.insert("key", to_hex(&record.key().to_bytes()).into());
            let value = match family {
                Family::Prompt => record.text().into(),
                _ => exact_json(record.text())?,
            };
            line.insert("value", value);
        }
        BundleRecord::Piece { source, nth, bytes } => {
            line.insert("source_id", text(source));
            line.insert("nth", (*nth).into());
            line.insert("bytes", BASE64.encode(bytes).into());
        }
    }
    Ok(Json::Object(line))
}

/// Returns the record's type, as it is called in a bundle.
pub(super) fn name(record: &BundleRecord) -> &'static str {
    match record {
        BundleRecord::Conversation(_) => "conversation",
        BundleRecord::Turn { .. } => "turn",
        BundleRecord::Split { .. } => "split",
        BundleRecord::Hidden { .. } => "hidden",
        BundleRecord::Branch { .. } => "branch",
        BundleRecord::Bookmark { .. } => "bookmark",
        BundleRecord::Operation(_) => "operation",
        BundleRecord::Record(_) => "entry",
        BundleRecord::Piece { .. } => "piece",
    }
}

/// Returns the record by name, for messages.
pub(super) fn describe(record: &BundleRecord) -> String {
    match record {
        BundleRecord::Conversation(it) => format!("conversation `{}`", it.id),
        BundleRecord::Turn { turn, .. } => format!("turn {}", turn.id),
        BundleRecord::Split { whole, .. } => format!("split of turn {whole}"),
        BundleRecord::Hidden { root, .. } => format!("hiding of turn {root}"),
        BundleRecord::Branch { branch, .. } => format!("branch `{}`", branch.name),
        BundleRecord::Bookmark { name, .. } => format!("bookmark `{name}`"),
        BundleRecord::Operation(it) => format!("operation {}", it.seq),
        BundleRecord::Record(record) => record.key().to_string(),
        BundleRecord::Piece { source, nth, .. } => format!("piece {nth} of source {source}"),
    }
}

/// Returns the bundle's name for why a turn is hidden.
pub(super) const fn hidden_by(by: HiddenBy) -> &'static str {
    match by {
        HiddenBy::Cascade => "cascade",
        HiddenBy::Reparent => "reparent",
        HiddenBy::Undo => "undo",
    }
}

fn derivation(from: &DerivedFrom) -> Json {
    json::object([
        ("conversation_id", from.conversation.as_str().into()),
        ("turn_id", from.turn.map(|id| id.to_string()).into()),
    ])
}

fn used_key(idempotency: &Idempotency) -> Json {
    json::object([
        ("key", idempotency.key.as_str().into()),
        ("fingerprint", text(&idempotency.fingerprint)),
        ("answer", idempotency.answer.as_str().into()),
    ])
}

/// Parses a stored JSON text. Since its digest is chained, a text that is not canonical is damaged.
fn exact_json(stored: &str) -> Result<Json, Fault> {
    let value = json::parse(stored.as_bytes(), MAX_DEPTH)?;
    if value.to_canonical() != stored {
        return Err(Fault::NotCanonical);
    }
    Ok(value)
}

fn text(value: &impl ToString) -> Json {
    Json::String(value.to_string())
}

fn optional(line: &mut Object, key: &str, value: Option<impl Into<Json>>) {
    if let Some(value) = value {
        line.insert(key, value.into());
    }
}
