//! What an append and a fork cost: counted in records, at the beginning and far into a
//! conversation.

use std::sync::Arc;

use tine_core::{ConversationId, Limits, TurnId};
use tine_engine::{Append, Call, Engine, FixedEntropy, Fork, ForkPoint, ManualClock, MoveBranch};
use tine_sqlite::SqliteStore;
use tine_store::{MemoryStore, Store};
use tine_testkit::stores::{CountingStore, RecordCost, TempFolder};

use crate::world::{bot, ids, spoken, start, user};

struct Rig {
    store: Arc<CountingStore>,
    engine: Engine,
    call: Call,
    talk: ConversationId,
}

fn rig(inner: Arc<dyn Store>) -> Rig {
    let store = Arc::new(CountingStore::new(inner));
    let clock = Arc::new(ManualClock::new(start(), 1));
    let entropy = Arc::new(FixedEntropy::new(1));
    let engine = Engine::with(store.clone(), clock, entropy, Limits::default());
    let call = Call::by("tester");
    let new = tine_engine::NewConversation::named("talk").expect("a sound id");
    let talk = engine.create_conversation(&call, new).expect("a conversation").id;
    Rig { store, engine, call, talk }
}

impl Rig {
    fn grow(&self, turns: usize) -> Vec<TurnId> {
        let texts: Vec<String> = (0..turns).map(|n| format!("filler {n}")).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let request = Append::to(self.talk.clone(), spoken(&texts));
        ids(&self.engine.append(&self.call, request).expect("an append"))
    }

    /// The costs of an append at the tip, of one that makes a sibling, of a fork and of a move.
    fn costs(&self, tip: TurnId, n: usize) -> [RecordCost; 4] {
        let append = || {
            let request = Append::to(self.talk.clone(), vec![user(&format!("next {n}"))]);
            self.engine.append(&self.call, request).expect("an append");
        };
        let sibling = || {
            let request = Append::to(self.talk.clone(), vec![bot(&format!("other {n}"))]);
            let request = request.under(tip.into(), &format!("side {n}"));
            self.engine.append(&self.call, request).expect("an append");
        };
        let fork = || {
            let name = tine_core::Name::new(format!("fork at {n}"), &Limits::default()).ok();
            let point = ForkPoint::At(tip.into());
            let conversation = Some(self.talk.clone());
            let fork = Fork { conversation, point, name };
            self.engine.fork(&self.call, fork).expect("a fork");
        };
        let back = || {
            let request = MoveBranch {
                conversation: self.talk.clone(),
                branch: "main".to_owned(),
                to: Some(tip.into()),
                expected_tip: None,
            };
            self.engine.revert(&self.call, request).expect("a revert");
        };
        [
            self.store.cost_of(append),
            self.store.cost_of(sibling),
            self.store.cost_of(fork),
            self.store.cost_of(back),
        ]
    }
}

fn check_flat(inner: Arc<dyn Store>) {
    let rig = rig(inner);
    let early = rig.grow(10);
    let at_10 = rig.costs(early[9], 10);
    let mut tip = early[9];
    for _ in 0..10 {
        tip = *rig.grow(10_000).last().expect("many turns");
    }
    let at_100_000 = rig.costs(tip, 100_000);
    for (what, (early, late)) in
        ["append", "sibling", "fork", "revert"].iter().zip(at_10.iter().zip(&at_100_000))
    {
        assert!(
            late.read <= early.read && late.written <= early.written,
            "{what}: {early:?} at turn 10, {late:?} at turn 100,000"
        );
        assert!(early.written > 0, "{what} was counted");
    }
}

#[test]
fn append_and_fork_touch_no_more_records_at_turn_100_000_than_at_turn_10() {
    check_flat(Arc::new(MemoryStore::new()));
}

#[test]
fn append_and_fork_touch_no_more_records_in_the_embedded_store_either() {
    let folder = TempFolder::new();
    check_flat(Arc::new(SqliteStore::open(folder.path()).expect("a new store")));
}

#[test]
fn append_does_not_grow_with_the_number_of_other_conversations_or_branches() {
    let rig = rig(Arc::new(MemoryStore::new()));
    let tip = *rig.grow(10).last().expect("turns");
    // After the first round the tip has children, so that every further one makes a sibling.
    rig.costs(tip, 0);
    let before = rig.costs(tip, 1);
    for n in 0..200 {
        let name = tine_core::Name::new(format!("branch {n}"), &Limits::default()).ok();
        let fork = Fork { conversation: None, point: ForkPoint::At(tip.into()), name };
        rig.engine.fork(&rig.call, fork).expect("a fork");
        let new = tine_engine::NewConversation::named(&format!("talk {n}")).expect("a sound id");
        rig.engine.create_conversation(&rig.call, new).expect("a conversation");
    }
    let after = rig.costs(tip, 2);
    // The tip has two more children than before, those that the round before made, and an append
    // looks at each child that might be equal: a few records each, however many the others are.
    assert_eq!(after[0].written, before[0].written);
    assert!(after[0].read <= before[0].read + 10, "{before:?} {after:?}");
    assert!(after[2].read <= before[2].read, "{before:?} {after:?}");
}
