//! What an agent can do, and the capabilities reported to the client, which include what the
//! recorder does for the agent.

use tine_core::Json;
use tine_core::json::Object;

use crate::json_macro::json;

/// The protocol version whose session capabilities are extended.
const PROTOCOL: u64 = 1;

/// Agents that fork exactly at a message in JetBrains' dialect but do not advertise it.
const AIR: [&str; 1] = ["@agentclientprotocol/claude-agent-acp"];

/// How an agent takes the message to fork at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ForkDialect {
    /// `messageId`, as in the proposal.
    Proposed,
    /// `_meta.jetbrains.air.fork`.
    Air,
}

/// The capabilities of the agent itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct AgentCapabilities {
    pub load: bool,
    pub resume: bool,
    pub list: bool,
    pub close: bool,
    pub delete: bool,
    pub fork: bool,
    pub at_message: Option<ForkDialect>,
}

impl AgentCapabilities {
    pub(super) fn of(hello: &Json) -> AgentCapabilities {
        let can = hello.get("agentCapabilities").unwrap_or(&Json::Null);
        let session = |name: &str| {
            let capability = can.get("sessionCapabilities").and_then(|it| it.get(name));
            capability
                .filter(|capability| !capability.is_null() && **capability != Json::Bool(false))
        };
        let fork = session("fork");
        let marked = |path: &[&str]| fork.and_then(|it| it.at(path)) == Some(&true.into());
        let name = hello.at(&["agentInfo", "name"]).and_then(Json::as_str).unwrap_or_default();
        let at_message = if marked(&["atMessageId"]) || marked(&["_meta", "atMessageId"]) {
            Some(ForkDialect::Proposed)
        } else {
            AIR.contains(&name).then_some(ForkDialect::Air)
        };
        AgentCapabilities {
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

/// Returns the agent's response to `initialize` with the recorder's capabilities added.
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

/// Returns a member as an object, replacing any other value.
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
    fn missing_capabilities_are_added_and_others_stay() {
        let hello = json!({
            "protocolVersion": 1,
            "agentInfo": { "name": "x" },
            "agentCapabilities": {
                "promptCapabilities": { "image": true },
                "sessionCapabilities": { "list": { "odd": 1 }, "own": {} },
            },
        });
        let all = completed(hello);
        let is = |path: &[&str], target: Json| assert_eq!(all.at(path), Some(&target), "{path:?}");
        is(&["agentInfo", "name"], "x".into());
        is(&["agentCapabilities", "loadSession"], true.into());
        is(&["agentCapabilities", "promptCapabilities", "image"], true.into());
        is(&["agentCapabilities", "sessionCapabilities", "list", "odd"], 1.into());
        is(&["agentCapabilities", "sessionCapabilities", "own"], json!({}));
        is(&["agentCapabilities", "sessionCapabilities", "fork", "atMessageId"], true.into());
    }

    #[test]
    fn only_advertised_capabilities_are_native() {
        assert_eq!(AgentCapabilities::of(&json!({})), AgentCapabilities::default());
        let hello = |fork: Json| json!({ "agentCapabilities": { "sessionCapabilities": { "fork": fork } } });
        let native = AgentCapabilities::of(&hello(json!({})));
        assert_eq!((native.fork, native.at_message), (true, None));
        let native = AgentCapabilities::of(&hello(json!({ "_meta": { "atMessageId": true } })));
        assert_eq!(native.at_message, Some(ForkDialect::Proposed));
        assert!(!AgentCapabilities::of(&hello(Json::Null)).fork);
    }

    #[test]
    fn another_version_of_the_protocol_is_left_alone() {
        let hello = json!({ "protocolVersion": 2, "capabilities": {} });
        assert_eq!(completed(hello.clone()), hello);
    }
}
