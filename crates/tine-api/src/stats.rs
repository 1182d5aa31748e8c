//! Figures about a store: totals, usage, verification, imports.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tine_core::{DamagedRecord, Totals, Usage};

/// What a verification found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Verified {
    /// Whether nothing failed.
    pub ok: bool,
    /// Conversations checked.
    pub conversations: u64,
    /// Turns whose hash was recomputed.
    pub turns: u64,
    /// Purged turns: their hash stays and cannot be recomputed.
    pub purged_turns: u64,
    /// Operations whose chain hash was recomputed.
    pub operations: u64,
    /// Observations that their logs seal.
    #[serde(default)]
    pub observations: u64,
    /// Sources whose bytes were hashed again.
    #[serde(default)]
    pub sources: u64,
    /// Every record that fails.
    pub problems: Vec<DamagedRecord>,
}

/// Totals of a store or a conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Stats {
    /// The whole store.
    pub store: Totals,
    /// One conversation, if it was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<ConversationStats>,
    /// Tokens and cost, if they were asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<UsageTotals>,
}

/// Totals of a conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ConversationStats {
    /// Turns that are shown.
    pub turns: u64,
    /// Turns that are deleted or undone.
    pub deleted: u64,
    /// Turns with more than one child.
    pub forks: u64,
    /// Turns without children.
    pub leaves: u64,
    /// The length of the longest path.
    pub longest_path: u64,
    /// Branches.
    pub branches: u64,
    /// Tails.
    pub tails: u64,
    /// Operations.
    pub operations: u64,
}

/// Tokens and cost of a conversation, or of all conversations of a project.
///
/// Every turn counts once, also when it was deleted since. Halves of a split and copies of turns
/// do not count again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UsageTotals {
    /// All of it.
    pub total: Usage,
    /// By model, in order of name.
    pub models: Vec<UsageShare>,
    /// By branch, in order of name: what is on its path. Shared turns count in each. Only of one
    /// conversation.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub branches: Vec<UsageShare>,
    /// By conversation, in order of creation. Only of a whole project.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conversations: Vec<UsageShare>,
}

/// The share of one model, branch or conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UsageShare {
    /// The name or id; `null` for the rest that is not listed.
    pub name: Option<String>,
    /// The share.
    #[serde(flatten)]
    pub usage: Usage,
}

/// What an import did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Imported {
    /// Conversations that were new.
    pub conversations: u64,
    /// Conversations that existed and grew.
    pub extended: u64,
    /// Conversations that existed already, as in the bundle or further on.
    pub unchanged: u64,
    /// Turns that were new.
    pub turns: u64,
    /// Operations that were new.
    pub operations: u64,
}
