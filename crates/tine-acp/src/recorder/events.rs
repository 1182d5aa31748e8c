//! The lines behind the turns: what either side said in a session, as it came.
//!
//! Lines are gathered until the turn is stored that they lead to, and are then stored with it, one
//! JSON document on each line: when it came, from whom, and the message. Secrets are taken out
//! first. Of `env` and `headers` no value is ever stored.

use serde_json::{Value, json};
use tine_core::Timestamp;
use tine_formats::redact::{self, Redacted};

use crate::show;

/// What the bytes are, as sources tell it.
pub(super) const MIME: &str = "application/vnd.tine.acp-events+jsonl";

/// Deeper than anything that is stored.
const DEPTH: usize = tine_core::json::MAX_DEPTH;

/// Who said it.
#[derive(Clone, Copy, Debug)]
pub(super) enum From {
    Agent,
    Client,
    /// The recorder itself, of something that nobody said.
    Recorder,
}

impl From {
    fn as_str(self) -> &'static str {
        match self {
            From::Agent => "agent",
            From::Client => "client",
            From::Recorder => "recorder",
        }
    }
}

/// Lines that are not stored yet.
#[derive(Debug, Default)]
pub(super) struct Events(Vec<(Timestamp, From, Value)>);

impl Events {
    pub(super) fn add(&mut self, at: Timestamp, from: From, message: Value) {
        self.0.push((at, from, message));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The bytes to be stored. Where a turn held a secret, its pieces may be in several chunks;
    /// so their texts are left to the turn.
    pub(super) fn bytes(&self, redact: bool, secret: bool) -> (Vec<u8>, Redacted) {
        let mut out = Vec::new();
        let mut found = Redacted::new();
        for (at, from, message) in &self.0 {
            let mut message = message.clone();
            hide_values(&mut message);
            if secret {
                hide_chunk(&mut message);
            }
            let line = json!({ "at": at.to_string(), "from": from.as_str(), "message": message });
            let line = line.to_string();
            let clean = if redact { cleaned(line, &mut found) } else { line };
            out.extend_from_slice(clean.as_bytes());
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

/// A line without secrets; what cannot be read strictly is cleaned as a text.
fn cleaned(mut line: String, found: &mut Redacted) -> String {
    let (clean, more) = match tine_core::json::parse(line.as_bytes(), DEPTH) {
        Ok(json) => {
            let (clean, more) = redact::value(json);
            (clean.to_canonical(), more)
        }
        Err(_) => {
            let more = redact::string(&mut line);
            (line, more)
        }
    };
    more.into_iter().for_each(|(kind, count)| *found.entry(kind).or_default() += count);
    clean
}

/// Takes the values out of lists of names and values that are called `env` or `headers`.
fn hide_values(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(hide_values),
        Value::Object(members) => {
            for (name, value) in members.iter_mut() {
                match (name.as_str(), &mut *value) {
                    ("env" | "headers", Value::Array(pairs)) => {
                        pairs.iter_mut().for_each(hide_pair)
                    }
                    ("env" | "headers", Value::Object(pairs)) => {
                        pairs.values_mut().for_each(|value| *value = hidden());
                    }
                    _ => hide_values(value),
                }
            }
        }
        _ => {}
    }
}

fn hide_pair(pair: &mut Value) {
    match pair.get_mut("value") {
        Some(value) => *value = hidden(),
        None => *pair = hidden(),
    }
}

fn hidden() -> Value {
    Value::from("[never stored]")
}

fn hide_chunk(message: &mut Value) {
    let Some(update) = message.pointer_mut("/params/update") else { return };
    let kind = update.get("sessionUpdate").and_then(Value::as_str).unwrap_or_default();
    if [show::USER, show::AGENT, show::THINKING].contains(&kind)
        && let Some(text) = update.pointer_mut("/content/text")
    {
        *text = Value::from("[left to the turn: it held a secret]");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(message: Value, secret: bool) -> String {
        let mut events = Events::default();
        events.add(Timestamp::from_millis(0), From::Client, message);
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
    fn a_secret_in_pieces_is_left_to_the_turn() {
        let chunk = |text: &str| {
            let content = json!({ "type": "text", "text": text });
            json!({ "params": { "update": { "sessionUpdate": show::AGENT, "content": content } } })
        };
        assert!(stored(chunk("half of a key"), false).contains("half of a key"));
        assert!(!stored(chunk("half of a key"), true).contains("half of a key"));
    }
}
