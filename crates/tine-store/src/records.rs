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

/// What a conversation begins with; it never changes.
#[derive(Clone, Debug, PartialEq)]
pub struct Root {
    /// Rendered as the message of role `system`.
    pub system_prompt: Option<String>,
    /// Whatever else the conversation was set up with.
    pub config: Json,
}

/// Where a derived conversation comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DerivedFrom {
    /// The original, in the same project.
    pub conversation: ConversationId,
    /// The turn whose path was taken over, if one was.
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

/// What a turn says, or what is left of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// The canonical content.
    Kept(Body),
    /// Erased; the digest stays, so that it is recognised and not brought back.
    Purged(Digest),
}

/// Where a turn comes from, if it was not simply said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// The turn that it is an edited version of.
    pub edited_from: Option<TurnId>,
    /// The turn that it is a copy of.
    pub derived_from: Option<TurnId>,
    /// The turn that it is one half of.
    pub part_of: Option<TurnId>,
    /// The host's place in its chat that it is a version of; role and call are the turn's own.
    pub slot: Option<Slot>,
}

/// Behind the ids, to the end: a slot, which shares role and call with its turn.
const SLOT_BIT: u8 = 1 << 3;

impl Origin {
    /// A short form for stores; nothing for a turn that was simply said.
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

    /// Reads the short form, for the turn that has it.
    pub fn from_bytes(bytes: &[u8], role: Role, tool_call_id: Option<&str>) -> Option<Origin> {
        let (flags, mut rest) = bytes.split_first()?;
        let mut fields = [None; 3];
        for (bit, field) in fields.iter_mut().enumerate() {
            if flags >> bit & 1 == 1 {
                let (id, behind) = rest.split_first_chunk::<16>()?;
                *field = Some(TurnId::from_bytes(*id));
                rest = behind;
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
    pub origin: Origin,
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

/// A place in the change feed of the whole store. An operation that is committed later never
/// appears before a place that was already handed out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FeedPosition(pub u64);

/// How much a store holds.
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
    /// Bytes on disk; 0 for a store without one.
    pub disk_bytes: u64,
}

/// Bytes of a source in one piece; only the last piece is shorter.
pub const PIECE_BYTES: usize = 256 << 10;
