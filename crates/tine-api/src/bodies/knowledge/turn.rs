//! A turn of a host that tracks no branches.

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::{self as api, Error, Result};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize};
use tine_core::json::{Json, Object};
use tine_core::{Limits, Reference};

use super::{Interpret, ids};
use crate::bodies::FreeForm;
use crate::bodies::turn::{
    ContentForm, MessageForm, content, message as said, message_bytes, messages,
};
use crate::bodies::{Speaker, reference, request};

/// A host's id of a turn: a text, or a number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Handle(pub String);

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

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": ["string", "integer"],
            "minLength": 1,
            "maxLength": 512,
            "minimum": i64::MIN,
            "maximum": u64::MAX,
        })
    }
}

request! {
    /// A turn of a host that tracks no branches.
    StoreTurn {
        /// The conversation's id, or its entity's. It is made if it is not there; without one, an
        /// id is minted.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        conversation_id: Option<String>,
        /// The same, where there is no `conversation_id`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session_id: Option<String>,
        /// The same, where there is neither; beside one of them, a branch.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        thread_id: Option<String>,
        /// The host's id of the turn, or the `turn_id` that an answer gave it. Without it the
        /// idempotency key, or a minted one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        turn_id: Option<Handle>,
        /// The same.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        turn_number: Option<Handle>,
        /// Who speaks.
        role: Speaker,
        /// What is said: a text, or blocks.
        #[schemars(with = "ContentForm")]
        content: FreeForm,
        /// The call that a tool's result answers.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tool_call_id: Option<String>,
        /// When it was said; now without it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        created_at: Option<String>,
        /// The same.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        timestamp: Option<String>,
        /// `partial` for a stream that broke off.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        status: Option<String>,
        /// What is known besides.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schemars(with = "Option<BTreeMap<String, serde_json::Value>>")]
        metadata: Option<FreeForm>,
        /// The branch to store on, by name or id; made if it is not there. `main` without it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        branch: Option<String>,
        /// The same.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        branch_id: Option<String>,
        /// The turn that it follows, come what may; `root` for none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent: Option<String>,
        /// The host's id of the message that it follows, or that turn.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent_message_id: Option<String>,
        /// Everything that was said before, from the root on: it is placed first.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        #[schemars(with = "Vec<MessageForm>")]
        history: Vec<FreeForm>,
        /// Sources that came with it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        attachment_source_ids: Vec<String>,
        /// A title for a conversation that is made.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        title: Option<String>,
        /// A system prompt for a conversation that is made.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        system_prompt: Option<String>,
        /// Whether it is interpreted; `none` without it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        interpret: Option<Interpret>,
        /// By which interpreter; the default one without it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        interpreter: Option<String>,
        /// Whether the answer holds the turn itself.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        return_turn: bool,
        /// How many secrets of each kind the sender has taken out already: noted with the
        /// operation.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        redacted: BTreeMap<String, u64>,
    }
}

/// The one value that several fields give.
fn one_of<const N: usize>(given: [(&str, Option<String>); N]) -> Result<Option<String>> {
    let mut found: Option<(&str, String)> = None;
    for (name, value) in given {
        match (&found, value) {
            (Some((other, known)), Some(value)) if *known != value => {
                let why = format!("`{other}` and `{name}` say different things; give one of them");
                return Err(Error::invalid(why));
            }
            (None, Some(value)) => found = Some((name, value)),
            _ => {}
        }
    }
    Ok(found.map(|(_, value)| value))
}

impl StoreTurn {
    /// What the engine is asked.
    pub fn into_request(self, limits: &Limits) -> Result<api::StoreTurn> {
        let (conversation, thread) =
            match (self.conversation_id.or(self.session_id), self.thread_id) {
                (None, thread) => (thread, None),
                (named, thread) => (named, thread),
            };
        let branch = one_of([
            ("branch", self.branch),
            ("branch_id", self.branch_id),
            ("thread_id", thread),
        ])?;
        let turn_id = one_of([
            ("turn_id", self.turn_id.map(|handle| handle.0)),
            ("turn_number", self.turn_number.map(|handle| handle.0)),
        ])?;
        let created_at = one_of([("created_at", self.created_at), ("timestamp", self.timestamp)])?;
        let mut message = Object::new();
        let mut set = |name: &str, value: Option<Json>| {
            if let Some(value) = value {
                message.insert(name, value);
            }
        };
        set("role", Some(self.role.as_str().into()));
        set("content", Some(self.content.within(limits)?));
        set("tool_call_id", self.tool_call_id.map(Json::from));
        set("created_at", created_at.map(Json::from));
        set("status", self.status.map(Json::from));
        set("metadata", self.metadata.map(|metadata| metadata.within(limits)).transpose()?);
        let history = self.history.into_iter().map(|message| message.within(limits));
        let history = history.collect::<Result<Vec<_>>>()?;
        let index = history.len();
        let history = messages(history, limits)?;
        Ok(api::StoreTurn {
            conversation,
            turn_id,
            message: said(message.into(), index, limits)?,
            branch,
            parent: reference(self.parent.as_deref())?,
            parent_message: self.parent_message_id,
            history,
            attachments: ids(&self.attachment_source_ids)?,
            title: self.title,
            system_prompt: self.system_prompt,
            interpret: self.interpret.map(Into::into).unwrap_or_default(),
            interpreter: self.interpreter,
        })
    }
}

impl From<api::StoreTurn> for StoreTurn {
    fn from(request: api::StoreTurn) -> Self {
        let message = request.message;
        StoreTurn {
            conversation_id: request.conversation,
            turn_id: request.turn_id.map(Handle),
            role: message.role.into(),
            content: FreeForm(content(&message.body)),
            tool_call_id: message.tool_call_id,
            created_at: message.created_at.map(|at| at.to_string()),
            status: Some(message.status.as_str().to_owned()),
            metadata: (!message.metadata.is_empty()).then(|| FreeForm(message.metadata.to_json())),
            branch: request.branch,
            parent: request.parent.as_ref().map(Reference::as_str).map(str::to_owned),
            parent_message_id: request.parent_message,
            history: request.history.iter().map(message_bytes).collect(),
            attachment_source_ids: request.attachments.iter().map(ToString::to_string).collect(),
            title: request.title,
            system_prompt: request.system_prompt,
            interpret: Some(request.interpret.into()),
            interpreter: request.interpreter,
            ..StoreTurn::default()
        }
    }
}
