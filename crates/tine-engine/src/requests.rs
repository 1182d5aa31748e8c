//! What a caller asks for.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use tine_core::ids::NameError;
use tine_core::{
    Body, BranchId, ConversationId, Json, Limits, Message, Name, ProjectId, Reference, Role,
    SourceId, Timestamp, TurnId,
};

/// Who asks, where, and with which key.
#[derive(Clone, Debug)]
pub struct Call {
    /// The project that every name in the call belongs to.
    pub project: ProjectId,
    /// Who is recorded as the author of the change.
    pub actor: String,
    /// Makes the call safe to repeat.
    pub idempotency_key: Option<String>,
    /// The branch that the call is about must still be as the caller has seen it.
    pub if_branch: Option<BranchVersion>,
    /// How many secrets of each kind were taken out of the content before it came here: noted
    /// with the operation.
    pub redacted: BTreeMap<String, u64>,
}

/// One state of a branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BranchVersion {
    /// The branch.
    pub id: BranchId,
    /// How often it had been changed.
    pub version: u64,
}

impl Call {
    /// A call in the default project.
    pub fn by(actor: impl Into<String>) -> Self {
        Call {
            project: ProjectId::default(),
            actor: actor.into(),
            idempotency_key: None,
            if_branch: None,
            redacted: BTreeMap::new(),
        }
    }

    /// The same call in another project.
    pub fn in_project(self, project: ProjectId) -> Self {
        Call { project, ..self }
    }

    /// The same call with a key.
    pub fn with_key(self, key: impl Into<String>) -> Self {
        Call { idempotency_key: Some(key.into()), ..self }
    }

    /// The same call, about content that secrets were taken out of.
    pub fn with_redacted(self, redacted: BTreeMap<String, u64>) -> Self {
        Call { redacted, ..self }
    }

    /// The same call, to be refused when its branch is not in that state any more.
    pub fn if_branch(self, seen: BranchVersion) -> Self {
        Call { if_branch: Some(seen), ..self }
    }
}

/// A conversation to be made.
#[derive(Clone, Debug)]
pub struct NewConversation {
    /// The caller's id; one is minted without it.
    pub id: Option<ConversationId>,
    /// Rendered as the message of role `system`.
    pub system_prompt: Option<String>,
    /// Whatever else the conversation is set up with; `null` or an object.
    pub config: Json,
    /// A title.
    pub title: Option<String>,
    /// Free-form data; an object.
    pub metadata: Json,
}

impl Default for NewConversation {
    fn default() -> Self {
        NewConversation {
            id: None,
            system_prompt: None,
            config: Json::Null,
            title: None,
            metadata: Json::Null,
        }
    }
}

impl NewConversation {
    /// A conversation with an id and nothing else.
    pub fn named(id: &str) -> Result<Self, NameError> {
        let id = ConversationId::new(id, &Limits::default())?;
        Ok(NewConversation { id: Some(id), ..NewConversation::default() })
    }
}

/// The same conversation under another root.
#[derive(Clone, Debug)]
pub struct Derive {
    /// The original.
    pub conversation: ConversationId,
    /// An id for a new conversation; ignored when an equal derivative is there already.
    pub id: Option<ConversationId>,
    /// The new system prompt.
    pub system_prompt: Option<String>,
    /// The new configuration; the original's when it is not given.
    pub config: Option<Json>,
    /// Takes over the path up to this turn.
    pub at: Option<Reference>,
}

/// What may change of a conversation. `None` leaves a field as it is.
#[derive(Clone, Debug, Default)]
pub struct ConversationPatch {
    /// `Some(None)` clears it.
    pub title: Option<Option<String>>,
    /// Replaces the whole object.
    pub metadata: Option<Json>,
    /// Hides it, or shows it again.
    pub archived: Option<bool>,
    /// Replaces a title that is set already.
    pub force: bool,
}

/// What to do when a branch does not end where the caller thought.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnConflict {
    /// Answer `conflict` with the actual tip.
    #[default]
    Refuse,
    /// Append where the caller thought, on a new branch `{branch}-1`, `{branch}-2` …, numbered
    /// like a fork without a name.
    Fork,
}

/// Messages to be appended.
#[derive(Clone, Debug)]
pub struct Append {
    /// Where to.
    pub conversation: ConversationId,
    /// In order; at least one.
    pub messages: Vec<Message>,
    /// Where to start: a turn or `root`; the branch's tip without it.
    pub parent: Option<Reference>,
    /// Which tip follows, by name or id; `main` without it.
    pub branch: Option<String>,
    /// Where the caller thinks that the branch ends.
    pub expected_tip: Option<Reference>,
    /// What to do when it does not.
    pub on_conflict: OnConflict,
    /// Whether turns that are there already are taken instead of made again.
    pub reuse: bool,
}

impl Append {
    /// Messages for the tip of `main`.
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

    /// Starting from the root, as clients do that send the whole list each time.
    pub fn from_root(self) -> Self {
        Append { parent: Reference::parse("root").ok(), ..self }
    }

    /// Starting from a turn, for a branch.
    pub fn under(self, parent: Reference, branch: &str) -> Self {
        Append { parent: Some(parent), branch: Some(branch.to_owned()), ..self }
    }
}

/// Where a fork is cut.
#[derive(Clone, Debug)]
pub enum ForkPoint {
    /// With this turn; `root` for an empty branch.
    At(Reference),
    /// Without it.
    Before(Reference),
}

/// A branch to be made.
#[derive(Clone, Debug)]
pub struct Fork {
    /// The conversation in which names are looked up; ids and hashes do without.
    pub conversation: Option<ConversationId>,
    /// Where.
    pub point: ForkPoint,
    /// A name. Without it `fork-1`, `fork-2` …: the smallest that is free, as long as fewer than
    /// sixteen are taken; behind these one that follows a taken one, so that gaps which removed
    /// branches left may stay.
    pub name: Option<Name>,
}

/// A turn by reference, in a conversation where names need one.
#[derive(Clone, Debug)]
pub struct TurnRef {
    /// The conversation in which hashes and names are looked up.
    pub conversation: Option<ConversationId>,
    /// The turn.
    pub turn: Reference,
}

impl TurnRef {
    /// A turn that needs no conversation to be found: an id, or a hash that only one has.
    pub fn of(turn: impl Into<Reference>) -> Self {
        TurnRef { conversation: None, turn: turn.into() }
    }

    /// A turn of a conversation.
    pub fn within(conversation: ConversationId, turn: impl Into<Reference>) -> Self {
        TurnRef { conversation: Some(conversation), turn: turn.into() }
    }
}

/// Another version of a turn.
#[derive(Clone, Debug)]
pub struct Edit {
    /// The turn; it stays as it is.
    pub turn: TurnRef,
    /// What the new version says.
    pub body: Body,
    /// The branch that moves to it.
    pub branch: Option<String>,
    /// Whether an equal sibling is taken instead of making one more.
    pub reuse: bool,
}

/// Another answer of a model, beside one of its answers.
#[derive(Clone, Debug)]
pub struct Regenerate {
    /// The id that the new turn has.
    pub id: TurnId,
    /// The answer that there is; it stays as it is.
    pub turn: TurnRef,
    /// The new one, of an assistant.
    pub message: Message,
    /// The branch that moves to it.
    pub branch: Option<String>,
}

/// A turn to be shown as two.
#[derive(Clone, Debug)]
pub struct SplitTurn {
    /// The turn.
    pub turn: TurnRef,
    /// Unicode scalar values that the first half keeps.
    pub offset: usize,
}

/// What goes with a deleted turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeleteMode {
    /// Everything below it.
    Cascade,
    /// Nothing; the children show under the parent.
    Reparent,
}

/// A turn to be deleted.
#[derive(Clone, Debug)]
pub struct Delete {
    /// The turn.
    pub turn: TurnRef,
    /// What goes with it.
    pub mode: DeleteMode,
    /// Also when something from elsewhere points at it.
    pub force: bool,
    /// Only say what would go.
    pub dry_run: bool,
}

/// A branch to be moved back or forward on its line.
#[derive(Clone, Debug)]
pub struct MoveBranch {
    /// The conversation.
    pub conversation: ConversationId,
    /// The branch, by name or id.
    pub branch: String,
    /// Where to. Restoring without it takes the last revert back.
    pub to: Option<Reference>,
    /// Where the caller thinks that the branch ends.
    pub expected_tip: Option<Reference>,
}

/// A change of a turn's metadata. `None` leaves a key as it is.
#[derive(Clone, Debug, Default)]
pub struct MetadataPatch {
    /// `Some(None)` clears it.
    pub title: Option<Option<String>>,
    /// `Some(None)` clears it.
    pub auto_title: Option<Option<String>>,
    /// Labels to add.
    pub add_tags: Vec<String>,
    /// Labels to remove.
    pub remove_tags: Vec<String>,
    /// Replaces all labels.
    pub tags: Option<Vec<String>>,
    /// Replaces it; `null` clears it.
    pub custom_data: Option<Json>,
    /// Replaces it; `null` clears it.
    pub source_info: Option<Json>,
    /// Replaces a title that is set already.
    pub force: bool,
}

/// Which part of a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Selection {
    /// From the root on.
    #[default]
    Whole,
    /// The last turns of it.
    Last(usize),
}

/// A path to be read, root first.
#[derive(Clone, Debug)]
pub struct PathQuery {
    /// The conversation in which names are looked up.
    pub conversation: Option<ConversationId>,
    /// Where it ends: a turn, a branch, a bookmark; the tip of `main` without it.
    pub to: Option<Reference>,
    /// Which part of it.
    pub selection: Selection,
    /// Goes on behind an earlier page.
    pub cursor: Option<String>,
    /// Turns in this page; the limit for pages without it.
    pub limit: Option<usize>,
}

impl PathQuery {
    /// The path to the tip of `main`, one page.
    pub fn of(conversation: ConversationId) -> Self {
        PathQuery {
            conversation: Some(conversation),
            to: None,
            selection: Selection::Whole,
            cursor: None,
            limit: None,
        }
    }

    /// The path to a turn, branch or bookmark.
    pub fn to(self, to: impl Into<Reference>) -> Self {
        PathQuery { to: Some(to.into()), ..self }
    }
}

/// The turns around one turn.
#[derive(Clone, Debug)]
pub struct WindowQuery {
    /// The turn in the middle.
    pub turn: TurnRef,
    /// The branch whose line is followed behind the turn; without it, the first branch by name
    /// whose line holds the turn, else the first children.
    pub branch: Option<String>,
    /// Turns before it.
    pub before: usize,
    /// Turns behind it.
    pub after: usize,
}

/// The tree without its content.
#[derive(Clone, Debug)]
pub struct TopologyQuery {
    /// The conversation.
    pub conversation: ConversationId,
    /// Only what lies at and below this turn.
    pub under: Option<Reference>,
    /// Goes on behind an earlier page.
    pub cursor: Option<String>,
    /// Rows in this page; the limit for pages without it.
    pub limit: Option<usize>,
    /// Also what is deleted, marked so.
    pub include_deleted: bool,
}

impl TopologyQuery {
    /// The whole tree, first page.
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

/// The tree at a glance.
#[derive(Clone, Debug)]
pub struct OutlineQuery {
    /// The conversation.
    pub conversation: ConversationId,
    /// Only what was added or renamed behind this operation of its log, where that is all that
    /// happened.
    pub since: Option<u64>,
    /// Goes on behind an earlier page.
    pub cursor: Option<String>,
    /// Rows in this page; [`OUTLINE_ROWS`](crate::OUTLINE_ROWS) without it, and at most.
    pub rows: Option<usize>,
}

impl OutlineQuery {
    /// All of it.
    pub fn of(conversation: ConversationId) -> Self {
        OutlineQuery { conversation, since: None, cursor: None, rows: None }
    }
}

/// Which conversations, the one that people were last at first.
#[derive(Clone, Debug, Default)]
pub struct RecentQuery {
    /// Also hidden ones.
    pub include_archived: bool,
    /// Only those whose title or id has each of these words somewhere, whatever their case.
    pub words: Option<String>,
    /// Only those whose metadata has this among its `tags`.
    pub tag: Option<String>,
    /// Only those whose metadata is as wanted.
    pub metadata: Option<WantedMetadata>,
}

/// What a listing wants of metadata.
#[derive(Clone)]
pub struct WantedMetadata(pub Arc<dyn Fn(&Json) -> bool + Send + Sync>);

impl fmt::Debug for WantedMetadata {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WantedMetadata")
    }
}

/// A page of a listing.
#[derive(Clone, Debug, Default)]
pub struct Page {
    /// Goes on behind an earlier page.
    pub cursor: Option<String>,
    /// Rows in this page; the limit for pages without it.
    pub limit: Option<usize>,
}

/// Something to be erased for ever.
#[derive(Clone, Debug)]
pub struct Purge {
    /// What.
    pub target: PurgeTarget,
    /// The word that an earlier call without it answered: erasing asks twice.
    pub confirm: Option<String>,
}

/// What can be erased.
#[derive(Clone, Debug)]
pub enum PurgeTarget {
    /// What one turn says.
    Turn(TurnRef),
    /// Everything that a conversation says.
    Conversation(ConversationId),
    /// The bytes of a source and all that was learned from them.
    Source(SourceId),
}

/// Words to be looked for, and where.
#[derive(Clone, Debug, Default)]
pub struct SearchQuery {
    /// Words, `"phrases"`, beginnings (`word*`), `OR` between neighbours, `-` before what must
    /// not be there.
    pub words: String,
    /// Only in this conversation, also when it is archived.
    pub conversation: Option<ConversationId>,
    /// Only on the path of this branch: its name, with a conversation, or its id.
    pub branch: Option<String>,
    /// Only by this speaker.
    pub role: Option<Role>,
    /// Not earlier.
    pub from: Option<Timestamp>,
    /// Earlier than this.
    pub to: Option<Timestamp>,
    /// With all of these labels.
    pub tags: Vec<String>,
    /// Also in archived conversations.
    pub archived: bool,
    /// Goes on behind an earlier page of the same search.
    pub cursor: Option<String>,
    /// Hits in this page; 20 without it.
    pub limit: Option<usize>,
}

impl SearchQuery {
    /// Words, wherever they were said in the project.
    pub fn of(words: impl Into<String>) -> Self {
        SearchQuery { words: words.into(), ..SearchQuery::default() }
    }
}
