//! [`Json`] as a field of a serde type: written as canonical bytes and read by the strict reader,
//! so that no digit is lost. For use with `#[serde(with = "tine_core::json::exact")]`.

use serde::ser::SerializeStruct;
use serde::{Deserializer, Serializer};

use super::{Json, MAX_DEPTH};
use crate::request::limits;

/// Serializes a value as its canonical bytes.
pub fn serialize<S: Serializer>(json: &Json, serializer: S) -> Result<S::Ok, S::Error> {
    raw(&json.to_canonical(), serializer)
}

/// Serializes canonical JSON as it is, under the name by which `serde_json` knows a `RawValue`.
/// Making a `RawValue` instead would copy the text and parse it again.
pub fn raw<S: Serializer>(canonical: &str, serializer: S) -> Result<S::Ok, S::Error> {
    const RAW_VALUE: &str = "$serde_json::private::RawValue";
    let mut raw = serializer.serialize_struct(RAW_VALUE, 1)?;
    raw.serialize_field(RAW_VALUE, canonical)?;
    raw.end()
}

/// Reads a value from the bytes of its field.
pub fn deserialize<'de, D: Deserializer<'de>>(input: D) -> Result<Json, D::Error> {
    super::de::exact(input, limits().map_or(MAX_DEPTH, |limits| limits.json_depth))
}

/// The same for an object.
pub mod object {
    use super::super::Object;
    use super::{Json, raw};
    use serde::de::Error as _;
    use serde::{Deserializer, Serializer};

    /// Serializes an object as its canonical bytes.
    pub fn serialize<S: Serializer>(object: &Object, serializer: S) -> Result<S::Ok, S::Error> {
        let mut canonical = String::new();
        object.write_canonical(&mut canonical);
        raw(&canonical, serializer)
    }

    /// Reads an object from the bytes of its field.
    pub fn deserialize<'de, D: Deserializer<'de>>(input: D) -> Result<Object, D::Error> {
        match super::deserialize(input)? {
            Json::Object(members) => Ok(members),
            other => {
                Err(D::Error::custom(format!("expected an object, got {}", other.type_name())))
            }
        }
    }
}

/// The same for a field that may be absent. A present `null` is [`Json::Null`].
pub mod option {
    use super::Json;
    use serde::{Deserializer, Serializer};

    /// Serializes a value as its canonical bytes, `None` as `null`.
    pub fn serialize<S: Serializer>(json: &Option<Json>, serializer: S) -> Result<S::Ok, S::Error> {
        super::serialize(json.as_ref().unwrap_or(&Json::Null), serializer)
    }

    /// Reads a value that is present.
    pub fn deserialize<'de, D: Deserializer<'de>>(input: D) -> Result<Option<Json>, D::Error> {
        super::deserialize(input).map(Some)
    }
}
