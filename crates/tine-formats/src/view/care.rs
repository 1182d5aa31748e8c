//! The state of a store: checks, totals, imports.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tine_engine as engine;

/// What a check of everything found.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Verified {
    /// Whether nothing failed.
    pub ok: bool,
    /// Conversations checked.
    pub conversations: u64,
    /// Turns whose hash was recomputed.
    pub turns: u64,
    /// Turns that were erased, whose hash stays.
    pub purged_turns: u64,
    /// Operations whose chain hash was recomputed.
    pub operations: u64,
    /// Every record that fails.
    pub problems: Vec<Problem>,
}

/// A record that fails.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Problem {
    /// Which one.
    pub record: String,
    /// What is wrong with it.
    pub why: String,
}

impl From<engine::Verified> for Verified {
    fn from(found: engine::Verified) -> Self {
        let problems = found.problems.into_iter();
        Verified {
            ok: problems.len() == 0,
            conversations: found.conversations,
            turns: found.turns,
            purged_turns: found.purged_turns,
            operations: found.operations,
            problems: problems.map(|it| Problem { record: it.record, why: it.why }).collect(),
        }
    }
}

/// Totals of a store, and of a conversation if it was asked for.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Stats {
    /// The whole store.
    pub store: StoreTotals,
    /// One conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<ConversationStats>,
}

/// Totals of a store.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct StoreTotals {
    /// Projects.
    pub projects: u64,
    /// Conversations, also hidden ones.
    pub conversations: u64,
    /// Turns, also hidden ones.
    pub turns: u64,
    /// Branches.
    pub branches: u64,
    /// Bookmarks.
    pub bookmarks: u64,
    /// Operations.
    pub operations: u64,
    /// Bytes on disk.
    pub disk_bytes: u64,
}

/// Totals of a conversation.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ConversationStats {
    /// Turns that are shown.
    pub turns: u64,
    /// Turns that are deleted or undone.
    pub deleted: u64,
    /// Turns with more than one child.
    pub forks: u64,
    /// Turns without children.
    pub leaves: u64,
    /// The longest path.
    pub longest_path: u64,
    /// Branches.
    pub branches: u64,
    /// Tails.
    pub tails: u64,
    /// Operations.
    pub operations: u64,
}

impl From<engine::Stats> for Stats {
    fn from(stats: engine::Stats) -> Self {
        let store = StoreTotals {
            projects: stats.store.projects,
            conversations: stats.store.conversations,
            turns: stats.store.turns,
            branches: stats.store.branches,
            bookmarks: stats.store.bookmarks,
            operations: stats.store.operations,
            disk_bytes: stats.store.disk_bytes,
        };
        let conversation = stats.conversation.map(|it| ConversationStats {
            turns: it.turns,
            deleted: it.deleted,
            forks: it.forks,
            leaves: it.leaves,
            longest_path: it.longest_path,
            branches: it.branches,
            tails: it.tails,
            operations: it.operations,
        });
        Stats { store, conversation }
    }
}

/// What an import did.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Imported {
    /// Conversations that were new.
    pub conversations: u64,
    /// Conversations that were there and grew.
    pub extended: u64,
    /// Conversations that were there already, as in the bundle or further on.
    pub unchanged: u64,
    /// Turns that were new.
    pub turns: u64,
    /// Operations that were new.
    pub operations: u64,
}

impl From<engine::Imported> for Imported {
    fn from(done: engine::Imported) -> Self {
        Imported {
            conversations: done.conversations,
            extended: done.extended,
            unchanged: done.unchanged,
            turns: done.turns,
            operations: done.operations,
        }
    }
}
