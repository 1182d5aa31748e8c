//! Finds secrets in a text.
//!
//! One pass checks at every start of a word whether a secret begins there. A replacement can create
//! a new start of a word, so passes are repeated until one finds nothing: redaction is idempotent.

use std::ops::Range;

use super::key_patterns::{KEY_PATTERNS, may_begin};
use super::names::{distinct, is_placeholder, is_random, is_secret};
use super::{Redacted, marker};

/// The least number of distinct characters of a key; fewer are a placeholder such as `xxxxxxxx`.
const DISTINCT: usize = 6;

/// The longest name that is looked at in front of `=` or `:`.
const NAME_BYTES: usize = 64;

/// The longest part of a web token.
const PART_BYTES: usize = 8_192;

/// The longest value that is redacted after a name.
const VALUE_BYTES: usize = 4_096;

/// A secret in a text.
struct Secret {
    kind: &'static str,
    /// What is replaced.
    at: Range<usize>,
}

/// Replaces the secrets of a text and counts them by kind. `None` when it holds none.
pub fn text(text: &str, found: &mut Redacted) -> Option<String> {
    let mut clean = pass(text, found)?;
    // Every pass leaves fewer characters outside of markers, so this ends.
    while let Some(cleaner) = pass(&clean, found) {
        clean = cleaner;
    }
    Some(clean)
}

fn pass(text: &str, found: &mut Redacted) -> Option<String> {
    let bytes = text.as_bytes();
    let mut out: Option<String> = None;
    let (mut copied, mut at) = (0, 0);
    while at < bytes.len() {
        let word = is_word(bytes[at]);
        if !word && !matches!(bytes[at], b'[' | b';' | b':' | b'-') {
            at += 1;
            continue;
        }
        if let Some(end) = skipped(text, at) {
            at = end;
            continue;
        }
        match secret(text, at) {
            Some(Secret { kind, at: range }) => {
                let out = out.get_or_insert_with(|| String::with_capacity(text.len()));
                out.push_str(&text[copied..range.start]);
                out.push_str(&marker(kind));
                *found.entry(kind.to_owned()).or_default() += 1;
                (copied, at) = (range.end, range.end);
            }
            // Nothing begins within a word.
            None if word => at += run(&bytes[at..], is_word),
            None => at += 1,
        }
    }
    let mut out = out?;
    out.push_str(&text[copied..]);
    Some(out)
}

/// Returns the end of text that is skipped: a marker, or data in a URL.
fn skipped(text: &str, at: usize) -> Option<usize> {
    let rest = text.as_bytes().get(at..)?;
    if let Some(kind) = rest.strip_prefix(b"[redacted:") {
        let length = run(kind, |byte| byte.is_ascii_lowercase() || byte == b'_');
        return (kind.get(length) == Some(&b']')).then_some(at + "[redacted:".len() + length + 1);
    }
    if let Some(data) = rest.strip_prefix(b";base64,") {
        let base64 = |byte: u8| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte);
        return Some(at + ";base64,".len() + run(data, base64));
    }
    None
}

/// Returns the secret that begins at a place, or that a word beginning there announces.
fn secret(text: &str, at: usize) -> Option<Secret> {
    let bytes = text.as_bytes();
    match bytes[at] {
        b':' => return url_password(text, at),
        b'-' => return private_key(text, at),
        byte if !is_word(byte) => return None,
        _ => {}
    }
    if at > 0 && is_word(bytes[at - 1]) {
        return None;
    }
    pattern_match(bytes, at)
        .or_else(|| web_token(bytes, at))
        .or_else(|| authorization(text, at))
        .or_else(|| assigned(text, at))
}

/// What words are made of, for [`is_word`].
static WORD: [bool; 256] = {
    let mut word = [false; 256];
    let mut byte = 0_u8;
    while byte < 128 {
        word[byte as usize] = byte.is_ascii_alphanumeric() || byte == b'_';
        byte += 1;
    }
    word
};

fn is_word(byte: u8) -> bool {
    WORD[usize::from(byte)]
}

fn run(bytes: &[u8], holds: impl Fn(u8) -> bool) -> usize {
    bytes.iter().take_while(|byte| holds(**byte)).count()
}

/// Returns a key with a known prefix.
fn pattern_match(bytes: &[u8], at: usize) -> Option<Secret> {
    let rest = &bytes[at..];
    if !may_begin(*rest.first_chunk()?) {
        return None;
    }
    for pattern in KEY_PATTERNS {
        let Some(key) = rest.strip_prefix(pattern.prefix.as_bytes()) else { continue };
        let key = &key[..key.len().min(pattern.most + 1)];
        let length = run(key, |byte| pattern.alphabet.holds(byte));
        let whole = key.get(length).is_none_or(|byte| !byte.is_ascii_alphanumeric());
        let fits = (pattern.least..=pattern.most).contains(&length) && whole;
        if fits && distinct(&key[..length]) >= DISTINCT {
            let end = at + pattern.prefix.len() + length;
            return Some(Secret { kind: pattern.kind, at: at..end });
        }
    }
    None
}

/// Returns a JSON web token: three parts of base64, of which the first is an object.
fn web_token(bytes: &[u8], at: usize) -> Option<Secret> {
    let inside = at > 0 && matches!(bytes[at - 1], b'-' | b'.');
    if inside || !bytes[at..].starts_with(b"eyJ") {
        return None;
    }
    let mut end = at;
    for part in 0..3 {
        if part > 0 {
            if bytes.get(end) != Some(&b'.') {
                return None;
            }
            end += 1;
        }
        let word = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        let length = run(&bytes[end..(end + PART_BYTES).min(bytes.len())], word);
        if length < 10 {
            return None;
        }
        end += length;
    }
    Some(Secret { kind: "jwt", at: at..end })
}

/// Returns the block of a private key, down to its last line, or to the end of a text that was cut.
fn private_key(text: &str, at: usize) -> Option<Secret> {
    let head = text[at..].strip_prefix("-----BEGIN ")?;
    let name = &head[..head.find("-----")?];
    if name.len() > 64 || !name.contains("PRIVATE KEY") || name.contains('\n') {
        return None;
    }
    let last = format!("-----END {name}-----");
    let end = text[at..].find(&last).map_or(text.len(), |end| at + end + last.len());
    Some(Secret { kind: "private_key", at: at..end })
}

/// Returns the password of `scheme://user:password@host`.
fn url_password(text: &str, at: usize) -> Option<Secret> {
    let authority = text[at..].strip_prefix("://")?;
    let ends = |letter: char| {
        letter.is_whitespace() || matches!(letter, '/' | '?' | '#' | '"' | '\'' | '<' | '>' | '`')
    };
    let authority = &authority[..authority.find(ends).unwrap_or(authority.len())];
    let (user_info, _) = authority.rsplit_once('@')?;
    let (user, password) = user_info.split_once(':')?;
    if password.is_empty() || is_placeholder(password) {
        return None;
    }
    let start = at + "://".len() + user.len() + 1;
    Some(Secret { kind: "url_password", at: start..start + password.len() })
}

/// Finds a token after `Bearer` or `Basic`, in a header or where it is long enough to be one.
fn authorization(text: &str, at: usize) -> Option<Secret> {
    let bytes = text.as_bytes();
    if !matches!(bytes[at], b'b' | b'B') {
        return None;
    }
    let scheme = ["bearer ", "basic "].into_iter().find(|scheme| {
        bytes
            .get(at..at + scheme.len())
            .is_some_and(|it| it.eq_ignore_ascii_case(scheme.as_bytes()))
    })?;
    let start = at + scheme.len();
    let token = |byte: u8| {
        byte.is_ascii_alphanumeric()
            || matches!(byte, b'-' | b'.' | b'_' | b'~' | b'+' | b'/' | b'=')
    };
    let value = &bytes[start..start + run(&bytes[start..], token)];
    let value = value.trim_ascii_end();
    let header = b"authorization";
    let from = at.saturating_sub(header.len() + 6);
    let announced = bytes[from..at].windows(header.len()).any(|it| it.eq_ignore_ascii_case(header));
    let random = std::str::from_utf8(value).is_ok_and(is_random);
    let secret = match announced {
        true => value.len() >= 8 && distinct(value) >= 4,
        false => scheme == "bearer " && value.len() >= 20 && random,
    };
    secret.then(|| Secret { kind: "authorization", at: start..start + value.len() })
}

/// Finds a value after `NAME=`, `name: "…"` or `"name": "…"`, where the name is that of a secret.
fn assigned(text: &str, at: usize) -> Option<Secret> {
    let bytes = text.as_bytes();
    let word = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    let length = run(&bytes[at..(at + NAME_BYTES).min(bytes.len())], word);
    let name = &text[at..at + length];
    let mut next = at + length;
    // The quote that ends a quoted name.
    let quoted_name = matches!(bytes.get(next), Some(b'"' | b'\''));
    next += usize::from(quoted_name);
    let blank = |byte: u8| byte == b' ' || byte == b'\t';
    let gap = run(&bytes[next..], blank);
    next += gap;
    let sign = *bytes.get(next)?;
    // Few words are followed by a sign, so this cheap test comes first.
    if sign != b'=' && sign != b':' || !is_secret(name) {
        return None;
    }
    next += 1;
    let space = run(&bytes[next..], blank);
    next += space;
    let quote = bytes.get(next).copied().filter(|byte| matches!(byte, b'"' | b'\''));
    next += usize::from(quote.is_some());
    let ends = |byte: u8| match quote {
        Some(quote) => byte == quote || byte == b'\n',
        None => byte.is_ascii_whitespace() || b"\"'`,;&<>)}]|".contains(&byte),
    };
    let value = &bytes[next..(next + VALUE_BYTES).min(bytes.len())];
    let length = run(value, |byte| !ends(byte));
    if length == VALUE_BYTES {
        return None;
    }
    let value = text.get(next..next + length)?;
    // A known format is more specific than a name.
    let pattern_match = pattern_match(bytes, next).or_else(|| web_token(bytes, next));
    if let Some(pattern_match) =
        pattern_match.filter(|pattern_match| pattern_match.at.end == next + length)
    {
        return Some(pattern_match);
    }
    // A line of an environment says enough by itself; elsewhere the value has to look the part.
    let capitals = !name.bytes().any(|byte| byte.is_ascii_lowercase());
    let environment = capitals && sign == b'=' && gap == 0 && space == 0 && !quoted_name;
    let secret = match environment {
        true => value.len() >= 4 && !is_placeholder(value) && distinct(value.as_bytes()) >= 3,
        false => is_random(value),
    };
    secret.then(|| Secret { kind: "secret", at: next..next + length })
}
