//! Commits, and what can be done with them.
//!
//! | promise | test |
//! | --- | --- |
//! | a commit's hash is that of the contract, recomputed from its JSON | `making::the_hash_covers_everything_but_itself` |
//! | the first commit of a new branch has the last one before the fork as its parent | `making::the_first_commit_of_a_branch_builds_on_the_last_before_the_fork` |
//! | a reversed or broken window is refused | `making::a_window_that_is_no_stretch_of_one_path_is_refused` |
//! | one side changes the budget, the other the city: no conflict; a deletion stays deleted | `merging::sides_that_change_different_fields_never_conflict` |
//! | what no rule decides is a conflict, carried on until it is decided | `merging::a_conflict_is_kept_until_it_is_resolved` |

mod commit_maintenance;
mod comparing;
mod cost;
mod making;
mod merging;
mod random;

use tine_core::json::{Json, Object};
use tine_core::{ConversationId, EntityId, Reference, TurnId};
use tine_engine::{CommitView, MergeBranches, Merged, NewCommit, NewFact, StoreFacts, Summary};

use crate::world::World;

impl World {
    /// A commit of what is new on a branch.
    pub fn commit(&self, talk: &ConversationId, branch: &str, message: &str) -> CommitView {
        let request = NewCommit::of(talk.clone(), message).on(branch);
        self.engine.commit(&self.call, request).expect("a commit that is made")
    }

    /// Something known of the trip, said by a turn.
    pub fn trip(&self, turn: TurnId, fields: &[(&str, Json)]) -> EntityId {
        self.try_trip(turn, fields).expect("a fact that is stored")
    }

    pub fn try_trip(&self, turn: TurnId, fields: &[(&str, Json)]) -> tine_engine::Result<EntityId> {
        let mut members = Object::new();
        members.insert("name", "the trip".into());
        for (name, value) in fields {
            members.insert(*name, value.clone());
        }
        let fact = NewFact { turn: Some(Reference::from(turn)), ..NewFact::of("trip", members) };
        let request = StoreFacts { entities: vec![fact], ..StoreFacts::default() };
        Ok(self.engine.store_facts(&self.call, request)?.entities[0].entity)
    }

    pub fn merging(&self, talk: &ConversationId, from: &str, into: &str) -> MergeBranches {
        MergeBranches {
            conversation: talk.clone(),
            from: from.to_owned(),
            into: Some(into.to_owned()),
            message: None,
            author: None,
            summary: Summary::None,
            dry_run: false,
        }
    }

    pub fn merge(&self, talk: &ConversationId, from: &str, into: &str) -> Merged {
        let request = self.merging(talk, from, into);
        self.engine.merge(&self.call, request).expect("a merge that is made")
    }
}
