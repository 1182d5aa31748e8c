//! Connections that break at any moment: what was acknowledged is stored once, and nothing twice.
//!
//! Between the store and the server stands a relay that breaks connections after so many packets
//! of answers: what was asked for has been done, and nobody is told. Calls have no keys: it is the
//! store alone that finds out what became of a commit.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tine_core::{ConversationId, Kind, Message, Role};
use tine_engine::{Append, Call, Engine, Error, NewConversation, PathQuery};
use tine_postgres::{Address, PostgresStore};
use tine_store::{OpenMode, StoreError};

const CLIENTS: usize = 4;

/// What a relay does at present.
#[derive(Default)]
struct State {
    breaks: AtomicBool,
    broken: AtomicUsize,
    /// Until then nobody gets through.
    away: Mutex<Option<Instant>>,
}

impl State {
    fn is_away(&self) -> bool {
        self.away.lock().unwrap().is_some_and(|until| Instant::now() < until)
    }
}

/// Starts a relay to the server and answers its port. A seed decides when connections break; so
/// long after that nobody gets through.
fn relay(to: String, seed: u64, rest: Duration, state: Arc<State>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for (nth, client) in listener.incoming().enumerate() {
            let Ok(client) = client else { return };
            if state.is_away() {
                continue;
            }
            let Ok(server) = TcpStream::connect(&to) else { continue };
            let mixed = (seed + nth as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            // Behind the greeting and some statements, so that there is progress.
            let packets = 12 + (mixed >> 40) % 40;
            let there = (client.try_clone().unwrap(), server.try_clone().unwrap());
            std::thread::spawn(move || pass(there.0, there.1, |_| false));
            let state = Arc::clone(&state);
            std::thread::spawn(move || {
                pass(server, client, |passed| {
                    if state.is_away() {
                        return true;
                    }
                    let breaks = passed >= packets && state.breaks.load(Ordering::SeqCst);
                    state.broken.fetch_add(usize::from(breaks), Ordering::SeqCst);
                    if breaks {
                        *state.away.lock().unwrap() = Some(Instant::now() + rest);
                    }
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

/// What a caller was told of an append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    Stored,
    NotStored,
    Unknown,
}

fn say(engine: &Engine, call: &Call, id: &ConversationId, text: &str) -> Told {
    let append = Append::to(id.clone(), vec![Message::text(Role::User, text)]);
    match engine.append(call, append) {
        Ok(_) => Told::Stored,
        Err(Error::Store(StoreError::InDoubt { .. })) => Told::Unknown,
        Err(_) => Told::NotStored,
    }
}

#[test]
fn connections_that_break_in_a_commit_lose_nothing_and_repeat_nothing() {
    let told = check(Duration::ZERO, 40);
    assert!(told.iter().all(|told| *told == Told::Stored), "{told:?}");
}

#[test]
fn while_a_database_stays_away_everybody_is_told_what_is_so() {
    let told = check(Duration::from_millis(300), 12);
    assert!(told.contains(&Told::Stored), "{told:?}");
}

/// Several clients append, each so many turns, while connections break; what each was told of every
/// turn, which is so.
fn check(rest: Duration, appends: usize) -> Vec<Told> {
    let server = tine_testkit::database::server();
    let (_, host) = server.split_once('@').unwrap();
    let (host, _) = host.split_once('/').unwrap();
    let state = Arc::new(State::default());
    let port = relay(host.to_owned(), 7, rest, Arc::clone(&state));
    let address = tine_testkit::database::new_store().replace(host, &format!("127.0.0.1:{port}"));
    let address = Address::parse(&address).unwrap();
    let engine = Engine::new(PostgresStore::open(&address, OpenMode::Create).unwrap());
    let call = Call::by("tester");
    let ids: Vec<ConversationId> = (0..CLIENTS)
        .map(|client| NewConversation::named(&format!("c{client}")).unwrap())
        .map(|new| engine.create_conversation(&call, new).unwrap().id)
        .collect();
    state.breaks.store(true, Ordering::SeqCst);
    let told: Vec<Vec<Told>> = std::thread::scope(|scope| {
        let client = |id| {
            let (engine, call) = (&engine, &call);
            let said = move |number| say(engine, call, id, &format!("turn {number}"));
            scope.spawn(move || (0..appends).map(said).collect())
        };
        let clients: Vec<_> = ids.iter().map(client).collect();
        clients.into_iter().map(|client| client.join().unwrap()).collect()
    });
    state.breaks.store(false, Ordering::SeqCst);
    assert!(state.broken.load(Ordering::SeqCst) > 0, "connections were broken");
    std::thread::sleep(rest);
    for (id, told) in ids.iter().zip(&told) {
        let path = engine.path(&call, PathQuery::of(id.clone())).unwrap();
        let said: Vec<String> =
            path.turns.iter().map(|turn| format!("{:?}", turn.content)).collect();
        for (number, told) in told.iter().enumerate() {
            let this = format!("\"turn {number}\"");
            let times = said.iter().filter(|said| said.contains(&this)).count();
            let so = match told {
                Told::Stored => times == 1,
                Told::NotStored => times == 0,
                Told::Unknown => times <= 1,
            };
            assert!(so, "turn {number} of {id} is there {times} times, and {told:?} was told");
        }
    }
    assert!(engine.verify().unwrap().problems.is_empty());
    told.concat()
}

#[test]
fn a_database_that_is_not_there_is_told_as_busy_and_not_waited_for_long() {
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let address = Address::parse(&format!("postgres://postgres@{closed}/postgres")).unwrap();
    let refused = PostgresStore::open(&address, OpenMode::Existing).unwrap_err();
    assert_eq!(refused.kind(), Kind::Busy, "{refused}");
    assert!(refused.to_string().contains("try again"), "{refused}");
}
