//! What an agent can do, and what it says of itself once the recorder does the rest.

use serde_json::{Map, Value, json};

/// The version of the protocol in which sessions are added to.
const PROTOCOL: u64 = 1;

/// Agents that fork at a message in JetBrains' dialect, exactly there, and do not advertise it.
const AIR: [&str; 1] = ["@agentclientprotocol/claude-agent-acp"];

/// How an agent is told the message to fork at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    /// `messageId`, as proposed.
    Proposed,
    /// `_meta.jetbrains.air.fork`.
    Air,
}

/// What the agent itself can do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Native {
    pub load: bool,
    pub resume: bool,
    pub list: bool,
    pub close: bool,
    pub delete: bool,
    pub fork: bool,
    pub at_message: Option<Dialect>,
}

impl Native {
    pub(super) fn of(hello: &Value) -> Native {
        let can = hello.get("agentCapabilities").unwrap_or(&Value::Null);
        let session = |name: &str| {
            let told = can.get("sessionCapabilities").and_then(|it| it.get(name));
            told.filter(|told| !told.is_null() && **told != Value::Bool(false))
        };
        let fork = session("fork");
        let marked = |place: &str| fork.and_then(|it| it.pointer(place)) == Some(&true.into());
        let name = hello.pointer("/agentInfo/name").and_then(Value::as_str).unwrap_or_default();
        let at_message = if marked("/atMessageId") || marked("/_meta/atMessageId") {
            Some(Dialect::Proposed)
        } else {
            AIR.contains(&name).then_some(Dialect::Air)
        };
        Native {
            load: can.get("loadSession") == Some(&true.into()),
            resume: session("resume").is_some(),
            list: session("list").is_some(),
            close: session("close").is_some(),
            delete: session("delete").is_some(),
            fork: fork.is_some(),
            at_message: fork.and(at_message),
        }
    }
}

/// What the agent says of itself, with what it lacks added.
pub(super) fn completed(mut hello: Value) -> Value {
    if hello.get("protocolVersion").and_then(Value::as_u64) != Some(PROTOCOL) {
        return hello;
    }
    let Some(members) = hello.as_object_mut() else { return hello };
    let can = object(members, "agentCapabilities");
    can.insert("loadSession".to_owned(), true.into());
    let session = object(can, "sessionCapabilities");
    for name in ["list", "resume", "close", "delete"] {
        object(session, name);
    }
    let fork = object(session, "fork");
    fork.insert("atMessageId".to_owned(), true.into());
    object(fork, "_meta").insert("atMessageId".to_owned(), true.into());
    let own = json!({ "recordedBy": { "name": "tine", "version": env!("CARGO_PKG_VERSION") } });
    object(members, "_meta").insert("tine".to_owned(), own);
    hello
}

/// A member that is an object from now on.
fn object<'v>(members: &'v mut Map<String, Value>, name: &str) -> &'v mut Map<String, Value> {
    let value = members.entry(name).or_insert_with(|| json!({}));
    if !value.is_object() {
        *value = json!({});
    }
    match value {
        Value::Object(members) => members,
        _ => unreachable!("it was just made an object"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_agent_lacks_is_added_and_what_it_says_stays() {
        let hello = json!({
            "protocolVersion": 1,
            "agentInfo": { "name": "x" },
            "agentCapabilities": {
                "promptCapabilities": { "image": true },
                "sessionCapabilities": { "list": { "odd": 1 }, "own": {} },
            },
        });
        let all = completed(hello);
        let can = &all["agentCapabilities"];
        assert_eq!(can["loadSession"], true);
        assert_eq!(can["promptCapabilities"]["image"], true);
        let session = &can["sessionCapabilities"];
        assert_eq!((&session["list"]["odd"], &session["own"]), (&json!(1), &json!({})));
        assert_eq!(session["fork"]["atMessageId"], true);
        assert_eq!(all["agentInfo"]["name"], "x");
    }

    #[test]
    fn only_what_is_told_is_native() {
        assert_eq!(Native::of(&json!({})), Native::default());
        let told = |fork: Value| json!({ "agentCapabilities": { "sessionCapabilities": { "fork": fork } } });
        let native = Native::of(&told(json!({})));
        assert_eq!((native.fork, native.at_message), (true, None));
        let native = Native::of(&told(json!({ "_meta": { "atMessageId": true } })));
        assert_eq!(native.at_message, Some(Dialect::Proposed));
        assert!(!Native::of(&told(Value::Null)).fork);
    }

    #[test]
    fn another_version_of_the_protocol_is_left_alone() {
        let hello = json!({ "protocolVersion": 2, "capabilities": {} });
        assert_eq!(completed(hello.clone()), hello);
    }
}
