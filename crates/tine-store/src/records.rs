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

/// A store's handle for a segment. Later segments have larger numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SegmentNo(pub i64);

/// Where a turn lies: its segment and its place in it, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TurnLoc {
    /// The segment.
    pub segment: SegmentNo,
    /// The place in it.
    pub index: u32,
}

impl TurnLoc {
    /// The place that the first child of this turn takes.
    pub fn next(self) -> TurnLoc {
        TurnLoc { index: self.index + 1, ..self }
    }
}

/// Turns that one segment holds at most; the next one starts a new segment.
pub const SEGMENT_TURNS: u32 = 1 << 20;

/// A namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Project {
    /// Its id.
    pub id: ProjectId,
    /// When it was made.
    pub created_at: Timestamp,
}

/// Whether a conversation is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Visibility {
    /// In every listing.
    #[default]
    Shown,
    /// Only in listings that ask for it.
    Archived,
    /// Its creation was undone: as if it were not there.
    Undone,
    /// No conversation at all: the log of what is done in the project outside of every
    /// conversation.
    ProjectLog,
}

impl Visibility {
    /// Whether there is a conversation that anybody could name.
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
    /// When it was made.
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

/// One message, one node.
#[derive(Clone, Debug, PartialEq)]
pub struct Turn {
    /// Where it lies.
    pub loc: TurnLoc,
    /// Its id.
    pub id: TurnId,
    /// Its hash.
    pub hash: TurnHash,
    /// Raw distance from the root, whose depth is 0.
    pub depth: u32,
    /// Who spoke.
    pub role: Role,
    /// What was said.
    pub content: Content,
    /// The call that a tool turn answers.
    pub tool_call_id: Option<String>,
    /// When.
    pub created_at: Timestamp,
    /// Whether it is whole.
    pub status: Status,
    /// What is known besides.
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
    /// The turn itself, kept and hidden behind its halves.
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
    /// Deleted with all below.
    Cascade,
    /// Deleted alone; the children show under the parent.
    Reparent,
    /// The operation that made them was undone.
    Undo,
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
    /// Why.
    pub by: HiddenBy,
    /// The turn that was named; the others lie below it.
    pub root: TurnLoc,
}

/// A movable tip.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Branch {
    /// Its conversation.
    pub conversation: ConversationKey,
    /// Its id, also when it is renamed.
    pub id: BranchId,
    /// Its name, unique in the conversation.
    pub name: Name,
    /// The turn it ends on; `None` is the root.
    pub tip: Option<TurnLoc>,
    /// The turn it was forked from.
    pub forked_from: Option<TurnId>,
    /// When it was made.
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
    /// Operation and payload of the first call.
    pub fingerprint: Digest,
    /// Its answer, without any content.
    pub answer: String,
}

/// The detail of an operation: what it did and how it is undone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Detail {
    /// Canonical JSON.
    Kept(String),
    /// Erased; the digest keeps the chain verifiable.
    Purged(Digest),
}

impl Detail {
    /// What the operation's hash covers.
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
    /// Its place in the conversation's log, from 1.
    pub seq: u64,
    /// What was done.
    pub kind: String,
    /// By whom.
    pub actor: String,
    /// When.
    pub at: Timestamp,
    /// How, and how it is undone.
    pub detail: Detail,
    /// The chain hash.
    pub hash: OperationHash,
    /// Whether it is undone at present.
    pub undone: bool,
    /// The caller's key, if there was one.
    pub idempotency: Option<Idempotency>,
}
