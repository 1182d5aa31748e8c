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
use tine_core::{Name, SourceId, Timestamp, TurnId};
use tine_store::{Branch, Conversation, HiddenBy, Operation, Record, Turn};

/// One record of a bundle. A conversation comes first; its turns follow in the order in which
/// they were made, then everything else. Nothing in it depends on how a store lays things out: the
/// handles of stores ([`ConversationKey`], [`TurnLoc`]) and the depths of turns are unset, and turns
/// are named by id.
///
/// [`ConversationKey`]: tine_store::ConversationKey
/// [`TurnLoc`]: tine_store::TurnLoc
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "the other fields are named after what they hold")]
pub enum BundleRecord {
    /// Begins a conversation, archived or shown; everything up to the next one belongs to it.
    Conversation(Conversation),
    /// A turn, also a hidden one, below its raw parent; `None` is the root.
    Turn {
        parent: Option<TurnId>,
        turn: Turn,
    },
    /// A turn that is shown as two.
    Split {
        whole: TurnId,
        left: TurnId,
        right: TurnId,
        operation: u64,
    },
    /// A turn that is not shown, and with it, unless it went alone, everything below.
    Hidden {
        root: TurnId,
        by: HiddenBy,
        operation: u64,
    },
    /// A branch and the turn at which it ends; `None` is the root.
    Branch {
        branch: Branch,
        tip: Option<TurnId>,
    },
    Bookmark {
        name: Name,
        turn: TurnId,
        created_at: Timestamp,
    },
    /// One entry of the operation log.
    Operation(Operation),
    /// A record of a family: knowledge or a commit.
    Record(Record),
    /// Bytes of a source. Pieces are numbered from 0.
    Piece {
        source: SourceId,
        nth: u32,
        bytes: Vec<u8>,
    },
}
