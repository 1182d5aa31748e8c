//! The lines behind the turns: what either side said in a session, as it came.
//!
//! Lines are gathered until the turn is stored that they lead to, and are then stored with it, one
//! JSON document on each line: when it came, from whom, and the message, byte for byte. Only where
//! something has to be taken out, secrets or values of `env` and `headers`, the message is written
//! from what is left. A line that breaks the rules of the strict reader is stored as a string, with
//! the rule, so that the document around it can be read by any program; if it names `env` or
//! `headers`, of whose values none is ever stored, or a secret was found beside it, only its length
//! is.

use tine_core::{Json, Timestamp};
use tine_formats::redact::{self, Redacted};

use super::message::Message;
use super::splice;
use crate::json::json;
use crate::show;

/// What the bytes are, as sources tell it.
pub(super) const MIME: &str = "application/vnd.tine.acp-events+jsonl";

/// Members whose values are never stored.
const HIDDEN: [&str; 2] = ["env", "headers"];

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
pub(super) struct Events(Vec<(Timestamp, From, Message)>);

impl Events {
    pub(super) fn add(&mut self, at: Timestamp, from: From, message: Message) {
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

/// What is left of a message once secrets and hidden values are taken out; `None` if there were none.
fn cleaned(message: &Message, redact: bool, secret: bool, found: &mut Redacted) -> Option<Json> {
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

/// A line that breaks a rule, as members of a document.
fn unread(line: &[u8], rule: &str, redact: bool, secret: bool, found: &mut Redacted) -> String {
    if secret || splice::names_any(line, &HIDDEN) {
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

/// Takes the values out of lists of names and values that are called `env` or `headers`; returns
/// whether there were any.
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
    if ![show::USER, show::AGENT, show::THINKING].contains(&kind) {
        return false;
    }
    match member_mut(update, "content").and_then(|content| member_mut(content, "text")) {
        Some(text) => {
            *text = Json::from("[left to the turn: it held a secret]");
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
        let mut events = Events::default();
        events.add(Timestamp::from_millis(0), From::Client, Message::own(message));
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
        for (line, wanted) in [
            (
                r#"{ "n":1.0,"id" : 12345678901234567890123}"#,
                r#""message":{ "n":1.0,"id" : 12345678901234567890123}}"#,
            ),
            (r#"{"a":1,"a":2}"#, r#""unread":{"line":"{\"a\":1,\"a\":2}","reason":"the key "#),
            (r#"{"a":1,"a":{"env":["hunter2"]}}"#, r#""unread":{"bytes":31,"reason":"the key "#),
        ] {
            let limits = tine_core::Limits::default();
            let message = Message::read(line.into(), &limits).expect("JSON");
            let mut events = Events::default();
            events.add(Timestamp::from_millis(0), From::Agent, message);
            let stored = String::from_utf8(events.bytes(true, false).0).expect("a text");
            assert!(stored.contains(wanted), "{stored}");
            tine_core::json::parse(stored.as_bytes(), 9).expect("a document");
        }
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
