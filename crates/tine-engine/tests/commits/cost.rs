//! What commits cost, counted in records.

use std::sync::Arc;

use tine_core::Limits;
use tine_engine::{Append, Call, DiffQuery, Engine, FixedEntropy, ManualClock, NewCommit};
use tine_sqlite::SqliteStore;
use tine_store::{MemoryStore, Store};
use tine_testkit::stores::{CountingStore, RecordCost, TempFolder};

use crate::world::{spoken, start};

/// The records that a comparison of two commits of so many turns each reads.
fn compared(inner: Arc<dyn Store>, turns: usize) -> RecordCost {
    let store = Arc::new(CountingStore::new(inner));
    let clock = Arc::new(ManualClock::new(start(), 1));
    let entropy = Arc::new(FixedEntropy::new(1));
    let engine = Engine::with(store.clone(), clock, entropy, Limits::default());
    let call = Call::by("tester");
    let new = tine_engine::NewConversation::named("talk").expect("a sound id");
    let talk = engine.create_conversation(&call, new).expect("a conversation").id;
    let texts: Vec<String> = (0..turns).map(|n| format!("Filler {n}.")).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let mut hashes = Vec::new();
    for _ in 0..2 {
        let request = Append { reuse: false, ..Append::to(talk.clone(), spoken(&texts)) };
        engine.append(&call, request).expect("an append");
        let made = engine.commit(&call, NewCommit::of(talk.clone(), "so far")).expect("a commit");
        assert_eq!(made.commit.turns, u64::try_from(turns).expect("few turns"));
        hashes.push(made.hash.to_string());
    }
    store.cost_of(|| {
        let (from, to) = (hashes[0].clone(), hashes[1].clone());
        let query = DiffQuery { conversation: Some(talk.clone()), from, to, limit: None };
        engine.diff(&call, query).expect("a comparison");
    })
}

/// A handful of records, none of which is a turn: with 10,000 turns on each side there is no room
/// for them in the count.
#[test]
fn comparing_two_commits_reads_no_turn() {
    for turns in [10, 10_000] {
        let cost = compared(Arc::new(MemoryStore::new()), turns);
        assert!(cost.read <= 16, "{turns}: {cost:?}");
        assert_eq!(cost.written, 0);
    }
    let folder = TempFolder::new();
    let store = SqliteStore::open(folder.path()).expect("a store");
    assert!(compared(Arc::new(store), 1_000).read <= 16);
}

/// Two conversations at once: rings of one lie between those of the other.
#[test]
fn rings_are_kept_once_also_where_others_speak_in_between() {
    let store = Arc::new(CountingStore::new(Arc::new(MemoryStore::new())));
    let clock = Arc::new(ManualClock::new(start(), 1));
    let entropy = Arc::new(FixedEntropy::new(1));
    let engine = Engine::with(store.clone(), clock, entropy, Limits::default());
    let call = Call::by("tester");
    let talks = ["one", "other"].map(|id| {
        let new = tine_engine::NewConversation::named(id).expect("a sound id");
        engine.create_conversation(&call, new).expect("a conversation").id
    });
    for n in 0..40 {
        for talk in &talks {
            let said = format!("Flight {n} from Berlin to Tokyo.");
            engine.append(&call, Append::to(talk.clone(), spoken(&[&said]))).expect("an append");
        }
    }
    let commit = |talk: &tine_core::ConversationId| {
        engine.commit(&call, NewCommit::of(talk.clone(), "so far")).expect("a commit").commit
    };
    let first = talks.each_ref().map(commit);
    let words = |commit: &tine_core::Commit| {
        let facets = commit.facets.as_ref().expect("facets");
        facets.keywords.iter().map(|(key, seen)| (key.clone(), seen.turns)).collect::<Vec<_>>()
    };
    assert_eq!(words(&first[0]), words(&first[1]));
    assert!(words(&first[0]).iter().any(|(_, turns)| *turns == 40), "{:?}", words(&first[0]));

    engine.undo(&call, &talks[0], None).expect("an undo");
    let mut again = None;
    let cost = store.cost_of(|| again = Some(commit(&talks[0])));
    assert_eq!(again.map(|it| it.facets), Some(first[0].facets.clone()));
    assert!(cost.written < 40, "no rings are written again: {cost:?}");
}
