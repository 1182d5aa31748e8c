//! The records that a store keeps, in plain types.
//!
//! Keys ([`ConversationKey`], [`SegmentNo`], [`TurnLoc`]) are a store's own handles: short,
//! local, and never shown to a client or written to an export.

use tine_core::facts::Slot;
use tine_core::{
    Body, BranchId, ConversationId, Digest, Json, Metadata, Name, OperationHash, ProjectId, Role,
    RootHash, Status, Timestamp, TurnHash, TurnId,
};

/// A store's handle for a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConversationKey(pub i64);

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

/// The root of a conversation; it never changes.
#[derive(Clone, Debug, PartialEq)]
pub struct Root {
    /// Rendered as a message of role `system`.
    pub system_prompt: Option<String>,
    /// Further configuration.
    pub config: Json,
}

/// Where a derived conversation comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DerivedFrom {
    /// The original, in the same project.
    pub conversation: ConversationId,
    /// The turn whose path was copied, if one was.
    pub turn: Option<TurnId>,
}

/// Whether a conversation is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Visibility {
    /// In every listing.
    #[default]
    Shown,
    /// Only in listings that ask for it.
    Archived,
    /// Its creation was undone: it counts as missing.
    Undone,
    /// Not a conversation: the log of operations on the project itself.
    ProjectLog,
}

impl Visibility {
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

/// The content of a turn, or what is left of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// The canonical content.
    Kept(Body),
    /// Erased; the digest is kept, so that the content is recognized and not imported again.
    Purged(Digest),
}

/// Where a turn comes from, if it was not simply appended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// The turn that it is an edited version of.
    pub edited_from: Option<TurnId>,
    /// The turn that it is a copy of.
    pub derived_from: Option<TurnId>,
    /// The turn that it is one half of.
    pub part_of: Option<TurnId>,
    /// The slot of the host's chat that it is a version of; role and tool call are the turn's own.
    pub slot: Option<Slot>,
}

/// A slot follows the ids; it takes role and tool call from its turn.
const SLOT_BIT: u8 = 1 << 3;

impl Origin {
    /// Encodes the origin for stores; `None` for a turn that was simply appended.
    pub fn to_bytes(&self) -> Option<Vec<u8>> {
        let fields = [self.edited_from, self.derived_from, self.part_of];
        let mut bytes = vec![0];
        for (bit, id) in fields.iter().enumerate() {
            if let Some(id) = id {
                bytes[0] |= 1 << bit;
                bytes.extend_from_slice(id.as_bytes());
            }
        }
        if let Some(slot) = &self.slot {
            bytes[0] |= SLOT_BIT;
            bytes.extend_from_slice(&slot.part.to_le_bytes());
            bytes.extend_from_slice(slot.turn_id.as_bytes());
        }
        (bytes[0] != 0).then_some(bytes)
    }

    /// Decodes the origin of a turn with this role and tool call.
    pub fn from_bytes(bytes: &[u8], role: Role, tool_call_id: Option<&str>) -> Option<Origin> {
        let (flags, mut rest) = bytes.split_first()?;
        let mut fields = [None; 3];
        for (bit, field) in fields.iter_mut().enumerate() {
            if flags >> bit & 1 == 1 {
                let (id, tail) = rest.split_first_chunk::<16>()?;
                *field = Some(TurnId::from_bytes(*id));
                rest = tail;
            }
        }
        let [edited_from, derived_from, part_of] = fields;
        let mut slot = None;
        if flags & SLOT_BIT != 0 {
            let (part, turn_id) = rest.split_first_chunk::<4>()?;
            slot = Some(Slot {
                turn_id: String::from_utf8(turn_id.to_vec()).ok()?,
                role,
                tool_call_id: tool_call_id.map(str::to_owned),
                part: u32::from_le_bytes(*part),
            });
            rest = &[];
        }
        rest.is_empty().then_some(Origin { edited_from, derived_from, part_of, slot })
    }
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
    pub origin: Origin,
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

/// A position in the change feed of the whole store. An operation that is committed later never
/// appears before a position that was already returned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FeedPosition(pub u64);

/// Counts of a store's records, and its size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Projects.
    pub projects: u64,
    /// Conversations, also hidden ones.
    pub conversations: u64,
    /// Turns, also hidden ones.
    pub turns: u64,
    /// Branches.
    pub branches: u64,
    /// Bookmarks.
    pub bookmarks: u64,
    /// Operations.
    pub operations: u64,
    /// The size on disk; 0 for an in-memory store and in a write transaction of the embedded store.
    pub disk_bytes: u64,
}

/// The size of a piece of a source; only the last piece is shorter.
pub const PIECE_BYTES: usize = 256 << 10;
