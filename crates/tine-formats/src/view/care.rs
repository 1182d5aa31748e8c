//! The state of a store: checks, totals, imports.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tine_core::{ConversationId, Name};
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
    /// Observations that their logs seal.
    #[serde(default)]
    pub observations: u64,
    /// Sources whose bytes were hashed again.
    #[serde(default)]
    pub sources: u64,
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
            observations: found.observations,
            sources: found.sources,
            problems: problems.map(|it| Problem { record: it.record, why: it.why }).collect(),
        }
    }
}

impl From<Verified> for engine::Verified {
    fn from(view: Verified) -> Self {
        let problem = |it: Problem| tine_store::Problem { record: it.record, why: it.why };
        engine::Verified {
            conversations: view.conversations,
            turns: view.turns,
            purged_turns: view.purged_turns,
            operations: view.operations,
            observations: view.observations,
            sources: view.sources,
            problems: view.problems.into_iter().map(problem).collect(),
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
    /// Tokens and cost, if they were asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<UsageTotals>,
}

impl Stats {
    /// The same with tokens and cost.
    pub fn with_usage(self, usage: engine::UsageTotals) -> Self {
        Stats { usage: Some(usage.into()), ..self }
    }
}

/// Tokens and cost. Every turn counts once, also when it was deleted since.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct UsageTotals {
    /// All of it.
    pub total: Usage,
    /// By the model that answered.
    pub models: Vec<UsageShare>,
    /// By branch: what is on its path. Only of one conversation.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub branches: Vec<UsageShare>,
    /// By conversation. Only of all of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conversations: Vec<UsageShare>,
}

/// The share of one model, branch or conversation.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct UsageShare {
    /// Its name or id; `null` for all that found no place in the list.
    pub name: Option<String>,
    /// The share.
    #[serde(flatten)]
    pub usage: Usage,
}

/// Tokens and cost of some turns.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Usage {
    /// Turns that told their usage or cost.
    pub turns: u64,
    /// Tokens read, cached or not.
    pub input_tokens: u64,
    /// Tokens written, shown or not.
    pub output_tokens: u64,
    /// Tokens in all.
    pub total_tokens: u64,
    /// Of those read, how many came from a cache.
    pub cache_read_tokens: u64,
    /// Of those read, how many were put into a cache.
    pub cache_write_tokens: u64,
    /// Of those written, how many were thoughts.
    pub reasoning_tokens: u64,
    /// The cost in US dollars; `null` when no turn told one.
    pub cost_usd: Option<f64>,
    /// Turns that told their cost.
    pub priced_turns: u64,
}

impl From<tine_core::Usage> for Usage {
    fn from(usage: tine_core::Usage) -> Self {
        Usage {
            turns: usage.turns,
            input_tokens: usage.input,
            output_tokens: usage.output,
            total_tokens: usage.total,
            cache_read_tokens: usage.cache_read,
            cache_write_tokens: usage.cache_write,
            reasoning_tokens: usage.reasoning,
            cost_usd: usage.cost_usd(),
            priced_turns: usage.priced,
        }
    }
}

impl From<engine::UsageTotals> for UsageTotals {
    fn from(totals: engine::UsageTotals) -> Self {
        UsageTotals {
            total: totals.total.into(),
            models: shares(totals.models),
            branches: shares(totals.branches),
            conversations: shares(totals.conversations),
        }
    }
}

fn shares<T: ToString>(shares: engine::UsageShares<T>) -> Vec<UsageShare> {
    let rest = (shares.rest != tine_core::Usage::default()).then_some((None, shares.rest));
    let each = shares.each.into_iter().map(|(name, usage)| (Some(name.to_string()), usage));
    each.chain(rest).map(|(name, usage)| UsageShare { name, usage: usage.into() }).collect()
}

impl From<Usage> for tine_core::Usage {
    fn from(view: Usage) -> Self {
        tine_core::Usage {
            turns: view.turns,
            input: view.input_tokens,
            output: view.output_tokens,
            total: view.total_tokens,
            cache_read: view.cache_read_tokens,
            cache_write: view.cache_write_tokens,
            reasoning: view.reasoning_tokens,
            priced: view.priced_turns,
            cost_nanos: view.cost_usd.and_then(tine_core::Usage::nanos).unwrap_or(0),
        }
    }
}

impl From<UsageTotals> for engine::UsageTotals {
    fn from(view: UsageTotals) -> Self {
        engine::UsageTotals {
            total: view.total.into(),
            models: read_shares(view.models, |name| name),
            branches: read_shares(view.branches, Name::from_stored),
            conversations: read_shares(view.conversations, ConversationId::from_stored),
        }
    }
}

fn read_shares<T>(shares: Vec<UsageShare>, name: impl Fn(String) -> T) -> engine::UsageShares<T> {
    let mut read = engine::UsageShares::default();
    for share in shares {
        match share.name {
            Some(text) => read.each.push((name(text), share.usage.into())),
            None => read.rest = share.usage.into(),
        }
    }
    read
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
        Stats { store, conversation, usage: None }
    }
}

impl From<Stats> for engine::Stats {
    fn from(view: Stats) -> Self {
        let store = tine_store::Totals {
            projects: view.store.projects,
            conversations: view.store.conversations,
            turns: view.store.turns,
            branches: view.store.branches,
            bookmarks: view.store.bookmarks,
            operations: view.store.operations,
            disk_bytes: view.store.disk_bytes,
        };
        let conversation = view.conversation.map(|it| engine::ConversationStats {
            turns: it.turns,
            deleted: it.deleted,
            forks: it.forks,
            leaves: it.leaves,
            longest_path: it.longest_path,
            branches: it.branches,
            tails: it.tails,
            operations: it.operations,
        });
        engine::Stats { store, conversation }
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

impl From<Imported> for engine::Imported {
    fn from(view: Imported) -> Self {
        engine::Imported {
            conversations: view.conversations,
            extended: view.extended,
            unchanged: view.unchanged,
            turns: view.turns,
            operations: view.operations,
        }
    }
}
