//! What was learned, and the turns of hosts that track no branches.
//!
//! Two documents say what this part must do, and each of their lines is a test:
//!
//! | unstructured provenance | test |
//! | --- | --- |
//! | §6, tests: an envelope stored makes a source | `runs::an_envelope_is_one_source_one_logged_run_and_observations_that_trace_to_it` |
//! | §6, tests: a run over it with the conversation's prompt | `leases::an_envelope_is_read_as_a_turn_and_other_text_as_a_document`; the prompt itself in `tine-llm` |
//! | §6, tests: observations are made | `runs::an_envelope_is_one_source_one_logged_run_and_observations_that_trace_to_it` |
//! | §6, tests: the key again answers with the same source | `seeds::an_envelope_with_its_key_again_is_the_same_source_turn_and_run`, `runs::a_repeated_key_answers_with_the_same_source_and_other_bytes_are_refused` |
//! | §6, tests: equal texts under two turn ids are two sources | `runs::equal_text_under_another_turn_id_is_another_source_and_another_run` |
//! | §6, contract: the envelope and its mime types | `seeds::both_mime_types_of_the_envelope_mean_the_same`, `edges::an_envelope_without_sound_ids_is_refused_and_leaves_nothing` |
//! | §3: attachments are sources that the turn names | `seeds::both_mime_types_of_the_envelope_mean_the_same`, `runs::attachments_become_embeds_once_and_unknown_ones_are_refused` |
//! | §5: the same bytes are the same source | `runs::bytes_of_any_size_come_back_and_are_kept_once`, `seeds::an_envelope_with_another_key_is_the_same_source_and_another_version_and_run` |
//! | §8, first: one source, one run with its settings logged, observations that trace to it | `runs::an_envelope_is_one_source_one_logged_run_and_observations_that_trace_to_it` |
//! | §8, second: the same content under another turn id, two sources and two runs | `runs::equal_text_under_another_turn_id_is_another_source_and_another_run` |
//! | §8, third: read again, a new run and new observations, the bytes unchanged | `runs::reading_a_source_again_is_a_new_run_and_leaves_the_bytes_alone`, `seeds::reading_again_adds_observations_and_leaves_the_old_ones_as_they_were` |
//!
//! | turn identity, success criteria | test |
//! | --- | --- |
//! | turns are restored with a key that varies and an identity that does not | `seeds::turns_are_restored_with_varying_keys_and_without_branches` |
//! | no branch is tracked | `host::the_tree_of_a_host_is_rebuilt_from_nothing_but_its_turns` |
//! | each store makes an observation | `contract_failures::a_b_a_gives_three_observations_and_a_snapshot_that_says_a`, `turns::sending_a_turn_again_moves_nothing_and_adds_an_observation` |
//! | the same logical turn is the same entity | `seeds::turns_are_restored_with_varying_keys_and_without_branches`, `edges::any_other_text_is_an_id_and_no_two_slots_meet` |
//! | the snapshot shows the latest, the list of observations everything | `host::the_tree_of_a_host_is_rebuilt_from_nothing_but_its_turns`, `silent::slots_match_the_tree_after_any_sequence_of_operations` |
//! | overwriting between branches is acceptable, and nothing is lost by it | `seeds::a_snapshot_is_the_last_store_whatever_its_branch`, `silent::slots_match_the_tree_after_any_sequence_of_operations` |
//! | relationships are of the eight types; a replacement SUPERSEDES | `facts::only_the_eight_types_of_relationship_are_taken`, `turns::a_turn_that_replaces_another_supersedes_it` |
//! | instructions teach it | on the surfaces, which have none yet |
//!
//! The holes in the determinism of Neotoma's snapshots are tests in `determinism`, its broken
//! promises in `contract_failures`.

mod across;
mod atomic;
pub(crate) mod cases;
mod checked;
mod contract_failures;
mod cost;
mod determinism;
mod edges;
mod erase;
mod evidence;
mod facts;
mod host;
mod leases;
mod meanwhile;
mod runs;
mod seeds;
mod silent;
mod store_all;
mod transfer;
mod turns;

use tine_core::json::{self, Json, Object};
use tine_core::{EntityId, Message};
use tine_engine::{
    AsOf, EntityView, NewFact, ObservationView, Page, StoreFacts, StoreTurn, StoredFacts,
    StoredTurn,
};

use crate::world::World;

impl World {
    /// Stores a message of a host's turn.
    fn store(&self, talk: &str, turn: &str, message: Message) -> StoredTurn {
        let request = StoreTurn::new(talk, turn, message);
        self.engine.store_turn(&self.call, request).expect("a turn that is stored")
    }

    fn entity(&self, id: EntityId) -> EntityView {
        self.engine.entity(&self.call, id, AsOf::default()).expect("an entity")
    }

    /// Everything that was observed of an entity.
    fn observed(&self, id: EntityId) -> Vec<ObservationView> {
        let page = self.engine.observations(&self.call, id, Page::default());
        page.expect("a page of observations").items
    }

    /// What the versions of a slot say, in the order in which they came.
    fn versions(&self, id: EntityId) -> Vec<String> {
        let said = |one: &ObservationView| match one.observation.fields.get("content") {
            Some(content) => content.as_str().unwrap_or("(blocks)").to_owned(),
            None => "(retraction)".to_owned(),
        };
        self.observed(id).iter().map(said).collect()
    }

    fn field(&self, id: EntityId, name: &str) -> Json {
        self.entity(id).snapshot.fields.get(name).cloned().unwrap_or(Json::Null)
    }

    fn facts(&self, facts: Vec<NewFact>) -> StoredFacts {
        let request = StoreFacts { entities: facts, ..StoreFacts::default() };
        self.engine.store_facts(&self.call, request).expect("facts that are stored")
    }
}

fn fields(text: &str) -> Object {
    match json::parse(text.as_bytes(), 16).expect("sound JSON") {
        Json::Object(fields) => fields,
        other => panic!("{other} is no object"),
    }
}

fn fact(entity_type: &str, text: &str) -> NewFact {
    NewFact::of(entity_type, fields(text))
}
