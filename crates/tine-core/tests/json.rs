//! The exact JSON value, its strict reader and its canonical output.

mod properties;
mod vectors;

use tine_core::json::{Json, JsonErrorKind, MAX_DEPTH, Number, Object, object, parse};

const DEPTH: usize = 64;

fn canonical(text: &str) -> String {
    let value = parse(text.as_bytes(), DEPTH).expect(text);
    value.to_canonical()
}

/// An array (`true`) or object (`false`) for each level, outermost first.
fn nested(levels: &[bool]) -> String {
    let open = levels.iter().map(|&array| if array { "[" } else { "{\"a\":" });
    let close = levels.iter().rev().map(|&array| if array { "]" } else { "}" });
    let innermost = match levels.last() {
        Some(false) => "0",
        _ => "",
    };
    open.chain([innermost]).chain(close).collect()
}

fn refusal(bytes: &[u8]) -> (usize, JsonErrorKind) {
    let error = parse(bytes, DEPTH).expect_err(&String::from_utf8_lossy(bytes));
    (error.offset, error.kind)
}

fn unexpected(bytes: &[u8]) -> (usize, u8) {
    match refusal(bytes) {
        (offset, JsonErrorKind::UnexpectedByte { found, .. }) => (offset, found),
        other => panic!("{}: {other:?}", String::from_utf8_lossy(bytes)),
    }
}

// The addition: large integer literals.

#[test]
fn integer_literals_beyond_two_to_the_53_keep_their_digits() {
    for literal in [
        "9007199254740991",
        "-9007199254740991",
        "9007199254740993",
        "-9007199254740993",
        "9223372036854775807",
        "-9223372036854775808",
        "18446744073709551615",
        "1000000000000000000001",
        &"9".repeat(308),
        &format!("-17{}", "6".repeat(307)),
    ] {
        assert_eq!(canonical(literal), literal);
    }
    let neighbours = [b"9007199254740993", b"9007199254740992"].map(|text| parse(text, 0).unwrap());
    assert_ne!(neighbours[0], neighbours[1]);
}

#[test]
fn integers_convert_exactly_or_not_at_all() {
    let number = |text: &str| parse(text.as_bytes(), 0).unwrap().as_number().unwrap().clone();
    assert_eq!(number("18446744073709551615").as_u64(), Some(u64::MAX));
    assert_eq!(number("18446744073709551615").as_i64(), None);
    assert_eq!(number("18446744073709551616").as_u64(), None);
    assert_eq!(number("-9223372036854775808").as_i64(), Some(i64::MIN));
    assert_eq!(number("-1").as_u64(), None);
    assert_eq!(number("1.0").as_u64(), Some(1));
    assert_eq!(number("1.5").as_i64(), None);
    assert_eq!(number("1e300").as_i64(), None);
    assert_eq!(number("9007199254740993").as_f64(), 9007199254740992.0);
    for edge in [i64::MIN, -(1 << 53), 1 - (1 << 53), 0, (1 << 53) - 1, 1 << 53, i64::MAX] {
        assert_eq!(Number::from(edge).to_string(), edge.to_string());
        assert_eq!(Number::from(edge), number(&edge.to_string()));
        assert_eq!(Number::from(edge).as_i64(), Some(edge));
    }
    assert_eq!(Number::from(u64::MAX), number("18446744073709551615"));
}

#[test]
fn equal_canonical_text_means_equal_numbers() {
    for (double, literal) in [
        (1e20, "100000000000000000000"),
        (9007199254740992.0, "9007199254740992"),
        (-9007199254740992.0, "-9007199254740992"),
        (-0.0, "-0"),
        (1e21, "1E+21"),
    ] {
        let read = parse(literal.as_bytes(), 0).unwrap();
        assert_eq!(Json::from(Number::try_from(double).unwrap()), read);
    }
    // Minus zero leaves no trace, not even in the double.
    for zero in [&b"-0"[..], b"-0.0"] {
        let read = parse(zero, 0).unwrap();
        assert!(read.as_number().unwrap().as_f64().is_sign_positive());
    }
}

// Refusals.

#[test]
fn duplicate_keys_are_refused_at_the_second() {
    let key = |text: &str| JsonErrorKind::DuplicateKey { key: text.into() };
    assert_eq!(refusal(br#"{"a":1,"a":1}"#), (7, key("a")));
    assert_eq!(refusal(br#"[{"b":1,"a":{"c":[]},"\u0062":2}]"#), (21, key("b")));
    assert_eq!(refusal(br#"{"x":{"":0, "":0}}"#), (12, key("")));
    assert!(parse(br#"{"a":{"a":[{"a":1},{"a":1}]}}"#, DEPTH).is_ok());
}

#[test]
fn numbers_that_overflow_a_double_are_refused() {
    for literal in ["1e400", "-1e400", "1.8e308", "1e99999999999999999999"] {
        let kind = JsonErrorKind::NumberOverflow { literal: literal.into() };
        assert_eq!(refusal(format!("[{literal}]").as_bytes()), (1, kind));
    }
    let long = "9".repeat(400);
    let literal = format!("{}…", &long[..40]);
    assert_eq!(refusal(long.as_bytes()), (0, JsonErrorKind::NumberOverflow { literal }));
    assert!(parse("9".repeat(309).as_bytes(), 0).is_err());
}

#[test]
fn lone_surrogates_are_refused() {
    for text in [
        r#"a\ud83d"#,
        r#"a\ude00"#,
        r#"a\ud83dx"#,
        r#"a\ud83d\n"#,
        r#"a\ud83d\u0041"#,
        r#"a\ud83d\ud83d\ude00"#,
        r#"a\uDE00\uD83D"#,
        r#"a\udc00\udc00"#,
        r#"a\ud83d\ue000"#,
    ] {
        let quoted = format!("\"{text}\"");
        assert_eq!(refusal(quoted.as_bytes()), (2, JsonErrorKind::LoneSurrogate), "{text}");
    }
    assert_eq!(canonical(r#""\uD83D\ude00""#), "\"\u{1f600}\"");
}

#[test]
fn invalid_utf8_is_refused() {
    for bytes in [&b"\"a\xff\""[..], b"\"a\xc0\x80\"", b"\"a\xed\xa0\x80\"", b"\"a\xe2\x82\""] {
        assert_eq!(refusal(bytes), (2, JsonErrorKind::InvalidUtf8));
    }
}

#[test]
fn control_characters_in_strings_are_refused() {
    for control in 0..0x20 {
        for before in ["", "abcdefgh", r"\n"] {
            let text = [b"\"", before.as_bytes(), &[control], b"abcdefgh\""].concat();
            assert_eq!(refusal(&text), (1 + before.len(), JsonErrorKind::ControlCharacter));
        }
    }
    assert_eq!(canonical("\"\u{7f}\u{80}\u{2028}\""), "\"\u{7f}\u{80}\u{2028}\"");
}

#[test]
fn leading_zeros_are_refused() {
    assert_eq!(refusal(b"01"), (0, JsonErrorKind::LeadingZero));
    assert_eq!(refusal(b"[-00.5]"), (2, JsonErrorKind::LeadingZero));
}

#[test]
fn bytes_after_the_value_are_refused() {
    assert_eq!(refusal(b"{} {}"), (3, JsonErrorKind::TrailingBytes));
    assert_eq!(refusal(b"1x"), (1, JsonErrorKind::TrailingBytes));
    assert_eq!(refusal(b"null\0"), (4, JsonErrorKind::TrailingBytes));
    assert!(parse(b" \t\r\n1 \t\r\n", 0).is_ok());
}

#[test]
fn texts_cut_off_are_refused_at_their_end() {
    let text = br#"{"a":[1.5e3,true,"x\u00e9\n"]}"#;
    for end in 0..text.len() {
        assert_eq!(refusal(&text[..end]), (end, JsonErrorKind::UnexpectedEnd));
    }
}

#[test]
fn text_that_is_not_json_is_refused_at_its_first_wrong_byte() {
    assert_eq!(unexpected(b"\xef\xbb\xbf{}"), (0, 0xef), "byte order mark");
    assert_eq!(unexpected(b"NaN"), (0, b'N'));
    assert_eq!(unexpected(b"[Infinity]"), (1, b'I'));
    assert_eq!(unexpected(b"-Infinity"), (1, b'I'));
    assert_eq!(unexpected(b"nul1"), (3, b'1'));
    assert_eq!(unexpected(b"+1"), (0, b'+'));
    assert_eq!(unexpected(b".5"), (0, b'.'));
    assert_eq!(unexpected(b"[1.]"), (3, b']'));
    assert_eq!(unexpected(b"[1e+]"), (4, b']'));
    assert_eq!(unexpected(b"[1,]"), (3, b']'));
    assert_eq!(unexpected(b"[1 2]"), (3, b'2'));
    assert_eq!(unexpected(b"{\"a\":1,}"), (7, b'}'));
    assert_eq!(unexpected(b"{\"a\" 1}"), (5, b'1'));
    assert_eq!(unexpected(b"{a:1}"), (1, b'a'));
    assert_eq!(unexpected(b"'a'"), (0, b'\''));
    assert_eq!(unexpected(br#""\x41""#), (2, b'x'));
    assert_eq!(unexpected(br#""\u12g4""#), (5, b'g'));
    assert_eq!(unexpected(b"/**/1"), (0, b'/'));
    assert_eq!(unexpected(b"\x0b1"), (0, 0x0b));
}

#[test]
fn nesting_is_bounded_whatever_the_caller_allows() {
    for opening in ["[", r#"{"a":"#, r#"[{"b":"#] {
        let error = parse(opening.repeat(200_000).as_bytes(), usize::MAX).unwrap_err();
        assert_eq!(error.kind, JsonErrorKind::TooDeep { limit: MAX_DEPTH });
        assert!(error.is_too_deep());
    }
    assert!(parse(b"1", 0).is_ok());
    assert!(parse(b"[]", 0).unwrap_err().is_too_deep());
}

#[test]
fn the_deepest_value_fits_on_a_small_stack() {
    let work = || {
        for array in [true, false] {
            let text = nested(&[array; MAX_DEPTH]);
            let value = parse(text.as_bytes(), MAX_DEPTH).unwrap();
            assert_eq!(value.depth(), MAX_DEPTH);
            assert_eq!(value.clone(), value);
            assert_eq!(value.to_canonical(), text);
        }
    };
    let small = std::thread::Builder::new().stack_size(1 << 20);
    small.spawn(work).unwrap().join().unwrap();
}

#[test]
fn an_error_says_what_where_and_what_to_do() {
    for (text, message) in [
        ("[1 2]", "expected `,` or `]` but found `2` (at byte 3)"),
        ("[\u{e9}]", "expected a value but found the byte 0xc3 (at byte 1)"),
        (
            r#"{"a":1,"a":2}"#,
            r#"the key "a" occurs more than once in the same object; keep one of them (at byte 7)"#,
        ),
        ("1e999", "the number 1e999 is too large for a double; send it as a string (at byte 0)"),
    ] {
        assert_eq!(parse(text.as_bytes(), DEPTH).unwrap_err().to_string(), message);
    }
}

// Objects.

#[test]
fn an_object_stays_sorted_and_unique_however_it_is_built() {
    let mut built = Object::new();
    assert!(built.is_empty());
    for (key, value) in [("b", 1), ("\u{fb33}", 2), ("a", 3), ("\u{1f600}", 4)] {
        assert_eq!(built.insert(key, Json::from(value)), None);
    }
    assert_eq!(built.insert("b", Json::from("new")), Some(Json::from(1)));
    assert_eq!(built.keys().collect::<Vec<_>>(), ["a", "b", "\u{1f600}", "\u{fb33}"]);
    *built.get_mut("a").unwrap() = Json::Null;
    assert_eq!(built.remove("\u{fb33}"), Some(Json::from(2)));
    assert_eq!(built.remove("\u{fb33}"), None);
    assert!(built.contains_key("\u{1f600}") && !built.contains_key("c"));
    assert_eq!(built.len(), 3);

    let collected = object([
        ("b", Json::from("old")),
        ("a", Json::from(None::<bool>)),
        ("\u{1f600}", Json::from(Some(4u32))),
        ("b", Json::from("older")),
        ("b", Json::from("new")),
    ]);
    assert_eq!(collected, Json::from(built.clone()));
    assert_eq!(built.clone().into_iter().collect::<Object>(), built);
}

#[test]
fn accessors_answer_only_for_their_own_type() {
    let value = parse(br#"{"s":"x","n":7,"b":true,"l":[1],"z":null}"#, DEPTH).unwrap();
    let get = |key| value.get(key).unwrap();
    assert_eq!((get("s").as_str(), get("n").as_str()), (Some("x"), None));
    assert_eq!((get("n").as_u64(), get("s").as_u64()), (Some(7), None));
    assert_eq!((get("b").as_bool(), get("z").as_bool()), (Some(true), None));
    assert_eq!((get("l").as_array().map(<[_]>::len), get("n").as_array()), (Some(1), None));
    assert!(get("z").is_null() && !get("s").is_null());
    assert!(get("l").get("s").is_none() && value.get("absent").is_none());
    let names: Vec<_> = value.as_object().unwrap().iter().map(|(_, v)| v.type_name()).collect();
    assert_eq!(names, ["boolean", "array", "number", "string", "null"]);
    assert_eq!(value.type_name(), "object");
}
