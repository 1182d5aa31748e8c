//! The records that a store keeps, in plain types.
//!
//! Keys ([`ConversationKey`], [`SegmentNo`], [`TurnLoc`]) are a store's own handles: short,
//! local, and never shown to a client or written to an export.

pub use tine_core::limits::PIECE_BYTES;
use tine_core::{
    BranchId, ConversationId, Digest, Json, Metadata, Name, OperationHash, ProjectId, Role,
    RootHash, Status, Timestamp, TurnHash, TurnId,
};
pub use tine_core::{Content, DerivedFrom, FeedPosition, Root, Totals, TurnOrigin};

/// A store's handle for a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConversationKey(pub i64);

impl ConversationKey {
    /// The handle in records that are in no store.
    pub const NONE: ConversationKey = ConversationKey(0);
}

/// A store's handle for a segment. Later segments have larger numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SegmentNo(pub i64);

/// The location of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TurnLoc {
    /// The segment.
    pub segment: SegmentNo,
    /// The index in the segment, from 0.
    pub index: u32,
}

impl TurnLoc {
    /// The location in turns that are in no store.
    pub const NONE: TurnLoc = TurnLoc { segment: SegmentNo(0), index: 0 };

    /// Returns the location of the turn's first child.
    pub fn next(self) -> TurnLoc {
        TurnLoc { index: self.index + 1, ..self }
    }
}

/// The maximum number of turns in a segment; the next one starts a new segment.
pub const SEGMENT_TURNS: u32 = 1 << 20;

/// A namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Project {
    /// The id.
    pub id: ProjectId,
    /// The time of creation.
    pub created_at: Timestamp,
}

/// Whether a conversation is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Visibility {
    /// In every listing.
    #[default]
    Shown = 0,
    /// Only in listings that ask for it.
    Archived = 1,
    /// Its creation was undone: it counts as missing.
    Undone = 2,
    /// Not a conversation: the log of operations on the project itself.
    ProjectLog = 3,
}

impl Visibility {
    /// Returns the number under which it is stored.
    pub fn code(self) -> u8 {
        self as u8
    }

    /// Returns the visibility with a number.
    pub fn from_code(code: i64) -> Option<Self> {
        let all = [Self::Shown, Self::Archived, Self::Undone, Self::ProjectLog];
        all.get(usize::try_from(code).ok()?).copied()
    }

    /// Returns whether the conversation can be referred to.
    pub fn is_there(self) -> bool {
        matches!(self, Visibility::Shown | Visibility::Archived)
    }
}

/// A conversation without its turns.
#[derive(Clone, Debug, PartialEq)]
pub struct Conversation {
    /// The store's handle.
    pub key: ConversationKey,
    /// Its project.
    pub project: ProjectId,
    /// Its id, unique in the project.
    pub id: ConversationId,
    /// The hash of its root.
    pub root_hash: RootHash,
    /// Its root; `None` once it was purged.
    pub root: Option<Root>,
    /// A title, stable once set.
    pub title: Option<String>,
    /// Free-form data, an object.
    pub metadata: Json,
    /// The time of creation.
    pub created_at: Timestamp,
    /// What it was derived from.
    pub derived_from: Option<DerivedFrom>,
    /// Whether it is shown.
    pub visibility: Visibility,
}

/// A linear run of turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Its number.
    pub no: SegmentNo,
    /// Its conversation.
    pub conversation: ConversationKey,
    /// The raw parent of its first turn; `None` is the root.
    pub parent: Option<TurnLoc>,
    /// The depth of its first turn.
    pub base_depth: u32,
}

/// A segment and how many turns it holds now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentExtent {
    /// The segment.
    pub segment: Segment,
    /// Its turns; a segment is never empty.
    pub turns: u32,
}

/// A message, and a node of the tree.
#[derive(Clone, Debug, PartialEq)]
pub struct Turn {
    /// The location.
    pub loc: TurnLoc,
    /// Its id.
    pub id: TurnId,
    /// Its hash.
    pub hash: TurnHash,
    /// The raw distance from the root, whose depth is 0.
    pub depth: u32,
    /// The role of the speaker.
    pub role: Role,
    /// The content.
    pub content: Content,
    /// The call that a tool turn answers.
    pub tool_call_id: Option<String>,
    /// The time.
    pub created_at: Timestamp,
    /// Whether it is complete.
    pub status: Status,
    /// Further data.
    pub metadata: Metadata,
    /// The operation, in its conversation's log, that made it.
    pub operation: u64,
    /// Where it comes from.
    pub origin: TurnOrigin,
}

/// A turn that is shown as two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Split {
    /// Its conversation.
    pub conversation: ConversationKey,
    /// The turn itself; its halves are shown in its place.
    pub whole: TurnLoc,
    /// The first half.
    pub left: TurnLoc,
    /// The second half, a child of the first; the whole's children follow it.
    pub right: TurnLoc,
    /// The operation that split it.
    pub operation: u64,
}

/// Why turns are not shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HiddenBy {
    /// Deleted with all descendants.
    Cascade = 0,
    /// Deleted alone; the children show under the parent.
    Reparent = 1,
    /// The operation that made them was undone.
    Undo = 2,
}

impl HiddenBy {
    /// Returns the number under which it is stored.
    pub fn code(self) -> u8 {
        self as u8
    }

    /// Returns the reason with a number.
    pub fn from_code(code: i64) -> Option<Self> {
        let all = [Self::Cascade, Self::Reparent, Self::Undo];
        all.get(usize::try_from(code).ok()?).copied()
    }
}

/// A run of hidden turns within one segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Hidden {
    /// Its conversation.
    pub conversation: ConversationKey,
    /// The segment.
    pub segment: SegmentNo,
    /// The first hidden index.
    pub from: u32,
    /// The last hidden index.
    pub to: u32,
    /// The operation that hid them.
    pub operation: u64,
    /// The reason.
    pub by: HiddenBy,
    /// The turn that was deleted or undone; the others are its descendants.
    pub root: TurnLoc,
}

/// A named, movable tip.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Branch {
    /// Its conversation.
    pub conversation: ConversationKey,
    /// Its id; it does not change when the branch is renamed.
    pub id: BranchId,
    /// Its name, unique in the conversation.
    pub name: Name,
    /// The turn at which it ends; `None` is the root.
    pub tip: Option<TurnLoc>,
    /// The turn it was forked from.
    pub forked_from: Option<TurnId>,
    /// The time of creation.
    pub created_at: Timestamp,
    /// Counts its changes.
    pub version: u64,
}

/// A name for a turn, unique in the project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bookmark {
    /// Its project.
    pub project: ProjectId,
    /// Its name.
    pub name: Name,
    /// The turn's conversation.
    pub conversation: ConversationKey,
    /// The turn.
    pub turn: TurnLoc,
    /// When it was set.
    pub created_at: Timestamp,
}

/// A key that makes a call safe to repeat, and what the first call answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Idempotency {
    /// The caller's key, unique in the project.
    pub key: String,
    /// The digest of operation and payload of the first call.
    pub fingerprint: Digest,
    /// The answer of the first call, without any content.
    pub answer: String,
}

/// The detail of an operation: its changes and how to undo them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Detail {
    /// Canonical JSON.
    Kept(String),
    /// Erased; the digest keeps the chain verifiable.
    Purged(Digest),
}

impl Detail {
    /// Returns the digest that the operation's hash covers.
    pub fn digest(&self) -> Digest {
        match self {
            Detail::Kept(text) => Digest::of(text.as_bytes()),
            Detail::Purged(digest) => *digest,
        }
    }
}

/// One entry of a conversation's operation log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    /// Its conversation.
    pub conversation: ConversationKey,
    /// The sequence number in the conversation's log, from 1.
    pub seq: u64,
    /// The kind of operation.
    pub kind: String,
    /// Who requested it.
    pub actor: String,
    /// The time.
    pub at: Timestamp,
    /// Its changes and how to undo them.
    pub detail: Detail,
    /// The chain hash.
    pub hash: OperationHash,
    /// Whether it is currently undone.
    pub undone: bool,
    /// The caller's idempotency key, if there was one.
    pub idempotency: Option<Idempotency>,
}
