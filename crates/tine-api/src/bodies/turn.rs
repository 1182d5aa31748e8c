//! Bodies about turns.

use std::collections::BTreeMap;

use crate::{self as api, Error, Result, TurnRef};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tine_core::json::{self, Json, Object};
use tine_core::{Body, Limits, Message, Reference, Role};

use super::{Patch, conversation_id, given, reference, request, size};
use crate::bodies::FreeForm;

/// Who speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Speaker {
    /// A person.
    #[default]
    User,
    /// A model.
    Assistant,
    /// A tool's result.
    Tool,
    /// An instruction.
    System,
}

/// What is said: a text, or blocks, each an object with a `type`.
#[derive(JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "it describes the form of a field that is carried as bytes")]
pub(super) enum ContentForm {
    Text(String),
    Blocks(Vec<std::collections::BTreeMap<String, serde_json::Value>>),
}

/// One message, as clients of chat models send it.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "it describes the form of a field that is carried as bytes")]
pub(super) struct MessageForm {
    /// Who speaks.
    role: Speaker,
    /// A text or blocks, also Anthropic's: each `tool_result` in a user's message becomes a tool's
    /// turn. In older forms it may be `null` beside `tool_calls`.
    #[serde(default)]
    content: Option<ContentForm>,
    /// The call that a tool's result answers; for role `tool` only.
    #[serde(default)]
    tool_call_id: Option<String>,
    /// Calls in the older form; they become blocks of type `tool-use`.
    #[serde(default)]
    tool_calls: Option<Vec<serde_json::Value>>,
    /// When it was said; now without it.
    #[serde(default)]
    created_at: Option<String>,
    /// `partial` for a stream that broke off.
    #[serde(default)]
    status: Option<String>,
    /// What is known besides.
    #[serde(default)]
    metadata: Option<std::collections::BTreeMap<String, serde_json::Value>>,
}

/// What to do when a branch does not end where the caller thought.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OnConflict {
    /// Answer `conflict` with the actual tip.
    #[default]
    Refuse,
    /// Append where the caller thought, on a new branch.
    Fork,
}

request! {
    /// Messages to be appended: a list, or one message whose fields stand here themselves.
    Append {
        /// In order; at least one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schemars(with = "Option<Vec<MessageForm>>")]
        messages: Option<Vec<FreeForm>>,
        /// Who speaks, where one message is sent by itself.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        role: Option<Speaker>,
        /// What is said there.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schemars(with = "Option<ContentForm>")]
        content: Option<FreeForm>,
        /// Calls in the older form; they become blocks of type `tool-use`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schemars(with = "Option<Vec<serde_json::Value>>")]
        tool_calls: Option<FreeForm>,
        /// The call that a tool's result answers.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tool_call_id: Option<String>,
        /// When it was said; now without it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        created_at: Option<String>,
        /// `partial` for a stream that broke off.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        status: Option<String>,
        /// What is known besides.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schemars(with = "Option<std::collections::BTreeMap<String, serde_json::Value>>")]
        metadata: Option<FreeForm>,
        /// Where to start: a turn or `root`; the branch's tip without it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent: Option<String>,
        /// Which tip follows, by name or id; `main` without it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        branch: Option<String>,
        /// Where the caller thinks that the branch ends.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expected_tip: Option<String>,
        /// What to do when it does not.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        on_conflict: Option<OnConflict>,
        /// `false` makes distinct siblings even of equal messages.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reuse: Option<bool>,
        /// How many secrets of each kind the sender has taken out already: noted with the
        /// operation.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        redacted: BTreeMap<String, u64>,
    }
}

/// Messages as callers send them, canonical or in a provider's form. A user's message of
/// Anthropic's that brings the results of tools is several turns.
pub fn messages(given: Vec<Json>, limits: &Limits) -> Result<Vec<Message>> {
    let mut turns = Vec::with_capacity(given.len());
    for (index, json) in given.into_iter().enumerate() {
        let received = Message::from_request(json, limits);
        turns.extend(received.map_err(|error| Error::message(index, &error))?);
    }
    Ok(turns)
}

/// One of them, where only one turn is taken.
pub fn message(given: Json, index: usize, limits: &Limits) -> Result<Message> {
    Message::single_from_request(given, limits).map_err(|error| Error::message(index, &error))
}

impl Append {
    /// What the engine is asked about a conversation.
    pub fn into_request(self, conversation: &str, limits: &Limits) -> Result<api::Append> {
        let alone = self.role.is_some() || self.content.is_some() || self.tool_calls.is_some();
        let messages = match (self.messages, alone) {
            (Some(_), true) => {
                let why = "give either `messages` or one message by `role` and `content`, not both";
                return Err(Error::invalid(why));
            }
            (Some(given), false) => {
                let given = given.into_iter().map(|message| message.within(limits));
                messages(given.collect::<Result<Vec<_>>>()?, limits)?
            }
            (None, _) => {
                let mut fields = Object::new();
                let mut set = |name: &str, value: Option<Json>| {
                    if let Some(value) = value {
                        fields.insert(name, value);
                    }
                };
                let json = |given: Option<FreeForm>| given.map(|it| it.within(limits)).transpose();
                set("role", self.role.map(|role| Json::from(role.as_str())));
                set("content", json(self.content)?);
                set("tool_calls", json(self.tool_calls)?);
                set("tool_call_id", self.tool_call_id.map(Json::from));
                set("created_at", self.created_at.map(Json::from));
                set("status", self.status.map(Json::from));
                set("metadata", json(self.metadata)?);
                vec![message(fields.into(), 0, limits)?]
            }
        };
        Ok(api::Append {
            conversation: conversation_id(conversation, limits)?,
            messages,
            parent: reference(self.parent.as_deref())?,
            branch: self.branch,
            expected_tip: reference(self.expected_tip.as_deref())?,
            on_conflict: match self.on_conflict.unwrap_or_default() {
                OnConflict::Refuse => api::OnConflict::Refuse,
                OnConflict::Fork => api::OnConflict::Fork,
            },
            reuse: self.reuse.unwrap_or(true),
        })
    }
}

impl From<api::Append> for Append {
    fn from(request: api::Append) -> Self {
        let text = |reference: &Reference| reference.as_str().to_owned();
        Append {
            messages: Some(request.messages.iter().map(message_bytes).collect()),
            parent: request.parent.as_ref().map(text),
            branch: request.branch,
            expected_tip: request.expected_tip.as_ref().map(text),
            on_conflict: Some(match request.on_conflict {
                api::OnConflict::Refuse => OnConflict::Refuse,
                api::OnConflict::Fork => OnConflict::Fork,
            }),
            reuse: Some(request.reuse),
            ..Append::default()
        }
    }
}

impl From<Role> for Speaker {
    fn from(role: Role) -> Self {
        match role {
            Role::User => Speaker::User,
            Role::Assistant => Speaker::Assistant,
            Role::Tool => Speaker::Tool,
            Role::System => Speaker::System,
        }
    }
}

impl Speaker {
    /// The role that it names.
    pub fn role(self) -> Role {
        match self {
            Speaker::User => Role::User,
            Speaker::Assistant => Role::Assistant,
            Speaker::Tool => Role::Tool,
            Speaker::System => Role::System,
        }
    }

    /// Its name on every wire.
    pub fn as_str(self) -> &'static str {
        self.role().as_str()
    }
}

/// Checks what a sender says about secrets that it has taken out: kinds are short words, and few.
pub fn redacted(counts: BTreeMap<String, u64>) -> Result<BTreeMap<String, u64>> {
    let word = |kind: &String| {
        (1..=32).contains(&kind.len())
            && kind.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')
    };
    if counts.len() > 64 || !counts.keys().all(word) {
        let why = "`redacted` counts secrets by kind, such as {\"github\": 1}";
        return Err(Error::invalid(why));
    }
    Ok(counts)
}

pub(super) fn message_bytes(message: &Message) -> FreeForm {
    let mut object = Object::new();
    object.insert("role", message.role.as_str().into());
    object.insert("content", content(&message.body));
    if let Some(call) = &message.tool_call_id {
        object.insert("tool_call_id", call.as_str().into());
    }
    if let Some(at) = message.created_at {
        object.insert("created_at", at.to_string().into());
    }
    object.insert("status", message.status.as_str().into());
    if !message.metadata.is_empty() {
        object.insert("metadata", message.metadata.to_json());
    }
    FreeForm(Json::from(object))
}

/// What a body was made from: a plain text as such, so that it is no larger than it was.
pub(super) fn content(body: &Body) -> Json {
    match body {
        Body::Text(text) if !text.is_empty() => text.as_str().into(),
        body => {
            let blocks = body.to_blocks_string();
            json::parse(blocks.as_bytes(), json::MAX_DEPTH).expect("a body's blocks are JSON")
        }
    }
}

request! {
    /// A branch to be made at a turn.
    ForkTurn {
        /// Its name; `fork-1`, `fork-2` … without it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        /// Whether the turn itself belongs to it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        inclusive: Option<bool>,
        /// The conversation in which the turn's name is looked up.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        conversation_id: Option<String>,
    }
}

request! {
    /// Another version of a turn.
    EditTurn {
        /// What it says: a text, or blocks.
        #[schemars(with = "ContentForm")]
        content: FreeForm,
        /// The branch that moves to it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        branch: Option<String>,
        /// `false` makes a sibling even of an equal one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reuse: Option<bool>,
        /// How many secrets of each kind the sender has taken out already: noted with the
        /// operation.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        redacted: BTreeMap<String, u64>,
        /// The conversation in which the turn's name is looked up.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        conversation_id: Option<String>,
    }
}

impl EditTurn {
    /// Returns the request. The engine checks the content against the turn's role.
    pub fn into_request(self, turn: TurnRef, limits: &Limits) -> Result<api::Edit> {
        let content = self.content.within(limits)?;
        let body = Body::of_any_role(content, limits).map_err(|error| Error::message(0, &error))?;
        Ok(api::Edit { turn, body, branch: self.branch, reuse: self.reuse.unwrap_or(true) })
    }
}

impl From<api::Edit> for EditTurn {
    fn from(request: api::Edit) -> Self {
        EditTurn {
            content: FreeForm(content(&request.body)),
            branch: request.branch,
            reuse: Some(request.reuse),
            conversation_id: request.turn.conversation.map(|id| id.to_string()),
            ..EditTurn::default()
        }
    }
}

request! {
    /// What a model is asked for at the end of a branch.
    AskReply {
        /// What is said to it first, and recorded as a user's turn; without it the branch's last
        /// turn is answered.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schemars(with = "Option<ContentForm>")]
        content: Option<FreeForm>,
        /// The model that answers, by the name that `/models` tells; the first one without it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
    }
}

impl AskReply {
    /// What is said first, as an append to a branch.
    pub fn question(
        &mut self,
        conversation: &str,
        branch: &str,
        limits: &Limits,
    ) -> Result<Option<api::Append>> {
        let Some(content) = self.content.take() else { return Ok(None) };
        let append = Append {
            role: Some(Speaker::User),
            content: Some(content),
            branch: Some(branch.to_owned()),
            reuse: Some(false),
            ..Append::default()
        };
        append.into_request(conversation, limits).map(Some)
    }
}

request! {
    /// An answer of a model that is to be given anew.
    Regenerate {
        /// The branch that moves to the new answer, by name or id.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        branch: Option<String>,
        /// The model that answers, by the name that `/models` tells; the first one without it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
        /// The conversation in which the turn's name is looked up.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        conversation_id: Option<String>,
    }
}

request! {
    /// A turn to be shown as two.
    SplitTurn {
        /// Unicode scalar values that the first half keeps.
        offset: u64,
        /// The conversation in which the turn's name is looked up.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        conversation_id: Option<String>,
    }
}

impl SplitTurn {
    /// What the engine is asked about a turn.
    pub fn into_request(self, turn: TurnRef) -> Result<api::SplitTurn> {
        Ok(api::SplitTurn { turn, offset: size("the offset", self.offset)? })
    }
}

request! {
    /// What changes of a turn's metadata; a field that is not there stays as it is.
    MetadataPatch {
        /// `null` clears it.
        #[serde(default, skip_serializing_if = "Patch::is_keep")]
        title: Patch<String>,
        /// `null` clears it.
        #[serde(default, skip_serializing_if = "Patch::is_keep")]
        auto_title: Patch<String>,
        /// Labels to add.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        add_tags: Vec<String>,
        /// Labels to remove.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        remove_tags: Vec<String>,
        /// Replaces all labels.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tags: Option<Vec<String>>,
        /// Replaces it; `null` clears it.
        #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
        #[schemars(with = "Option<serde_json::Value>")]
        custom_data: Option<FreeForm>,
        /// Replaces it; `null` clears it.
        #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
        #[schemars(with = "Option<std::collections::BTreeMap<String, serde_json::Value>>")]
        source_info: Option<FreeForm>,
        /// Replaces a title that is set already.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        force: bool,
        /// The conversation in which the turn's name is looked up.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        conversation_id: Option<String>,
    }
}

impl MetadataPatch {
    /// What the engine is asked.
    pub fn into_request(self, limits: &Limits) -> Result<api::MetadataPatch> {
        let json = |given: Option<FreeForm>| given.map(|it| it.within(limits)).transpose();
        Ok(api::MetadataPatch {
            title: self.title.into_option(),
            auto_title: self.auto_title.into_option(),
            add_tags: self.add_tags,
            remove_tags: self.remove_tags,
            tags: self.tags,
            custom_data: json(self.custom_data)?,
            source_info: json(self.source_info)?,
            force: self.force,
        })
    }
}

impl From<api::MetadataPatch> for MetadataPatch {
    fn from(patch: api::MetadataPatch) -> Self {
        MetadataPatch {
            title: patch.title.into(),
            auto_title: patch.auto_title.into(),
            add_tags: patch.add_tags,
            remove_tags: patch.remove_tags,
            tags: patch.tags,
            custom_data: patch.custom_data.map(FreeForm),
            source_info: patch.source_info.map(FreeForm),
            force: patch.force,
            ..MetadataPatch::default()
        }
    }
}
