//! What every call and every listing share.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tine_core::{BranchId, ConversationId, EntityId, ProjectId, Reference, TurnId};

/// Who calls, in which project, and with which key.
#[derive(Clone, Debug)]
pub struct Call {
    /// The project that every name in the call belongs to.
    pub project: ProjectId,
    /// The author of the change, as recorded in the log.
    pub actor: String,
    /// Makes the call safe to repeat.
    pub idempotency_key: Option<String>,
    /// Refuses the call unless the branch is still in this state.
    pub if_branch: Option<BranchVersion>,
    /// How many secrets of each kind were redacted from the content before the call; noted with
    /// the operation.
    pub redacted: BTreeMap<String, u64>,
}

/// One state of a branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BranchVersion {
    /// The branch.
    pub id: BranchId,
    /// How often it had changed.
    pub version: u64,
}

impl Call {
    /// Returns a call in the default project.
    pub fn by(actor: impl Into<String>) -> Self {
        Call {
            project: ProjectId::default(),
            actor: actor.into(),
            idempotency_key: None,
            if_branch: None,
            redacted: BTreeMap::new(),
        }
    }

    /// Sets the project.
    pub fn in_project(self, project: ProjectId) -> Self {
        Call { project, ..self }
    }

    /// Sets the idempotency key.
    pub fn with_key(self, key: impl Into<String>) -> Self {
        Call { idempotency_key: Some(key.into()), ..self }
    }

    /// Notes what was redacted from the content.
    pub fn with_redacted(self, redacted: BTreeMap<String, u64>) -> Self {
        Call { redacted, ..self }
    }

    /// Refuses the call unless the branch is still in this state.
    pub fn if_branch(self, seen: BranchVersion) -> Self {
        Call { if_branch: Some(seen), ..self }
    }
}

/// A turn by reference, with the conversation in which names are looked up.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "PutBookmark")]
pub struct TurnRef {
    /// The turn: its id, its hash or a prefix of it, a branch, a bookmark, or `branch~N`.
    pub turn: Reference,
    /// The conversation in which hashes and names are looked up.
    #[serde(rename = "conversation_id", skip_serializing_if = "Option::is_none")]
    pub conversation: Option<ConversationId>,
}

/// Stands for the conversation of a request until the surface sets it from the path.
pub(crate) fn unset_conversation() -> ConversationId {
    ConversationId::from_stored("")
}

/// Stands for the turn of a request until the surface sets it from the path.
pub(crate) fn unset_turn() -> TurnRef {
    TurnRef::of(TurnId::from_bytes([0; 16]))
}

/// Stands for the entity of a request until the surface sets it from the path.
pub(crate) fn unset_entity() -> EntityId {
    EntityId::from_bytes([0; 16])
}

impl TurnRef {
    /// Names a turn that can be found without a conversation: by id, or by a unique hash.
    pub fn of(turn: impl Into<Reference>) -> Self {
        TurnRef { conversation: None, turn: turn.into() }
    }

    /// Names a turn of a conversation.
    pub fn within(conversation: ConversationId, turn: impl Into<Reference>) -> Self {
        TurnRef { conversation: Some(conversation), turn: turn.into() }
    }
}

/// Which page of a listing.
#[derive(Clone, Debug, Default)]
pub struct Page {
    /// The cursor of an earlier page.
    pub cursor: Option<String>,
    /// Rows in this page; the configured maximum by default.
    pub limit: Option<usize>,
}

/// A page of a listing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "{T}List")]
pub struct Listing<T> {
    /// The items of this page.
    pub items: Vec<T>,
    /// The cursor of the next page.
    pub next: Option<String>,
}

impl<T> Listing<T> {
    /// Returns a listing of one page.
    pub fn all(items: Vec<T>) -> Self {
        Listing { items, next: None }
    }
}

/// Whether a record was created by a call or existed before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline, with = "String")]
pub enum Outcome {
    /// Created by this call.
    Created,
    /// Reused: it existed before. The time and metadata of the request were ignored.
    Reused,
}

impl Outcome {
    /// Returns the outcome of a call that did or did not create something.
    pub fn from_created(created: bool) -> Self {
        if created { Outcome::Created } else { Outcome::Reused }
    }

    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Outcome::Created => "created",
            Outcome::Reused => "reused",
        }
    }
}

/// An answer, with the project of the call.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "{T}Answer")]
pub struct Answer<T> {
    /// The project.
    pub project_id: ProjectId,
    /// The fields of the answer itself.
    #[serde(flatten)]
    pub body: T,
}

impl<T> Answer<T> {
    /// Returns an answer in a project.
    pub fn new(project: &ProjectId, body: T) -> Self {
        Answer { project_id: project.clone(), body }
    }
}

/// An answer whose first field comes before the project: the value that the caller passes back.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "{T}Answer")]
pub struct Leading<T> {
    /// The fields of the answer itself.
    #[serde(flatten)]
    pub body: T,
    /// The project.
    pub project_id: ProjectId,
}

impl<T> Leading<T> {
    /// Returns an answer in a project.
    pub fn new(project: &ProjectId, body: T) -> Self {
        Leading { body, project_id: project.clone() }
    }
}
