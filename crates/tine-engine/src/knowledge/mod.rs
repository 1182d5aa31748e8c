//! Knowledge and its origin: sources, runs over them, observations, entities, relationships; and
//! the turns of hosts that track no branches.
//!
//! Everything is kept in record families (`tine_store::families`), whose indexes the store
//! maintains. Invariants:
//!
//! - Sources and observations are only ever added; an erasure leaves their digests. What turns
//!   out wrong is corrected or retracted by a later observation.
//! - The fields of an entity are computed from its observations on every read, by the pure function
//!   of `tine_core::facts`. No snapshot is stored, so none can be stale.
//! - One store is one transaction and one operation of a log: that of its conversation, or the
//!   project's own. The findings of a run are stored in a transaction of their own.
//! - Versions of a slot hold no copy of the content: their fields are derived from their turn.
//!
//! Deliberately absent: asking models. An engine is given [`Interpreters`] from outside; only the
//! rules that are built in are always among them.

mod entities;
pub(crate) mod erase;
mod evidence;
mod facts;
mod pages;
mod placement;
mod provenance;
mod reader;
mod relations;
mod runs;
mod schemas;
pub(crate) mod slot_sync;
mod sources;
mod store_all;
pub(crate) mod turns;
mod work;

pub use runs::{Interpreters, RULES};

pub(crate) use entities::name;
pub(crate) use reader::{KnowledgeReader, has_merge_cycle, sealed};
pub(crate) use relations::references_to;
