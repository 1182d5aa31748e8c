//! Searching turns.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tine_core::{ConversationId, Name, Role, Timestamp, TurnHash, TurnId};

/// What to search for, and where.
#[derive(Clone, Debug, Default)]
pub struct SearchQuery {
    /// Words, `"phrases"`, prefixes (`word*`), `OR` between neighbours, `-` to exclude.
    pub words: String,
    /// Only in this conversation, also when it is archived.
    pub conversation: Option<ConversationId>,
    /// Only on the path of this branch: its name, with a conversation, or its id.
    pub branch: Option<String>,
    /// Only by this speaker.
    pub role: Option<Role>,
    /// At this time or later.
    pub from: Option<Timestamp>,
    /// Before this time.
    pub to: Option<Timestamp>,
    /// With all of these tags.
    pub tags: Vec<String>,
    /// Includes archived conversations.
    pub archived: bool,
    /// The cursor of an earlier page of the same search.
    pub cursor: Option<String>,
    /// Hits in this page; 20 by default.
    pub limit: Option<usize>,
}

impl SearchQuery {
    /// Searches the whole project.
    pub fn of(words: impl Into<String>) -> Self {
        SearchQuery { words: words.into(), ..SearchQuery::default() }
    }
}

/// A page of hits, best first.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SearchPage {
    /// The hits.
    pub hits: Vec<SearchHit>,
    /// The cursor of the next page.
    pub next: Option<String>,
}

/// A turn that matches.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SearchHit {
    /// The conversation.
    #[serde(rename = "conversation_id")]
    pub conversation: ConversationId,
    /// The title of the conversation, or the beginning of its first question.
    pub conversation_title: Option<String>,
    /// Whether the conversation is archived.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub archived: bool,
    /// The turn.
    #[serde(rename = "turn_id")]
    pub turn: TurnId,
    /// The hash of the turn.
    #[serde(rename = "turn_hash")]
    pub hash: TurnHash,
    /// The speaker.
    pub role: Role,
    /// When the message was sent.
    pub created_at: Timestamp,
    /// Raw distance from the root.
    pub depth: u32,
    /// The turn's own title.
    pub title: Option<String>,
    /// The tags of the turn.
    pub tags: Vec<String>,
    /// Branches on whose paths it lies, `main` first, then by name; the first 50.
    pub branches: Vec<Name>,
    /// How many there are; 0 for a turn of a tail.
    pub branch_count: usize,
    /// The matching part of the turn, on one line.
    pub snippet: String,
    /// Where in the snippet, in Unicode scalar values: start and end.
    #[schemars(with = "Vec<[usize; 2]>")]
    pub highlights: Vec<(usize, usize)>,
    /// How well it matches (BM25).
    pub score: f64,
    /// The parameters that open the turns around it.
    pub window: SearchWindow,
}

/// A turn, and the branch whose line continues after it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SearchWindow {
    /// The turn in the middle.
    pub turn_id: TurnId,
    /// The branch; `null` for a turn that no branch leads to.
    pub branch: Option<Name>,
}

/// What an update of the search index did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Refreshed {
    /// Operations that were processed.
    pub operations: u64,
    /// Turns that were indexed.
    pub turns: u64,
}
