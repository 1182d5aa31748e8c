//! Where a fork is cut, in the dialects that clients speak.
//!
//! The proposal puts `messageId` beside `sessionId`; clients that may not send what their schema
//! does not know put it under `_meta`, plainly or as `tine.messageId`; JetBrains has a form of its
//! own. All that are given must agree. What was meant as an anchor and cannot be read is refused:
//! taking it for none would fork the whole session.

use tine_core::Json;

use crate::wire::Refusal;

/// The version of JetBrains' form that is known.
const JETBRAINS_VERSION: u64 = 1;

/// The message at which a fork ends; `None` is the whole session.
pub(crate) fn read(params: &Json) -> Result<Option<&str>, Refusal> {
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
            let why = format!("two messages are named to fork at, `{anchor}` and `{other}`");
            Err(Refusal::message(anchor, why))
        }
    }
}

/// The same parameters without an anchor in any dialect.
pub(crate) fn without(params: &Json) -> Json {
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

fn plain<'v>(place: &str, value: Option<&'v Json>) -> Result<Option<&'v str>, Refusal> {
    match value {
        None | Some(Json::Null) => Ok(None),
        Some(Json::String(id)) => Ok(Some(id)),
        Some(_) => Err(Refusal::invalid(format!("`{place}` must be a string"))),
    }
}

fn jetbrains(meta: &Json) -> Result<Option<&str>, Refusal> {
    let fork = meta.at(&["jetbrains", "air", "fork"]).unwrap_or(&Json::Null);
    if fork.is_null() {
        return Ok(None);
    }
    let place = "_meta.jetbrains.air.fork";
    if fork.get("version").and_then(Json::as_u64) != Some(JETBRAINS_VERSION) {
        let why = format!("`{place}.version` must be {JETBRAINS_VERSION}");
        return Err(Refusal::invalid(why));
    }
    match plain(&format!("{place}.messageId"), fork.get("messageId"))? {
        Some(id) => Ok(Some(without_segment(id))),
        None => Err(Refusal::invalid(format!("`{place}` names no `messageId`"))),
    }
}

/// Older clients number the parts of a message that they show apart: `ID:segment:N`.
fn without_segment(id: &str) -> &str {
    match id.rsplit_once(":segment:") {
        Some((id, number)) if number.bytes().all(|byte| byte.is_ascii_digit()) => id,
        _ => id,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::json;

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
            assert_eq!(read(&params), Ok(Some("m")), "{params}");
            assert_eq!(read(&without(&params)), Ok(None), "{params}");
        }
    }

    #[test]
    fn what_names_none_is_the_whole_session() {
        for params in [json!({}), json!({ "messageId": null }), json!({ "_meta": { "x": 1 } })] {
            assert_eq!(read(&params), Ok(None), "{params}");
        }
    }

    #[test]
    fn what_was_meant_as_an_anchor_and_is_none_is_refused() {
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
            assert!(read(&params).is_err(), "{params}");
        }
    }
}
