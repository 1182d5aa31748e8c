//! Entity identity: when two observations are about the same entity.
//!
//! An entity's id is the hash of project, type and identity key, so two projects never share one.
//! Names are compared in NFC, trimmed, with runs of white space as one space, and case folded;
//! keys byte for byte.

use std::borrow::Cow;

use unicode_normalization::UnicodeNormalization;

use crate::json::{Json, Object, object};
use crate::{Digest, EntityId, ProjectId};

use super::schema::{FieldKind, Schema};

/// Returns the folded form of a name, by which names are compared.
///
/// ```
/// use tine_core::facts::identity::folded;
/// assert_eq!(folded("  Ada \u{a0} LOVELACE "), "ada lovelace");
/// assert_eq!(folded("STRASSE"), folded("straße"));
/// ```
pub fn folded(name: &str) -> String {
    fold(name).into_owned()
}

/// Returns the folded form without copying a name that is already folded.
pub fn fold(name: &str) -> Cow<'_, str> {
    let plain = |byte: &u8| byte.is_ascii_graphic() && !byte.is_ascii_uppercase();
    if name.as_bytes().iter().all(plain) {
        return Cow::Borrowed(name);
    }
    let mut folded = String::with_capacity(name.len());
    for word in name.split_whitespace() {
        if !folded.is_empty() {
            folded.push(' ');
        }
        if word.is_ascii() {
            folded.push_str(word);
        } else {
            // Upper case first: ß and SS, or the two small sigmas, differ in lower case alone.
            folded.push_str(&word.to_uppercase().to_lowercase());
        }
    }
    folded.make_ascii_lowercase();
    match folded.is_ascii() {
        true => Cow::Owned(folded),
        false => Cow::Owned(folded.nfc().collect()),
    }
}

/// Returns the id of the entity with a type and an identity key.
pub fn entity_id(project: &ProjectId, entity_type: &str, key: &Json) -> EntityId {
    let named = object([
        ("entity_type", entity_type.into()),
        ("key", key.clone()),
        ("project_id", project.as_str().into()),
    ]);
    EntityId::of(&Digest::of(named.to_canonical().as_bytes()))
}

/// Returns the identity key that a schema finds in fields: the values of all its identity fields.
/// `None` when one is missing: then an id has to be minted.
pub fn key(schema: &Schema, fields: &Object) -> Option<Json> {
    if schema.identity.is_empty() {
        return None;
    }
    let value = |name: &String| {
        let value = fields.get(name).filter(|value| !value.is_null())?;
        let by_name = schema.fields.get(name).is_none_or(|field| field.kind.is_compared_as_name());
        match value {
            Json::String(text) if by_name => {
                Some(folded(text)).filter(|text| !text.is_empty()).map(Json::String)
            }
            Json::String(text) if text.is_empty() => None,
            value => Some(value.clone()),
        }
    };
    // Fields after the first may be missing: an event without a date is an entity of its own.
    let first = value(schema.identity.first()?)?;
    let rest = schema.identity[1..].iter().map(|name| value(name).unwrap_or(Json::Null));
    Some(Json::Array(std::iter::once(first).chain(rest).collect()))
}

impl FieldKind {
    fn is_compared_as_name(self) -> bool {
        matches!(self, FieldKind::Name | FieldKind::Text)
    }
}
