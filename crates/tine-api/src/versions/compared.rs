//! Diffs, merges, blame, bisect and drift.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tine_core::commit::{FacetTerm, FieldState, FieldValue};
use tine_core::json::{self, Json};
use tine_core::{
    CommitHash, ConversationId, EntityId, ObservationId, Role, Timestamp, TurnHash, TurnId,
};

use super::CommitView;
use crate::{BranchView, TurnView};

/// A field that differs between two sides.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FieldChange {
    /// The entity.
    #[serde(rename = "entity_id")]
    pub entity: EntityId,
    /// The type of the entity.
    pub entity_type: String,
    /// The display name of the entity.
    pub name: Option<String>,
    /// The field.
    pub field: String,
    /// The value on the first side; `null` if absent.
    pub from: Option<FieldState>,
    /// The value on the second side; `null` if absent.
    pub to: Option<FieldState>,
}

/// A field on which sides disagree.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FieldConflict {
    /// The entity.
    #[serde(rename = "entity_id")]
    pub entity: EntityId,
    /// The type of the entity.
    pub entity_type: String,
    /// The display name of the entity.
    pub name: Option<String>,
    /// The field.
    pub field: String,
    /// The values of the sides; a resolution numbers them from 1.
    pub sides: Vec<FieldValue>,
    /// The values that the sides changed.
    pub bases: Vec<FieldValue>,
}

impl FieldConflict {
    /// Returns all conflicts of a state.
    pub fn all_of(state: &tine_core::commit::FactState) -> Vec<FieldConflict> {
        let all = state.conflicts();
        all.map(|(entity, fact, field, conflict)| FieldConflict {
            entity,
            entity_type: fact.entity_type.clone(),
            name: fact.name.clone(),
            field: field.to_owned(),
            sides: conflict.sides.clone(),
            bases: conflict.bases.clone(),
        })
        .collect()
    }
}

/// What a merge did, or would do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Merged {
    /// The merge commit; `null` when there was nothing to merge, or in a dry run.
    pub commit: Option<CommitView>,
    /// Whether the branch already contained the other side.
    pub up_to_date: bool,
    /// Commits that were made first, of turns that no commit covered.
    pub committed: Vec<CommitHash>,
    /// The last commits that both sides have in common.
    pub bases: Vec<CommitHash>,
    /// Fields that the merge changes on the branch.
    pub changes: Vec<FieldChange>,
    /// Fields that it could not decide.
    pub conflicts: Vec<FieldConflict>,
    /// A summary of the other side.
    pub summary: Vec<SummaryLine>,
    /// The turn that holds the summary.
    #[serde(rename = "turn_id")]
    pub turn: Option<TurnId>,
    /// Whether nothing was written.
    pub dry_run: bool,
}

/// A line of a merge summary, and where it comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SummaryLine {
    /// The line.
    pub text: String,
    /// The turn that states it.
    #[serde(rename = "turn_hash")]
    pub turn: Option<TurnHash>,
}

/// A turn that was copied to another place.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Injected {
    /// The new turn.
    pub turn: TurnView,
    /// The branch that ends with it now.
    pub branch: BranchView,
}

/// Two sides compared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Diff {
    /// The first side.
    pub from: DiffSide,
    /// The second side.
    pub to: DiffSide,
    /// The last turn that both have.
    #[serde(rename = "common_turn_hash")]
    pub common: Option<TurnHash>,
    /// The last commits that both have in common, where two commits are compared.
    pub bases: Vec<CommitHash>,
    /// Turns that differ; empty where two commits are compared.
    pub changes: Vec<TurnChange>,
    /// How many changes are not listed.
    pub left_out: u64,
    /// Names.
    pub entities: SeenDiff,
    /// Keywords.
    pub keywords: SeenDiff,
    /// Topics.
    pub topics: SeenDiff,
    /// Facts.
    pub facts: Vec<FieldChange>,
}

/// One side of a comparison.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DiffSide {
    /// As it was requested.
    pub name: String,
    /// The conversation.
    #[serde(rename = "conversation_id")]
    pub conversation: ConversationId,
    /// The last turn of the side.
    #[serde(rename = "turn_hash")]
    pub turn: Option<TurnHash>,
    /// The commit, if it is one.
    #[serde(rename = "commit_hash")]
    pub commit: Option<CommitHash>,
    /// How many turns only this side has.
    pub turns: u64,
    /// Commits that only this side has, where two commits are compared.
    pub commits: Vec<CommitHash>,
}

/// A turn as a comparison shows it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DiffTurn {
    /// The id of the turn.
    #[serde(rename = "turn_id")]
    pub id: TurnId,
    /// The hash of the turn.
    #[serde(rename = "turn_hash")]
    pub hash: TurnHash,
    /// The speaker.
    pub role: Role,
    /// The text of the turn; empty if it was purged.
    pub text: String,
}

/// A turn that two sides do not share.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "change", rename_all = "lowercase")]
pub enum TurnChange {
    /// On both sides with the same text, as two turns.
    Equal {
        /// On the first side.
        from: DiffTurn,
        /// On the second side.
        to: DiffTurn,
    },
    /// On both sides with different text.
    Changed {
        /// On the first side.
        from: DiffTurn,
        /// On the second side.
        to: DiffTurn,
        /// Word by word.
        words: Vec<WordChange>,
    },
    /// Only on the first side.
    Lost {
        /// The turn.
        from: DiffTurn,
    },
    /// Only on the second side.
    Gained {
        /// The turn.
        to: DiffTurn,
    },
}

/// Words of two versions of a text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum WordChange {
    /// In both.
    Kept(String),
    /// Only in the first.
    Lost(String),
    /// Only in the second.
    Gained(String),
}

/// Names, keywords or topics of two sides.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SeenDiff {
    /// Only on the second side.
    pub gained: Vec<FacetTerm>,
    /// Only on the first side.
    pub lost: Vec<FacetTerm>,
    /// On both.
    pub kept: Vec<FacetTerm>,
}

/// Where a value or a piece of text comes from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Blamed {
    /// The turn.
    #[serde(rename = "turn_hash")]
    pub turn: Option<TurnHash>,
    /// The id of that turn.
    pub turn_id: Option<TurnId>,
    /// The speaker.
    pub role: Option<Role>,
    /// When the message was sent.
    pub said_at: Option<Timestamp>,
    /// Where in the turn's text, in Unicode scalar values: start and end.
    #[schemars(with = "Option<[u64; 2]>")]
    pub span: Option<(u64, u64)>,
    /// The text there.
    pub quote: Option<String>,
    /// The value of a field.
    #[serde(with = "json::exact::option", default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<serde_json::Value>")]
    pub value: Option<Json>,
    /// The observation of a field.
    #[serde(rename = "observation_id", default, skip_serializing_if = "Option::is_none")]
    pub observation: Option<ObservationId>,
    /// The first commit that covers the turn.
    #[serde(rename = "commit_hash")]
    pub commit: Option<CommitHash>,
    /// The merge through which it arrived, when the turn is not on the path.
    #[serde(rename = "merge_hash")]
    pub merge: Option<CommitHash>,
}

/// The first turn that matches.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Bisected {
    /// The turn.
    pub turn: TurnView,
    /// How many turns the path has.
    pub path: usize,
    /// How many turns were tested.
    pub tested: usize,
}

/// How far a commit has moved from others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Drift {
    /// The commit.
    #[serde(rename = "commit_hash")]
    pub hash: CommitHash,
    /// The commit message.
    pub message: String,
    /// When it was made.
    pub created_at: Timestamp,
    /// From its first parent: 0 for the same words, 1 for none in common.
    pub from_parent: Option<f64>,
    /// From the first commit of the branch.
    pub from_first: Option<f64>,
}
