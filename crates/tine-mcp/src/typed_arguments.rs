//! Typed arguments, read from the exact object of a call.
//!
//! Values are moved from the object that the strict reader parsed into a tool's arguments: nothing
//! is parsed again, and free-form values ([`Members`], [`AnyValue`]) keep every digit. The tool's
//! schema is derived from the same types.

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Deserialize;
use serde::de::IntoDeserializer;
use serde::de::value::{Error as ValueError, StrDeserializer};
use serde_json::{Map, Value};
use tine_core::json::{Json, Object};

use crate::mcp_error::McpError;
use crate::schema::wrong_type;

/// A type that an argument can have.
pub(crate) trait FromArgument: Sized {
    /// Reads the argument with this name; `None` if the call does not have it.
    fn from_argument(name: &str, value: Option<Json>) -> Result<Self, McpError>;
}

/// The arguments of a tool, or of an object within them.
pub(crate) trait FromObject: Sized {
    /// Reads the members of an object. `within` is the object's path, empty for a tool's arguments.
    fn from_object(within: &str, members: Object) -> Result<Self, McpError>;
}

/// Takes a member out of an object and reads it.
pub(crate) fn take<T: FromArgument>(
    members: &mut Object,
    within: &str,
    field: &str,
) -> Result<T, McpError> {
    let field = plain_name(field);
    let value = members.remove(field);
    match within {
        "" => T::from_argument(field, value),
        within => T::from_argument(&format!("{within}.{field}"), value),
    }
}

/// Refuses members that are left after all known ones were taken.
pub(crate) fn refuse_others(
    within: &str,
    left: &Object,
    fields: &[&'static str],
) -> Result<(), McpError> {
    let Some(unknown) = left.keys().next() else { return Ok(()) };
    let known: Vec<&str> = fields.iter().map(|field| plain_name(field)).collect();
    let path = if within.is_empty() { String::new() } else { format!("{within}: ") };
    Err(McpError::invalid(format!("{path}unknown member `{unknown}`"))
        .next(format!("the members are: {}", known.join(", "))))
}

/// Returns a field's name without the prefix of a raw identifier.
fn plain_name(field: &str) -> &str {
    field.strip_prefix("r#").unwrap_or(field)
}

/// Declares the arguments of a tool, or of an object within them.
macro_rules! arguments {
    ($name:ident { $($(#[$meta:meta])* $field:ident: $type:ty,)* }) => {
        #[derive(Debug, schemars::JsonSchema)]
        #[schemars(deny_unknown_fields)]
        pub(super) struct $name {
            $($(#[$meta])* pub(super) $field: $type,)*
        }

        impl crate::typed_arguments::FromObject for $name {
            fn from_object(
                within: &str,
                mut members: tine_core::json::Object,
            ) -> Result<Self, crate::mcp_error::McpError> {
                let arguments = $name {
                    $($field: crate::typed_arguments::take(&mut members, within, stringify!($field))?,)*
                };
                crate::typed_arguments::refuse_others(within, &members, &[$(stringify!($field)),*])?;
                Ok(arguments)
            }
        }
    };
}
pub(crate) use arguments;

/// Implements [`FromArgument`] for enums, by the names of their variants.
macro_rules! choices {
    ($($name:ty),* $(,)?) => {
        $(impl crate::typed_arguments::FromArgument for $name {
            fn from_argument(
                name: &str,
                value: Option<tine_core::Json>,
            ) -> Result<Self, crate::mcp_error::McpError> {
                crate::typed_arguments::choice(name, value)
            }
        })*
    };
}
pub(crate) use choices;

/// Reads an enum by the name of its variant.
pub(crate) fn choice<T: for<'de> Deserialize<'de>>(
    name: &str,
    value: Option<Json>,
) -> Result<T, McpError> {
    let text = String::from_argument(name, value)?;
    let text: StrDeserializer<'_, ValueError> = text.as_str().into_deserializer();
    T::deserialize(text).map_err(|error| McpError::invalid(format!("`{name}`: {error}")))
}

choices!(tine_api::bodies::Speaker);

/// Reads a required value of a JSON type, or says which type the argument must have.
fn required<T>(
    name: &str,
    value: Option<Json>,
    wanted: &str,
    read: impl FnOnce(Json) -> Result<T, Json>,
) -> Result<T, McpError> {
    let Some(value) = value else {
        let why = format!("the argument `{name}` is missing");
        return Err(McpError::invalid(why).next(format!("send `{name}`")));
    };
    read(value).map_err(|value| wrong_type(name, wanted, &value))
}

impl<T: FromArgument> FromArgument for Option<T> {
    /// `null` counts as absent.
    fn from_argument(name: &str, value: Option<Json>) -> Result<Self, McpError> {
        match value {
            None | Some(Json::Null) => Ok(None),
            value => T::from_argument(name, value).map(Some),
        }
    }
}

impl FromArgument for String {
    fn from_argument(name: &str, value: Option<Json>) -> Result<Self, McpError> {
        required(name, value, "string", |value| match value {
            Json::String(text) => Ok(text),
            other => Err(other),
        })
    }
}

impl FromArgument for bool {
    fn from_argument(name: &str, value: Option<Json>) -> Result<Self, McpError> {
        required(name, value, "boolean", |value| value.as_bool().ok_or(value))
    }
}

impl FromArgument for u64 {
    fn from_argument(name: &str, value: Option<Json>) -> Result<Self, McpError> {
        required(name, value, "integer", |value| value.as_u64().ok_or(value))
    }
}

impl FromArgument for i64 {
    fn from_argument(name: &str, value: Option<Json>) -> Result<Self, McpError> {
        required(name, value, "number", |value| {
            value.as_number().and_then(|number| number.as_i64()).ok_or(value)
        })
    }
}

/// A pair, such as the ends of a span.
impl FromArgument for (u64, u64) {
    fn from_argument(name: &str, value: Option<Json>) -> Result<Self, McpError> {
        match <[u64; 2]>::try_from(Vec::from_argument(name, value)?) {
            Ok([start, end]) => Ok((start, end)),
            Err(_) => Err(McpError::invalid(format!("`{name}` must have two numbers"))
                .next(format!("send `{name}` as [start, end]"))),
        }
    }
}

impl<T: FromArgument> FromArgument for Vec<T> {
    fn from_argument(name: &str, value: Option<Json>) -> Result<Self, McpError> {
        let items = required(name, value, "array", |value| match value {
            Json::Array(items) => Ok(items),
            other => Err(other),
        })?;
        let items = items.into_iter().enumerate();
        items.map(|(at, item)| T::from_argument(&format!("{name}[{at}]"), Some(item))).collect()
    }
}

/// The members of a free-form object.
#[derive(Clone, Debug)]
pub(crate) struct Members(pub Object);

impl FromArgument for Members {
    fn from_argument(name: &str, value: Option<Json>) -> Result<Self, McpError> {
        required(name, value, "object", |value| match value {
            Json::Object(members) => Ok(Members(members)),
            other => Err(other),
        })
    }
}

impl From<Members> for Json {
    fn from(members: Members) -> Json {
        Json::Object(members.0)
    }
}

/// A free-form value.
#[derive(Clone, Debug)]
pub(crate) struct AnyValue(pub Json);

impl FromArgument for AnyValue {
    fn from_argument(name: &str, value: Option<Json>) -> Result<Self, McpError> {
        required(name, value, "value", |value| Ok(AnyValue(value)))
    }
}

impl From<AnyValue> for Json {
    fn from(value: AnyValue) -> Json {
        value.0
    }
}

/// Gives a free-form type the schema of the corresponding `serde_json` type.
macro_rules! schema_of {
    ($name:ty, $form:ty) => {
        impl JsonSchema for $name {
            fn inline_schema() -> bool {
                <$form>::inline_schema()
            }

            fn schema_name() -> std::borrow::Cow<'static, str> {
                <$form>::schema_name()
            }

            fn json_schema(generator: &mut SchemaGenerator) -> Schema {
                <$form>::json_schema(generator)
            }
        }
    };
}

schema_of!(Members, Map<String, Value>);
schema_of!(AnyValue, Value);
