//! Connections that break at any moment: what was acknowledged is stored once, and nothing twice.
//!
//! Between the store and the server stands a relay that breaks connections after so many packets
//! of answers: what was asked for has been done, and nobody is told. Calls have no keys: it is the
//! store alone that finds out what became of a commit.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use tine_core::{ConversationId, Kind, Message, Role};
use tine_engine::{Append, Call, Engine, NewConversation, PathQuery};
use tine_postgres::{Address, PostgresStore};
use tine_store::embedded::Mode;

const CLIENTS: usize = 4;
const APPENDS: usize = 40;

/// What a relay does at present.
#[derive(Default)]
struct State {
    breaks: AtomicBool,
    broken: AtomicUsize,
}

/// Starts a relay to the server and answers its port. A seed decides when connections break.
fn relay(to: String, seed: u64, state: Arc<State>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for (nth, client) in listener.incoming().enumerate() {
            let Ok(client) = client else { return };
            let Ok(server) = TcpStream::connect(&to) else { continue };
            let mixed = (seed + nth as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            // Behind the greeting and some statements, so that there is progress.
            let packets = 12 + (mixed >> 40) % 40;
            let there = (client.try_clone().unwrap(), server.try_clone().unwrap());
            std::thread::spawn(move || pass(there.0, there.1, |_| false));
            let state = Arc::clone(&state);
            std::thread::spawn(move || {
                pass(server, client, |passed| {
                    let breaks = passed >= packets && state.breaks.load(Ordering::SeqCst);
                    state.broken.fetch_add(usize::from(breaks), Ordering::SeqCst);
                    breaks
                });
            });
        }
    });
    port
}

/// Passes packets on until one end is gone, or it is time to break off: before the next is passed.
fn pass(mut from: TcpStream, mut to: TcpStream, breaks: impl Fn(u64) -> bool) {
    let mut buffer = vec![0; 64 << 10];
    for passed in 0.. {
        let Ok(count @ 1..) = from.read(&mut buffer) else { break };
        if breaks(passed) || to.write_all(&buffer[..count]).is_err() {
            break;
        }
    }
    for end in [from, to] {
        end.shutdown(Shutdown::Both).ok();
    }
}

fn say(engine: &Engine, call: &Call, id: &ConversationId, text: &str) -> Result<(), Kind> {
    let append = Append::to(id.clone(), vec![Message::text(Role::User, text)]);
    engine.append(call, append).map(drop).map_err(|error| error.kind())
}

#[test]
fn connections_that_break_in_a_commit_lose_nothing_and_repeat_nothing() {
    let server = tine_testkit::database::server();
    let (_, host) = server.split_once('@').unwrap();
    let (host, _) = host.split_once('/').unwrap();
    let state = Arc::new(State::default());
    let port = relay(host.to_owned(), 7, Arc::clone(&state));
    let address = tine_testkit::database::new_store().replace(host, &format!("127.0.0.1:{port}"));
    let address = Address::parse(&address).unwrap();
    let engine = Engine::new(PostgresStore::open(&address, Mode::Create).unwrap());
    let call = Call::by("tester");
    let ids: Vec<ConversationId> = (0..CLIENTS)
        .map(|client| NewConversation::named(&format!("c{client}")).unwrap())
        .map(|new| engine.create_conversation(&call, new).unwrap().id)
        .collect();
    state.breaks.store(true, Ordering::SeqCst);
    std::thread::scope(|scope| {
        for id in &ids {
            let (engine, call) = (&engine, &call);
            scope.spawn(move || {
                for number in 0..APPENDS {
                    say(engine, call, id, &format!("turn {number}")).unwrap();
                }
            });
        }
    });
    state.breaks.store(false, Ordering::SeqCst);
    assert!(state.broken.load(Ordering::SeqCst) > CLIENTS, "connections were broken");
    for id in &ids {
        let path = engine.path(&call, PathQuery::of(id.clone())).unwrap();
        let mut count: BTreeMap<String, usize> = BTreeMap::new();
        for turn in &path.turns {
            *count.entry(format!("{:?}", turn.content)).or_default() += 1;
        }
        assert_eq!(path.turns.len(), APPENDS, "each once, and in order");
        assert!(count.values().all(|times| *times == 1), "{count:?}");
    }
    assert!(engine.verify().unwrap().problems.is_empty());
}

#[test]
fn a_database_that_is_not_there_is_told_as_busy_and_not_waited_for_long() {
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let address = Address::parse(&format!("postgres://postgres@{closed}/postgres")).unwrap();
    let refused = PostgresStore::open(&address, Mode::Existing).unwrap_err();
    assert_eq!(refused.kind(), Kind::Busy, "{refused}");
    assert!(refused.to_string().contains("try again"), "{refused}");
}
