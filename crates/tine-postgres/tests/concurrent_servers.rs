//! Several servers on one database: each has its own store and no contact with the others.

use std::collections::BTreeSet;
use std::sync::Mutex;

use tine_core::{ConversationId, ErrorKind, Message, Name, Reference, Role, TurnId};
use tine_engine::{
    Append, Call, Engine, FeedFilter, Fork, ForkPoint, NewCommit, NewConversation, OnConflict,
    SearchQuery, TurnRef,
};
use tine_postgres::PostgresStore;
use tine_store::{FeedPosition, OpenMode};

use crate::fixture;

const CLIENTS: usize = 8;
const ROUNDS: usize = 12;

fn engines() -> [Engine; 2] {
    let address = fixture::address(0);
    let open = || Engine::new(PostgresStore::open(&address, OpenMode::Create).unwrap());
    [open(), open()]
}

fn message(text: &str) -> Vec<Message> {
    vec![Message::text(Role::User, text)]
}

fn create(engine: &Engine, call: &Call, name: &str) -> ConversationId {
    engine.create_conversation(call, NewConversation::named(name).unwrap()).unwrap().id
}

#[test]
fn two_servers_and_eight_clients_lose_no_turn_and_keep_the_hash_chains() {
    let engines = engines();
    let call = Call::by("tester");
    let shared = create(&engines[0], &call, "shared");
    let acknowledged: Mutex<BTreeSet<TurnId>> = Mutex::default();
    std::thread::scope(|scope| {
        for client in 0..CLIENTS {
            let (engines, call, shared, acknowledged) = (&engines, &call, &shared, &acknowledged);
            scope.spawn(move || {
                let own = create(&engines[client % 2], call, &format!("own-{client}"));
                for round in 0..ROUNDS {
                    // Alternate between the servers.
                    let engine = &engines[(client + round) % 2];
                    let text = format!("{client} says {round}");
                    let keyed = call.clone().with_key(format!("{client}-{round}"));
                    for (call, id) in [(call, &own), (&keyed, shared)] {
                        let done =
                            engine.append(call, Append::to(id.clone(), message(&text))).unwrap();
                        acknowledged.lock().unwrap().insert(done.turns[0].id);
                    }
                    if round % 4 == 1 {
                        let name = Some(Name::from_stored(format!("fork-{client}-{round}")));
                        let point = ForkPoint::At(Reference::parse("main").unwrap());
                        let conversation = Some(shared.clone());
                        engine.fork(call, Fork { conversation, point, name }).unwrap();
                    }
                    if round % 4 == 3 {
                        let commit = NewCommit::of(own.clone(), "so far");
                        engine.commit(call, commit).unwrap();
                    }
                }
            });
        }
    });
    for engine in &engines {
        let verified = engine.verify().unwrap();
        assert!(verified.problems.is_empty(), "{:?}", verified.problems);
        let acknowledged = acknowledged.lock().unwrap();
        assert_eq!(acknowledged.len(), CLIENTS * ROUNDS * 2);
        for turn in acknowledged.iter() {
            engine.turn(&call, TurnRef::of(*turn)).unwrap();
        }
    }
    let [one, other] = engines.each_ref().map(|engine| {
        let (entries, _) =
            engine.feed(FeedPosition::default(), &FeedFilter::default(), 10_000).unwrap();
        entries.into_iter().map(|entry| (entry.position, entry.operation)).collect::<Vec<_>>()
    });
    assert_eq!(one, other, "both servers have the same history");
}

#[test]
fn a_server_with_a_stale_cache_does_not_overwrite_another_servers_append() {
    let engines = engines();
    let call = Call::by("tester");
    let id = create(&engines[0], &call, "c");
    let append = |engine: &Engine, text: &str| {
        engine.append(&call, Append::to(id.clone(), message(text))).unwrap()
    };
    // Both servers have cached the conversation; then each cache becomes stale.
    append(&engines[0], "1");
    append(&engines[1], "2");
    append(&engines[0], "3");
    let last = append(&engines[1], "4");
    let hash = |n: usize| Reference::parse(&last.turns[n].hash.to_string()).unwrap();
    append(&engines[0], "5");
    // The tip is neither what this server has cached nor what the caller expects.
    let stale = Append { expected_tip: Some(hash(0)), ..Append::to(id.clone(), message("6")) };
    let refused = engines[1].append(&call, stale.clone()).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Conflict);
    let forked = Append { on_conflict: OnConflict::Fork, ..stale };
    assert!(engines[1].append(&call, forked).unwrap().forked);
    // A key that was used through the other server is found here, and nothing is added.
    let keyed = call.clone().with_key("k");
    let first = engines[0].append(&keyed, Append::to(id.clone(), message("7"))).unwrap();
    let again = engines[1].append(&keyed, Append::to(id.clone(), message("7"))).unwrap();
    assert!(again.replayed);
    assert_eq!(first.turns[0].id, again.turns[0].id);
    let other = engines[1].append(&keyed, Append::to(id.clone(), message("8"))).unwrap_err();
    assert_eq!(other.kind(), ErrorKind::IdempotencyMismatch);
}

#[test]
fn a_search_finds_appends_that_another_server_has_just_acknowledged() {
    let engines = engines();
    let call = Call::by("tester");
    let id = create(&engines[0], &call, "c");
    for (nth, word) in ["amber", "birch", "cedar"].into_iter().enumerate() {
        engines[nth % 2].append(&call, Append::to(id.clone(), message(word))).unwrap();
        let query =
            SearchQuery { conversation: Some(id.clone()), ..SearchQuery::of(word.to_owned()) };
        let found = engines[(nth + 1) % 2].search(&call, query).unwrap();
        assert_eq!(found.hits.len(), 1, "{word}");
    }
}
