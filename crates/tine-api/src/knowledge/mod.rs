//! Knowledge: host turns, sources, interpretation runs, observations, entities, relationships.

mod entities;
mod forms;
mod relationships;
mod requests;
mod runs;
mod stored;

pub use entities::*;
pub use forms::EndIds;
pub(crate) use forms::RelationshipOfStore;
pub use relationships::*;
pub use requests::*;
pub use runs::*;
pub use stored::*;
pub use tine_core::facts::Source as SourceView;
