//! Lenient JSON parsing for files of other programs.
//!
//! Logs contain lone surrogates, duplicate keys and invalid UTF-8, which the strict parser rejects.
//! Such a text is repaired, and the result says how.

use std::borrow::Cow;

use tine_core::Json;
use tine_core::json::{JsonErrorKind, MAX_DEPTH, parse};

/// A value, and what had to be changed to read it.
pub(crate) type ParseResult = Result<(Json, Option<&'static str>), String>;

/// Reads one value.
pub(crate) fn read(bytes: &[u8]) -> ParseResult {
    let error = match parse(bytes, MAX_DEPTH) {
        Ok(json) => return Ok((json, None)),
        Err(error) => error,
    };
    let (text, what) = match String::from_utf8_lossy(bytes) {
        Cow::Owned(text) => (text, "invalid UTF-8 became \u{fffd}"),
        Cow::Borrowed(text) => {
            let what = match error.kind {
                JsonErrorKind::DuplicateKey { .. } => "a repeated key; the last one was used",
                _ => "a lone surrogate became \u{fffd}",
            };
            (text.to_owned(), what)
        }
    };
    let text = whole_surrogates(&text);
    match parse(text.as_bytes(), MAX_DEPTH) {
        Ok(json) => Ok((json, Some(what))),
        // Of a repeated key, serde keeps the last.
        Err(_) => match serde_json::from_str::<serde_json::Value>(&text) {
            Ok(value) => parse(value.to_string().as_bytes(), MAX_DEPTH)
                .map(|json| (json, Some(what)))
                .map_err(|error| error.to_string()),
            Err(_) => Err(error.to_string()),
        },
    }
}

/// Replaces escapes of lone surrogates by the escape of the replacement character.
fn whole_surrogates(text: &str) -> String {
    let unit = |at: usize| -> Option<u32> {
        let digits = text.get(at..at + 6)?.strip_prefix("\\u")?;
        u32::from_str_radix(digits, 16).ok()
    };
    let mut out = String::with_capacity(text.len());
    let mut rest = 0;
    let mut at = 0;
    let bytes = text.as_bytes();
    while at < bytes.len() {
        if bytes[at] != b'\\' {
            at += 1;
            continue;
        }
        match unit(at) {
            Some(0xd800..=0xdbff) if matches!(unit(at + 6), Some(0xdc00..=0xdfff)) => at += 12,
            Some(0xd800..=0xdfff) => {
                out.push_str(&text[rest..at]);
                out.push_str("\\ufffd");
                at += 6;
                rest = at;
            }
            _ => at += 2,
        }
    }
    out.push_str(text.get(rest..).unwrap_or_default());
    out
}

/// Returns the text of a member, unless it is empty.
pub(crate) fn text<'j>(json: &'j Json, name: &str) -> Option<&'j str> {
    json.get(name).and_then(Json::as_str).filter(|text| !text.is_empty())
}

/// Returns the items of a member; none if it is not an array.
pub(crate) fn items<'j>(json: &'j Json, name: &str) -> &'j [Json] {
    json.get(name).and_then(Json::as_array).unwrap_or_default()
}

/// Returns whether a member is `true`.
pub(crate) fn is(json: &Json, name: &str) -> bool {
    json.get(name).and_then(Json::as_bool) == Some(true)
}
