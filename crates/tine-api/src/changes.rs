//! Changing the tree: appending, forking, editing, splitting, deleting; branches and bookmarks.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tine_core::{
    Body, BranchId, ConversationId, Json, Message, Name, Reference, Timestamp, TurnHash, TurnId,
};

use crate::{TurnRef, TurnView};

/// What to do when a branch does not end where the caller expected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnConflict {
    /// Refuse with `conflict` and the actual tip.
    #[default]
    Refuse,
    /// Append at the expected tip on a new branch `{branch}-1`, `{branch}-2` …
    Fork,
}

/// Messages to be appended.
#[derive(Clone, Debug)]
pub struct Append {
    /// The conversation.
    pub conversation: ConversationId,
    /// In order; at least one.
    pub messages: Vec<Message>,
    /// Where to start: a turn or `root`; the branch's tip by default.
    pub parent: Option<Reference>,
    /// The branch that follows, by name or id; `main` by default.
    pub branch: Option<String>,
    /// Where the caller expects the branch to end.
    pub expected_tip: Option<Reference>,
    /// What to do when it does not.
    pub on_conflict: OnConflict,
    /// Whether equal turns are reused instead of made again.
    pub reuse: bool,
}

impl Append {
    /// Appends to the tip of `main`.
    pub fn to(conversation: ConversationId, messages: Vec<Message>) -> Self {
        Append {
            conversation,
            messages,
            parent: None,
            branch: None,
            expected_tip: None,
            on_conflict: OnConflict::Refuse,
            reuse: true,
        }
    }

    /// Starts at the root, for clients that send the whole list each time.
    pub fn from_root(self) -> Self {
        Append { parent: Reference::parse("root").ok(), ..self }
    }

    /// Starts at a turn, for a branch.
    pub fn under(self, parent: Reference, branch: &str) -> Self {
        Append { parent: Some(parent), branch: Some(branch.to_owned()), ..self }
    }
}

/// What an append did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Appended {
    /// One for each message, in order, each with its outcome.
    pub turns: Vec<TurnView>,
    /// The branch that followed, as it is now.
    pub branch: BranchView,
    /// The turn that the branch ends on; `null` is the root.
    pub tip: Option<TurnId>,
    /// Whether a lost race was resolved by forking.
    pub forked: bool,
    /// Whether this is the answer of an earlier call with the same key.
    pub replayed: bool,
    /// Whether that earlier work has been undone since.
    pub undone: bool,
    /// How many secrets of each kind were redacted.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub redacted: BTreeMap<String, u64>,
}

/// A branch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Branch")]
pub struct BranchView {
    /// Its conversation.
    #[serde(rename = "conversation_id")]
    pub conversation: ConversationId,
    /// Its id, which survives renaming.
    #[serde(rename = "branch_id")]
    pub id: BranchId,
    /// Its name.
    pub name: Name,
    /// The turn it ends on; `null` is the root.
    pub tip: Option<TurnId>,
    /// The hash of that turn.
    pub tip_hash: Option<TurnHash>,
    /// The turn it was forked from.
    pub forked_from: Option<TurnId>,
    /// When it was created.
    pub created_at: Timestamp,
    /// Counts its changes.
    pub version: u64,
}

/// Where a fork is cut.
#[derive(Clone, Debug)]
pub enum ForkPoint {
    /// After this turn; `root` for an empty branch.
    At(Reference),
    /// Before this turn.
    Before(Reference),
}

/// A branch to be created.
#[derive(Clone, Debug)]
pub struct Fork {
    /// The conversation in which names are looked up; ids and hashes do without.
    pub conversation: Option<ConversationId>,
    /// Where.
    pub point: ForkPoint,
    /// A name. By default `fork-1`, `fork-2` …: the smallest free number while fewer than sixteen
    /// are taken, after that a number that follows a taken one, so gaps may stay.
    pub name: Option<Name>,
}

/// A branch to be moved back or forward on its line.
#[derive(Clone, Debug)]
pub struct MoveBranch {
    /// The conversation.
    pub conversation: ConversationId,
    /// The branch, by name or id.
    pub branch: String,
    /// Where to. A restore undoes the last revert by default.
    pub to: Option<Reference>,
    /// Where the caller expects the branch to end.
    pub expected_tip: Option<Reference>,
}

/// Another version of a turn.
#[derive(Clone, Debug)]
pub struct Edit {
    /// The turn; it stays as it is.
    pub turn: TurnRef,
    /// The content of the new version.
    pub body: Body,
    /// The branch that moves to it.
    pub branch: Option<String>,
    /// Whether an equal sibling is reused.
    pub reuse: bool,
}

/// Another answer of a model, beside one of its answers.
#[derive(Clone, Debug)]
pub struct Regenerate {
    /// The id of the new turn.
    pub id: TurnId,
    /// The existing answer; it stays as it is.
    pub turn: TurnRef,
    /// The new answer, of role `assistant`.
    pub message: Message,
    /// The branch that moves to it.
    pub branch: Option<String>,
}

/// What an edit did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Edited {
    /// The new version, or the equal sibling that existed, with its outcome.
    pub turn: TurnView,
    /// The branch that moved, if one was given.
    pub branch: Option<BranchView>,
    /// How many secrets of each kind were redacted.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub redacted: BTreeMap<String, u64>,
}

/// A turn to be shown as two.
#[derive(Clone, Debug)]
pub struct SplitTurn {
    /// The turn.
    pub turn: TurnRef,
    /// Unicode scalar values that the first half keeps.
    pub offset: usize,
}

/// What a split did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SplitDone {
    /// The turn that is now shown as two.
    #[serde(rename = "split")]
    pub whole: TurnId,
    /// Its first half.
    pub left: TurnView,
    /// Its second half.
    pub right: TurnView,
}

/// What is deleted along with a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeleteMode {
    /// Everything below it.
    Cascade,
    /// Nothing; its children are shown under its parent.
    Reparent,
}

/// A turn to be deleted.
#[derive(Clone, Debug)]
pub struct Delete {
    /// The turn.
    pub turn: TurnRef,
    /// What is deleted along with it.
    pub mode: DeleteMode,
    /// Deletes it although other records refer to it.
    pub force: bool,
    /// Only reports what would be deleted.
    pub dry_run: bool,
}

/// What a deletion did, or would do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Deleted {
    /// The turn that was named.
    #[serde(rename = "turn_id")]
    pub turn: TurnId,
    /// Turns that are no longer shown, including that one.
    pub turns: usize,
    /// Branches whose tips moved to the nearest live ancestor.
    pub moved_branches: Vec<BranchView>,
    /// Bookmarks that moved there.
    pub moved_bookmarks: Vec<Name>,
    /// Bookmarks that were removed because that ancestor is the root.
    pub removed_bookmarks: Vec<Name>,
    /// Whether it was only a preview.
    pub dry_run: bool,
}

/// A change of a turn's metadata. `None` leaves a key as it is.
#[derive(Clone, Debug, Default)]
pub struct MetadataPatch {
    /// `Some(None)` clears it.
    pub title: Option<Option<String>>,
    /// `Some(None)` clears it.
    pub auto_title: Option<Option<String>>,
    /// Tags to add.
    pub add_tags: Vec<String>,
    /// Tags to remove.
    pub remove_tags: Vec<String>,
    /// Replaces all tags.
    pub tags: Option<Vec<String>>,
    /// Replaces it; `null` clears it.
    pub custom_data: Option<Json>,
    /// Replaces it; `null` clears it.
    pub source_info: Option<Json>,
    /// Replaces a title that is set already.
    pub force: bool,
}

/// A bookmark.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Bookmark")]
pub struct BookmarkView {
    /// Its name.
    pub name: Name,
    /// The turn's conversation.
    #[serde(rename = "conversation_id")]
    pub conversation: ConversationId,
    /// The turn.
    #[serde(rename = "turn_id")]
    pub turn: TurnId,
    /// The turn's hash.
    pub turn_hash: TurnHash,
    /// When it was set.
    pub created_at: Timestamp,
}
