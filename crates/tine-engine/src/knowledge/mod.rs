//! What was learned, and where from: sources, runs over them, observations, entities,
//! relationships; and the turns of hosts that track no branches.
//!
//! Everything is kept in the store's ledger, as entries whose keys [`keys`] spells and whose
//! texts [`record`] reads. Invariants:
//!
//! - Sources and observations are only ever added; an erasure leaves their digests. What turns
//!   out wrong is corrected or retracted by a later observation.
//! - What holds of an entity is worked out from its observations whenever it is asked for, by
//!   the pure function of `tine_core::facts`. No snapshot is stored, so none can be stale.
//! - One store is one transaction and one operation of a log: that of its conversation, or the
//!   project's own. What a run finds lands in a transaction of its own.
//! - Versions of a slot hold no copy of what was said: their fields are what their turn says.
//!
//! Deliberately absent: asking models. An engine is given [`Interpreters`] from outside; only the
//! rules that are built in are always among them.

mod entities;
pub(crate) mod erase;
mod evidence;
mod facts;
pub(crate) mod keys;
mod ledger;
pub(crate) mod look_ups;
mod pages;
mod placing;
mod provenance;
mod record;
mod relations;
mod runs;
mod schemas;
mod sources;
pub(crate) mod step;
mod together;
pub(crate) mod turns;
mod work;

pub use runs::{Interpreters, RULES};

pub(crate) use entities::name;
pub(crate) use ledger::{Ledger, merges_in_a_circle, parse, put_observation, restore, sealed, set};
pub(crate) use record::{EntityRecord, SourceRecord};
pub(crate) use relations::references_to;
pub(crate) use runs::RunRecord;
