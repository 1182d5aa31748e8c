//! What restored turns cost, counted in records.

use std::sync::Arc;

use tine_core::{Body, EntityId, Limits, Message};
use tine_engine::{AsOf, Call, Edit, Engine, FixedEntropy, ManualClock, StoreTurn, TurnRef};
use tine_store::{EmbeddedStore, MemoryStore, Store};
use tine_testkit::stores::{Cost, Counting, TempFolder};

use crate::world::{bot, start, user};

struct Rig {
    store: Arc<Counting>,
    engine: Engine,
    call: Call,
}

impl Rig {
    fn new(inner: Arc<dyn Store>) -> Self {
        let store = Arc::new(Counting::new(inner));
        let clock = Arc::new(ManualClock::new(start(), 1));
        let entropy = Arc::new(FixedEntropy::new(1));
        let engine = Engine::with(store.clone(), clock, entropy, Limits::default());
        Rig { store, engine, call: Call::by("tester") }
    }

    fn store(&self, turn: &str, message: Message) -> EntityId {
        let request = StoreTurn::new("chat", turn, message);
        self.engine.store_turn(&self.call, request).expect("a turn").entity
    }

    fn cost(&self, turn: &str, message: Message) -> Cost {
        self.store.cost_of(|| {
            self.store(turn, message);
        })
    }
}

/// A question and an answer each as the last and as the first of so many turns.
fn costs_at(rig: &Rig, turns: std::ops::Range<usize>) -> [Cost; 5] {
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
    check_flat(Arc::new(EmbeddedStore::open(folder.path()).expect("a new store")));
}

/// Answers between the results of one long turn, as agents have them that work for hours.
#[test]
fn the_five_hundredth_answer_under_one_turn_id_costs_what_the_tenth_costs() {
    let folder = TempFolder::new();
    let rig = Rig::new(Arc::new(EmbeddedStore::open(folder.path()).expect("a new store")));
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

#[test]
fn a_slot_with_a_thousand_versions_is_read_at_once_and_stored_within_bounds() {
    let folder = TempFolder::new();
    let rig = Rig::new(Arc::new(EmbeddedStore::open(folder.path()).expect("a new store")));
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
    // Whether a version was said before is told by looking at them, at most a thousand of them:
    // for each its observation, its turn and where that lies, and once all that stand beside it.
    let new = rig.cost("1", bot("version 1000"));
    println!("the 1,001st version: {new:?}, and to read the slot {reading:?}");
    assert!(new.read <= 6 * 1_000, "{new:?} for the 1,001st version");
    assert!(new.written <= 20, "{new:?} for the 1,001st version");
    let again = rig.cost("1", bot("version 1000"));
    assert!(again.written <= 5 && again.read <= new.read, "{again:?} for the last one again");
}
