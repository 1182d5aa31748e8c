//! Requests about knowledge whose JSON form differs from the type.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use schemars::{JsonSchema, Schema as JsonSchemaValue, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize};
use tine_core::facts::{FieldKind, Schema, Strategy};
use tine_core::json::Json;
use tine_core::request::limits_or_stored;
use tine_core::{Reference, SourceId};

use crate::bodies::{
    ContentForm, FreeForm, MessageForm, Speaker, content_json, decoded, message, message_json,
    messages, object_of, object_or_null, request_form, size, written_as,
};
use crate::{End, Error, Interpret, NewRelationship, NewSchema, NewSource, Result, StoreTurn};

request_form! {
    StoreTurn => StoreTurnJson;
    NewSource => NewSourceJson;
    NewRelationship => NewRelationshipJson;
    NewSchema => NewSchemaJson;
}

written_as! {
    StoreTurn => StoreTurnJson;
    NewRelationship => NewRelationshipJson;
    NewSchema => NewSchemaJson;
}

/// A host's id of a turn: a text, or a number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub(crate) struct Handle(String);

impl<'de> Deserialize<'de> for Handle {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "a text or a whole number")]
        enum Given {
            Text(String),
            Counted(u64),
            Negative(i64),
        }
        Ok(Handle(match Given::deserialize(deserializer)? {
            Given::Text(text) => text,
            Given::Counted(number) => number.to_string(),
            Given::Negative(number) => number.to_string(),
        }))
    }
}

impl JsonSchema for Handle {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Handle".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> JsonSchemaValue {
        json_schema!({
            "type": ["string", "integer"],
            "minLength": 1,
            "maxLength": 512,
            "minimum": i64::MIN,
            "maximum": u64::MAX,
        })
    }
}

/// A turn of a host that tracks no branches.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "StoreTurn")]
struct StoreTurnJson {
    /// The id of the conversation, or of its entity. The conversation is created if it does not
    /// exist; without an id, one is generated.
    #[serde(skip_serializing_if = "Option::is_none")]
    conversation_id: Option<String>,
    /// Alias of `conversation_id`.
    #[serde(skip_serializing_if = "Option::is_none")]
    session_id: Option<String>,
    /// Alias of `conversation_id`. Beside `conversation_id` or `session_id`, an alias of `branch`.
    #[serde(skip_serializing_if = "Option::is_none")]
    thread_id: Option<String>,
    /// The host's id of the turn, or the `turn_id` of an earlier answer. By default the
    /// idempotency key, or a generated id.
    #[serde(skip_serializing_if = "Option::is_none")]
    turn_id: Option<Handle>,
    /// Alias of `turn_id`.
    #[serde(skip_serializing_if = "Option::is_none")]
    turn_number: Option<Handle>,
    /// The role of the message.
    role: Speaker,
    /// The content of the message: a text, or blocks.
    #[schemars(with = "ContentForm")]
    content: FreeForm,
    /// The id of the tool call that this message answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<String>,
    /// When the message was sent; the current time by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    created_at: Option<String>,
    /// Alias of `created_at`.
    #[serde(skip_serializing_if = "Option::is_none")]
    timestamp: Option<String>,
    /// `complete`, or `partial` for a stream that was interrupted.
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<String>,
    /// Additional metadata.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<BTreeMap<String, serde_json::Value>>")]
    metadata: Option<FreeForm>,
    /// The branch, by name or id; created if it does not exist. `main` by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    branch: Option<String>,
    /// Alias of `branch`.
    #[serde(skip_serializing_if = "Option::is_none")]
    branch_id: Option<String>,
    /// The parent turn, or `root`; overrides the placement rules.
    #[serde(skip_serializing_if = "Option::is_none")]
    parent: Option<Reference>,
    /// The host's id of the preceding message, or the id of that turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    parent_message_id: Option<String>,
    /// All preceding messages, from the root on; stored first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<MessageForm>")]
    history: Vec<FreeForm>,
    /// The ids of sources attached to the message.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    attachment_source_ids: Vec<SourceId>,
    /// The title of the conversation, if it is created.
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    /// The system prompt of the conversation, if it is created.
    #[serde(skip_serializing_if = "Option::is_none")]
    system_prompt: Option<String>,
    /// Whether to interpret the message; `none` by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    interpret: Option<Interpret>,
    /// The interpreter; the configured default if omitted.
    #[serde(skip_serializing_if = "Option::is_none")]
    interpreter: Option<String>,
}

/// Returns the value of a field and its aliases, which must agree.
fn one_of<const N: usize>(given: [(&str, Option<String>); N]) -> Result<Option<String>> {
    let mut found: Option<(&str, String)> = None;
    for (name, value) in given {
        match (&found, value) {
            (Some((other, known)), Some(value)) if *known != value => {
                let why = format!("`{other}` and `{name}` differ; give one of them");
                return Err(Error::invalid(why));
            }
            (None, Some(value)) => found = Some((name, value)),
            _ => {}
        }
    }
    Ok(found.map(|(_, value)| value))
}

impl TryFrom<StoreTurnJson> for StoreTurn {
    type Error = Error;

    fn try_from(form: StoreTurnJson) -> Result<Self> {
        let limits = limits_or_stored();
        let (conversation, thread) =
            match (form.conversation_id.or(form.session_id), form.thread_id) {
                (None, thread) => (thread, None),
                (named, thread) => (named, thread),
            };
        let branch = one_of([
            ("branch", form.branch),
            ("branch_id", form.branch_id),
            ("thread_id", thread),
        ])?;
        let turn_id = one_of([
            ("turn_id", form.turn_id.map(|handle| handle.0)),
            ("turn_number", form.turn_number.map(|handle| handle.0)),
        ])?;
        let created_at = one_of([("created_at", form.created_at), ("timestamp", form.timestamp)])?;
        let fields = object_of([
            ("role", Some(form.role.as_str().into())),
            ("content", Some(form.content.0)),
            ("tool_call_id", form.tool_call_id.map(Json::from)),
            ("created_at", created_at.map(Json::from)),
            ("status", form.status.map(Json::from)),
            ("metadata", form.metadata.map(|metadata| metadata.0)),
        ]);
        let index = form.history.len();
        let history = form.history.into_iter().map(|message| message.0).collect();
        let history = messages(history, &limits)?;
        Ok(StoreTurn {
            conversation,
            turn_id,
            message: message(fields, index, &limits)?,
            branch,
            parent: form.parent,
            parent_message: form.parent_message_id,
            history,
            attachments: form.attachment_source_ids,
            title: form.title,
            system_prompt: form.system_prompt,
            interpret: form.interpret.unwrap_or_default(),
            interpreter: form.interpreter,
        })
    }
}

impl From<&StoreTurn> for StoreTurnJson {
    fn from(request: &StoreTurn) -> Self {
        let message = &request.message;
        let metadata = (!message.metadata.is_empty()).then(|| message.metadata.to_json());
        StoreTurnJson {
            conversation_id: request.conversation.clone(),
            turn_id: request.turn_id.clone().map(Handle),
            role: message.role.into(),
            content: FreeForm(content_json(&message.body)),
            tool_call_id: message.tool_call_id.clone(),
            created_at: message.created_at.map(|at| at.to_string()),
            status: Some(message.status.as_str().to_owned()),
            metadata: metadata.map(FreeForm),
            branch: request.branch.clone(),
            parent: request.parent.clone(),
            parent_message_id: request.parent_message.clone(),
            history: request.history.iter().map(|one| FreeForm(message_json(one))).collect(),
            attachment_source_ids: request.attachments.clone(),
            title: request.title.clone(),
            system_prompt: request.system_prompt.clone(),
            interpret: Some(request.interpret),
            interpreter: request.interpreter.clone(),
            ..StoreTurnJson::default()
        }
    }
}

/// Bytes to be stored as a source: in base64, or as text.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "NewSource")]
struct NewSourceJson {
    /// The bytes, in base64. Excludes `text`.
    file_content: Option<String>,
    /// The bytes as text, stored in UTF-8. Excludes `file_content`.
    text: Option<String>,
    /// The media type, such as `text/plain`.
    #[schemars(length(min = 1, max = 512))]
    mime_type: String,
    /// The file name.
    original_filename: Option<String>,
    /// Whether to interpret the source; `queue` by default.
    interpret: Option<Interpret>,
    /// The interpreter; the configured default if omitted.
    interpreter: Option<String>,
}

impl TryFrom<NewSourceJson> for NewSource {
    type Error = Error;

    fn try_from(form: NewSourceJson) -> Result<Self> {
        let content = match (form.file_content, form.text) {
            (Some(content), None) => decoded(&content)?,
            (None, Some(text)) => text.into_bytes(),
            _ => return Err(Error::invalid("give either `file_content` in base64 or `text`")),
        };
        Ok(NewSource {
            content: Arc::new(content),
            mime_type: form.mime_type,
            original_filename: form.original_filename,
            interpret: form.interpret.unwrap_or(Interpret::Queue),
            interpreter: form.interpreter,
        })
    }
}

/// The types of relationships.
#[derive(JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[expect(dead_code, reason = "describes the values of a text that the engine parses")]
enum RelationForm {
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
    /// The id of an entity.
    pub entity_id: Option<String>,
    /// A reference to a turn.
    pub turn_id: Option<String>,
    /// The id of a source.
    pub source_id: Option<String>,
    /// The id of a conversation.
    pub conversation_id: Option<String>,
    /// The index of an entity in the same call.
    pub index: Option<u64>,
}

impl EndIds {
    /// Returns the end, if there is an id.
    pub fn read(self) -> Result<Option<End>> {
        let mut ends = Vec::new();
        if let Some(text) = &self.entity_id {
            ends.push(End::Entity(text.parse()?));
        }
        if let Some(text) = &self.turn_id {
            ends.push(End::Turn(Reference::parse(text)?));
        }
        if let Some(text) = &self.source_id {
            ends.push(End::Source(text.parse()?));
        }
        if let Some(text) = self.conversation_id {
            ends.push(End::Conversation(text));
        }
        if let Some(nth) = self.index {
            ends.push(End::InCall(size("the index", nth)?));
        }
        match ends.len() {
            0 | 1 => Ok(ends.pop()),
            _ => Err(Error::invalid(
                "one end is named by several ids; give exactly one of them".to_owned(),
            )),
        }
    }

    /// Returns the end `source` or `target`, or an error if there is no id.
    pub fn required(self, which: &str) -> Result<End> {
        self.read()?.ok_or_else(|| {
            Error::invalid(format!(
                "the relationship's {which} is missing: give exactly one of \
                 `{which}_entity_id`, `{which}_turn_id`, `{which}_source_id` and \
                 `{which}_conversation_id`; among the facts of one call also `{which}_index`"
            ))
        })
    }
}

impl From<End> for EndIds {
    fn from(end: End) -> Self {
        let mut ids = EndIds::default();
        match end {
            End::Entity(id) => ids.entity_id = Some(id.to_string()),
            End::Source(id) => ids.source_id = Some(id.to_string()),
            End::Turn(turn) => ids.turn_id = Some(turn.as_str().to_owned()),
            End::Conversation(id) => ids.conversation_id = Some(id),
            End::InCall(nth) => ids.index = Some(nth as u64),
        }
        ids
    }
}

/// Declares the form of a relationship, with indexes of entities or without.
macro_rules! relationship_form {
    ($(#[$meta:meta])* $name:ident $(, $source_index:ident, $target_index:ident)?) => {
        #[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields)]
        $(#[$meta])*
        pub(crate) struct $name {
            /// The type of the relationship.
            #[serde(rename = "type")]
            #[schemars(with = "RelationForm")]
            relation: String,
            /// The source, if it is an entity.
            #[serde(skip_serializing_if = "Option::is_none")]
            source_entity_id: Option<String>,
            /// The source, if it is a turn: any reference.
            #[serde(skip_serializing_if = "Option::is_none")]
            source_turn_id: Option<String>,
            /// The source, if it is a source.
            #[serde(skip_serializing_if = "Option::is_none")]
            source_source_id: Option<String>,
            /// The source, if it is a conversation.
            #[serde(skip_serializing_if = "Option::is_none")]
            source_conversation_id: Option<String>,
            /// The target, if it is an entity.
            #[serde(skip_serializing_if = "Option::is_none")]
            target_entity_id: Option<String>,
            /// The target, if it is a turn: any reference.
            #[serde(skip_serializing_if = "Option::is_none")]
            target_turn_id: Option<String>,
            /// The target, if it is a source.
            #[serde(skip_serializing_if = "Option::is_none")]
            target_source_id: Option<String>,
            /// The target, if it is a conversation.
            #[serde(skip_serializing_if = "Option::is_none")]
            target_conversation_id: Option<String>,
            /// Free-form data.
            #[serde(default, with = "object_or_null", skip_serializing_if = "Json::is_null")]
            #[schemars(with = "Option<BTreeMap<String, serde_json::Value>>")]
            metadata: Json,
            $(
                /// The source, if it is an entity of the same call: its index, from 0.
                #[serde(skip_serializing_if = "Option::is_none")]
                $source_index: Option<u64>,
                /// The target, if it is an entity of the same call: its index, from 0.
                #[serde(skip_serializing_if = "Option::is_none")]
                $target_index: Option<u64>,
            )?
        }

        impl TryFrom<$name> for NewRelationship {
            type Error = Error;

            fn try_from(form: $name) -> Result<Self> {
                let source = EndIds {
                    entity_id: form.source_entity_id,
                    turn_id: form.source_turn_id,
                    source_id: form.source_source_id,
                    conversation_id: form.source_conversation_id,
                    index: None$(.or(form.$source_index))?,
                };
                let target = EndIds {
                    entity_id: form.target_entity_id,
                    turn_id: form.target_turn_id,
                    source_id: form.target_source_id,
                    conversation_id: form.target_conversation_id,
                    index: None$(.or(form.$target_index))?,
                };
                Ok(NewRelationship {
                    relation: form.relation,
                    source: source.required("source")?,
                    target: target.required("target")?,
                    metadata: form.metadata,
                })
            }
        }

        impl From<&NewRelationship> for $name {
            fn from(request: &NewRelationship) -> Self {
                let source = EndIds::from(request.source.clone());
                let target = EndIds::from(request.target.clone());
                $name {
                    relation: request.relation.clone(),
                    source_entity_id: source.entity_id,
                    source_turn_id: source.turn_id,
                    source_source_id: source.source_id,
                    source_conversation_id: source.conversation_id,
                    target_entity_id: target.entity_id,
                    target_turn_id: target.turn_id,
                    target_source_id: target.source_id,
                    target_conversation_id: target.conversation_id,
                    metadata: request.metadata.clone(),
                    $($source_index: source.index, $target_index: target.index,)?
                }
            }
        }
    };
}

relationship_form! {
    /// A relationship to be created. Each end has exactly one id.
    #[schemars(rename = "NewRelationship")]
    NewRelationshipJson
}

relationship_form! {
    /// A relationship between entities of a store. Each end has exactly one id, or the index of an
    /// entity of the same call.
    #[schemars(rename = "Ends")]
    RelationshipOfStore, source_index, target_index
}

/// What a field holds: the name of its kind, or that and how several statements are reduced.
#[derive(JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "describes a field that is carried as JSON")]
enum FieldForm {
    ErrorKind(KindForm),
    Whole {
        #[serde(default)]
        kind: Option<KindForm>,
        #[serde(default)]
        strategy: Option<StrategyForm>,
    },
}

/// Declares a schema that lists names.
macro_rules! names_form {
    ($name:ident, $of:ident) => {
        struct $name;

        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($of).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> JsonSchemaValue {
                json_schema!({ "type": "string", "enum": $of::NAMES })
            }
        }
    };
}

names_form!(KindForm, FieldKind);
names_form!(StrategyForm, Strategy);

/// A schema to be registered as the next version of its type.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "NewSchema")]
struct NewSchemaJson {
    /// The entity type.
    #[schemars(length(min = 1, max = 64), regex(pattern = "^[a-z][a-z0-9_]*$"))]
    entity_type: String,
    /// A one-sentence description of the type.
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    /// The fields by name.
    #[schemars(with = "BTreeMap<String, FieldForm>")]
    fields: FreeForm,
    /// The fields that together identify an entity. If empty, every fact without an id creates a
    /// new entity.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    identity: Vec<String>,
}

impl TryFrom<NewSchemaJson> for NewSchema {
    type Error = Error;

    fn try_from(form: NewSchemaJson) -> Result<Self> {
        let identity = form.identity.into_iter().map(Json::from).collect();
        let schema = object_of([
            ("entity_type", Some(form.entity_type.into())),
            ("description", form.description.map(Json::from)),
            ("fields", Some(form.fields.0)),
            ("identity", Some(Json::Array(identity))),
        ]);
        Ok(NewSchema { schema: Schema::from_json(&schema)? })
    }
}

impl From<&NewSchema> for NewSchemaJson {
    fn from(request: &NewSchema) -> Self {
        let schema = &request.schema;
        NewSchemaJson {
            fields: FreeForm(schema.to_json().get("fields").cloned().unwrap_or_default()),
            entity_type: schema.entity_type.clone(),
            description: schema.description.clone(),
            identity: schema.identity.clone(),
        }
    }
}
