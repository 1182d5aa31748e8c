//! Reading the tree: paths, windows, topologies, tails.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tine_core::{ConversationId, Name, Reference, Role, Root, Status, Timestamp, TurnHash, TurnId};

use crate::{Presence, TurnRef, TurnView};

/// Which part of a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Selection {
    /// All of it.
    #[default]
    Whole,
    /// Its last turns.
    Last(usize),
}

/// A path to be read, root first.
#[derive(Clone, Debug)]
pub struct PathQuery {
    /// The conversation in which names are looked up.
    pub conversation: Option<ConversationId>,
    /// The end of the path: a turn, branch or bookmark; the tip of `main` by default.
    pub to: Option<Reference>,
    /// Which part of it.
    pub selection: Selection,
    /// The cursor of an earlier page.
    pub cursor: Option<String>,
    /// Turns in this page; the configured maximum by default.
    pub limit: Option<usize>,
}

impl PathQuery {
    /// Reads the path to the tip of `main`, one page of it.
    pub fn of(conversation: ConversationId) -> Self {
        PathQuery {
            conversation: Some(conversation),
            to: None,
            selection: Selection::Whole,
            cursor: None,
            limit: None,
        }
    }

    /// Reads the path to a turn, branch or bookmark.
    pub fn to(self, to: impl Into<Reference>) -> Self {
        PathQuery { to: Some(to.into()), ..self }
    }
}

/// The turns of a branch, one page of them.
#[derive(Clone, Debug)]
pub struct BranchTurnsQuery {
    /// The conversation.
    pub conversation: ConversationId,
    /// The branch, by name or id.
    pub branch: String,
    /// Only turns of this role; a page is filled with them.
    pub role: Option<Role>,
    /// The cursor of an earlier page.
    pub cursor: Option<String>,
    /// Turns in this page; the configured maximum by default.
    pub limit: Option<usize>,
}

/// A path, or a page of one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Path")]
pub struct PathPage {
    /// The conversation.
    #[serde(rename = "conversation_id")]
    pub conversation: ConversationId,
    /// The root of the conversation, which renderings show as the system message; `null` if it was purged.
    pub root: Option<Root>,
    /// The turn at the end of the whole path; `null` is the root.
    pub to: Option<TurnId>,
    /// The turns, root first.
    pub turns: Vec<TurnView>,
    /// The cursor of the next page.
    pub next: Option<String>,
}

/// The turns around one turn.
#[derive(Clone, Debug)]
pub struct WindowQuery {
    /// The turn in the middle.
    pub turn: TurnRef,
    /// The branch whose line is followed after the turn; by default the first branch by name
    /// whose line holds the turn, else the first children.
    pub branch: Option<String>,
    /// Turns before it.
    pub before: usize,
    /// Turns after it.
    pub after: usize,
}

/// The turns around one turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Window {
    /// The conversation.
    #[serde(rename = "conversation_id")]
    pub conversation: ConversationId,
    /// The turns, root first.
    pub turns: Vec<TurnView>,
    /// The index of the requested turn among them.
    pub focus: usize,
    /// Whether there are turns before the first.
    pub more_before: bool,
    /// Whether there are turns after the last.
    pub more_after: bool,
}

/// The tree without its content.
#[derive(Clone, Debug)]
pub struct TopologyQuery {
    /// The conversation.
    pub conversation: ConversationId,
    /// Only this turn and what is below it.
    pub under: Option<Reference>,
    /// The cursor of an earlier page.
    pub cursor: Option<String>,
    /// Rows in this page; the configured maximum by default.
    pub limit: Option<usize>,
    /// Includes deleted turns, marked as such.
    pub include_deleted: bool,
}

impl TopologyQuery {
    /// Reads the whole tree, first page.
    pub fn of(conversation: ConversationId) -> Self {
        TopologyQuery {
            conversation,
            under: None,
            cursor: None,
            limit: None,
            include_deleted: false,
        }
    }
}

/// One row of a topology: a turn without its content.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TopologyRow {
    /// The id of the turn.
    #[serde(rename = "turn_id")]
    pub id: TurnId,
    /// The hash of the turn.
    #[serde(rename = "turn_hash")]
    pub hash: TurnHash,
    /// The parent as shown; `null` is the root.
    #[serde(rename = "parent_id")]
    pub parent: Option<TurnId>,
    /// Children as shown, in order.
    pub children: Vec<TurnId>,
    /// The speaker.
    pub role: Role,
    /// Distance from the root as shown; a first turn has 1.
    pub level: u32,
    /// When the message was sent.
    pub created_at: Timestamp,
    /// The first 80 characters on one line.
    pub preview: String,
    /// The title to show: the title, or the automatic one while that applies.
    pub title: Option<String>,
    /// Tags.
    pub tags: Vec<String>,
    /// Turns below it.
    pub descendants: u64,
    /// Branches that end here.
    pub branches: Vec<Name>,
    /// Bookmarks on it.
    pub bookmarks: Vec<Name>,
    /// `complete` or `partial`.
    pub status: Status,
    /// `live`, `deleted` or `split`.
    pub presence: Presence,
    /// Whether its content was purged.
    pub purged: bool,
}

/// A topology, or a page of one: parents before children, first children first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Topology")]
pub struct TopologyPage {
    /// The conversation.
    #[serde(rename = "conversation_id")]
    pub conversation: ConversationId,
    /// The first turns of the tree (or the requested turn), in order.
    pub first: Vec<TurnId>,
    /// Turns in the whole answer.
    pub total: u64,
    /// The rows.
    #[serde(rename = "turns")]
    pub rows: Vec<TopologyRow>,
    /// The cursor of the next page.
    pub next: Option<String>,
}

/// A line of turns that no branch leads to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Tail {
    /// The last turn of the line.
    #[serde(rename = "leaf_id")]
    pub leaf: TurnId,
    /// The hash of that turn.
    pub leaf_hash: TurnHash,
    /// The first turn of the line that no branch leads to.
    #[serde(rename = "first_id")]
    pub first: TurnId,
    /// Turns from that one to the leaf.
    pub turns: u64,
    /// The beginning of the leaf's text.
    pub preview: String,
    /// When the leaf was sent.
    pub created_at: Timestamp,
}
