//! The hashes of the contract: its vectors, and the hand-written bytes against the canonicaliser.

use proptest::prelude::*;
use tine_core::hash::{OperationSeal, message_digest, operation_hash, root_hash, turn_hash};
use tine_core::json::{Json, object};
use tine_core::{Body, Digest, Json as Value, Limits, Role, Timestamp, TurnHash};

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn body(content: Value, role: Role) -> Body {
    Body::from_content(content, role, &Limits::default()).unwrap()
}

#[test]
fn the_two_turn_vectors_of_the_contract_come_out() {
    let question = Body::Text("What's the best time to visit Tokyo?".into());
    let first = turn_hash(None, Role::User, &question, None, at("2024-01-15T10:30:00Z"));
    assert_eq!(
        first.to_string(),
        "sha256:a9d2e63be84cb3d0dbeec588566ebea44c8e01ac5e2b3431ab5a59e41750f7a3"
    );
    let answer = Body::Text("Late March 🌸".into());
    let second =
        turn_hash(Some(&first), Role::Assistant, &answer, None, at("2024-01-15T10:30:05Z"));
    assert_eq!(
        second.to_string(),
        "sha256:e38bb1328f493d3701c7848d3afcf32be8a008ecee50490cd5e2e68d18d1ae92"
    );
}

#[test]
fn a_single_plain_text_block_hashes_as_the_bare_string() {
    let block = Json::Array(vec![object([("type", "text".into()), ("text", "Hi".into())])]);
    assert_eq!(body(block, Role::User), body("Hi".into(), Role::User));
}

#[test]
fn a_text_block_with_more_to_it_hashes_as_the_block_array() {
    let marked = Json::Array(vec![object([
        ("type", "text".into()),
        ("text", "Hi".into()),
        ("cache_control", object([("type", "ephemeral".into())])),
    ])]);
    let time = at("2024-01-15T10:30:00Z");
    let marked = turn_hash(None, Role::User, &body(marked, Role::User), None, time);
    let plain = turn_hash(None, Role::User, &Body::Text("Hi".into()), None, time);
    assert_ne!(marked, plain);
}

#[test]
fn the_tool_call_id_is_hashed_for_tool_turns() {
    let time = at("2024-01-15T10:30:00Z");
    let result = Body::Text("42".into());
    let one = turn_hash(None, Role::Tool, &result, Some("call-1"), time);
    let other = turn_hash(None, Role::Tool, &result, Some("call-2"), time);
    assert_ne!(one, other);
    assert_ne!(
        message_digest(Role::Tool, &result, Some("call-1")),
        message_digest(Role::Tool, &result, Some("call-2"))
    );
}

#[test]
fn the_root_hash_covers_prompt_and_config_with_explicit_null() {
    let none = root_hash(None, &Json::Null);
    assert_eq!(none.0, Digest::of(br#"{"config":null,"system_prompt":null}"#));
    let prompt = root_hash(Some("Be brief."), &object([("model", "m".into())]));
    let expected = Digest::of(br#"{"config":{"model":"m"},"system_prompt":"Be brief."}"#);
    assert_eq!(prompt.0, expected);
}

#[test]
fn a_hash_is_read_with_and_without_its_prefix() {
    let hash = TurnHash(Digest::of(b"x"));
    let hex = hash.0.to_hex();
    assert_eq!(hex.parse::<TurnHash>().unwrap(), hash);
    assert_eq!(format!("sha256:{hex}").parse::<TurnHash>().unwrap(), hash);
    assert_eq!(hex.to_uppercase().parse::<TurnHash>().unwrap(), hash);
    assert!(hex[1..].parse::<TurnHash>().is_err());
    assert!(format!("sha512:{hex}").parse::<TurnHash>().is_err());
}

proptest! {
    /// The bytes that are written key by key are the canonical bytes of the same object.
    #[test]
    fn hashed_bytes_are_the_canonical_bytes(
        text in "\\PC{0,40}",
        call in proptest::option::of("\\PC{1,12}"),
        millis in 0_i64..4_000_000_000_000,
        has_parent: bool,
    ) {
        let role = if call.is_some() { Role::Tool } else { Role::Assistant };
        let created_at = Timestamp::from_millis(millis);
        let parent = has_parent.then(|| TurnHash(Digest::of(text.as_bytes())));
        let said = Body::Text(text.clone());
        let mut whole = vec![
            ("content".to_owned(), Json::from(text.as_str())),
            ("created_at".to_owned(), created_at.to_string().into()),
            ("parent_turn_hash".to_owned(), parent.map(|hash| hash.to_string()).into()),
            ("role".to_owned(), role.as_str().into()),
        ];
        if let Some(call) = &call {
            whole.push(("tool_call_id".to_owned(), call.as_str().into()));
        }
        let canonical = Json::Object(whole.into_iter().collect()).to_canonical();
        let hash = turn_hash(parent.as_ref(), role, &said, call.as_deref(), created_at);
        prop_assert_eq!(hash.0, Digest::of(canonical.as_bytes()));

        let mut message = vec![
            ("content".to_owned(), Json::Array(said.blocks().unwrap())),
            ("role".to_owned(), role.as_str().into()),
        ];
        if let Some(call) = &call {
            message.push(("tool_call_id".to_owned(), call.as_str().into()));
        }
        let canonical = Json::Object(message.into_iter().collect()).to_canonical();
        let digest = message_digest(role, &said, call.as_deref());
        prop_assert_eq!(digest, Digest::of(canonical.as_bytes()));
    }

    #[test]
    fn operation_bytes_are_the_canonical_bytes(
        actor in "\\PC{1,12}",
        kind in "[a-z]{1,8}",
        conversation in "\\PC{1,12}",
        seq in 1_u64..1_000_000,
        millis in 0_i64..4_000_000_000_000,
    ) {
        let at = Timestamp::from_millis(millis);
        let detail = Digest::of(actor.as_bytes());
        let seal = OperationSeal {
            conversation_id: &conversation, seq, previous: None, kind: &kind, actor: &actor, at,
            detail: &detail,
        };
        let first = operation_hash(&seal);
        let second = operation_hash(&OperationSeal { previous: Some(&first), ..seal });
        for (previous, hash) in [(None, first), (Some(first), second)] {
            let canonical = object([
                ("actor", actor.as_str().into()),
                ("at", at.to_string().into()),
                ("conversation_id", conversation.as_str().into()),
                ("detail_digest", detail.to_string().into()),
                ("kind", kind.as_str().into()),
                ("previous", previous.map(|hash| hash.to_string()).into()),
                ("seq", seq.into()),
            ]);
            prop_assert_eq!(hash.0, Digest::of(canonical.to_canonical().as_bytes()));
        }
    }
}

proptest! {
    #[test]
    fn times_are_written_as_another_library_writes_them(
        millis in -62_167_219_200_000..=253_402_300_799_999_i64,
    ) {
        let at = Timestamp::from_millis(millis);
        let other = chrono::DateTime::<chrono::Utc>::from_timestamp_millis(millis).unwrap();
        let other = other.to_rfc3339_opts(chrono::SecondsFormat::Millis, true);
        let (whole, fraction) = other.trim_end_matches('Z').split_once('.').unwrap();
        let fraction = fraction.trim_end_matches('0');
        let point = if fraction.is_empty() { "" } else { "." };
        prop_assert_eq!(at.to_string(), format!("{whole}{point}{fraction}Z"));
    }
}
