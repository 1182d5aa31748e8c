//! The JSON value and its object.
//!
//! Invariant: an [`Object`] holds each key once and its entries are always in canonical order
//! (UTF-16 code units of the key), whatever order they were added in. Equality and canonical
//! output need no sorting of their own.
//!
//! Deliberately absent: insertion order, mutation through indexing, conversion from floating
//! point (NaN has no JSON form; go through [`Number::try_from`]).
//!
//! A value built in code can be nested deeper than [`parse`](super::parse) would accept; its
//! traversals recurse, so its builder keeps the depth in bounds.

use std::fmt;

use super::canonical::{compare_keys, write_object, write_value};
use super::number::Number;

/// Room that is made at first for a canonical form.
const CANONICAL_BYTES: usize = 512;

/// An exact JSON value.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum Json {
    /// `null`.
    #[default]
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number.
    Number(Number),
    /// A string.
    String(String),
    /// An array.
    Array(Vec<Json>),
    /// An object.
    Object(Object),
}

impl Json {
    /// Returns the text, when this is a string.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Json::String(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the items, when this is an array.
    pub fn as_array(&self) -> Option<&[Json]> {
        match self {
            Json::Array(items) => Some(items),
            _ => None,
        }
    }

    /// Returns the object, when this is one.
    pub fn as_object(&self) -> Option<&Object> {
        match self {
            Json::Object(object) => Some(object),
            _ => None,
        }
    }

    /// Returns the truth value, when this is a boolean.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Json::Bool(truth) => Some(*truth),
            _ => None,
        }
    }

    /// Returns the number, when this is one.
    pub fn as_number(&self) -> Option<&Number> {
        match self {
            Json::Number(number) => Some(number),
            _ => None,
        }
    }

    /// Returns the value as a `u64`, when this is an integer in that range.
    pub fn as_u64(&self) -> Option<u64> {
        self.as_number()?.as_u64()
    }

    /// Returns whether this is `null`.
    pub fn is_null(&self) -> bool {
        matches!(self, Json::Null)
    }

    /// Returns the member of that name, when this is an object that has it.
    pub fn get(&self, key: &str) -> Option<&Json> {
        self.as_object()?.get(key)
    }

    /// The members, to be changed in place, when this is an object.
    pub fn as_object_mut(&mut self) -> Option<&mut Object> {
        match self {
            Json::Object(object) => Some(object),
            _ => None,
        }
    }

    /// The value that a path of member names leads to.
    ///
    /// ```
    /// let value = tine_core::json::parse(br#"{"a":{"b":1}}"#, 8)?;
    /// assert_eq!(value.at(&["a", "b"]), Some(&1.into()));
    /// assert_eq!(value.at(&["a", "c"]), None);
    /// # Ok::<(), tine_core::json::JsonError>(())
    /// ```
    pub fn at(&self, path: &[&str]) -> Option<&Json> {
        path.iter().try_fold(self, |value, name| value.get(name))
    }

    /// What JSON calls this kind of value, for messages.
    pub fn type_name(&self) -> &'static str {
        match self {
            Json::Null => "null",
            Json::Bool(_) => "boolean",
            Json::Number(_) => "number",
            Json::String(_) => "string",
            Json::Array(_) => "array",
            Json::Object(_) => "object",
        }
    }

    /// Returns the canonical form: RFC 8785, except that integers beyond ±(2^53−1) keep their
    /// digits.
    ///
    /// ```
    /// use tine_core::json::{Json, object};
    ///
    /// let value = object([
    ///     ("name", Json::from("Ada")),
    ///     ("id", Json::from(u64::MAX)),
    ///     ("tags", Json::from(vec![Json::Null, Json::from(true)])),
    /// ]);
    /// assert_eq!(
    ///     value.to_canonical(),
    ///     r#"{"id":18446744073709551615,"name":"Ada","tags":[null,true]}"#,
    /// );
    /// ```
    pub fn to_canonical(&self) -> String {
        let mut out = String::with_capacity(CANONICAL_BYTES);
        self.write_canonical(&mut out);
        out
    }

    /// Appends the canonical form to `out`.
    pub fn write_canonical(&self, out: &mut String) {
        write_value(out, self);
    }

    /// How deeply arrays and objects are nested: 0 for a scalar, 1 for `[]`, 2 for `[[]]`.
    pub fn depth(&self) -> usize {
        match self {
            Json::Array(items) => 1 + items.iter().map(Json::depth).max().unwrap_or(0),
            Json::Object(object) => {
                1 + object.iter().map(|(_, member)| member.depth()).max().unwrap_or(0)
            }
            _ => 0,
        }
    }
}

impl fmt::Display for Json {
    /// The canonical form.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.to_canonical())
    }
}

/// The members of a JSON object, each key once, in canonical order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Object(Vec<(String, Json)>);

impl Object {
    /// Returns an object without members.
    pub fn new() -> Object {
        Object::default()
    }

    /// Appends the canonical form to `out`.
    pub fn write_canonical(&self, out: &mut String) {
        write_object(out, self);
    }

    /// Returns the entries as an object, or `None` when a key occurs more than once.
    pub(super) fn from_unique(mut entries: Vec<(String, Json)>) -> Option<Object> {
        let is_canonical = |entries: &[(String, Json)]| {
            entries.is_sorted_by(|(a, _), (b, _)| compare_keys(a, b).is_lt())
        };
        // Machines often write keys in order already; then there is nothing to sort.
        if !is_canonical(&entries) {
            entries.sort_unstable_by(|(a, _), (b, _)| compare_keys(a, b));
            if !is_canonical(&entries) {
                return None;
            }
        }
        Some(Object(entries))
    }

    /// Returns the member of that name.
    pub fn get(&self, key: &str) -> Option<&Json> {
        let index = self.position(key).ok()?;
        Some(&self.0[index].1)
    }

    /// Returns the member of that name, to be changed in place.
    pub fn get_mut(&mut self, key: &str) -> Option<&mut Json> {
        let index = self.position(key).ok()?;
        Some(&mut self.0[index].1)
    }

    /// Sets the member of that name; returns the value it replaces.
    pub fn insert(&mut self, key: impl Into<String>, value: Json) -> Option<Json> {
        let key = key.into();
        match self.position(&key) {
            Ok(index) => Some(std::mem::replace(&mut self.0[index].1, value)),
            Err(index) => {
                self.0.insert(index, (key, value));
                None
            }
        }
    }

    /// Takes the member of that name out.
    pub fn remove(&mut self, key: &str) -> Option<Json> {
        let index = self.position(key).ok()?;
        Some(self.0.remove(index).1)
    }

    /// Keeps only the members for which the predicate returns true.
    pub fn retain(&mut self, mut keep: impl FnMut(&str, &Json) -> bool) {
        self.0.retain(|(key, value)| keep(key, value));
    }

    /// Returns whether there is a member of that name.
    pub fn contains_key(&self, key: &str) -> bool {
        self.position(key).is_ok()
    }

    /// Returns how many members there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether there is no member.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the members in canonical order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&str, &Json)> + ExactSizeIterator {
        self.0.iter().map(|(key, value)| (key.as_str(), value))
    }

    /// Returns the keys in canonical order.
    pub fn keys(&self) -> impl DoubleEndedIterator<Item = &str> + ExactSizeIterator {
        self.0.iter().map(|(key, _)| key.as_str())
    }

    /// Returns where the key is, or where it would have to be inserted.
    fn position(&self, key: &str) -> Result<usize, usize> {
        self.0.binary_search_by(|(probe, _)| compare_keys(probe, key))
    }
}

impl IntoIterator for Object {
    type Item = (String, Json);
    type IntoIter = std::vec::IntoIter<(String, Json)>;

    /// Returns the members by value, in canonical order.
    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl FromIterator<(String, Json)> for Object {
    /// Of entries with the same key the last wins.
    fn from_iter<I: IntoIterator<Item = (String, Json)>>(entries: I) -> Object {
        let mut entries: Vec<_> = entries.into_iter().collect();
        // The sort is stable, so equal keys stay in the order given.
        entries.sort_by(|(a, _), (b, _)| compare_keys(a, b));
        entries.dedup_by(|later, kept| {
            let repeats = later.0 == kept.0;
            if repeats {
                std::mem::swap(later, kept);
            }
            repeats
        });
        Object(entries)
    }
}

/// Returns an object of the given members; of members with the same key the last wins.
pub fn object<const N: usize>(entries: [(&str, Json); N]) -> Json {
    let entries = entries.into_iter().map(|(key, value)| (key.to_owned(), value));
    Json::Object(entries.collect())
}

impl From<&str> for Json {
    fn from(text: &str) -> Json {
        Json::String(text.to_owned())
    }
}

impl From<String> for Json {
    fn from(text: String) -> Json {
        Json::String(text)
    }
}

impl From<bool> for Json {
    fn from(truth: bool) -> Json {
        Json::Bool(truth)
    }
}

impl From<Number> for Json {
    fn from(number: Number) -> Json {
        Json::Number(number)
    }
}

impl From<i64> for Json {
    fn from(integer: i64) -> Json {
        Json::Number(integer.into())
    }
}

impl From<u64> for Json {
    fn from(integer: u64) -> Json {
        Json::Number(integer.into())
    }
}

impl From<usize> for Json {
    fn from(integer: usize) -> Json {
        Json::from(u64::try_from(integer).unwrap_or(u64::MAX))
    }
}

impl From<i32> for Json {
    fn from(integer: i32) -> Json {
        Json::Number(integer.into())
    }
}

impl From<u32> for Json {
    fn from(integer: u32) -> Json {
        Json::Number(integer.into())
    }
}

impl From<Vec<Json>> for Json {
    fn from(items: Vec<Json>) -> Json {
        Json::Array(items)
    }
}

impl From<Object> for Json {
    fn from(object: Object) -> Json {
        Json::Object(object)
    }
}

impl<T: Into<Json>> From<Option<T>> for Json {
    /// `None` is `null`.
    fn from(value: Option<T>) -> Json {
        value.map_or(Json::Null, Into::into)
    }
}
