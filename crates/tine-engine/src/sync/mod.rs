//! Whole conversations out of a store and into another one, record by record.

mod delta;
mod export;
pub(crate) mod graft;
mod import;
mod knowledge;
mod peer;
mod receive;
mod sync_marks;

pub use delta::{Delta, DeltaScope};
pub use peer::{Peer, carry, pull};
pub(crate) use sync_marks::remember;
use tine_core::{
    BranchId, ConversationId, Json, Metadata, Name, OperationHash, ProjectId, Role, RootHash,
    SourceId, Status, Timestamp, TurnHash, TurnId,
};
use tine_store::{Content, DerivedFrom, Detail, HiddenBy, Idempotency, Record, Root, TurnOrigin};

/// One record of a bundle. A conversation comes first; its turns follow in the order in which
/// they were made, then everything else. Nothing in it depends on how a store lays things out.
#[derive(Clone, Debug, PartialEq)]
pub enum BundleRecord {
    /// Begins a conversation; everything up to the next one belongs to it.
    Conversation {
        /// Its project.
        project: ProjectId,
        /// Its id.
        id: ConversationId,
        /// The hash of its root.
        root_hash: RootHash,
        /// Its root; `None` once it was purged.
        root: Option<Root>,
        /// Its title.
        title: Option<String>,
        /// Free-form data.
        metadata: Json,
        /// When it was made.
        created_at: Timestamp,
        /// What it was derived from.
        derived_from: Option<DerivedFrom>,
        /// Whether it is archived.
        archived: bool,
    },
    /// A turn, also a hidden one.
    Turn {
        /// Its id.
        id: TurnId,
        /// Its hash.
        hash: TurnHash,
        /// Its raw parent; `None` is the root.
        parent: Option<TurnId>,
        /// Who spoke.
        role: Role,
        /// What was said, or the digest that is left of it.
        content: Content,
        /// The call that a tool turn answers.
        tool_call_id: Option<String>,
        /// When.
        created_at: Timestamp,
        /// Whether it is whole.
        status: Status,
        /// Title, tags and other data.
        metadata: Metadata,
        /// The operation that made it.
        operation: u64,
        /// Where it comes from.
        origin: TurnOrigin,
    },
    /// A turn that is shown as two.
    Split {
        /// The turn.
        whole: TurnId,
        /// Its first half.
        left: TurnId,
        /// Its second half.
        right: TurnId,
        /// The operation that split it.
        operation: u64,
    },
    /// A turn that is not shown, and with it, unless it went alone, everything below.
    Hidden {
        /// The turn.
        root: TurnId,
        /// Why.
        by: HiddenBy,
        /// The operation that hid it.
        operation: u64,
    },
    /// A branch.
    Branch {
        /// Its id.
        id: BranchId,
        /// Its name.
        name: Name,
        /// The turn it ends on; `None` is the root.
        tip: Option<TurnId>,
        /// The turn it was forked from.
        forked_from: Option<TurnId>,
        /// When it was made.
        created_at: Timestamp,
        /// Counts its changes.
        version: u64,
    },
    /// A bookmark.
    Bookmark {
        /// Its name.
        name: Name,
        /// The turn.
        turn: TurnId,
        /// When it was set.
        created_at: Timestamp,
    },
    /// One entry of the operation log.
    Operation {
        /// Its place, from 1.
        seq: u64,
        /// What was done.
        kind: String,
        /// By whom.
        actor: String,
        /// When.
        at: Timestamp,
        /// How; or the digest that is left of it.
        detail: Detail,
        /// The chain hash.
        hash: OperationHash,
        /// Whether it is undone at present.
        undone: bool,
        /// The caller's key.
        idempotency: Option<Idempotency>,
    },
    /// A record of a family: knowledge or a commit.
    Record(Record),
    /// Bytes of a source.
    Piece {
        /// The source.
        source: SourceId,
        /// Which piece, from 0.
        nth: u32,
        /// The bytes.
        bytes: Vec<u8>,
    },
}
