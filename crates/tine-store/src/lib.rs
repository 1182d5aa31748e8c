//! The storage interface of Tine.
//!
//! A [`Store`] keeps records and changes them in atomic transactions. It knows the records (turns,
//! branches, operations) and how to find them, but not what an append or a merge is. The rules are
//! in the engine, and run inside the transactions of a store: the strict [`memory`] store of this
//! crate, `tine-sqlite` or `tine-postgres`.
//!
//! Turns are stored in *segments*: linear runs in which every turn is the parent of the next. The
//! first child of a turn extends its segment, every further child starts a new one. A path is
//! therefore a few range scans, and a fork copies nothing.

#[cfg(feature = "contract")]
pub mod contract;
pub mod copy;
mod error;
pub mod families;
mod forward;
mod mailbox;
pub mod memory;
pub mod records;
pub mod scan;
mod search;
mod traits;

/// For the macros [`for_each_read`] and [`for_each_write`].
#[doc(hidden)]
pub use tine_core;

pub use error::StoreError;
pub use families::{
    CommitHead, CommitListing, CommitRecord, CommitSignature, ConversationTag, Edge, EntityRecord,
    Family, FamilyRecord, IndexChanges, IndexKey, IndexQuery, KEY_BYTES, KeyRange, KeyScan,
    ObservationMove, ObservationRecord, PendingErasure, PromptRecord, ReadFamilies, Record,
    RecordIndex, RecordKey, RecordQuery, RelationshipRecord, RingsRecord, RunRecord, SchemaRecord,
    SourceRecord, SyncMark, SyncMarks, WriteFamilies, index_changes,
};
pub use mailbox::Mailbox;
pub use memory::MemoryStore;
pub use records::*;
pub use search::{
    Index, IndexDocument, IndexMark, IndexState, Phrase, Ranked, SearchCandidate, SearchFilter,
    TextQuery,
};
pub use tine_core::DamagedRecord;
pub use traits::{
    Job, LostRecord, OpenMode, PackOptions, Packed, Read, Store, StoreCheck, Verdict, Write,
    required,
};

/// The result of a store's methods.
pub type Result<T> = std::result::Result<T, StoreError>;
