//! Relationships and schemas.

use std::collections::BTreeMap;

use crate::{self as api, Error, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tine_core::facts::{FieldKind, Schema, Strategy};
use tine_core::json::{Json, Object};
use tine_core::{Limits, Reference};

use super::id;
use crate::bodies::FreeForm;
use crate::bodies::{request, size};

/// The eight types, and no other.
#[derive(JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[expect(dead_code, reason = "it describes the values of a text that the engine reads")]
pub(crate) enum RelationForm {
    PartOf,
    RefersTo,
    Embeds,
    Corrects,
    Settles,
    DuplicateOf,
    DependsOn,
    Supersedes,
}

/// One end of a relationship, by exactly one of its ids.
#[derive(Clone, Debug, Default)]
pub struct EndIds {
    /// An entity's.
    pub entity_id: Option<String>,
    /// A turn's: any reference.
    pub turn_id: Option<String>,
    /// A source's.
    pub source_id: Option<String>,
    /// A conversation's.
    pub conversation_id: Option<String>,
    /// The place of an entity of the same call.
    pub index: Option<u64>,
}

impl EndIds {
    /// The end, if any id is there.
    pub fn read(self) -> Result<Option<api::End>> {
        let mut ends = Vec::new();
        if let Some(text) = &self.entity_id {
            ends.push(api::End::Entity(id(text)?));
        }
        if let Some(text) = &self.turn_id {
            ends.push(api::End::Turn(Reference::parse(text)?));
        }
        if let Some(text) = &self.source_id {
            ends.push(api::End::Source(id(text)?));
        }
        if let Some(text) = self.conversation_id {
            ends.push(api::End::Conversation(text));
        }
        if let Some(nth) = self.index {
            ends.push(api::End::InCall(size("the index", nth)?));
        }
        match ends.len() {
            0 | 1 => Ok(ends.pop()),
            _ => Err(Error::invalid(
                "one end is named by several ids; give exactly one of them".to_owned(),
            )),
        }
    }

    fn required(self, which: &str) -> Result<api::End> {
        self.read()?.ok_or_else(|| {
            Error::invalid(format!(
                "the relationship's {which} is missing: give exactly one of \
                 `{which}_entity_id`, `{which}_turn_id`, `{which}_source_id` and \
                 `{which}_conversation_id`; among the facts of one call also `{which}_index`"
            ))
        })
    }
}

impl From<api::End> for EndIds {
    fn from(end: api::End) -> Self {
        let mut ids = EndIds::default();
        match end {
            api::End::Entity(id) => ids.entity_id = Some(id.to_string()),
            api::End::Source(id) => ids.source_id = Some(id.to_string()),
            api::End::Turn(turn) => ids.turn_id = Some(turn.as_str().to_owned()),
            api::End::Conversation(id) => ids.conversation_id = Some(id),
            api::End::InCall(nth) => ids.index = Some(nth as u64),
        }
        ids
    }
}

/// Declares the fields that a relationship is given by.
macro_rules! relationship {
    ($declare:ident! { $(#[$meta:meta])* $name:ident { $($rest:tt)* } }) => {
        $declare! {
            $(#[$meta])*
            $name {
                /// Its type.
                #[serde(rename = "type")]
                #[schemars(with = "RelationForm")]
                relation: String,
                /// From an entity …
                #[serde(default, skip_serializing_if = "Option::is_none")]
                source_entity_id: Option<String>,
                /// … or a turn …
                #[serde(default, skip_serializing_if = "Option::is_none")]
                source_turn_id: Option<String>,
                /// … or a source …
                #[serde(default, skip_serializing_if = "Option::is_none")]
                source_source_id: Option<String>,
                /// … or a conversation.
                #[serde(default, skip_serializing_if = "Option::is_none")]
                source_conversation_id: Option<String>,
                /// To an entity …
                #[serde(default, skip_serializing_if = "Option::is_none")]
                target_entity_id: Option<String>,
                /// … or a turn …
                #[serde(default, skip_serializing_if = "Option::is_none")]
                target_turn_id: Option<String>,
                /// … or a source …
                #[serde(default, skip_serializing_if = "Option::is_none")]
                target_source_id: Option<String>,
                /// … or a conversation.
                #[serde(default, skip_serializing_if = "Option::is_none")]
                target_conversation_id: Option<String>,
                /// What is known of it.
                #[serde(default, skip_serializing_if = "Option::is_none")]
                #[schemars(with = "Option<BTreeMap<String, serde_json::Value>>")]
                metadata: Option<FreeForm>,
                $($rest)*
            }
        }
    };
}

/// Declares a part of a body.
macro_rules! part {
    ($(#[$meta:meta])* $name:ident { $($(#[$field_meta:meta])* $field:ident: $type:ty,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields)]
        pub struct $name { $($(#[$field_meta])* pub $field: $type,)* }
    };
}

relationship!(request! {
    /// A relationship to be made. Each end is named by exactly one id.
    NewRelationship {}
});

relationship!(part! {
    /// A relationship in a store. Each end is named by exactly one id, or by the place of an
    /// entity of the same call.
    Ends {
        /// … or an entity of this call, by its place from 0.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        source_index: Option<u64>,
        /// … or an entity of this call, by its place from 0.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        target_index: Option<u64>,
    }
});

impl Ends {
    /// What the engine is asked.
    pub fn into_request(self, limits: &Limits) -> Result<api::NewRelationship> {
        let source = EndIds {
            entity_id: self.source_entity_id,
            turn_id: self.source_turn_id,
            source_id: self.source_source_id,
            conversation_id: self.source_conversation_id,
            index: self.source_index,
        };
        let target = EndIds {
            entity_id: self.target_entity_id,
            turn_id: self.target_turn_id,
            source_id: self.target_source_id,
            conversation_id: self.target_conversation_id,
            index: self.target_index,
        };
        Ok(api::NewRelationship {
            relation: self.relation,
            source: source.required("source")?,
            target: target.required("target")?,
            metadata: self.metadata.unwrap_or_default().within(limits)?,
        })
    }
}

impl From<api::NewRelationship> for Ends {
    fn from(request: api::NewRelationship) -> Self {
        let (source, target) = (EndIds::from(request.source), EndIds::from(request.target));
        Ends {
            relation: request.relation,
            source_entity_id: source.entity_id,
            source_turn_id: source.turn_id,
            source_source_id: source.source_id,
            source_conversation_id: source.conversation_id,
            source_index: source.index,
            target_entity_id: target.entity_id,
            target_turn_id: target.turn_id,
            target_source_id: target.source_id,
            target_conversation_id: target.conversation_id,
            target_index: target.index,
            metadata: (!request.metadata.is_null()).then_some(FreeForm(request.metadata)),
        }
    }
}

impl NewRelationship {
    /// What the engine is asked.
    pub fn into_request(self, limits: &Limits) -> Result<api::NewRelationship> {
        let ends = Ends {
            relation: self.relation,
            source_entity_id: self.source_entity_id,
            source_turn_id: self.source_turn_id,
            source_source_id: self.source_source_id,
            source_conversation_id: self.source_conversation_id,
            target_entity_id: self.target_entity_id,
            target_turn_id: self.target_turn_id,
            target_source_id: self.target_source_id,
            target_conversation_id: self.target_conversation_id,
            metadata: self.metadata,
            ..Ends::default()
        };
        ends.into_request(limits)
    }
}

impl From<api::NewRelationship> for NewRelationship {
    fn from(request: api::NewRelationship) -> Self {
        let ends = Ends::from(request);
        NewRelationship {
            relation: ends.relation,
            source_entity_id: ends.source_entity_id,
            source_turn_id: ends.source_turn_id,
            source_source_id: ends.source_source_id,
            source_conversation_id: ends.source_conversation_id,
            target_entity_id: ends.target_entity_id,
            target_turn_id: ends.target_turn_id,
            target_source_id: ends.target_source_id,
            target_conversation_id: ends.target_conversation_id,
            metadata: ends.metadata,
            ..NewRelationship::default()
        }
    }
}

/// Which way a relationship leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// Either.
    Both,
    /// From here.
    Outgoing,
    /// To here.
    Incoming,
}

impl From<Direction> for api::Direction {
    fn from(direction: Direction) -> Self {
        match direction {
            Direction::Both => api::Direction::Both,
            Direction::Outgoing => api::Direction::Outgoing,
            Direction::Incoming => api::Direction::Incoming,
        }
    }
}

impl From<api::Direction> for Direction {
    fn from(direction: api::Direction) -> Self {
        match direction {
            api::Direction::Both => Direction::Both,
            api::Direction::Outgoing => Direction::Outgoing,
            api::Direction::Incoming => Direction::Incoming,
        }
    }
}

impl Direction {
    /// Its name on every wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Direction::Both => "both",
            Direction::Outgoing => "outgoing",
            Direction::Incoming => "incoming",
        }
    }
}

/// What a field holds: the name of its kind, or that and which of several statements counts.
#[derive(JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "it describes the form of a field that is carried as bytes")]
enum FieldForm {
    ErrorKind(KindForm),
    Whole {
        #[serde(default)]
        kind: Option<KindForm>,
        #[serde(default)]
        strategy: Option<StrategyForm>,
    },
}

/// Declares the names of something, as a schema shows them.
macro_rules! names_form {
    ($(#[$meta:meta])* $name:ident, $of:ident) => {
        $(#[$meta])*
        struct $name;

        impl JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($of).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({ "type": "string", "enum": $of::NAMES })
            }
        }
    };
}

names_form!(KindForm, FieldKind);
names_form!(StrategyForm, Strategy);

request! {
    /// A schema to be registered, as the next version of its type.
    NewSchema {
        /// The type.
        #[schemars(length(min = 1, max = 64), regex(pattern = "^[a-z][a-z0-9_]*$"))]
        entity_type: String,
        /// What it is, in a sentence.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        description: Option<String>,
        /// Its fields.
        #[schemars(with = "BTreeMap<String, FieldForm>")]
        fields: FreeForm,
        /// Fields that together say which one it is. None: every statement without an id is about
        /// a new one.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        identity: Vec<String>,
    }
}

impl NewSchema {
    /// What the engine is asked.
    pub fn into_request(self, limits: &Limits) -> Result<api::NewSchema> {
        let identity = self.identity.into_iter().map(Json::from).collect();
        let mut members = Object::new();
        members.insert("entity_type", self.entity_type.into());
        members.insert("description", self.description.into());
        members.insert("fields", self.fields.within(limits)?);
        members.insert("identity", Json::Array(identity));
        Ok(api::NewSchema { schema: Schema::from_json(&Json::Object(members))? })
    }
}

impl From<api::NewSchema> for NewSchema {
    fn from(request: api::NewSchema) -> Self {
        let json = request.schema.to_json();
        NewSchema {
            fields: FreeForm(json.get("fields").cloned().unwrap_or_default()),
            entity_type: request.schema.entity_type,
            description: request.schema.description,
            identity: request.schema.identity,
            ..NewSchema::default()
        }
    }
}
