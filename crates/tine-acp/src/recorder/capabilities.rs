//! What an agent can do, and what it says of itself once the recorder does the rest.

use tine_core::Json;
use tine_core::json::Object;

use crate::json::json;

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
    pub(super) fn of(hello: &Json) -> Native {
        let can = hello.get("agentCapabilities").unwrap_or(&Json::Null);
        let session = |name: &str| {
            let told = can.get("sessionCapabilities").and_then(|it| it.get(name));
            told.filter(|told| !told.is_null() && **told != Json::Bool(false))
        };
        let fork = session("fork");
        let marked = |path: &[&str]| fork.and_then(|it| it.at(path)) == Some(&true.into());
        let name = hello.at(&["agentInfo", "name"]).and_then(Json::as_str).unwrap_or_default();
        let at_message = if marked(&["atMessageId"]) || marked(&["_meta", "atMessageId"]) {
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
pub(super) fn completed(mut hello: Json) -> Json {
    if hello.get("protocolVersion").and_then(Json::as_u64) != Some(PROTOCOL) {
        return hello;
    }
    let Some(members) = hello.as_object_mut() else { return hello };
    let can = object(members, "agentCapabilities");
    can.insert("loadSession", true.into());
    let session = object(can, "sessionCapabilities");
    for name in ["list", "resume", "close", "delete"] {
        object(session, name);
    }
    let fork = object(session, "fork");
    fork.insert("atMessageId", true.into());
    object(fork, "_meta").insert("atMessageId", true.into());
    let own = json!({ "recordedBy": { "name": "tine", "version": env!("CARGO_PKG_VERSION") } });
    object(members, "_meta").insert("tine", own);
    hello
}

/// A member that is an object from now on.
pub(super) fn object<'v>(members: &'v mut Object, name: &str) -> &'v mut Object {
    if members.get(name).is_none_or(|value| value.as_object().is_none()) {
        members.insert(name, json!({}));
    }
    match members.get_mut(name) {
        Some(Json::Object(members)) => members,
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
        let is = |path: &[&str], wanted: Json| assert_eq!(all.at(path), Some(&wanted), "{path:?}");
        is(&["agentInfo", "name"], "x".into());
        is(&["agentCapabilities", "loadSession"], true.into());
        is(&["agentCapabilities", "promptCapabilities", "image"], true.into());
        is(&["agentCapabilities", "sessionCapabilities", "list", "odd"], 1.into());
        is(&["agentCapabilities", "sessionCapabilities", "own"], json!({}));
        is(&["agentCapabilities", "sessionCapabilities", "fork", "atMessageId"], true.into());
    }

    #[test]
    fn only_what_is_told_is_native() {
        assert_eq!(Native::of(&json!({})), Native::default());
        let told = |fork: Json| json!({ "agentCapabilities": { "sessionCapabilities": { "fork": fork } } });
        let native = Native::of(&told(json!({})));
        assert_eq!((native.fork, native.at_message), (true, None));
        let native = Native::of(&told(json!({ "_meta": { "atMessageId": true } })));
        assert_eq!(native.at_message, Some(Dialect::Proposed));
        assert!(!Native::of(&told(Json::Null)).fork);
    }

    #[test]
    fn another_version_of_the_protocol_is_left_alone() {
        let hello = json!({ "protocolVersion": 2, "capabilities": {} });
        assert_eq!(completed(hello.clone()), hello);
    }
}
