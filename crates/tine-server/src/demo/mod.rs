//! The example conversation.
//!
//! - `story`: two people plan a trip ([`tell`]); `tine demo` shows its tree.
//! - `notes`: additions for the page ([`bundle`]): a branch with a table, code, thinking and a
//!   picture, facts with their evidence, and commits.
//!
//! Both use the operations of the engine with a clock of their own, so that every turn has the same
//! hash on every machine.

mod notes;
mod story;

use std::sync::Arc;

use tine_core::{ConversationId, Limits, ProjectId};
use tine_engine::{Call, Engine, SystemEntropy};
use tine_formats::bundle::{BundleError, write_bundle};
use tine_store::MemoryStore;

pub use story::{StoryClock, tell};

/// The id of the example conversation.
pub const CONVERSATION: &str = "tokyo-trip";

/// Why the example could not be created.
#[derive(Debug)]
pub enum DemoError {
    /// An operation failed.
    Engine(tine_engine::Error),
    /// The bundle could not be written.
    Bundle(BundleError),
}

impl From<tine_engine::Error> for DemoError {
    fn from(error: tine_engine::Error) -> Self {
        DemoError::Engine(error)
    }
}

impl From<BundleError> for DemoError {
    fn from(error: BundleError) -> Self {
        DemoError::Bundle(error)
    }
}

/// Returns the story and the notes as a bundle of one project.
pub fn bundle(project: &ProjectId) -> Result<Vec<u8>, DemoError> {
    let clock = Arc::new(StoryClock::default());
    let story_clock = Arc::clone(&clock);
    let (store, entropy) = (Arc::new(MemoryStore::new()), Arc::new(SystemEntropy));
    let engine = Engine::with(store, clock, entropy, Limits::default());
    let call = Call::by("demo").in_project(project.clone());
    let id = ConversationId::from_stored(CONVERSATION);
    tell(&engine, &call, &story_clock, &id)?;
    notes::tell(&engine, &call, &story_clock, &id)?;
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
    fn the_example_has_branches_commits_and_facts() {
        let engine = Engine::new(MemoryStore::new());
        let call = Call::by("test");
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
