//! The pure part of Tine: ids, messages, canonical bytes, hashes, errors and limits.
//!
//! Everything here is a function of its arguments. There is no file, no socket, no clock,
//! no random number and no lock in this crate; callers provide those. There is no wire
//! form either, except the two that are part of the contract: a message as JSON and the
//! canonical bytes that are hashed.

pub mod commit;
pub mod conversation;
pub mod error;
pub mod facts;
pub mod hash;
pub mod ids;
pub mod inventory;
pub mod json;
pub mod limits;
pub mod message;
pub mod metadata;
pub mod reference;
pub mod request;
pub mod rings;
pub mod search_text;
pub mod sign;
pub mod text;
pub mod time;
pub mod tokenizer;
pub mod turn;
pub mod usage;
mod wire;

pub use commit::Commit;
pub use conversation::{DerivedFrom, Root};
pub use error::ErrorKind;
pub use hash::{CommitHash, Digest, OperationHash, RootHash, TurnHash};
pub use ids::{
    BranchId, ConversationId, EntityId, IdSource, InterpretationId, Name, ObservationId, ProjectId,
    SourceId, TurnId,
};
pub use inventory::{DamagedRecord, FeedPosition, Totals};
pub use json::Json;
pub use limits::Limits;
pub use message::{Body, Message, Role, Status};
pub use metadata::Metadata;
pub use reference::Reference;
pub use time::Timestamp;
pub use turn::{Content, TurnOrigin};
pub use usage::Usage;
