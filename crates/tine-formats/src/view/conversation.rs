//! Conversations.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tine_core::{ConversationId, Json, ProjectId};
use tine_engine as engine;
use tine_store::Root;

use super::reading::{self, Unreadable, parse, parse_option};
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

impl TryFrom<Project> for engine::ProjectView {
    type Error = Unreadable;

    fn try_from(view: Project) -> Result<Self, Unreadable> {
        let created_at = parse_option("created_at", view.created_at)?;
        Ok(engine::ProjectView { id: ProjectId::from_stored(view.project_id), created_at })
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
    /// When people were last at it: when it was changed, or, as long as nobody has touched it since
    /// it was imported, when the last of it was said.
    pub active_at: String,
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
        let (purged, active_at) = (view.root.is_none(), text(view.active_at()));
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
            active_at,
            derived_from: view.derived_from.map(|from| DerivedFrom {
                conversation_id: text(from.conversation),
                turn_id: from.turn.map(text),
            }),
            archived: view.archived,
            purged,
        }
    }
}

impl Conversation {
    /// What the engine said about a conversation of a project, which an answer names outside.
    pub fn read(self, project: &ProjectId) -> Result<engine::ConversationView, Unreadable> {
        let config = reading::json("config", &self.config)?;
        let root = Root { system_prompt: self.system_prompt, config };
        let metadata = reading::json("metadata", &self.metadata)?;
        let derived_from = |from: DerivedFrom| {
            Ok(tine_store::DerivedFrom {
                conversation: ConversationId::from_stored(from.conversation_id),
                turn: parse_option("turn_id", from.turn_id)?,
            })
        };
        Ok(engine::ConversationView {
            project: project.clone(),
            id: ConversationId::from_stored(self.conversation_id),
            root_hash: parse("root_hash", &self.root_hash)?,
            root: (!self.purged).then_some(root),
            title: self.title,
            metadata,
            created_at: parse("created_at", &self.created_at)?,
            derived_from: self.derived_from.map(derived_from).transpose()?,
            archived: self.archived,
            changed_at: parse("changed_at", &self.changed_at)?,
        })
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

impl Derived {
    /// What the engine said about a derivation in a project.
    pub fn read(self, project: &ProjectId) -> Result<engine::Derived, Unreadable> {
        let conversation = self.conversation.read(project)?;
        Ok(engine::Derived { conversation, created: self.created, turns: self.turns })
    }
}
