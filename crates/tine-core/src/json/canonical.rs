//! Canonical text: RFC 8785 strings, key order and structure.
//!
//! Numbers know their own canonical form (see [`Number`](super::Number)), and an
//! [`Object`](super::Object) is always in canonical key order, so writing is a plain walk
//! that sorts nothing.
//!
//! Deliberately absent: any option. There is one canonical form.

use std::cmp::Ordering;

use super::value::{Json, Object};

/// Appends the canonical form of `value`.
pub(super) fn write_value(out: &mut String, value: &Json) {
    match value {
        Json::Null => out.push_str("null"),
        Json::Bool(true) => out.push_str("true"),
        Json::Bool(false) => out.push_str("false"),
        Json::Number(number) => number.write_canonical(out),
        Json::String(text) => write_canonical_string(out, text),
        Json::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_value(out, item);
            }
            out.push(']');
        }
        Json::Object(object) => write_object(out, object),
    }
}

/// Appends the canonical form of an object.
pub(super) fn write_object(out: &mut String, object: &Object) {
    out.push('{');
    for (index, (key, member)) in object.iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        write_canonical_string(out, key);
        out.push(':');
        write_value(out, member);
    }
    out.push('}');
}

/// Appends `text` quoted and with the fewest escapes JSON allows.
///
/// ```
/// let mut out = String::new();
/// tine_core::json::write_canonical_string(&mut out, "a\"b\n\u{7}é/");
/// assert_eq!(out, r#""a\"b\n\u0007é/""#);
/// ```
pub fn write_canonical_string(out: &mut String, text: &str) {
    out.reserve(text.len() + 2);
    out.push('"');
    let mut rest = text;
    loop {
        let run = plain_run(rest.as_bytes());
        let (plain, from_special) = rest.split_at(run);
        out.push_str(plain);
        let Some(&special) = from_special.as_bytes().first() else {
            break;
        };
        write_escape(out, special);
        // Every special byte is ASCII, so one byte is one character.
        rest = &from_special[1..];
    }
    out.push('"');
}

/// Appends the escape of a quote, a backslash or a control character.
fn write_escape(out: &mut String, special: u8) {
    let short = match special {
        b'"' => "\\\"",
        b'\\' => "\\\\",
        0x08 => "\\b",
        b'\t' => "\\t",
        b'\n' => "\\n",
        0x0c => "\\f",
        b'\r' => "\\r",
        _ => {
            const HEX: &[u8; 16] = b"0123456789abcdef";
            out.push_str("\\u00");
            out.push(char::from(HEX[usize::from(special >> 4)]));
            out.push(char::from(HEX[usize::from(special & 0xf)]));
            return;
        }
    };
    out.push_str(short);
}

/// Orders keys by their UTF-16 code units, as RFC 8785 requires.
///
/// ```
/// use std::cmp::Ordering;
/// use tine_core::json::compare_keys;
///
/// assert_eq!(compare_keys("10", "9"), Ordering::Less);
/// // A character beyond U+FFFF sorts by its surrogates, so before U+E000 to U+FFFF.
/// assert_eq!(compare_keys("\u{1f600}", "\u{fb33}"), Ordering::Less);
/// ```
pub fn compare_keys(a: &str, b: &str) -> Ordering {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let differing = a.iter().zip(b).find(|(x, y)| x != y);
    match differing {
        Some((&x, &y)) => utf16_rank(x).cmp(&utf16_rank(y)),
        None => a.len().cmp(&b.len()),
    }
}

/// Makes the first differing UTF-8 byte compare as UTF-16 would.
///
/// UTF-8 bytes sort by code point. UTF-16 differs in one place only: U+E000 to U+FFFF (lead
/// bytes EE and EF) come after the surrogate pairs of everything beyond (lead bytes F0 to F4).
/// No other byte of UTF-8 has these values, so moving the two is enough.
fn utf16_rank(byte: u8) -> u8 {
    match byte {
        0xee | 0xef => byte + 0x10,
        _ => byte,
    }
}

/// Returns how many bytes from the start stand for themselves inside a JSON string: everything up
/// to the first quote, backslash or control character.
///
/// The reader and the writer spend most of their time here, hence 64 bytes at a time, in a form
/// that compilers turn into vector instructions, and eight where that is too many.
pub(super) fn plain_run(bytes: &[u8]) -> usize {
    let (blocks, _) = bytes.as_chunks::<64>();
    let plain = |block: &&[u8; 64]| {
        block.iter().fold(0, |found, &byte| found | u8::from(is_special(byte))) == 0
    };
    let skipped = 64 * blocks.iter().take_while(plain).count();
    skipped + plain_words(&bytes[skipped..])
}

fn is_special(byte: u8) -> bool {
    byte < 0x20 || byte == b'"' || byte == b'\\'
}

/// Does the same eight bytes at a time.
fn plain_words(bytes: &[u8]) -> usize {
    const ONES: u64 = u64::from_le_bytes([1; 8]);
    const HIGH: u64 = ONES << 7;
    /// Sets the high bit of each byte below `limit`; exact up to and including the first.
    fn below(word: u64, limit: u8) -> u64 {
        word.wrapping_sub(ONES * u64::from(limit)) & !word
    }

    let (chunks, tail) = bytes.as_chunks::<8>();
    for (index, chunk) in chunks.iter().enumerate() {
        let word = u64::from_le_bytes(*chunk);
        let quote = below(word ^ (ONES * u64::from(b'"')), 1);
        let backslash = below(word ^ (ONES * u64::from(b'\\')), 1);
        let special = (below(word, 0x20) | quote | backslash) & HIGH;
        if special != 0 {
            return index * 8 + special.trailing_zeros() as usize / 8;
        }
    }
    let in_tail = tail.iter().position(|&byte| is_special(byte));
    bytes.len() - tail.len() + in_tail.unwrap_or(tail.len())
}
