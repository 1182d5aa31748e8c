//! Requests about commits.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tine_core::{ConversationId, EntityId, Json, Reference, json};

use crate::bodies::{request_form, size, written_as};
use crate::{Error, Result, TurnRef, unset_conversation};

/// A range of turns, both ends included.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "TurnRange")]
pub struct WindowRef {
    /// The first turn: its hash, or any other reference.
    #[serde(rename = "start_turn_hash")]
    pub start: Reference,
    /// The last turn.
    #[serde(rename = "end_turn_hash")]
    pub end: Reference,
}

/// A commit to be made.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewCommit {
    /// The conversation.
    #[serde(rename = "conversation_id")]
    pub conversation: ConversationId,
    /// The turns; by default all that no commit of the branch covers yet.
    #[serde(rename = "turn_window", skip_serializing_if = "Option::is_none")]
    pub window: Option<WindowRef>,
    /// The branch, by name or id. By default `main` if the turns lie there, else the
    /// only branch on which they do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// The commit message.
    pub message: String,
    /// The author; the caller by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
}

impl NewCommit {
    /// Commits what is new on `main`.
    pub fn of(conversation: ConversationId, message: impl Into<String>) -> Self {
        let message = message.into();
        NewCommit { conversation, branch: None, window: None, message, author: None }
    }

    /// Sets the branch.
    pub fn on(self, branch: &str) -> Self {
        NewCommit { branch: Some(branch.to_owned()), ..self }
    }
}

/// Which commits.
#[derive(Clone, Debug, Default)]
pub struct CommitQuery {
    /// Those of a conversation; by default of the whole project.
    pub conversation: Option<ConversationId>,
    /// Those that the last commit of a branch descends from.
    pub branch: Option<String>,
}

/// The turn about the other side that a merge may add.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Option<MergeSummary>", into = "Option<MergeSummary>")]
pub enum Summary {
    /// No turn is added.
    #[default]
    None,
    /// A summary of the other side's facets, facts and decisions.
    Generated,
    /// The caller's text.
    Text(String),
}

/// The summary of the other side that a merge appends.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
enum MergeSummary {
    /// `true` to generate it from the facets, facts and decisions of the other side.
    Generated(bool),
    /// A text of your own.
    Text(String),
}

impl From<Option<MergeSummary>> for Summary {
    fn from(form: Option<MergeSummary>) -> Self {
        match form {
            None | Some(MergeSummary::Generated(false)) => Summary::None,
            Some(MergeSummary::Generated(true)) => Summary::Generated,
            Some(MergeSummary::Text(text)) => Summary::Text(text),
        }
    }
}

impl From<Summary> for Option<MergeSummary> {
    fn from(summary: Summary) -> Self {
        match summary {
            Summary::None => None,
            Summary::Generated => Some(MergeSummary::Generated(true)),
            Summary::Text(text) => Some(MergeSummary::Text(text)),
        }
    }
}

/// A branch, or a commit, to be merged into a branch.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Merge")]
pub struct MergeBranches {
    /// The conversation.
    #[serde(rename = "conversation_id")]
    pub conversation: ConversationId,
    /// The branch to merge, by name or id, or the hash of a commit.
    pub from: String,
    /// The branch to merge into; `main` by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub into: Option<String>,
    /// The commit message; `Merge …` by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The author; the caller by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
    /// Whether to append a turn that summarizes the other side, or its text; no turn by default.
    #[serde(default, skip_serializing_if = "Summary::is_none")]
    #[schemars(with = "Option<MergeSummary>")]
    pub summary: Summary,
    /// Reports what would happen and writes nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
}

impl Summary {
    fn is_none(&self) -> bool {
        *self == Summary::None
    }
}

/// How a conflict is resolved.
#[derive(Clone, Debug, PartialEq)]
pub enum Take {
    /// Takes the value of one side, numbered from 1 as the conflict lists them.
    Side(usize),
    /// Takes this value.
    Value(Json),
    /// Clears the field.
    Nothing,
}

/// The resolution of one field.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// The entity.
    pub entity: EntityId,
    /// The field.
    pub field: String,
    /// The value to take.
    pub take: Take,
}

request_form! { Decision => DecisionJson; }
written_as! { Decision => DecisionJson; }

/// The resolution of one field: exactly one of `side`, `value` and `nothing`.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Decision")]
struct DecisionJson {
    /// The entity.
    entity_id: String,
    /// The field.
    field: String,
    /// Takes the value of one side, numbered from 1 as the conflict lists them.
    #[serde(skip_serializing_if = "Option::is_none")]
    side: Option<u64>,
    /// Takes this value.
    #[serde(default, with = "json::exact::option", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<serde_json::Value>")]
    value: Option<Json>,
    /// `true` clears the field.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    nothing: bool,
}

impl TryFrom<DecisionJson> for Decision {
    type Error = Error;

    fn try_from(form: DecisionJson) -> Result<Self> {
        let take = match (form.side, form.value, form.nothing) {
            (Some(side), None, false) => Take::Side(size("the side", side)?),
            (None, Some(value), false) => Take::Value(value),
            (None, None, true) => Take::Nothing,
            _ => {
                let why = "a decision is one of `side`, `value` and `nothing: true`";
                return Err(Error::invalid(why));
            }
        };
        Ok(Decision { entity: form.entity_id.parse()?, field: form.field, take })
    }
}

impl From<&Decision> for DecisionJson {
    fn from(decision: &Decision) -> Self {
        let (entity_id, field) = (decision.entity.to_string(), decision.field.clone());
        let form = DecisionJson { entity_id, field, ..DecisionJson::default() };
        match &decision.take {
            Take::Side(side) => DecisionJson { side: Some(*side as u64), ..form },
            Take::Value(value) => DecisionJson { value: Some(value.clone()), ..form },
            Take::Nothing => DecisionJson { nothing: true, ..form },
        }
    }
}

/// Conflicts of a branch to be resolved.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ResolveConflicts {
    /// The conversation.
    #[serde(skip, default = "unset_conversation")]
    pub conversation: ConversationId,
    /// The branch; `main` by default.
    #[serde(skip)]
    pub branch: Option<String>,
    /// The resolutions; at least one.
    pub decisions: Vec<Decision>,
    /// The commit message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The author; the caller by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
}

/// A turn to be copied to another place.
#[derive(Clone, Debug)]
pub struct Inject {
    /// The turn.
    pub turn: TurnRef,
    /// The target conversation.
    pub conversation: ConversationId,
    /// The branch that it is appended to; `main` by default.
    pub branch: Option<String>,
}

/// Two sides to be compared, each a turn, a branch, a commit, or a range of turns `a..b`.
#[derive(Clone, Debug)]
pub struct DiffQuery {
    /// The conversation in which names are looked up.
    pub conversation: Option<ConversationId>,
    /// The first side.
    pub from: String,
    /// The second side.
    pub to: String,
    /// The most changes to list.
    pub limit: Option<usize>,
}

/// What to find the origin of.
#[derive(Clone, Debug)]
pub enum BlameOf {
    /// A field of an entity.
    Field {
        /// The entity.
        entity: EntityId,
        /// The field.
        field: String,
    },
    /// A piece of text.
    Text(String),
}

/// Where a value or a piece of text comes from.
#[derive(Clone, Debug)]
pub struct BlameQuery {
    /// The end of the path to search.
    pub at: TurnRef,
    /// What to look for.
    pub of: BlameOf,
}

/// A condition on a prefix of a path.
#[derive(Clone, Debug)]
pub enum Predicate {
    /// The text contains this of the entity.
    Contains(String),
    /// A field has this value; `None` for any.
    Fact {
        /// The entity.
        entity: EntityId,
        /// The field.
        field: String,
        /// The value.
        value: Option<Json>,
    },
}

/// Finds the first turn on a path that satisfies a condition.
#[derive(Clone, Debug)]
pub struct BisectQuery {
    /// The end of the path.
    pub at: TurnRef,
    /// The condition.
    pub predicate: Predicate,
}
