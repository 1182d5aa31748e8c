//! The message at which a session is forked, in the dialects that clients use.
//!
//! The proposal puts `messageId` beside `sessionId`. Clients that may only send members known to
//! their schema put it under `_meta`, as `messageId` or `tine.messageId`. JetBrains has its own
//! form. If several are present, they must agree. A fork point that cannot be understood is
//! refused: ignoring it would fork the whole session.

use tine_core::Json;

use crate::json_rpc::{RpcError, RpcResult};

/// The version of JetBrains' form that is supported.
const JETBRAINS_VERSION: u64 = 1;

/// Returns the id of the message at which a fork ends, or `None` for the whole session.
pub(crate) fn message_id(params: &Json) -> RpcResult<Option<&str>> {
    let meta = params.get("_meta").unwrap_or(&Json::Null);
    let own = meta.get("tine").and_then(|own| own.get("messageId"));
    let given = [
        plain("messageId", params.get("messageId"))?,
        plain("_meta.messageId", meta.get("messageId"))?,
        plain("_meta.tine.messageId", own)?,
        jetbrains(meta)?,
    ];
    let mut given = given.into_iter().flatten();
    let Some(anchor) = given.next() else { return Ok(None) };
    match given.find(|other| *other != anchor) {
        None => Ok(Some(anchor)),
        Some(other) => {
            let why = format!("conflicting messages to fork at: `{anchor}` and `{other}`");
            Err(RpcError::bad_message(anchor, why))
        }
    }
}

/// Returns the parameters without the fork point, in every dialect.
pub(crate) fn without_message_id(params: &Json) -> Json {
    let mut params = params.clone();
    for place in [
        &["messageId"][..],
        &["_meta", "messageId"],
        &["_meta", "tine", "messageId"],
        &["_meta", "jetbrains", "air", "fork"],
    ] {
        remove(&mut params, place);
    }
    params
}

fn remove(value: &mut Json, place: &[&str]) {
    let Some(members) = value.as_object_mut() else { return };
    match place {
        [] => {}
        [name] => drop(members.remove(name)),
        [name, rest @ ..] => {
            if let Some(inner) = members.get_mut(name) {
                remove(inner, rest);
            }
        }
    }
}

fn plain<'v>(place: &str, value: Option<&'v Json>) -> RpcResult<Option<&'v str>> {
    match value {
        None | Some(Json::Null) => Ok(None),
        Some(Json::String(id)) => Ok(Some(id)),
        Some(_) => Err(RpcError::invalid(format!("`{place}` must be a string"))),
    }
}

fn jetbrains(meta: &Json) -> RpcResult<Option<&str>> {
    let fork = meta.at(&["jetbrains", "air", "fork"]).unwrap_or(&Json::Null);
    if fork.is_null() {
        return Ok(None);
    }
    let place = "_meta.jetbrains.air.fork";
    if fork.get("version").and_then(Json::as_u64) != Some(JETBRAINS_VERSION) {
        let why = format!("`{place}.version` must be {JETBRAINS_VERSION}");
        return Err(RpcError::invalid(why));
    }
    match plain(&format!("{place}.messageId"), fork.get("messageId"))? {
        Some(id) => Ok(Some(without_segment(id))),
        None => Err(RpcError::invalid(format!("`{place}.messageId` is missing"))),
    }
}

/// Strips `:segment:N`, which older clients add to number the displayed parts of a message.
fn without_segment(id: &str) -> &str {
    match id.rsplit_once(":segment:") {
        Some((id, number)) if number.bytes().all(|byte| byte.is_ascii_digit()) => id,
        _ => id,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json_macro::json;

    fn air(fork: Json) -> Json {
        json!({ "_meta": { "jetbrains": { "air": { "fork": fork } } } })
    }

    #[test]
    fn every_dialect_names_the_same_message() {
        let given = [
            json!({ "messageId": "m" }),
            json!({ "_meta": { "messageId": "m" } }),
            json!({ "_meta": { "tine": { "messageId": "m" } } }),
            air(json!({ "version": 1, "messageId": "m" })),
            air(json!({ "version": 1, "messageId": "m:segment:3" })),
            json!({ "messageId": "m", "_meta": { "messageId": "m" } }),
        ];
        for params in given {
            assert_eq!(message_id(&params), Ok(Some("m")), "{params}");
            assert_eq!(message_id(&without_message_id(&params)), Ok(None), "{params}");
        }
    }

    #[test]
    fn parameters_without_a_message_fork_the_whole_session() {
        for params in [json!({}), json!({ "messageId": null }), json!({ "_meta": { "x": 1 } })] {
            assert_eq!(message_id(&params), Ok(None), "{params}");
        }
    }

    #[test]
    fn a_malformed_fork_point_is_refused() {
        let given = [
            json!({ "messageId": 7 }),
            json!({ "messageId": ["m"] }),
            json!({ "_meta": { "messageId": true } }),
            json!({ "messageId": "m", "_meta": { "messageId": "n" } }),
            air(json!({ "version": 2, "messageId": "m" })),
            air(json!({ "version": 1 })),
            air(json!({ "version": 1, "messageFingerprint": "sha256:0" })),
            air(json!("m")),
        ];
        for params in given {
            assert!(message_id(&params).is_err(), "{params}");
        }
    }
}
