//! Facts as pure data: schemas, entity identity, observations and their reduction.
//!
//! Nothing here reads or writes. A snapshot is a function of an entity's observations and of the
//! schemas that they name; neither the order in which they are given nor the time of asking has
//! a part in it.

pub mod builtin;
pub mod envelope;
pub mod identity;
pub mod observation;
pub mod reduce;
pub mod relation;
mod run;
pub mod schema;
pub mod slot;
mod source;

pub use envelope::Envelope;
pub use observation::{Observation, ObservationOrigin};
pub use reduce::{ObservationOrder, Snapshot, reduce};
pub use relation::{Endpoint, Relation};
pub use run::RunStatus;
pub use schema::{Field, FieldKind, Schema, SchemaError, Strategy};
pub use slot::Slot;
pub use source::Source;
