//! Serde and schema implementations for ids, hashes, times and names, as strings in wire form.
//!
//! API types can therefore hold the domain types directly.

/// Implements `Serialize`, `Deserialize` and `JsonSchema` for a type with one text form.
///
/// `$write` returns the text (anything that derefs to `str`), `$read` parses it.
macro_rules! impl_text_serde {
    ($($type:ty: |$value:ident| $write:expr, |$text:ident| $read:expr;)*) => {$(
        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let $value = self;
                serializer.serialize_str(&$write)
            }
        }

        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
                let $text = std::borrow::Cow::<'de, str>::deserialize(input)?;
                $read.map_err(crate::request::refuse)
            }
        }

        impl schemars::JsonSchema for $type {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> std::borrow::Cow<'static, str> {
                "string".into()
            }

            fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
                String::json_schema(generator)
            }
        }
    )*};
}

use std::borrow::Cow;

use crate::error::UnknownName;
use crate::facts::{self, FieldKind, Relation, Strategy};
use crate::ids::NameError;
use crate::request;
use crate::rings::Intent;
use crate::{
    BranchId, CommitHash, ConversationId, Digest, EntityId, ErrorKind, InterpretationId, Limits,
    Name, ObservationId, OperationHash, ProjectId, Reference, Role, RootHash, SourceId, Status,
    Timestamp, TurnHash, TurnId,
};

/// Checks a text in a request; accepts one that was checked when it was stored.
fn checked<T>(
    text: Cow<'_, str>,
    check: fn(String, &Limits) -> Result<T, NameError>,
    stored: fn(String) -> T,
) -> Result<T, NameError> {
    match request::limits() {
        Some(limits) => check(text.into_owned(), &limits),
        None => Ok(stored(text.into_owned())),
    }
}

/// Looks a value up by its wire name.
fn named<T>(
    what: &'static str,
    name: &str,
    parse: impl FnOnce(&str) -> Option<T>,
) -> Result<T, UnknownName> {
    parse(name).ok_or_else(|| UnknownName { what, name: name.to_owned() })
}

impl_text_serde! {
    TurnId: |id| id.encode(&mut [0; 36]), |text| text.parse::<TurnId>();
    BranchId: |id| id.encode(&mut [0; 36]), |text| text.parse::<BranchId>();
    Digest: |digest| digest.to_string(), |text| text.parse::<Digest>();
    TurnHash: |hash| hash.0.to_string(), |text| text.parse::<TurnHash>();
    RootHash: |hash| hash.0.to_string(), |text| text.parse::<RootHash>();
    CommitHash: |hash| hash.0.to_string(), |text| text.parse::<CommitHash>();
    OperationHash: |hash| hash.0.to_string(), |text| text.parse::<OperationHash>();
    EntityId: |id| id.to_string(), |text| text.parse::<EntityId>();
    SourceId: |id| id.to_string(), |text| text.parse::<SourceId>();
    InterpretationId: |id| id.to_string(), |text| text.parse::<InterpretationId>();
    ObservationId: |id| id.to_string(), |text| text.parse::<ObservationId>();
    Timestamp: |at| at.to_string(), |text| text.parse::<Timestamp>();
    ProjectId: |id| id.as_str(), |text| checked(text, ProjectId::new, ProjectId::from_stored);
    ConversationId: |id| id.as_str(), |text| checked(text, ConversationId::new, ConversationId::from_stored);
    Name: |name| name.as_str(), |text| checked(text, Name::new, Name::from_stored);
    Reference: |reference| reference.as_str(), |text| Reference::parse(&text);
    ErrorKind: |kind| kind.code(), |text| named("error code", &text, ErrorKind::parse);
    Role: |role| role.as_str(), |text| text.parse::<Role>();
    Status: |status| status.as_str(), |text| named("status", &text, Status::parse);
    Relation: |relation| relation.as_str(), |text| text.parse::<Relation>();
    Intent: |intent| intent.as_str(), |text| named("intent", &text, Intent::from_name);
    FieldKind: |kind| kind.as_str(), |text| named("kind of field", &text, FieldKind::parse);
    Strategy: |it| it.as_str(), |text| named("strategy", &text, Strategy::parse);
    facts::ObservationOrigin: |it| it.as_str(), |text| named("origin", &text, facts::ObservationOrigin::parse);
}
