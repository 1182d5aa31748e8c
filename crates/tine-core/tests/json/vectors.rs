//! Published vectors of RFC 8785: the structure examples that come with its reference
//! implementations, its key order example, and the number table of its appendix B.

use tine_core::json::{NotFinite, Number, parse};

use super::{DEPTH, canonical};

#[test]
fn jcs_example_arrays() {
    assert_eq!(
        canonical("[\n  56,\n  {\n    \"d\": true,\n    \"10\": null,\n    \"1\": [ ]\n  }\n]\n"),
        r#"[56,{"1":[],"10":null,"d":true}]"#
    );
}

#[test]
fn jcs_example_french_ignores_the_locale() {
    assert_eq!(
        canonical(
            r#"{
              "peach": "This sorting order",
              "péché": "is wrong according to French",
              "pêche": "but canonicalization MUST",
              "sin":   "ignore locale"
            }"#
        ),
        concat!(
            r#"{"peach":"This sorting order","péché":"is wrong according to French","#,
            r#""pêche":"but canonicalization MUST","sin":"ignore locale"}"#
        )
    );
}

#[test]
fn jcs_example_structures() {
    assert_eq!(
        canonical(
            r#"{
              "1": {"f": {"f": "hi","F": 5} ,"\n": 56.0},
              "10": { },
              "": "empty",
              "a": { },
              "111": [ {"e": "yes","E": "no" } ],
              "A": { }
            }"#
        ),
        concat!(
            r#"{"":"empty","1":{"\n":56,"f":{"F":5,"f":"hi"}},"10":{},"#,
            r#""111":[{"E":"no","e":"yes"}],"A":{},"a":{}}"#
        )
    );
}

#[test]
fn jcs_example_unicode_is_not_normalised() {
    assert_eq!(
        canonical(r#"{"Unnormalized Unicode":"A\u030a"}"#),
        "{\"Unnormalized Unicode\":\"A\u{30a}\"}"
    );
}

#[test]
fn jcs_example_values() {
    assert_eq!(
        canonical(
            r#"{
              "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
              "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
              "literals": [null, true, false]
            }"#
        ),
        concat!(
            r#"{"literals":[null,true,false],"#,
            r#""numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"#,
            r#""string":"€$\u000f\nA'B\"\\\\\"/"}"#
        )
    );
}

#[test]
fn jcs_example_weird_sorts_keys_by_utf16() {
    assert_eq!(
        canonical(
            r#"{
              "\u20ac": "Euro Sign",
              "\r": "Carriage Return",
              "\u000a": "Newline",
              "1": "One",
              "\u0080": "Control\u007f",
              "\ud83d\ude02": "Smiley",
              "\u00f6": "Latin Small Letter O With Diaeresis",
              "\ufb33": "Hebrew Letter Dalet With Dagesh",
              "</script>": "Browser Challenge"
            }"#
        ),
        concat!(
            r#"{"\n":"Newline","\r":"Carriage Return","1":"One","#,
            "\"</script>\":\"Browser Challenge\",\"\u{80}\":\"Control\u{7f}\",",
            "\"\u{f6}\":\"Latin Small Letter O With Diaeresis\",\"\u{20ac}\":\"Euro Sign\",",
            "\"\u{1f602}\":\"Smiley\",\"\u{fb33}\":\"Hebrew Letter Dalet With Dagesh\"}"
        )
    );
}

#[test]
fn the_key_order_example_of_the_rfc_holds() {
    let value = parse(
        br#"{"\u20ac":1,"\r":2,"\ufb33":3,"1":4,"\ud83d\ude00":5,"\u0080":6,"\u00f6":7}"#,
        DEPTH,
    )
    .unwrap();
    let keys: Vec<&str> = value.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["\r", "1", "\u{80}", "\u{f6}", "\u{20ac}", "\u{1f600}", "\u{fb33}"]);
}

#[test]
fn the_number_table_of_the_rfc_holds() {
    let table: [(u64, Option<&str>); 26] = [
        (0x0000000000000000, Some("0")),
        (0x8000000000000000, Some("0")),
        (0x0000000000000001, Some("5e-324")),
        (0x8000000000000001, Some("-5e-324")),
        (0x7fefffffffffffff, Some("1.7976931348623157e+308")),
        (0xffefffffffffffff, Some("-1.7976931348623157e+308")),
        (0x4340000000000000, Some("9007199254740992")),
        (0xc340000000000000, Some("-9007199254740992")),
        (0x4430000000000000, Some("295147905179352830000")),
        (0x7fffffffffffffff, None),
        (0x7ff0000000000000, None),
        (0x44b52d02c7e14af5, Some("9.999999999999997e+22")),
        (0x44b52d02c7e14af6, Some("1e+23")),
        (0x44b52d02c7e14af7, Some("1.0000000000000001e+23")),
        (0x444b1ae4d6e2ef4e, Some("999999999999999700000")),
        (0x444b1ae4d6e2ef4f, Some("999999999999999900000")),
        (0x444b1ae4d6e2ef50, Some("1e+21")),
        (0x3eb0c6f7a0b5ed8c, Some("9.999999999999997e-7")),
        (0x3eb0c6f7a0b5ed8d, Some("0.000001")),
        (0x41b3de4355555553, Some("333333333.3333332")),
        (0x41b3de4355555554, Some("333333333.33333325")),
        (0x41b3de4355555555, Some("333333333.3333333")),
        (0x41b3de4355555556, Some("333333333.3333334")),
        (0x41b3de4355555557, Some("333333333.33333343")),
        (0xbecbf647612f3696, Some("-0.0000033333333333333333")),
        (0x43143ff3c1cb0959, Some("1424953923781206.2")),
    ];
    for (bits, expected) in table {
        let number = Number::try_from(f64::from_bits(bits));
        match expected {
            Some(text) => {
                let number = number.unwrap();
                assert_eq!(number.to_string(), text, "{bits:016x}");
                assert_eq!(number.as_f64(), f64::from_bits(bits), "{bits:016x}");
            }
            None => assert_eq!(number, Err(NotFinite), "{bits:016x}"),
        }
    }
}

#[test]
fn doubles_are_written_as_ecmascript_does() {
    for (literal, expected) in [
        ("1.0", "1"),
        ("-0", "0"),
        ("-0.0e5", "0"),
        ("1e20", "100000000000000000000"),
        ("1e21", "1e+21"),
        ("9007199254740993.0", "9007199254740992"),
        ("1e-400", "0"),
        ("0e99999999999999999999", "0"),
    ] {
        assert_eq!(canonical(literal), expected, "{literal}");
    }
}
