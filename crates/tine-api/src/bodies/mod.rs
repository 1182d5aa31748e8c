//! Requests as JSON: reads the bodies that HTTP takes and that the client sends.
//!
//! A body is a [`Request`] and the fields that many requests share ([`CallFields`]). Most requests
//! are read and written as they are; where the form differs, a private `…Json` struct beside the
//! type is the form. The bodies in this folder have no type of their own in the engine.
//!
//! Invariants:
//!
//! - Bodies are parsed by the strict reader of the core: repeated keys and numbers out of range
//!   are refused, and free-form values (`content`, `config`, `metadata`) keep every digit.
//! - Unknown fields are refused: a misspelt `parent` must not append somewhere else.
//! - Fields that come from the path of a request are not part of its form.

mod envelope;
mod forms;
mod messages;
mod store;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;
use tine_core::json::{self, Json, JsonError};
use tine_core::request::{RequestScope, refuse};
use tine_core::{ErrorKind, Timestamp, facts};

pub use envelope::{CallFields, Request, RequestBody};
pub use forms::*;
pub(crate) use messages::{ContentForm, MessageForm, content_json, message_json, object_of};
pub use messages::{message, messages};
pub(crate) use store::decoded;
pub use store::{Store, StoreParts};

pub use crate::knowledge::EndIds;

use crate::{Error, Result};
use tine_core::Limits;

/// A free-form value in a list: any JSON, exact.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct FreeForm(#[serde(with = "json::exact")] pub(crate) Json);

/// Reads a request: parses its bytes once, strictly, and converts the value.
///
/// A body that is refused is read a second time, to locate the fault: as a line and column of the
/// body, or as an offset in a free-form value. The nesting limit applies to each free-form value
/// and not to the fields around it, so a body that is too deep as a whole can still be accepted.
pub fn read<B: DeserializeOwned>(bytes: &[u8], limits: &Limits) -> Result<B> {
    let scope = RequestScope::open(limits);
    let malformed = match json::parse(bytes, limits.json_depth) {
        Ok(value) => match json::de::from_json(value) {
            Ok(body) => return Ok(body),
            Err(_) => None,
        },
        Err(error) => Some(error),
    };
    if let Some(refusal) = scope.refusal().and_then(Error::of_refused_value) {
        return Err(refusal);
    }
    let again = serde_json::from_slice(bytes);
    let malformed = malformed.filter(|error| !error.is_too_deep());
    let refused = scope.refusal();
    match (again, refused, malformed) {
        (Ok(body), _, None) => Ok(body),
        (Err(place), None, _) => Err(Error::invalid(format!("the body: {place}"))),
        (Err(_), Some(refused), malformed) if malformed.is_none() || refused.is::<JsonError>() => {
            let defect = || Error::new(ErrorKind::Internal, "a value was refused without a reason");
            Err(Error::of_refused_value(refused).unwrap_or_else(defect))
        }
        (_, _, Some(error)) => Err(error.into()),
        (Err(place), Some(_), None) => Err(Error::invalid(format!("the body: {place}"))),
    }
}

/// JSON text that an answer holds as it is.
pub type Raw = Box<RawValue>;

/// Returns a value in its canonical bytes.
pub fn raw(json: &Json) -> Raw {
    RawValue::from_string(json.to_canonical()).expect("canonical JSON is JSON")
}

/// Reads a field that is present, so that `null` can be told from a missing field.
pub(crate) fn present<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    input: D,
) -> std::result::Result<Option<T>, D::Error> {
    T::deserialize(input).map(Some)
}

/// Reads a field for which `null` means `true`.
pub(crate) fn or_true<'de, D: Deserializer<'de>>(input: D) -> std::result::Result<bool, D::Error> {
    Ok(Option::deserialize(input)?.unwrap_or(true))
}

/// The default of a field that is `true` unless set.
pub(crate) fn yes() -> bool {
    true
}

/// Reads a free-form value; `null` means absent.
pub(crate) fn given_json<'de, D: Deserializer<'de>>(
    input: D,
) -> std::result::Result<Option<Json>, D::Error> {
    Ok(Option::<FreeForm>::deserialize(input)?.map(|given| given.0))
}

/// A free-form object that may be absent; an absent one is `null`.
pub(crate) mod object_or_null {
    use super::{Deserializer, Json, Serializer, json};

    pub(crate) fn serialize<S: Serializer>(value: &Json, out: S) -> Result<S::Ok, S::Error> {
        json::exact::serialize(value, out)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(input: D) -> Result<Json, D::Error> {
        super::given_json(input).map(Option::unwrap_or_default)
    }
}

/// Parses a time, or a day, which means its first moment.
pub fn moment(field: &str, text: &str) -> Result<Timestamp> {
    facts::schema::moment(text).ok_or_else(|| {
        Error::invalid(format!(
            "`{field}` is `{text}`; it takes a time such as 2025-03-14T09:30:00Z or a day such as \
             2025-03-14"
        ))
    })
}

/// Reads an optional text and converts it.
pub(crate) fn converted<'de, T, D: Deserializer<'de>>(
    input: D,
    convert: impl FnOnce(&str) -> Result<T>,
) -> std::result::Result<Option<T>, D::Error> {
    let text = Option::<String>::deserialize(input)?;
    text.as_deref().map(convert).transpose().map_err(refuse)
}

/// Parses the time of an observation.
pub(crate) fn observed_at(text: &str) -> Result<Timestamp> {
    text.parse().map_err(|error| Error::invalid(format!("`observed_at`: {error}")))
}

/// Converts a count or an offset of a request.
pub fn size(what: &'static str, value: u64) -> Result<usize> {
    usize::try_from(value).map_err(|_| Error::invalid(format!("{what} is too large a number")))
}

/// Implements serde for a type whose JSON form is another type.
macro_rules! request_form {
    ($($type:ty => $form:ty;)*) => {$(
        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(
                input: D,
            ) -> std::result::Result<Self, D::Error> {
                let form = <$form as serde::Deserialize>::deserialize(input)?;
                form.try_into().map_err(tine_core::request::refuse::<D::Error>)
            }
        }

        $crate::schema_of!($type, $form);
    )*};
}
pub(crate) use request_form;

/// Implements `Serialize` for requests by way of their JSON form.
macro_rules! written_as {
    ($($type:ty => $form:ty;)*) => {$(
        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, out: S) -> std::result::Result<S::Ok, S::Error> {
                <$form>::from(self).serialize(out)
            }
        }
    )*};
}
pub(crate) use written_as;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Append, NewConversation};

    fn refused(body: &str) -> (ErrorKind, String) {
        let read = read::<RequestBody<Append>>(body.as_bytes(), &Limits::default());
        let error = read.expect_err("a refusal");
        (error.kind(), error.to_string())
    }

    #[test]
    fn a_body_is_exact() {
        let body = r#"{"config":{"n":12345678901234567890123},"idempotency_key":"k"}"#;
        let read: RequestBody<NewConversation> =
            read(body.as_bytes(), &Limits::default()).expect("a body");
        assert_eq!(read.request.config.to_canonical(), r#"{"n":12345678901234567890123}"#);
        assert_eq!(read.fields.idempotency_key.as_deref(), Some("k"));
        assert_eq!(serde_json::to_string(&read).expect("JSON"), body);
    }

    #[test]
    fn a_refusal_locates_the_fault() {
        let twice = "the key \"a\" occurs more than once in the same object; keep one of them";
        let empty =
            "a turn reference must not be empty; give an id, a hash, a branch or a bookmark";
        for (body, kind, sentence) in [
            (
                r#"{"branch":7}"#,
                ErrorKind::Invalid,
                "the body: invalid type: integer `7`, expected a string at line 1 column 11",
            ),
            (
                r#"{"branch":"x","tip":1}"#,
                ErrorKind::Invalid,
                "the body: unknown field `tip`, expected one of `messages`, `role`, `content`, \
                 `tool_calls`, `tool_call_id`, `created_at`, `status`, `metadata`, `parent`, \
                 `branch`, `expected_tip`, `on_conflict`, `reuse`, `redacted`, `project_id`, \
                 `idempotency_key` at line 1 column 19",
            ),
            (
                r#"{"project_id":7}"#,
                ErrorKind::Invalid,
                "the body: invalid type: integer `7`, expected a string at line 1 column 15",
            ),
            (r#"{"project_id":""}"#, ErrorKind::Invalid, "the project id must not be empty"),
            (r#"{"parent":""}"#, ErrorKind::Invalid, empty),
            (
                r#"{"content":[{"a":1,"a":2}]}"#,
                ErrorKind::Invalid,
                &format!("invalid JSON: {twice} (at byte 8)"),
            ),
            // A map of names has no fields that could be declared twice.
            (
                r#"{"redacted":{"a":1,"a":2}}"#,
                ErrorKind::Invalid,
                &format!("invalid JSON: {twice} (at byte 19)"),
            ),
            (
                r#"{"branch":"x","branch":"y"}"#,
                ErrorKind::Invalid,
                "the body: duplicate field `branch` at line 1 column 22",
            ),
            (
                r#"{"idempotency_key":"x","idempotency_key":"y"}"#,
                ErrorKind::Invalid,
                "the body: duplicate field `idempotency_key` at line 1 column 40",
            ),
        ] {
            assert_eq!(refused(body), (kind, sentence.to_owned()), "{body}");
        }
    }

    #[test]
    fn the_nesting_limit_applies_to_each_free_form_value() {
        let read = |depth: usize| {
            let (open, close) = ("[".repeat(depth - 1), "]".repeat(depth - 1));
            let body = format!(r#"{{"config":{{"a":{open}{close}}}}}"#);
            read::<RequestBody<NewConversation>>(body.as_bytes(), &Limits::default())
        };
        let deepest = Limits::default().json_depth;
        assert!(read(deepest).is_ok());
        let refused = read(deepest + 1).expect_err("a refusal");
        assert_eq!(refused.kind(), ErrorKind::TooLarge, "{refused}");
        assert!(refused.to_string().contains("flatten the value (at byte 132)"), "{refused}");
    }
}
