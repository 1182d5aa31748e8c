//! Secrets out of what is about to be recorded.
//!
//! A history that cannot be changed cannot be scrubbed later, so strings that have the shape of a
//! key are replaced by `[redacted:KIND]` before a message is matched, hashed and recorded: in
//! texts, in the parameters of tool calls, and in results.
//!
//! Invariants:
//!
//! - Redacting again changes nothing.
//! - Everything besides the secrets stays as it is, character for character.
//! - Names of fields, ids, hashes, UUIDs, signatures and base64 data are never touched. A thinking
//!   block that is signed stays whole: its signature covers its text.
//! - Time is linear in the size of the text for each pass, and a pass follows only where the one
//!   before found something.
//!
//! Deliberately absent: guessing. A random-looking word in running text is left alone; only a
//! known shape, or a name that says `password`, makes it a secret.

mod names;
mod shapes;
mod text;

use std::collections::BTreeMap;

use tine_core::json::Object;
use tine_core::{Body, Json, Message};

pub use text::text;

/// How many secrets of each kind were replaced.
pub type Redacted = BTreeMap<String, u64>;

/// The kind of a value that only its name gives away.
const NAMED: &str = "secret";

/// Every kind that can be found.
pub fn kinds() -> impl Iterator<Item = &'static str> {
    let others = ["jwt", "private_key", "authorization", "url_password", NAMED];
    shapes::SHAPES.iter().map(|shape| shape.kind).chain(others)
}

/// Replaces the secrets in messages, and counts them by kind.
///
/// ```
/// use tine_core::{Message, Role};
/// use tine_formats::redact;
///
/// let mut said = vec![Message::text(Role::User, "login: https://me:hunter2@example.org/")];
/// let redacted = redact::messages(&mut said);
/// assert_eq!(redacted.get("url_password"), Some(&1));
/// let text = said[0].body.text_only().expect("a text");
/// assert_eq!(text, "login: https://me:[redacted:url_password]@example.org/");
/// ```
pub fn messages(messages: &mut [Message]) -> Redacted {
    let mut found = Redacted::new();
    for message in messages {
        redact_body(&mut message.body, &mut found);
    }
    found
}

/// Replaces the secrets in what a turn says, and counts them by kind.
pub fn body(body: &mut Body) -> Redacted {
    let mut found = Redacted::new();
    redact_body(body, &mut found);
    found
}

/// Replaces the secrets in a text, and counts them by kind.
pub fn words(words: &mut String) -> Redacted {
    let mut found = Redacted::new();
    if let Some(clean) = text(words, &mut found) {
        *words = clean;
    }
    found
}

fn redact_body(body: &mut Body, found: &mut Redacted) {
    let before = found.values().sum::<u64>();
    match body {
        Body::Text(said) => {
            if let Some(clean) = text(said, found) {
                *said = clean;
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

/// Replaces the secrets in a text of which only the bytes are known, and counts them by kind:
/// those of JSON string by string. Without any, and of what is no text, there is nothing new.
pub fn source(bytes: Vec<u8>) -> (Option<Vec<u8>>, Redacted) {
    let mut found = Redacted::new();
    let Ok(said) = String::from_utf8(bytes) else {
        return (None, found);
    };
    let clean = match tine_core::json::parse(said.as_bytes(), tine_core::json::MAX_DEPTH) {
        Ok(document @ (Json::Object(_) | Json::Array(_))) => {
            Some(json(document, &mut found).to_canonical())
        }
        _ => text(&said, &mut found),
    };
    let clean = clean.filter(|_| !found.is_empty());
    (clean.map(String::into_bytes), found)
}

/// Replaces the secrets in any JSON value.
fn json(value: Json, found: &mut Redacted) -> Json {
    match value {
        Json::String(said) => match (!names::is_base64(&said)).then(|| text(&said, found)) {
            Some(Some(clean)) => Json::String(clean),
            _ => Json::String(said),
        },
        Json::Array(items) => Json::Array(items.into_iter().map(|it| json(it, found)).collect()),
        Json::Object(members) => {
            let member = |(name, value): (String, Json)| {
                let value = match value {
                    value if names::is_exempt(&name) => value,
                    Json::String(said) if names::is_secret(&name) && names::is_random(&said) => {
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

/// What stands in the place of a secret.
fn marker(kind: &str) -> String {
    format!("[redacted:{kind}]")
}
