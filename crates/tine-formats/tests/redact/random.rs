//! What holds for any text: redacting twice is redacting once, nothing else changes, and no text
//! makes it fail.

use proptest::prelude::*;
use tine_core::{Body, Json, json};
use tine_formats::redact;

use super::clean;

/// Texts of pieces that secrets are made of, so that they often lie side by side.
fn texts() -> impl Strategy<Value = String> {
    let key = "[A-Za-z0-9]{36,40}";
    let piece = prop_oneof![
        2 => any::<String>(),
        2 => "[A-Za-z0-9_=:/@.\"' \\n-]{0,24}",
        1 => key.prop_map(|key| format!("ghp_{key}")),
        1 => key.prop_map(|key| format!("sk-ant-{key}")),
        1 => key.prop_map(|key| format!("sk-{key}")),
        1 => "[A-Z0-9]{16}".prop_map(|key| format!("AKIA{key}")),
        1 => (key, key).prop_map(|(a, b)| format!("eyJ{a}.{b}.{a}")),
        1 => key.prop_map(|key| format!("Authorization: Bearer {key}")),
        1 => key.prop_map(|key| format!("://user:{key}@host")),
        1 => key.prop_map(|key| format!("API_TOKEN={key}")),
        1 => key.prop_map(|key| format!("\"password\": \"{key}\"")),
        1 => Just("-----BEGIN PRIVATE KEY-----".to_owned()),
        1 => Just("-----END PRIVATE KEY-----".to_owned()),
        1 => Just("[redacted:".to_owned()),
        1 => Just("[redacted:github]".to_owned()),
        1 => Just(";base64,".to_owned()),
    ];
    prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

/// The pieces between what stands in the place of secrets.
fn kept(text: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    let (mut rest, mut from) = (text, 0);
    while let Some(at) = rest[from..].find("[redacted:").map(|at| at + from) {
        let word = &rest[at + "[redacted:".len()..];
        let length = word.bytes().take_while(|it| it.is_ascii_lowercase() || *it == b'_').count();
        if word.as_bytes().get(length) == Some(&b']') {
            pieces.push(&rest[..at]);
            rest = &word[length + 1..];
            from = 0;
        } else {
            from = at + 1;
        }
    }
    pieces.push(rest);
    pieces
}

/// Whether a text is another one with some parts replaced.
fn is_part_of(clean: &str, text: &str) -> bool {
    let mut rest = text;
    kept(clean).into_iter().all(|piece| match rest.find(piece) {
        Some(at) => {
            rest = &rest[at + piece.len()..];
            true
        }
        None => false,
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn redaction_is_idempotent(text in texts()) {
        let (once, _) = clean(&text);
        let (twice, found) = clean(&once);
        prop_assert_eq!(&twice, &once);
        prop_assert!(found.is_empty());
    }

    #[test]
    fn only_secrets_are_changed(text in texts()) {
        let (clean, found) = clean(&text);
        prop_assert!(is_part_of(&clean, &text), "{text:?} became {clean:?}");
        prop_assert_eq!(found.is_empty(), clean == text);
    }

    #[test]
    fn any_text_can_be_redacted(text in any::<String>()) {
        clean(&text);
    }

    #[test]
    fn redacting_blocks_keeps_their_structure_and_is_idempotent(name in "[a-z_]{1,12}", text in texts()) {
        let block = json::object([("type", "x".into()), ("text", text.as_str().into()), ("password", text.as_str().into())]);
        let more = json::object([("type", "y".into()), (name.as_str(), Json::from(text))]);
        let mut body = Body::Blocks(Json::Array(vec![block, more]).to_canonical());
        redact::body(&mut body);
        let once = body.clone();
        prop_assert_eq!(body.blocks().expect("they are JSON").len(), 2);
        prop_assert!(redact::body(&mut body).is_empty());
        prop_assert_eq!(body, once);
    }
}
