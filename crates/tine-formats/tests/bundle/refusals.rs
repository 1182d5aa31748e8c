//! Everything that is not exactly a bundle is refused, by line and reason.

use proptest::prelude::*;
use tine_core::json::{Object, object};
use tine_core::{ErrorKind, Json};

use super::sample::{self, HEADER, change, place};

/// The sample is changed and sealed anew; reading it must fail at the line that was changed.
fn check(holding: &str, edit: impl FnOnce(&mut Object), why: &str) {
    let mut lines = sample::lines(&sample::bundle());
    let line = place(&lines, holding);
    change(&mut lines[line], edit);
    refused(&sample::seal(&lines), line + 1, why, ErrorKind::Invalid);
}

/// The same for the bytes of the line.
fn check_text(holding: &str, edit: impl FnOnce(&str) -> String, why: &str) {
    let mut lines = sample::lines(&sample::bundle());
    let line = place(&lines, holding);
    lines[line] = edit(&lines[line]);
    refused(&sample::seal(&lines), line + 1, why, ErrorKind::Invalid);
}

fn refused(bundle: &[u8], line: usize, why: &str, kind: ErrorKind) {
    let error = sample::verify(bundle).unwrap_err();
    let text = error.to_string();
    assert!(text.starts_with(&format!("line {line} of the bundle: ")), "{text}\nwanted {line}");
    assert!(text.contains(why), "{text}\nwanted: {why}");
    assert_eq!(error.kind(), kind, "{text}");
}

const CONVERSATION: &str = r#""record":"conversation""#;
const TURN: &str = "Late March";
const TOOL: &str = r#""role":"tool""#;
const PURGED: &str = r#""message_digest""#;
const SPLIT: &str = r#""record":"split""#;
const HIDDEN: &str = r#""record":"hidden""#;
const BRANCH: &str = r#""name":"main""#;
const BOOKMARK: &str = r#""record":"bookmark""#;
const OPERATION: &str = r#""seq":2"#;

#[test]
fn input_that_is_not_a_bundle_is_rejected_at_its_first_line() {
    for other in
        ["", "\n", "{}\n", "[1]\n", "PK\u{3}\u{4}", "{\"format\":\"other\"}\n", "\u{feff}{}\n"]
    {
        refused(other.as_bytes(), 1, "not a Tine bundle", ErrorKind::Invalid);
    }
    refused(&[b'x'; 1 << 20], 1, "not a Tine bundle", ErrorKind::Invalid);
    refused(b"\xff\xfe\n", 1, "not a Tine bundle", ErrorKind::Invalid);
    let newer = HEADER.replace('1', "2") + "\n";
    refused(newer.as_bytes(), 1, "version 2 and this release reads version 1", ErrorKind::Invalid);
    let spaced = HEADER.replace(',', ", ") + "\n";
    refused(spaced.as_bytes(), 1, "canonical form", ErrorKind::Invalid);
}

#[test]
fn unknown_records_and_keys_are_refused() {
    check(
        BOOKMARK,
        |line| drop(line.insert("record", "footnote".into())),
        "unknown record type `footnote`",
    );
    check(BOOKMARK, |line| drop(line.insert("record", 5.into())), "`record` must be a string");
    check(BOOKMARK, |line| drop(line.remove("record")), "lacks the key `record`");
    let kinds = [CONVERSATION, TURN, TOOL, PURGED, SPLIT, HIDDEN, BRANCH, BOOKMARK, OPERATION];
    for kind in kinds {
        check(
            kind,
            |line| drop(line.insert("colour", "red".into())),
            "`colour` is not a key of this",
        );
    }
    let nested = |line: &mut Object| {
        let Some(Json::Object(used)) = line.get_mut("idempotency") else { panic!() };
        used.insert("colour", "red".into());
    };
    check(OPERATION, nested, "`colour` is not a key of this idempotency");
}

/// Every key of every record: absent, and of another type.
#[test]
fn missing_keys_and_wrong_types_are_refused() {
    let optional = [
        "title",
        "derived_from",
        "tool_call_id",
        "edited_from",
        "part_of",
        "forked_from",
        "idempotency",
    ];
    let lines = sample::lines(&sample::bundle());
    for line in 1..lines.len() {
        let members = sample::lines(&sample::bundle())[line].clone();
        let Json::Object(members) = tine_core::json::parse(members.as_bytes(), 64).unwrap() else {
            panic!("every line is an object");
        };
        for key in members.keys() {
            let mut lines = lines.clone();
            change(&mut lines[line], |members| drop(members.remove(key)));
            let error = sample::verify(&sample::seal(&lines));
            let tool = key == "tool_call_id";
            assert!(error.is_err() || optional.contains(&key) && !tool, "{key} absent");

            // Any JSON is a detail, but not one with the right hash.
            let mut lines = lines.clone();
            change(&mut lines[line], |members| {
                members.insert(key, Json::from(vec![Json::from(true)]));
            });
            let error = sample::verify(&sample::seal(&lines));
            assert!(error.is_err(), "{key} as an array: {}", lines[line]);
        }
    }
    check(TURN, |line| drop(line.remove("status")), "the turn lacks the key `status`");
    check(
        TURN,
        |line| drop(line.insert("metadata", Json::Null)),
        "`metadata` must be an object, not null",
    );
    check(
        OPERATION,
        |line| drop(line.insert("undone", 0.into())),
        "`undone` must be true or false",
    );
    check(
        SPLIT,
        |line| drop(line.insert("operation", (-3).into())),
        "`operation` must be a whole number",
    );
    check(
        PURGED,
        |line| drop(line.insert("purged", false.into())),
        "`purged` must be true, or absent",
    );
}

#[test]
fn a_non_canonical_spelling_is_rejected() {
    let canonical = "canonical form";
    check_text(TURN, |line| line.replace(r#"":""#, r#"": ""#), canonical);
    check_text(TURN, |line| line.replace("Late", "\\u004cate"), canonical);
    check_text(TURN, |line| line.replace(r#""operation":2"#, r#""operation":2.0"#), canonical);
    check_text(TURN, |line| format!("{line} "), canonical);
    check_text(TURN, |line| format!("{line}\r"), canonical);
    check_text(TURN, |line| format!("{{\"role\":\"assistant\",{}", &line[1..]), "more than once");

    let early =
        |line: &mut Object| drop(line.insert("created_at", "2024-01-15T11:30:05+01:00".into()));
    check(TURN, early, "must be written `2024-01-15T10:30:05Z`");
    let spelled = "must be written `01890a5d-ac96-774b-bcce-b302099a8001`";
    for other in ["01890A5D-AC96-774B-BCCE-B302099A8001", "01890a5dac96774bbcceb302099a8001"] {
        check(TURN, |line| drop(line.insert("turn_id", other.into())), spelled);
    }
    let bare = |line: &mut Object| {
        let hash = line.get("turn_hash").and_then(Json::as_str).unwrap()[7..].to_owned();
        line.insert("turn_hash", hash.into());
    };
    check(TURN, bare, "must be written `sha256:e38b");
    let tags = object([("tags", Json::from(vec!["b".into(), "a".into()]))]);
    check(
        TURN,
        |line| drop(line.insert("metadata", tags)),
        "must be written `{\"tags\":[\"a\",\"b\"]}`",
    );
    let blank = object([("title", Json::Null)]);
    check(TURN, |line| drop(line.insert("metadata", blank)), "must be written `{}`");
    check(
        TURN,
        |line| drop(line.insert("edited_from", Json::Null)),
        "`edited_from` must be a string",
    );
}

#[test]
fn invalid_values_are_rejected() {
    check(TURN, |line| drop(line.insert("role", "robot".into())), "unknown role `robot`");
    check(TURN, |line| drop(line.insert("status", "half".into())), "unknown status `half`");
    check(TURN, |line| drop(line.insert("content", "bare".into())), "must be an array of blocks");
    check(TURN, |line| drop(line.insert("content", Json::Array(vec![]))), "content is empty");
    check(TURN, |line| drop(line.insert("tool_call_id", "x".into())), "only a tool turn");
    check(TOOL, |line| drop(line.remove("tool_call_id")), "a tool turn needs `tool_call_id`");
    check(TURN, |line| drop(line.insert("created_at", "yesterday".into())), "not an RFC 3339 time");
    check(TURN, |line| drop(line.insert("turn_id", "7".into())), "is not an id");
    check(TURN, |line| drop(line.insert("turn_hash", "sha256:7".into())), "is not a sha256 hash");
    check(HIDDEN, |line| drop(line.insert("by", "magic".into())), "not cascade, reparent or undo");
    check(BRANCH, |line| drop(line.insert("name", "root".into())), "cannot be the name");
    check(
        CONVERSATION,
        |line| drop(line.insert("conversation_id", "".into())),
        "must not be empty",
    );
    let unknown = object([("mood", "good".into())]);
    check(TURN, |line| drop(line.insert("metadata", unknown)), "unknown metadata key `mood`");

    let mut lines = sample::lines(&sample::bundle());
    let line = place(&lines, BOOKMARK);
    change(&mut lines[line], |line| drop(line.insert("name", "n".repeat(600).into())));
    refused(&sample::seal(&lines), line + 1, "at most 512 bytes", ErrorKind::TooLarge);
    lines[line] = "[".repeat(600) + &"]".repeat(600);
    refused(&sample::seal(&lines), line + 1, "nested", ErrorKind::TooLarge);
}

#[test]
fn lines_that_are_not_json_objects_are_rejected() {
    check_text(BOOKMARK, |line| line[..line.len() - 1].to_owned(), "not valid JSON");
    check_text(BOOKMARK, |_| String::new(), "not valid JSON");
    check_text(BOOKMARK, |_| "[]".to_owned(), "must be an object, not array");
    check_text(BOOKMARK, |_| "{\"a\":1e400}".to_owned(), "too large for a double");
    check_text(BOOKMARK, |_| "{\"a\":\"\\ud800\"}".to_owned(), "surrogate");
    let mut bytes = sample::bundle();
    let at = bytes.windows(4).position(|window| window == "Late".as_bytes()).unwrap();
    let line = bytes[..at].iter().filter(|byte| **byte == b'\n').count() + 1;
    bytes[at] = 0xff;
    refused(&bytes, line, "not valid UTF-8", ErrorKind::Invalid);
}

#[test]
fn order_and_references_are_checked() {
    let moved = |from: &str, to: usize, why: &str| {
        let mut lines = sample::lines(&sample::bundle());
        let line = lines.remove(place(&lines, from));
        lines.insert(to, line);
        refused(&sample::seal(&lines), to + 1, why, ErrorKind::Invalid);
    };
    moved(TURN, 1, "comes before its conversation");
    moved(BRANCH, 3, "which does not come before it");
    moved(OPERATION, 1, "comes before its conversation");
    moved(r#""name":"alt/2""#, 16, "out of order");
    moved(r#""name":"alt/2""#, 17, "this branch must come before every bookmark");
    let stranger = "01890a5d-ac96-774b-bcce-b302099a80ff";
    for (record, key) in [
        (TURN, "parent_id"),
        (SPLIT, "left_id"),
        (HIDDEN, "turn_id"),
        (BRANCH, "tip"),
        (BRANCH, "forked_from"),
        (BOOKMARK, "turn_id"),
    ] {
        let why = format!("`{key}` names the turn {stranger}");
        check(record, |line| drop(line.insert(key, stranger.into())), &why);
    }
    check(OPERATION, |line| drop(line.insert("seq", 3.into())), "has seq 3 and must have seq 2");

    let mut lines = sample::lines(&sample::bundle());
    let line = place(&lines, TURN);
    lines.insert(line + 1, lines[line].clone());
    refused(&sample::seal(&lines), line + 2, "occurs twice", ErrorKind::Invalid);
    let other = "01890a5d-ac96-774b-bcce-b302099a80fe";
    change(&mut lines[line + 1], |line| drop(line.insert("turn_id", other.into())));
    refused(&sample::seal(&lines), line + 2, "occurs twice", ErrorKind::Invalid);

    // Whether an operation is there is known only where the next conversation begins.
    let mut lines = sample::lines(&sample::bundle());
    let line = place(&lines, SPLIT);
    change(&mut lines[line], |line| drop(line.insert("operation", 5.into())));
    let next = place(&lines, "erased");
    refused(&sample::seal(&lines), next + 1, "log ends at 4", ErrorKind::Invalid);
}

/// Sealed anew by somebody who wants to hide it, a change of what is hashed is still found.
#[test]
fn a_changed_hash_input_is_detected_even_with_a_correct_end_line() {
    let altered = "it was altered";
    let content = object([("type", "text".into()), ("text", "Late April 🌸".into())]);
    check(TURN, |line| drop(line.insert("content", vec![content].into())), altered);
    check(TURN, |line| drop(line.insert("role", "system".into())), altered);
    check(TURN, |line| drop(line.insert("created_at", "2024-01-15T10:30:06Z".into())), altered);
    check(TOOL, |line| drop(line.insert("tool_call_id", "other".into())), altered);
    check(CONVERSATION, |line| drop(line.insert("system_prompt", "Lie.".into())), altered);
    check(CONVERSATION, |line| drop(line.insert("config", Json::Null)), altered);
    for key in ["actor", "kind"] {
        check(OPERATION, |line| drop(line.insert(key, "somebody else".into())), altered);
    }
    check(OPERATION, |line| drop(line.insert("at", "2024-01-15T10:31:02Z".into())), altered);
    check(OPERATION, |line| drop(line.insert("detail", Json::Null)), altered);
    let zeros = format!("sha256:{}", "0".repeat(64));
    check(OPERATION, |line| drop(line.insert("hash", zeros.as_str().into())), altered);
    check(
        OPERATION,
        |line| drop(line.insert("previous", zeros.as_str().into())),
        "`previous` is sha256:00",
    );
    check(TURN, |line| drop(line.insert("turn_hash", zeros.as_str().into())), altered);
    let link = "`parent_turn_hash` is sha256:00";
    check(TURN, |line| drop(line.insert("parent_turn_hash", zeros.as_str().into())), link);
    check(
        TURN,
        |line| drop(line.insert("parent_turn_hash", Json::Null)),
        "`parent_turn_hash` is null",
    );

    // The conversation's id is in every operation.
    let mut lines = sample::lines(&sample::bundle());
    let line = place(&lines, CONVERSATION);
    change(&mut lines[line], |line| drop(line.insert("conversation_id", "other".into())));
    let first = place(&lines, r#""seq":1"#);
    refused(&sample::seal(&lines), first + 1, altered, ErrorKind::Invalid);
}

#[test]
fn a_missing_line_is_detected_even_with_a_correct_end_line() {
    let whole = sample::lines(&sample::bundle());
    let id = |line: &str| {
        let json = tine_core::json::parse(line.as_bytes(), 64).unwrap();
        json.get("turn_id").and_then(Json::as_str).map(str::to_owned)
    };
    for gone in 1..whole.len() {
        // Without something that nothing points at, the rest is sound in itself.
        let others = whole.iter().enumerate().filter(|(line, _)| *line != gone);
        let pointed_at = match id(&whole[gone]) {
            Some(id) => others.filter(|(_, line)| line.contains(&id)).count() > 0,
            None => !whole[gone].contains(r#""record":"branch""#),
        };
        if !pointed_at || [SPLIT, HIDDEN, BOOKMARK].iter().any(|kind| whole[gone].contains(kind)) {
            continue;
        }
        let mut lines = whole.clone();
        lines.remove(gone);
        assert!(sample::verify(&sample::seal(&lines)).is_err(), "without {}", whole[gone]);
    }
}

#[test]
fn an_incorrect_end_line_is_rejected() {
    let bytes = sample::bundle();
    let text = String::from_utf8(bytes.clone()).unwrap();
    let last = text.lines().count();
    let swap = |from: &str, to: &str, why: &str| {
        let at = text.rfind(from).unwrap();
        let changed = format!("{}{to}{}", &text[..at], &text[at + from.len()..]);
        refused(changed.as_bytes(), last, why, ErrorKind::Invalid);
    };
    swap(r#""turns":9"#, r#""turns":8"#, "counts 8 turns, but there are 9");
    swap(r#""operations":5"#, r#""operations":6"#, "counts 6 operations, but there are 5");
    swap(r#""conversations":2"#, r#""conversations":1"#, "counts 1 conversations");
    swap(r#""sha256":""#, r#""sha256":"sha256:"#, "must be written");
    let digest = sample::verify(&bytes).unwrap().digest.to_hex();
    swap(&digest, &"0".repeat(64), "does not match the lines before it");
    swap(&digest, &digest.to_uppercase(), "must be written");

    for more in ["x", "\n", "{}\n", HEADER] {
        let longer = [bytes.as_slice(), more.as_bytes()].concat();
        refused(&longer, last + 1, "there is input after the end line", ErrorKind::Invalid);
    }
}

#[test]
fn a_bundle_truncated_at_any_byte_is_rejected() {
    let bytes = sample::bundle();
    for end in 0..bytes.len() {
        let error = sample::verify(&bytes[..end]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        let text = error.to_string();
        let at_line = bytes[..end].last() == Some(&b'\n');
        assert!(
            end <= HEADER.len() || text.contains("truncated"),
            "cut at {end} ({at_line}): {text}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_bundle_with_any_byte_changed_is_rejected(at in any::<prop::sample::Index>(), byte: u8) {
        let mut bytes = sample::bundle();
        let at = at.index(bytes.len());
        prop_assume!(bytes[at] != byte);
        bytes[at] = byte;
        prop_assert!(sample::verify(&bytes).is_err(), "byte {at} as {byte} was accepted");
    }

    #[test]
    fn a_bundle_with_inserted_or_removed_bytes_is_rejected(
        at in any::<prop::sample::Index>(),
        taken in 0_usize..40,
        put in prop::collection::vec(any::<u8>(), 0..40),
    ) {
        let bytes = sample::bundle();
        let at = at.index(bytes.len());
        let end = (at + taken).min(bytes.len());
        let changed = [&bytes[..at], &put, &bytes[end..]].concat();
        prop_assume!(changed != bytes);
        prop_assert!(sample::verify(&changed).is_err());
    }

    /// Any line whatsoever, in place of one of the bundle's: an error, never a panic.
    #[test]
    fn any_line_is_parsed_or_rejected_with_an_error(line in "\\PC*", at in any::<prop::sample::Index>()) {
        let mut lines = sample::lines(&sample::bundle());
        let at = 1 + at.index(lines.len() - 1);
        lines[at] = line;
        let error = sample::verify(&sample::seal(&lines)).unwrap_err();
        prop_assert!(error.to_string().starts_with("line "));
    }
}
