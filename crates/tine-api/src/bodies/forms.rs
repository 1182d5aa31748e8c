//! Bodies that become an operation together with the path, or that only surfaces know.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tine_core::{ConversationId, Name, Reference, Role, SourceId};

use super::messages::ContentForm;
use super::{FreeForm, message, object_of};
use crate::{Append, Error, Fork, ForkPoint, Reinterpret, Result, TurnRef};

/// A request without fields of its own.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Nothing {}

/// A project to be created.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewProject {
    /// The id of the project.
    pub project_id: tine_core::ProjectId,
}

/// The role of a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Speaker {
    /// A person.
    #[default]
    User,
    /// A model.
    Assistant,
    /// The result of a tool call.
    Tool,
    /// An instruction.
    System,
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
    /// Returns the role.
    pub fn role(self) -> Role {
        match self {
            Speaker::User => Role::User,
            Speaker::Assistant => Role::Assistant,
            Speaker::Tool => Role::Tool,
            Speaker::System => Role::System,
        }
    }

    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        self.role().as_str()
    }
}

/// A branch to be created.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewBranch {
    /// The name of the branch; by default the next free one of `fork-1`, `fork-2` ….
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<Name>,
    /// The turn that the branch ends on, or `root`; the tip of `main` by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<Reference>,
    /// The turn that the branch ends before. Excludes `at`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<Reference>,
}

impl NewBranch {
    /// Returns the operation on a conversation.
    pub fn into_fork(self, conversation: ConversationId) -> Result<Fork> {
        let point = match (self.at, self.before) {
            (Some(_), Some(_)) => {
                return Err(Error::invalid("give either `at` or `before`, not both"));
            }
            (None, Some(turn)) => ForkPoint::Before(turn),
            (Some(turn), None) => ForkPoint::At(turn),
            (None, None) => ForkPoint::At(Reference::parse("main")?),
        };
        Ok(Fork { conversation: Some(conversation), point, name: self.name })
    }
}

/// A branch to be created at a turn.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ForkTurn {
    /// The name of the branch; by default the next free one of `fork-1`, `fork-2` ….
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<Name>,
    /// Whether the branch includes the turn; `true` by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inclusive: Option<bool>,
}

impl ForkTurn {
    /// Returns the operation on a turn.
    pub fn into_fork(self, turn: TurnRef) -> Fork {
        let point = match self.inclusive.unwrap_or(true) {
            true => ForkPoint::At(turn.turn),
            false => ForkPoint::Before(turn.turn),
        };
        Fork { conversation: turn.conversation, point, name: self.name }
    }
}

/// A change of a branch.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BranchPatch {
    /// The new name. The branch keeps its id.
    pub name: Name,
}

/// The leaves that the caller last viewed.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Visited {
    /// Maps the id of a turn to the id of the leaf last viewed below it; the empty key stands for
    /// the root. `null` removes an entry.
    pub leaves: BTreeMap<String, Option<String>>,
}

/// Whether a conversation is archived.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Archive {
    /// `true` by default; `false` shows the conversation in listings again.
    pub archived: Option<bool>,
}

/// A purge. Without `confirm`, nothing is erased: the answer reports what would be, with the code
/// to confirm with.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Purge")]
pub struct PurgeBody {
    /// The confirmation code that an earlier call returned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confirm: Option<String>,
}

/// A reply of a model at the end of a branch.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AskReply {
    /// A user message to append first. By default the model replies to the last turn of the
    /// branch.
    #[schemars(with = "Option<ContentForm>")]
    pub(crate) content: Option<FreeForm>,
    /// The model, by its name in `/models`; the first one by default.
    pub model: Option<String>,
}

impl AskReply {
    /// Returns the append of the user message to a branch, if there is one.
    pub fn question(
        &mut self,
        conversation: &ConversationId,
        branch: &str,
        limits: &tine_core::Limits,
    ) -> Result<Option<Append>> {
        let Some(FreeForm(content)) = self.content.take() else { return Ok(None) };
        let fields = [("role", Some(Role::User.as_str().into())), ("content", Some(content))];
        let message = message(object_of(fields), 0, limits)?;
        let branch = Some(branch.to_owned());
        Ok(Some(Append { branch, reuse: false, ..Append::to(conversation.clone(), vec![message]) }))
    }
}

/// Another reply of a model, beside an existing one.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Regenerate")]
pub struct RegenerateReply {
    /// The branch to move to the new reply, by name or id.
    pub branch: Option<String>,
    /// The model, by its name in `/models`; the first one by default.
    pub model: Option<String>,
}

/// The signature of a commit.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SignCommit {
    /// The Ed25519 public key of the signer, in hexadecimal.
    pub public_key: String,
    /// The signature of the text of the commit hash (`sha256:…`), in hexadecimal.
    pub value: String,
}

/// A turn to be copied to a branch.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Inject {
    /// The target conversation.
    pub conversation_id: ConversationId,
    /// The branch to append to, by name or id; `main` by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// The conversation in which the reference to the turn is resolved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from_conversation_id: Option<ConversationId>,
}

impl Inject {
    /// Returns the operation on a turn.
    pub fn into_request(self, turn: Reference) -> crate::Inject {
        crate::Inject {
            turn: TurnRef { conversation: self.from_conversation_id, turn },
            conversation: self.conversation_id,
            branch: self.branch,
        }
    }
}

impl From<crate::Inject> for Inject {
    fn from(request: crate::Inject) -> Self {
        Inject {
            conversation_id: request.conversation,
            branch: request.branch,
            from_conversation_id: request.turn.conversation,
        }
    }
}

/// A run over one source.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InterpretSource {
    /// The interpreter; the configured default if omitted.
    pub interpreter: Option<String>,
    /// Whether to answer only once the run has ended.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub wait: bool,
}

impl InterpretSource {
    /// Returns the operation on a source.
    pub fn into_request(self, source: SourceId) -> Reinterpret {
        Reinterpret {
            sources: vec![source],
            interpreter: self.interpreter,
            wait: self.wait,
            ..Reinterpret::default()
        }
    }
}
