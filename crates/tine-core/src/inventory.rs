//! Totals of a store, positions in its change feed, and damaged records.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A place in the change feed of the whole store. An operation that is committed later never
/// appears before a place that was already handed out.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(transparent)]
#[schemars(inline)]
pub struct FeedPosition(pub u64);

/// How much a store holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "StoreTotals")]
pub struct Totals {
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
    /// Bytes on disk; 0 for a store without one.
    pub disk_bytes: u64,
}

/// One damaged record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Problem")]
pub struct DamagedRecord {
    /// Which record.
    pub record: String,
    /// What is wrong with it.
    pub why: String,
}
