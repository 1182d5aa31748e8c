//! What changes the tree answers: turns appended, edited, split and deleted; branches, bookmarks.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tine_core::{ConversationId, Name};
use tine_engine as engine;

use super::reading::{Unreadable, each, parse, parse_option};
use super::{Turn, text, texts};

/// What an append did.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Appended {
    /// One for each message, in order.
    pub turns: Vec<Turn>,
    /// The branch that followed.
    pub branch: Branch,
    /// The turn that it ends on; `null` is the root.
    pub tip: Option<String>,
    /// Whether a lost race was resolved by forking.
    pub forked: bool,
    /// Whether this is the answer of an earlier call with the same key.
    pub replayed: bool,
    /// Whether that earlier work has been undone since.
    pub undone: bool,
    /// How many secrets of each kind were taken out of what was sent, where any were.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub redacted: BTreeMap<String, u64>,
}

impl From<engine::Appended> for Appended {
    fn from(done: engine::Appended) -> Self {
        let branch = Branch::from(done.branch);
        Appended {
            turns: done.turns.into_iter().map(Turn::from).collect(),
            tip: branch.tip.clone(),
            branch,
            forked: done.forked,
            replayed: done.replayed,
            undone: done.undone,
            redacted: done.redacted,
        }
    }
}

impl TryFrom<Appended> for engine::Appended {
    type Error = Unreadable;

    fn try_from(view: Appended) -> Result<Self, Unreadable> {
        Ok(engine::Appended {
            turns: each(view.turns)?,
            branch: view.branch.try_into()?,
            forked: view.forked,
            replayed: view.replayed,
            undone: view.undone,
            redacted: view.redacted,
        })
    }
}

/// A branch.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Branch {
    /// Its conversation.
    pub conversation_id: String,
    /// Its id, also when it is renamed.
    pub branch_id: String,
    /// Its name.
    pub name: String,
    /// The turn it ends on; `null` is the root.
    pub tip: Option<String>,
    /// The hash of that turn.
    pub tip_hash: Option<String>,
    /// The turn it was forked from.
    pub forked_from: Option<String>,
    /// When it was made.
    pub created_at: String,
    /// Counts its changes.
    pub version: u64,
}

impl From<engine::BranchView> for Branch {
    fn from(view: engine::BranchView) -> Self {
        Branch {
            conversation_id: text(view.conversation),
            branch_id: text(view.id),
            name: text(view.name),
            tip: view.tip.map(text),
            tip_hash: view.tip_hash.map(text),
            forked_from: view.forked_from.map(text),
            created_at: text(view.created_at),
            version: view.version,
        }
    }
}

impl TryFrom<Branch> for engine::BranchView {
    type Error = Unreadable;

    fn try_from(view: Branch) -> Result<Self, Unreadable> {
        Ok(engine::BranchView {
            conversation: ConversationId::from_stored(view.conversation_id),
            id: parse("branch_id", &view.branch_id)?,
            name: Name::from_stored(view.name),
            tip: parse_option("tip", view.tip)?,
            tip_hash: parse_option("tip_hash", view.tip_hash)?,
            forked_from: parse_option("forked_from", view.forked_from)?,
            created_at: parse("created_at", &view.created_at)?,
            version: view.version,
        })
    }
}

/// What an edit did.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Edited {
    /// The new version, or the equal sibling that was there.
    pub turn: Turn,
    /// The branch that moved, if one was given.
    pub branch: Option<Branch>,
    /// How many secrets of each kind were taken out of what was sent, where any were.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub redacted: BTreeMap<String, u64>,
}

impl From<engine::Edited> for Edited {
    fn from(done: engine::Edited) -> Self {
        let (branch, redacted) = (done.branch.map(Branch::from), done.redacted);
        Edited { turn: (done.turn, done.outcome).into(), branch, redacted }
    }
}

impl TryFrom<Edited> for engine::Edited {
    type Error = Unreadable;

    fn try_from(view: Edited) -> Result<Self, Unreadable> {
        let (turn, outcome) = view.turn.try_into()?;
        let branch = view.branch.map(engine::BranchView::try_from).transpose()?;
        Ok(engine::Edited { turn, outcome, branch, redacted: view.redacted })
    }
}

/// What a split did.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct SplitDone {
    /// The turn that is now shown as two.
    pub split: String,
    /// Its first half.
    pub left: Turn,
    /// Its second half.
    pub right: Turn,
}

impl From<engine::SplitDone> for SplitDone {
    fn from(done: engine::SplitDone) -> Self {
        SplitDone { split: text(done.whole), left: done.left.into(), right: done.right.into() }
    }
}

impl TryFrom<SplitDone> for engine::SplitDone {
    type Error = Unreadable;

    fn try_from(view: SplitDone) -> Result<Self, Unreadable> {
        let whole = parse("split", &view.split)?;
        let (left, right) = (view.left.try_into()?, view.right.try_into()?);
        Ok(engine::SplitDone { whole, left, right })
    }
}

/// What a deletion did, or would do.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Deleted {
    /// The turn that was named.
    pub turn_id: String,
    /// Turns that are no longer shown, counting that one.
    pub turns: usize,
    /// Branches whose tips moved to the nearest live ancestor.
    pub moved_branches: Vec<Branch>,
    /// Bookmarks that moved there.
    pub moved_bookmarks: Vec<String>,
    /// Bookmarks that were removed.
    pub removed_bookmarks: Vec<String>,
    /// Whether it was only a preview.
    pub dry_run: bool,
}

impl From<engine::Deleted> for Deleted {
    fn from(done: engine::Deleted) -> Self {
        Deleted {
            turn_id: text(done.turn),
            turns: done.turns,
            moved_branches: done.moved_branches.into_iter().map(Branch::from).collect(),
            moved_bookmarks: texts(done.moved_bookmarks),
            removed_bookmarks: texts(done.removed_bookmarks),
            dry_run: done.dry_run,
        }
    }
}

impl TryFrom<Deleted> for engine::Deleted {
    type Error = Unreadable;

    fn try_from(view: Deleted) -> Result<Self, Unreadable> {
        let names = |names: Vec<String>| names.into_iter().map(Name::from_stored).collect();
        Ok(engine::Deleted {
            turn: parse("turn_id", &view.turn_id)?,
            turns: view.turns,
            moved_branches: each(view.moved_branches)?,
            moved_bookmarks: names(view.moved_bookmarks),
            removed_bookmarks: names(view.removed_bookmarks),
            dry_run: view.dry_run,
        })
    }
}

/// A bookmark.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Bookmark {
    /// Its name.
    pub name: String,
    /// The turn's conversation.
    pub conversation_id: String,
    /// The turn.
    pub turn_id: String,
    /// The turn's hash.
    pub turn_hash: String,
    /// When it was set.
    pub created_at: String,
}

impl From<engine::BookmarkView> for Bookmark {
    fn from(view: engine::BookmarkView) -> Self {
        Bookmark {
            name: text(view.name),
            conversation_id: text(view.conversation),
            turn_id: text(view.turn),
            turn_hash: text(view.turn_hash),
            created_at: text(view.created_at),
        }
    }
}

impl TryFrom<Bookmark> for engine::BookmarkView {
    type Error = Unreadable;

    fn try_from(view: Bookmark) -> Result<Self, Unreadable> {
        Ok(engine::BookmarkView {
            name: Name::from_stored(view.name),
            conversation: ConversationId::from_stored(view.conversation_id),
            turn: parse("turn_id", &view.turn_id)?,
            turn_hash: parse("turn_hash", &view.turn_hash)?,
            created_at: parse("created_at", &view.created_at)?,
        })
    }
}
