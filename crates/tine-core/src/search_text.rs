//! The searchable text of a turn, as a list of pieces.
//!
//! Included: titles; the text of text, thinking and summary blocks; names and string parameters of
//! tool calls; tool results; titles, names and texts of other blocks. Left out: ids, signatures,
//! addresses and Base64 data, which full-text queries do not target.

use crate::json::Json;
use crate::message::Body;
use crate::metadata::Metadata;

/// A Base64-like string of at least this many bytes is treated as encoded data.
const ENCODED_BYTES: usize = 512;

/// Members of a block of unknown type that hold searchable text.
const TEXT_MEMBERS: [&str; 9] =
    ["text", "content", "title", "name", "summary", "caption", "quote", "output", "result"];

/// Returns the searchable text of a turn: its titles first, then each text in order.
pub fn pieces(body: &Body, metadata: &Metadata) -> Vec<String> {
    let mut pieces: Vec<String> =
        [&metadata.title, &metadata.auto_title].into_iter().flatten().cloned().collect();
    match body {
        Body::Text(text) => pieces.push(text.clone()),
        Body::Blocks(_) => {
            for block in body.blocks().unwrap_or_default() {
                block_pieces(&block, &mut pieces);
            }
        }
    }
    pieces
}

fn block_pieces(block: &Json, pieces: &mut Vec<String>) {
    match block.get("type").and_then(Json::as_str) {
        Some("text" | "thinking") => texts(block.get("text"), pieces),
        Some("tool-use") => {
            texts(block.get("name"), pieces);
            every_text(block.get("parameters"), pieces);
        }
        _ => {
            for name in TEXT_MEMBERS {
                texts(block.get(name), pieces);
            }
        }
    }
}

/// Collects from a string, a list of strings, or nested blocks.
fn texts(value: Option<&Json>, pieces: &mut Vec<String>) {
    match value {
        Some(Json::String(text)) => piece(text, pieces),
        Some(Json::Array(items)) => items.iter().for_each(|item| texts(Some(item), pieces)),
        Some(block @ Json::Object(_)) => block_pieces(block, pieces),
        _ => {}
    }
}

/// Collects every string within a value, except the names of members.
fn every_text(value: Option<&Json>, pieces: &mut Vec<String>) {
    match value {
        Some(Json::String(text)) => piece(text, pieces),
        Some(Json::Array(items)) => items.iter().for_each(|item| every_text(Some(item), pieces)),
        Some(Json::Object(members)) => {
            members.iter().for_each(|(_, member)| every_text(Some(member), pieces));
        }
        _ => {}
    }
}

fn piece(text: &str, pieces: &mut Vec<String>) {
    if !text.is_empty() && !is_encoded(text) {
        pieces.push(text.to_owned());
    }
}

fn is_encoded(text: &str) -> bool {
    let base64 = |byte: u8| byte.is_ascii_alphanumeric() || b"+/=-_".contains(&byte);
    text.starts_with("data:") && text.contains(";base64,")
        || text.len() >= ENCODED_BYTES
            && text.bytes().all(|byte| base64(byte) || byte == b'\n' || byte == b'\r')
            && text.split_ascii_whitespace().all(|line| line.len() >= 60 || text.ends_with(line))
}
