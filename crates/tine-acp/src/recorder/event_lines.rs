//! The lines that turns were built from, as either side wrote them.
//!
//! Lines are collected until the turn built from them is stored, and are then stored with it as
//! JSON lines: the time, the sender, and the message, byte for byte. Only if secrets or values of
//! `env` and `headers` have to be removed is the message written again from its parsed value. A
//! line that breaks the rules of the strict reader is stored as a string with the rule, so that any
//! program can read the document around it. If such a line names `env` or `headers`, or a secret
//! was found next to it, only its length is stored.

use tine_core::{Json, Timestamp};
use tine_formats::redact::{self, Redacted};

use super::json_splice;
use super::raw_message::RawMessage;
use crate::json_macro::json;
use crate::session_updates::{AGENT_CHUNK, THOUGHT_CHUNK, USER_CHUNK};

/// The media type of the stored lines.
pub(super) const MIME: &str = "application/vnd.tine.acp-events+jsonl";

/// Members whose values are never stored.
const HIDDEN: [&str; 2] = ["env", "headers"];

/// The sender of a line.
#[derive(Clone, Copy, Debug)]
pub(super) enum EventSender {
    Agent,
    Client,
    /// The recorder itself.
    Recorder,
}

impl EventSender {
    fn as_str(self) -> &'static str {
        match self {
            EventSender::Agent => "agent",
            EventSender::Client => "client",
            EventSender::Recorder => "recorder",
        }
    }
}

/// Lines that are not stored yet.
#[derive(Debug, Default)]
pub(super) struct EventLines(Vec<(Timestamp, EventSender, RawMessage)>);

impl EventLines {
    pub(super) fn add(&mut self, at: Timestamp, from: EventSender, message: RawMessage) {
        self.0.push((at, from, message));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the bytes to store. If a turn had a secret, the secret may be spread over several
    /// chunks, so the texts of its chunks are left out.
    pub(super) fn bytes(&self, redact: bool, secret: bool) -> (Vec<u8>, Redacted) {
        let mut out = Vec::new();
        let mut found = Redacted::new();
        for (at, from, message) in &self.0 {
            let from = from.as_str();
            out.extend_from_slice(format!("{{\"at\":\"{at}\",\"from\":\"{from}\",").as_bytes());
            match &message.broken_rule {
                None => {
                    out.extend_from_slice(b"\"message\":");
                    match cleaned(message, redact, secret, &mut found) {
                        Some(clean) => out.extend_from_slice(clean.to_canonical().as_bytes()),
                        None => out.extend_from_slice(message.line()),
                    }
                    out.push(b'}');
                }
                Some(rule) => {
                    let unread = unread(message.line(), rule, redact, secret, &mut found);
                    out.extend_from_slice(&unread.as_bytes()[1..]);
                }
            }
            out.push(b'\n');
        }
        (out, found)
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

/// Returns the message without secrets and hidden values, or `None` if it has none.
fn cleaned(message: &RawMessage, redact: bool, secret: bool, found: &mut Redacted) -> Option<Json> {
    let mut json = message.json.clone();
    let mut changed = hide_values(&mut json);
    if secret {
        changed |= hide_chunk(&mut json);
    }
    if redact {
        let (clean, more) = redact::value(json);
        changed |= !more.is_empty();
        add(more, found);
        json = clean;
    }
    changed.then_some(json)
}

/// Returns the members that stand for a line that breaks a rule.
fn unread(line: &[u8], rule: &str, redact: bool, secret: bool, found: &mut Redacted) -> String {
    if secret || json_splice::names_any(line, &HIDDEN) {
        return json!({ "unread": { "bytes": line.len(), "reason": rule } }).to_canonical();
    }
    let mut text = String::from_utf8_lossy(line).into_owned();
    if redact {
        add(redact::string(&mut text), found);
    }
    json!({ "unread": { "line": text, "reason": rule } }).to_canonical()
}

fn add(more: Redacted, found: &mut Redacted) {
    more.into_iter().for_each(|(kind, count)| *found.entry(kind).or_default() += count);
}

/// Removes the values from members named `env` and `headers`. Returns whether there were any.
fn hide_values(value: &mut Json) -> bool {
    match value {
        Json::Array(items) => items.iter_mut().fold(false, |found, it| hide_values(it) | found),
        Json::Object(members) => {
            let names: Vec<String> = members.keys().map(str::to_owned).collect();
            let mut found = false;
            for name in names {
                let Some(value) = members.get_mut(&name) else { continue };
                found |= match (HIDDEN.contains(&name.as_str()), &mut *value) {
                    (true, Json::Array(pairs)) => {
                        pairs.iter_mut().for_each(hide_pair);
                        !pairs.is_empty()
                    }
                    (true, Json::Object(pairs)) => {
                        let names = pairs.keys().map(|name| (name.to_owned(), hidden()));
                        *pairs = names.collect();
                        !pairs.is_empty()
                    }
                    _ => hide_values(value),
                };
            }
            found
        }
        _ => false,
    }
}

fn hide_pair(pair: &mut Json) {
    match pair.as_object_mut().and_then(|pair| pair.get_mut("value")) {
        Some(value) => *value = hidden(),
        None => *pair = hidden(),
    }
}

fn hidden() -> Json {
    Json::from("[never stored]")
}

fn hide_chunk(message: &mut Json) -> bool {
    let update = member_mut(message, "params").and_then(|params| member_mut(params, "update"));
    let Some(update) = update else { return false };
    let kind = update.get("sessionUpdate").and_then(Json::as_str).unwrap_or_default();
    if ![USER_CHUNK, AGENT_CHUNK, THOUGHT_CHUNK].contains(&kind) {
        return false;
    }
    match member_mut(update, "content").and_then(|content| member_mut(content, "text")) {
        Some(text) => {
            *text = Json::from("[left to the turn: it held_back a secret]");
            true
        }
        None => false,
    }
}

fn member_mut<'v>(value: &'v mut Json, name: &str) -> Option<&'v mut Json> {
    value.as_object_mut()?.get_mut(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(message: Json, secret: bool) -> String {
        let mut events = EventLines::default();
        events.add(Timestamp::from_millis(0), EventSender::Client, RawMessage::own(message));
        String::from_utf8(events.bytes(true, secret).0).expect("lines of text")
    }

    #[test]
    fn values_of_env_and_headers_are_never_stored() {
        let servers = json!([
            { "name": "a", "command": "x", "env": [{ "name": "TOKEN", "value": "hunter2" }] },
            { "name": "b", "url": "http://x", "headers": [{ "name": "K", "value": "hunter2" }] },
            { "name": "c", "env": { "PASSWORD": "hunter2" }, "headers": ["hunter2"] },
        ]);
        let line = stored(json!({ "params": { "mcpServers": servers } }), false);
        assert!(!line.contains("hunter2"), "{line}");
        assert!(line.contains("TOKEN") && line.contains("PASSWORD"), "{line}");
    }

    #[test]
    fn a_line_is_stored_byte_for_byte() {
        for (line, target) in [
            (
                r#"{ "n":1.0,"id" : 12345678901234567890123}"#,
                r#""message":{ "n":1.0,"id" : 12345678901234567890123}}"#,
            ),
            (r#"{"a":1,"a":2}"#, r#""unread":{"line":"{\"a\":1,\"a\":2}","reason":"the key "#),
            (r#"{"a":1,"a":{"env":["hunter2"]}}"#, r#""unread":{"bytes":31,"reason":"the key "#),
        ] {
            let limits = tine_core::Limits::default();
            let message = RawMessage::read(line.into(), &limits).expect("JSON");
            let mut events = EventLines::default();
            events.add(Timestamp::from_millis(0), EventSender::Agent, message);
            let stored = String::from_utf8(events.bytes(true, false).0).expect("a text");
            assert!(stored.contains(target), "{stored}");
            tine_core::json::parse(stored.as_bytes(), 9).expect("a document");
        }
    }

    #[test]
    fn a_secret_in_pieces_is_stored_only_redacted_in_the_turn() {
        let chunk = |text: &str| {
            let content = json!({ "type": "text", "text": text });
            json!({ "params": { "update": { "sessionUpdate": AGENT_CHUNK, "content": content } } })
        };
        assert!(stored(chunk("half of a key"), false).contains("half of a key"));
        assert!(!stored(chunk("half of a key"), true).contains("half of a key"));
    }
}
