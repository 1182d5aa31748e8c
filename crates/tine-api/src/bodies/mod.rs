//! Requests as JSON: the bodies that HTTP takes, and that the client sends.
//!
//! Invariants:
//!
//! - A body is read by the strict reader of the core, so that a repeated key or a number out of
//!   range is refused; free-form values (`content`, `config`, `metadata`) stay exact, and no digit is
//!   lost.
//! - An unknown field is refused: a misspelt `parent` must not append somewhere else.
//! - Every body may name its project and carry an idempotency key.

mod branch;
mod conversation;
mod knowledge;
mod turn;
mod version;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tine_core::json::{self, Json, JsonErrorKind};
use tine_core::{ConversationId, ErrorKind, Limits, ProjectId, Reference};

pub use branch::*;
pub use conversation::*;
pub use knowledge::*;
pub use turn::*;
pub use version::*;

use crate::{Error, Result};

/// A free-form value of a body: any JSON, exact.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FreeForm(pub Json);

impl FreeForm {
    /// Returns the value, if it keeps the limit on nesting.
    pub(crate) fn within(self, limits: &Limits) -> Result<Json> {
        if self.0.depth() > limits.json_depth {
            let deep = JsonErrorKind::TooDeep { limit: limits.json_depth };
            return Err(Error::new(ErrorKind::TooLarge, format!("invalid JSON: {deep}")));
        }
        Ok(self.0)
    }
}

impl Serialize for FreeForm {
    fn serialize<S: serde::Serializer>(
        &self,
        serializer: S,
    ) -> std::result::Result<S::Ok, S::Error> {
        json::exact::serialize(&self.0, serializer)
    }
}

impl<'de> Deserialize<'de> for FreeForm {
    fn deserialize<D: serde::Deserializer<'de>>(input: D) -> std::result::Result<Self, D::Error> {
        json::de::exact(input, Limits::default().json_depth).map(FreeForm)
    }
}

/// Reads a body: parses its bytes once, strictly, and converts the value.
///
/// A body that is refused is read a second time, to say where the fault is: as a place in the body,
/// or as an offset in the free-form value that has it. The limit on nesting holds for each free-form
/// value, and not for the fields around it; so a body that is too deep as a whole can still be taken.
pub fn read<B: DeserializeOwned>(bytes: &[u8], limits: &Limits) -> Result<B> {
    let refused = match json::parse(bytes, limits.json_depth) {
        Ok(value) => match json::de::from_json(value) {
            Ok(body) => return Ok(body),
            Err(_) => None,
        },
        Err(error) => Some(error),
    };
    let again = serde_json::from_slice(bytes);
    match (again, refused) {
        (Ok(body), None) => Ok(body),
        (Ok(body), Some(error)) if error.is_too_deep() => Ok(body),
        (Ok(_), Some(error)) => Err(error.into()),
        (Err(place), refused) => {
            let text = place.to_string();
            // What the strict reader said of a free-form value, without the place that was added.
            let inside = refused.filter(|error| text.starts_with(&error.kind.to_string()));
            let Some(error) = inside else {
                return Err(Error::invalid(format!("the body: {text}")));
            };
            let text = text.rsplit_once(" at line ").map_or(text.as_str(), |(text, _)| text);
            let kind = if error.is_too_deep() { ErrorKind::TooLarge } else { ErrorKind::Invalid };
            Err(Error::new(kind, format!("invalid JSON: {text}")))
        }
    }
}

/// JSON text that an answer holds as it is.
pub type Raw = Box<RawValue>;

/// Returns a value in its canonical bytes.
pub fn raw(json: &Json) -> Raw {
    RawValue::from_string(json.to_canonical()).expect("canonical JSON is JSON")
}

/// What every body has besides its own fields.
pub trait Common {
    /// The project that the body names.
    fn project_id(&self) -> Option<&str>;
    /// The key that makes the call safe to repeat.
    fn idempotency_key(&self) -> Option<&str>;
}

/// Declares a request body: its fields, then those that every body has.
macro_rules! request {
    ($(#[$meta:meta])* $name:ident { $($(#[$field_meta:meta])* $field:ident: $type:ty,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        #[serde(deny_unknown_fields)]
        pub struct $name {
            $($(#[$field_meta])* pub $field: $type,)*
            /// The project; `default` without it.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            #[schemars(length(min = 1, max = 512), regex(pattern = "^[^\\u0000-\\u001f\\u007f-\\u009f]+$"))]
            pub project_id: Option<String>,
            /// Makes the call safe to repeat, as the header `Idempotency-Key` does.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            #[schemars(length(min = 1, max = 512), regex(pattern = "^[^\\u0000-\\u001f\\u007f-\\u009f]+$"))]
            pub idempotency_key: Option<String>,
        }

        impl $crate::bodies::Common for $name {
            fn project_id(&self) -> Option<&str> {
                self.project_id.as_deref()
            }

            fn idempotency_key(&self) -> Option<&str> {
                self.idempotency_key.as_deref()
            }
        }
    };
}
pub(crate) use request;

request! {
    /// Nothing besides project and key.
    Nothing {}
}

/// Reads a field that is there: also `null` says something.
pub(crate) fn given<'de, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> std::result::Result<Option<FreeForm>, D::Error> {
    FreeForm::deserialize(deserializer).map(Some)
}

pub(crate) fn reference(text: Option<&str>) -> Result<Option<Reference>> {
    Ok(text.map(Reference::parse).transpose()?)
}

pub(crate) fn conversation_id(text: &str, limits: &Limits) -> Result<ConversationId> {
    Ok(ConversationId::new(text, limits)?)
}

/// A project by its id; the default one without.
pub fn project(id: Option<&str>, limits: &Limits) -> Result<ProjectId> {
    match id {
        None => Ok(ProjectId::default()),
        Some(id) => Ok(ProjectId::new(id, limits)?),
    }
}

/// A field that can be left as it is, cleared with `null`, or set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Patch<T> {
    /// Not there: as it is.
    #[default]
    Keep,
    /// `null`: cleared.
    Clear,
    /// Set.
    Set(T),
}

impl<T> Patch<T> {
    /// Whether the field is not there.
    pub fn is_keep(&self) -> bool {
        matches!(self, Patch::Keep)
    }

    /// As the engine says it: nothing, or a new value that may be none.
    pub fn into_option(self) -> Option<Option<T>> {
        match self {
            Patch::Keep => None,
            Patch::Clear => Some(None),
            Patch::Set(value) => Some(Some(value)),
        }
    }
}

impl<T> From<Option<Option<T>>> for Patch<T> {
    fn from(change: Option<Option<T>>) -> Self {
        match change {
            None => Patch::Keep,
            Some(None) => Patch::Clear,
            Some(Some(value)) => Patch::Set(value),
        }
    }
}

impl<T: Serialize> Serialize for Patch<T> {
    fn serialize<S: serde::Serializer>(
        &self,
        serializer: S,
    ) -> std::result::Result<S::Ok, S::Error> {
        match self {
            Patch::Keep | Patch::Clear => serializer.serialize_none(),
            Patch::Set(value) => value.serialize(serializer),
        }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Patch<T> {
    fn deserialize<D: serde::Deserializer<'de>>(
        deserializer: D,
    ) -> std::result::Result<Self, D::Error> {
        Ok(match Option::<T>::deserialize(deserializer)? {
            None => Patch::Clear,
            Some(value) => Patch::Set(value),
        })
    }
}

impl<T: schemars::JsonSchema> schemars::JsonSchema for Patch<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        Option::<T>::schema_name()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        Option::<T>::json_schema(generator)
    }
}

/// A number of turns or characters, as a surface took it.
pub fn size(what: &'static str, value: u64) -> Result<usize> {
    usize::try_from(value).map_err(|_| Error::invalid(format!("{what} is too large a number")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(body: &str) -> (ErrorKind, String) {
        let error = read::<Append>(body.as_bytes(), &Limits::default()).expect_err("a refusal");
        (error.kind(), error.to_string())
    }

    #[test]
    fn a_body_is_exact() {
        let body = r#"{"messages":[{"n":12345678901234567890123}],"reuse":false}"#;
        let read: Append = read(body.as_bytes(), &Limits::default()).expect("a body");
        let messages = read.messages.expect("messages");
        assert_eq!(messages[0].0.to_canonical(), r#"{"n":12345678901234567890123}"#);
        assert_eq!(read.reuse, Some(false));
    }

    #[test]
    fn a_refusal_says_where_the_fault_is() {
        let twice = "the key \"a\" occurs more than once in the same object; keep one of them";
        for (body, kind, sentence) in [
            (
                r#"{"branch":7}"#,
                ErrorKind::Invalid,
                "the body: invalid type: integer `7`, expected a string at line 1 column 11",
            ),
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
        ] {
            assert_eq!(refused(body), (kind, sentence.to_owned()), "{body}");
        }
    }

    #[test]
    fn the_limit_on_nesting_holds_for_each_free_form_value() {
        let content =
            |depth: usize| format!(r#"{{"content":{}{}}}"#, "[".repeat(depth), "]".repeat(depth));
        let limits = Limits::default();
        assert!(read::<Append>(content(limits.json_depth).as_bytes(), &limits).is_ok());
        let (kind, sentence) = refused(&content(limits.json_depth + 1));
        assert_eq!(kind, ErrorKind::TooLarge, "{sentence}");
        assert!(sentence.contains("flatten the value (at byte 128)"), "{sentence}");
    }
}
