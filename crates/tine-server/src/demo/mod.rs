//! An example of a conversation, to look at and play with.
//!
//! - `story`: two people plan a trip ([`tell`]); its tree is what `tine demo` shows.
//! - `notes`: what the page shows besides ([`bundle`]): a branch with a table, code, thoughts and a
//!   picture, facts that lead back to what was said, and commits.
//!
//! Both are told through the engine's own operations by a clock of their own, so that every turn
//! has the same hash on every machine.

mod notes;
mod story;

use std::sync::Arc;

use tine_core::{ConversationId, Limits, ProjectId};
use tine_engine::{Call, Engine, SystemEntropy};
use tine_formats::bundle::{BundleError, write_bundle};
use tine_store::MemoryStore;

pub use story::{StoryClock, tell};

/// The conversation that the story is told in.
pub const CONVERSATION: &str = "tokyo-trip";

/// Why there is no example.
#[derive(Debug)]
pub enum Untold {
    /// The story could not be told.
    Engine(tine_engine::Error),
    /// It could not be written down.
    Bundle(BundleError),
}

impl From<tine_engine::Error> for Untold {
    fn from(error: tine_engine::Error) -> Self {
        Untold::Engine(error)
    }
}

impl From<BundleError> for Untold {
    fn from(error: BundleError) -> Self {
        Untold::Bundle(error)
    }
}

/// The story and the notes, as a bundle of one project.
pub fn bundle(project: &ProjectId) -> Result<Vec<u8>, Untold> {
    let clock = Arc::new(StoryClock::default());
    let told = Arc::clone(&clock);
    let (store, entropy) = (Arc::new(MemoryStore::new()), Arc::new(SystemEntropy));
    let engine = Engine::with(store, clock, entropy, Limits::default());
    let call = Call::by("demo").in_project(project.clone());
    let id = ConversationId::from_stored(CONVERSATION);
    tell(&engine, &call, &told, &id)?;
    notes::tell(&engine, &call, &told, &id)?;
    let mut bundle = Vec::new();
    write_bundle(&engine, &call, &[id], &mut bundle)?;
    Ok(bundle)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tine_engine::{CommitQuery, EntityQuery, Page};
    use tine_formats::bundle::read_bundle;

    #[test]
    fn the_example_has_branches_commits_and_facts_and_is_whole() {
        let engine = Engine::new(MemoryStore::new());
        let call = Call::by("somebody");
        let bundle = bundle(&call.project).expect("a story");
        read_bundle(&engine, None, &mut bundle.as_slice()).expect("it can be imported");
        let id = ConversationId::from_stored(CONVERSATION);
        let branches = engine.branches(&call, &id).expect("branches");
        let names: Vec<&str> = branches.iter().map(|branch| branch.name.as_str()).collect();
        assert_eq!(names, ["autumn", "berlin", "main", "notes", "ryokan"]);
        let commits = engine.commits(&call, CommitQuery::default(), Page::default());
        assert_eq!(commits.expect("commits").items.len(), 5);
        let people =
            EntityQuery { entity_type: Some("person".to_owned()), ..EntityQuery::default() };
        let people = engine.entities(&call, people, Page::default()).expect("entities");
        assert!(
            people.items.iter().any(|it| it.name.as_deref() == Some("Anna Berg")),
            "{people:?}"
        );
    }
}
