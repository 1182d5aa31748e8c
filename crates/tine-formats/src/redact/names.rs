//! Recognises names of secrets, and values that look like secrets.

/// Words that end the name of a secret.
const SECRET: &[&str] = &[
    "secret",
    "token",
    "password",
    "passwd",
    "pwd",
    "passphrase",
    "apikey",
    "credential",
    "credentials",
    "authorization",
];

/// Two words that end the name of a secret.
const SECRET_KEY: &[&str] =
    &["api", "access", "private", "secret", "auth", "encryption", "signing"];

/// Tokens that only say where a listing goes on.
const HARMLESS: &[&str] = &["page", "next", "continuation", "sync", "cursor", "end", "start"];

/// The shortest value that can be taken for random.
const SHORTEST_RANDOM: usize = 8;

/// The shortest text that is taken for data.
const SHORTEST_DATA: usize = 256;

/// Returns the words of a name: `apiKey`, `API_KEY` and `x-api-key` all have `api` and `key`.
fn split_words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = vec![String::new()];
    let mut lower_before = false;
    for letter in name.chars() {
        if !letter.is_alphanumeric() {
            words.push(String::new());
            lower_before = false;
            continue;
        }
        if letter.is_uppercase() && lower_before {
            words.push(String::new());
        }
        lower_before = letter.is_lowercase() || letter.is_ascii_digit();
        if let Some(word) = words.last_mut() {
            word.extend(letter.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Returns whether a name ends like one of a secret. Nearly none does, and that is seen without
/// taking it apart.
fn ends_secretly(name: &str) -> bool {
    let name = name.trim_end_matches(|letter: char| !letter.is_alphanumeric()).as_bytes();
    SECRET.iter().chain(&["key"]).any(|word| {
        let end = name.len().checked_sub(word.len()).map(|start| &name[start..]);
        end.is_some_and(|end| end.eq_ignore_ascii_case(word.as_bytes()))
    })
}

/// Returns whether a name says that its value is a secret.
pub(super) fn is_secret(name: &str) -> bool {
    if name.is_ascii() && !ends_secretly(name) {
        return false;
    }
    let words = split_words(name);
    let mut back = words.iter().rev().map(String::as_str);
    match (back.next(), back.next()) {
        (Some("key"), Some(before)) => SECRET_KEY.contains(&before),
        (Some("token"), Some(before)) if HARMLESS.contains(&before) => false,
        (Some(last), _) => SECRET.contains(&last),
        (None, _) => false,
    }
}

/// Returns whether a name says that its value is an id, a digest, a signature or data.
pub(super) fn is_exempt(name: &str) -> bool {
    let words = split_words(name);
    let last = words.last().map_or("", String::as_str);
    ["id", "ids", "uuid", "hash", "digest", "sha256", "signature", "type"].contains(&last)
}

/// Returns whether a value could be a secret: one word of mixed characters, not a placeholder, and
/// none of the things that only look random.
pub(super) fn is_random(value: &str) -> bool {
    let bytes = value.as_bytes();
    if bytes.len() < SHORTEST_RANDOM
        || bytes.iter().any(|byte| byte.is_ascii_whitespace() || !byte.is_ascii_graphic())
        || is_placeholder(value)
        || is_uuid(value)
        || value.starts_with("sha256:")
        || value.contains("://")
    {
        return false;
    }
    let has = |test: fn(&u8) -> bool| usize::from(bytes.iter().any(test));
    let kinds = has(u8::is_ascii_lowercase)
        + has(u8::is_ascii_uppercase)
        + has(u8::is_ascii_digit)
        + has(u8::is_ascii_punctuation);
    kinds >= 2
        && distinct(bytes) >= 6
        && has(u8::is_ascii_digit) + has(u8::is_ascii_punctuation) > 0
}

/// Different bytes among these.
pub(super) fn distinct(bytes: &[u8]) -> usize {
    let mut seen = [false; 256];
    bytes.iter().for_each(|byte| seen[usize::from(*byte)] = true);
    seen.iter().filter(|seen| **seen).count()
}

/// Returns whether a value stands for one that is elsewhere, or was redacted already.
pub(super) fn is_placeholder(value: &str) -> bool {
    let lower = value.to_ascii_lowercase();
    value.contains("[redacted:")
        || value.starts_with(['$', '<', '{', '%', '*', '(', '['])
        || value.contains("${")
        || value.contains(['(', '['])
        || ["your", "example", "changeme", "placeholder", "xxxx", "..."]
            .iter()
            .any(|word| lower.contains(word))
}

fn is_uuid(value: &str) -> bool {
    value.len() == 36
        && value.bytes().enumerate().all(|(index, byte)| match index {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}

/// Returns whether a text is data, such as an image: long, and nothing but base64.
pub(super) fn is_base64(value: &str) -> bool {
    value.len() >= SHORTEST_DATA
        && value.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::{is_exempt, is_random, is_secret};

    #[test]
    fn names_are_read_word_by_word() {
        for name in
            ["api_key", "apiKey", "X-Api-Key", "DB_PASSWORD", "clientSecret", "token", "TOKEN_"]
        {
            assert!(is_secret(name), "{name}");
        }
        for name in
            ["max_tokens", "key", "next_page_token", "tokenizer", "secretary", "monkey", "result"]
        {
            assert!(!is_secret(name), "{name}");
        }
        for name in ["id", "turn_id", "callId", "message_digest", "signature"] {
            assert!(is_exempt(name), "{name}");
        }
        assert!(!is_exempt("video"));
    }

    #[test]
    fn values_are_random_or_they_are_not() {
        for value in ["hunter2!X", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYzK3l4m", "9f86d081884c7d65"] {
            assert!(is_random(value), "{value}");
        }
        for value in [
            "changeme1",
            "$TOKEN_1",
            "${TOKEN}",
            "password",
            "aaaaaaa1",
            "two words 1",
            "<token-1>",
        ] {
            assert!(!is_random(value), "{value}");
        }
    }
}
