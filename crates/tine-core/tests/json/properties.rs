//! Properties on random input, with `serde_json` and `serde_json_canonicalizer` as independent
//! judges.

use std::cmp::Ordering;

use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use proptest::sample::select;
use tine_core::json::{BytePart, Json, JsonErrorKind, Number, Scanner, compare_keys, parse};

use super::{DEPTH, canonical, nested};

/// Strings rich in what matters: escapes, controls, and both sides of the surrogate range.
fn any_text() -> impl Strategy<Value = String> {
    let special = select(
        "\"\\/\0\u{1f}\n\u{7f}é\u{d7ff}\u{e000}\u{ffff}\u{10000}\u{10ffff}"
            .chars()
            .collect::<Vec<_>>(),
    );
    let letter = prop_oneof![proptest::char::range('a', 'd'), special, any::<char>()];
    vec(letter, 0..20).prop_map(String::from_iter)
}

fn finite(double: f64) -> Number {
    Number::try_from(double).expect("the strategies make finite doubles")
}

fn pretty(value: &serde_json::Value) -> Vec<u8> {
    serde_json::to_vec_pretty(value).expect("a value can always be written")
}

fn any_number() -> impl Strategy<Value = (Json, serde_json::Value)> {
    const SAFE: i64 = (1 << 53) - 1;
    prop_oneof![
        (-SAFE..=SAFE).prop_map(|n| (n.into(), n.into())),
        (-1000i64..1000).prop_map(|n| (n.into(), n.into())),
        any::<u64>()
            .prop_map(f64::from_bits)
            .prop_filter("finite", |double| double.is_finite())
            .prop_map(|n| (finite(n).into(), n.into())),
        // Around where the exponent form begins, and where digits are kept.
        (1e14f64..1e23).prop_map(|n| (finite(n.trunc()).into(), n.trunc().into())),
    ]
}

/// The same random value for this crate and for the judge.
fn any_value() -> impl Strategy<Value = (Json, serde_json::Value)> {
    let leaf = prop_oneof![
        Just((Json::Null, serde_json::Value::Null)),
        any::<bool>().prop_map(|b| (b.into(), b.into())),
        any_number(),
        any_text().prop_map(|s| (s.clone().into(), s.into())),
    ];
    leaf.prop_recursive(5, 60, 6, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..6).prop_map(|items| {
                let (ours, theirs): (Vec<_>, Vec<_>) = items.into_iter().unzip();
                (Json::from(ours), theirs.into())
            }),
            btree_map(any_text(), inner, 0..6).prop_map(|members| {
                let ours = members.iter().map(|(k, (v, _))| (k.clone(), v.clone()));
                let theirs = members.iter().map(|(k, (_, v))| (k.clone(), v.clone()));
                (Json::Object(ours.collect()), serde_json::Value::Object(theirs.collect()))
            }),
        ]
    })
}

/// Texts in a value, names of members among them.
fn count_texts(value: &Json) -> usize {
    match value {
        Json::String(_) => 1,
        Json::Array(items) => items.iter().map(count_texts).sum(),
        Json::Object(members) => members.iter().map(|(_, it)| 1 + count_texts(it)).sum(),
        _ => 0,
    }
}

/// Text that is often nearly JSON.
fn any_input() -> impl Strategy<Value = Vec<u8>> {
    let token: Vec<&[u8]> = "{|}|[|]|,|:|\"|\"a\"|\"b\":|1|0|-|.|e|E+|23|400|true|false|null| |\n|\\u|\\ud83d|\\ude00|\\n|\\|é|x|\0"
        .split('|')
        .map(str::as_bytes)
        .chain([&b"\xff"[..], b"\xef\xbb\xbf"])
        .collect();
    let spaced = any_value().prop_map(|(_, theirs)| pretty(&theirs));
    let broken = (spaced, any::<prop::sample::Index>(), select(token.clone()), 0usize..3);
    prop_oneof![
        vec(any::<u8>(), 0..40),
        vec(select(token), 0..16).prop_map(|tokens| tokens.concat()),
        broken.prop_map(|(mut text, at, token, removed)| {
            let at = at.index(text.len());
            let end = (at + removed).min(text.len());
            text.splice(at..end, token.iter().copied());
            text
        }),
    ]
}

/// Whether the value has an integer for which this crate and RFC 8785 differ.
fn has_large_integer(value: &Json) -> bool {
    match value {
        Json::Number(number) => {
            let text = number.to_string();
            text.len() > 15 && text.trim_start_matches('-').bytes().all(|b| b.is_ascii_digit())
        }
        Json::Array(items) => items.iter().any(has_large_integer),
        Json::Object(members) => members.iter().any(|(_, member)| has_large_integer(member)),
        _ => false,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2000) })]

    #[test]
    fn a_scanner_finds_every_text_and_nothing_else((ours, theirs) in any_value()) {
        let bytes = pretty(&theirs);
        let (mut scanner, mut start, mut outside) = (Scanner::default(), 0, Vec::new());
        let mut texts = Vec::new();
        for (at, byte) in bytes.iter().enumerate() {
            match scanner.step(*byte) {
                BytePart::Outside => outside.push(*byte),
                BytePart::TextStart => start = at,
                BytePart::Text => {}
                BytePart::TextEnd => texts.push(parse(&bytes[start..=at], 1).unwrap()),
            }
        }
        prop_assert!(!scanner.is_in_text());
        prop_assert_eq!(texts.len(), count_texts(&ours));
        prop_assert!(texts.iter().all(|text| text.as_str().is_some()));
        let count = |wanted: u8| outside.iter().filter(|byte| **byte == wanted).count();
        prop_assert_eq!(count(b'{'), count(b'}'));
        prop_assert_eq!(count(b'['), count(b']'));
    }

    #[test]
    fn canonical_output_agrees_with_an_independent_implementation((ours, theirs) in any_value()) {
        let judged = serde_json_canonicalizer::to_string(&theirs).unwrap();
        prop_assert_eq!(ours.to_canonical(), &judged[..]);
        prop_assert_eq!(ours.to_string(), judged);
    }

    #[test]
    fn canonical_output_reads_back_as_the_same_value((ours, theirs) in any_value()) {
        let canonical = ours.to_canonical();
        let read = parse(canonical.as_bytes(), DEPTH).unwrap();
        prop_assert_eq!(&read, &ours);
        prop_assert_eq!(read.to_canonical(), canonical);
        prop_assert_eq!(read.depth(), ours.depth());
        let from_pretty = parse(&pretty(&theirs), DEPTH).unwrap();
        // The judge writes every double with a point or an exponent, so none turns into an
        // integer literal on the way.
        prop_assert_eq!(from_pretty, ours);
    }

    #[test]
    fn every_integer_literal_within_a_double_keeps_its_digits(
        negative in any::<bool>(), first in 1u8..10, rest in vec(0u8..10, 0..308),
    ) {
        let sign = if negative { "-" } else { "" };
        let digits: String = rest.iter().map(u8::to_string).collect();
        let literal = format!("{sign}{first}{digits}");
        prop_assert_eq!(canonical(&literal), literal);
    }

    /// Where the judge is more lenient by design, duplicate keys, it is not asked. It also stops
    /// at 128 levels of nesting, which these inputs never reach.
    #[test]
    fn the_reader_never_panics_and_accepts_what_an_independent_reader_accepts(input in any_input()) {
        let judged = serde_json::from_slice::<serde_json::Value>(&input);
        match parse(&input, 100) {
            Ok(value) => {
                prop_assert!(judged.is_ok());
                let written = value.to_canonical();
                prop_assert_eq!(canonical(&written), &written[..]);
                if !has_large_integer(&value) {
                    let judged = serde_json_canonicalizer::to_string(&judged.unwrap());
                    prop_assert_eq!(written, judged.unwrap());
                }
            }
            Err(error) if matches!(error.kind, JsonErrorKind::DuplicateKey { .. }) => {}
            Err(error) => {
                prop_assert!(judged.is_err(), "refused: {error}");
                prop_assert!(error.offset <= input.len());
            }
        }
    }

    #[test]
    fn nesting_is_accepted_at_the_limit_and_refused_beyond(levels in vec(any::<bool>(), 1..300)) {
        let depth = levels.len();
        let text = nested(&levels);
        prop_assert_eq!(parse(text.as_bytes(), depth).unwrap().depth(), depth);
        let error = parse(text.as_bytes(), depth - 1).unwrap_err();
        prop_assert_eq!(error.kind, JsonErrorKind::TooDeep { limit: depth - 1 });
    }

    #[test]
    fn keys_compare_as_their_utf16_code_units(a in any_text(), b in any_text(), prefix in any_text()) {
        let (a, b) = (format!("{prefix}{a}"), format!("{prefix}{b}"));
        prop_assert_eq!(compare_keys(&a, &b), a.encode_utf16().cmp(b.encode_utf16()));
        prop_assert_eq!(compare_keys(&a, &a), Ordering::Equal);
    }
}
