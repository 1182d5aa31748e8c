//! Integers beyond 64 bits in answers, written with every digit.
//!
//! The SDK carries answers as `serde_json` values, which cannot hold these integers (the reason why
//! the feature `arbitrary_precision` is not used is in `tine_core::json`). Until an answer is
//! written, such an integer is therefore a string: a random mark, then its digits. The transports
//! of this crate replace that string by the number when they write bytes.
//!
//! The mark never leaves the process, so no stored text can be mistaken for a marked integer.

use std::fmt::Display;
use std::sync::OnceLock;

use bytes::Bytes;
use serde_json::Value;
use tine_engine::{Entropy, SystemEntropy};

/// Returns how the JSON of a marked integer begins, with the quotation mark.
fn quoted_mark() -> &'static str {
    static MARK: OnceLock<String> = OnceLock::new();
    MARK.get_or_init(|| {
        let random = SystemEntropy.ten_bytes().map(|byte| format!("{byte:02x}"));
        format!("\"integer-{}:", random.concat())
    })
}

fn mark() -> &'static str {
    &quoted_mark()[1..]
}

/// Returns the string that stands for an integer with these digits.
pub(crate) fn marked(digits: impl Display) -> Value {
    format!("{}{digits}", mark()).into()
}

pub(crate) fn is_marked(text: &str) -> bool {
    text.starts_with(mark())
}

/// Replaces the marked integers in JSON by numbers.
pub(crate) fn write_numbers(json: String) -> String {
    let mut parts = json.split(quoted_mark());
    let first = parts.next().unwrap_or_default();
    if first.len() == json.len() {
        return json;
    }
    let mut out = String::with_capacity(json.len());
    out.push_str(first);
    for part in parts {
        let (digits, rest) = part.split_once('"').unwrap_or((part, ""));
        out.push_str(digits);
        out.push_str(rest);
    }
    out
}

/// Replaces the marked integers in the bytes of JSON messages by numbers. No mark may be cut in
/// two.
pub(crate) fn write_numbers_in(bytes: Bytes) -> Bytes {
    match std::str::from_utf8(&bytes) {
        Ok(json) if json.contains(quoted_mark()) => write_numbers(json.to_owned()).into(),
        _ => bytes,
    }
}

/// Replaces marked integers by strings of their digits, for a transport that cannot write numbers.
pub(crate) fn to_digit_strings(value: &mut Value) {
    match value {
        Value::String(text) => {
            if let Some(digits) = text.strip_prefix(mark()) {
                *text = digits.to_owned();
            }
        }
        Value::Array(items) => items.iter_mut().for_each(to_digit_strings),
        Value::Object(members) => members.values_mut().for_each(to_digit_strings),
        _ => {}
    }
}
