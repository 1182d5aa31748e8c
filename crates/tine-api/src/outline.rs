//! A tree at a glance, in columns: one list for each field, since a hundred thousand objects of
//! a dozen fields each are slow to send, to parse and to keep.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use tine_core::{BranchId, ConversationId, Name, Role, Status, Timestamp, TurnId};

/// The most rows of one page of an outline.
pub const OUTLINE_ROWS: usize = 200_000;

/// Stands for the root among the parents.
const ROOT: i64 = -1;

/// Stands for a turn that is in no row of the answer.
const ELSEWHERE: i64 = -2;

/// The tree at a glance.
#[derive(Clone, Debug)]
pub struct OutlineQuery {
    /// The conversation.
    pub conversation: ConversationId,
    /// Only what was added or renamed after this operation of its log, if nothing else happened.
    pub since: Option<u64>,
    /// The cursor of an earlier page.
    pub cursor: Option<String>,
    /// Rows in this page; [`OUTLINE_ROWS`] by default, and at most.
    pub rows: Option<usize>,
}

impl OutlineQuery {
    /// Reads the whole outline.
    pub fn of(conversation: ConversationId) -> Self {
        OutlineQuery { conversation, since: None, cursor: None, rows: None }
    }
}

/// The parent of an outline row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutlineParent {
    /// The root.
    Root,
    /// A row of the same outline, from 0.
    Row(usize),
    /// A turn that the caller has already.
    Turn(TurnId),
}

/// What kinds of blocks a turn consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContentKind {
    /// Text.
    Text,
    /// Text and tool calls.
    TextAndCalls,
    /// Tool calls alone.
    Calls,
    /// The result of a tool call.
    ToolResult,
    /// Thinking alone.
    Thinking,
    /// Anything else: images, files, or purged content.
    Other,
}

/// One row of an outline.
#[derive(Clone, Debug, PartialEq)]
pub struct OutlineRow {
    /// The turn.
    pub id: TurnId,
    /// The parent as shown.
    pub above: OutlineParent,
    /// The speaker.
    pub role: Role,
    /// What the turn consists of.
    pub substance: ContentKind,
    /// When the message was sent.
    pub created_at: Timestamp,
    /// The first 80 characters on one line.
    pub preview: String,
    /// The title to show.
    pub title: Option<String>,
    /// Tags.
    pub tags: Vec<String>,
    /// The model, if known.
    pub model: Option<String>,
    /// The tokens it used, if known.
    pub tokens: Option<u64>,
    /// Whether it is complete.
    pub status: Status,
    /// Whether its content was purged.
    pub purged: bool,
}

/// Where a branch ends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Tip {
    /// The branch.
    #[serde(rename = "branch_id")]
    pub branch: BranchId,
    /// The name of the branch.
    pub name: Name,
    /// The turn; `null` is the root.
    #[serde(rename = "turn_id")]
    pub turn: Option<TurnId>,
    /// Counts its changes.
    pub version: u64,
}

/// A bookmark of an outline.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "Mark")]
pub struct OutlineBookmark {
    /// The name of the bookmark.
    pub name: Name,
    /// The turn.
    #[serde(rename = "turn_id")]
    pub turn: TurnId,
}

/// A tree at a glance, or what was added to it.
#[derive(Clone, Debug, PartialEq)]
pub struct Outline {
    /// The conversation.
    pub conversation: ConversationId,
    /// The last operation of its log that this answer covers.
    pub seq: u64,
    /// Turns of the tree; where the answer is not the whole, including hidden ones.
    pub total: u64,
    /// Whether the rows are the whole tree, in order; otherwise they are new or renamed turns,
    /// parents before children, each new one the last child of its parent.
    pub whole: bool,
    /// The rows of this page.
    pub rows: Vec<OutlineRow>,
    /// All branches, by name.
    pub tips: Vec<Tip>,
    /// All bookmarks, by name.
    pub marks: Vec<OutlineBookmark>,
    /// The cursor of the next page.
    pub next: Option<String>,
}

/// A tree at a glance, or what was added to it. All columns have one entry for each row.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "Outline")]
pub struct OutlineColumns {
    /// The conversation.
    pub conversation_id: ConversationId,
    /// The last operation of the conversation's log that this answer covers; pass it as `since`.
    pub seq: u64,
    /// Turns of the tree.
    pub total: u64,
    /// `true`: the rows are the tree, parents before children, first children first. `false`: they
    /// are the turns added since then, each the last child of its parent, and those whose title or
    /// tags may have changed.
    pub whole: bool,
    /// The turns.
    pub ids: Vec<TurnId>,
    /// The row of each parent, counted over all pages; -1 is the root, -2 a turn that `parent_ids`
    /// names.
    pub parents: Vec<i64>,
    /// Parents that are in no row of this answer, by row.
    pub parent_ids: BTreeMap<String, TurnId>,
    /// The speakers, one letter each: `u`ser, `a`ssistant, `t`ool, `s`ystem.
    pub roles: String,
    /// What each consists of, one letter each: `t`ext, tool `c`alls, `b`oth, `r`esult of a tool
    /// call, thin`k`ing, `o`ther.
    pub kinds: String,
    /// When each message was sent, in milliseconds since 1970.
    pub times: Vec<i64>,
    /// The beginning of each text, on one line.
    pub previews: Vec<String>,
    /// The model of each, as an index into `model_names`; `null` if unknown.
    pub models: Vec<Option<usize>>,
    /// Names of models.
    pub model_names: Vec<String>,
    /// Tokens that each used; `null` if unknown.
    pub tokens: Vec<Option<u64>>,
    /// Titles, by row.
    pub titles: BTreeMap<String, String>,
    /// Tags, by row.
    pub tags: BTreeMap<String, Vec<String>>,
    /// Rows of incomplete turns.
    pub partial: Vec<usize>,
    /// Rows of purged turns.
    pub purged: Vec<usize>,
    /// All branches, by name.
    pub branches: Vec<Tip>,
    /// All bookmarks on turns of the conversation, by name.
    pub bookmarks: Vec<OutlineBookmark>,
    /// The cursor of the next page.
    pub next: Option<String>,
}

impl From<Outline> for OutlineColumns {
    fn from(outline: Outline) -> Self {
        let mut columns = OutlineColumns {
            conversation_id: outline.conversation,
            seq: outline.seq,
            total: outline.total,
            whole: outline.whole,
            ids: Vec::new(),
            parents: Vec::new(),
            parent_ids: BTreeMap::new(),
            roles: String::new(),
            kinds: String::new(),
            times: Vec::new(),
            previews: Vec::new(),
            models: Vec::new(),
            model_names: Vec::new(),
            tokens: Vec::new(),
            titles: BTreeMap::new(),
            tags: BTreeMap::new(),
            partial: Vec::new(),
            purged: Vec::new(),
            branches: outline.tips,
            bookmarks: outline.marks,
            next: outline.next,
        };
        let mut names = BTreeMap::new();
        for row in outline.rows {
            columns.push(row, &mut names);
        }
        columns
    }
}

impl OutlineColumns {
    fn push(&mut self, row: OutlineRow, names: &mut BTreeMap<String, usize>) {
        let at = self.ids.len();
        self.ids.push(row.id);
        self.parents.push(match row.above {
            OutlineParent::Root => ROOT,
            OutlineParent::Row(row) => i64::try_from(row).unwrap_or(i64::MAX),
            OutlineParent::Turn(id) => {
                self.parent_ids.insert(at.to_string(), id);
                ELSEWHERE
            }
        });
        self.roles.push(match row.role {
            Role::User => 'u',
            Role::Assistant => 'a',
            Role::Tool => 't',
            Role::System => 's',
        });
        self.kinds.push(match row.substance {
            ContentKind::Text => 't',
            ContentKind::TextAndCalls => 'b',
            ContentKind::Calls => 'c',
            ContentKind::ToolResult => 'r',
            ContentKind::Thinking => 'k',
            ContentKind::Other => 'o',
        });
        self.times.push(row.created_at.as_millis());
        self.previews.push(row.preview);
        self.models.push(row.model.map(|name| match names.get(&name) {
            Some(index) => *index,
            None => {
                let index = self.model_names.len();
                self.model_names.push(name.clone());
                names.insert(name, index);
                index
            }
        }));
        self.tokens.push(row.tokens);
        if let Some(title) = row.title {
            self.titles.insert(at.to_string(), title);
        }
        if !row.tags.is_empty() {
            self.tags.insert(at.to_string(), row.tags);
        }
        if row.status == Status::Partial {
            self.partial.push(at);
        }
        if row.purged {
            self.purged.push(at);
        }
    }
}
