//! What bodies have in common: which project, which key, and so on, beside the request itself.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::{DeserializeOwned, Error as _, IntoDeserializer, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, forward_to_deserialize_any};
use tine_core::{ConversationId, ProjectId};

use super::{
    Archive, AskReply, BranchPatch, ForkTurn, Inject, InterpretSource, NewBranch, NewProject,
    Nothing, PurgeBody, RegenerateReply, SignCommit, Store, Visited,
};
use crate::*;

/// Fields of a body that are not part of the request itself.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct CallFields {
    /// Whether to include the turn itself in the answer; for a source, the turn that it is the
    /// envelope of.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub return_turn: bool,
    /// How many secrets of each kind the sender has redacted; recorded with the operation.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub redacted: BTreeMap<String, u64>,
    /// The conversation in which hashes and names are looked up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conversation_id: Option<ConversationId>,
    /// The project; `default` by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(min = 1, max = 512),
        regex(pattern = "^[^\\u0000-\\u001f\\u007f-\\u009f]+$")
    )]
    pub project_id: Option<ProjectId>,
    /// Makes the call safe to retry, like the header `Idempotency-Key`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(min = 1, max = 512),
        regex(pattern = "^[^\\u0000-\\u001f\\u007f-\\u009f]+$")
    )]
    pub idempotency_key: Option<String>,
}

impl CallFields {
    /// Returns the counts of redacted secrets. Kinds must be short words, and few.
    pub fn checked_redacted(&self) -> Result<BTreeMap<String, u64>> {
        let is_kind = |kind: &String| {
            (1..=32).contains(&kind.len())
                && kind.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')
        };
        if self.redacted.len() > 64 || !self.redacted.keys().all(is_kind) {
            let why = "`redacted` counts secrets by kind, such as {\"github\": 1}";
            return Err(Error::invalid(why));
        }
        Ok(self.redacted.clone())
    }
}

/// A request that can be sent as a JSON body.
pub trait Request: DeserializeOwned + JsonSchema {
    /// Which [`CallFields`] its body may have.
    const CALL_FIELDS: &'static [&'static str];
}

/// Declares requests, each with the call fields that it has beside project and key.
macro_rules! requests {
    ($($type:ty $([$($field:literal),+])?;)*) => {$(
        impl Request for $type {
            const CALL_FIELDS: &'static [&'static str] =
                &[$($($field,)+)? "project_id", "idempotency_key"];
        }
    )*};
}

requests! {
    Append ["redacted"];
    Archive;
    AskReply;
    BranchPatch;
    ConversationPatch;
    Correct;
    Derive;
    Edit ["redacted", "conversation_id"];
    ForkTurn ["conversation_id"];
    Inject;
    InterpretSource;
    Merge;
    MergeBranches;
    MetadataPatch ["conversation_id"];
    MoveBranch;
    NewBranch;
    NewCommit;
    NewConversation;
    NewRelationship;
    NewSchema;
    NewSource ["return_turn"];
    Nothing;
    PurgeBody ["conversation_id"];
    RegenerateReply ["conversation_id"];
    Reinterpret;
    ResolveConflicts;
    Separate;
    SignCommit;
    SplitTurn ["conversation_id"];
    Store ["redacted"];
    StoreTurn ["return_turn", "redacted"];
    TurnRef;
    Visited;
}

impl Request for NewProject {
    const CALL_FIELDS: &'static [&'static str] = &[];
}

/// A body: a request, and the call fields beside it.
#[derive(Clone, Debug, Default, Serialize)]
pub struct RequestBody<T> {
    /// The request.
    #[serde(flatten)]
    pub request: T,
    /// The fields beside it.
    #[serde(flatten)]
    pub fields: CallFields,
}

impl<T: Request> JsonSchema for RequestBody<T> {
    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = T::json_schema(generator);
        let mut shared = CallFields::json_schema(generator);
        let shared = shared.ensure_object().remove("properties").unwrap_or_default();
        let properties = schema.ensure_object().entry("properties");
        let properties = properties.or_insert_with(|| serde_json::json!({}));
        for name in T::CALL_FIELDS {
            properties[*name] = shared[*name].clone();
        }
        schema
    }
}

impl<'de, T: Request> Deserialize<'de> for RequestBody<T> {
    fn deserialize<D: Deserializer<'de>>(input: D) -> std::result::Result<Self, D::Error> {
        let mut fields = CallFields::default();
        let call = CallFieldReader { names: T::CALL_FIELDS, fields: &mut fields, seen: Vec::new() };
        let request = T::deserialize(WithoutCallFields { input, call })?;
        Ok(RequestBody { request, fields })
    }
}

/// Takes call fields out of a body while serde reads the request.
struct CallFieldReader<'f> {
    names: &'static [&'static str],
    fields: &'f mut CallFields,
    seen: Vec<&'static str>,
}

impl CallFieldReader<'_> {
    /// Reads the value of a call field.
    fn read<'de, M: MapAccess<'de>>(
        &mut self,
        name: &'static str,
        map: &mut M,
    ) -> std::result::Result<(), M::Error> {
        if self.seen.contains(&name) {
            return Err(M::Error::duplicate_field(name));
        }
        self.seen.push(name);
        match name {
            "return_turn" => self.fields.return_turn = map.next_value()?,
            "redacted" => self.fields.redacted = map.next_value()?,
            "conversation_id" => self.fields.conversation_id = map.next_value()?,
            "project_id" => self.fields.project_id = map.next_value()?,
            _ => self.fields.idempotency_key = map.next_value()?,
        }
        Ok(())
    }
}

/// A body as the input of a request, which does not see the call fields.
struct WithoutCallFields<'f, D> {
    input: D,
    call: CallFieldReader<'f>,
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for WithoutCallFields<'_, D> {
    type Error = D::Error;

    fn deserialize_any<V: Visitor<'de>>(
        self,
        visitor: V,
    ) -> std::result::Result<V::Value, D::Error> {
        self.deserialize_struct("", &[], visitor)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        own: &'static [&'static str],
        visitor: V,
    ) -> std::result::Result<V::Value, D::Error> {
        self.input.deserialize_map(RequestVisitor { visitor, own, call: self.call })
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option
        unit unit_struct newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

struct RequestVisitor<'f, V> {
    visitor: V,
    own: &'static [&'static str],
    call: CallFieldReader<'f>,
}

impl<'de, V: Visitor<'de>> Visitor<'de> for RequestVisitor<'_, V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.visitor.expecting(f)
    }

    fn visit_map<M: MapAccess<'de>>(self, map: M) -> std::result::Result<V::Value, M::Error> {
        self.visitor.visit_map(RequestMap { map, own: self.own, call: self.call })
    }
}

struct RequestMap<'f, M> {
    map: M,
    own: &'static [&'static str],
    call: CallFieldReader<'f>,
}

impl<'de, M: MapAccess<'de>> MapAccess<'de> for RequestMap<'_, M> {
    type Error = M::Error;

    fn next_key_seed<K: serde::de::DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> std::result::Result<Option<K::Value>, M::Error> {
        while let Some(key) = self.map.next_key::<String>()? {
            if self.own.contains(&key.as_str()) {
                return seed.deserialize(key.into_deserializer()).map(Some);
            }
            match self.call.names.iter().find(|name| **name == key) {
                Some(name) => self.call.read(name, &mut self.map)?,
                None => return Err(M::Error::custom(self.unknown(&key))),
            }
        }
        Ok(None)
    }

    fn next_value_seed<S: serde::de::DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> std::result::Result<S::Value, M::Error> {
        self.map.next_value_seed(seed)
    }
}

impl<M> RequestMap<'_, M> {
    /// Describes an unknown field as serde does.
    fn unknown(&self, key: &str) -> String {
        let known = self.own.iter().chain(self.call.names).map(|name| format!("`{name}`"));
        match known.collect::<Vec<_>>().as_slice() {
            [] => format!("unknown field `{key}`, there are no fields"),
            [only] => format!("unknown field `{key}`, expected {only}"),
            [one, other] => format!("unknown field `{key}`, expected {one} or {other}"),
            all => format!("unknown field `{key}`, expected one of {}", all.join(", ")),
        }
    }
}
