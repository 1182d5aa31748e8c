//! What was learned, and the turns of hosts that track no branches.

mod contract_failures;
mod erase;
mod facts;
mod runs;
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
