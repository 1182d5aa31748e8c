//! Projects and conversations.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tine_core::ids::NameError;
use tine_core::json::{self, Json, Object};
use tine_core::{
    ConversationId, DerivedFrom, Limits, ProjectId, Reference, Root, RootHash, Timestamp,
};

use crate::bodies::{given_json, object_or_null, present};
use crate::unset_conversation;

/// A project.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Project")]
pub struct ProjectView {
    /// The id of the project.
    #[serde(rename = "project_id")]
    pub id: ProjectId,
    /// When it was made; `null` for `default` while it is empty.
    pub created_at: Option<Timestamp>,
}

/// A conversation to be created.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewConversation {
    /// The id of the conversation; generated if omitted.
    #[serde(rename = "conversation_id", skip_serializing_if = "Option::is_none")]
    pub id: Option<ConversationId>,
    /// The system prompt, rendered as the message of role `system`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    /// Other settings of the conversation.
    #[serde(default, with = "object_or_null", skip_serializing_if = "Json::is_null")]
    #[schemars(with = "Option<BTreeMap<String, serde_json::Value>>")]
    pub config: Json,
    /// The title.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Free-form data.
    #[serde(default, with = "object_or_null", skip_serializing_if = "Json::is_null")]
    #[schemars(with = "Option<BTreeMap<String, serde_json::Value>>")]
    pub metadata: Json,
}

impl NewConversation {
    /// Returns a conversation with an id and nothing else.
    pub fn named(id: &str) -> Result<Self, NameError> {
        let id = ConversationId::new(id, &Limits::default())?;
        Ok(NewConversation { id: Some(id), ..NewConversation::default() })
    }
}

/// The same conversation under another root.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Derive {
    /// The original.
    #[serde(skip, default = "unset_conversation")]
    pub conversation: ConversationId,
    /// The id of the new conversation; ignored if an equal derivative exists.
    #[serde(rename = "conversation_id", skip_serializing_if = "Option::is_none")]
    pub id: Option<ConversationId>,
    /// The new system prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    /// The new configuration; that of the original by default.
    #[serde(
        default,
        deserialize_with = "given_json",
        serialize_with = "json::exact::option::serialize"
    )]
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<BTreeMap<String, serde_json::Value>>")]
    pub config: Option<Json>,
    /// Copies the path up to this turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<Reference>,
}

/// A change of a conversation. Absent fields keep their values.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ConversationPatch {
    /// The title; `null` clears it.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub title: Option<Option<String>>,
    /// Replaces the metadata.
    #[serde(
        default,
        deserialize_with = "given_json",
        serialize_with = "json::exact::option::serialize"
    )]
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<BTreeMap<String, serde_json::Value>>")]
    pub metadata: Option<Json>,
    /// Whether the conversation is hidden from listings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub archived: Option<bool>,
    /// Whether to replace a title that is already set.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub force: bool,
}

/// Which conversations to list, the most recently active first.
#[derive(Clone, Debug, Default)]
pub struct RecentQuery {
    /// Includes archived ones.
    pub include_archived: bool,
    /// Leaves out conversations that another one of the listing started.
    pub top_level: bool,
    /// Only those whose label, folder or id contains each of these words, ignoring case.
    pub words: Option<String>,
    /// Only those whose metadata has this among its `tags`.
    pub tag: Option<String>,
    /// Only those of this program.
    pub program: Option<String>,
    /// Only those of this folder or one below it. A name without separators is compared with the
    /// last part of the folder.
    pub folder: Option<String>,
    /// Only those that were active at this time or later.
    pub since: Option<Timestamp>,
    /// Only those that were active before this time.
    pub until: Option<Timestamp>,
}

/// What a listing shows of a conversation besides its own fields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overview {
    /// The title or the beginning of the first question; `None` if nothing was said.
    pub label: Option<String>,
    /// Turns that are shown.
    pub turns: u64,
    /// The program that it comes from.
    pub program: Option<String>,
    /// The folder that was worked in.
    pub folder: Option<String>,
    /// The conversation that started this one as a sub-agent.
    pub started_by: Option<ConversationId>,
    /// Sub-agents that it started, as far as the listing holds them.
    pub subagents: u64,
}

/// A conversation without its turns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "ConversationJson", into = "ConversationJson")]
pub struct ConversationView {
    /// The project. Answers have it once, beside the conversation.
    pub project: ProjectId,
    /// The id of the conversation.
    pub id: ConversationId,
    /// The hash of its root.
    pub root_hash: RootHash,
    /// The root; `None` if it was purged.
    pub root: Option<Root>,
    /// The title of the conversation.
    pub title: Option<String>,
    /// Free-form data.
    pub metadata: Json,
    /// When it was created.
    pub created_at: Timestamp,
    /// What the conversation was derived from.
    pub derived_from: Option<DerivedFrom>,
    /// Whether it is hidden from listings.
    pub archived: bool,
    /// When it was last changed.
    pub changed_at: Timestamp,
    /// When it was last active: when the last message on any branch was sent.
    pub active_at: Timestamp,
    /// What listings show of it; only in listings by activity and where one conversation is read.
    pub overview: Option<Overview>,
}

impl ConversationView {
    /// Returns the title or, if it was read with an overview, the beginning of the first question.
    pub fn label(&self) -> Option<&str> {
        let label = self.overview.as_ref().and_then(|overview| overview.label.as_deref());
        label.or(self.title.as_deref())
    }
}

/// A conversation without its turns.
#[derive(Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Conversation")]
struct ConversationJson {
    /// The id of the conversation.
    conversation_id: ConversationId,
    /// The hash of its root.
    root_hash: RootHash,
    /// The system prompt.
    system_prompt: Option<String>,
    /// Other settings of the conversation.
    #[serde(with = "json::exact")]
    #[schemars(with = "serde_json::Value")]
    config: Json,
    /// The title of the conversation.
    title: Option<String>,
    /// Free-form data.
    #[serde(with = "json::exact")]
    #[schemars(with = "serde_json::Value")]
    metadata: Json,
    /// When it was created.
    created_at: Timestamp,
    /// When it was last changed.
    changed_at: Timestamp,
    /// When it was last active: when the last message on any branch was sent, or when it was
    /// created.
    active_at: Timestamp,
    /// The title or the beginning of the first question. This and the following are in listings by
    /// activity and where one conversation is read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    label: Option<String>,
    /// Turns that are shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    turns: Option<u64>,
    /// The program that it comes from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    program: Option<String>,
    /// The folder that was worked in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    folder: Option<String>,
    /// The conversation that started this one as a sub-agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    started_by: Option<ConversationId>,
    /// Sub-agents that it started, as far as the listing holds them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    subagents: Option<u64>,
    /// What the conversation was derived from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    derived_from: Option<DerivedFrom>,
    /// Whether it is hidden from listings.
    archived: bool,
    /// Whether its content was purged.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    purged: bool,
}

impl From<ConversationView> for ConversationJson {
    fn from(view: ConversationView) -> Self {
        let purged = view.root.is_none();
        let listed = view.overview.is_some();
        let Overview { label, turns, program, folder, started_by, subagents } =
            view.overview.unwrap_or_default();
        let root = view.root.unwrap_or(Root { system_prompt: None, config: Json::Null });
        let metadata = match view.metadata {
            Json::Null => Json::Object(Object::new()),
            metadata => metadata,
        };
        ConversationJson {
            conversation_id: view.id,
            root_hash: view.root_hash,
            system_prompt: root.system_prompt,
            config: root.config,
            title: view.title,
            metadata,
            created_at: view.created_at,
            changed_at: view.changed_at,
            active_at: view.active_at,
            label,
            turns: listed.then_some(turns),
            program,
            folder,
            started_by,
            subagents: Some(subagents).filter(|count| *count > 0),
            derived_from: view.derived_from,
            archived: view.archived,
            purged,
        }
    }
}

impl From<ConversationJson> for ConversationView {
    fn from(form: ConversationJson) -> Self {
        let root = Root { system_prompt: form.system_prompt, config: form.config };
        let overview = form.turns.map(|turns| Overview {
            label: form.label,
            turns,
            program: form.program,
            folder: form.folder,
            started_by: form.started_by,
            subagents: form.subagents.unwrap_or_default(),
        });
        ConversationView {
            project: ProjectId::default(),
            id: form.conversation_id,
            root_hash: form.root_hash,
            root: (!form.purged).then_some(root),
            title: form.title,
            metadata: form.metadata,
            created_at: form.created_at,
            derived_from: form.derived_from,
            archived: form.archived,
            changed_at: form.changed_at,
            active_at: form.active_at,
            overview,
        }
    }
}

schema_of!(ConversationView, ConversationJson);

/// What a derivation did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Derived {
    /// The derivative.
    pub conversation: ConversationView,
    /// Whether this call created it.
    pub created: bool,
    /// Turns that this call copied.
    pub turns: usize,
}
