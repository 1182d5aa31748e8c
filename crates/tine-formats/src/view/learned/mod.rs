//! What was learned, and where from: sources, runs, observations, entities, relationships,
//! schemas; and the turns of hosts that track no branches.

mod entity;
mod relation;
mod run;
mod source;
mod turn;

pub use entity::*;
pub use relation::*;
pub use run::*;
pub use source::*;
pub use turn::*;
