//! Bodies about projects and conversations.

use crate::{self as api, Result};
use tine_core::{Json, Limits, Reference};

use super::{Patch, conversation_id, reference, request};
use crate::bodies::FreeForm;

/// A project to be made.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewProject {
    /// Its id.
    pub project_id: String,
}

impl super::Common for NewProject {
    fn project_id(&self) -> Option<&str> {
        Some(&self.project_id)
    }

    fn idempotency_key(&self) -> Option<&str> {
        None
    }
}

request! {
    /// A conversation to be made.
    NewConversation {
        /// The caller's id; one is minted without it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        conversation_id: Option<String>,
        /// Shown as the message of role `system`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        system_prompt: Option<String>,
        /// Whatever else it is set up with.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schemars(with = "Option<std::collections::BTreeMap<String, serde_json::Value>>")]
        config: Option<FreeForm>,
        /// A title.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        title: Option<String>,
        /// Free-form data.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schemars(with = "Option<std::collections::BTreeMap<String, serde_json::Value>>")]
        metadata: Option<FreeForm>,
    }
}

impl NewConversation {
    /// What the engine is asked.
    pub fn into_request(self, limits: &Limits) -> Result<api::NewConversation> {
        let json = |given: Option<FreeForm>| given.unwrap_or_default().within(limits);
        Ok(api::NewConversation {
            id: self.conversation_id.map(|id| conversation_id(&id, limits)).transpose()?,
            system_prompt: self.system_prompt,
            config: json(self.config)?,
            title: self.title,
            metadata: json(self.metadata)?,
        })
    }
}

impl From<api::NewConversation> for NewConversation {
    fn from(request: api::NewConversation) -> Self {
        let json = |json: Json| (!json.is_null()).then_some(FreeForm(json));
        NewConversation {
            conversation_id: request.id.map(|id| id.to_string()),
            system_prompt: request.system_prompt,
            config: json(request.config),
            title: request.title,
            metadata: json(request.metadata),
            ..NewConversation::default()
        }
    }
}

request! {
    /// The same conversation under another root.
    Derive {
        /// An id for a new conversation; ignored when an equal derivative is there already.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        conversation_id: Option<String>,
        /// The new system prompt.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        system_prompt: Option<String>,
        /// The new configuration; the original's without it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schemars(with = "Option<std::collections::BTreeMap<String, serde_json::Value>>")]
        config: Option<FreeForm>,
        /// Takes over the path up to this turn.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at: Option<String>,
    }
}

impl Derive {
    /// What the engine is asked about a conversation.
    pub fn into_request(self, of: &str, limits: &Limits) -> Result<api::Derive> {
        Ok(api::Derive {
            conversation: conversation_id(of, limits)?,
            id: self.conversation_id.map(|id| conversation_id(&id, limits)).transpose()?,
            system_prompt: self.system_prompt,
            config: self.config.map(|config| config.within(limits)).transpose()?,
            at: reference(self.at.as_deref())?,
        })
    }
}

impl From<api::Derive> for Derive {
    fn from(request: api::Derive) -> Self {
        Derive {
            conversation_id: request.id.map(|id| id.to_string()),
            system_prompt: request.system_prompt,
            config: request.config.map(FreeForm),
            at: request.at.as_ref().map(Reference::as_str).map(str::to_owned),
            ..Derive::default()
        }
    }
}

request! {
    /// Where somebody looks at a conversation.
    Visited {
        /// The leaf below each turn, by the ids of both; below the empty name, of all. `null`
        /// forgets it.
        leaves: std::collections::BTreeMap<String, Option<String>>,
    }
}

request! {
    /// What changes of a conversation; a field that is not there stays as it is.
    ConversationPatch {
        /// `null` clears it.
        #[serde(default, skip_serializing_if = "Patch::is_keep")]
        title: Patch<String>,
        /// Replaces the whole object.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schemars(with = "Option<std::collections::BTreeMap<String, serde_json::Value>>")]
        metadata: Option<FreeForm>,
        /// Hides it, or shows it again.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        archived: Option<bool>,
        /// Replaces a title that is set already.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        force: bool,
    }
}

impl ConversationPatch {
    /// What the engine is asked.
    pub fn into_request(self, limits: &Limits) -> Result<api::ConversationPatch> {
        Ok(api::ConversationPatch {
            title: self.title.into_option(),
            metadata: self.metadata.map(|metadata| metadata.within(limits)).transpose()?,
            archived: self.archived,
            force: self.force,
        })
    }
}

impl From<api::ConversationPatch> for ConversationPatch {
    fn from(patch: api::ConversationPatch) -> Self {
        ConversationPatch {
            title: patch.title.into(),
            metadata: patch.metadata.map(FreeForm),
            archived: patch.archived,
            force: patch.force,
            ..ConversationPatch::default()
        }
    }
}

request! {
    /// Whether a conversation is hidden.
    Archive {
        /// `false` shows it again.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        archived: Option<bool>,
    }
}

request! {
    /// An erasure: without `confirm` only what it would do is answered, with the word to confirm
    /// with.
    Purge {
        /// The word that an earlier call answered.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        confirm: Option<String>,
        /// The conversation in which the turn's name is looked up.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        conversation_id: Option<String>,
    }
}
