//! Connections that break at any moment: what was acknowledged is stored once, and nothing twice.
//!
//! A relay between the store and the server breaks connections after some packets of answers: the
//! request was executed, but its answer is lost. Calls have no idempotency keys: the store alone has
//! to find out the outcome of a commit.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tine_core::{ConversationId, ErrorKind, Message, Role};
use tine_engine::{Append, Call, Engine, Error, NewConversation, PathQuery};
use tine_postgres::{PostgresAddress, PostgresStore};
use tine_store::{OpenMode, StoreError};

const CLIENTS: usize = 4;

/// The state of a relay.
#[derive(Default)]
struct RelayState {
    breaks: AtomicBool,
    broken: AtomicUsize,
    /// Until then no connection is relayed.
    away_until: Mutex<Option<Instant>>,
}

impl RelayState {
    fn is_away(&self) -> bool {
        self.away_until.lock().unwrap().is_some_and(|until| Instant::now() < until)
    }
}

/// Starts a relay to the server and returns its port. The seed determines when connections break;
/// after that no connection is relayed for `outage`.
fn relay(to: String, seed: u64, outage: Duration, state: Arc<RelayState>) -> u16 {
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
            // After the handshake and some statements, so that there is progress.
            let packets = 12 + (mixed >> 40) % 40;
            let there = (client.try_clone().unwrap(), server.try_clone().unwrap());
            std::thread::spawn(move || forward(there.0, there.1, |_| false));
            let state = Arc::clone(&state);
            std::thread::spawn(move || {
                forward(server, client, |passed| {
                    if state.is_away() {
                        return true;
                    }
                    let breaks = passed >= packets && state.breaks.load(Ordering::SeqCst);
                    state.broken.fetch_add(usize::from(breaks), Ordering::SeqCst);
                    if breaks {
                        *state.away_until.lock().unwrap() = Some(Instant::now() + outage);
                    }
                    breaks
                });
            });
        }
    });
    port
}

/// Forwards packets until one end is closed or `breaks` returns true.
fn forward(mut from: TcpStream, mut to: TcpStream, breaks: impl Fn(u64) -> bool) {
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

/// The outcome of an append, as reported to the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reported {
    Stored,
    NotStored,
    Unknown,
}

fn append_text(engine: &Engine, call: &Call, id: &ConversationId, text: &str) -> Reported {
    let append = Append::to(id.clone(), vec![Message::text(Role::User, text)]);
    match engine.append(call, append) {
        Ok(_) => Reported::Stored,
        Err(Error::Store(StoreError::InDoubt { .. })) => Reported::Unknown,
        Err(_) => Reported::NotStored,
    }
}

#[test]
fn connections_that_break_in_a_commit_lose_nothing_and_repeat_nothing() {
    let reported = check(Duration::ZERO, 40);
    assert!(reported.iter().all(|it| *it == Reported::Stored), "{reported:?}");
}

#[test]
fn during_an_outage_every_reported_outcome_is_true() {
    let reported = check(Duration::from_millis(300), 12);
    assert!(reported.contains(&Reported::Stored), "{reported:?}");
}

/// Runs several clients that append turns while connections break, checks that every reported
/// outcome is true, and returns the outcomes.
fn check(outage: Duration, appends: usize) -> Vec<Reported> {
    let server = tine_testkit::database::server();
    let (_, host) = server.split_once('@').unwrap();
    let (host, _) = host.split_once('/').unwrap();
    let state = Arc::new(RelayState::default());
    let port = relay(host.to_owned(), 7, outage, Arc::clone(&state));
    let address = tine_testkit::database::new_store().replace(host, &format!("127.0.0.1:{port}"));
    let address = PostgresAddress::parse(&address).unwrap();
    let engine = Engine::new(PostgresStore::open(&address, OpenMode::Create).unwrap());
    let call = Call::by("tester");
    let ids: Vec<ConversationId> = (0..CLIENTS)
        .map(|client| NewConversation::named(&format!("c{client}")).unwrap())
        .map(|new| engine.create_conversation(&call, new).unwrap().id)
        .collect();
    state.breaks.store(true, Ordering::SeqCst);
    let reported: Vec<Vec<Reported>> = std::thread::scope(|scope| {
        let client = |id| {
            let (engine, call) = (&engine, &call);
            let append = move |number| append_text(engine, call, id, &format!("turn {number}"));
            scope.spawn(move || (0..appends).map(append).collect())
        };
        let clients: Vec<_> = ids.iter().map(client).collect();
        clients.into_iter().map(|client| client.join().unwrap()).collect()
    });
    state.breaks.store(false, Ordering::SeqCst);
    assert!(state.broken.load(Ordering::SeqCst) > 0, "connections were broken");
    std::thread::sleep(outage);
    for (id, reported) in ids.iter().zip(&reported) {
        let path = engine.path(&call, PathQuery::of(id.clone())).unwrap();
        let contents: Vec<String> =
            path.turns.iter().map(|turn| format!("{:?}", turn.content)).collect();
        for (number, reported) in reported.iter().enumerate() {
            let this = format!("\"turn {number}\"");
            let times = contents.iter().filter(|it| it.contains(&this)).count();
            let is_true = match reported {
                Reported::Stored => times == 1,
                Reported::NotStored => times == 0,
                Reported::Unknown => times <= 1,
            };
            assert!(
                is_true,
                "turn {number} of {id} is stored {times} times, reported: {reported:?}"
            );
        }
    }
    assert!(engine.verify().unwrap().problems.is_empty());
    reported.concat()
}

#[test]
fn an_unreachable_database_is_reported_as_busy_without_a_long_wait() {
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let address =
        PostgresAddress::parse(&format!("postgres://postgres@{closed}/postgres")).unwrap();
    let refused = PostgresStore::open(&address, OpenMode::Existing).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Busy, "{refused}");
    assert!(refused.to_string().contains("try again"), "{refused}");
}
