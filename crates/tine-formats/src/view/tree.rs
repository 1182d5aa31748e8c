//! What reading the tree answers: paths, windows, topologies, tails.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tine_core::{ConversationId, Name};
use tine_engine as engine;

use super::reading::{self, Unreadable, each, parse, parse_all, parse_option};
use super::{Raw, Turn, presence, raw, text, texts};

/// The root of a conversation, which every rendering shows as the system message.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Root {
    /// The system prompt.
    pub system_prompt: Option<String>,
    /// Whatever else the conversation was set up with.
    pub config: Raw,
}

impl From<tine_store::Root> for Root {
    fn from(root: tine_store::Root) -> Self {
        Root { system_prompt: root.system_prompt, config: raw(&root.config) }
    }
}

impl TryFrom<Root> for tine_store::Root {
    type Error = Unreadable;

    fn try_from(view: Root) -> Result<Self, Unreadable> {
        let config = reading::json("config", &view.config)?;
        Ok(tine_store::Root { system_prompt: view.system_prompt, config })
    }
}

/// A path, or a page of one.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Path {
    /// The conversation.
    pub conversation_id: String,
    /// Its root; `null` once it was purged.
    pub root: Option<Root>,
    /// The turn at the end of the whole path; `null` is the root.
    pub to: Option<String>,
    /// The turns.
    pub turns: Vec<Turn>,
    /// The cursor of the next page.
    pub next: Option<String>,
}

impl From<engine::PathPage> for Path {
    fn from(page: engine::PathPage) -> Self {
        Path {
            conversation_id: text(page.conversation),
            root: page.root.map(Root::from),
            to: page.to.map(text),
            turns: page.turns.into_iter().map(Turn::from).collect(),
            next: page.next,
        }
    }
}

impl TryFrom<Path> for engine::PathPage {
    type Error = Unreadable;

    fn try_from(view: Path) -> Result<Self, Unreadable> {
        Ok(engine::PathPage {
            conversation: ConversationId::from_stored(view.conversation_id),
            root: view.root.map(tine_store::Root::try_from).transpose()?,
            to: parse_option("to", view.to)?,
            turns: each(view.turns)?,
            next: view.next,
        })
    }
}

/// The turns around one turn.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Window {
    /// The conversation.
    pub conversation_id: String,
    /// The turns, root first.
    pub turns: Vec<Turn>,
    /// The place of the turn asked for among them, from 0.
    pub focus: usize,
    /// Whether something comes before.
    pub more_before: bool,
    /// Whether something comes behind.
    pub more_after: bool,
}

impl From<engine::Window> for Window {
    fn from(window: engine::Window) -> Self {
        Window {
            conversation_id: text(window.conversation),
            turns: window.turns.into_iter().map(Turn::from).collect(),
            focus: window.focus,
            more_before: window.more_before,
            more_after: window.more_after,
        }
    }
}

impl TryFrom<Window> for engine::Window {
    type Error = Unreadable;

    fn try_from(view: Window) -> Result<Self, Unreadable> {
        Ok(engine::Window {
            conversation: ConversationId::from_stored(view.conversation_id),
            turns: each(view.turns)?,
            focus: view.focus,
            more_before: view.more_before,
            more_after: view.more_after,
        })
    }
}

/// One row of a topology: a turn without its content.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct TopologyRow {
    /// Its id.
    pub turn_id: String,
    /// Its hash.
    pub turn_hash: String,
    /// The parent as shown; `null` is the root.
    pub parent_id: Option<String>,
    /// Children as shown, in order.
    pub children: Vec<String>,
    /// Who spoke.
    pub role: String,
    /// Distance from the root as shown; a first turn has 1.
    pub level: u32,
    /// When.
    pub created_at: String,
    /// The beginning of what was said, on one line.
    pub preview: String,
    /// The title to show.
    pub title: Option<String>,
    /// Labels.
    pub tags: Vec<String>,
    /// Turns below it.
    pub descendants: u64,
    /// Branches that end here.
    pub branches: Vec<String>,
    /// Bookmarks on it.
    pub bookmarks: Vec<String>,
    /// `complete` or `partial`.
    pub status: String,
    /// `live`, `deleted` or `split`.
    pub presence: String,
    /// Whether its content was erased.
    pub purged: bool,
}

impl From<engine::TopologyRow> for TopologyRow {
    fn from(row: engine::TopologyRow) -> Self {
        TopologyRow {
            turn_id: text(row.id),
            turn_hash: text(row.hash),
            parent_id: row.parent.map(text),
            children: texts(row.children),
            role: row.role.as_str().to_owned(),
            level: row.level,
            created_at: text(row.created_at),
            preview: row.preview,
            title: row.title,
            tags: row.tags,
            descendants: row.descendants,
            branches: texts(row.branches),
            bookmarks: texts(row.bookmarks),
            status: row.status.as_str().to_owned(),
            presence: presence(row.presence).to_owned(),
            purged: row.purged,
        }
    }
}

impl TryFrom<TopologyRow> for engine::TopologyRow {
    type Error = Unreadable;

    fn try_from(view: TopologyRow) -> Result<Self, Unreadable> {
        let names = |names: Vec<String>| names.into_iter().map(Name::from_stored).collect();
        Ok(engine::TopologyRow {
            id: parse("turn_id", &view.turn_id)?,
            hash: parse("turn_hash", &view.turn_hash)?,
            parent: parse_option("parent_id", view.parent_id)?,
            children: parse_all("children", view.children)?,
            role: reading::role(&view.role)?,
            level: view.level,
            created_at: parse("created_at", &view.created_at)?,
            preview: view.preview,
            title: view.title,
            tags: view.tags,
            descendants: view.descendants,
            branches: names(view.branches),
            bookmarks: names(view.bookmarks),
            status: reading::status(&view.status)?,
            presence: reading::presence(&view.presence)?,
            purged: view.purged,
        })
    }
}

/// A topology, or a page of one: parents before children, first children first.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Topology {
    /// The conversation.
    pub conversation_id: String,
    /// The first turns of the tree (or the turn asked for), in order.
    pub first: Vec<String>,
    /// Turns in the whole answer.
    pub total: u64,
    /// The rows.
    pub turns: Vec<TopologyRow>,
    /// The cursor of the next page.
    pub next: Option<String>,
}

impl From<engine::TopologyPage> for Topology {
    fn from(page: engine::TopologyPage) -> Self {
        Topology {
            conversation_id: text(page.conversation),
            first: texts(page.first),
            total: page.total,
            turns: page.rows.into_iter().map(TopologyRow::from).collect(),
            next: page.next,
        }
    }
}

impl TryFrom<Topology> for engine::TopologyPage {
    type Error = Unreadable;

    fn try_from(view: Topology) -> Result<Self, Unreadable> {
        Ok(engine::TopologyPage {
            conversation: ConversationId::from_stored(view.conversation_id),
            first: parse_all("first", view.first)?,
            total: view.total,
            rows: each(view.turns)?,
            next: view.next,
        })
    }
}

/// A line of turns that no branch leads to.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Tail {
    /// Its last turn.
    pub leaf_id: String,
    /// That turn's hash.
    pub leaf_hash: String,
    /// The first turn of the line that no branch leads to.
    pub first_id: String,
    /// Turns from that one to the leaf.
    pub turns: u64,
    /// The beginning of what the leaf says.
    pub preview: String,
    /// When the leaf was said.
    pub created_at: String,
}

impl From<engine::Tail> for Tail {
    fn from(tail: engine::Tail) -> Self {
        Tail {
            leaf_id: text(tail.leaf),
            leaf_hash: text(tail.leaf_hash),
            first_id: text(tail.first),
            turns: tail.turns,
            preview: tail.preview,
            created_at: text(tail.created_at),
        }
    }
}

impl TryFrom<Tail> for engine::Tail {
    type Error = Unreadable;

    fn try_from(view: Tail) -> Result<Self, Unreadable> {
        Ok(engine::Tail {
            leaf: parse("leaf_id", &view.leaf_id)?,
            leaf_hash: parse("leaf_hash", &view.leaf_hash)?,
            first: parse("first_id", &view.first_id)?,
            turns: view.turns,
            preview: view.preview,
            created_at: parse("created_at", &view.created_at)?,
        })
    }
}
