//! Fields of JSON objects whose values have a text form: ids, hashes, timestamps.

use std::str::FromStr;

use super::Json;

/// Returns a value's text form as a JSON string.
pub fn text(value: &impl ToString) -> Json {
    Json::String(value.to_string())
}

/// Returns the text forms of values as an array.
pub fn texts<T: ToString>(values: impl IntoIterator<Item = T>) -> Json {
    Json::Array(values.into_iter().map(|value| text(&value)).collect())
}

/// Parses a required member.
pub fn parsed<T: FromStr>(json: &Json, name: &str) -> Option<T> {
    json.get(name)?.as_str()?.parse().ok()
}

/// Parses an optional member: an absent or null one is `Some(None)`, a malformed one `None`.
pub fn optional<T: FromStr>(json: &Json, name: &str) -> Option<Option<T>> {
    match json.get(name) {
        None | Some(Json::Null) => Some(None),
        Some(Json::String(text)) => text.parse().ok().map(Some),
        Some(_) => None,
    }
}

/// Parses a required array of texts.
pub fn all_parsed<T: FromStr>(json: &Json, name: &str) -> Option<Vec<T>> {
    json.get(name)?.as_array()?.iter().map(|value| value.as_str()?.parse().ok()).collect()
}
