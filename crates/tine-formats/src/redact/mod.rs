//! Redacts secrets from messages before they are recorded.
//!
//! An immutable history cannot be scrubbed later, so strings that look like a key are replaced by
//! `[redacted:KIND]` before a message is matched, hashed and recorded: in texts, in the parameters
//! of tool calls, and in results.
//!
//! Invariants:
//!
//! - Redacting again changes nothing.
//! - Only secrets are changed.
//! - Names of fields, ids, hashes, UUIDs, signatures and base64 data are never touched. A thinking
//!   block that is signed stays whole: its signature covers its text.
//! - Time is linear in the size of the text for each pass, and a pass follows only where the one
//!   before found something.
//!
//! A random-looking word in running text is not a secret; only a known format, or a name such as
//! `password`, makes it one.

mod key_patterns;
mod names;
mod text;

use std::collections::BTreeMap;

use tine_core::json::Object;
use tine_core::{Body, Json, Message};

pub use text::text;

/// How many secrets of each kind were replaced.
pub type Redacted = BTreeMap<String, u64>;

/// The kind of a value that only its name gives away.
const NAMED: &str = "secret";

/// Returns every kind that can be found.
pub fn kinds() -> impl Iterator<Item = &'static str> {
    let others = ["jwt", "private_key", "authorization", "url_password", NAMED];
    key_patterns::KEY_PATTERNS.iter().map(|pattern| pattern.kind).chain(others)
}

/// Replaces the secrets in messages, and counts them by kind.
///
/// ```
/// use tine_core::{Message, Role};
/// use tine_formats::redact;
///
/// let mut messages = vec![Message::text(Role::User, "login: https://me:hunter2@example.org/")];
/// let redacted = redact::messages(&mut messages);
/// assert_eq!(redacted.get("url_password"), Some(&1));
/// let text = messages[0].body.text_only().expect("a text");
/// assert_eq!(text, "login: https://me:[redacted:url_password]@example.org/");
/// ```
pub fn messages(messages: &mut [Message]) -> Redacted {
    let mut found = Redacted::new();
    for message in messages {
        redact_body(&mut message.body, &mut found);
    }
    found
}

/// Replaces the secrets in the content of a turn, and counts them by kind.
pub fn body(body: &mut Body) -> Redacted {
    let mut found = Redacted::new();
    redact_body(body, &mut found);
    found
}

/// Replaces the secrets in a text, and counts them by kind.
pub fn string(original: &mut String) -> Redacted {
    let mut found = Redacted::new();
    if let Some(clean) = text(original, &mut found) {
        *original = clean;
    }
    found
}

fn redact_body(body: &mut Body, found: &mut Redacted) {
    let before = found.values().sum::<u64>();
    match body {
        Body::Text(original) => {
            if let Some(clean) = text(original, found) {
                *original = clean;
            }
        }
        Body::Blocks(canonical) => {
            let Ok(Json::Array(blocks)) =
                tine_core::json::parse(canonical.as_bytes(), tine_core::json::MAX_DEPTH)
            else {
                return;
            };
            let blocks = Json::Array(blocks.into_iter().map(|it| block(it, found)).collect());
            if found.values().sum::<u64>() > before {
                *canonical = blocks.to_canonical();
            }
        }
    }
}

fn block(block: Json, found: &mut Redacted) -> Json {
    let is = |kind: &str| block.get("type").and_then(Json::as_str) == Some(kind);
    let signed = is("thinking") && block.get("signature").is_some_and(|it| !it.is_null());
    let call = is("tool-use");
    match block {
        block if signed => block,
        // Only what the model passes to the tool: its name and the call's id are no secrets.
        Json::Object(members) if call => {
            let member = |(name, value): (String, Json)| match name.as_str() {
                "parameters" => (name, json(value, found)),
                _ => (name, value),
            };
            members.into_iter().map(member).collect::<Object>().into()
        }
        block => json(block, found),
    }
}

/// Replaces the secrets in the strings of a value, and counts them by kind.
pub fn value(value: Json) -> (Json, Redacted) {
    let mut found = Redacted::new();
    let clean = json(value, &mut found);
    (clean, found)
}

/// Replaces the secrets in the bytes of a source and counts them by kind; JSON is redacted string by
/// string. Returns `None` when there are no secrets or the bytes are not UTF-8.
pub fn source(bytes: Vec<u8>) -> (Option<Vec<u8>>, Redacted) {
    let mut found = Redacted::new();
    let Ok(original) = String::from_utf8(bytes) else {
        return (None, found);
    };
    let clean = match tine_core::json::parse(original.as_bytes(), tine_core::json::MAX_DEPTH) {
        Ok(document @ (Json::Object(_) | Json::Array(_))) => {
            Some(json(document, &mut found).to_canonical())
        }
        _ => text(&original, &mut found),
    };
    let clean = clean.filter(|_| !found.is_empty());
    (clean.map(String::into_bytes), found)
}

/// Replaces the secrets in any JSON value.
fn json(value: Json, found: &mut Redacted) -> Json {
    match value {
        Json::String(original) => {
            match (!names::is_base64(&original)).then(|| text(&original, found)) {
                Some(Some(clean)) => Json::String(clean),
                _ => Json::String(original),
            }
        }
        Json::Array(items) => Json::Array(items.into_iter().map(|it| json(it, found)).collect()),
        Json::Object(members) => {
            let member = |(name, value): (String, Json)| {
                let value = match value {
                    value if names::is_exempt(&name) => value,
                    Json::String(original)
                        if names::is_secret(&name) && names::is_random(&original) =>
                    {
                        *found.entry(NAMED.to_owned()).or_default() += 1;
                        Json::String(marker(NAMED))
                    }
                    value => json(value, found),
                };
                (name, value)
            };
            members.into_iter().map(member).collect::<Object>().into()
        }
        other => other,
    }
}

/// Returns the text that replaces a secret.
fn marker(kind: &str) -> String {
    format!("[redacted:{kind}]")
}
