//! Conversations.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tine_core::Json;
use tine_engine as engine;

use super::{Raw, raw, raw_text, text};

/// A project.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Project {
    /// Its id.
    pub project_id: String,
    /// When it was made; `null` for `default` while nothing is in it.
    pub created_at: Option<String>,
}

impl From<engine::ProjectView> for Project {
    fn from(view: engine::ProjectView) -> Self {
        Project { project_id: text(view.id), created_at: view.created_at.map(text) }
    }
}

/// A conversation without its turns.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Conversation {
    /// Its id.
    pub conversation_id: String,
    /// The hash of its root.
    pub root_hash: String,
    /// The system prompt.
    pub system_prompt: Option<String>,
    /// Whatever else it was set up with.
    pub config: Raw,
    /// Its title.
    pub title: Option<String>,
    /// Free-form data.
    pub metadata: Raw,
    /// When it was made.
    pub created_at: String,
    /// When it was last changed.
    pub changed_at: String,
    /// What it was derived from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub derived_from: Option<DerivedFrom>,
    /// Whether it is hidden from listings.
    pub archived: bool,
    /// Whether everything that it said was erased.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub purged: bool,
}

/// Where a derived conversation comes from.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct DerivedFrom {
    /// The original.
    pub conversation_id: String,
    /// The turn whose path was taken over.
    pub turn_id: Option<String>,
}

impl From<engine::ConversationView> for Conversation {
    fn from(view: engine::ConversationView) -> Self {
        let purged = view.root.is_none();
        let (system_prompt, config) = match view.root {
            Some(root) => (root.system_prompt, root.config),
            None => (None, Json::Null),
        };
        Conversation {
            conversation_id: text(view.id),
            root_hash: text(view.root_hash),
            system_prompt,
            config: raw(&config),
            title: view.title,
            metadata: object_or_empty(&view.metadata),
            created_at: text(view.created_at),
            changed_at: text(view.changed_at),
            derived_from: view.derived_from.map(|from| DerivedFrom {
                conversation_id: text(from.conversation),
                turn_id: from.turn.map(text),
            }),
            archived: view.archived,
            purged,
        }
    }
}

fn object_or_empty(json: &Json) -> Raw {
    if json.is_null() { raw_text("{}".to_owned()) } else { raw(json) }
}

/// What a derivation did.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Derived {
    /// The derivative.
    pub conversation: Conversation,
    /// Whether it was made by this call.
    pub created: bool,
    /// Turns that were taken over by this call.
    pub turns: usize,
}

impl From<engine::Derived> for Derived {
    fn from(done: engine::Derived) -> Self {
        Derived { conversation: done.conversation.into(), created: done.created, turns: done.turns }
    }
}
