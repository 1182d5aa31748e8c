//! Edits the bytes of a JSON object: replaces or adds single members and keeps every other byte.
//!
//! Also works on text that the strict reader refuses, because the recorder forwards such lines too.
//! In text that is not JSON, nothing is found, and an edit has no effect.

use std::ops::Range;

/// Returns the ranges of the values at a path: several if a member is repeated.
pub(super) fn find(text: &[u8], path: &[&str]) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    find_below(text, skip_space(text, 0), path, &mut found);
    found
}

/// Replaces every value at a path, or adds the member to its object.
pub(super) fn set(text: &mut Vec<u8>, path: &[&str], value: &str) {
    let found = find(text, path);
    for range in found.iter().rev() {
        text.splice(range.clone(), value.bytes());
    }
    let (Some((name, parent)), true) = (path.split_last(), found.is_empty()) else { return };
    if let Some(object) = find(text, parent).first().map(|range| range.start) {
        let mut member = String::new();
        tine_core::json::write_canonical_string(&mut member, name);
        member.push(':');
        member.push_str(value);
        insert_first(text, object, b'{', b'}', member);
    }
}

/// Adds a value at the beginning of an array.
pub(super) fn prepend(text: &mut Vec<u8>, path: &[&str], value: String) {
    if let Some(array) = find(text, path).first().map(|range| range.start) {
        insert_first(text, array, b'[', b']', value);
    }
}

/// Returns whether any object in the text has a member with one of these names.
pub(super) fn names_any(text: &[u8], names: &[&str]) -> bool {
    let mut at = 0;
    while let Some(quote) = text[at..].iter().position(|byte| *byte == b'"') {
        let start = at + quote;
        at = skip_string(text, start);
        let is_name = text.get(skip_space(text, at)) == Some(&b':');
        if is_name && names.iter().any(|name| is_named(&text[start..at], name)) {
            return true;
        }
    }
    false
}

fn insert_first(text: &mut Vec<u8>, at: usize, open: u8, close: u8, mut value: String) {
    if text.get(at) != Some(&open) {
        return;
    }
    if text.get(skip_space(text, at + 1)) != Some(&close) {
        value.push(',');
    }
    text.splice(at + 1..at + 1, value.into_bytes());
}

/// Searches the value that begins at `at`. Recurses as deep as the path is long.
fn find_below(text: &[u8], at: usize, path: &[&str], found: &mut Vec<Range<usize>>) {
    let Some((name, rest)) = path.split_first() else {
        found.push(at..skip_value(text, at));
        return;
    };
    if text.get(at) != Some(&b'{') {
        return;
    }
    let mut at = skip_space(text, at + 1);
    while text.get(at) == Some(&b'"') {
        let key = at..skip_string(text, at);
        let colon = skip_space(text, key.end);
        if text.get(colon) != Some(&b':') {
            return;
        }
        let value = skip_space(text, colon + 1);
        if is_named(&text[key], name) {
            find_below(text, value, rest, found);
        }
        let end = skip_space(text, skip_value(text, value));
        if text.get(end) != Some(&b',') {
            return;
        }
        at = skip_space(text, end + 1);
    }
}

/// Returns whether a quoted key is this name.
fn is_named(key: &[u8], name: &str) -> bool {
    match key.contains(&b'\\') {
        false => key.get(1..key.len() - 1) == Some(name.as_bytes()),
        true => tine_core::json::parse(key, 0).is_ok_and(|key| key.as_str() == Some(name)),
    }
}

fn skip_space(text: &[u8], at: usize) -> usize {
    let space = text.iter().skip(at).take_while(|byte| byte.is_ascii_whitespace()).count();
    at + space
}

/// Returns the end of the string that begins at `at`.
fn skip_string(text: &[u8], at: usize) -> usize {
    let mut at = at + 1;
    while let Some(byte) = text.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    text.len()
}

/// Returns the end of the value that begins at `at`.
fn skip_value(text: &[u8], mut at: usize) -> usize {
    let mut depth = 0_usize;
    while let Some(byte) = text.get(at) {
        match byte {
            b'"' => at = skip_string(text, at),
            b'{' | b'[' => {
                depth += 1;
                at += 1;
            }
            b'}' | b']' if depth > 0 => {
                depth -= 1;
                at += 1;
            }
            b',' | b'}' | b']' if depth == 0 => return at,
            byte if depth == 0 && byte.is_ascii_whitespace() => return at,
            _ => {
                at += 1;
                continue;
            }
        }
        if depth == 0 {
            return at;
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(text: &str, path: &[&str], value: &str) -> String {
        let mut bytes = text.as_bytes().to_vec();
        set(&mut bytes, path, value);
        String::from_utf8(bytes).expect("text stays text")
    }

    #[test]
    fn one_member_is_replaced_and_every_other_byte_stays() {
        let text =
            r#" { "id" : 1e999 , "p":{"s":"a\"}","n":12345678901234567890123,"s" : [1] } } "#;
        let target = r#" { "id" : 7 , "p":{"s":"a\"}","n":12345678901234567890123,"s" : [1] } } "#;
        assert_eq!(after(text, &["id"], "7"), target);
        let target = r#" { "id" : 1e999 , "p":{"s":0,"n":12345678901234567890123,"s" : 0 } } "#;
        assert_eq!(after(text, &["p", "s"], "0"), target);
        assert_eq!(after(r#"{"\u0069d":1}"#, &["id"], "2"), r#"{"\u0069d":2}"#);
    }

    #[test]
    fn a_member_that_is_missing_is_added_to_its_object() {
        assert_eq!(after("{}", &["id"], "7"), r#"{"id":7}"#);
        assert_eq!(after(r#"{"a":{ "b":1}}"#, &["a", "c"], "2"), r#"{"a":{"c":2, "b":1}}"#);
        assert_eq!(after(r#"{"a":[1]}"#, &["a", "c"], "2"), r#"{"a":[1]}"#);
        assert_eq!(after(r#"{"a":1}"#, &["x", "c"], "2"), r#"{"a":1}"#);
    }

    #[test]
    fn a_value_goes_in_front_of_an_array() {
        for (text, target) in [("{\"a\":[1]}", "{\"a\":[0,1]}"), ("{\"a\":[ ]}", "{\"a\":[0 ]}")] {
            let mut bytes = text.as_bytes().to_vec();
            prepend(&mut bytes, &["a"], "0".to_owned());
            assert_eq!(bytes, target.as_bytes());
        }
    }

    #[test]
    fn names_are_found_at_any_depth_and_values_are_not_names() {
        let deep = "[".repeat(10_000);
        assert!(names_any(format!("{deep}{{\"env\" :1").as_bytes(), &["env"]));
        assert!(names_any(br#"{"\u0065nv":1}"#, &["x", "env"]));
        assert!(!names_any(br#"{"a":"env","b":["env"]}"#, &["env"]));
    }

    #[test]
    fn what_is_not_json_is_left_alone() {
        for text in
            ["", "\"", "{", "{\"", "{\"a", "{\"a\"", "{\"a\":", "{\"a\\", "]", "{\"a\":1", "{,}"]
        {
            find(text.as_bytes(), &["a", "b"]);
            names_any(text.as_bytes(), &["a"]);
            after(text, &["b", "c"], "1");
        }
    }
}
