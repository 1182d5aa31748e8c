//! What restored turns cost, counted in records.

use std::sync::Arc;

use tine_core::{Body, EntityId, Json, Limits, Message};
use tine_engine::{
    AsOf, Call, Delete, DeleteMode, Edit, End, Engine, EntityQuery, FixedEntropy, ManualClock,
    NewFact, NewRelationship, Page, RelationshipQuery, StoreFacts, StoreTurn, TurnRef,
};
use tine_sqlite::SqliteStore;
use tine_store::{MemoryStore, Store};
use tine_testkit::stores::{CountingStore, RecordCost, TempFolder};

use super::fact;
use crate::world::{bot, start, user};

struct Rig {
    store: Arc<CountingStore>,
    engine: Engine,
    call: Call,
}

impl Rig {
    fn new(inner: Arc<dyn Store>) -> Self {
        let store = Arc::new(CountingStore::new(inner));
        let clock = Arc::new(ManualClock::new(start(), 1));
        let entropy = Arc::new(FixedEntropy::new(1));
        let engine = Engine::with(store.clone(), clock, entropy, Limits::default());
        Rig { store, engine, call: Call::by("tester") }
    }

    fn store(&self, turn: &str, message: Message) -> EntityId {
        let request = StoreTurn::new("chat", turn, message);
        self.engine.store_turn(&self.call, request).expect("a turn").entity
    }

    fn cost(&self, turn: &str, message: Message) -> RecordCost {
        self.store.cost_of(|| {
            self.store(turn, message);
        })
    }
}

/// A question and an answer each as the last and as the first of so many turns.
fn costs_at(rig: &Rig, turns: std::ops::Range<usize>) -> [RecordCost; 5] {
    for n in turns.clone().step_by(2) {
        rig.store(&n.to_string(), user(&format!("question {n}")));
        rig.store(&n.to_string(), bot(&format!("answer {n}")));
    }
    let (next, last) = (turns.end, turns.end - 2);
    [
        rig.cost(&next.to_string(), user(&format!("question {next}"))),
        rig.cost(&next.to_string(), bot(&format!("answer {next}"))),
        rig.cost(&next.to_string(), bot(&format!("answer {next}"))),
        rig.cost(&last.to_string(), user(&format!("question {last}"))),
        rig.cost("0", user("question 0")),
    ]
}

fn check_flat(inner: Arc<dyn Store>) {
    let rig = Rig::new(inner);
    let early = costs_at(&rig, 0..10);
    let late = costs_at(&rig, 12..1_000);
    let whats = ["a question", "an answer", "it again", "one before again", "the first again"];
    for (what, (early, late)) in whats.iter().zip(early.iter().zip(&late)) {
        println!("{what}: {early:?} at turn 10, {late:?} at turn 1,000");
        let within = |early: u64, late: u64| 10 * late <= 13 * early;
        assert!(
            within(early.read, late.read) && within(early.written, late.written),
            "{what}: {early:?} at turn 10, {late:?} at turn 1,000"
        );
        assert!(early.written > 0, "{what} was counted");
    }
}

#[test]
fn the_thousandth_restored_turn_costs_what_the_tenth_costs() {
    check_flat(Arc::new(MemoryStore::new()));
}

#[test]
fn the_thousandth_restored_turn_costs_no_more_in_the_embedded_store_either() {
    let folder = TempFolder::new();
    check_flat(Arc::new(SqliteStore::open(folder.path()).expect("a new store")));
}

/// Answers between the results of one long turn, as agents have them that work for hours.
#[test]
fn the_five_hundredth_answer_under_one_turn_id_costs_what_the_tenth_costs() {
    let folder = TempFolder::new();
    let rig = Rig::new(Arc::new(SqliteStore::open(folder.path()).expect("a new store")));
    rig.store("1", user("do it all"));
    let mut costs = Vec::new();
    for n in 0..500 {
        costs.push(rig.cost("1", bot(&format!("step {n}"))));
        rig.store("1", Message::tool(format!("call-{n}"), "done"));
    }
    let (early, late) = (costs[9], costs[499]);
    assert!(10 * late.read <= 13 * early.read, "{early:?} at first, {late:?} in the end");
    assert!(10 * late.written <= 13 * early.written, "{early:?} at first, {late:?} in the end");
}

/// A deletion looks at each version of a slot once, and so does taking it back.
#[test]
fn a_deletion_costs_as_much_for_each_of_many_versions_as_for_each_of_few() {
    let cost = |versions: u64| {
        let rig = Rig::new(Arc::new(MemoryStore::new()));
        let request = StoreTurn::new("chat", "1", user("question"));
        let question = rig.engine.store_turn(&rig.call, request).expect("a turn").turn.id;
        let request = StoreTurn::new("chat", "1", bot("version 0"));
        let first = rig.engine.store_turn(&rig.call, request).expect("a turn");
        for n in 1..versions {
            let body = Body::Text(format!("version {n}"));
            let (turn, branch) = (TurnRef::of(first.turn.id), Some("main".to_owned()));
            let edit = Edit { turn, body, branch, reuse: false };
            rig.engine.edit(&rig.call, edit).expect("an edit");
        }
        let (turn, mode) = (TurnRef::of(question), DeleteMode::Cascade);
        let delete = Delete { turn, mode, force: false, dry_run: false };
        let deleting = rig.store.cost_of(|| {
            rig.engine.delete(&rig.call, delete.clone()).expect("a deletion");
        });
        let restoring = rig.store.cost_of(|| {
            rig.engine.undo(&rig.call, &first.conversation, None).expect("an undo");
        });
        (deleting.read, restoring.read)
    };
    let (few, many) = (cost(50), cost(400));
    println!("{few:?} records for 50 versions, {many:?} for 400");
    assert!(many.0 <= 10 * few.0 && many.1 <= 10 * few.1, "{few:?} for 50, {many:?} for 400");
}

#[test]
fn a_page_of_a_listing_costs_what_it_shows() {
    let rig = Rig::new(Arc::new(MemoryStore::new()));
    let facts = |facts: Vec<NewFact>| {
        let request = StoreFacts { entities: facts, ..StoreFacts::default() };
        rig.engine.store_facts(&rig.call, request).expect("facts")
    };
    let ada = facts(vec![fact("person", r#"{"name":"Ada"}"#)]).entities[0].entity;
    let tasks = facts(
        (0..900)
            .map(|n| fact("task", &format!(r#"{{"title":"t{n}","due":"2025-03-01"}}"#)))
            .collect(),
    );
    let mut all = tasks.entities.iter();
    let mut relate = |count: usize| {
        let relationships = all
            .by_ref()
            .take(count)
            .map(|task| NewRelationship {
                relation: "DEPENDS_ON".to_owned(),
                source: End::Entity(ada),
                target: End::Entity(task.entity),
                metadata: Json::Null,
            })
            .collect();
        let request = StoreFacts { relationships, ..StoreFacts::default() };
        rig.engine.store_facts(&rig.call, request).expect("relationships");
    };
    relate(800);
    let page = || Page { limit: Some(5), cursor: None };
    let entities = rig.store.cost_of(|| {
        let query = EntityQuery { entity_type: Some("task".into()), ..EntityQuery::default() };
        rig.engine.entities(&rig.call, query, page()).expect("a page");
    });
    let dates = rig.store.cost_of(|| {
        rig.engine.timeline(&rig.call, None, None, page()).expect("a page");
    });
    let edges = rig.store.cost_of(|| {
        let query = RelationshipQuery::of(ada);
        rig.engine.relationships(&rig.call, query, page()).expect("a page");
    });
    for cost in [entities, dates, edges] {
        assert!(cost.read <= 100, "{cost:?} for five of hundreds");
    }
}

/// What holds of an entity is worked out once for a page of the timeline.
#[test]
fn a_timeline_costs_as_much_for_each_of_many_dates_as_for_each_of_few() {
    let cost = |dates: usize| {
        let rig = Rig::new(Arc::new(MemoryStore::new()));
        let dated = |n: usize| {
            let text = format!(r#"{{"name":"Ada","d{n}":"2025-03-01"}}"#);
            fact("person", &text)
        };
        let request =
            StoreFacts { entities: (0..dates).map(dated).collect(), ..StoreFacts::default() };
        rig.engine.store_facts(&rig.call, request).expect("facts");
        let cost = rig.store.cost_of(|| {
            let page = Page { limit: Some(1_000), cursor: None };
            let listed = rig.engine.timeline(&rig.call, None, None, page).expect("a page");
            assert_eq!(listed.items.len(), dates);
        });
        cost.read
    };
    let (few, many) = (cost(50), cost(400));
    assert!(many <= 10 * few, "{few} records for 50 dates, {many} for 400");
}

#[test]
fn a_slot_with_a_thousand_versions_is_read_at_once_and_stored_within_bounds() {
    let folder = TempFolder::new();
    let rig = Rig::new(Arc::new(SqliteStore::open(folder.path()).expect("a new store")));
    rig.store("1", user("question"));
    let request = StoreTurn::new("chat", "1", bot("version 0"));
    let first = rig.engine.store_turn(&rig.call, request).expect("a turn");
    let slot = first.entity;
    for n in 1..1_000 {
        let body = Body::Text(format!("version {n}"));
        let (turn, branch) = (TurnRef::of(first.turn.id), Some("main".to_owned()));
        let edit = Edit { turn, body, branch, reuse: false };
        rig.engine.edit(&rig.call, edit).expect("an edit");
    }
    let reading = rig.store.cost_of(|| {
        rig.engine.entity(&rig.call, slot, AsOf::default()).expect("an entity");
    });
    assert!(reading.read <= 40, "{reading:?} to read one of a thousand versions");
    // Earlier versions are compared one by one, at most a thousand of them:
    // for each its observation, its turn and where that lies, and once all that stand beside it.
    let new = rig.cost("1", bot("version 1000"));
    println!("the 1,001st version: {new:?}, and to read the slot {reading:?}");
    assert!(new.read <= 6 * 1_000, "{new:?} for the 1,001st version");
    assert!(new.written <= 20, "{new:?} for the 1,001st version");
    let again = rig.cost("1", bot("version 1000"));
    assert!(again.written <= 5 && again.read <= new.read, "{again:?} for the last one again");
}
