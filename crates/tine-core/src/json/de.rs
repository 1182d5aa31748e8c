//! Typed values out of a [`Json`] that was parsed already, without going through text again.
//!
//! A field of type [`Json`] inside such a type is moved, not rebuilt: serde has no way to pass a
//! value of a foreign type through a visitor, so the deserializer puts it into a thread-local slot
//! and the field's visitor takes it out at once. `serde_json` does the same for its `RawValue`, with
//! the text in the place of the slot.
//!
//! A number reaches a typed field as an integer if it is one, however it was written: `2.0` is 2.

use std::cell::Cell;
use std::fmt;

use serde::de::value::{Error, MapAccessDeserializer, MapDeserializer, SeqDeserializer};
use serde::de::{DeserializeOwned, IntoDeserializer, Visitor};
use serde::{Deserialize, Deserializer, forward_to_deserialize_any};
use serde_json::value::RawValue;

use super::{Json, Number, parse};

/// The name under which a field asks for the value itself.
const EXACT: &str = "$tine::json::exact";

thread_local! {
    /// The value on its way from the deserializer to the field that asked for it.
    static PASSED: Cell<Option<Json>> = const { Cell::new(None) };
}

/// Converts a value into a type.
///
/// ```
/// use tine_core::json::{de::from_json, parse};
///
/// let value = parse(br#"{"a":[1,2]}"#, 8)?;
/// let map: std::collections::BTreeMap<String, Vec<u64>> = from_json(value)?;
/// assert_eq!(map["a"], [1, 2]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn from_json<T: DeserializeOwned>(json: Json) -> Result<T, Error> {
    T::deserialize(Parsed(json))
}

/// Deserializes a field as an exact value: moves it out of a parsed value, or parses its text
/// strictly where the input is `serde_json`'s.
pub fn exact<'de, D: Deserializer<'de>>(input: D, max_depth: usize) -> Result<Json, D::Error> {
    input.deserialize_newtype_struct(EXACT, Exact { max_depth })
}

struct Exact {
    max_depth: usize,
}

impl<'de> Visitor<'de> for Exact {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<Json, E> {
        PASSED.take().ok_or_else(|| E::custom("expected a JSON value"))
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, input: D) -> Result<Json, D::Error> {
        let raw = <&RawValue>::deserialize(input)?;
        parse(raw.get().as_bytes(), self.max_depth).map_err(crate::request::refuse)
    }
}

/// A value as the input of serde.
struct Parsed(Json);

impl<'de> IntoDeserializer<'de, Error> for Parsed {
    type Deserializer = Parsed;

    fn into_deserializer(self) -> Parsed {
        self
    }
}

impl<'de> Deserializer<'de> for Parsed {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            Json::Null => visitor.visit_unit(),
            Json::Bool(truth) => visitor.visit_bool(truth),
            Json::Number(number) => visit_number(&number, visitor),
            Json::String(text) => visitor.visit_string(text),
            Json::Array(items) => {
                let mut items = SeqDeserializer::new(items.into_iter().map(Parsed));
                let value = visitor.visit_seq(&mut items)?;
                items.end().map(|()| value)
            }
            Json::Object(members) => {
                let members = members.into_iter().map(|(name, value)| (name, Parsed(value)));
                let mut members = MapDeserializer::new(members);
                let value = visitor.visit_map(&mut members)?;
                members.end().map(|()| value)
            }
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            Json::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        if name != EXACT {
            return visitor.visit_newtype_struct(self);
        }
        PASSED.set(Some(self.0));
        let value = visitor.visit_unit();
        PASSED.set(None);
        value
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        match self.0 {
            Json::String(text) => {
                text.into_deserializer().deserialize_enum(name, variants, visitor)
            }
            Json::Object(members) => {
                let members = members.into_iter().map(|(name, value)| (name, Parsed(value)));
                MapAccessDeserializer::new(MapDeserializer::new(members))
                    .deserialize_enum(name, variants, visitor)
            }
            other => Parsed(other).deserialize_any(visitor),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}

fn visit_number<'de, V: Visitor<'de>>(number: &Number, visitor: V) -> Result<V::Value, Error> {
    match (number.as_u64(), number.as_i64()) {
        (Some(integer), _) => visitor.visit_u64(integer),
        (None, Some(integer)) => visitor.visit_i64(integer),
        (None, None) => visitor.visit_f64(number.as_f64()),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[derive(Debug, PartialEq, Deserialize)]
    struct Kept(#[serde(deserialize_with = "kept")] Json);

    fn kept<'de, D: Deserializer<'de>>(input: D) -> Result<Json, D::Error> {
        exact(input, 8)
    }

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Choice {
        Plain,
        With(u8),
    }

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Body {
        name: String,
        #[serde(default)]
        size: Option<i64>,
        #[serde(default)]
        ratio: f64,
        #[serde(default)]
        choices: Vec<Choice>,
        #[serde(default)]
        free: Option<Kept>,
        #[serde(default)]
        list: Vec<Kept>,
        #[serde(default)]
        counts: BTreeMap<String, u64>,
    }

    fn both(text: &str) -> (Result<Body, Error>, Result<Body, serde_json::Error>) {
        let json = parse(text.as_bytes(), 8).expect("JSON");
        (from_json(json), serde_json::from_str(text))
    }

    #[test]
    fn a_parsed_value_gives_the_same_types_as_its_text() {
        for text in [
            r#"{"name":"x"}"#,
            r#"{"name":"x","size":null,"ratio":2,"free":null}"#,
            r#"{"name":"x","size":-9223372036854775808,"ratio":1.5,"counts":{"a":18446744073709551615}}"#,
            r#"{"name":"x","choices":["plain",{"with":7}]}"#,
            r#"{"name":"x","free":{"n":12345678901234567890123},"list":[null,[1],"t",1e300]}"#,
        ] {
            let (parsed, read) = both(text);
            assert_eq!(parsed.expect("it fits"), read.expect("it fits"), "{text}");
        }
    }

    #[test]
    fn a_value_that_does_not_match_a_type_is_refused_like_its_text() {
        for text in [
            "{}",
            "7",
            r#"{"name":7}"#,
            r#"{"name":"x","other":1}"#,
            r#"{"name":"x","size":12345678901234567890123}"#,
            r#"{"name":"x","size":1.5}"#,
            r#"{"name":"x","choices":["none"]}"#,
            r#"{"name":"x","choices":[{"with":300}]}"#,
            r#"{"name":"x","choices":[{"with":1,"plain":2}]}"#,
            r#"{"name":"x","choices":[7]}"#,
        ] {
            let (parsed, read) = both(text);
            assert!(parsed.is_err() && read.is_err(), "{text}: {parsed:?} {read:?}");
        }
    }

    #[test]
    fn text_is_read_strictly_and_no_value_is_left_behind() {
        let twice: Result<Kept, _> = serde_json::from_str(r#"{"a":1,"a":2}"#);
        assert!(twice.is_err_and(|error| error.to_string().contains("more than once")));
        let _: Result<Body, _> = from_json(parse(br#"{"free":1}"#, 8).expect("JSON"));
        assert_eq!(PASSED.take(), None);
    }
}
