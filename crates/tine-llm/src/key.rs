//! API keys: read from the environment for each call and never shown.

use std::fmt;

use http::HeaderValue;
use http::header::{AUTHORIZATION, HeaderName};

use crate::provider::Protocol;

/// Shorter keys are not scrubbed: they are not secrets, and occur in ordinary text.
const SHORTEST_SCRUBBED: usize = 6;

/// Replaces a key.
const SCRUBBED: &[u8] = b"[key]";

pub(crate) struct Key(Option<String>);

impl Key {
    pub(crate) fn none() -> Key {
        Key(None)
    }

    /// Returns a key that can be sent. White space around it is removed.
    pub(crate) fn new(text: &str) -> Option<Key> {
        let text = text.trim();
        let sendable = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
        sendable.then(|| Key(Some(text.to_owned())))
    }

    /// Returns the headers of a request with the key.
    pub(crate) fn headers(&self, kind: Protocol) -> Vec<(HeaderName, HeaderValue)> {
        let mut headers = Vec::new();
        if kind == Protocol::Anthropic {
            let version = HeaderName::from_static("anthropic-version");
            headers.push((version, HeaderValue::from_static("2023-06-01")));
        }
        let value = self.0.as_ref().map(|key| match kind {
            Protocol::Anthropic => (HeaderName::from_static("x-api-key"), key.clone()),
            Protocol::OpenAi | Protocol::Ollama => (AUTHORIZATION, format!("Bearer {key}")),
        });
        if let Some((name, value)) = value
            && let Ok(mut value) = HeaderValue::try_from(value)
        {
            value.set_sensitive(true);
            headers.push((name, value));
        }
        headers
    }

    /// Removes the key from a response: some endpoints repeat an invalid key.
    pub(crate) fn scrub(&self, bytes: &mut Vec<u8>) {
        let Some(key) = self.0.as_deref().filter(|key| key.len() >= SHORTEST_SCRUBBED) else {
            return;
        };
        // Some writers of JSON escape slashes.
        for key in [key.to_owned(), key.replace('/', "\\/")] {
            let key = key.as_bytes();
            let find = |rest: &[u8]| rest.windows(key.len()).position(|it| it == key);
            let Some(mut at) = find(bytes) else { continue };
            let (mut kept, mut rest) = (Vec::with_capacity(bytes.len()), &bytes[..]);
            loop {
                kept.extend_from_slice(&rest[..at]);
                kept.extend_from_slice(SCRUBBED);
                rest = &rest[at + key.len()..];
                match find(rest) {
                    Some(next) => at = next,
                    None => break,
                }
            }
            kept.extend_from_slice(rest);
            *bytes = kept;
        }
    }

    /// Removes the key from a text.
    pub(crate) fn scrub_text(&self, text: &mut String) {
        if let Some(key) = self.0.as_deref().filter(|key| key.len() >= SHORTEST_SCRUBBED)
            && text.contains(key)
        {
            *text = text.replace(key, "[key]");
        }
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Key(…)" } else { "Key(none)" })
    }
}

#[cfg(test)]
mod tests {
    use super::{Key, Protocol};

    #[test]
    fn a_key_is_not_shown_and_is_removed_from_texts() {
        let key = Key::new(" sk-secret-1\n").expect("it is a key");
        let shown = format!("{key:?} {:?}", key.headers(Protocol::OpenAi));
        assert!(!shown.contains("sk-secret-1"), "{shown}");
        let mut bytes = b"sk-secret-1 is wrong, sk-secret-1!".to_vec();
        key.scrub(&mut bytes);
        assert_eq!(bytes, b"[key] is wrong, [key]!");
        assert!(Key::new("two words").is_none());
    }
}
