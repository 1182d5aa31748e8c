//! What a caller gets back, in plain types.

use std::collections::BTreeMap;

use tine_core::{
    BranchId, ConversationId, Json, Metadata, Name, OperationHash, ProjectId, Role, RootHash,
    SourceId, Status, Timestamp, TurnHash, TurnId, Usage,
};
use tine_store::{Content, DerivedFrom, FeedPosition, Origin, Root, Totals};

/// A project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProjectView {
    /// Its id.
    pub id: ProjectId,
    /// When it was made; `None` for `default` while nothing is in it.
    pub created_at: Option<Timestamp>,
}

/// One entry of the change feed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeedEntry {
    /// Its place: a follower goes on behind it.
    pub position: FeedPosition,
    /// Its project.
    pub project: ProjectId,
    /// What was done.
    pub operation: OperationView,
}

/// A conversation without its turns.
#[derive(Clone, Debug, PartialEq)]
pub struct ConversationView {
    /// Its project.
    pub project: ProjectId,
    /// Its id.
    pub id: ConversationId,
    /// The hash of its root.
    pub root_hash: RootHash,
    /// Its root; `None` once it was purged.
    pub root: Option<Root>,
    /// Its title.
    pub title: Option<String>,
    /// Free-form data.
    pub metadata: Json,
    /// When it was made.
    pub created_at: Timestamp,
    /// What it was derived from.
    pub derived_from: Option<DerivedFrom>,
    /// Whether it is hidden from listings.
    pub archived: bool,
    /// When it was last changed.
    pub changed_at: Timestamp,
}

/// Where an import tells in a conversation's metadata, below `imported`, when something was said
/// last.
pub const LAST_SAID: &str = "last_said_at";

impl ConversationView {
    /// When people were last at it: when it was changed, or, as long as nobody has touched it since
    /// it was imported, when the last of it was said.
    pub fn active_at(&self) -> Timestamp {
        active_at(&self.metadata, self.created_at, self.changed_at)
    }
}

pub(crate) fn active_at(metadata: &Json, created: Timestamp, changed: Timestamp) -> Timestamp {
    let said = || metadata.get("imported")?.get(LAST_SAID)?.as_str()?.parse().ok();
    // An import is one call, and a call is one moment.
    (changed == created).then(said).flatten().unwrap_or(changed)
}

/// Whether and why a turn is not shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Presence {
    /// It is shown.
    #[default]
    Live,
    /// It is deleted, or its making was undone.
    Deleted,
    /// It is shown as two halves.
    Split,
}

/// A turn as shown.
#[derive(Clone, Debug, PartialEq)]
pub struct TurnView {
    /// Its conversation.
    pub conversation: ConversationId,
    /// Its id.
    pub id: TurnId,
    /// Its hash.
    pub hash: TurnHash,
    /// The hash of its raw parent; `None` for a first turn.
    pub parent_hash: Option<TurnHash>,
    /// The parent as shown; `None` is the root.
    pub parent: Option<TurnId>,
    /// Raw distance from the root.
    pub depth: u32,
    /// Who spoke.
    pub role: Role,
    /// What was said, or what is left of it.
    pub content: Content,
    /// The call that a tool turn answers.
    pub tool_call_id: Option<String>,
    /// When.
    pub created_at: Timestamp,
    /// Whether it is whole.
    pub status: Status,
    /// What is known besides.
    pub metadata: Metadata,
    /// Where it comes from.
    pub origin: Origin,
    /// The half that this one goes on from, when both are parts of one split text: right behind
    /// it, nothing belongs between the two.
    pub continues: Option<TurnId>,
    /// Whether it is shown.
    pub presence: Presence,
}

/// Whether a turn was made by a call or was there before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Made.
    Created,
    /// There before; the time and metadata sent with it were ignored.
    Reused,
}

impl Outcome {
    /// Whether something was made, as an outcome.
    pub(crate) fn from_created(created: bool) -> Self {
        if created { Outcome::Created } else { Outcome::Reused }
    }
}

/// What an append did.
#[derive(Clone, Debug, PartialEq)]
pub struct Appended {
    /// One for each message, in order.
    pub turns: Vec<(TurnView, Outcome)>,
    /// The branch that followed, as it is now.
    pub branch: BranchView,
    /// Whether a lost race was resolved by forking.
    pub forked: bool,
    /// Whether this is the answer of an earlier call with the same key.
    pub replayed: bool,
    /// Whether that earlier work has been undone since.
    pub undone: bool,
    /// How many secrets of each kind were taken out of what was sent.
    pub redacted: BTreeMap<String, u64>,
}

/// A branch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BranchView {
    /// Its conversation.
    pub conversation: ConversationId,
    /// Its id.
    pub id: BranchId,
    /// Its name.
    pub name: Name,
    /// The turn it ends on; `None` is the root.
    pub tip: Option<TurnId>,
    /// The hash of that turn.
    pub tip_hash: Option<TurnHash>,
    /// The turn it was forked from.
    pub forked_from: Option<TurnId>,
    /// When it was made.
    pub created_at: Timestamp,
    /// Counts its changes.
    pub version: u64,
}

/// What an edit did.
#[derive(Clone, Debug, PartialEq)]
pub struct Edited {
    /// The new version, or the equal sibling that was there.
    pub turn: TurnView,
    /// Which of the two.
    pub outcome: Outcome,
    /// The branch that moved, if one was given.
    pub branch: Option<BranchView>,
    /// How many secrets of each kind were taken out of what was sent.
    pub redacted: BTreeMap<String, u64>,
}

/// What a split did.
#[derive(Clone, Debug, PartialEq)]
pub struct SplitDone {
    /// The turn that is now shown as two.
    pub whole: TurnId,
    /// Its first half.
    pub left: TurnView,
    /// Its second half.
    pub right: TurnView,
}

/// What a deletion did, or would do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deleted {
    /// The turn that was named.
    pub turn: TurnId,
    /// Turns that are no longer shown, counting that one.
    pub turns: usize,
    /// Branches whose tips moved to the nearest live ancestor.
    pub moved_branches: Vec<BranchView>,
    /// Bookmarks that moved there.
    pub moved_bookmarks: Vec<Name>,
    /// Bookmarks that were removed, because that ancestor is the root.
    pub removed_bookmarks: Vec<Name>,
    /// Whether it was only a preview.
    pub dry_run: bool,
}

/// A bookmark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BookmarkView {
    /// Its name.
    pub name: Name,
    /// The turn's conversation.
    pub conversation: ConversationId,
    /// The turn.
    pub turn: TurnId,
    /// The turn's hash.
    pub turn_hash: TurnHash,
    /// When it was set.
    pub created_at: Timestamp,
}

/// A page of a path.
#[derive(Clone, Debug, PartialEq)]
pub struct PathPage {
    /// The conversation.
    pub conversation: ConversationId,
    /// Its root, which every rendering shows as the system message.
    pub root: Option<Root>,
    /// The turn at the end of the whole path; `None` is the root.
    pub to: Option<TurnId>,
    /// The turns, root first.
    pub turns: Vec<TurnView>,
    /// Goes on behind this page.
    pub next: Option<String>,
}

/// The turns around one turn.
#[derive(Clone, Debug, PartialEq)]
pub struct Window {
    /// The conversation.
    pub conversation: ConversationId,
    /// The turns, root first.
    pub turns: Vec<TurnView>,
    /// The place of the turn asked for among them.
    pub focus: usize,
    /// Whether something comes before.
    pub more_before: bool,
    /// Whether something comes behind.
    pub more_after: bool,
}

/// One row of a topology: a turn without its content.
#[derive(Clone, Debug, PartialEq)]
pub struct TopologyRow {
    /// Its id.
    pub id: TurnId,
    /// Its hash.
    pub hash: TurnHash,
    /// The parent as shown; `None` is the root.
    pub parent: Option<TurnId>,
    /// Children as shown, in order.
    pub children: Vec<TurnId>,
    /// Who spoke.
    pub role: Role,
    /// Distance from the root as shown; a first turn has 1.
    pub level: u32,
    /// When.
    pub created_at: Timestamp,
    /// The first 80 characters on one line.
    pub preview: String,
    /// The title to show: the person's, or the machine's while that applies.
    pub title: Option<String>,
    /// Labels.
    pub tags: Vec<String>,
    /// Turns below it.
    pub descendants: u64,
    /// Branches that end here.
    pub branches: Vec<Name>,
    /// Bookmarks on it.
    pub bookmarks: Vec<Name>,
    /// Whether it is whole.
    pub status: Status,
    /// Whether it is shown, when deleted turns were asked for.
    pub presence: Presence,
    /// Whether its content was erased.
    pub purged: bool,
}

/// A page of a topology, parents before children, first children first.
#[derive(Clone, Debug, PartialEq)]
pub struct TopologyPage {
    /// The conversation.
    pub conversation: ConversationId,
    /// The first turns of the tree (or the turn asked for), in order.
    pub first: Vec<TurnId>,
    /// Turns in the whole answer.
    pub total: u64,
    /// This page's rows.
    pub rows: Vec<TopologyRow>,
    /// Goes on behind this page.
    pub next: Option<String>,
}

/// What stands above a row of an outline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Above {
    /// The root.
    Root,
    /// A row of the same outline, from 0.
    Row(usize),
    /// A turn that the caller has already.
    Turn(TurnId),
}

/// What a turn consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Substance {
    /// Text.
    Text,
    /// Text, and calls of tools.
    TextAndCalls,
    /// Calls of tools alone.
    Calls,
    /// The result of a call.
    Result,
    /// Thoughts alone.
    Thinking,
    /// Anything else: pictures, files, or nothing any more.
    Other,
}

/// One row of an outline.
#[derive(Clone, Debug, PartialEq)]
pub struct OutlineRow {
    /// The turn.
    pub id: TurnId,
    /// Its parent as shown.
    pub above: Above,
    /// Who spoke.
    pub role: Role,
    /// What it consists of.
    pub substance: Substance,
    /// When.
    pub created_at: Timestamp,
    /// The first 80 characters on one line.
    pub preview: String,
    /// The title to show.
    pub title: Option<String>,
    /// Labels.
    pub tags: Vec<String>,
    /// The model that said it, where that is told.
    pub model: Option<String>,
    /// The tokens that it cost, where that is told.
    pub tokens: Option<u64>,
    /// Whether it is whole.
    pub status: Status,
    /// Whether its content was erased.
    pub purged: bool,
}

/// Where a branch ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tip {
    /// The branch.
    pub branch: BranchId,
    /// Its name.
    pub name: Name,
    /// The turn; `None` is the root.
    pub turn: Option<TurnId>,
    /// Counts the branch's changes.
    pub version: u64,
}

/// Where a bookmark lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Its name.
    pub name: Name,
    /// The turn.
    pub turn: TurnId,
}

/// A tree at a glance, or what has come to it.
#[derive(Clone, Debug, PartialEq)]
pub struct Outline {
    /// The conversation.
    pub conversation: ConversationId,
    /// The last operation of its log that is in this answer.
    pub seq: u64,
    /// Turns of the tree; where the answer is not the whole, hidden ones among them.
    pub total: u64,
    /// Whether the rows are the tree, in its order; otherwise they are those that are new or were
    /// renamed, parents before children, each the last child of its parent if it is new.
    pub whole: bool,
    /// The rows of this page.
    pub rows: Vec<OutlineRow>,
    /// All branches, by name.
    pub tips: Vec<Tip>,
    /// All bookmarks, by name.
    pub marks: Vec<Mark>,
    /// Goes on behind this page.
    pub next: Option<String>,
}

/// A line of turns that no branch leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tail {
    /// Its last turn.
    pub leaf: TurnId,
    /// That turn's hash.
    pub leaf_hash: TurnHash,
    /// The first turn of the line that no branch leads to.
    pub first: TurnId,
    /// Turns from that one to the leaf.
    pub turns: u64,
    /// The beginning of what the leaf says.
    pub preview: String,
    /// When the leaf was said.
    pub created_at: Timestamp,
}

/// One entry of the operation log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperationView {
    /// Its conversation.
    pub conversation: ConversationId,
    /// Its place in that conversation's log, from 1: `undo` takes it.
    pub seq: u64,
    /// What was done.
    pub kind: String,
    /// By whom.
    pub actor: String,
    /// When.
    pub at: Timestamp,
    /// A line for people.
    pub summary: String,
    /// Canonical JSON of what it did; `None` once purged.
    pub detail: Option<String>,
    /// The chain hash.
    pub hash: OperationHash,
    /// Whether it is undone at present.
    pub undone: bool,
}

/// What an undo or redo did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Undone {
    /// The operation that was undone or redone.
    pub target: u64,
    /// What that one was.
    pub kind: String,
    /// The new entry of the log.
    pub seq: u64,
}

/// What an erasure did, or would do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Purged {
    /// Turns whose content is erased: the one named and the halves it shares its text with, or
    /// all of the conversation.
    pub turns: Vec<TurnId>,
    /// Other turns that say the same and keep it.
    pub other_holders: Vec<(ConversationId, TurnId)>,
    /// Entries of the log whose detail is erased.
    pub operations: u64,
    /// Sources whose bytes are erased.
    pub sources: Vec<SourceId>,
    /// Observations that are erased with them.
    pub observations: u64,
    /// The word to confirm with; nothing was erased yet.
    pub confirm: Option<String>,
}

/// What a check of everything found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verified {
    /// Conversations checked.
    pub conversations: u64,
    /// Turns whose hash was recomputed.
    pub turns: u64,
    /// Turns that were erased: their hash stays and cannot be recomputed.
    pub purged_turns: u64,
    /// Operations whose chain hash was recomputed.
    pub operations: u64,
    /// Observations that their logs seal.
    pub observations: u64,
    /// Sources whose bytes were hashed again.
    pub sources: u64,
    /// Every record that fails.
    pub problems: Vec<tine_store::Problem>,
}

/// Totals of a store or a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stats {
    /// The whole store.
    pub store: Totals,
    /// One conversation, if it was asked for.
    pub conversation: Option<ConversationStats>,
}

/// Tokens and cost of a conversation, or of all conversations of a project.
///
/// Every turn counts once, also when it was deleted since: it was paid for. Halves of a split
/// and copies of turns do not count again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UsageTotals {
    /// All of it.
    pub total: Usage,
    /// By the model that answered, in order of name.
    pub models: UsageShares<String>,
    /// By branch, in order of name: what is on its path. What branches share counts in each.
    /// Only where one conversation was asked for.
    pub branches: UsageShares<Name>,
    /// By conversation, in order of creation. Only where all were asked for.
    pub conversations: UsageShares<ConversationId>,
}

/// Usage by name. No more names are kept than a page has rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageShares<T> {
    /// Each with its share; none without any.
    pub each: Vec<(T, Usage)>,
    /// Everything that found no place in the list.
    pub rest: Usage,
}

impl<T> Default for UsageShares<T> {
    fn default() -> Self {
        UsageShares { each: Vec::new(), rest: Usage::default() }
    }
}

/// Totals of a conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
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

/// What happened to one conversation of a derivation.
#[derive(Clone, Debug, PartialEq)]
pub struct Derived {
    /// The derivative.
    pub conversation: ConversationView,
    /// Whether it was made by this call.
    pub created: bool,
    /// Turns that were taken over by this call.
    pub turns: usize,
}

/// A page of a listing.
#[derive(Clone, Debug, PartialEq)]
pub struct Listing<T> {
    /// This page's items.
    pub items: Vec<T>,
    /// Goes on behind this page.
    pub next: Option<String>,
}

/// A turn that says what was looked for.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchHit {
    /// Its conversation.
    pub conversation: ConversationId,
    /// The title of that.
    pub conversation_title: Option<String>,
    /// Whether that is archived.
    pub archived: bool,
    /// The turn.
    pub turn: TurnId,
    /// Its hash.
    pub hash: TurnHash,
    /// Who spoke.
    pub role: Role,
    /// When.
    pub created_at: Timestamp,
    /// Raw distance from the root.
    pub depth: u32,
    /// The turn's own title, as listings show it.
    pub title: Option<String>,
    /// Its labels.
    pub tags: Vec<String>,
    /// Branches on whose paths it lies, `main` first, then in order of name; the first 50.
    pub branches: Vec<Name>,
    /// How many there are; none for a turn of a tail.
    pub branch_count: usize,
    /// The part of the turn that says it, on one line.
    pub snippet: String,
    /// Where in the snippet, in Unicode scalar values: first, and behind the last.
    pub highlights: Vec<(usize, usize)>,
    /// How well it fits, in hundredths of BM25.
    pub score: i64,
}

/// A page of hits, best first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SearchPage {
    /// The hits.
    pub hits: Vec<SearchHit>,
    /// Goes on behind this page.
    pub next: Option<String>,
}

/// What bringing the search index forward did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Refreshed {
    /// Operations that were taken in.
    pub operations: u64,
    /// Turns that were indexed.
    pub turns: u64,
}
